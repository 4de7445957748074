"""A pipeline as machine code: the loops of `kernels/pipeline.py`, with everything fixed that is.

What is fixed is the *shape* of a pipeline: its steps, which columns are keys and which are bound,
how wide rows are. Relations, indexes, constants and marks are read from the pipeline's code when
it runs, so that one function serves all pipelines of a shape. Slots become registers, tests become
jumps, and nothing is decoded.

The function does step for step what the interpreter does: rows come in the same order, and as many
steps are counted, so a deletion is aborted at the same point. Its form is that of a function
compiled by numba: it returns a status, and an error of a kernel that it calls is passed on.

    step d:   enter ─▶ open ─▶ fill ─▶ next ─▶ step d + 1 … ─▶ emit
                                ▲       │ ▲                      │
                 step d - 1 ◀───┴───────┘ └──────── back ◀───────┘
"""

from __future__ import annotations

from llvmlite import ir

from deltalog.engines.embedded.kernels import layout
from deltalog.engines.embedded.llvm_shapes import Check, Comparison, Lookup, Shape
from deltalog.engines.embedded.llvm_walk import Walk
from deltalog.engines.embedded.llvm_writer import HALF, WORD, Block, Value, Writer

_CHECKED_BY = {layout.TEST: "test_holds", layout.ASSIGN: "assign_slot", layout.SOME: "is_some"}


def function_text(name: str, shape: Shape) -> str:
    """The function for a shape, in the language of LLVM."""
    module = ir.Module()
    kind = ir.FunctionType(HALF, [WORD] * 8)
    PipelineWriter(ir.Function(module, kind, name), shape).write()
    return str(module)


