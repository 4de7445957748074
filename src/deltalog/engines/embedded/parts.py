"""Parts and sequences of parts as the kernels run them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalog.engines.base import RunResult
from deltalog.engines.embedded.kernels import fixpoint, layout
from deltalog.engines.embedded.relation import EmbeddedRelation
from deltalog.engines.interpreter import DeletionPart, RulesPart

if TYPE_CHECKING:
    from deltalog.engines.embedded.engine import EmbeddedEngine


@dataclass
class EmbeddedPart(RulesPart):
    """Rules, translated where the kernels can run them; `where` is -1 for the others."""

    code: array[int] = field(default_factory=lambda: array("q"))
    where: list[int] = field(default_factory=list)
    groups: list[EmbeddedRelation] = field(default_factory=list)

    @property
    def address(self) -> int:
        return self.code.buffer_info()[0]

    @property
    def is_translated(self) -> bool:
        return -1 not in self.where

    @property
    def heads(self) -> list[str]:
        return list(dict.fromkeys(plan.head for plan in self.plans))

    def rewind(self) -> None:
        super().rewind()
        if self.code:
            fixpoint.rewind_part(self.address)


@dataclass
class EmbeddedDeletion(DeletionPart):
    """A ranked deletion, translated if the kernels can run it."""

    code: array[int] = field(default_factory=lambda: array("q"))

    @property
    def address(self) -> int:
        return self.code.buffer_info()[0]

    @property
    def is_translated(self) -> bool:
        return len(self.code) > 0

    @property
    def heads(self) -> tuple[str, ...]:
        return (*self.plan.deleted, *self.plan.doubtful)

    def rewind(self) -> None:
        super().rewind()
        if self.code:
            fixpoint.rewind_part(self.address)


class EmbeddedSequence:
    """Parts that the kernels run to their fixpoint by themselves."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        parts: Sequence[EmbeddedPart | EmbeddedDeletion],
        is_soft: bool,
        may_abort: bool,
    ) -> None:
        self.engine = engine
        self.parts = parts
        addresses = [part.address for part in parts]
        self.code = array("q", [len(parts), int(is_soft), 0, int(may_abort), *addresses])
        self.address = self.code.buffer_info()[0]
        heads = dict.fromkeys(head for part in parts for head in part.heads)
        self.heads = [(name, engine.relations[name].line) for name in heads]

    def run(
        self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int
    ) -> RunResult:
        engine = self.engine
        engine.publish_texts()
        status = fixpoint.run_alone(
            engine.machine_address, self.address, rounds, rounds_max, facts, facts_max, until
        )
        if engine.machine[layout.HOT]:
            engine.specialise()
        made = {name: line[layout.MADE] for name, line in self.heads if line[layout.MADE]}
        for _, line in self.heads:
            line[layout.MADE] = 0
        return engine.result(status, engine.machine[layout.FACTS] - facts, lambda: made, self)

    @property
    def growing(self) -> tuple[str, ...]:
        return tuple(name for name, line in self.heads if line[layout.LAST])

    def rewind(self) -> None:
        fixpoint.rewind_sequence(self.address)
