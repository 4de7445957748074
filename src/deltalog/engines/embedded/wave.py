"""The wave of the embedded engine: a whole transaction is one call of a kernel."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from deltalog.engines.base import Changed, LazyRows, RunResult, Sides, Station
from deltalog.engines.embedded.codec import Decoder, words_to_array
from deltalog.engines.embedded.kernels import layout, wave
from deltalog.engines.embedded.parts import EmbeddedSequence
from deltalog.engines.embedded.relation import EmbeddedRelation

if TYPE_CHECKING:
    from deltalog.engines.embedded.engine import EmbeddedEngine

_NOTHING: Sides = {}, {}
ROOM = 512
"""Words of rows that fit into the output buffer; larger changes are copied one by one."""


class EmbeddedWave:
    """A change on its way through a network; `wave.py` has the layout of what kernels read."""

    def __init__(self, engine: EmbeddedEngine, stations: int) -> None:
        self.engine = engine
        self.stations = stations
        self.code = array("q", bytes(8 * (wave.WAVE_HEADER + 3 * stations)))
        self.code[wave.STATIONS] = stations
        self.address = self.code.buffer_info()[0]
        self.codes: dict[int, array[int]] = {}
        self.sequences: dict[int, EmbeddedSequence] = {}
        self.shown: dict[int, list[tuple[str, EmbeddedRelation]]] = {}
        self._input: list[int | None] = []
        self._input_ahead = array("q")  # words of large changes, before the others
        self._input_count = 0
        self.bound: Sides = {}, {}
        self.output = array("q", bytes(8 * (wave.OUTPUT_HEADER + ROOM)))
        self.output[wave.ROOM] = ROOM
        self.made = array("q", bytes(8 * wave.COUNTS_HEADER))
        self._publish_buffers()

    def _publish_buffers(self) -> None:
        self.code[wave.OUTPUT] = self.output.buffer_info()[0]
        self.code[wave.COUNTS] = self.made.buffer_info()[0]

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
        widths = (wave.FLOW_WORDS, 1, wave.MADE_WORDS, 1, layout.MOVE_WORDS, 1, wave.SHOWN_WORDS, 1)
        for words_of, width in zip(lists, widths, strict=True):
            words += [len(words_of) // width, 8 * at]
            at += len(words_of)
        self.codes[number] = array("q", [*begun, *words, *(w for each in lists for w in each)])
        self.code[self._place_of_number(number)] = self.codes[number].buffer_info()[0]
        self.output.extend([0] * (wave.OUTPUT_ENTRY * len(sides)))  # an entry for each
        self.made.extend([0] * (wave.COUNT_ENTRY * len(heads)))
        self._publish_buffers()

    def _place_of_number(self, number: int) -> int:
        return wave.WAVE_HEADER + self.stations + number

    def bind(self, number: int, inserted: Changed, deleted: Changed) -> None:
        name, relation = self.shown[number][0]
        bound = self.bound
        self._input += number, len(inserted), len(deleted)
        if inserted:
            if isinstance(inserted, LazyRows):
                self._take_ahead(relation, inserted)
            else:
                self._input += relation.words(inserted)
            bound[0][name] = inserted
        if deleted:
            if isinstance(deleted, LazyRows):
                self._take_ahead(relation, deleted)
            else:
                self._input += relation.words(deleted)
            bound[1][name] = deleted
        self._input_count += 1

    def _take_ahead(self, relation: EmbeddedRelation, rows: LazyRows) -> None:
        self._input_ahead += words_to_array(self._input)
        self._input_ahead += relation.encoded(rows)
        self._input = []

    def run(
        self, rounds: int, rounds_max: int, facts: int, facts_max: int, until: int
    ) -> RunResult:
        engine, machine = self.engine, self.engine.machine
        if engine.codec.texts.texts is not None:
            engine.publish_texts()
        input_words, taken = words_to_array(self._input), self._input_count
        if self._input_ahead:
            input_words = self._input_ahead + input_words
            self._input_ahead = array("q")
        self._input, self._input_count = [], 0
        status = wave.run_wave(
            engine.machine_address,
            self.address,
            input_words.buffer_info()[0],
            taken,
            rounds,
            rounds_max,
            facts,
            facts_max,
            until,
        )
        if machine[layout.HOT]:
            engine.specialise()
        new = machine[layout.FACTS] - facts
        generated = partial(self._count_generated, self._counts_made()) if new else dict
        if status == layout.DONE:
            rounds, productive = machine[layout.ROUNDS], machine[layout.PRODUCTIVE]
            return RunResult(True, False, rounds, productive, new, generated)
        number = self.code[wave.ASKED_AT]
        ended = engine.result(status, new, generated, self.sequences.get(number))
        is_asked = status in (wave.ASKED, layout.ABORTED)
        return ended._replace(asked=number) if is_asked else ended

    def _counts_made(self) -> array[int]:
        made = self.made
        return made[wave.COUNTS_HEADER : wave.COUNTS_HEADER + wave.COUNT_ENTRY * made[wave.ENTRIES]]

    def _count_generated(self, counted: array[int]) -> Mapping[str, int]:
        made: Counter[str] = Counter()
        for number, head, rows in zip(*[iter(counted)] * wave.COUNT_ENTRY, strict=True):
            made[self.sequences[number].heads[head][0]] += rows
        return made

    def changes(self) -> Sides:
        bound = self.bound if self.code[wave.IS_EFFECTIVE] else _NOTHING
        return self._read_output(self.output, bound, self.engine.codec.decoder)

    def lazy_changes(self) -> Callable[[], Sides] | None:
        output = self.output
        if not output[wave.IS_ALL]:  # rows that are not copied yet will be cleared soon
            found = inserted, deleted = self.changes()
            return (lambda: found) if inserted or deleted else None
        bound = self.bound if self.code[wave.IS_EFFECTIVE] else _NOTHING
        if not output[wave.ENTRIES] and not (bound[0] or bound[1]):
            return None
        return partial(
            self._read_output, output[: output[wave.USED]], bound, self.engine.codec.decoder
        )

    def _read_output(self, output: array[int], bound: Sides, decoder: Decoder) -> Sides:
        """Return what is bound to sources, and the changes in an output buffer."""
        inserted, deleted = bound
        sides = inserted.copy(), deleted.copy()
        at = wave.OUTPUT_HEADER
        for _ in range(output[wave.ENTRIES]):
            number, which, rows, has_words = output[at : at + wave.OUTPUT_ENTRY]
            name, relation = self.shown[number][which]
            at += wave.OUTPUT_ENTRY
            end = at + rows * relation.arity * has_words
            words = output[at:end] if has_words else relation.copied()
            sides[which % 2][name] = relation.kept(rows, words, decoder)
            at = end
        return sides

    def flows(self, number: int) -> tuple[int, ...]:
        code = self.codes[number]
        start = code[wave.FLOWS_AT] // 8
        end = start + wave.FLOW_WORDS * code[wave.FLOWS]
        return tuple(code[start + wave.FLOW_ROWS : end : wave.FLOW_WORDS])

    def enter(self, number: int) -> None:
        wave.enter_station(self.address, number)

    def leave(self, number: int) -> None:
        wave.leave_station(self.address, self.code[self._place_of_number(number)])

    def ran(self) -> tuple[int, ...]:
        log = wave.WAVE_HEADER + 2 * self.stations
        return tuple(self.code[log : log + self.code[wave.RAN]])

    def end(self, is_applied: bool) -> None:
        if self._input or self._input_ahead:  # bound, and then something failed
            self._input, self._input_ahead, self._input_count = [], array("q"), 0
        self.bound = {}, {}
        wave.end_wave(self.engine.machine_address, self.address, int(is_applied))
