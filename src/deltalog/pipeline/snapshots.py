"""The difference between a snapshot and what its relation holds.

Few rows are compared on the driver, without a job; many by joins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from deltalog.engines.spark.columns import name_of
from deltalog.engines.spark.frames import rows_without
from deltalog.pipeline.checked_frames import CheckedFrame, fitting_rows
from deltalog.pipeline.classify import classify_offers
from deltalog.pipeline.offers import Offer, offer_bad_rows, offer_frame
from deltalog.pipeline.rejected import Rejected
from deltalog.pipeline.table_database import TableDatabase
from deltalog.pipeline.text_files import TextRow
from deltalog.runtime.checked_rows import CheckedRows


class Difference(NamedTuple):
    """The facts that a snapshot has and its relation has not, and conversely; and bad rows."""

    inserted: CheckedRows | CheckedFrame
    deleted: CheckedRows | CheckedFrame
    bad: list[Rejected]


def compare_snapshot(database: TableDatabase, offer: Offer) -> Difference:
    """Compare all rows of a source with its relation."""
    most = database.engine.settings.driver_rows_max
    if isinstance(offer.data, list) and database.engine.size(offer.relation.name) <= most:
        return _compared_rows(database, offer, offer.data)
    return _compared_frames(database, offer)


def _compared_rows(database: TableDatabase, offer: Offer, rows: list[TextRow]) -> Difference:
    relation = offer.relation
    op = "set" if relation.key else "insert"
    found = classify_offers(database, [replace(offer, data=[row._replace(op=op) for row in rows])])
    good = set(getattr(found, op).get(relation.name, ()))
    held = database.facts(relation.name)
    inserted, deleted = (CheckedRows(relation, each) for each in (good - held, held - good))
    return Difference(inserted, deleted, found.bad)


def _compared_frames(database: TableDatabase, offer: Offer) -> Difference:
    relation = offer.relation
    data = offer_frame(database.spark, offer)
    bad = offer_bad_rows(offer, data)
    good = fitting_rows(data, relation).distinct()
    held = database.frame(relation.name).toDF(*(name_of(i) for i in range(relation.arity)))
    inserted = CheckedFrame(relation, rows_without(good, held, relation.arity))
    deleted = CheckedFrame(relation, rows_without(held, good, relation.arity))
    return Difference(inserted, deleted, bad)
