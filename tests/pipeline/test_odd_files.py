"""Files as people make them: other names of columns, endless values, marks at the beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.pipeline.check_project import check_project
from deltalog.pipeline.project import read_project
from deltalog.pipeline.source_columns import TEXT_MAX
from deltalog.pipeline.sources import SourceReader
from deltalog.pipeline.text_files import TextRow

PROJECT = """
program = "graph.dl"
state = "state"
[sources.edge]
kind = "changes"
format = "csv"
path = "in"
"""


def read(folder: Path, data: bytes) -> list[TextRow]:
    """The rows of a file, read by the driver without Spark."""
    (folder / "graph.dl").write_text("base edge(src: int, dst: int).")
    (folder / "project.toml").write_text(PROJECT)
    (folder / "in").mkdir()
    (folder / "in/1.csv").write_bytes(data)
    checked = check_project(read_project(folder / "project.toml"))
    (source,) = checked.project.sources
    no_spark: Any = None
    reader = SourceReader(no_spark, 100)
    offer = reader.file(source, checked.relation_of(source), folder / "in/1.csv")
    assert isinstance(offer.data, list)
    return offer.data


@pytest.mark.parametrize(
    ("header", "setting"),
    [
        ("op,source,dst", '{ source = "src" }'),
        ("OP,SRC,DST", '{ SRC = "src", DST = "dst", OP = "op" }'),
        ("op, src ,dst", '{ " src " = "src" }'),
    ],
)
def test_the_hint_is_the_setting_that_renames(tmp_path: Path, header: str, setting: str) -> None:
    with pytest.raises(deltalog.DataError) as found:
        read(tmp_path, f"{header}\n+,1,2\n".encode())
    assert found.value.codes == ("E1004",)
    assert f"`columns = {setting}` renames" in str(found.value)


def test_an_endless_value_is_not_repeated(tmp_path: Path) -> None:
    (row,) = read(tmp_path, b"op,src,dst\n+," + b"9" * 300_000 + b",2\n")
    assert row.row is None
    assert row.reason is not None
    assert len(row.reason) < 2 * TEXT_MAX
    assert row.reason.endswith("… does not fit column `src`, which is int")
    assert len(row.values["src"]) == 300_000  # type: ignore[index]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfop,src,dst\r\n+,1,2\r\n",
        b"\n\nop,src,dst\n+,1,2",
        b'op,"src",dst\n"+", 1 ,"2"\n\n',
    ],
)
def test_marks_blank_lines_and_quotes_change_nothing(tmp_path: Path, data: bytes) -> None:
    assert [(row.op, row.row) for row in read(tmp_path, data)] == [("+", (1, 2))]
