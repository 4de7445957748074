"""The meaning of the language: Python lists and dictionaries, slow and obvious.

Every other engine and every strategy must give what this one gives.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter

from deltalog.engines.base import Capabilities, Part
from deltalog.engines.interpreter import DeletionPart, Interpreter, RulesPart
from deltalog.engines.relation import Clock, Relation
from deltalog.engines.stepped_sequence import SteppedSequence
from deltalog.engines.stepped_wave import SteppedWave
from deltalog.language.ast import Row
from deltalog.plan.nodes import RankedDeletion, RulePlan


class ReferenceEngine:
    name = "reference"
    capabilities = Capabilities(fact_bytes=512, has_samples=True, has_ranks=True)

    def __init__(self) -> None:
        self.relations: dict[str, Relation] = {}
        self._clock = Clock()
        self.interpreter = Interpreter(self.relations)

    def fresh(self) -> ReferenceEngine:
        return ReferenceEngine()

    # --- relations

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        self.relations.setdefault(relation, Relation(self._clock))

    def drop(self, relation: str) -> None:
        self.relations.pop(relation, None)

    def clear(self, relation: str) -> None:
        self.relations[relation].clear()

    def clear_all(self, relations: tuple[str, ...]) -> None:
        for relation in relations:
            self.clear(relation)

    def size(self, relation: str) -> int:
        return len(self.relations[relation])

    def rows(self, relation: str) -> Iterator[Row]:
        return iter(self.relations[relation])

    def sample(self, relation: str, count: int) -> Iterable[Row]:
        rows = list(self.relations.get(relation, ()))
        return random.Random(0).sample(rows, count) if len(rows) >= count else ()

    def copied(self, relation: str) -> frozenset[Row]:
        return frozenset(self.relations[relation])

    def present(self, relation: str, rows: Collection[Row]) -> list[bool]:
        store = self.relations[relation]
        return [row in store for row in rows]

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        store = self.relations[relation]
        return sum(store.add(row) for row in rows)

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        store = self.relations[relation]
        count = sum(store.remove(row) for row in rows)
        store.compact()
        return count

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        store = self.relations[relation]
        columns = tuple(sorted(key))
        values: Row = tuple(key[column] for column in columns)  # type: ignore[misc]
        return iter(store.matching(columns, values, 0, store.end))

    def history(self, relations: Collection[str]) -> Iterator[tuple[str, Row]]:
        stamped = [
            (self.relations[name].rank(row), name, row)
            for name in relations
            for row in self.rows(name)
        ]
        return ((name, row) for _, name, row in sorted(stamped, key=lambda entry: entry[0]))

    @property
    def clock(self) -> int:
        return self._clock.now

    def ranks(self, relation: str, rows: Collection[Row]) -> list[int]:
        store = self.relations[relation]
        return [store.rank(row) for row in rows]

    def ranked(self, relation: str) -> Iterator[tuple[int, Row]]:
        store = self.relations[relation]
        return iter(sorted(((store.rank(row), row) for row in store), key=itemgetter(0)))

    def load(self, relation: str, ranked: Collection[Row]) -> int:
        store, ahead = self.relations[relation], self._clock.now
        count = sum(store.load(int(rank), tuple(row)) for rank, *row in ranked)  # type: ignore[arg-type]
        self._clock.now = max(self._clock.now, ahead)
        return count

    def move(self, changes: tuple[tuple[str, str, str], ...]) -> None:
        for stored, deleted, _ in changes:
            self.delete(stored, list(self.rows(deleted)))
        owner = {inserted: stored for stored, _, inserted in changes}
        for inserted, row in list(self.history(list(owner))):
            self.relations[owner[inserted]].add(row)

    def settle(self) -> None:
        """Nothing is kept that must be given back."""

    # --- rounds

    def wave(self, stations: int) -> SteppedWave:
        return SteppedWave(self, stations)

    def sequence(self, parts: Collection[Part], is_soft: bool, may_abort: bool) -> SteppedSequence:
        return SteppedSequence(self, parts, is_soft)

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        self.interpreter.checkpoint = checkpoint

    def prepare(self, plans: tuple[RulePlan, ...]) -> RulesPart:
        return RulesPart(plans)

    def prepare_deletion(self, plan: RankedDeletion) -> DeletionPart:
        return DeletionPart(plan)

    def run_round(self, part: Part) -> dict[str, int]:
        if isinstance(part, DeletionPart):
            return self.interpreter.delete(part)
        assert isinstance(part, RulesPart)
        derived = [
            (plan.head, row)
            for number, plan in enumerate(part.plans)
            for row in self.interpreter.fire(plan, part, number)
        ]
        new: dict[str, int] = {}
        for head, row in derived:
            if self.relations[head].add(row):
                new[head] = new.get(head, 0) + 1
        return new
