"""Open a database whose base relations, or some of them, are at sources elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deltalog.analysis.columns import Relations
from deltalog.checks.program import check_program
from deltalog.diagnostics import source_catalogue as catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.external.engine import ExternalEngine
from deltalog.engines.external.source import Source
from deltalog.language.ast import Program
from deltalog.language.parser import parse_program
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options, make_model
from deltalog.runtime.protocols import Facts, Participant
from deltalog.runtime.read_program import read_program
from deltalog.runtime.sourced_database import SourcedDatabase
from deltalog.sources.delta_table import DeltaLakeTable
from deltalog.sources.parquet_files import ParquetFiles
from deltalog.sources.postgres_table import PostgresTable
from deltalog.sources.sqlite_table import SqliteTable

KINDS = (DeltaLakeTable, ParquetFiles, PostgresTable, SqliteTable)


def open_with_sources(
    program: str | Path | Program,
    sources: Mapping[str, Any],
    options: Options,
    limits: Limits,
    watch: Watch | None,
    facts: Facts,
    participants: tuple[Participant, ...] = (),
) -> SourcedDatabase:
    """Check the program, connect to the sources, and compute the stored views."""
    parsed = program if isinstance(program, Program) else parse_program(read_program(program))
    model = make_model(check_program(parsed), options)
    bound = _bind_sources(sources, model.checked.relations)
    engine = ExternalEngine(bound)
    try:
        return SourcedDatabase(model, engine, limits, watch, facts, participants)
    except BaseException:
        engine.disconnect()
        raise


def _bind_sources(sources: Mapping[str, Any], relations: Relations) -> dict[str, list[Source]]:
    if not isinstance(sources, Mapping):
        raise _source_misfit(str(sources), "sources are a mapping from relations to tables")
    made: dict[str, list[Source]] = {}
    try:
        for name, described in sources.items():
            made[name] = []
            for each in _check_tables(name, described, relations):
                made[name].append(each.bind(relations[name]))
    except BaseException:
        for source in (source for several in made.values() for source in several):
            source.disconnect()
        raise
    return made


def _check_tables(name: str, described: Any, relations: Relations) -> Sequence[Any]:
    """The tables of a relation, or an error that says why it cannot have them."""
    if name not in relations:
        raise _source_misfit(name, "there is no such relation", did_you_mean(str(name), relations))
    if relations[name].kind != "base" or not relations[name].is_declared:
        raise _source_misfit(name, "it is not a declared base relation")
    if not relations[name].arity:
        raise _source_misfit(name, "it has no columns")
    several = list(described) if isinstance(described, list | tuple) else [described]
    for each in several:
        if not isinstance(each, KINDS):
            raise _source_misfit(name, f"{each!r:.80} is not a table")
    if not several:
        raise _source_misfit(name, "the list is empty")
    return several


def _source_misfit(name: str, reason: str, hint: str | None = None) -> DataError:
    return DataError([catalogue.NOT_A_SOURCE.at(None, name=name, reason=reason, hint=hint)])