class PipelineWriter(Writer):
    """The function of a whole pipeline."""

    def write(self) -> None:
        shape = self.shape
        body = self.block("body")
        self.put_at(body)
        self._declare_slots()
        first = self.plus(self.start, 8 * layout.PIPELINE_HEADER)
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
            back = self._write_step(step, depth, [*enters[1:], emits][depth], back)
            backs.append(back)
        self.put_at(emits)
        if shape.mode == layout.FIRST:
            self._finish_function(layout.FOUND)
        else:
            self._emit_row()
            self.tick(is_checked=True)
            self.at.branch(backs[shape.deciding - 1] if shape.deciding > 0 else self.done)
        self.put_at(self.done)
        if shape.mode == layout.INTO:
            self._send_held()
        self._finish_function(layout.DONE)
        self.put_at(self.stopped)
        self.call("send_rows", self.machine, shape.mode)
        self._finish_function(layout.STOPPED)
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

    def _finish_function(self, status: int) -> None:
        ticks = self.at.load(self.ticks)
        steps = self.load(self.machine, layout.STEPS)
        self.store(self.machine, layout.STEPS, self.at.add(steps, ticks))
        self.store(self.result, 0, self.number(status))
        self.at.ret(ir.Constant(HALF, 0))

    def tick(self, is_checked: bool) -> None:
        ticks = self.plus(self.at.load(self.ticks), 1)
        self.at.store(ticks, self.ticks)
        if is_checked:
            look, onwards = self.block("limits"), self.block("within")
            is_due = self.is_("==", self.at.and_(ticks, self.number(int(layout.TICKS))), 0)
            self.at.cbranch(is_due, look, onwards)
            self.put_at(look)
            is_over = self.call("is_over", self.machine, self.target, self.shape.mode)
            self.at.cbranch(self.is_("==", is_over, 1), self.stopped, onwards)
            self.put_at(onwards)

    def _send_held(self) -> None:
        send, sent = self.block("send"), self.block("sent")
        held = self.load(self.machine, layout.HELD)
        self.at.cbranch(self.is_(">", held, 0), send, sent)
        self.put_at(send)
        self.call("send_rows", self.machine, self.shape.mode)
        self.at.branch(sent)
        self.put_at(sent)

    def _emit_row(self) -> None:
        """Make a row of what is bound, and hold it, or put it where memory is near."""
        mode = self.shape.mode
        scratch = self.load(self.machine, layout.SCRATCH)
        held = self.load(self.machine, layout.HELD)
        row = self.plus(
            self.plus(scratch, 8 * int(layout.HELD_AT)), self.times(held, 8 * layout.HELD_ROW)
        )
        words = self.plus(row, 8 * layout.H_WORDS)
        outputs = self.plus(self.start, 8 * (layout.PIPELINE_HEADER + len(self.shape.steps)))
        emitted = [
            self.value(slot, outputs, layout.VALUE_WORDS * i + layout.VALUE_WORD)
            for i, slot in enumerate(self.shape.outputs)
        ]
        near, far, out = self.block("near"), self.block("far"), self.block("emitted")
        if self.shape.is_once and mode == layout.INTO:
            self._append_row(emitted, words, out)
        state = self.hash_of(emitted)
        relation = self.target
        if mode == layout.SUSPECT:
            relation = self.load(self.target, layout.RELATION)
        for i, word in enumerate(emitted):
            self.store(words, i, word)
        capacity = self.load(relation, layout.CAPACITY)
        self.at.cbranch(self.is_("<", capacity, int(layout.LARGE)), near, far)
        self.put_at(near)
        self.call("put_row", self.machine, mode, self.target, words, state, self.rank)
        self.at.branch(out)
        self.put_at(far)
        mask = self.load(relation, layout.MASK)
        self.prefetch(self.half_address(self.load(relation, layout.HASH), state, mask))
        self.store(row, layout.H_TARGET, self.target)
        self.store(row, layout.H_RANK, self.rank)
        self.store(row, layout.H_HASH, state)
        held = self.plus(held, 1)
        self.store(self.machine, layout.HELD, held)
        full = self.block("full")
        self.at.cbranch(self.is_("==", held, int(layout.BATCH)), full, out)
        self.put_at(full)
        self.call("send_rows", self.machine, mode)
        self.at.branch(out)
        self.put_at(out)

    def _append_row(self, emitted: list[Value], words: Value, out: Block) -> None:
        """If rows are listed, put one at the end and go there."""
        listed, room, full, hashed = (
            self.block(name) for name in ("list", "room", "no_room", "hashed")
        )
        is_list = self.load(self.machine, layout.IS_APPENDING)
        self.at.cbranch(self.is_("==", is_list, 1), listed, hashed)
        self.put_at(listed)
        end = self.load(self.target, layout.END)
        is_full = self.is_("==", end, self.load(self.target, layout.ROOM))
        self.at.cbranch(is_full, full, room)
        self.put_at(full)
        for i, word in enumerate(emitted):
            self.store(words, i, word)
        self.call("append_row", self.machine, self.target, words)
        self.at.branch(out)
        self.put_at(room)
        row = self.row(self.target, end, len(emitted))
        stamp = self.load(self.machine, layout.CLOCK)
        live = self.load(self.target, layout.LIVE)
        for i, word in enumerate(emitted):
            self.store(row, i, word)
        self.store(row, layout.STAMP, stamp)
        self.store(self.machine, layout.CLOCK, self.plus(stamp, 1))
        self.store(self.target, layout.END, self.plus(end, 1))
        self.store(self.target, layout.LIVE, self.plus(live, 1))
        self.at.branch(out)
        self.put_at(hashed)

    def half_address(self, base: Value, state: Value, mask: Value) -> Value:
        return self.plus(base, self.times(self.at.and_(state, mask), 4))

    # --- steps: each returns where to go when a deeper one has nothing more

    def _write_step(
        self, step: Lookup | Check | Comparison, depth: int, onwards: Block, back: Block
    ) -> Block:
        if isinstance(step, Comparison):
            self._write_comparison(step, depth, onwards, back)
        elif isinstance(step, Check):
            self._write_check(step, depth, onwards, back)
        elif step.mode == layout.BY_ROW:
            self._look_for_row(step, depth, onwards, back)
        elif step.operation == layout.ABSENT:
            self._write_walk(step, depth, back, onwards)
        else:
            return self._write_walk(step, depth, onwards, back)
        return back

    def _write_comparison(self, step: Comparison, depth: int, onwards: Block, back: Block) -> None:
        address = self.step_address[depth]()

        def side(slot: int | None, which: int) -> Value:
            expression = self.plus(self.code, self.times(self.load(address, which), 8))
            return self.value(slot, expression, 1)

        left, right = side(step.left, 3), side(step.right, 4)
        if step.operator > 1:
            self.go_if(self.is_("==", left, int(layout.NULL)), back)
            self.go_if(self.is_("==", right, int(layout.NULL)), back)
        operator = ("==", "!=", "<", "<=", ">", ">=")[step.operator]
        self.at.cbranch(self.is_(operator, left, right), onwards, back)

    def _write_check(self, step: Check, depth: int, onwards: Block, back: Block) -> None:
        slots = self._slots_address()
        for slot in step.reads:
            self.store(slots, slot, self.at.load(self.slot(slot)))
        name = _CHECKED_BY[step.operation]
        holds = self.call(name, self.machine, self.code, self.step_address[depth]())
        if step.assigned is not None:
            self.at.store(self.load(self._slots_address(), step.assigned), self.slot(step.assigned))
        self.at.cbranch(self.is_("==", holds, 1), onwards, back)

    def mark(self, step: Lookup) -> Value:
        return self.load(self.marks, layout.VARIANT * step.occurrence + layout.VARIANT_MARK)

    def _look_for_row(self, step: Lookup, depth: int, onwards: Block, back: Block) -> None:
        """A match or absent step whose columns all have values."""
        is_match = step.operation == layout.MATCH
        yes, no = (onwards, back) if is_match else (back, onwards)
        if is_match:
            self.tick(is_checked=False)
        address = self.step_address[depth]()
        words = self.key_words(step, address)
        window = step.window if is_match else layout.ALL
        rest = self.block("plus")
        if not (step.is_overlay and window == layout.NEW):
            stored = self.load(address, layout.STORED)
            row = self.find(stored, words)
            self.go_if(self.is_("<", row, 0), rest)
            self.go_unless(self.is_("<", row, self.load(stored, layout.VISIBLE)), rest)
            if window != layout.ALL and not step.is_overlay:
                operator = ">=" if window == layout.NEW else "<"
                self.go_unless(self.is_(operator, row, self.mark(step)), rest)
            if step.is_ranked:
                stamp = self.load(self.row(stored, row, step.arity), -1)
                self.go_unless_older(stamp, no)
            elif step.has_minus:
                minus = self.load(address, layout.MINUS)
                self.go_if(self.is_("==", self.load(minus, layout.LIVE), 0), yes)
                self.go_unless(self.is_("<", self.find(minus, words), 0), rest)
            self.at.branch(yes)
        else:
            self.at.branch(rest)
        self.put_at(rest)
        if step.has_plus:
            plus = self.load(address, layout.PLUS)
            self.go_if(self.is_("==", self.load(plus, layout.LIVE), 0), no)
            row = self.find(plus, words)
            self.go_if(self.is_("<", row, 0), no)
            self.go_unless(self.is_("<", row, self.load(plus, layout.VISIBLE)), no)
            if window != layout.ALL:
                operator = ">=" if window == layout.NEW else "<"
                self.go_unless(self.is_(operator, row, self.mark(step)), no)
            self.at.branch(yes)
        else:
            self.at.branch(no)

    def go_unless_older(self, stamp: Value, block: Block) -> None:
        """Go there with a row that a ranked deletion took, or that is not older."""
        deleted = self.at.and_(stamp, self.number(int(layout.GONE)))
        self.go_if(self.is_("!=", deleted, 0), block)
        younger, older = self.block("younger"), self.block("older")
        rank = self.at.and_(stamp, self.number(int(layout.RANK)))
        self.at.cbranch(self.is_("<", rank, self.rank), older, younger)
        self.put_at(younger)
        self.store(self.machine, layout.PASSED_OVER, self.number(1))
        self.at.branch(block)
        self.put_at(older)

    def _write_walk(self, step: Lookup, depth: int, onwards: Block, back: Block) -> Block:
        return Walk(self, step, depth, onwards, back).write()
