"""Changes on standard output or in a file: the inserted and the deleted facts.

    changes.jsonl, line 1: version 1            {"version": 1, "inserted": {"edge": [[1, 2]], …
    op  relation  row
    --  --------  ----
    +   edge      1, 2
    +   path      1, 2
    (2 inserted)

JSON has exactly one line for each transaction, with relations and rows sorted. CSV, TSV and Parquet
have a row for each fact, of all relations together, so the fact itself is JSON text:

    transaction,version,op,relation,row
    1,1,+,edge,"[1, 2]"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.text import Text

from deltalog.cli.applying import Applied
from deltalog.cli.options import Format
from deltalog.cli.results import csv_field, table_lines
from deltalog.cli.terminal import visible_text, write_result
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Column, Row
from deltalog.language.values import plain_text, print_value, sort_key
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.derivation import fact_text
from deltalog.store.files import write_rows

COLUMNS = (
    Column("transaction", "int"),
    Column("version", "int"),
    Column("op", "str"),
    Column("relation", "str"),
    Column("row", "str"),
)
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
FILE_SUFFIXES = (*JSON_SUFFIXES, ".csv", ".tsv", ".parquet")


def show_changes(answers: Iterable[Applied], format_: Format, limit: int | None) -> None:
    """Each answer goes out before the next one is asked for; `limit` is for tables."""
    if format_ is Format.CSV:
        write_result(",".join(column.name for column in COLUMNS))
    for number, answer in enumerate(answers):
        if format_ is Format.TABLE:
            if number:
                write_result()
            _write_table(answer, limit)
        elif format_ is Format.JSON:
            write_result(change_json(answer))
        else:
            for row in _result_rows(answer):
                write_result(",".join(map(csv_field, row)))
        sys.stdout.flush()


def write_changes(answers: Iterable[Applied], path: Path) -> None:
    """A file in the format that its suffix names."""
    if path.suffix.lower() not in JSON_SUFFIXES:
        write_rows(path, COLUMNS, (row for answer in answers for row in _result_rows(answer)))
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("w", encoding="utf-8"))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError([catalogue.CANNOT_WRITE.at(None, name=path, reason=reason)]) from None
        for answer in answers:
            file.write(f"{change_json(answer)}\n")
            file.flush()


# --- JSON, and rows for everything else


def change_json(answer: Applied) -> str:
    record: dict[str, Any] = {
        "version": answer.version,
        "inserted": sorted_facts(answer.change.inserted),
        "deleted": sorted_facts(answer.change.deleted),
    }
    if answer.omitted:
        record["omitted"] = sorted(answer.omitted)
    if answer.change.firings:
        record["firings"] = answer.change.firings
    if answer.change.rejections:
        record["rejections"] = [each.to_json() for each in answer.change.rejections]
    return json.dumps(record, ensure_ascii=False, default=plain_text)


def sorted_facts(facts: Any) -> dict[str, list[Row]]:
    return {name: sorted(facts[name], key=sort_key) for name in sorted(facts)}


def _result_rows(answer: Applied) -> Iterator[Row]:
    for op, relation, row in answer.change:
        text = json.dumps(row, ensure_ascii=False, default=plain_text)
        yield (answer.number, answer.version, op, relation, text)


# --- tables


def _write_table(answer: Applied, limit: int | None) -> None:
    write_result(Text(f"{answer.place}: version {answer.version}", style="bold cyan"))
    for line in change_rows(answer.change, limit):
        write_result(line)
    for rule, instance in answer.change.firings[:limit]:
        write_result(Text(f"fired {visible_text(fact_text(rule, instance))}", style="yellow"))
    for violation in answer.change.rejections[:limit]:
        write_result(Text(f"rejected: {visible_text(violation.message)}", style="red"))


def change_rows(change: ChangeSet, limit: int | None) -> Iterator[Text]:
    """A change as a table to read."""
    changes = list(change)
    if not changes:
        yield Text("(nothing changes)", style="dim")
        return
    cells = [_fact_cells(*each) for each in changes[:limit]]
    for number, line in enumerate(table_lines(("op", "relation", "row"), cells, (False,) * 3)):
        if number > 1:
            line.stylize("green" if line.plain.startswith("+") else "red")
        yield line
    yield Text(_change_summary(change, len(changes) - len(cells)), style="dim")


def _fact_cells(op: str, relation: str, row: Row) -> Sequence[str]:
    return op, relation, visible_text(", ".join(print_value(value) for value in row))


def _change_summary(change: ChangeSet, left: int) -> str:
    sides = (("inserted", change.inserted), ("deleted", change.deleted))
    counts = ((word, sum(map(len, facts.values()))) for word, facts in sides)
    words = ", ".join(f"{count:,} {word}" for word, count in counts if count)
    return f"… {left:,} more ({words})" if left else f"({words})"
