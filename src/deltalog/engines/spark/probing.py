"""The interpreter on relations whose rows may not be on the driver yet.

It runs a rule as if everything were known. A lookup that is not is noted in `Needs`, and that way
through the rule ends there. If anything was noted, what came out is worth nothing: fetch, and run
again. Each run gets at least one step further, so a rule costs at most as many jobs as it has
steps that read the cluster, whatever the number of rows; and rules of a round share them.

Correct because a run that notes nothing has seen only true answers, and is then a run of the
reference interpreter.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from deltalog.engines.interpreter import Interpreter, Slots
from deltalog.engines.spark.relation import Needs, SparkRelation
from deltalog.language.ast import Row
from deltalog.plan.nodes import Absent, Pipeline


class ProbingInterpreter(Interpreter):
    """Where an answer is not known, it takes the one that leads nowhere."""

    def __init__(self, relations: MutableMapping[str, SparkRelation], needs: Needs) -> None:
        super().__init__(relations)
        self.needs = needs

    def _has_match(self, step: Absent, slots: Slots) -> bool:
        before = self.needs.misses
        return super()._has_match(step, slots) or self.needs.misses > before

    def _is_supported(self, pipelines: tuple[Pipeline, ...], row: Row, rank: int) -> bool:
        before = self.needs.misses
        return super()._is_supported(pipelines, row, rank) or self.needs.misses > before
