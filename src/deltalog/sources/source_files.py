"""Sources as a file names them: for each base relation one table elsewhere, or several.

    [sources.edge]                    # or [[sources.edge]] for each of several
    kind = "sqlite"                   # `postgres`, `delta`, `parquet`
    path = "graph.sqlite"             # relative to this file
    table = "edge"

    [sources.weight]
    kind = "postgres"
    variable = "GRAPH_DATABASE"       # the environment variable with the connection string
    table = "weight"

There is no place for a credential: connection strings are in the environment only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deltalog.diagnostics import catalogue
from deltalog.diagnostics import source_catalogue as entries
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.sources.delta_table import DeltaLakeTable
from deltalog.sources.parquet_files import ParquetFiles
from deltalog.sources.postgres_table import PostgresTable
from deltalog.sources.sqlite_table import SqliteTable

KINDS: Mapping[str, tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]] = {
    "delta": (DeltaLakeTable, ("path",), ()),
    "parquet": (ParquetFiles, ("path", "changes"), ()),
    "postgres": (PostgresTable, ("variable", "table"), ("changes",)),
    "sqlite": (SqliteTable, ("path", "table"), ("changes",)),
}
"""For each kind the class, the settings that it needs, and those that it may have."""


def read_sources(path: Path) -> dict[str, list[Any]]:
    """The sources in a file, by relation; all problems of the file are raised together."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "it is not UTF-8 text").lower()
        raise DataError([catalogue.CANNOT_READ.at(None, name=path, reason=reason)]) from None
    except tomllib.TOMLDecodeError as error:
        reason = f"it is not TOML: {str(error).lower()}"
        raise DataError([catalogue.CANNOT_READ.at(None, name=path, reason=reason)]) from None
    problems = [
        _source_problem(str(path), f"there is no key `{key}`") for key in found if key != "sources"
    ]
    tables = found.get("sources")
    if not isinstance(tables, dict) or not tables:
        hint = 'as in `[sources.edge]`, `kind = "sqlite"`'
        raise DataError([*problems, _source_problem(str(path), "it has no sources", hint)])
    made: dict[str, list[Any]] = {}
    for relation, several in tables.items():
        for table in several if isinstance(several, list) else [several]:
            place = f"{path}, source of `{relation}`"
            made.setdefault(relation, []).extend(
                _source_of_table(place, table, path.parent, problems)
            )
    if problems:
        raise DataError(problems)
    return made


def _source_of_table(place: str, table: Any, folder: Path, problems: list[Diagnostic]) -> list[Any]:
    """The source of one table of the file; none if something is wrong with it."""
    before = len(problems)
    settings = dict(table) if isinstance(table, dict) else {}
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS) or f"a kind is one of {', '.join(sorted(KINDS))}"
        problems.append(_source_problem(place, "it needs a `kind`", hint))
        return []
    made, needed, optional = KINDS[kind]
    for name in needed:
        if name not in settings:
            problems.append(_source_problem(place, f"it needs `{name}`"))
    for name, value in settings.items():
        if name not in (*needed, *optional):
            nearest = did_you_mean(name, (*needed, *optional))
            problems.append(_source_problem(place, f"there is no setting `{name}`", nearest))
        elif not isinstance(value, str) or not value:
            problems.append(_source_problem(place, f"`{name}` is a text"))
    if len(problems) > before:
        return []
    is_file = kind == "parquet"
    placed = {
        name: _path_from_folder(folder, value)
        if name == "path" or (is_file and name == "changes")
        else value
        for name, value in settings.items()
    }
    return [made(**placed)]


def _path_from_folder(folder: Path, value: str) -> str:
    return value if "://" in value else str(folder / value)


def _source_problem(place: str, reason: str, hint: str | None = None) -> Diagnostic:
    return entries.BAD_SOURCES.at(None, place=place, reason=reason, hint=hint)
