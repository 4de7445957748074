"""Parts as the Spark engine prepares them."""

from __future__ import annotations

from dataclasses import dataclass

from deltalog.engines.interpreter import DeletionPart, RulesPart
from deltalog.plan.pivots import Pivot


@dataclass
class SparkPart(RulesPart):
    """Rules, and the pivot of their recursion if they have one.

    If they are `is_soft`, parts below may have to run between two rounds. Once they were found to
    derive more than the driver should hold, they are `is_large` until the next run.
    """

    pivot: Pivot | None = None
    is_soft: bool = False
    is_large: bool = False

    def rewind(self) -> None:
        super().rewind()
        self.is_large = False


@dataclass
class SparkDeletion(DeletionPart):
    """A ranked deletion; with `may_abort` it may end in an `AbortedError`."""

    may_abort: bool = False
