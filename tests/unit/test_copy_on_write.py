"""A fold of a large table rewrites the files that hold changed rows, and no others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from deltalog.language.ast import Row
from deltalog.pipeline import stored_table
from deltalog.pipeline.location import Location
from deltalog.pipeline.stored_table import Fold, Ranked, StoredTable

FILES, ROWS = 5, 40


@pytest.fixture(autouse=True)
def _every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_table, "REWRITTEN_ROWS_MAX", 0)
    monkeypatch.setattr(stored_table, "SMALL_FILES_MAX", 1_000)


def _make_table(folder: Path, type_: str, files: list[list[Ranked]]) -> StoredTable:
    location = Location(str(folder), str(folder))
    table = StoredTable(location, "tables/t", ("key", "value"), (type_, "int"), is_ranked=True)
    table.follow(Fold(inserted=files[0]), 1)
    for version, rows in enumerate(files[1:], 2):
        table.follow(Fold(inserted=rows), version)
    assert len(table._rows_per_file()) == len(files)
    return table


def _key_of(number: int, type_: str) -> int | str | float | None:
    """A key; those of floats have no order that files tell, and some are null."""
    if type_ == "str":
        return f"k{number:04}"
    if type_ == "float":
        return None if number % 7 == 0 else number / 2
    return number


@pytest.mark.parametrize("type_", ["int", "str", "float"])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_folds_are_what_sets_say(tmp_path: Path, type_: str, is_mixed: bool) -> None:
    rng = random.Random(f"{type_} {is_mixed}")
    numbers = list(range(FILES * ROWS))
    if is_mixed:  # any row may be in any file
        rng.shuffle(numbers)
    rows: list[Ranked] = [((_key_of(n, type_), n), n) for n in numbers]
    files = [rows[at : at + ROWS] for at in range(0, len(rows), ROWS)]
    table = _make_table(tmp_path, type_, files)
    expected: dict[Row, int] = dict(rows)
    for version in range(10, 16):
        changed = rng.sample(sorted(expected, key=str), 12)
        deleted, updated = changed[:6], [(row, 1_000 * version) for row in changed[6:]]
        absent = [(_key_of(9_999, type_), version)]
        inserted = [((_key_of(1_000 + version, type_), version), version)]
        table.follow(Fold(inserted, updated, [*deleted, *absent]), version)
        for row in deleted:
            del expected[row]
        expected |= dict([*updated, *inserted])
        assert sorted(table.ranked_rows(), key=str) == sorted(expected.items(), key=str)


def test_files_without_changed_rows_stay(tmp_path: Path) -> None:
    rows: list[Ranked] = [((n, n), 0) for n in range(FILES * ROWS)]
    table = _make_table(tmp_path, "int", [rows[at : at + ROWS] for at in range(0, 200, ROWS)])
    before = set(table._rows_per_file())
    table.follow(Fold(deleted=[(45, 45), (50, 50), (199, 199)]), 10)
    after = set(table._rows_per_file())
    assert len(before - after) == len(after - before) == 2


def test_a_file_that_becomes_empty_goes(tmp_path: Path) -> None:
    table = _make_table(tmp_path, "int", [[((1, 1), 0)], [((2, 2), 0)]])
    table.follow(Fold(deleted=[(2, 2)]), 10)
    assert table.ranked_rows() == [((1, 1), 0)]
    assert len(table._rows_per_file()) == 1
