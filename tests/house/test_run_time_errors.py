"""Errors that only a run can cause, to the letter; and after each of them nothing has changed.

Sections: `program` makes `db`, `file NAME` is written beside it, `without NAME` a package that is
not installed, `python` is run, `error` is what it says. A case with a section `spark` needs a
session of that name; it is run in `tests/pipeline`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import deltalog
from casefiles import compare, find, identify, read_case
from deltalog.store.files import read_rows, write_rows

CASES = [path for path in find("run_time") if "\n=== spark\n" not in f"\n{path.read_text()}"]


@pytest.mark.parametrize("path", CASES, ids=identify)
def test_run_time_error(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = read_case(path)
    names = {"deltalog": deltalog, "Path": Path, "read_rows": read_rows, "write_rows": write_rows}
    database = None
    for section in case.sections:
        if section.name == "program":
            database = deltalog.connect(program=section.text)
            before = _contents(database)
        elif section.words[0] == "file":
            (tmp_path / section.words[1]).write_text(section.text.strip() + "\n", encoding="utf-8")
        elif section.words[0] == "without":
            without(section.words[1], monkeypatch)
        elif section.name == "python":
            with pytest.raises(deltalog.DeltalogError) as caught:
                exec(section.text, {**names, "db": database})
        else:
            compare(case, section, str(caught.value))
    assert set(caught.value.codes) == {path.stem[:5].upper()}
    if database is not None and caught.value.codes != ("E0712",):
        assert _contents(database) == before


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package were not installed; what has been imported with it is forgotten."""
    ours = f"deltalog.engines.{package.removeprefix('py')}", "deltalog.service"
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize("limit", ["rounds_max", "facts_max", "seconds_max"])
def test_a_limit_reached_by_a_transaction_changes_nothing(limit: str) -> None:
    limits = deltalog.Limits(**{limit: 0.01 if limit == "seconds_max" else 1000})
    program = """
        base start(x: int).
        count_up(X) :- start(X).
        count_up(X + 1) :- count_up(X), X != 7.
        start(5).
    """
    database = deltalog.connect(program=program)
    database.limits = limits
    before = _contents(database)
    assert before["count_up"] == {(5,), (6,), (7,)}
    with pytest.raises(deltalog.LimitError) as caught:
        database.apply(insert={"start": [(8,)]}, delete={"start": [(5,)]})
    assert limit in str(caught.value)
    database.limits = deltalog.Limits()
    assert _contents(database) == before
    assert database.apply(insert={"start": [(4,)]}).inserted["count_up"] == {(4,)}


def _contents(database: deltalog.MemoryDatabase) -> dict[str, set[tuple[object, ...]]]:
    return {name: database.facts(name) for name in database.relations}
