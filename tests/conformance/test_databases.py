"""One protocol, every kind of database: the same verbs with the same effects.

Tables are tried on Spark, in `tests/pipeline/test_table_verbs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import deltalog
from database_verbs import (
    HISTORY,
    OTHER_PROGRAM,
    PROGRAM,
    PROGRAM_OF_RULES,
    PROGRAM_OF_VIEWS,
    UPKEEP,
    changes,
    check_reasons,
    check_refused,
    check_rules,
    check_verbs,
    check_wanted_views,
)
from deltalog.runtime.engine_choice import ENGINES

KINDS = ["memory", "file"]


def opened(
    kind: str, tmp_path: Path, program: str = PROGRAM, **options: Any
) -> deltalog.MemoryDatabase:
    path = None if kind == "memory" else tmp_path / "verbs.db"
    made = deltalog.connect(path, program=program, **options)
    assert isinstance(made, deltalog.MemoryDatabase)
    return made


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_verbs_have_the_same_effects(kind: str, engine: str, tmp_path: Path) -> None:
    check_verbs(opened(kind, tmp_path, engine=engine))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_reasons_know_of_earlier_versions_and_programs(
    kind: str, engine: str, tmp_path: Path
) -> None:
    check_reasons(opened(kind, tmp_path, engine=engine), kind == "file")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_only_wanted_views_are_propagated(kind: str, engine: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path, PROGRAM_OF_VIEWS, engine=engine) as db:
        check_wanted_views(db, is_recorded=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_changes(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path, engine="reference") as db:
        made = changes(db.change_program(OTHER_PROGRAM))
        assert made == [("-", "path", (1, 2)), ("+", "path", (1, 1)), ("+", "path", (2, 1))]
        assert db.version == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_constraints_and_rules_hold(kind: str, engine: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path, PROGRAM_OF_RULES, engine=engine) as db:
        check_rules(db)


def test_memory_has_no_history_and_no_upkeep() -> None:
    check_refused(deltalog.connect(program=PROGRAM, engine="reference"), "in memory")


def test_a_file_has_history_and_upkeep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened("file", tmp_path, engine="reference") as db:
        history: deltalog.History = db
        upkeep: deltalog.Upkeep = db
        found = {verb: call(history) for verb, call in HISTORY.items()}
        found |= {verb: call(upkeep) for verb, call in UPKEEP.items()}
        assert found["first_version"] == 0
        assert isinstance(found["relations_at"], Mapping)
        assert Path("copy.db").exists()
        assert db.facts("edge", 0) == {(1, 2)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_refuses_a_change(kind: str, tmp_path: Path) -> None:
    def no_loops(change: deltalog.ChangeSet) -> str | None:
        return "a loop" if any(x == y for x, y in change.inserted["path"]) else None

    with opened(kind, tmp_path, engine="reference", check=no_loops) as db:
        before = db.facts("path")
        with pytest.raises(deltalog.DataError, match="a loop") as caught:
            db.apply(insert={"edge": [(2, 1)]})
        assert caught.value.codes == ("E1007",)
        assert (db.version, db.facts("path")) == (0, before)
        assert db.what_if(insert={"edge": [(2, 1)]}).inserted["edge"] == {(2, 1)}
        db.apply(insert={"edge": [(2, 3)]})
        assert db.version == 1
