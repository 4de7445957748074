"""Offers: batches of sources whose rows are checked, on the driver or as frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from deltalog.analysis.columns import Relation
from deltalog.pipeline.checked_frames import bad_rows
from deltalog.pipeline.log import Batch
from deltalog.pipeline.project import Source
from deltalog.pipeline.rejected import Rejected
from deltalog.pipeline.text_files import TextRow
from deltalog.pipeline.text_frames import rows_frame

Data = DataFrame | list[TextRow]
"""Checked rows: few on the driver, or a frame with `op__` if they are changes."""


@dataclass(frozen=True)
class Offer:
    """A batch of a source: checked rows, with their operations if they are changes."""

    source: Source
    relation: Relation
    name: str
    data: Data

    @property
    def batch(self) -> Batch:
        return self.source.name, self.name


def offer_frame(spark: SparkSession, offer: Offer) -> DataFrame:
    """The rows of an offer as a frame."""
    if isinstance(offer.data, list):
        return rows_frame(spark, offer.relation, offer.data)
    return offer.data


def offer_bad_rows(offer: Offer, data: DataFrame) -> list[Rejected]:
    """The rows of an offer's frame that do not fit."""
    found = bad_rows(data, offer.relation)
    return [each._replace(source=offer.source.name, batch=offer.name) for each in found]


def mark_inserted(data: Data) -> list[TextRow]:
    """Rows of the driver that are all inserted."""
    assert isinstance(data, list)
    return [row._replace(op="+") for row in data]


def taken_batches(offers: Iterable[Offer]) -> tuple[Batch, ...]:
    """The batches of offers; a snapshot is none, since its next one is compared anew."""
    return tuple(offer.batch for offer in offers if offer.source.kind != "snapshot")


def refused_with(offers: Iterable[Offer], bad: Iterable[Rejected]) -> Iterator[Rejected]:
    """Batches without bad rows that are refused because of others of the same transaction."""
    named = {(each.source, each.batch) for each in bad}
    for offer in offers:
        if offer.batch not in named:
            reason, relation = "a file of the same transaction was refused", offer.relation.name
            yield Rejected(relation, reason, '""', source=offer.source.name, batch=offer.name)
