"""Classify the rows of a batch: inserted, deleted or set, or rejected.

    c0  c1  op__  reason__           insert  edge  (1, 2)
    1   2   +     null        →      delete  edge  (3, 4)
    3   4   -     null               bad     edge  "`?` is not an operation …"
    5   6   ?     null

A row is bad if it does not fit its relation (`checked_frames.py`), has no known operation, is
inserted although another fact, which stays, has its key, or is set while another row of the batch
sets its key to other values. A small batch is classified on the
driver, a large one on the cluster, by columns and joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from deltalog.analysis.columns import Relation
from deltalog.engines.spark.columns import name_of
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import contents
from deltalog.language.ast import Row
from deltalog.language.values import plain
from deltalog.pipeline.checked_frames import (
    OP,
    REASON,
    ROW,
    Bad,
    CheckedFrame,
    arrow_facts,
    split_by_repeated_keys,
)
from deltalog.pipeline.checked_frames import split_by_taken_keys as split_frame_by_taken_keys
from deltalog.pipeline.table_database import TableDatabase
from deltalog.runtime.checked_rows import CheckedRows, key_conflicts, key_of
from deltalog.runtime.checked_rows import split_by_taken_keys as split_rows_by_taken_keys

OPS: Mapping[str, str] = {
    "+": "insert",
    "-": "delete",
    "insert": "insert",
    "delete": "delete",
    "set": "set",
}
KIND = "kind__"
REPEATED_KEY = "another row of this batch has the same key and different values"
Offered = tuple[Relation, DataFrame]
Facts = TypeVar("Facts", list[Row], CheckedFrame)


@dataclass
class Classified(Generic[Facts]):
    """Facts to delete, insert and set per relation; of bad rows the relation, reason and row."""

    delete: dict[str, Facts] = field(default_factory=dict)
    insert: dict[str, Facts] = field(default_factory=dict)
    set: dict[str, Facts] = field(default_factory=dict)
    bad: list[Bad] = field(default_factory=list)


def classify(database: TableDatabase, offered: Sequence[Offered]) -> Classified[Any]:
    """Classify the rows of offers that belong together."""
    most = database.engine.settings.driver_rows_max
    tables = [data.limit(most + 1).toArrow() for _, data in offered]
    if any(table.num_rows > most for table in tables):
        return _classified_frames(database, offered)
    named = [(relation, table) for (relation, _), table in zip(offered, tables, strict=True)]
    return _classified_rows(database, named)


# --- on the driver --------------------------------------------------------------------------------


def _classified_rows(
    database: TableDatabase, tables: Iterable[tuple[Relation, Any]]
) -> Classified[list[Row]]:
    found: Classified[list[Row]] = Classified()
    for relation, table in tables:
        rows = arrow_facts(relation, table)
        beside = (table.column(name).to_pylist() for name in (OP, REASON, ROW))
        for row, op, reason, text in zip(rows, *beside, strict=True):
            kind = OPS.get(str(op))
            if reason is None and kind is None:
                reason = _no_op(str(op))
            if reason is None and kind == "set" and not relation.key:
                reason = _no_key(relation)
            if reason is not None:
                found.bad.append((relation.name, reason, text))
            else:
                getattr(found, str(kind)).setdefault(relation.name, []).append(row)
    for name, inserted in found.insert.items():
        relation = database.relations[name]
        if relation.key:
            holders = _key_holders(database.engine, relation, inserted)
            deleted = found.delete.get(name, ())
            found.insert[name], refused = split_rows_by_taken_keys(
                relation, inserted, deleted, holders
            )
            found.bad += [(name, _taken_key(relation, each), _shown(row)) for row, each in refused]
    for name, put in found.set.items():
        repeated = key_conflicts(database.relations[name], put)
        found.bad += [(name, REPEATED_KEY, _shown(row)) for row in put if row in repeated]
        found.set[name] = [row for row in put if row not in repeated]
    for side in (found.delete, found.insert, found.set):
        side.update({n: CheckedRows(database.relations[n], rows) for n, rows in side.items()})
    return found


def _key_holders(engine: SparkEngine, relation: Relation, rows: Sequence[Row]) -> dict[Row, Row]:
    """The facts that have the keys of these rows, by key, fetched together."""
    positions = relation.key
    keys = [key_of(relation, row) for row in rows]
    engine.expect(relation.name, positions, keys)
    found = {
        key: next(engine.lookup(relation.name, dict(zip(positions, key, strict=True))), None)
        for key in keys
    }
    return {key: row for key, row in found.items() if row is not None}


def _taken_key(relation: Relation, holder: Row) -> str:
    return f"{relation.name}{_shown(holder)} already has this key"


def _shown(row: Row) -> str:
    return f"({', '.join(plain(value) for value in row)})"


def _no_op(op: str) -> str:
    return f"`{op}` is not an operation; use one of {' '.join(_OPERATIONS)}"


def _no_key(relation: Relation) -> str:
    return f"`{relation.name}` has no key, so `set` cannot replace anything"


_OPERATIONS = tuple(OPS)

# --- on the cluster -------------------------------------------------------------------------------


def _classified_frames(
    database: TableDatabase, offered: Iterable[Offered]
) -> Classified[CheckedFrame]:
    """Bad rows come to the driver, where they go to the quarantine from; the others do not."""
    parts: dict[tuple[str, str], list[DataFrame]] = {}
    found: Classified[CheckedFrame] = Classified()
    kinds = F.create_map(*(F.lit(word) for pair in OPS.items() for word in pair))
    for relation, data in offered:
        op = F.coalesce(F.col(OP).cast("string"), F.lit("None"))
        before, after = _no_op("\0").split("\0")
        reason = F.coalesce(
            F.col(REASON),
            F.when(kinds[op].isNull(), F.concat(F.lit(before), op, F.lit(after))),
            F.when((kinds[op] == "set") & F.lit(not relation.key), F.lit(_no_key(relation))),
        )
        marked = data.withColumn(KIND, kinds[op]).withColumn(REASON, reason).localCheckpoint()
        bad = marked.where(F.col(REASON).isNotNull()).select(REASON, ROW).collect()
        found.bad += [(relation.name, row[REASON], row[ROW]) for row in bad]
        for kind in ("delete", "insert", "set"):
            good = marked.where(F.col(REASON).isNull() & (F.col(KIND) == kind))
            columns = [name_of(i) for i in range(relation.arity)]
            parts.setdefault((kind, relation.name), []).append(good.select(*columns))
    frames = {each: reduce(DataFrame.unionAll, data).distinct() for each, data in parts.items()}
    for (kind, name), data in frames.items():
        if data.isEmpty():
            continue
        relation = database.relations[name]
        if kind != "delete" and relation.key:
            data, repeated = split_by_repeated_keys(relation, data)
            found.bad += [(name, REPEATED_KEY, _shown(row)) for row in repeated]
        if kind == "insert" and relation.key:
            stored = contents(database.spark, database.engine.relations[name])
            data, refused = split_frame_by_taken_keys(
                relation, data, frames["delete", name], stored
            )
            found.bad += [(name, _taken_key(relation, each), _shown(row)) for row, each in refused]
        getattr(found, kind)[name] = CheckedFrame(relation, data)
    return found
