"""The embedded engine: relations of 64-bit words, rules as integer programs, kernels by numba.

A sequence of parts runs to its fixpoint in one call of a kernel. Whatever kernels cannot do
(functions of text, decimals, sums of floats) the interpreter does on the same relations, round by
round, so the meaning is that of the reference engine.
"""

from __future__ import annotations

import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

from deltalog.engines.base import (
    NO_ROWS,
    Capabilities,
    Changed,
    Copied,
    Ended,
    Part,
    Sides,
    Station,
)
from deltalog.engines.embedded import kernel, native, pipeline, wave
from deltalog.engines.embedded.codec import Codec, Decoder, packed
from deltalog.engines.embedded.compile import ensure_compiled
from deltalog.engines.embedded.program import Translation, UntranslatableError
from deltalog.engines.embedded.relation import EmbeddedRelation
from deltalog.engines.interpreter import DeletionPart, Interpreter, RulesPart
from deltalog.engines.stepped_sequence import SteppedSequence
from deltalog.language.ast import Row
from deltalog.plan.nodes import RankedDeletion, RulePlan

FOREVER = 2**62
"""Nanoseconds after which a run comes back between two rounds, for progress and interrupts."""


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
            pipeline.rewind_part(self.address)


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
            pipeline.rewind_part(self.address)


