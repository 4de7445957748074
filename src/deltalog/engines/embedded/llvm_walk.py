"""A step as machine code that walks over rows: those that fit form batches, as in `fill_batch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llvmlite import ir

from deltalog.engines.embedded.kernels import layout
from deltalog.engines.embedded.llvm_shapes import Lookup
from deltalog.engines.embedded.llvm_writer import HALF, WORD, Block, Value

if TYPE_CHECKING:
    from deltalog.engines.embedded.llvm_codegen import PipelineWriter


class Walk:
    """A step that walks over the rows of a relation, then over those of `plus`."""

    def __init__(
        self, writer: PipelineWriter, step: Lookup, depth: int, onwards: Block, back: Block
    ) -> None:
        self.w, self.step, self.depth = writer, step, depth
        self.onwards, self.back = onwards, back
        self.is_match = step.operation == layout.MATCH
        self.window = step.window if self.is_match else layout.ALL
        self.relation, self.where, self.start, self.end = (writer.variable() for _ in range(4))
        self.index, self.taken, self.filled, self.most = (writer.variable() for _ in range(4))
        self.phase, self.last, self.capacity = (writer.variable() for _ in range(3))
        with writer.at.goto_block(writer.entry):
            writer.at.position_at_start(writer.entry)
            size = ir.Constant(HALF, int(layout.BATCH))
            self.rows = writer.at.alloca(WORD, size)
            self.places = writer.at.alloca(WORD, size)

    @property
    def is_indexed(self) -> bool:
        return self.step.mode == layout.BY_INDEX

    def write(self) -> Block:
        w, step = self.w, self.step
        self.address = w.step_address[self.depth]()
        self.keys = w.key_words(step, self.address) if self.is_indexed else []
        self.state = w.index_hash(step, self.keys) if self.is_indexed else None
        names = ("opened", "fill", "collect", "filter", "next", "exhausted")
        blocks = [w.block(f"{name}{self.depth}") for name in names]
        self.opened, self.fill, self.collect, self.filter, self.next, self.exhausted = blocks
        self.open_plus = w.block(f"plus{self.depth}") if step.has_plus else None
        w.at.store(w.number(0), self.phase)
        if step.is_overlay and self.window == layout.NEW:
            w.at.branch(self.exhausted)
        else:
            self._open_relation(layout.STORED, is_marked=not step.is_overlay)
        if self.open_plus is not None:
            w.put_at(self.open_plus)
            w.at.store(w.number(1), self.phase)
            self._open_relation(layout.PLUS, is_marked=True)
        self._write_opened()
        self._write_fill()
        self._write_collect()
        self._write_filter()
        self._write_next()
        self._write_exhausted()
        return self.next

    def _open_relation(self, which: int, is_marked: bool) -> None:
        """Where the candidates begin and end."""
        w = self.w
        relation = w.load(self.address, which)
        w.at.store(relation, self.relation)
        start, end = w.number(0), w.load(relation, layout.VISIBLE)
        if self.window != layout.ALL and is_marked:
            mark = w.mark(self.step)
            if self.window == layout.NEW:
                start = mark
            else:
                end = mark
        w.at.store(start, self.start)
        w.at.store(end, self.end)
        w.at.cbranch(w.is_("<", start, end), self.opened, self.exhausted)

    def _write_opened(self) -> None:
        w = self.w
        w.put_at(self.opened)
        if self.is_indexed:
            relation = w.at.load(self.relation)
            number = w.load(self.address, layout.INDEX_NUMBER)
            if self.step.has_plus:
                other = w.load(self.address, layout.PLUS_INDEX)
                is_stored = w.is_("==", w.at.load(self.phase), 0)
                number = w.at.select(is_stored, number, other)
            index = w.at.add(w.load(relation, layout.INDEX), w.times(number, layout.INDEX_BYTES))
            w.at.store(index, self.index)
            w.at.store(w.load(relation, layout.CAPACITY), self.capacity)
            first = self._first_link(index)
        else:
            first = w.plus(w.at.load(self.end), -1)
        w.at.store(first, self.where)
        w.at.store(w.number(int(layout.BATCH_FIRST)), self.most)
        w.at.branch(self.fill)

    def _write_fill(self) -> None:
        w = self.w
        w.put_at(self.fill)
        w.go_if(w.is_("<", w.at.load(self.where), 0), self.exhausted)
        if self.is_indexed:
            self._write_seek()
        else:
            w.at.branch(self.collect)

    def _first_link(self, index: Value) -> Value:
        bucket = self.w.at.and_(self.state, self.w.load(index, layout.HEADS_MASK))
        return self.w.plus(self.w.load_half(self.w.load(index, layout.HEADS), bucket), -1)

    def _write_seek(self) -> None:
        """Find the place of the walk again if the index was made anew, like `seek_link`."""
        w = self.w
        capacity = w.load(w.at.load(self.relation), layout.CAPACITY)
        seek = w.block(f"seek{self.depth}")
        w.at.cbranch(w.is_("==", capacity, w.at.load(self.capacity)), self.collect, seek)
        w.put_at(seek)
        w.at.store(capacity, self.capacity)
        index = w.at.load(self.index)
        links = w.load(index, layout.LINKS)
        w.at.store(self._first_link(index), self.where)
        look, compare, skip = w.block("link"), w.block("linked"), w.block("skip")
        w.at.branch(look)
        w.put_at(look)
        where = w.at.load(self.where)
        w.at.cbranch(w.is_("<", where, 0), self.exhausted, compare)
        w.put_at(compare)
        link = w.load(links, where)
        is_seen = w.is_(">=", _linked_row(w, link), w.at.load(self.last))
        w.at.cbranch(is_seen, skip, self.collect)
        w.put_at(skip)
        w.at.store(_next_link(w, link), self.where)
        w.at.branch(look)

    def _write_collect(self) -> None:
        """Take the next rows, by links or one after the other, and ask for their memory."""
        w = self.w
        w.put_at(self.collect)
        relation = w.at.load(self.relation)
        rows = w.plus(w.load(relation, layout.ROWS), 8)
        links = w.load(w.at.load(self.index), layout.LINKS) if self.is_indexed else None
        start, end, most = (w.at.load(each) for each in (self.start, self.end, self.most))
        begun = w.at.load(self.where)
        before = w.at.block
        look, keep, onwards = w.block("take"), w.block("keep"), w.block("onwards")
        w.at.branch(look)
        w.put_at(look)
        where, count = w.at.phi(WORD), w.at.phi(WORD)
        where.add_incoming(begun, before)
        count.add_incoming(w.number(0), before)
        if self.is_indexed:
            link = w.load(links, where)
            row = _linked_row(w, link)
            after = _next_link(w, link)
            w.at.store(row, self.last)
            address = w.plus(rows, w.times(row, 8 * (self.step.arity + 1)))
            w.prefetch(w.plus(address, -8))
        else:
            row, after = where, w.plus(where, -1)
        is_behind = w.is_(">=", row, start)
        after = w.at.select(is_behind, after, w.number(-1))
        w.at.cbranch(w.at.and_(is_behind, w.is_("<", row, end)), keep, onwards)
        w.put_at(keep)
        w.at.store(row, w.at.gep(self.rows, [count]))
        more = w.plus(count, 1)
        w.at.branch(onwards)
        w.put_at(onwards)
        counted = w.at.phi(WORD)
        counted.add_incoming(count, look)
        counted.add_incoming(more, keep)
        where.add_incoming(after, onwards)
        count.add_incoming(counted, onwards)
        goes_on = w.at.and_(w.is_(">=", after, 0), w.is_("<", counted, most))
        w.at.cbranch(goes_on, look, self.filter)
        w.put_at(self.filter)
        w.at.store(after, self.where)
        doubled = w.at.shl(most, w.number(1))
        is_more = w.is_("<", doubled, int(layout.BATCH))
        w.at.store(w.at.select(is_more, doubled, w.number(int(layout.BATCH))), self.most)
        self.collected = counted

    def _write_filter(self) -> None:
        """Keep the rows that may be read and have the key; ask for what the next step needs."""
        w, step = self.w, self.step
        relation = w.at.load(self.relation)
        rows = w.plus(w.load(relation, layout.ROWS), 8)
        minus = None
        if step.has_minus and not step.is_ranked:
            minus = w.load(self.address, layout.MINUS)
            is_some = w.is_("!=", w.load(minus, layout.LIVE), 0)
            if step.has_plus:
                is_some = w.at.and_(is_some, w.is_("==", w.at.load(self.phase), 0))
        ahead = self._prepare_lookahead()
        kept, number = w.variable(), w.variable()
        w.at.store(w.number(0), kept)
        w.at.store(w.number(0), number)
        look, end = w.block("look"), w.block("filtered")
        body = w.block("row")
        w.at.branch(look)
        w.put_at(look)
        w.at.cbranch(w.is_("<", w.at.load(number), self.collected), body, end)
        w.put_at(body)
        row = w.at.load(w.at.gep(self.rows, [w.at.load(number)]))
        w.at.store(w.plus(w.at.load(number), 1), number)
        words = w.plus(rows, w.times(row, 8 * (step.arity + 1)))
        stamp = w.load(words, -1)
        w.go_if(w.is_("<", stamp, 0), look)
        if self.is_indexed:
            expected = [(c, key) for (c, _), key in zip(step.keys, self.keys, strict=True)]
            w.go_unless(w.are_same(words, expected), look)
        if step.is_ranked:
            if step.has_plus:
                ranked, unranked = w.block("ranked"), w.block("unranked")
                w.at.cbranch(w.is_("==", w.at.load(self.phase), 0), ranked, unranked)
                w.put_at(ranked)
                w.go_unless_older(stamp, look)
                w.at.branch(unranked)
                w.put_at(unranked)
            else:
                w.go_unless_older(stamp, look)
        if minus is not None:
            missing, there = w.block("minus"), w.block("there")
            w.at.cbranch(is_some, missing, there)
            w.put_at(missing)
            position = w.find(minus, [w.load(words, c) for c in range(step.arity)])
            w.at.cbranch(w.is_("<", position, 0), there, look)
            w.put_at(there)
        bound = {slot: w.load(words, column) for column, slot in step.binds}
        for column, slot in step.sames:
            w.go_unless(w.is_("==", w.load(words, column), bound[slot]), look)
        place = w.at.load(kept)
        w.at.store(row, w.at.gep(self.rows, [place]))
        if ahead is not None:
            self._ask_for(ahead, bound, place)
        w.at.store(w.plus(place, 1), kept)
        w.at.branch(look)
        w.put_at(end)
        w.at.store(w.at.load(kept), self.filled)
        w.at.store(w.number(0), self.taken)
        if ahead is not None:
            self._ask_for_rows(ahead)
        w.at.branch(self.next)

    def _prepare_lookahead(self) -> _Ahead | None:
        """Return the lookup of the next step, if its memory is to be prefetched."""
        w, steps = self.w, self.w.shape.steps
        if not self.is_match or self.depth + 1 == len(steps):
            return None
        step = steps[self.depth + 1]
        if not isinstance(step, Lookup) or step.mode == layout.SCAN:
            return None
        address = w.step_address[self.depth + 1]()
        relation = w.load(address, layout.STORED)
        is_large = w.is_(">=", w.load(relation, layout.CAPACITY), int(layout.LARGE))
        return _Ahead(step, address, relation, w.at.and_(is_large, w.is_(">", self.collected, 1)))

    def _ask_for(self, ahead: _Ahead, bound: Mapping[int, Value], number: Value) -> None:
        w = self.w
        ask, asked = w.block("ask"), w.block("asked")
        w.at.cbranch(ahead.is_far, ask, asked)
        w.put_at(ask)
        words = w.key_words(ahead.step, ahead.address, bound)
        if ahead.step.mode == layout.BY_INDEX:
            index = self._index_of(ahead)
            base, mask = w.load(index, layout.HEADS), w.load(index, layout.HEADS_MASK)
            state = w.index_hash(ahead.step, words)
        else:
            base, mask = w.load(ahead.relation, layout.HASH), w.load(ahead.relation, layout.MASK)
            state = w.hash_of(words)
        place = w.half_address(base, state, mask)
        w.prefetch(place)
        w.at.store(place, w.at.gep(self.places, [number]))
        w.at.branch(asked)
        w.put_at(asked)

    def _ask_for_rows(self, ahead: _Ahead) -> None:
        """Ask for the rows that the places say, which are there by now, or by links from there."""
        w = self.w
        begin, out = w.block("begin"), w.block("places_asked")
        w.at.cbranch(ahead.is_far, begin, out)
        w.put_at(begin)

        def ask_for_row(row: Value) -> None:
            w.prefetch(w.plus(w.row(ahead.relation, row, ahead.step.arity), -8))

        if ahead.step.mode == layout.BY_INDEX:
            index = self._index_of(ahead)
            links = w.load(index, layout.LINKS)

            def ask_for_link(link: Value) -> None:
                w.prefetch(w.plus(links, w.times(link, 8)))

            def ask_for_both(number: Value) -> None:
                ask_for_link(number)
                ask_for_row(number)

            side_by_side, elsewhere = w.block("sorted"), w.block("unsorted")
            is_sorted = w.is_("==", w.load(index, layout.IS_SORTED), 1)
            w.at.cbranch(is_sorted, side_by_side, elsewhere)
            w.put_at(elsewhere)
            self._for_places(ask_for_both)
            w.at.branch(out)
            w.put_at(side_by_side)
            self._for_places(ask_for_link)
            self._for_places(lambda link: ask_for_row(_linked_row(w, w.load(links, link))))
        else:
            self._for_places(ask_for_row)
        w.at.branch(out)
        w.put_at(out)

    def _for_places(self, ask: Callable[[Value], None]) -> None:
        w = self.w
        number = w.variable()
        loop, body, out = w.block("places"), w.block("place"), w.block("places_done")
        w.at.store(w.number(0), number)
        w.at.branch(loop)
        w.put_at(loop)
        w.at.cbranch(w.is_("<", w.at.load(number), w.at.load(self.filled)), body, out)
        w.put_at(body)
        place = w.at.load(w.at.gep(self.places, [w.at.load(number)]))
        w.at.store(w.plus(w.at.load(number), 1), number)
        found = w.plus(w.load_half(place), -1)
        w.go_if(w.is_("<", found, 0), loop)
        ask(found)
        w.at.branch(loop)
        w.put_at(out)

    def _index_of(self, ahead: _Ahead) -> Value:
        which = self.w.load(ahead.address, layout.INDEX_NUMBER)
        first = self.w.load(ahead.relation, layout.INDEX)
        return self.w.plus(first, self.w.times(which, layout.INDEX_BYTES))

    def _write_next(self) -> None:
        """Bind the next row of the batch and go on, or take the next batch."""
        w, step = self.w, self.step
        w.put_at(self.next)
        taken = w.at.load(self.taken)
        w.go_unless(w.is_("<", taken, w.at.load(self.filled)), self.fill)
        w.at.store(w.plus(taken, 1), self.taken)
        if self.is_match:
            row = w.at.load(w.at.gep(self.rows, [taken]))
            words = w.row(w.at.load(self.relation), row, step.arity)
            for column, slot in step.binds:
                w.at.store(w.load(words, column), w.slot(slot))
            w.tick(is_checked=True)
        w.at.branch(self.onwards)

    def _write_exhausted(self) -> None:
        w = self.w
        w.put_at(self.exhausted)
        if self.open_plus is not None:
            plus = w.load(self.address, layout.PLUS)
            has_more = w.at.and_(
                w.is_("==", w.at.load(self.phase), 0), w.is_("!=", w.load(plus, layout.LIVE), 0)
            )
            w.go_if(has_more, self.open_plus)
        if self.is_match:
            w.tick(is_checked=False)
        w.at.branch(self.back)


def _linked_row(w: PipelineWriter, link: Value) -> Value:
    return w.at.and_(link, w.number(layout.LOW_HALF))


def _next_link(w: PipelineWriter, link: Value) -> Value:
    return w.plus(w.at.lshr(link, w.number(layout.LINK_SHIFT)), -1)


@dataclass
class _Ahead:
    step: Lookup
    address: Value
    relation: Value
    is_far: Value
