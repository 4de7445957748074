"""Files of text are the same rows wherever they are read: on the driver, in tasks, by Spark."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog.analysis.columns import Relation
from deltalog.checks.program import check_program
from deltalog.language.parser import parse_program
from deltalog.pipeline.checked_frames import FILE, LINE, OP, REASON, arrow_facts
from deltalog.pipeline.project import Source, read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.sources import SourceReader
from deltalog.pipeline.step import Step
from deltalog.pipeline.text_files import TextReader
from deltalog.pipeline.text_frames import text_frame
from deltalog.runtime.read_program import read_program

PROGRAM = "base r(n: int?, t: str?, d: decimal?, f: float?, b: bool?, at: timestamp?)."
PIECES = ["x", " ", ",", '"', '""', "\n", "\u2028", "é", "😀", "\\", "#", "'", "\t", ";"]
VALUES = {
    "n": ["0", "-7", "+5", " 12 ", "9223372036854775807", "9223372036854775808", "1.0", "x", "٣"],
    "d": ["1.50", "-.5", "1e3", "0.1234567890123456789", "99999999999999999999", "two"],
    "f": ["1", "2.5", "1e-3", "nan", "inf", "-0.0", "1e400"],
    "b": ["true", "FALSE", "1", "yes"],
    "at": ["2026-01-31", "2026-01-31T12:30:00+02:00", "2026-02-30", "0001-01-01 00:00:00"],
}
DOCUMENTS = 150


def relation() -> Relation:
    return check_program(parse_program(read_program(PROGRAM))).relations["r"]


def odd_text(pick: random.Random) -> str:
    return "".join(pick.choice(PIECES) for _ in range(pick.randrange(6)))


def field(value: str | None, pick: random.Random, mark: str = ",") -> str:
    """A value of CSV as RFC 4180 has it; quotes where they are needed, and sometimes elsewhere."""
    if value is None:
        return ""
    is_plain = value and not any(each in value for each in (mark, '"', "\n", "\r"))
    if is_plain and pick.random() < 0.8:
        return value
    return '"' + value.replace('"', '""') + '"'


def document(pick: random.Random, is_shuffled: bool = True) -> str:
    """A file of CSV that is well-formed, whatever its values are."""
    names = list(relation_names())
    if is_shuffled:
        pick.shuffle(names)
    end = pick.choice(["\n", "\r\n"])
    lines = [",".join(names)]
    for _ in range(pick.randrange(5)):
        values: dict[str, str | None] = {
            name: pick.choice(each if pick.random() < 0.2 else each[:2])
            for name, each in VALUES.items()
        }
        values["t"] = odd_text(pick)
        for name in names:
            if pick.random() < 0.2:
                values[name] = None
        lines.append(",".join(field(values[name], pick) for name in names))
        if pick.random() < 0.1:
            lines.append("")
    text = end.join(lines) + pick.choice(["", end])
    return ("\ufeff" if pick.random() < 0.2 else "") + text


def relation_names() -> tuple[str, ...]:
    return tuple(column.name for column in relation().columns)


def broken(text: str, pick: random.Random) -> bytes:
    """The same with some bytes altered, but for the header."""
    data = bytearray(text.encode())
    start = data.find(b"\n") + 1
    if 0 < start < len(data):
        for _ in range(pick.randrange(3)):
            at = pick.randrange(start, len(data))
            data[at : at + 1] = pick.choice([b"", b'"', b",", b"\n", b"\xff", b"\x00", b"x"])
    return bytes(data)


def driver_rows(reader: TextReader, path: Path) -> list[tuple[Any, ...]] | str:
    try:
        return [
            (row.line, row.row, row.reason, row.text if row.reason else None)
            for row in reader.rows(path)
        ]
    except deltalog.DataError as error:
        return error.diagnostics[0].message


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_driver_and_tasks_read_the_same(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    """Also from files that are broken; what concerns a file is its last row then."""
    pick = random.Random(14)
    reader = TextReader(Source("r", "r", "load", format_), relation())
    paths = []
    for number in range(DOCUMENTS):
        path = tmp_path / f"{number:03}.{format_}"
        text = document(pick) if format_ == "csv" else json_document(pick)
        path.write_bytes(broken(text, pick) if number % 2 else text.encode())
        paths.append(path)
    table = text_frame(spark, reader, paths).coalesce(2).toArrow()
    facts = arrow_facts(relation(), table)
    found: dict[str, list[tuple[Any, ...]]] = {}
    beside = [table.column(name).to_pylist() for name in (FILE, LINE, OP, REASON, "row__")]
    for row, file, line, op, reason, text in zip(facts, *beside, strict=True):
        end = found.setdefault(file, [])
        end.append((line, None if reason else row, reason, text) if op is None else (op, reason))
    kinds = {"good": 0, "bad": 0, "whole": 0}
    for path in paths:
        expected = driver_rows(reader, path)
        rows = found.get(str(path), [])
        if isinstance(expected, str):
            assert rows[-1] == ("file", expected)
            kinds["whole"] += 1
        else:
            assert rows == expected, path.read_bytes()
            kinds["bad"] += sum(each[2] is not None for each in expected)
            kinds["good"] += sum(each[2] is None for each in expected)
    assert kinds["good"] > 20, kinds
    assert kinds["bad"] > 20, kinds
    assert kinds["whole"] > 0 or format_ == "json", kinds


def json_document(pick: random.Random) -> str:
    values = [
        '"x"',
        '""',
        '"\\ud800"',
        "1",
        "1.5",
        "true",
        "null",
        '"2026-01-31"',
        "{}",
        "1e3",
        '"1.5"',
        "[1]",
    ]
    lines = []
    for _ in range(pick.randrange(5)):
        names = [name for name in relation_names() if pick.random() < 0.4]
        lines.append("{" + ", ".join(f'"{n}": {pick.choice(values)}' for n in names) + "}")
    return "\n".join(lines)


def test_spark_reads_the_same_from_well_formed_csv(spark: SparkSession, tmp_path: Path) -> None:
    """Values, nulls, and which rows are bad. With CRLF, Spark alters line ends inside quotes."""
    pick = random.Random(41)
    reader = TextReader(Source("r", "r", "load", "csv"), relation())
    expected: list[Any] = []
    for number in range(DOCUMENTS):
        path = tmp_path / f"{number:03}.csv"
        path.write_text(document(pick, is_shuffled=False).replace("\r\n", "\n"))
        expected += [row.row for row in reader.rows(path)]
    by_spark = Source("r", "r", "load", "csv", str(tmp_path), options={"encoding": "UTF-8"})
    data = SourceReader(spark, 100).whole(by_spark, relation())
    assert not isinstance(data, list)
    table = data.toArrow()
    reasons = table.column(REASON).to_pylist()
    rows = zip(arrow_facts(relation(), table), reasons, strict=True)
    found = [None if reason else row for row, reason in rows]
    assert Counter(found) == Counter(expected)
    assert sum(row is not None for row in expected) > 20


# --- deletions by key, on all roads


SHOP = """
base price(node: int key, euros: decimal, note: str?).
base stock(node: int key, pieces: int?).
"""


def run(spark: SparkSession, path: Path) -> list[Step]:
    with Pipeline(read_project(path), spark) as pipeline:
        return list(pipeline.steps())


@pytest.mark.parametrize("most", ["100000", "1"])
def test_deletions_by_key(spark: SparkSession, tmp_path: Path, most: str) -> None:
    """From files of text and others, on the driver and on the cluster."""
    (tmp_path / "shop.dl").write_text(SHOP)
    source = '[sources.{0}]\nkind = "changes"\nformat = "{1}"\npath = "{0}"\n'
    text = 'program = "shop.dl"\nstate = "state"\n'
    text += source.format("price", "csv") + source.format("stock", "parquet")
    (tmp_path / "project.toml").write_text(text)
    (tmp_path / "price").mkdir()
    (tmp_path / "stock").mkdir()
    path = tmp_path / "project.toml"

    def put(number: int, csv: str, rows: list[tuple[Any, ...]], schema: str) -> None:
        (tmp_path / f"price/{number}.csv").write_text(csv)
        data = spark.createDataFrame(rows, schema)
        data.coalesce(1).write.parquet(str(tmp_path / f"stock/{number}.parquet"))

    full = "op string, node long, pieces long"
    spark.conf.set("spark.deltalog.driver_rows_max", most)
    try:
        lines = "op,node,euros,note\n+,1,1,a\n+,2,2,b\n+,3,3,\n"
        put(1, lines, [("+", 1, 1), ("+", 2, None), ("+", 3, 3)], full)
        run(spark, path)
        put(2, "op,node\n-,1\ndelete,7\n", [("-", 2), ("delete", 9)], "op string, node long")
        put(3, "op,node,euros,note\n-,2,2,b\n+,2,5,c\n", [("-", 3, None), ("+", 4, 4)], full)
        steps = run(spark, path)
    finally:
        spark.conf.unset("spark.deltalog.driver_rows_max")
    assert [step.delta.counts for step in steps] == [
        {"price": (0, 1), "stock": (0, 1)},
        {"price": (1, 1), "stock": (1, 0)},
    ]

    def facts(name: str) -> set[tuple[Any, ...]]:
        return {tuple(r) for r in deltalog.read(spark, tmp_path / "state", name).collect()}

    assert facts("price") == {(2, Decimal(5), "c"), (3, Decimal(3), None)}
    assert facts("stock") == {(1, 1), (3, 3), (4, 4)}  # (3, null) was not there
