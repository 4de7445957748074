"""A pipeline as machine code: the same loops as in `pipeline.py`, with everything fixed that is.

What is fixed is the *shape* of a pipeline: its steps, which columns are keys and which are bound,
how wide rows are. Relations, indexes, constants and marks are read from the pipeline's code when
it runs, so that one function serves all pipelines of a shape. Slots become registers, tests become
jumps, and nothing is decoded.

The function does step for step what the interpreter does: rows come in the same order, and as many
steps are counted, so a deletion is given up at the same point. Its form is that of a function
compiled by numba: it answers a status, and an error of a kernel that it calls is passed on.

    step d:   enter ─▶ open ─▶ fill ─▶ next ─▶ step d + 1 … ─▶ emit
                                ▲       │ ▲                      │
                 step d - 1 ◀───┴───────┘ └──────── back ◀───────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from deltalog.engines.embedded import kernel, pipeline

Value = Any
Block = Any
Int = np.integer[Any]

WORD = ir.IntType(64)
HALF = ir.IntType(32)


@dataclass(frozen=True)
class Lookup:
    """A match or absent step; of a constant, the slot is None."""

    operation: int
    mode: int
    arity: int
    is_overlay: bool
    has_minus: bool
    has_plus: bool
    window: int
    occurrence: int
    is_ranked: bool
    keys: tuple[tuple[int, int | None], ...]
    binds: tuple[tuple[int, int], ...]
    sames: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Check:
    """A test or an assignment, computed by a kernel from what is in the slots."""

    operation: int
    reads: tuple[int, ...]
    assigned: int | None = None


@dataclass(frozen=True)
class Comparison:
    """A test of two ints, or of words that are equal or not; a side is a slot, or None."""

    operator: int
    left: int | None
    right: int | None


@dataclass(frozen=True)
class Shape:
    steps: tuple[Lookup | Check | Comparison, ...]
    deciding: int
    outputs: tuple[int | None, ...]
    mode: int
    is_once: bool


CALLED = ("put", "send", "append", "is_over", "holds", "assigned", "is_some")
_CHECKED_BY = {pipeline.TEST: "holds", pipeline.ASSIGN: "assigned", pipeline.SOME: "is_some"}
"""The kernels that are called, in the order in which the machine has their addresses."""


def function(name: str, shape: Shape) -> str:
    """The function for a shape, in the language of LLVM."""
    module = ir.Module()
    kind = ir.FunctionType(HALF, [WORD] * 8)
    _Writer(ir.Function(module, kind, name), shape).write()
    return str(module)


class _Writer:
    """The function being written; `at` is the end of the block that is written to."""

    def __init__(self, written: ir.Function, shape: Shape) -> None:
        self.written = written
        self.shape = shape
        self.result, self.failure, self.machine, self.code, self.start = written.args[:5]
        self.target, self.marks, self.rank = written.args[5:]
        self.entry = written.append_basic_block("entry")
        self.at = ir.IRBuilder(self.entry)
        self.slots: dict[int, Value] = {}
        self.ticks = self.variable(0)
        self.answer = self.at.alloca(WORD)

    # --- words

    def number(self, value: int | Int) -> Value:
        return ir.Constant(WORD, int(value))

    def variable(self, value: int | None = None) -> Value:
        """A word that changes; the compiler finds a register for it."""
        with self.at.goto_block(self.entry):
            self.at.position_at_start(self.entry)
            made = self.at.alloca(WORD)
        if value is not None:
            self.at.store(self.number(value), made)
        return made

    def block(self, name: str) -> Block:
        return self.written.append_basic_block(name)

    def put_at(self, block: Block) -> None:
        self.at.position_at_end(block)

    def _pointer(self, address: Value, index: int | Value, kind: Any) -> Value:
        base = self.at.inttoptr(address, kind.as_pointer())
        if isinstance(index, int | np.integer):
            index = self.number(index)
        return self.at.gep(base, [index])

    def load(self, address: Value, index: int | Value = 0) -> Value:
        return self.at.load(self._pointer(address, index, WORD))

    def load_half(self, address: Value, index: int | Value = 0) -> Value:
        return self.at.sext(self.at.load(self._pointer(address, index, HALF)), WORD)

    def store(self, address: Value, index: int | Value, value: Value) -> None:
        self.at.store(value, self._pointer(address, index, WORD))

    def plus(self, left: Value, right: int | Value) -> Value:
        return self.at.add(left, self.number(right) if isinstance(right, int) else right)

    def times(self, left: Value, right: int) -> Value:
        return self.at.mul(left, self.number(right))

    def is_(self, operator: str, left: Value, right: int | Value) -> Value:
        other = self.number(right) if isinstance(right, int) else right
        return self.at.icmp_signed(operator, left, other)

    def go_if(self, condition: Value, block: Block) -> None:
        """Go there if the condition holds, else stay here."""
        here = self.block("else")
        self.at.cbranch(condition, block, here)
        self.put_at(here)

    def go_unless(self, condition: Value, block: Block) -> None:
        here = self.block("then")
        self.at.cbranch(condition, here, block)
        self.put_at(here)

    def prefetch(self, address: Value) -> None:
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, HALF, HALF, HALF])
        name = "llvm.prefetch.p0"
        found = self.written.module.globals.get(name)
        if found is None:
            found = ir.Function(self.written.module, kind, name)
        hints = [ir.Constant(HALF, hint) for hint in (1, 2, 1)]
        self.at.call(found, [self.at.inttoptr(address, byte), *hints])

    def call(self, name: str, *arguments: int | Value) -> Value:
        """Call a kernel that takes words and answers one; an error ends this function too."""
        words = [self.number(a) if isinstance(a, int) else a for a in arguments]
        kind = ir.FunctionType(HALF, [WORD] * (2 + len(words)))
        address = self.load(self.machine, kernel.CALLED + CALLED.index(name))
        answer = self.at.ptrtoint(self.answer, WORD)
        callee = self.at.inttoptr(address, kind.as_pointer())
        status = self.at.call(callee, [answer, self.failure, *words])
        failed, went_on = self.block("failed"), self.block("called")
        self.at.cbranch(self.at.icmp_signed("==", status, ir.Constant(HALF, 0)), went_on, failed)
        self.put_at(failed)
        self.at.ret(status)
        self.put_at(went_on)
        return self.at.load(self.answer)

    # --- relations

    def mixed(self, state: Value, word: Value) -> Value:
        multiplied = self.at.mul(self.at.xor(state, word), self.number(int(kernel._MULTIPLIER)))
        high = self.at.and_(self.at.ashr(multiplied, self.number(29)), self.number(0x7FFFFFFFF))
        return self.at.xor(multiplied, high)

    def hash_of(self, words: Iterable[Value]) -> Value:
        state = self.number(0)
        for word in words:
            state = self.mixed(state, word)
        return state

    def row(self, relation: Value, row: Value, arity: int) -> Value:
        """Where the words of a row begin."""
        first = self.plus(self.load(relation, kernel.ROWS), 8)
        return self.plus(first, self.times(row, 8 * (arity + 1)))

    def find(self, relation: Value, words: list[Value]) -> Value:
        """The position of a row, or -1."""
        state = self.hash_of(words)
        slots, mask = self.load(relation, kernel.HASH), self.load(relation, kernel.MASK)
        rows = self.plus(self.load(relation, kernel.ROWS), 8)
        before, first = self.at.block, self.at.and_(state, mask)
        look, taken, onwards = self.block("look"), self.block("taken"), self.block("onwards")
        same, out = self.block("same"), self.block("looked")
        self.at.branch(look)
        self.put_at(look)
        slot = self.at.phi(WORD)
        slot.add_incoming(first, before)
        found = self.load_half(slots, slot)
        is_free = self.is_("==", found, 0)
        self.at.cbranch(is_free, out, taken)
        self.put_at(taken)
        address = self.plus(rows, self.times(self.plus(found, -1), 8 * (len(words) + 1)))
        self.at.cbranch(self._are_same(address, enumerate(words)), same, onwards)
        self.put_at(same)
        is_dead = self.is_("<", self.load(address, kernel.STAMP), 0)
        position = self.at.select(is_dead, self.number(0), found)
        self.at.branch(out)
        self.put_at(onwards)
        following = self.at.and_(self.plus(slot, 1), mask)
        slot.add_incoming(following, onwards)
        self.at.branch(look)
        self.put_at(out)
        answer = self.at.phi(WORD)
        answer.add_incoming(self.number(0), look)
        answer.add_incoming(position, same)
        return self.plus(answer, -1)

    def _are_same(self, address: Value, expected: Iterable[tuple[int, Value]]) -> Value:
        difference = self.number(0)
        for column, word in expected:
            difference = self.at.or_(difference, self.at.xor(self.load(address, column), word))
        return self.is_("==", difference, 0)

    # --- slots

    def slot(self, number: int) -> Value:
        """The variable of a slot; one that no step has bound was given."""
        if number not in self.slots:
            made = self.variable()
            self.slots[number] = made
            with self.at.goto_block(self.entry):
                self.at.store(self.load(self._slots_address(), number), made)
        return self.slots[number]

    def _slots_address(self) -> Value:
        scratch = self.load(self.machine, kernel.SCRATCH)
        return self.plus(scratch, 8 * pipeline.SLOTS_AT)

    def value(self, slot: int | None, code: Value, at: int) -> Value:
        """What a slot holds; without one, a constant, from its place in the code."""
        return self.load(code, at) if slot is None else self.at.load(self.slot(slot))

    def key_words(
        self, step: Lookup, address: Value, known: Mapping[int, Value] | None = None
    ) -> list[Value]:
        """The key of a step; `known` are slots that the row at hand would bind."""
        words = []
        for number, (_, slot) in enumerate(step.keys):
            if known is not None and slot is not None and slot in known:
                words.append(known[slot])
            else:
                words.append(self.value(slot, address, pipeline.HEADER + 3 * number + 2))
        return words

    def index_hash(self, step: Lookup, words: list[Value]) -> Value:
        keys = zip(step.keys, words, strict=True)
        return self.hash_of(w for (column, _), w in keys if column < kernel.INDEXED_COLUMNS)

    # --- the function

    def write(self) -> None:
        shape = self.shape
        body = self.block("body")
        self.put_at(body)
        self._declare_slots()
        first = self.plus(self.start, 8 * pipeline.PIPELINE_HEADER)
        self.step_address = [
            lambda d=d: self.plus(self.code, self.times(self.load(first, d), 8))
            for d in range(len(shape.steps))
        ]
        enters = [self.block(f"step{d}") for d in range(len(shape.steps))]
        emits, self.done, self.stopped = self.block("emit"), self.block("done"), self.block("stop")
        self.at.branch([*enters, emits][0])
        backs, back = [], self.done
        for depth, step in enumerate(shape.steps):
            self.put_at(enters[depth])
            back = self._step(step, depth, [*enters[1:], emits][depth], back)
            backs.append(back)
        self.put_at(emits)
        if shape.mode == pipeline.FIRST:
            self._finish(pipeline.FOUND)
        else:
            self._emit()
            self._tick(is_checked=True)
            self.at.branch(backs[shape.deciding - 1] if shape.deciding > 0 else self.done)
        self.put_at(self.done)
        if shape.mode == pipeline.INTO:
            self._send_held()
        self._finish(pipeline.DONE)
        self.put_at(self.stopped)
        self.call("send", self.machine, shape.mode)
        self._finish(pipeline.STOPPED)
        self.put_at(self.entry)
        self.at.branch(body)

    def _declare_slots(self) -> None:
        """Slots that a step binds begin with nothing; all others were given."""
        for step in self.shape.steps:
            if isinstance(step, Lookup):
                bound = [slot for _, slot in step.binds]
            elif isinstance(step, Check) and step.assigned is not None:
                bound = [step.assigned]
            else:
                bound = []
            for slot in bound:
                if slot not in self.slots:
                    self.slots[slot] = self.variable()

    def _finish(self, status: int) -> None:
        ticks = self.at.load(self.ticks)
        steps = self.load(self.machine, kernel.STEPS)
        self.store(self.machine, kernel.STEPS, self.at.add(steps, ticks))
        self.store(self.result, 0, self.number(status))
        self.at.ret(ir.Constant(HALF, 0))

    def _tick(self, is_checked: bool) -> None:
        ticks = self.plus(self.at.load(self.ticks), 1)
        self.at.store(ticks, self.ticks)
        if is_checked:
            look, onwards = self.block("limits"), self.block("within")
            is_due = self.is_("==", self.at.and_(ticks, self.number(int(pipeline.TICKS))), 0)
            self.at.cbranch(is_due, look, onwards)
            self.put_at(look)
            is_over = self.call("is_over", self.machine, self.target, self.shape.mode)
            self.at.cbranch(self.is_("==", is_over, 1), self.stopped, onwards)
            self.put_at(onwards)

    def _send_held(self) -> None:
        send, sent = self.block("send"), self.block("sent")
        held = self.load(self.machine, kernel.HELD)
        self.at.cbranch(self.is_(">", held, 0), send, sent)
        self.put_at(send)
        self.call("send", self.machine, self.shape.mode)
        self.at.branch(sent)
        self.put_at(sent)

    def _emit(self) -> None:
        """Make a row of what is bound, and hold it, or put it where memory is near."""
        mode = self.shape.mode
        scratch = self.load(self.machine, kernel.SCRATCH)
        held = self.load(self.machine, kernel.HELD)
        row = self.plus(
            self.plus(scratch, 8 * int(pipeline.HELD_AT)), self.times(held, 8 * pipeline.HELD_ROW)
        )
        words = self.plus(row, 8 * pipeline.H_WORDS)
        outputs = self.plus(self.start, 8 * (pipeline.PIPELINE_HEADER + len(self.shape.steps)))
        emitted = [
            self.value(slot, outputs, 2 * i + 1) for i, slot in enumerate(self.shape.outputs)
        ]
        near, far, out = self.block("near"), self.block("far"), self.block("emitted")
        if self.shape.is_once and mode == pipeline.INTO:
            self._list(emitted, words, out)
        state = self.hash_of(emitted)
        relation = self.target
        if mode == pipeline.SUSPECT:
            relation = self.load(self.target, pipeline.RELATION)
        for i, word in enumerate(emitted):
            self.store(words, i, word)
        capacity = self.load(relation, kernel.CAPACITY)
        self.at.cbranch(self.is_("<", capacity, int(pipeline.LARGE)), near, far)
        self.put_at(near)
        self.call("put", self.machine, mode, self.target, words, state, self.rank)
        self.at.branch(out)
        self.put_at(far)
        mask = self.load(relation, kernel.MASK)
        self.prefetch(self._half_address(self.load(relation, kernel.HASH), state, mask))
        self.store(row, pipeline.H_TARGET, self.target)
        self.store(row, pipeline.H_RANK, self.rank)
        self.store(row, pipeline.H_HASH, state)
        held = self.plus(held, 1)
        self.store(self.machine, kernel.HELD, held)
        full = self.block("full")
        self.at.cbranch(self.is_("==", held, int(pipeline.HANDFUL)), full, out)
        self.put_at(full)
        self.call("send", self.machine, mode)
        self.at.branch(out)
        self.put_at(out)

    def _list(self, emitted: list[Value], words: Value, out: Block) -> None:
        """If rows are listed, put one at the end and go there."""
        listed, room, full, hashed = (
            self.block(name) for name in ("list", "room", "no_room", "hashed")
        )
        is_list = self.load(self.machine, kernel.IS_LIST)
        self.at.cbranch(self.is_("==", is_list, 1), listed, hashed)
        self.put_at(listed)
        end = self.load(self.target, kernel.END)
        is_full = self.is_("==", end, self.load(self.target, kernel.ROOM))
        self.at.cbranch(is_full, full, room)
        self.put_at(full)
        for i, word in enumerate(emitted):
            self.store(words, i, word)
        self.call("append", self.machine, self.target, words)
        self.at.branch(out)
        self.put_at(room)
        row = self.row(self.target, end, len(emitted))
        stamp = self.load(self.machine, kernel.CLOCK)
        live = self.load(self.target, kernel.LIVE)
        for i, word in enumerate(emitted):
            self.store(row, i, word)
        self.store(row, kernel.STAMP, stamp)
        self.store(self.machine, kernel.CLOCK, self.plus(stamp, 1))
        self.store(self.target, kernel.END, self.plus(end, 1))
        self.store(self.target, kernel.LIVE, self.plus(live, 1))
        self.at.branch(out)
        self.put_at(hashed)

    def _half_address(self, base: Value, state: Value, mask: Value) -> Value:
        return self.plus(base, self.times(self.at.and_(state, mask), 4))

    # --- steps: each answers where to go when a deeper one has nothing more

    def _step(
        self, step: Lookup | Check | Comparison, depth: int, onwards: Block, back: Block
    ) -> Block:
        if isinstance(step, Comparison):
            self._compare(step, depth, onwards, back)
        elif isinstance(step, Check):
            self._check(step, depth, onwards, back)
        elif step.mode == pipeline.BY_ROW:
            self._look_for_row(step, depth, onwards, back)
        elif step.operation == pipeline.ABSENT:
            self._walk(step, depth, back, onwards)
        else:
            return self._walk(step, depth, onwards, back)
        return back

    def _compare(self, step: Comparison, depth: int, onwards: Block, back: Block) -> None:
        address = self.step_address[depth]()

        def side(slot: int | None, which: int) -> Value:
            expression = self.plus(self.code, self.times(self.load(address, which), 8))
            return self.value(slot, expression, 1)

        left, right = side(step.left, 3), side(step.right, 4)
        if step.operator > 1:
            self.go_if(self.is_("==", left, int(kernel.NULL)), back)
            self.go_if(self.is_("==", right, int(kernel.NULL)), back)
        operator = ("==", "!=", "<", "<=", ">", ">=")[step.operator]
        self.at.cbranch(self.is_(operator, left, right), onwards, back)

    def _check(self, step: Check, depth: int, onwards: Block, back: Block) -> None:
        slots = self._slots_address()
        for slot in step.reads:
            self.store(slots, slot, self.at.load(self.slot(slot)))
        name = _CHECKED_BY[step.operation]
        answer = self.call(name, self.machine, self.code, self.step_address[depth]())
        if step.assigned is not None:
            self.at.store(self.load(self._slots_address(), step.assigned), self.slot(step.assigned))
        self.at.cbranch(self.is_("==", answer, 1), onwards, back)

    def _mark(self, step: Lookup) -> Value:
        return self.load(self.marks, pipeline.VARIANT * step.occurrence + 1)

    def _look_for_row(self, step: Lookup, depth: int, onwards: Block, back: Block) -> None:
        """A match or absent step whose columns all have values."""
        is_match = step.operation == pipeline.MATCH
        yes, no = (onwards, back) if is_match else (back, onwards)
        if is_match:
            self._tick(is_checked=False)
        address = self.step_address[depth]()
        words = self.key_words(step, address)
        window = step.window if is_match else pipeline.ALL
        rest = self.block("plus")
        if not (step.is_overlay and window == pipeline.NEW):
            stored = self.load(address, pipeline.STORED)
            row = self.find(stored, words)
            self.go_if(self.is_("<", row, 0), rest)
            self.go_unless(self.is_("<", row, self.load(stored, kernel.VISIBLE)), rest)
            if window != pipeline.ALL and not step.is_overlay:
                operator = ">=" if window == pipeline.NEW else "<"
                self.go_unless(self.is_(operator, row, self._mark(step)), rest)
            if step.is_ranked:
                stamp = self.load(self.row(stored, row, step.arity), -1)
                self._go_unless_older(stamp, no)
            elif step.has_minus:
                minus = self.load(address, pipeline.MINUS)
                self.go_if(self.is_("==", self.load(minus, kernel.LIVE), 0), yes)
                self.go_unless(self.is_("<", self.find(minus, words), 0), rest)
            self.at.branch(yes)
        else:
            self.at.branch(rest)
        self.put_at(rest)
        if step.has_plus:
            plus = self.load(address, pipeline.PLUS)
            self.go_if(self.is_("==", self.load(plus, kernel.LIVE), 0), no)
            row = self.find(plus, words)
            self.go_if(self.is_("<", row, 0), no)
            self.go_unless(self.is_("<", row, self.load(plus, kernel.VISIBLE)), no)
            if window != pipeline.ALL:
                operator = ">=" if window == pipeline.NEW else "<"
                self.go_unless(self.is_(operator, row, self._mark(step)), no)
            self.at.branch(yes)
        else:
            self.at.branch(no)

    def _go_unless_older(self, stamp: Value, block: Block) -> None:
        """Go there with a row that a ranked deletion took, or that is not older."""
        gone = self.at.and_(stamp, self.number(int(pipeline.GONE)))
        self.go_if(self.is_("!=", gone, 0), block)
        younger, older = self.block("younger"), self.block("older")
        rank = self.at.and_(stamp, self.number(int(pipeline.RANK)))
        self.at.cbranch(self.is_("<", rank, self.rank), older, younger)
        self.put_at(younger)
        self.store(self.machine, kernel.PASSED_OVER, self.number(1))
        self.at.branch(block)
        self.put_at(older)

    def _walk(self, step: Lookup, depth: int, onwards: Block, back: Block) -> Block:
        return _Walk(self, step, depth, onwards, back).write()


class _Walk:
    """A step that walks over the rows of a relation, then over those of `plus`."""

    def __init__(
        self, writer: _Writer, step: Lookup, depth: int, onwards: Block, back: Block
    ) -> None:
        self.w, self.step, self.depth = writer, step, depth
        self.onwards, self.back = onwards, back
        self.is_match = step.operation == pipeline.MATCH
        self.window = step.window if self.is_match else pipeline.ALL
        self.relation, self.where, self.start, self.end = (writer.variable() for _ in range(4))
        self.index, self.taken, self.filled, self.most = (writer.variable() for _ in range(4))
        self.phase = writer.variable()
        with writer.at.goto_block(writer.entry):
            writer.at.position_at_start(writer.entry)
            size = ir.Constant(HALF, int(pipeline.HANDFUL))
            self.rows = writer.at.alloca(WORD, size)
            self.places = writer.at.alloca(WORD, size)

    @property
    def is_indexed(self) -> bool:
        return self.step.mode == pipeline.BY_INDEX

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
        if step.is_overlay and self.window == pipeline.NEW:
            w.at.branch(self.exhausted)
        else:
            self._open(pipeline.STORED, is_marked=not step.is_overlay)
        if self.open_plus is not None:
            w.put_at(self.open_plus)
            w.at.store(w.number(1), self.phase)
            self._open(pipeline.PLUS, is_marked=True)
        self._write_opened()
        self._write_fill()
        self._write_collect()
        self._write_filter()
        self._write_next()
        self._write_exhausted()
        return self.next

    def _open(self, which: int, is_marked: bool) -> None:
        """Where the candidates begin and end."""
        w = self.w
        relation = w.load(self.address, which)
        w.at.store(relation, self.relation)
        start, end = w.number(0), w.load(relation, kernel.VISIBLE)
        if self.window != pipeline.ALL and is_marked:
            mark = w._mark(self.step)
            if self.window == pipeline.NEW:
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
            number = w.load(self.address, pipeline.INDEX_NUMBER)
            if self.step.has_plus:
                other = w.load(self.address, pipeline.PLUS_INDEX)
                is_stored = w.is_("==", w.at.load(self.phase), 0)
                number = w.at.select(is_stored, number, other)
            index = w.at.add(w.load(relation, kernel.INDEX), w.times(number, kernel.INDEX_BYTES))
            w.at.store(index, self.index)
            bucket = w.at.and_(self.state, w.load(index, kernel.HEADS_MASK))
            first = w.plus(w.load_half(w.load(index, kernel.HEADS), bucket), -1)
        else:
            first = w.plus(w.at.load(self.end), -1)
        w.at.store(first, self.where)
        w.at.store(w.number(int(pipeline.HANDFUL_FIRST)), self.most)
        w.at.branch(self.fill)

    def _write_fill(self) -> None:
        w = self.w
        w.put_at(self.fill)
        is_over = w.is_("<", w.at.load(self.where), 0)
        w.at.cbranch(is_over, self.exhausted, self.collect)

    def _write_collect(self) -> None:
        """Take the next rows, by links or one after the other, and ask for their memory."""
        w = self.w
        w.put_at(self.collect)
        relation = w.at.load(self.relation)
        rows = w.plus(w.load(relation, kernel.ROWS), 8)
        links = w.load(w.at.load(self.index), kernel.LINKS) if self.is_indexed else None
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
            after = w.plus(w.at.lshr(link, w.number(32)), -1)
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
        is_more = w.is_("<", doubled, int(pipeline.HANDFUL))
        w.at.store(w.at.select(is_more, doubled, w.number(int(pipeline.HANDFUL))), self.most)
        self.collected = counted

    def _write_filter(self) -> None:
        """Keep the rows that may be read and have the key; ask for what the next step needs."""
        w, step = self.w, self.step
        relation = w.at.load(self.relation)
        rows = w.plus(w.load(relation, kernel.ROWS), 8)
        minus = None
        if step.has_minus and not step.is_ranked:
            minus = w.load(self.address, pipeline.MINUS)
            is_some = w.is_("!=", w.load(minus, kernel.LIVE), 0)
            if step.has_plus:
                is_some = w.at.and_(is_some, w.is_("==", w.at.load(self.phase), 0))
        ahead = self._ahead()
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
            w.go_unless(w._are_same(words, expected), look)
        if step.is_ranked:
            if step.has_plus:
                ranked, unranked = w.block("ranked"), w.block("unranked")
                w.at.cbranch(w.is_("==", w.at.load(self.phase), 0), ranked, unranked)
                w.put_at(ranked)
                w._go_unless_older(stamp, look)
                w.at.branch(unranked)
                w.put_at(unranked)
            else:
                w._go_unless_older(stamp, look)
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

    def _ahead(self) -> _Ahead | None:
        """What the next step looks up, and whether its memory is to be asked for."""
        w, steps = self.w, self.w.shape.steps
        if not self.is_match or self.depth + 1 == len(steps):
            return None
        step = steps[self.depth + 1]
        if not isinstance(step, Lookup) or step.mode == pipeline.SCAN:
            return None
        address = w.step_address[self.depth + 1]()
        relation = w.load(address, pipeline.STORED)
        is_large = w.is_(">=", w.load(relation, kernel.CAPACITY), int(pipeline.LARGE))
        return _Ahead(step, address, relation, w.at.and_(is_large, w.is_(">", self.collected, 1)))

    def _ask_for(self, ahead: _Ahead, bound: Mapping[int, Value], number: Value) -> None:
        w = self.w
        ask, asked = w.block("ask"), w.block("asked")
        w.at.cbranch(ahead.is_far, ask, asked)
        w.put_at(ask)
        words = w.key_words(ahead.step, ahead.address, bound)
        if ahead.step.mode == pipeline.BY_INDEX:
            index = self._index_of(ahead)
            base, mask = w.load(index, kernel.HEADS), w.load(index, kernel.HEADS_MASK)
            state = w.index_hash(ahead.step, words)
        else:
            base, mask = w.load(ahead.relation, kernel.HASH), w.load(ahead.relation, kernel.MASK)
            state = w.hash_of(words)
        place = w._half_address(base, state, mask)
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

        if ahead.step.mode == pipeline.BY_INDEX:
            index = self._index_of(ahead)
            links = w.load(index, kernel.LINKS)

            def ask_for_link(link: Value) -> None:
                w.prefetch(w.plus(links, w.times(link, 8)))

            def ask_for_both(number: Value) -> None:
                ask_for_link(number)
                ask_for_row(number)

            side_by_side, elsewhere = w.block("sorted"), w.block("unsorted")
            is_sorted = w.is_("==", w.load(index, kernel.IS_SORTED), 1)
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
        which = self.w.load(ahead.address, pipeline.INDEX_NUMBER)
        first = self.w.load(ahead.relation, kernel.INDEX)
        return self.w.plus(first, self.w.times(which, kernel.INDEX_BYTES))

    def _write_next(self) -> None:
        """Bind the next row of the handful and go on, or take the next handful."""
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
            w._tick(is_checked=True)
        w.at.branch(self.onwards)

    def _write_exhausted(self) -> None:
        w = self.w
        w.put_at(self.exhausted)
        if self.open_plus is not None:
            plus = w.load(self.address, pipeline.PLUS)
            has_more = w.at.and_(
                w.is_("==", w.at.load(self.phase), 0), w.is_("!=", w.load(plus, kernel.LIVE), 0)
            )
            w.go_if(has_more, self.open_plus)
        if self.is_match:
            w._tick(is_checked=False)
        w.at.branch(self.back)


def _linked_row(w: _Writer, link: Value) -> Value:
    return w.at.and_(link, w.number(0xFFFFFFFF))


@dataclass
class _Ahead:
    step: Lookup
    address: Value
    relation: Value
    is_far: Value
