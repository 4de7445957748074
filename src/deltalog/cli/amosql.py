"""AMOSQL on the command line: scripts, statements at the prompt, and what they return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from deltalog.cli.results import Result
from deltalog.language.amosql.parser import parse_statements, statement_pieces
from deltalog.language.amosql.tree import CreateFunction, CreateRule, CreateType
from deltalog.language.ast import Program
from deltalog.runtime.amosql.session import AmosqlSession, Selected
from deltalog.runtime.amosql.stored_schema import StoredSchema
from deltalog.source import Source

SUFFIX = ".amosql"


def is_amosql(file: Path) -> bool:
    return file.suffix.lower() == SUFFIX


def schema_in(source: Source) -> StoredSchema:
    """The schema that a script creates; its other statements are left out."""
    found = StoredSchema()
    for parsed in parse_statements(source):
        if isinstance(parsed.statement, CreateType | CreateFunction | CreateRule):
            found = found.extended(parsed)
    return found


def schema_program(source: Source) -> Program:
    """The rules that a script of AMOSQL stands for."""
    return schema_in(source).rules()


def is_complete(text: str) -> bool:
    """Whether all statements of a text have ended.

    >>> is_complete("create type item;"), is_complete("begin; create"), is_complete("/* ;")
    (True, False, False)
    """
    return all(piece.is_ended for piece in statement_pieces(Source("<text>", text)))


def run_script(session: AmosqlSession, source: Source) -> Iterator[Result]:
    """Carry out a script; yield the results of its `select` statements."""
    parse_statements(source)  # which reports all that is wrong before anything is done
    return selected_results(session.outcomes(source))


def selected_results(outcomes: Iterable[object]) -> Iterator[Result]:
    for outcome in outcomes:
        if isinstance(outcome, Selected):
            yield selected_result(outcome)


def selected_result(selected: Selected) -> Result:
    return Result("query", selected.text, selected.text, selected.columns, selected.rows)