class EmbeddedSequence:
    """Parts that the kernels run to their fixpoint by themselves."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        parts: Sequence[EmbeddedPart | EmbeddedDeletion],
        is_soft: bool,
        is_impatient: bool,
    ) -> None:
        self.engine = engine
        self.parts = parts
        addresses = [part.address for part in parts]
        self.code = array("q", [len(parts), int(is_soft), 0, int(is_impatient), *addresses])
        self.address = self.code.buffer_info()[0]
        heads = dict.fromkeys(head for part in parts for head in part.heads)
        self.heads = [(name, engine.relations[name].line) for name in heads]

    def run(self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int) -> Ended:
        engine = self.engine
        engine.publish_texts()
        status = pipeline.run_alone(
            engine.machine_address, self.address, rounds, rounds_max, facts, facts_max, until
        )
        if engine.machine[kernel.HOT]:
            engine.specialise()
        made = {name: line[kernel.MADE] for name, line in self.heads if line[kernel.MADE]}
        for _, line in self.heads:
            line[kernel.MADE] = 0
        return engine.ended(status, engine.machine[kernel.FACTS] - facts, lambda: made, self)

    @property
    def growing(self) -> tuple[str, ...]:
        return tuple(name for name, line in self.heads if line[kernel.LAST])

    def rewind(self) -> None:
        pipeline.rewind(self.address)


_NOTHING: Sides = {}, {}
ROOM = 512
"""Words of rows that fit into the outbox of a wave; larger changes are copied one by one."""


class EmbeddedWave:
    """The way of a change through a network; see `wave.py` for what the kernels read and write."""

    def __init__(self, engine: EmbeddedEngine, stations: int) -> None:
        self.engine = engine
        self.stations = stations
        self.code = array("q", bytes(8 * (wave.WAVE_HEADER + 3 * stations)))
        self.code[wave.STATIONS] = stations
        self.address = self.code.buffer_info()[0]
        self.codes: dict[int, array[int]] = {}
        self.sequences: dict[int, EmbeddedSequence] = {}
        self.shown: dict[int, list[tuple[str, EmbeddedRelation]]] = {}
        self.inbox: list[int | None] = []
        self.ahead = array("q")  # what comes before the inbox: words of large changes
        self.taken = 0
        self.bound: Sides = {}, {}
        self.outbox = array("q", bytes(8 * (wave.OUTBOX_HEADER + ROOM)))
        self.outbox[wave.ROOM] = ROOM
        self.made = array("q", bytes(8 * wave.MADE_HEADER))
        self._publish_boxes()

    def _publish_boxes(self) -> None:
        self.code[wave.OUTBOX] = self.outbox.buffer_info()[0]
        self.code[wave.MADE_BOX] = self.made.buffer_info()[0]

    def place(self, number: int, station: Station) -> None:
        relations, sequence = self.engine.relations, station.sequence

        def addresses(names: Iterable[str]) -> list[int]:
            return [relations[name].address for name in names]

        heads: list[int] = []
        begun = (0, 0)
        if isinstance(sequence, EmbeddedSequence):
            self.sequences[number] = sequence
            begun = (sequence.address, station.many)
            heads = addresses(name for name, _ in sequence.heads)
        sides = [(view, side) for view, *both in station.shown for side in both]
        self.shown[number] = [(view, relations[side]) for view, side in sides]
        lists = (
            [word for address in addresses(station.flows) for word in (address, 0)],
            addresses(station.forgotten),
            [word for name, reader in station.made for word in (relations[name].address, reader)],
            addresses(station.replaced),
            [word for move in station.moves for word in (*addresses(move), 0)],
            addresses(station.outlasting),
            addresses(side for _, side in sides),
            heads,
        )
        words, at = [], wave.STATION_HEADER
        for listed, width in zip(lists, (2, 1, 2, 1, 4, 1, 2, 1), strict=True):
            words += [len(listed) // width, 8 * at]
            at += len(listed)
        self.codes[number] = array("q", [*begun, *words, *(w for each in lists for w in each)])
        self.code[self._where(number)] = self.codes[number].buffer_info()[0]
        self.outbox.extend([0] * (wave.SHOWN_ENTRY * len(sides)))  # an entry for each
        self.made.extend([0] * (wave.MADE_ENTRY * len(heads)))
        self._publish_boxes()

    def _where(self, number: int) -> int:
        return wave.WAVE_HEADER + self.stations + number

    def bind(self, number: int, come: Changed, gone: Changed) -> None:
        name, relation = self.shown[number][0]
        bound = self.bound
        self.inbox += number, len(come), len(gone)
        if come:
            self._take(relation, come)
            bound[0][name] = come
        if gone:
            self._take(relation, gone)
            bound[1][name] = gone
        self.taken += 1

    def _take(self, relation: EmbeddedRelation, rows: Changed) -> None:
        if isinstance(rows, Copied):
            self.ahead += packed(self.inbox)
            self.ahead += relation.encoded(rows)
            self.inbox = []
        else:
            self.inbox += relation.words(rows)

    def run(self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int) -> Ended:
        engine, machine = self.engine, self.engine.machine
        if engine.codec.texts.texts is not None:
            engine.publish_texts()
        inbox, taken = packed(self.inbox), self.taken
        if self.ahead:
            inbox = self.ahead + inbox
            self.ahead = array("q")
        self.inbox, self.taken = [], 0
        status = wave.run_wave(
            engine.machine_address,
            self.address,
            inbox.buffer_info()[0],
            taken,
            rounds,
            rounds_max,
            facts,
            facts_max,
            until,
        )
        if machine[kernel.HOT]:
            engine.specialise()
        new = machine[kernel.FACTS] - facts
        generated = partial(self._generated, self._made()) if new else dict
        if status == pipeline.DONE:
            rounds, fruitful = machine[kernel.ROUNDS], machine[kernel.FRUITFUL]
            return Ended(True, False, rounds, fruitful, new, generated)
        number = self.code[wave.ASKED_AT]
        ended = engine.ended(status, new, generated, self.sequences.get(number))
        is_asked = status in (wave.ASKED, pipeline.GIVEN_UP)
        return ended._replace(asked=number) if is_asked else ended

    def _made(self) -> array[int]:
        made = self.made
        return made[wave.MADE_HEADER : wave.MADE_HEADER + wave.MADE_ENTRY * made[wave.ENTRIES]]

    def _generated(self, told: array[int]) -> Mapping[str, int]:
        made: Counter[str] = Counter()
        for number, head, rows in zip(*[iter(told)] * wave.MADE_ENTRY, strict=True):
            made[self.sequences[number].heads[head][0]] += rows
        return made

    def changes(self) -> Sides:
        bound = self.bound if self.code[wave.IS_NEWS] else _NOTHING
        return self._read(self.outbox, bound, self.engine.codec.decoder)

    def told(self) -> Callable[[], Sides] | None:
        outbox = self.outbox
        if not outbox[wave.IS_ALL]:  # what is not copied yet will be gone soon
            found = come, gone = self.changes()
            return (lambda: found) if come or gone else None
        bound = self.bound if self.code[wave.IS_NEWS] else _NOTHING
        if not outbox[wave.ENTRIES] and bound == _NOTHING:
            return None
        return partial(self._read, outbox[: outbox[wave.USED]], bound, self.engine.codec.decoder)

    def _read(self, outbox: array[int], bound: Sides, decoder: Decoder) -> Sides:
        """What is bound to sources, and the changes in an outbox."""
        come, gone = bound
        sides = come.copy(), gone.copy()
        at = wave.OUTBOX_HEADER
        for _ in range(outbox[wave.ENTRIES]):
            number, which, rows, has_words = outbox[at : at + wave.SHOWN_ENTRY]
            name, relation = self.shown[number][which]
            at += wave.SHOWN_ENTRY
            end = at + rows * relation.arity * has_words
            words = outbox[at:end] if has_words else relation.copied()
            sides[which % 2][name] = relation.kept(rows, words, decoder)
            at = end
        return sides

    def flows(self, number: int) -> tuple[int, ...]:
        code = self.codes[number]
        start = code[wave.FLOWS_AT] // 8
        return tuple(code[start + 1 : start + 2 * code[wave.FLOWS] : 2])

    def enter(self, number: int) -> None:
        wave.enter(self.address, number)

    def leave(self, number: int) -> None:
        wave.leave(self.address, self.code[self._where(number)])

    def ran(self) -> tuple[int, ...]:
        log = wave.WAVE_HEADER + 2 * self.stations
        return tuple(self.code[log : log + self.code[wave.RAN]])

    def end(self, is_applied: bool) -> None:
        self.inbox, self.ahead, self.taken = [], array("q"), 0
        self.bound = {}, {}
        wave.end_wave(self.engine.machine_address, self.address, int(is_applied))


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
        self._scratch = array("q", bytes(8 * pipeline.SCRATCH_WORDS))
        self.machine = array("q", bytes(8 * kernel.MACHINE))
        self.machine[kernel.SCRATCH] = self._scratch.buffer_info()[0]
        self._hot = array("q", bytes(8 * pipeline.HOT_MAX * pipeline.HOT_ENTRY))
        self.machine[kernel.HOT_LOG] = self._hot.buffer_info()[0]
        self.machine[kernel.HOT_AFTER] = FOREVER if native.WHEN == "never" else native.STEPS
        for number, address in enumerate(native.kernel_addresses()):
            self.machine[kernel.CALLED + number] = address
        self.codes: weakref.WeakValueDictionary[int, array[int]] = weakref.WeakValueDictionary()
        self.machine_address = self.machine.buffer_info()[0]
        self.interpreter = Interpreter(self.relations)
        self._listed: dict[tuple[str, ...], array[int]] = {}
        weakref.finalize(self, _release, self.lines, self.machine).atexit = False

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
            self._listed.clear()

    def clear(self, relation: str) -> None:
        self.relations[relation].clear()

    def clear_all(self, relations: tuple[str, ...]) -> None:
        kernel.clear_all(self._addresses(relations), len(relations))

    def _addresses(self, relations: tuple[str, ...]) -> int:
        """Where the addresses of some relations stand one after the other."""
        known = self._listed.get(relations)
        if known is None:
            addresses = (self.relations[name].address for name in relations)
            known = self._listed[relations] = array("q", addresses)
        return known.buffer_info()[0]

    def size(self, relation: str) -> int:
        return self.relations[relation].line[kernel.LIVE]

    def rows(self, relation: str) -> Iterator[Row]:
        return iter(self.relations[relation])

    def sample(self, relation: str, count: int) -> Iterable[Row]:
        known = self.relations.get(relation)
        return known.sample(count) if known is not None and len(known) >= count else ()

    def copied(self, relation: str) -> Changed:
        store = self.relations[relation]
        count = store.line[kernel.LIVE]
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
        return self.machine[kernel.CLOCK]

    def ranks(self, relation: str, rows: Collection[Row]) -> list[int]:
        return self.relations[relation].ranks(rows)

    def ranked(self, relation: str) -> Iterator[tuple[int, Row]]:
        return iter(sorted(self.relations[relation].stamped(), key=itemgetter(0)))

    def load(self, relation: str, ranked: Collection[Row]) -> int:
        before = self.clock
        count = self.relations[relation].load(ranked)
        self.machine[kernel.CLOCK] = max(self.clock, before)
        return count

    def move(self, changes: tuple[tuple[str, str, str], ...]) -> None:
        cursor = (changes[0][0],)  # any name: its place holds how far `come` is read
        listed = tuple(name for change in changes for name in (*change, *cursor))
        kernel.move(self.machine_address, self._addresses(listed), len(changes))

    def settle(self) -> None:
        """Give numbers of values back that nothing holds any more."""
        for type_, numbering in self.codec.numberings.items():
            if numbering.is_due:
                marks = array("q", bytes(8 * len(numbering.values)))
                for relation in self.relations.values():
                    for column, held in enumerate(relation.types):
                        if held == type_:
                            kernel.mark_words(relation.address, column, marks.buffer_info()[0])
                self.codec.sweep(type_, marks)

    def ended(
        self,
        status: int,
        facts: int,
        generated: Callable[[], Mapping[str, int]],
        last: EmbeddedSequence | None,
    ) -> Ended:
        """How a run went that came to `last`."""
        is_stopped = status == pipeline.STOPPED
        return Ended(
            status == pipeline.DONE,
            is_stopped,
            self.machine[kernel.ROUNDS],
            self.machine[kernel.FRUITFUL],
            facts,
            generated,
            last.growing if is_stopped and last is not None else (),
            status == pipeline.GIVEN_UP,
        )

    def specialise(self) -> None:
        """Have machine code made for the pipelines that have asked for it."""
        hot = self._hot
        for at in range(0, self.machine[kernel.HOT] * pipeline.HOT_ENTRY, pipeline.HOT_ENTRY):
            code = self.codes.get(hot[at])
            if code is not None:
                native.SPECIALIST.ask(code, hot[at + 1], hot[at + 2], self._arity)
        self.machine[kernel.HOT] = 0

    def _arity(self, address: int) -> int:
        return self.lines[address][kernel.ARITY]

    def publish_texts(self) -> None:
        """Tell the kernels where texts are, if any are compared."""
        texts = self.codec.texts.texts
        if texts is not None:
            self.machine[kernel.TEXTS] = texts.table.buffer_info()[0]

    # --- rounds

    def watch(self, checkpoint: Callable[[], None] | None) -> None:
        self.interpreter.checkpoint = checkpoint

    def prepare(self, plans: tuple[RulePlan, ...]) -> EmbeddedPart:
        translation = Translation(self.codec, self.relations)
        where = translation.rules(plans)
        part = EmbeddedPart(plans, where=where, groups=translation.groups)
        part.code = self._finished(translation)
        if part.groups:
            weakref.finalize(part, _discard, part.groups).atexit = False
        return part

    def prepare_deletion(self, plan: RankedDeletion) -> EmbeddedDeletion:
        translation = Translation(self.codec, self.relations)
        part = EmbeddedDeletion(plan)
        try:
            translation.deletion(plan)
            part.code = self._finished(translation)
        except UntranslatableError:
            pass
        return part

    def _finished(self, translation: Translation) -> array[int]:
        code = translation.finished()
        self.codes[code.buffer_info()[0]] = code
        if native.WHEN == "eager":
            for start, mode in translation.pipelines:
                native.SPECIALIST.make(code, start, mode, self._arity)
        return code

    def wave(self, stations: int) -> EmbeddedWave:
        return EmbeddedWave(self, stations)

    def sequence(
        self, parts: Collection[Part], is_soft: bool, is_impatient: bool
    ) -> EmbeddedSequence | SteppedSequence:
        known = [
            p for p in parts if isinstance(p, EmbeddedPart | EmbeddedDeletion) and p.is_translated
        ]
        if len(known) < len(parts):
            return SteppedSequence(self, parts, is_soft)
        return EmbeddedSequence(self, known, is_soft, is_impatient)

    def run_round(self, part: Part) -> dict[str, int]:
        """One round; used where some part of a sequence needs the interpreter."""
        machine = self.machine
        machine[kernel.FACTS], machine[kernel.FACTS_MAX] = 0, FOREVER
        machine[kernel.DEADLINE] = FOREVER
        machine[kernel.MAY_LIST] = 0
        self.publish_texts()
        if isinstance(part, EmbeddedDeletion) and not part.is_translated:
            return self.interpreter.delete(part)
        assert isinstance(part, EmbeddedPart | EmbeddedDeletion)
        lines = {head: self.relations[head].line for head in part.heads}
        before = {head: line[kernel.END] for head, line in lines.items()}
        derived: list[tuple[str, Row]] = []
        if isinstance(part, EmbeddedPart):
            for number, where in enumerate(part.where):
                if where < 0:
                    plan = part.plans[number]
                    rows = self.interpreter.fire(plan, part, number)
                    derived += [(plan.head, row) for row in rows]
        pipeline.run_round(self.machine_address, part.address)
        for head, row in derived:
            self.relations[head].add(row)
        for line in lines.values():
            line[kernel.MADE] = 0
        return {h: new for h, line in lines.items() if (new := line[kernel.END] - before[h])}


def _discard(relations: list[EmbeddedRelation]) -> None:
    for relation in relations:
        relation.discard()


def _release(lines: dict[int, array[int]], machine: array[int]) -> None:
    for address in lines:
        kernel.discard(address)
    kernel.discard_machine(machine.buffer_info()[0])
