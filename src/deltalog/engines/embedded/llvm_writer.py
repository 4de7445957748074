"""Writing a function for LLVM: words, calls of kernels, rows of relations, slots of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from llvmlite import ir

from deltalog.engines.embedded.kernels import layout
from deltalog.engines.embedded.llvm_shapes import Lookup, Shape

Value = Any
Block = Any
Int = np.integer[Any]

WORD = ir.IntType(64)
HALF = ir.IntType(32)
CALLED = ("put_row", "send_rows", "append_row", "is_over", "test_holds", "assign_slot", "is_some")
"""The kernels that are called, in the order in which the machine has their addresses."""


class Writer:
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
        self.returned = self.at.alloca(WORD)

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

    def _pointer_to_word(self, address: Value, index: int | Value, kind: Any) -> Value:
        base = self.at.inttoptr(address, kind.as_pointer())
        if isinstance(index, int | np.integer):
            index = self.number(index)
        return self.at.gep(base, [index])

    def load(self, address: Value, index: int | Value = 0) -> Value:
        return self.at.load(self._pointer_to_word(address, index, WORD))

    def load_half(self, address: Value, index: int | Value = 0) -> Value:
        return self.at.sext(self.at.load(self._pointer_to_word(address, index, HALF)), WORD)

    def store(self, address: Value, index: int | Value, value: Value) -> None:
        self.at.store(value, self._pointer_to_word(address, index, WORD))

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
        """Call a kernel that takes words and returns one; an error ends this function too."""
        words = [self.number(a) if isinstance(a, int) else a for a in arguments]
        kind = ir.FunctionType(HALF, [WORD] * (2 + len(words)))
        address = self.load(self.machine, layout.CALLED + CALLED.index(name))
        returned = self.at.ptrtoint(self.returned, WORD)
        callee = self.at.inttoptr(address, kind.as_pointer())
        status = self.at.call(callee, [returned, self.failure, *words])
        failed, went_on = self.block("failed"), self.block("called")
        self.at.cbranch(self.at.icmp_signed("==", status, ir.Constant(HALF, 0)), went_on, failed)
        self.put_at(failed)
        self.at.ret(status)
        self.put_at(went_on)
        return self.at.load(self.returned)

    # --- relations

    def mixed(self, state: Value, word: Value) -> Value:
        multiplied = self.at.mul(self.at.xor(state, word), self.number(layout.HASH_MULTIPLIER))
        shifted = self.at.ashr(multiplied, self.number(layout.HASH_SHIFT))
        high = self.at.and_(shifted, self.number(layout.HASH_SHIFTED_BITS))
        return self.at.xor(multiplied, high)

    def hash_of(self, words: Iterable[Value]) -> Value:
        state = self.number(0)
        for word in words:
            state = self.mixed(state, word)
        return state

    def row(self, relation: Value, row: Value, arity: int) -> Value:
        """Where the words of a row begin."""
        first = self.plus(self.load(relation, layout.ROWS), 8)
        return self.plus(first, self.times(row, 8 * (arity + 1)))

    def find(self, relation: Value, words: list[Value]) -> Value:
        """The position of a row, or -1."""
        state = self.hash_of(words)
        slots, mask = self.load(relation, layout.HASH), self.load(relation, layout.MASK)
        rows = self.plus(self.load(relation, layout.ROWS), 8)
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
        self.at.cbranch(self.are_same(address, enumerate(words)), same, onwards)
        self.put_at(same)
        is_dead = self.is_("<", self.load(address, layout.STAMP), 0)
        position = self.at.select(is_dead, self.number(0), found)
        self.at.branch(out)
        self.put_at(onwards)
        following = self.at.and_(self.plus(slot, 1), mask)
        slot.add_incoming(following, onwards)
        self.at.branch(look)
        self.put_at(out)
        number = self.at.phi(WORD)
        number.add_incoming(self.number(0), look)
        number.add_incoming(position, same)
        return self.plus(number, -1)

    def are_same(self, address: Value, expected: Iterable[tuple[int, Value]]) -> Value:
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
        scratch = self.load(self.machine, layout.SCRATCH)
        return self.plus(scratch, 8 * layout.SLOTS_AT)

    def value(self, slot: int | None, code: Value, at: int) -> Value:
        """The word of a slot; without one, a constant, from its place in the code."""
        return self.load(code, at) if slot is None else self.at.load(self.slot(slot))

    def key_words(
        self, step: Lookup, address: Value, known: Mapping[int, Value] | None = None
    ) -> list[Value]:
        """The key of a step; `known` are slots that the current row would bind."""
        words = []
        first = layout.HEADER + layout.KEY_VALUE + layout.VALUE_WORD
        for number, (_, slot) in enumerate(step.keys):
            if known is not None and slot is not None and slot in known:
                words.append(known[slot])
            else:
                words.append(self.value(slot, address, first + layout.KEY_WORDS * number))
        return words

    def index_hash(self, step: Lookup, words: list[Value]) -> Value:
        keys = zip(step.keys, words, strict=True)
        return self.hash_of(w for (column, _), w in keys if column < layout.INDEXED_COLUMNS)
