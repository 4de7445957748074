"""The quarantine: rows that were not taken from sources, as the log has them."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from deltalog.pipeline.rejected import Rejected
from deltalog.pipeline.state import State

QUARANTINE = (
    "id STRING, at TIMESTAMP, source STRING, batch STRING, file STRING, line LONG, "
    "relation STRING, op STRING, reason STRING, row STRING, is_whole BOOLEAN"
)
MENDED = "mended "
"""With the name of a source, the source of a row or batch that was taken back in."""


class Quarantined(NamedTuple):
    """A row in quarantine; its `id` follows from where it was written and what it is."""

    id: str
    at: datetime
    source: str
    batch: str
    file: str | None
    line: int | None
    relation: str
    op: str | None
    reason: str
    row: str
    is_whole: bool


def quarantined_rows(state: State) -> list[Quarantined]:
    """The rows that have not been taken back in, oldest first."""
    found = (_identify_row(at, each) for at, each in state.log.refused())
    return [
        each
        for each in {each.id: each for each in found}.values()
        if (MENDED + each.source, each.batch if each.is_whole else each.id) not in state.batches
    ]


def _identify_row(at: datetime, row: Rejected) -> Quarantined:
    origin = "\0".join(map(str, (row.source, row.batch, row.file, row.line, row.op, row.row)))
    identity = hashlib.sha256(origin.encode()).hexdigest()[:12]
    return Quarantined(
        identity,
        at,
        row.source,
        row.batch,
        row.file,
        row.line,
        row.relation,
        row.op,
        row.reason,
        row.row,
        row.is_whole,
    )
