"""Classify the rows of a batch: inserted, deleted or set, or rejected.

    c0  c1  op__  reason__           insert  edge  (1, 2)
    1   2   +     null        →      delete  edge  (3, 4)
    3   4   -     null               bad     edge  "`?` is not an operation …"
    5   6   ?     null

A row is bad if it does not fit its relation (`text_files.py`, `checked_frames.py`), has no known
operation, is inserted although another fact, which stays, has its key, or is set while another row
of the batch sets its key to other values. A deletion by key deletes the fact that has it. A small
batch is classified on the driver, a large one on the cluster, by columns and joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.engines.spark.columns import frame_of_rows, name_of
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.frames import relation_frame, rows_matching
from deltalog.language.ast import Row
from deltalog.language.values import plain_text
from deltalog.pipeline.checked_frames import (
    FILE,
    LINE,
    OP,
    REASON,
    ROW,
    CheckedFrame,
    arrow_facts,
    engine_types,
    rejected_row,
    split_by_repeated_keys,
)
from deltalog.pipeline.checked_frames import split_by_taken_keys as split_frame_by_taken_keys
from deltalog.pipeline.offers import Offer, offer_frame
from deltalog.pipeline.rejected import Rejected
from deltalog.pipeline.table_database import TableDatabase
from deltalog.pipeline.text_files import DELETE_KEY, TextRow, json_text
from deltalog.pipeline.text_frames import UNREADABLE
from deltalog.runtime.checked_rows import CheckedRows, key_conflicts, key_of
from deltalog.runtime.checked_rows import split_by_taken_keys as split_rows_by_taken_keys

OPS: Mapping[str, str] = {
    "+": "insert",
    "-": "delete",
    "insert": "insert",
    "delete": "delete",
    "set": "set",
}
_KINDS = {**OPS, DELETE_KEY: DELETE_KEY}
KIND = "kind__"
REPEATED_KEY = "another row of this batch has the same key and different values"
Facts = TypeVar("Facts", list[Row], CheckedFrame)


@dataclass
class Classified(Generic[Facts]):
    """Facts to delete, insert and set per relation, and the rows that are rejected."""

    delete: dict[str, Facts] = field(default_factory=dict)
    insert: dict[str, Facts] = field(default_factory=dict)
    set: dict[str, Facts] = field(default_factory=dict)
    bad: list[Rejected] = field(default_factory=list)


def classify_offers(database: TableDatabase, offers: Sequence[Offer]) -> Classified[Any]:
    """Classify the rows of offers that belong together."""
    most = database.engine.settings.driver_rows_max
    rows = [driver_rows(offer, most) for offer in offers]
    few = [(offer, each) for offer, each in zip(offers, rows, strict=True) if each is not None]
    found: Classified[Any]
    if len(few) == len(offers):
        found = _Rows(database).classified(few)
    else:
        found = _Frames(database).classified(offers)
    found.bad.sort(key=lambda each: (each.source, each.file or "", each.line or 0))
    return found


def driver_rows(offer: Offer, most: int) -> list[TextRow] | None:
    """The rows of an offer, or None if they are too many."""
    if isinstance(offer.data, list):
        return offer.data
    table = offer.data.limit(most + 1).toArrow()
    if table.num_rows > most:
        return None
    facts = arrow_facts(offer.relation, table)
    beside = [table.column(name).to_pylist() for name in (FILE, LINE, OP, REASON, ROW)]
    return [
        TextRow(file, line, op, None if reason else row, reason, text)
        for row, file, line, op, reason, text in zip(facts, *beside, strict=True)
    ]


def _format_row(row: Row) -> str:
    return f"({', '.join(plain_text(value) for value in row)})"


def _taken_key(relation: Relation, holder: Row) -> str:
    return f"{relation.name}{_format_row(holder)} already has this key"


def _no_op(op: str) -> str:
    return f"`{op}` is not an operation; use one of {' '.join(OPS)}"


_OP_IS_MISSING = f"there is no operation; use one of {' '.join(OPS)}"


def _no_key(relation: Relation) -> str:
    return f"`{relation.name}` has no key, so `set` cannot replace anything"


# --- on the driver --------------------------------------------------------------------------------


class _Rows:
    """Classifies rows of the driver, and knows where each was written."""

    def __init__(self, database: TableDatabase) -> None:
        self._database = database
        self._found: Classified[list[Row]] = Classified()
        self._origins: dict[tuple[str, str, Row], list[tuple[Offer, TextRow]]] = {}

    def classified(self, offers: Iterable[tuple[Offer, list[TextRow]]]) -> Classified[list[Row]]:
        by_key: dict[str, list[Row]] = {}
        for offer, rows in offers:
            for row in rows:
                self._sort_row(offer, row, by_key)
        for name, keys in by_key.items():
            holders = _key_holders(self._database.engine, self._database.relations[name], keys)
            self._found.delete.setdefault(name, []).extend(holders.values())
        self._split_taken_keys()
        self._split_repeated_keys()
        found = self._found
        for side in (found.delete, found.insert, found.set):
            relations = self._database.relations
            side.update({n: CheckedRows(relations[n], rows) for n, rows in side.items()})
        return found

    def _sort_row(self, offer: Offer, row: TextRow, by_key: dict[str, list[Row]]) -> None:
        relation = offer.relation
        kind = _KINDS.get(str(row.op))
        reason = row.reason
        if reason is None and kind is None:
            reason = _no_op(row.op) if row.op else _OP_IS_MISSING
        if reason is None and kind == "set" and not relation.key:
            reason = _no_key(relation)
        if reason is not None or row.row is None:
            self._found.bad.append(_reject_text_row(offer, row, str(reason)))
        elif kind == DELETE_KEY:
            by_key.setdefault(relation.name, []).append(row.row)
        else:
            getattr(self._found, str(kind)).setdefault(relation.name, []).append(row.row)
            if kind != "delete" and relation.key:
                origin = str(kind), relation.name, row.row
                self._origins.setdefault(origin, []).append((offer, row))

    def _reject_facts(self, kind: str, name: str, row: Row, reason: str) -> None:
        for offer, written in self._origins.pop((kind, name, row), ()):
            self._found.bad.append(_reject_text_row(offer, written, reason))

    def _split_taken_keys(self) -> None:
        found = self._found
        for name, inserted in found.insert.items():
            relation = self._database.relations[name]
            if relation.key:
                holders = _key_holders(self._database.engine, relation, inserted)
                deleted = found.delete.get(name, ())
                found.insert[name], refused = split_rows_by_taken_keys(
                    relation, inserted, deleted, holders
                )
                for row, holder in refused:
                    self._reject_facts("insert", name, row, _taken_key(relation, holder))

    def _split_repeated_keys(self) -> None:
        for name, put in self._found.set.items():
            repeated = key_conflicts(self._database.relations[name], put)
            for row in [each for each in put if each in repeated]:
                self._reject_facts("set", name, row, REPEATED_KEY)
            self._found.set[name] = [row for row in put if row not in repeated]


def _reject_text_row(offer: Offer, row: TextRow, reason: str) -> Rejected:
    relation = offer.relation
    if isinstance(offer.data, list):
        text = row.text
    else:
        text = str(row.values or _row_text(relation, row.row or ()))
    op = "delete" if row.op == DELETE_KEY else row.op
    return Rejected(relation.name, reason, text, op, row.file, row.line, *offer.batch)


def _row_text(relation: Relation, row: Row) -> str:
    return json_text({c.name: value for c, value in zip(relation.columns, row, strict=True)})


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


# --- on the cluster -------------------------------------------------------------------------------


class _Frames:
    """Classifies frames by columns and joins; only bad rows come to the driver."""

    def __init__(self, database: TableDatabase) -> None:
        self._database = database
        self._found: Classified[CheckedFrame] = Classified()
        self._marked: list[tuple[Offer, DataFrame]] = []

    def classified(self, offers: Iterable[Offer]) -> Classified[CheckedFrame]:
        self._marked = [(offer, self._mark_rows(offer)) for offer in offers]
        for offer, marked in self._marked:
            bad = marked.where(F.col(REASON).isNotNull()).collect()
            self._found.bad += [self._rejected_row(offer, row) for row in bad]
        names = sorted({offer.relation.name for offer, _ in self._marked})
        for name in names:
            self._split_relation(self._database.relations[name])
        return self._found

    def _mark_rows(self, offer: Offer) -> DataFrame:
        relation = offer.relation
        data = offer_frame(self._database.spark, offer)
        kinds = F.create_map(*(F.lit(word) for pair in _KINDS.items() for word in pair))
        op = F.coalesce(F.col(OP).cast("string"), F.lit(""))
        before, after = _no_op("\0").split("\0")
        reason = F.coalesce(
            F.col(REASON),
            F.when(op == "", F.lit(_OP_IS_MISSING)),
            F.when(kinds[op].isNull(), F.concat(F.lit(before), op, F.lit(after))),
            F.when((kinds[op] == "set") & F.lit(not relation.key), F.lit(_no_key(relation))),
        )
        return data.withColumn(KIND, kinds[op]).withColumn(REASON, reason).localCheckpoint()

    def _rejected_row(self, offer: Offer, row: Any) -> Rejected:
        found = rejected_row(offer.relation, row)
        if found.op == UNREADABLE and found.line == 0:
            raise DataError([Diagnostic(catalogue.CANNOT_READ.code, found.reason)])
        return found._replace(source=offer.source.name, batch=offer.name)

    def _split_relation(self, relation: Relation) -> None:
        """Facts of one relation, by what is done with them."""
        name, arity = relation.name, relation.arity
        deleted, inserted, put = (self._of_kind(relation, k) for k in ("delete", "insert", "set"))
        by_key = self._of_kind(relation, DELETE_KEY)
        if relation.key:
            stored = relation_frame(self._database.spark, self._database.engine.relations[name])
            if not by_key.isEmpty():
                deleted = deleted.unionAll(rows_matching(stored, by_key, relation.key)).distinct()
            put = self._without_repeated(relation, "set", put)
            inserted = self._without_repeated(relation, "insert", inserted)
            inserted, refused = split_frame_by_taken_keys(relation, inserted, deleted, stored)
            reasons = {row: _taken_key(relation, holder) for row, holder in refused}
            self._reject_facts(relation, "insert", reasons)
        sides = (
            (self._found.delete, deleted),
            (self._found.insert, inserted),
            (self._found.set, put),
        )
        for side, data in sides:
            if not data.isEmpty():
                side[name] = CheckedFrame(relation, data.select(*map(name_of, range(arity))))

    def _of_kind(self, relation: Relation, kind: str) -> DataFrame:
        columns = [name_of(i) for i in range(relation.arity)]
        is_good = F.col(REASON).isNull() & (F.col(KIND) == kind)
        parts = [
            marked.where(is_good).select(*columns)
            for offer, marked in self._marked
            if offer.relation.name == relation.name
        ]
        return reduce(DataFrame.unionAll, parts).distinct()

    def _without_repeated(self, relation: Relation, kind: str, data: DataFrame) -> DataFrame:
        if data.isEmpty():
            return data
        kept, repeated = split_by_repeated_keys(relation, data)
        self._reject_facts(relation, kind, dict.fromkeys(repeated, REPEATED_KEY))
        return kept

    def _reject_facts(self, relation: Relation, kind: str, reasons: Mapping[Row, str]) -> None:
        """Reject facts, with where each was written."""
        if not reasons:
            return
        rows = frame_of_rows(self._database.spark, list(reasons), engine_types(relation))
        for offer, marked in self._marked:
            if offer.relation.name == relation.name:
                own = marked.where(F.col(REASON).isNull() & (F.col(KIND) == kind))
                table = rows_matching(own, rows, tuple(range(relation.arity))).toArrow()
                beside = (table.column(each).to_pylist() for each in (OP, FILE, LINE, ROW))
                facts = arrow_facts(relation, table)
                for row, op, file, line, text in zip(facts, *beside, strict=True):
                    shown = text or _row_text(relation, row)
                    self._found.bad.append(
                        Rejected(relation.name, reasons[row], shown, op, file, line, *offer.batch)
                    )
