"""The tables of a state as the program of a version has them: columns, types and places."""

from __future__ import annotations

import re
from functools import lru_cache

from deltalog.analysis.columns import Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.pipeline.checked_frames import engine_types
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import StoredTable
from deltalog.store.programs import stored_program

STORED = "tables/"
"""Where relations lie that are stored; others have only changes."""


def known_table(state: State, relation: str, version: int | None = None) -> StoredTable:
    """The table of a relation under the program of a version, or of the last commit."""
    found = table_at(state, relation, version)
    if found is None:
        relations = _relations_of_program(_program_at(state, version))
        hint = did_you_mean(str(relation), relations)
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation, hint=hint)])
    return found


def table_at(state: State, relation: str, version: int | None = None) -> StoredTable | None:
    """The same, or None if that program does not have the relation."""
    text = _program_at(state, version)
    known = _relations_of_program(text).get(relation)
    if known is None:
        return None
    columns = tuple(column.name for column in known.columns)
    kept = kept_relations(text)
    is_ranked = kept.get(relation, False)
    room = STORED if relation in kept else "changes/"
    types = engine_types(known)
    return state.table(f"{room}{relation}", columns, types, is_ranked)


def kept_relations(text: str) -> dict[str, bool]:
    """The relations that a program of a state stores, and whether each has ranks."""
    listed = re.findall(r"^% kept: (.*)$", text, re.MULTILINE)[-1].split()
    return {name.removesuffix("*"): name.endswith("*") for name in listed}


@lru_cache(maxsize=64)
def _relations_of_program(text: str) -> Relations:
    return stored_program(text).relations


def is_stored(table: StoredTable) -> bool:
    return table.relative.startswith(STORED)


def check_version(state: State, version: int) -> None:
    """Raise unless the log leads back to a version."""
    first, last = state.first, state.last.version
    if not first <= version <= last:
        words = {"version": str(version), "first": str(first), "last": str(last)}
        raise DataError([catalogue.NO_SUCH_VERSION.at(None, name=state.location.name, **words)])


def _program_at(state: State, version: int | None) -> str:
    return state.program if version is None else state.program_at(version)
