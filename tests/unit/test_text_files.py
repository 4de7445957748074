"""Files of text as sources have them: the dialect, nulls, types, deletions by key, errors."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import deltalog
from deltalog.analysis.columns import Relation
from deltalog.checks.program import check_program
from deltalog.language.parser import parse_program
from deltalog.pipeline.project import Source
from deltalog.pipeline.text_files import DELETE_KEY, NOT_JSON, TextReader, TextRow
from deltalog.runtime.read_program import read_program


def relation(text: str) -> Relation:
    (found,) = check_program(parse_program(read_program(f"base {text}."))).relations.values()
    return found


def rows(
    folder: Path,
    columns: str,
    text: str | bytes,
    format_: str = "csv",
    op: str | None = None,
    options: dict[str, str] | None = None,
) -> list[TextRow]:
    path = folder / f"rows.{format_}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    source = Source("r", "r", "changes", format_, options=options or {})
    return list(TextReader(source, relation(f"r({columns})"), op).rows(path))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b\n1,x\n", [(1, "x")]),
        ("\ufeffa,b\r\n1,x\r\n", [(1, "x")]),
        ("b,a\nx,1", [(1, "x")]),
        ("a,b\n\n1,x\n\n", [(1, "x")]),
        ('a,b\n1,"two\nlines"\n2,"a ""b"", c"\n', [(1, "two\nlines"), (2, 'a "b", c')]),
        ('a,b\n,\n"",""\n1,x"y\n', [(None, None), (None, ""), (1, 'x"y')]),
        ("a,b\n 1 , x \n", [(1, " x ")]),
        ("a,b\n", []),
    ],
)
def test_the_dialect_of_csv(tmp_path: Path, text: str, found: list[tuple[object, ...]]) -> None:
    assert [row.row for row in rows(tmp_path, "a: int?, b: str?", text)] == found


def test_rows_that_cannot_be_read_have_line_and_text(tmp_path: Path) -> None:
    text = b'a,b\n1,"x"y\n"2\n",3,4\nx,5\n6,\xff\n7,ok\n'
    found = rows(tmp_path, "a: int, b: str", text)
    assert [(row.line, row.values if row.reason else row.row) for row in found] == [
        (2, '1,"x"y'),
        (3, '"2\n",3,4'),
        (5, {"a": "x", "b": "5"}),
        (6, "6,\\xff"),
        (7, (7, "ok")),
    ]
    assert [row.reason for row in found] == [
        "this row cannot be read: there is text after a closing quote",
        "this row cannot be read: it has 3 values, the header has 2",
        '"x" does not fit column `a`, which is int',
        "this row cannot be read: it is not UTF-8 text",
        None,
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no header"),
        ('a,b\n1,"x\n2,y\n', "a quote is opened in line 2 and never closed"),
        ("a,c\n", "`b` is missing, `c` is unknown"),
        ("a,b,b\n", "`b` occurs twice"),
    ],
)
def test_problems_of_a_whole_file(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(deltalog.DataError, match=words):
        rows(tmp_path, "a: int, b: str", text)


def test_options_of_csv(tmp_path: Path) -> None:
    found = rows(
        tmp_path, "a: int?, b: str?", "a;b\nNA;x\n1;\n", options={"sep": ";", "nullValue": "NA"}
    )
    assert [row.row for row in found] == [(None, "x"), (1, None)]


def test_values_of_json_have_types(tmp_path: Path) -> None:
    """A string is not an int, a number is not text; a decimal may be either."""
    columns = "a: int?, b: str?, c: decimal?, d: bool?, e: float?"
    good = [
        ('{"a": 1, "b": "x", "c": 1.10, "d": true, "e": 2}', (1, "x", Decimal("1.1"), True, 2.0)),
        (
            '{"c": "0.123456789012345678"}',
            (None, None, Decimal("0.123456789012345678"), None, None),
        ),
        ('{"b": ""}', (None, "", None, None, None)),
    ]
    bad = [
        ('{"a": "1"}', '"1" does not fit column `a`, which is int'),
        ('{"a": 1.0}', "1.0 does not fit column `a`, which is int"),
        ('{"a": true}', "true does not fit column `a`, which is int"),
        ('{"b": 5}', "5 does not fit column `b`, which is str"),
        ('{"d": "true"}', '"true" does not fit column `d`, which is bool'),
        ('{"e": "2"}', '"2" does not fit column `e`, which is float'),
        ('{"b": {"x": 1}}', '{"x": 1} does not fit column `b`, which is str'),
        ('{"f": 1}', "column `f` is unknown"),
        ("[1]", NOT_JSON),
        ('{"a": 1, "a": 2}', NOT_JSON),
        ('{"e": NaN}', NOT_JSON),
    ]
    text = "\n".join(line for line, _ in (*good, *bad))
    found = rows(tmp_path, columns, text, "json")
    assert [row.row for row in found[: len(good)]] == [row for _, row in good]
    assert [row.reason for row in found[len(good) :]] == [reason for _, reason in bad]
    assert [row.line for row in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_deletions_by_key(tmp_path: Path, format_: str) -> None:
    """Everything but the key is left out; where null is a value, it stands for itself in CSV."""
    csv = "op,a,b,c\n-,1,,\ndelete,2,x,\n+,3,,\n-,,,\n"
    json = '{"op": "-", "a": 1}\n{"op": "delete", "a": 2, "b": "x"}\n{"op": "+", "a": 3}\n'
    json += '{"op": "-"}\n'
    text = csv if format_ == "csv" else json
    found = rows(tmp_path, "a: int key, b: str, c: int", text, format_, "op")
    assert [(row.op, row.row) for row in found] == [
        (DELETE_KEY, (1, None, None)),
        ("delete", None),
        ("+", None),
        (DELETE_KEY, None),
    ]
    nullable = rows(tmp_path, "a: int key, b: str?", "op,a,b\n-,1,\n", "csv", "op")
    assert [(row.op, row.row) for row in nullable] == [("-", (1, None))]
    short = rows(tmp_path, "a: int key, b: str?", "op,a\n-,1\n+,2\n", "csv", "op")
    assert [(row.op, row.row, row.reason) for row in short] == [
        (DELETE_KEY, (1, None), None),
        (None, None, "columns are left out, and only deletions go by key"),
    ]
