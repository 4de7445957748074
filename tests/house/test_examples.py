"""The examples do what they tell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import DOCS, ROOT, blocks

import deltalog
from deltalog.store.files import read_rows
from treatments import EVALUATIONS, Facts
from waiting import HANG_SECONDS

EXAMPLES = ROOT / "examples"
PERMISSIONS = EXAMPLES / "permissions"


def facts_of(folder: Path, database: deltalog.MemoryDatabase) -> Facts:
    return {
        path.stem: set(read_rows(path, database.relations[path.stem].columns))
        for path in sorted(folder.glob("*.csv"))
    }


@pytest.fixture
def permissions() -> deltalog.MemoryDatabase:
    database = deltalog.connect(program=PERMISSIONS / "permissions.dl")
    database.apply(
        insert={name: list(rows) for name, rows in facts_of(PERMISSIONS, database).items()}
    )
    return database


def test_every_base_relation_has_a_file(permissions: deltalog.MemoryDatabase) -> None:
    files = {path.stem for path in PERMISSIONS.glob("*.csv")}
    assert files == {name for name, known in permissions.relations.items() if known.kind == "base"}


def test_denials_beat_grants_through_nested_teams(permissions: deltalog.MemoryDatabase) -> None:
    """Rosa has a grant of her own, works in engineering, and is a contractor."""
    assert permissions.query('access("rosa", T)') == [("compiler-notes",), ("handbook",)]
    assert permissions.query('belongs("ada", T)') == [("company",), ("compiler",), ("engineering",)]
    assert permissions.query("unreadable(T)") == [("merger",)]
    assert permissions.query('readers("handbook", N)') == [(18,)]
    assert permissions.query("outsider(U, T)") == {("sam", "handbook"), ("tom", "price-list")}


def test_the_change_is_exact(permissions: deltalog.MemoryDatabase) -> None:
    before = permissions.facts("access")
    delta = permissions.apply(
        delete={"member": [("web", "engineering")], "denial": [("contractors", "roadmap")]},
        insert={"member": [("web", "operations")]},
    )
    assert delta.inserted["access"] == {
        ("gina", "runbook"),
        ("hugo", "runbook"),
        ("rosa", "roadmap"),
        ("rosa", "runbook"),
    }
    assert permissions.facts("access") - before == delta.inserted["access"]
    assert before - permissions.facts("access") == delta.deleted["access"]
    assert (
        permissions.apply(
            insert={"member": [("web", "engineering")], "denial": [("contractors", "roadmap")]},
            delete={"member": [("web", "operations")]},
        )
        == -delta
    )


@pytest.mark.parametrize("treatment", EVALUATIONS)
def test_every_treatment_agrees(permissions: deltalog.MemoryDatabase, treatment: str) -> None:
    program = permissions.model.checked.program
    results = EVALUATIONS[treatment](program, facts_of(PERMISSIONS, permissions))
    assert results == {name: permissions.facts(name) for name in permissions.relations}


def test_its_transactions_can_be_made(permissions: deltalog.MemoryDatabase) -> None:
    """The last one takes back a part of the first."""
    lines = (PERMISSIONS / "changes.jsonl").read_text(encoding="utf-8").splitlines()
    deltas = [permissions.apply(**json.loads(line)) for line in lines]
    assert all(deltas)
    assert deltas[1].deleted["unreadable"] == {("merger",)}
    assert permissions.audit() == ()


def test_the_demo_of_the_service_ends_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "demo_service.py", "--seconds", "0"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "The page is at http://127.0.0.1:",
        "+ Access(user='rosa', title='roadmap')",
        "readers: back, with 8 rows as of version 2",
        "The copy of access is the view",
        "The copy of readers is the view",
    ):
        assert words in done.stdout


def test_the_demo_shows_its_chapters() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "demo_embedded.py"],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        *(f"\n{number}  " for number in range(1, 9)),
        "+ access(rosa, roadmap)",
        "- unreadable(merger)",
        "+ access(quin, merger)",
        "40 facts",
        "error[E0705]",
        "no difference",
    ):
        assert words in done.stdout


def test_the_inventory_reaches_a_webhook(tmp_path: Path) -> None:
    """The commands of the tutorial, and that its receiver got both orders."""
    (block,) = [b for b in blocks(DOCS / "rules.md") if b.language == "sh" and "receiver" in b.text]
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", block.text],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    received = (tmp_path / "examples" / "inventory" / "received.txt").read_text().splitlines()
    assert received == ["reorder ['bolt', 4861]", "reorder ['nut', 7211]"]
    assert "2 delivered; 0 undelivered" in done.stderr
