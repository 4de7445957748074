"""Values of parameters as they are written on the command line: `--param src=1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import typer

from deltalog.analysis.columns import Relations
from deltalog.checks.program import check_query
from deltalog.diagnostics.report import Diagnostic, ProgramError, raise_if_any
from deltalog.language.ast import Query
from deltalog.language.parser import parse_query
from deltalog.runtime.parameters import bind_parameters, query_parameters, read_parameters


def parameter_texts(texts: Iterable[str] | None) -> dict[str, str]:
    """The values of `--param`, each `NAME=VALUE`."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        name = name.strip().removeprefix("$")
        if not name or not equals:
            raise typer.BadParameter(
                f"`{text}` is not of the form NAME=VALUE, as in `--param src=1`",
                param_hint="--param",
            )
        if name in found:
            raise typer.BadParameter(f"`{name}` has two values", param_hint="--param")
        found[name] = value
    return found


def bound_query(query: Query, texts: Mapping[str, str], relations: Relations) -> Query:
    """The query with its parameters replaced by what is written for them."""
    return bind_parameters(query, read_parameters(query, texts, relations), relations)


def checked_queries(
    texts: Sequence[str], values: Mapping[str, str], relations: Relations
) -> list[Query]:
    """All queries, bound and checked, or the problems of all of them.

    Each query takes the values of its own parameters; one that no query has is reported with the
    first.
    """
    asked: list[Query] = []
    problems: list[Diagnostic] = []
    parsed: list[Query] = []
    for text in texts:
        try:
            parsed.append(parse_query(text))
        except ProgramError as error:
            problems += error.diagnostics
    used = {name for query in parsed for name in query_parameters(query)}
    for number, query in enumerate(parsed):
        own = query_parameters(query).keys() | (values.keys() - used if number == 0 else set())
        try:
            given = {name: value for name, value in values.items() if name in own}
            bound = bound_query(query, given, relations)
            check_query(bound, relations)
            asked.append(bound)
        except ProgramError as error:
            problems += error.diagnostics
    raise_if_any(problems)
    return asked
