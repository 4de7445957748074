"""A step of a run: one commit."""

from __future__ import annotations

from dataclasses import dataclass

from deltalog.pipeline.deltas import Delta
from deltalog.pipeline.log import Batch
from deltalog.pipeline.metrics import UNMEASURED, Metrics
from deltalog.pipeline.rejected import Refused


@dataclass(frozen=True)
class Step:
    """One commit of a run: the batches it took, what changed, and what was not taken."""

    batches: tuple[Batch, ...]
    delta: Delta
    refused: Refused = ()
    is_refused: bool = False  # the batch as a whole
    sinks: tuple[str, ...] = ()
    metrics: Metrics = UNMEASURED
