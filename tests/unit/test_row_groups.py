"""Only groups of rows that can hold a wanted value are read, and none that does is left out."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.pipeline.row_groups import RowGroups

GROUP_ROWS = 4


def _write_dataset(folder: Path, files: list[dict[str, list[Any]]]) -> pyarrow.dataset.Dataset:
    for number, columns in enumerate(files):
        path = folder / f"{number}.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=GROUP_ROWS)
    return pyarrow.dataset.dataset(str(folder))


def _find_rows(
    groups: RowGroups, dataset: pyarrow.dataset.Dataset, wanted: dict[str, list[Any]]
) -> tuple[int, list[dict[str, Any]]]:
    """How many rows are near, and those that have one of the wanted values in each column."""
    condition = pc.scalar(True)
    for name, values in wanted.items():
        condition &= pc.field(name).isin(pyarrow.array(values, dataset.schema.field(name).type))
    near = groups.that_may_hold(dataset, wanted, condition)
    return near.to_table().num_rows, near.to_table(filter=condition).to_pylist()


def test_groups_without_a_wanted_value_are_not_read(tmp_path: Path) -> None:
    dataset = _write_dataset(tmp_path, [{"id": list(range(n, n + 8))} for n in (0, 8, 16)])
    assert _find_rows(RowGroups(), dataset, {"id": [5, 17]}) == (8, [{"id": 5}, {"id": 17}])
    assert _find_rows(RowGroups(), dataset, {"id": [99]}) == (0, [])


def test_all_columns_exclude_groups(tmp_path: Path) -> None:
    dataset = _write_dataset(tmp_path, [{"a": list(range(8)), "b": [0] * 4 + [1] * 4}])
    assert _find_rows(RowGroups(), dataset, {"a": [2, 6], "b": [1]}) == (4, [{"a": 6, "b": 1}])


def test_bounds_of_a_file_are_read_once_and_forgotten_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = _write_dataset(tmp_path, [{"id": [1, 2]}, {"id": [3, 4]}])
    groups = RowGroups()
    _find_rows(groups, dataset, {"id": [1]})
    first, second = sorted({path for path, _ in groups.bounds})
    known = groups.bounds[first, "id"]
    _find_rows(groups, dataset, {"id": [4]})
    assert groups.bounds[first, "id"] is known
    groups.forget_others([second])
    assert {path for path, _ in groups.bounds} == {second}


DAYS = st.integers(0, 30).map(lambda n: date(2026, 1, 1) + timedelta(days=n))
COLUMNS = {
    "int": (pyarrow.int64(), st.integers(-9, 9)),
    "str": (pyarrow.string(), st.text("aäz€𝄞", max_size=2)),
    "date": (pyarrow.date32(), DAYS),
}


@settings(deadline=None)
@given(st.data())
def test_what_is_wanted_is_found(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(COLUMNS)))
    type_, values = COLUMNS[kind]
    held = data.draw(st.lists(st.lists(values | st.none(), max_size=12), min_size=1, max_size=3))
    wanted = sorted(data.draw(st.sets(values, min_size=1, max_size=4)))
    dataset = _write_dataset(
        tmp_path_factory.mktemp("dataset"),
        [{"id": pyarrow.array(rows, type_)} for rows in held],
    )
    _, found = _find_rows(RowGroups(), dataset, {"id": wanted})
    assert [row["id"] for row in found] == [v for rows in held for v in rows if v in wanted]
