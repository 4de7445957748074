"""The embedded engine: relations of 64-bit words, rules as integer programs, kernels by numba.

Whatever the kernels cannot do (functions of text, decimals, aggregates) the interpreter does on the
same relations, so the meaning is that of the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deltalog.engines.base import Part
from deltalog.engines.embedded import kernel
from deltalog.engines.embedded.codec import Codec
from deltalog.engines.embedded.pipeline import run_pipeline
from deltalog.engines.embedded.program import Translation, UntranslatableError
from deltalog.engines.embedded.relation import EmbeddedRelation
from deltalog.engines.interpreter import DeletionPart, Interpreter, RulesPart
from deltalog.language.ast import Row
from deltalog.plan.nodes import RankedDeletion, RulePlan

NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Translated:
    """A rule's pipelines as addresses in the part's code."""

    head: int
    initial: int
    variants: tuple[int, ...]
    occurrences: np.ndarray


@dataclass
class EmbeddedPart(RulesPart):
    """Rules, translated where the kernels can run them."""

    code: np.ndarray = field(default_factory=lambda: NOTHING)
    translated: list[Translated | None] = field(default_factory=list)
    marks: list[np.ndarray] = field(default_factory=list)

    def rewind(self) -> None:
        super().rewind()
        for marks in self.marks if hasattr(self, "marks") else ():
            marks[:] = 0


class EmbeddedEngine:
    name = "embedded"

    def __init__(self) -> None:
        self.codec = Codec()
        self.table = np.zeros((64, kernel.WIDTH), np.int64)
        self.relations: dict[str, EmbeddedRelation] = {}
        self.free: list[int] = []
        self.clock = np.zeros(1, np.int64)
        self.interpreter = Interpreter(self.relations)

    # --- relations

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        if relation in self.relations:
            return
        number = self.free.pop() if self.free else len(self.relations)
        if number >= len(self.table):
            self.table = np.vstack([self.table, np.zeros_like(self.table)])
            for known in self.relations.values():
                known.publish()
        self.relations[relation] = EmbeddedRelation(self, number, types)

    def drop(self, relation: str) -> None:
        known = self.relations.pop(relation, None)
        if known is not None:
            self.free.append(known.number)

    def clear(self, relation: str) -> None:
        self.relations[relation].clear()

    def size(self, relation: str) -> int:
        return len(self.relations[relation])

    def rows(self, relation: str) -> Iterator[Row]:
        return iter(self.relations[relation])

    def contains(self, relation: str, row: Row) -> bool:
        return row in self.relations[relation]

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        return self.relations[relation].insert(rows)

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        return self.relations[relation].remove(rows)

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        store = self.relations[relation]
        columns = tuple(sorted(key))
        values: Row = tuple(key[column] for column in columns)  # type: ignore[misc]
        return iter(store.matching(columns, values, 0, store.end))

    def history(self, relations: Sequence[str]) -> Iterator[tuple[str, Row]]:
        stamped = []
        for name in relations:
            store = self.relations[name]
            positions = store._live()
            ranks = store.stamps[positions].tolist()
            stamped += list(zip(ranks, [name] * len(ranks), store.decoded(positions), strict=True))
        return ((name, row) for _, name, row in sorted(stamped, key=lambda entry: entry[0]))

    # --- rounds

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        self.interpreter.checkpoint = checkpoint

    def prepare(self, plans: tuple[RulePlan, ...]) -> EmbeddedPart:
        part = EmbeddedPart(plans)
        translation = Translation(
            self.codec,
            lambda name: self.relations[name].number,
            lambda name, columns: self.relations[name].index(columns),
            lambda name: self.relations[name].arity,
        )
        for plan in plans:
            part.translated.append(self._translated(plan, translation))
            part.marks.append(np.zeros(len(plan.occurrences) + 1, np.int64))
        part.code = np.array(translation.code or [0], np.int64)
        return part

    def _translated(self, plan: RulePlan, translation: Translation) -> Translated | None:
        if plan.aggregation is not None:
            return None
        try:
            initial = -1 if plan.initial is None else translation.pipeline(plan.initial)
            variants = tuple(translation.pipeline(variant) for variant in plan.variants)
        except UntranslatableError:
            return None
        numbers = [self.relations[name].number for name in plan.occurrences]
        return Translated(
            self.relations[plan.head].number, initial, variants, np.array(numbers, np.int64)
        )

    def prepare_deletion(self, plan: RankedDeletion) -> DeletionPart:
        return DeletionPart(plan)

    def run_round(self, part: Part) -> dict[str, int]:
        if isinstance(part, DeletionPart):
            return self.interpreter.delete(part)
        assert isinstance(part, EmbeddedPart)
        ends = self.table[:, kernel.END].copy()
        heads = {plan.head for plan in part.plans}
        before = {head: self.size(head) for head in heads}
        derived: list[tuple[str, Row]] = []
        for number, plan in enumerate(part.plans):
            translated = part.translated[number]
            if translated is None:
                derived += [(plan.head, row) for row in self.interpreter.fire(plan, part, number)]
        for number, plan in enumerate(part.plans):
            translated = part.translated[number]
            if translated is not None:
                self._fire(plan, part, number, translated, ends)
        for head, row in derived:
            self.relations[head].add(row)
        return {head: new for head in heads if (new := self.size(head) - before[head])}

    def _fire(
        self,
        plan: RulePlan,
        part: EmbeddedPart,
        number: int,
        translated: Translated,
        ends: np.ndarray,
    ) -> None:
        marks = part.marks[number]
        if translated.initial >= 0 and not part.has_fired[number]:
            self._run(part.code, translated.initial, translated.head, plan.head, ends, marks)
        part.has_fired[number] = True
        for occurrence, variant in enumerate(translated.variants):
            if marks[occurrence] < ends[translated.occurrences[occurrence]]:
                self._run(part.code, variant, translated.head, plan.head, ends, marks)
        if len(translated.occurrences):
            marks[: len(translated.occurrences)] = ends[translated.occurrences]

    def _run(
        self,
        code: np.ndarray,
        address: int,
        head: int,
        head_name: str,
        ends: np.ndarray,
        marks: np.ndarray,
    ) -> None:
        while (
            run_pipeline(self.table, code, address, NOTHING, head, ends, marks, self.clock, 0, -1)
            == kernel.FULL
        ):
            self.relations[head_name].grow()
