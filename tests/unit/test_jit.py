"""Pipelines become machine code in the background, once for each shape, and are kept on disk."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import deltalog
from deltalog.engines.embedded import jit
from deltalog.engines.embedded.engine import EmbeddedEngine
from deltalog.runtime.database import MemoryDatabase
from waiting import HANG_SECONDS, wait_until

CLOSURE = """
base edge(a: int, b: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
"""
CHAIN = [(i, i + 1) for i in range(60)]
PATHS = {(i, j) for i in range(61) for j in range(i + 1, 61)}


@pytest.fixture
def specialist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[jit.Specialist]:
    """A new one, which keeps what it makes in a folder of its own."""
    made = jit.Specialist()
    monkeypatch.setattr(jit, "SPECIALIST", made)
    monkeypatch.setattr(jit, "_machine_code_folder", lambda: tmp_path / "pipelines")
    monkeypatch.setattr(jit, "WHEN", "often")
    monkeypatch.setattr(jit, "STEPS", 50)
    yield made
    made.end()


def closure() -> MemoryDatabase:
    return deltalog.connect(program=CLOSURE, facts={"edge": CHAIN})


def used() -> MemoryDatabase:
    """One in which all has been prepared."""
    database = closure()
    go_there_and_back(database)
    return database


def made(database: MemoryDatabase) -> int:
    """How many pipelines of a database have machine code."""
    engine = database.engine
    assert isinstance(engine, EmbeddedEngine)
    addresses = set(jit.SPECIALIST.addresses.values())
    return sum(word in addresses for code in engine.codes.values() for word in code)


def go_there_and_back(database: MemoryDatabase) -> None:
    for edge in CHAIN:
        database.apply(delete={"edge": [edge]})
        database.apply(insert={"edge": [edge]})


def wait_until_made(database: MemoryDatabase, count: int) -> None:
    def is_made() -> bool:
        go_there_and_back(database)
        return made(database) >= count

    wait_until(is_made, "machine code")


def test_what_is_run_often_becomes_machine_code(specialist: jit.Specialist) -> None:
    database = closure()
    wait_until_made(database, 3)
    go_there_and_back(database)
    assert database.facts("path") == PATHS


def test_what_is_run_seldom_does_not(
    specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "STEPS", 10**9)
    used()
    specialist.end()
    assert not specialist.addresses


def test_it_can_be_switched_off(
    specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "WHEN", "never")
    database = used()
    specialist.end()
    assert not specialist.addresses
    assert database.facts("path") == PATHS


def test_a_shape_is_made_once(specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "WHEN", "eager")
    first = used()
    shapes = len(specialist.addresses)
    second = used()
    assert made(first) == made(second) > 0
    assert len(specialist.addresses) == shapes


def test_it_is_kept_for_the_next_process(
    specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "WHEN", "eager")
    count = made(used())

    def refuse(name: str, shape: object) -> bytes:
        raise AssertionError("it has been made before")

    monkeypatch.setattr(jit, "_make_machine_code", refuse)
    monkeypatch.setattr(jit, "SPECIALIST", jit.Specialist())
    database = used()
    assert made(database) == count > 0
    assert database.facts("path") == PATHS


def test_what_is_damaged_is_made_anew(
    specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "WHEN", "eager")
    used()
    files = list(jit._machine_code_folder().iterdir())
    assert files
    for number, file in enumerate(files):
        kept = bytearray(file.read_bytes())
        kept[40 + number] ^= 0xFF
        file.write_bytes(bytes(kept[: len(kept) // 2] if number % 2 else kept))
    monkeypatch.setattr(jit, "SPECIALIST", jit.Specialist())
    database = used()
    assert database.facts("path") == PATHS


def test_a_folder_that_cannot_be_written_is_no_hindrance(
    specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(jit, "_machine_code_folder", lambda: tmp_path / "file" / "pipelines")
    monkeypatch.setattr(jit, "WHEN", "eager")
    assert used().facts("path") == PATHS


def test_what_cannot_be_made_is_interpreted(
    specialist: jit.Specialist,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(name: str, shape: object) -> bytes:
        raise RuntimeError("no memory that may be executed")

    monkeypatch.setattr(jit, "_make_machine_code", fail)
    database = used()
    assert database.facts("path") == PATHS
    wait_until(lambda: "no machine code" in caplog.text, "a failure is logged")
    assert "no memory that may be executed" in caplog.text


def test_there_is_a_limit(specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "WHEN", "eager")
    monkeypatch.setattr(jit, "SHAPES_MAX", 2)
    database = used()
    assert len(specialist.addresses) == 2
    assert database.facts("path") == PATHS


def test_a_database_that_is_gone_is_not_held(specialist: jit.Specialist) -> None:
    """Machine code may come when nobody wants it any more."""
    database = closure()
    go_there_and_back(database)
    engine = database.engine
    assert isinstance(engine, EmbeddedEngine)
    codes = [weakref.ref(code) for code in engine.codes.values()]
    assert specialist._wanted or specialist.addresses
    del database, engine

    def are_gone() -> bool:
        gc.collect()
        return all(code() is None for code in codes)

    wait_until(are_gone, "the codes are freed")


def test_long_bodies_are_interpreted(
    specialist: jit.Specialist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take long to make them, and a process waits for what is being made."""
    monkeypatch.setattr(jit, "WHEN", "eager")
    monkeypatch.setattr(jit, "LONGEST", 1)
    assert used().facts("path") == PATHS
    assert all(len(shape.steps) <= 1 for shape in specialist.addresses)


def test_a_misspelt_choice_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jit.VARIABLE, "nevr")
    with pytest.warns(UserWarning, match="often, never or eager"):
        assert jit._when_to_specialize() == "often"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_goes_on() -> None:
    text = f"""
import os, deltalog
from deltalog.engines.embedded import jit
jit.STEPS = 50
database = deltalog.connect(program={CLOSURE!r}, facts={{"edge": {CHAIN!r}}})
child = os.fork()
for edge in {CHAIN!r}:
    database.apply(delete={{"edge": [edge]}})
    database.apply(insert={{"edge": [edge]}})
assert len(database.facts("path")) == {len(PATHS)}
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    assert subprocess.run([sys.executable, "-c", text], timeout=HANG_SECONDS).returncode == 0


def test_a_process_can_end_while_something_is_being_made() -> None:
    text = f"""
import deltalog
from deltalog.engines.embedded import jit
jit.STEPS = 50
jit._kept_machine_code = jit._make_machine_code
database = deltalog.connect(program={CLOSURE!r}, facts={{"edge": {CHAIN!r}}})
for edge in {CHAIN!r}[:5]:
    database.apply(delete={{"edge": [edge]}})
assert jit.SPECIALIST._wanted or jit.SPECIALIST.addresses
"""
    ended = subprocess.run([sys.executable, "-c", text], timeout=HANG_SECONDS, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")
