"""The embedded engine: relations of 64-bit words, rules as integer programs, kernels by numba.

A sequence of parts runs to its fixpoint in one call of a kernel. Whatever kernels cannot do
(functions of text, decimals, sums of floats) the interpreter does on the same relations, round by
round, so the meaning is that of the reference engine.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter

from deltalog.engines.base import (
    NO_ROWS,
    Capabilities,
    Changed,
    Part,
    RunResult,
)
from deltalog.engines.embedded import jit
from deltalog.engines.embedded.codec import Codec
from deltalog.engines.embedded.compile import ensure_compiled
from deltalog.engines.embedded.kernels import bulk, fixpoint, layout, relation_memory
from deltalog.engines.embedded.parts import EmbeddedDeletion, EmbeddedPart, EmbeddedSequence
from deltalog.engines.embedded.program import Translation, UntranslatableError
from deltalog.engines.embedded.relation import EmbeddedRelation
from deltalog.engines.embedded.wave import EmbeddedWave
from deltalog.engines.interpreter import Interpreter
from deltalog.engines.stepped_sequence import SteppedSequence
from deltalog.language.ast import Row
from deltalog.plan.nodes import RankedDeletion, RulePlan

FOREVER = 2**62
"""Nanoseconds after which a run comes back between two rounds, for progress and interrupts."""


class EmbeddedEngine:
    name = "embedded"
    capabilities = Capabilities(
        fact_bytes=64,
        has_samples=True,
        drops_no_ops=True,
        has_ranks=True,
        has_twins=True,
        takes_raw_int64=True,
    )

    def __init__(self, codec: Codec | None = None) -> None:
        ensure_compiled()
        self.codec = codec or Codec()
        self.lines: dict[int, array[int]] = {}
        self.relations: dict[str, EmbeddedRelation] = {}
        self._nothing = array("q", bytes(64))
        self.nothing = self._nothing.buffer_info()[0]
        self._scratch = array("q", bytes(8 * layout.SCRATCH_WORDS))
        self.machine = array("q", bytes(8 * layout.MACHINE))
        self.machine[layout.SCRATCH] = self._scratch.buffer_info()[0]
        self._hot = array("q", bytes(8 * layout.HOT_MAX * layout.HOT_WORDS))
        self.machine[layout.HOT_LOG] = self._hot.buffer_info()[0]
        self.machine[layout.HOT_AFTER] = FOREVER if jit.WHEN == "never" else jit.STEPS
        for number, address in enumerate(jit.kernel_addresses()):
            self.machine[layout.CALLED + number] = address
        self.codes: weakref.WeakValueDictionary[int, array[int]] = weakref.WeakValueDictionary()
        self.machine_address = self.machine.buffer_info()[0]
        self.interpreter = Interpreter(self.relations)
        self._address_lists: dict[tuple[str, ...], array[int]] = {}
        weakref.finalize(self, _release_memory, self.lines, self.machine).atexit = False

    def fresh(self) -> EmbeddedEngine:
        return EmbeddedEngine()

    def twin(self) -> EmbeddedEngine:
        return EmbeddedEngine(self.codec)

    def copy_from(self, relation: str, twin: EmbeddedEngine) -> None:
        assert twin.codec is self.codec
        self.relations[relation].copy_from(twin.relations[relation])

    def beyond(self, relation: str, twin: EmbeddedEngine) -> list[Row]:
        assert twin.codec is self.codec
        return self.relations[relation].beyond(twin.relations[relation])

    # --- relations

    def create(self, relation: str, types: tuple[str, ...]) -> None:
        if relation not in self.relations:
            self.relations[relation] = EmbeddedRelation(self, types)

    def drop(self, relation: str) -> None:
        known = self.relations.pop(relation, None)
        if known is not None:
            known.discard()
            self._address_lists.clear()

    def clear(self, relation: str) -> None:
        self.relations[relation].clear()

    def clear_all(self, relations: tuple[str, ...]) -> None:
        bulk.clear_all(self._addresses_of_relations(relations), len(relations))

    def _addresses_of_relations(self, relations: tuple[str, ...]) -> int:
        """Return the address of a list of the addresses of some relations."""
        known = self._address_lists.get(relations)
        if known is None:
            addresses = (self.relations[name].address for name in relations)
            known = self._address_lists[relations] = array("q", addresses)
        return known.buffer_info()[0]

    def size(self, relation: str) -> int:
        return self.relations[relation].line[layout.LIVE]

    def rows(self, relation: str) -> Iterator[Row]:
        return iter(self.relations[relation])

    def sample(self, relation: str, count: int) -> Iterable[Row]:
        known = self.relations.get(relation)
        return known.sample(count) if known is not None and len(known) >= count else ()

    def copied(self, relation: str) -> Changed:
        store = self.relations[relation]
        count = store.line[layout.LIVE]
        return store.kept(count, store.copied(), self.codec.decoder) if count else NO_ROWS

    def present(self, relation: str, rows: Collection[Row]) -> list[bool]:
        return self.relations[relation].present(rows)

    def insert(self, relation: str, rows: Iterable[Row]) -> int:
        return self.relations[relation].insert(rows)

    def insert_words(self, relation: str, words: array[int]) -> int:
        return self.relations[relation].insert_words(words)

    def words(self, relation: str) -> array[int]:
        return self.relations[relation].copied()

    def delete(self, relation: str, rows: Iterable[Row]) -> int:
        return self.relations[relation].remove(rows)

    def lookup(self, relation: str, key: Mapping[int, object]) -> Iterator[Row]:
        store = self.relations[relation]
        columns = tuple(sorted(key))
        values: Row = tuple(key[column] for column in columns)  # type: ignore[misc]
        return iter(store.matching(columns, values, 0, store.end))

    def history(self, relations: Collection[str]) -> Iterator[tuple[str, Row]]:
        stamped = [
            (rank, name, row) for name in relations for rank, row in self.relations[name].stamped()
        ]
        return ((name, row) for _, name, row in sorted(stamped, key=itemgetter(0)))

    @property
    def clock(self) -> int:
        return self.machine[layout.CLOCK]

    def ranks(self, relation: str, rows: Collection[Row]) -> list[int]:
        return self.relations[relation].ranks(rows)

    def ranked(self, relation: str) -> Iterator[tuple[int, Row]]:
        return iter(sorted(self.relations[relation].stamped(), key=itemgetter(0)))

    def load(self, relation: str, ranked: Collection[Row]) -> int:
        before = self.clock
        count = self.relations[relation].load(ranked)
        self.machine[layout.CLOCK] = max(self.clock, before)
        return count

    def move(self, changes: tuple[tuple[str, str, str], ...]) -> None:
        cursor = (changes[0][0],)  # any name: its place holds how far the inserted rows are read
        relations = tuple(name for change in changes for name in (*change, *cursor))
        bulk.move_rows(self.machine_address, self._addresses_of_relations(relations), len(changes))

    def settle(self) -> None:
        """Give numbers of values back that nothing holds any more."""
        if not self.codec.due:
            return
        for type_ in tuple(self.codec.due):
            marks = array("q", bytes(8 * len(self.codec.numberings[type_].values)))
            for relation in self.relations.values():
                for column, held in enumerate(relation.types):
                    if held == type_:
                        bulk.mark_words(relation.address, column, marks.buffer_info()[0])
            self.codec.sweep(type_, marks)

    def result(
        self,
        status: int,
        facts: int,
        generated: Callable[[], Mapping[str, int]],
        last: EmbeddedSequence | None,
    ) -> RunResult:
        """Return how a run ended whose last sequence was `last`."""
        is_stopped = status == layout.STOPPED
        return RunResult(
            status == layout.DONE,
            is_stopped,
            self.machine[layout.ROUNDS],
            self.machine[layout.PRODUCTIVE],
            facts,
            generated,
            last.growing if is_stopped and last is not None else (),
            status == layout.ABORTED,
        )

    def specialise(self) -> None:
        """Have machine code made for the pipelines that have asked for it."""
        hot = self._hot
        for at in range(0, self.machine[layout.HOT] * layout.HOT_WORDS, layout.HOT_WORDS):
            code = self.codes.get(hot[at + layout.HOT_CODE])
            if code is not None:
                start, mode = hot[at + layout.HOT_START], hot[at + layout.HOT_MODE]
                jit.SPECIALIST.ask(code, start, mode, self._arity_at_address)
        self.machine[layout.HOT] = 0

    def _arity_at_address(self, address: int) -> int:
        return self.lines[address][layout.ARITY]

    def publish_texts(self) -> None:
        """Pass the address of texts to the kernels, if any are compared."""
        texts = self.codec.texts.texts
        if texts is not None:
            self.machine[layout.TEXTS] = texts.table.buffer_info()[0]

    # --- rounds

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        self.interpreter.checkpoint = checkpoint

    def prepare(self, plans: tuple[RulePlan, ...]) -> EmbeddedPart:
        translation = Translation(self.codec, self.relations)
        where = translation.rules(plans)
        part = EmbeddedPart(plans, where=where, groups=translation.groups)
        part.code = self._finish_translation(translation)
        if part.groups:
            weakref.finalize(part, _discard_relations, part.groups).atexit = False
        return part

    def prepare_deletion(self, plan: RankedDeletion) -> EmbeddedDeletion:
        translation = Translation(self.codec, self.relations)
        part = EmbeddedDeletion(plan)
        try:
            translation.deletion(plan)
            part.code = self._finish_translation(translation)
        except UntranslatableError:
            pass
        return part

    def _finish_translation(self, translation: Translation) -> array[int]:
        code = translation.finished()
        self.codes[code.buffer_info()[0]] = code
        if jit.WHEN == "eager":
            for start, mode in translation.pipelines:
                jit.SPECIALIST.make(code, start, mode, self._arity_at_address)
        return code

    def wave(self, stations: int) -> EmbeddedWave:
        return EmbeddedWave(self, stations)

    def sequence(
        self, parts: Collection[Part], is_soft: bool, may_abort: bool
    ) -> EmbeddedSequence | SteppedSequence:
        known = [
            p for p in parts if isinstance(p, EmbeddedPart | EmbeddedDeletion) and p.is_translated
        ]
        if len(known) < len(parts):
            return SteppedSequence(self, parts, is_soft)
        return EmbeddedSequence(self, known, is_soft, may_abort)

    def run_round(self, part: Part) -> dict[str, int]:
        """One round; used where some part of a sequence needs the interpreter."""
        machine = self.machine
        machine[layout.FACTS], machine[layout.FACTS_MAX] = 0, FOREVER
        machine[layout.DEADLINE] = FOREVER
        machine[layout.MAY_APPEND] = 0
        self.publish_texts()
        if isinstance(part, EmbeddedDeletion) and not part.is_translated:
            return self.interpreter.delete(part)
        assert isinstance(part, EmbeddedPart | EmbeddedDeletion)
        lines = {head: self.relations[head].line for head in part.heads}
        before = {head: line[layout.END] for head, line in lines.items()}
        derived: list[tuple[str, Row]] = []
        if isinstance(part, EmbeddedPart):
            for number, where in enumerate(part.where):
                if where < 0:
                    plan = part.plans[number]
                    rows = self.interpreter.fire(plan, part, number)
                    derived += [(plan.head, row) for row in rows]
        fixpoint.run_round(self.machine_address, part.address)
        for head, row in derived:
            self.relations[head].add(row)
        for line in lines.values():
            line[layout.MADE] = 0
        return {h: new for h, line in lines.items() if (new := line[layout.END] - before[h])}


def _discard_relations(relations: list[EmbeddedRelation]) -> None:
    for relation in relations:
        relation.discard()


def _release_memory(lines: dict[int, array[int]], machine: array[int]) -> None:
    for address in lines:
        relation_memory.discard_relation(address)
    bulk.discard_machine(machine.buffer_info()[0])
