"""Facts in files: what each format accepts and refuses, and that rows come back as written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from deltalog.diagnostics.report import DataError
from deltalog.language.arrow import arrow_schema, arrow_table
from deltalog.language.ast import TYPES, Column, Row
from deltalog.language.values import canonical_value
from deltalog.store.files import read_rows, write_rows

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
EDGE = (Column("src", "int"), Column("dst", "int"))
WORDS = (Column("word", "str"), Column("note", "str", nullable=True))


def read(path: Path, columns: Iterable[Column], content: str | bytes | None = None) -> list[Row]:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_rows(path, tuple(columns)))


def problem(path: Path, columns: Iterable[Column], content: str | bytes | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, columns, content)
    return str(caught.value)


# Round trips

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63) + 1, 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(
        lambda x: canonical_value(x, "float")
    ),
    "str": st.text() | st.text(alphabet='",\n\r\t\ufeff\u2028\x00 aé😀[]{}', max_size=6),
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
    "decimal": st.decimals(-(10**19), 10**19, places=18).map(
        lambda x: canonical_value(x, "decimal")
    ),
}


@st.composite
def relations(draw: st.DrawFn) -> tuple[tuple[Column, ...], list[Row]]:
    types = draw(st.lists(st.tuples(st.sampled_from(TYPES), st.booleans()), max_size=4))
    columns = tuple(
        Column(f"column{number}", type_, nullable) for number, (type_, nullable) in enumerate(types)
    )
    cells = [VALUES[type_] | st.none() if nullable else VALUES[type_] for type_, nullable in types]
    return columns, draw(st.lists(st.tuples(*cells), max_size=5))


@pytest.mark.parametrize("suffix", FORMATS)
@given(relation=relations())
@settings(derandomize=True, deadline=None, max_examples=100)
def test_what_is_written_reads_back_equal(
    suffix: str, relation: tuple[tuple[Column, ...], list[Row]]
) -> None:
    columns, rows = relation
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"facts{suffix}"
        assert write_rows(path, columns, rows) == len(rows)
        found = list(read_rows(path, columns))
    assert found == rows
    assert [[type(value) for value in row] for row in found] == [
        [type(value) for value in row] for row in rows
    ]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("columns", [EDGE, WORDS, ()])
def test_an_empty_relation_stays_empty(
    tmp_path: Path, suffix: str, columns: tuple[Column, ...]
) -> None:
    write_rows(tmp_path / f"none{suffix}", columns, [])
    assert read(tmp_path / f"none{suffix}", columns) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_relation_without_columns_keeps_its_fact(tmp_path: Path, suffix: str) -> None:
    write_rows(tmp_path / f"open{suffix}", (), [()])
    assert read(tmp_path / f"open{suffix}", ()) == [()]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_lone_null_is_not_a_blank_line(tmp_path: Path, suffix: str) -> None:
    column = (Column("name", "str", nullable=True),)
    write_rows(tmp_path / f"names{suffix}", column, [(None,), ("",), ("a",), (None,)])
    assert read(tmp_path / f"names{suffix}", column) == [(None,), ("",), ("a",), (None,)]


def test_many_rows_go_through_parquet_in_batches(tmp_path: Path) -> None:
    rows = [(number, number * 2) for number in range(40_000)]
    write_rows(tmp_path / "edge.parquet", EDGE, iter(rows))
    assert read(tmp_path / "edge.parquet", EDGE) == rows


# What is written


ALL = tuple(Column(type_, type_, nullable=True) for type_ in TYPES)
ROW: Row = (1, 0.1, 'a "b", c', True, date(2026, 1, 31), datetime(2026, 1, 31, 12), Decimal("1.50"))


def test_csv_as_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "all.csv", ALL, [ROW, (None,) * 7])
    assert (tmp_path / "all.csv").read_text() == (
        "int,float,str,bool,date,timestamp,decimal\n"
        '1,0.1,"a ""b"", c",true,2026-01-31,2026-01-31 12:00:00,1.50\n'
        ",,,,,,\n"
    )


def test_json_lines_as_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "all.jsonl", ALL, [ROW])
    assert (tmp_path / "all.jsonl").read_text() == (
        '{"int": 1, "float": 0.1, "str": "a \\"b\\", c", "bool": true, "date": "2026-01-31", '
        '"timestamp": "2026-01-31 12:00:00", "decimal": "1.50"}\n'
    )


def test_relations_without_columns_as_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "open.csv", (), [()])
    assert (tmp_path / "open.csv").read_text() == "holds\ntrue\n"
    write_rows(tmp_path / "open.jsonl", (), [()])
    assert (tmp_path / "open.jsonl").read_text() == "{}\n"
    assert read(tmp_path / "open.jsonl", (), "[]\n") == [()]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "edge.csv"
    write_rows(path, EDGE, [(1, 2)])

    def failing() -> Iterable[Row]:
        yield (3, 4)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        write_rows(path, EDGE, failing())
    assert read(path, EDGE) == [(1, 2)]
    assert os.listdir(tmp_path) == ["edge.csv"]


def test_writing_through_a_link_and_keeping_the_mode(tmp_path: Path) -> None:
    target = tmp_path / "target.csv"
    write_rows(target, EDGE, [])
    target.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(target)
    write_rows(tmp_path / "link.csv", EDGE, [(1, 2)])
    assert (tmp_path / "link.csv").is_symlink()
    assert read(target, EDGE) == [(1, 2)]
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_that_cannot_be_written(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"folder{suffix}").mkdir()
    for name in (f"folder{suffix}", f"missing/edge{suffix}"):
        with pytest.raises(DataError) as caught:
            write_rows(tmp_path / name, EDGE, [])
        assert caught.value.codes == ("E0711",)
    assert os.listdir(tmp_path) == [f"folder{suffix}"]


# CSV


@pytest.mark.parametrize(
    "content",
    [
        "src,dst\n1,2\n3,4\n",
        "dst,src\r\n2,1\r\n4,3",
        "1,2\n3,4",
        "\ufeffsrc,dst\n1,2\n\n3,4\n\n",
        '"src","dst"\n"1", 2\n3,"4"\n',
        "1 , 2\n3,4\n",
    ],
)
def test_csv_headers_and_line_ends(tmp_path: Path, content: str) -> None:
    assert read(tmp_path / "edge.csv", EDGE, content) == [(1, 2), (3, 4)]


def test_csv_nulls_and_empty_text(tmp_path: Path) -> None:
    content = 'a,\nb,""\n,x\n'
    assert read(tmp_path / "words.csv", WORDS, content) == [("a", None), ("b", ""), ("", "x")]
    optional = (Column("n", "int", nullable=True), Column("m", "int"))
    assert read(tmp_path / "n.csv", optional, ',1\n"",2\n') == [(None, 1), (None, 2)]
    assert "an empty field is not an int" in problem(tmp_path / "n.csv", optional, "1,\n")


def test_csv_quotes(tmp_path: Path) -> None:
    content = '"a\r\n""b""\n","c,d"\n5" pipe,"e"\n"""",""""""\n'
    assert read(tmp_path / "words.csv", WORDS, content) == [
        ('a\r\n"b"\n', "c,d"),
        ('5" pipe', "e"),
        ('"', '""'),
    ]
    assert "line 2: a quote is opened" in problem(tmp_path / "words.csv", WORDS, 'a,b\n"c,d\ne,f\n')
    assert "line 1: there is text after" in problem(tmp_path / "words.csv", WORDS, '"a"b,c\n')
    assert "line 1: a quote is opened" in problem(tmp_path / "words.csv", WORDS, 'c,"a""\n')


def test_csv_lines_are_counted_through_quoted_line_ends(tmp_path: Path) -> None:
    columns = (Column("text", "str"), Column("n", "int"))
    assert "line 4, column `n`" in problem(tmp_path / "t.csv", columns, '"a\n\nb",1\nc,x\n')


def test_csv_faulty_headers(tmp_path: Path) -> None:
    path = tmp_path / "edge.csv"
    message = problem(path, EDGE, "src,dst,cost\n1,2,3\n")
    assert "line 1: in the header, unknown column `cost`" in message
    assert "missing column `dst`" in problem(path, EDGE, "src\n1\n")
    assert "unknown column `target`; missing column `dst`" in problem(path, EDGE, "src,target\n")
    assert "repeated column `src`" in problem(path, EDGE, "src,dst,src\n")
    assert "unknown columns `Src`, `Dst`" in problem(path, EDGE, "Src,Dst\n1,2\n")
    assert "add a header with the column names: src, dst" in problem(path, EDGE, "from,to\n1,2\n")
    assert "unknown column `x`" in problem(path, WORDS, "word,x\n")


def test_csv_a_fact_may_mention_a_column(tmp_path: Path) -> None:
    columns = (Column("word", "str"), Column("n", "int"))
    assert read(tmp_path / "w.csv", columns, "word,1\nn,2\n") == [("word", 1), ("n", 2)]


def test_bad_records_name_file_line_column_value_and_type(tmp_path: Path) -> None:
    path = tmp_path / "edge.csv"
    message = problem(path, EDGE, "src,dst\n1,2\n1,zwei\n")
    assert f'{path}, line 3, column `dst`: "zwei" is not an int' in message
    assert "an int is a whole number" in message
    assert f"{path}, line 2: it has 3 fields, the relation has 2: src, dst" in problem(
        path, EDGE, "1,2\n1,2,3\n"
    )
    both = problem(path, EDGE, "1,2\nx,y\n")
    assert '"x" is not an int' in both
    assert '"y" is not an int' in both
    assert len(problem(path, EDGE, f"1,2\n1,{'x' * 5000}\n")) < 300


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("int", "9223372036854775808"),
        ("int", "-9223372036854775808"),
        ("int", "1.0"),
        ("float", "inf"),
        ("float", "1e999"),
        ("bool", "1"),
        ("date", "2026-02-30"),
        ("timestamp", "0001-01-01T00:00:00+10:00"),
        ("decimal", "0.0000000000000000001"),
        ("decimal", "1e5"),
    ],
)
def test_text_that_is_no_value(tmp_path: Path, type_: str, text: str) -> None:
    assert "is not a" in problem(tmp_path / "v.csv", (Column("v", type_),), f"v\n{text}\n")


def test_csv_zones_become_utc(tmp_path: Path) -> None:
    content = "2026-01-31T12:30:00+02:00\n2026-01-31\n"
    assert read(tmp_path / "t.csv", (Column("t", "timestamp"),), content) == [
        (datetime(2026, 1, 31, 10, 30),),
        (datetime(2026, 1, 31),),
    ]


# JSON Lines


def test_json_lines_arrays_objects_and_blanks(tmp_path: Path) -> None:
    content = '[1, 2]\n\n{"dst": 4, "src": 3}\r\n'
    assert read(tmp_path / "edge.jsonl", EDGE, content) == [(1, 2), (3, 4)]
    content = '{"word": "a"}\n["b", null]\n{"word": "c", "note": ""}'
    assert read(tmp_path / "w.json", WORDS, content) == [("a", None), ("b", None), ("c", "")]


def test_json_lines_numbers(tmp_path: Path) -> None:
    columns = (Column("d", "decimal"), Column("f", "float"))
    content = '[12345678901234567890.123456789, 0.1]\n["0.10", 2]\n[3, 1e2]\n'
    assert read(tmp_path / "n.jsonl", columns, content) == [
        (Decimal("12345678901234567890.123456789"), 0.1),
        (Decimal("0.1"), 2.0),
        (Decimal(3), 100.0),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "this is not JSON"),
        ("[1, NaN]", "this is not JSON"),
        ("[1, 1" + "0" * 5000 + "]", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ("7", "7 is neither an array nor an object"),
        ("[1]", "it has 1 field, the relation has 2: src, dst"),
        ("[[1, 2], [3, 4]]", "[1, 2] is not an int"),
        ("[1, -9223372036854775808]", "-9223372036854775808 is not an int"),
        ("[1, null]", "null is not an int"),
        ("[1, true]", "true is not an int"),
        ("[1, 2.0]", "2.0 is not an int"),
        ('[1, "2"]', '"2" is not an int'),
        ('[1, {"a": 1}]', '{"a": 1} is not an int'),
        ('{"src": 1}', "missing column `dst`"),
        ('{"src": 1, "dst": 2, "cost": 3}', "unknown column `cost`"),
        ('{"src": 1, "dst": 2, "src": 3}', "repeated column `src`"),
    ],
)
def test_bad_json_lines(tmp_path: Path, line: str, words: str) -> None:
    message = problem(tmp_path / "edge.jsonl", EDGE, f"[1, 2]\n{line}\n")
    assert "line 2" in message
    assert words in message


def test_json_text_must_be_unicode(tmp_path: Path) -> None:
    assert "is not a str" in problem(tmp_path / "w.jsonl", WORDS, '["\\ud800", null]')


# Parquet


def stored(path: Path, **columns: pyarrow.Array) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_types_are_converted(tmp_path: Path) -> None:
    utc = datetime(2026, 1, 31, 12, tzinfo=UTC)
    path = stored(
        tmp_path / "all.parquet",
        int=pyarrow.array([1], pyarrow.int32()),
        float=pyarrow.array([0.5], pyarrow.float32()),
        str=pyarrow.array(["a"], pyarrow.large_string()).dictionary_encode(),
        bool=pyarrow.array([True]),
        date=pyarrow.array([date(2026, 1, 31)], pyarrow.date64()),
        timestamp=pyarrow.array([utc], pyarrow.timestamp("ns", tz="Europe/Stockholm")),
        decimal=pyarrow.array([Decimal("1.50")], pyarrow.decimal128(10, 2)),
    )
    expected = (1, 0.5, "a", True, date(2026, 1, 31), datetime(2026, 1, 31, 12), Decimal("1.5"))
    assert read(path, ALL) == [expected]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "+02:00", "Asia/Kolkata"])
def test_parquet_timestamps_of_any_unit_and_zone(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    moment = datetime(1969, 12, 31, 23, 59, 58)
    aware = (
        moment
        if zone is None
        else moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5)))
    )
    values = pyarrow.array([aware, None], pyarrow.timestamp(unit, tz=zone))
    path = stored(tmp_path / "t.parquet", t=values)
    assert read(path, [Column("t", "timestamp", nullable=True)]) == [(moment,), (None,)]


def test_parquet_nanoseconds_round_down(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.parquet", t=pyarrow.array([-1, 1999], pyarrow.timestamp("ns")))
    assert read(path, [Column("t", "timestamp")]) == [
        (datetime(1969, 12, 31, 23, 59, 59, 999999),),
        (datetime(1970, 1, 1, 0, 0, 0, 1),),
    ]


def test_parquet_columns_by_name_or_position(tmp_path: Path) -> None:
    one, two = pyarrow.array([1]), pyarrow.array([2])
    assert read(stored(tmp_path / "a.parquet", dst=two, src=one), EDGE) == [(1, 2)]
    assert read(stored(tmp_path / "b.parquet", a=one, b=two), EDGE) == [(1, 2)]
    assert "unknown column `b`; missing column `dst`" in problem(
        stored(tmp_path / "c.parquet", src=one, b=two), EDGE
    )
    assert "it has 1 field and no column" in problem(stored(tmp_path / "d.parquet", a=one), EDGE)


def test_parquet_cells_that_do_not_fit(tmp_path: Path) -> None:
    def cell(type_: str, value: object, stored_type: pyarrow.DataType) -> str:
        path = stored(tmp_path / "v.parquet", v=pyarrow.array([None, value], stored_type))
        return problem(path, [Column("v", type_, nullable=True)])

    assert 'row 2, column `v`: "a" is not an int' in cell("int", "a", pyarrow.string())
    assert "is not an int" in cell("int", 2**64 - 1, pyarrow.uint64())
    assert "is not an int" in cell("int", -(2**63), pyarrow.int64())
    assert "nan is not a float" in cell("float", float("nan"), pyarrow.float64())
    assert "is not a date" in cell("date", 10**8, pyarrow.date32())
    assert "an unreadable timestamp" in cell("timestamp", 10**15, pyarrow.timestamp("s"))
    assert "is not a str" in cell("str", b"\xff", pyarrow.binary())
    assert "is not an int" in cell("int", [1, 2], pyarrow.list_(pyarrow.int64()))
    path = stored(tmp_path / "v.parquet", v=pyarrow.array([1, None]))
    assert "row 2, column `v`: null is not an int" in problem(path, [Column("v", "int")])


# Files that are none


@pytest.mark.parametrize("suffix", FORMATS)
@given(content=st.binary(max_size=60) | st.text('"\n\r,\t1a[]{}: ', max_size=30).map(str.encode))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_no_file_causes_anything_but_a_data_error(suffix: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"any{suffix}"
        path.write_bytes(content)
        for columns in (EDGE, WORDS, WORDS[1:], ()):
            with suppress(DataError):
                assert all(len(row) == len(columns) for row in read_rows(path, columns))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_that_cannot_be_read(tmp_path: Path, suffix: str) -> None:
    assert "no such file" in problem(tmp_path / f"missing{suffix}", EDGE)
    (tmp_path / f"folder{suffix}").mkdir()
    assert "is a directory" in problem(tmp_path / f"folder{suffix}", EDGE)


@pytest.mark.parametrize("suffix", SUFFIXES[:-1])
def test_text_files_that_are_empty_or_not_text(tmp_path: Path, suffix: str) -> None:
    assert read(tmp_path / f"empty{suffix}", EDGE, b"") == []
    message = problem(tmp_path / f"latin{suffix}", WORDS, b"\n[\xe9]\n")
    assert "line 2: this is not UTF-8 text" in message


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1xxxxPAR1", b"src,dst\n1,2\n"])
def test_broken_parquet(tmp_path: Path, content: bytes) -> None:
    assert "broken or not a Parquet file" in problem(tmp_path / "e.parquet", EDGE, content)


def test_parquet_with_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    write_rows(path, EDGE, [(number, number) for number in range(1000)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])
    assert "broken or not a Parquet file" in problem(path, EDGE)


def test_unknown_formats(tmp_path: Path) -> None:
    for use in (lambda path: read_rows(path, EDGE), lambda path: write_rows(path, EDGE, [])):
        with pytest.raises(DataError, match=r"\.csv, \.tsv, \.jsonl") as caught:
            use(tmp_path / "edge.xlsx")
        assert caught.value.codes == ("E0709",)


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    assert read(tmp_path / "EDGE.CSV", EDGE, "1,2\n") == [(1, 2)]


def test_reading_streams(tmp_path: Path) -> None:
    path = tmp_path / "edge.csv"
    path.write_text("1,2\nbad,3\n")
    rows = read_rows(path, EDGE)
    assert next(rows) == (1, 2)
    with pytest.raises(DataError):
        next(rows)


# Arrow


def test_arrow_schema_and_table() -> None:
    schema = arrow_schema([*EDGE, Column("note", "decimal", nullable=True)])
    assert [str(field.type) for field in schema] == ["int64", "int64", "decimal128(38, 18)"]
    assert [field.nullable for field in schema] == [False, False, True]
    table = arrow_table(ALL, [ROW, (None,) * 7])
    assert table.schema == arrow_schema(ALL)
    assert table.to_pylist() == [
        dict(zip(TYPES, ROW, strict=True)),
        dict.fromkeys(TYPES),
    ]
    assert arrow_table(EDGE, []).num_rows == 0
    assert arrow_table((), [()]).num_rows == 1
