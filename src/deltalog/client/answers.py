"""Records of what a service returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

JsonRows = Mapping[str, Sequence[tuple[Any, ...]]]


@dataclass(frozen=True)
class Committed:
    """An accepted transaction; whoever may read nothing learns no version and no offset.

    `inserted` and `deleted` are facts by relation, as JSON has them, if views were asked for.
    """

    version: int | None
    offset: str | None
    is_repeated: bool
    inserted: JsonRows
    deleted: JsonRows
    is_complete: bool = True
    warnings: Sequence[Mapping[str, Any]] = ()
    """Violations of constraints that only warn."""


@dataclass(frozen=True)
class Tried:
    """The exact change that a transaction would make, and the violations that would refuse it."""

    version: int | None
    inserted: JsonRows
    deleted: JsonRows
    violations: Sequence[Mapping[str, Any]]
    is_complete: bool = True


def read_committed(document: Mapping[str, Any]) -> Committed:
    inserted, deleted = sides_of_delta(document.get("delta"))
    return Committed(
        document["version"],
        document["offset"],
        document["is_repeated"],
        inserted,
        deleted,
        document["is_complete"],
        document.get("warnings", ()),
    )


def read_tried(document: Mapping[str, Any]) -> Tried:
    inserted, deleted = sides_of_delta(document["delta"])
    return Tried(
        document["version"], inserted, deleted, document["violations"], document["is_complete"]
    )


def sides_of_delta(delta: Mapping[str, Any] | None) -> tuple[JsonRows, JsonRows]:
    if delta is None:
        return {}, {}
    return _rows_as_tuples(delta["inserted"]), _rows_as_tuples(delta["deleted"])


def _rows_as_tuples(facts: Mapping[str, Any]) -> JsonRows:
    return {name: [tuple(row) for row in rows] for name, rows in facts.items()}
