"""The quick share of the walks: the same seeds every time. `make fuzz` walks on with fresh ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES
from verbs import VERBS
from walker import Manner, Setting, Walker

import deltalog
from deltalog.runtime.engine_choice import ENGINES
from walks import ROADS, Failure, drawn_setting, replay, shrunk, walk

SHARES = {
    ("memory", "embedded", False): 16,
    ("memory", "reference", False): 12,
    ("memory", "reference", True): 8,
    ("file", "embedded", False): 8,
    ("file", "reference", False): 8,
}
"""Walks by store, engine and whether changes are nervous."""


@pytest.mark.parametrize(
    ("store", "engine", "nervous"),
    SHARES,
    ids=[f"{s}-{e}{'-nervous' if n else ''}" for s, e, n in SHARES],
)
def test_nothing_goes_wrong_on_a_walk(store: str, engine: str, nervous: bool) -> None:
    for seed in range(SHARES[store, engine, nervous]):
        _, failure = walk(seed, store, engine, nervous)
        assert failure is None, f"\n{shrunk(failure)}"


EDGE, BOTH = "base edge(src: int, dst: int).\n", "base b(x: int, y: int).\nbase c(x: int).\n"
PATH = "path(X, Y) :- edge(X, Y).\npath(X, Y) :- edge(X, Z), path(Z, Y).\n"
JOINED = f"{BOTH}w(X) :- c(Y), b(X, Y).\n"
OPEN = "base q(x: int, y: int).\np(X) :- q(X, _).\nopen(X) :- q(X, Y), not p(Y).\n"
WRITTEN, OTHER = (
    f"base b(x: int).\nb(1). b(2).\nv(X) :- b(X), X {test}.\n" for test in ("> 0", "> 1")
)


def _step(verb: str, *operations: tuple[str, str, tuple[int, ...]]) -> tuple[object, ...]:
    rows: dict[tuple[str, str], list[tuple[int, ...]]] = {}
    for kind, name, row in operations:
        rows.setdefault((kind, name), []).append(row)
    return verb, tuple((*each, tuple(found)) for each, found in rows.items()), False


FOUND: dict[str, tuple[str, tuple[str, ...], dict[str, object], list[tuple[object, ...]]]] = {
    "an index built while a row is dead": (
        "memory",
        (BOTH,),
        {},
        [
            _step("apply", ("insert", "b", (1, 3)), ("insert", "c", (2,))),
            _step("apply", ("delete", "b", (1, 3))),
            ("change_program", JOINED, True),
            _step("apply", ("insert", "c", (3,))),
            _step("apply", ("delete", "c", (3,)), ("insert", "b", (1, 3))),
            _step("apply", ("insert", "c", (3,))),
        ],
    ),
    "a what-if and then the same": (
        "file",
        (JOINED,),
        {"strategy": "differencing"},
        [
            _step("apply", ("insert", "b", (1, 3)), ("insert", "c", (2,))),
            _step("what_if_and_then", ("delete", "b", (1, 3))),
            ("reopen", Manner("reference")),
        ],
    ),
    "a false deletion cancels an insertion": (
        "memory",
        (OPEN,),
        {"strategy": "differencing", "materialize": False, "nervous": True},
        [
            _step("transaction", ("insert", "q", (1, 3)), ("insert", "q", (3, 1))),
            _step("transaction", ("insert", "q", (3, 2)), ("insert", "q", (1, 2))),
        ],
    ),
    "an interrupt while rules change": (
        "memory",
        (EDGE,),
        {},
        [
            _step("apply", ("insert", "edge", (1, 2))),
            *(
                ("interrupted", number, "change_program", EDGE + PATH, True)
                for number in range(1, 9)
            ),
        ],
    ),
    "ranks that a strategy did not keep": (
        "file",
        (f"{EDGE}{PATH}",),
        {},
        [
            _step("apply", ("insert", "edge", (1, 3))),
            ("reopen", Manner("reference", "magic")),
            _step(
                "apply",
                ("delete", "edge", (1, 3)),
                *(("insert", "edge", row) for row in ((2, 3), (3, 1), (1, 2))),
            ),
            ("reopen", Manner("reference", "rederive")),
            _step("what_if", ("delete", "edge", (2, 3))),
        ],
    ),
    "facts of the program, deleted": (
        "memory",
        (WRITTEN,),
        {"strategy": "delta"},
        [_step("apply", ("delete", "b", (2,))), ("change_program", OTHER, True)],
    ),
}
"""Walks that went wrong once, with only the steps that it took."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FOUND)
def test_a_walk_that_went_wrong_once(name: str, engine: str) -> None:
    store, family, options, steps = FOUND[name]
    setting = Setting(store, family, Manner(engine, **options), ())  # type: ignore[arg-type]
    failure = replay(Failure(ROADS[store], 0, setting, [], [], AssertionError()), setting, steps)
    assert failure is None, f"\n{failure}"


def test_a_seed_always_gives_the_same_walk() -> None:
    settings = [drawn_setting(random.Random(7), "memory", "reference", False) for _ in range(2)]
    assert settings[0] == settings[1]


def test_every_program_is_valid() -> None:
    for family in FAMILIES.values():
        for text in family:
            deltalog.connect(program=text, engine="reference")


PROGRAM = "base b(x: int).\nv(X) :- b(X), X > 1.\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_walk_that_fails_is_shrunk(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database whose `apply` forgets the row 3: of many steps only one is left."""
    honest = deltalog.MemoryDatabase.apply

    def apply(
        self: deltalog.MemoryDatabase, insert: dict[str, list[tuple[int]]], **others: Any
    ) -> object:
        kept = {n: [r for r in rows if r != (3,)] for n, rows in insert.items()}
        return honest(self, kept, **others)

    monkeypatch.setattr(deltalog.MemoryDatabase, "apply", apply)
    setting = Setting("memory", (PROGRAM,), Manner(engine), (("b", ((1,),)),))
    steps = [("apply", (("insert", "b", ((number,),)),), False) for number in (2, 1, 3, 2)]
    steps.insert(1, ("audit",))
    found = replay(Failure(ROADS["memory"], 0, setting, [], [], AssertionError()), setting, steps)
    assert found is not None
    short = shrunk(found)
    assert short.steps == [("apply", (("insert", "b", ((3,),)),), False)]
    assert short.setting.facts == ()
    assert "db.apply(insert={'b': ((3,),)})\n# WrongError: delta" in str(short)


def test_a_step_that_means_nothing_is_passed_over(tmp_path: Path) -> None:
    walker = Walker(Setting("memory", (PROGRAM,), Manner("reference"), ()), tmp_path)
    VERBS["apply"].take(walker, (("insert", "gone", ((1,),)),), False)
    assert len(walker.lines) == 1
