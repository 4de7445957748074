"""The interpreter of pipelines.

See `program.py` for the form of the code. A pipeline is run by backtracking: a match walks its
rows, binds slots and goes one step deeper; a test goes deeper or back. Rows that a round derives
are appended behind the visible end of their relation, so no rule of the round sees them. Rows that
go into a large relation, or are looked for in one, are held until there is a batch of them, so that
their memory can be prefetched.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    mix_hash,
)
from deltalog.engines.embedded.kernels.indexes import (
    expect_links,
)
from deltalog.engines.embedded.kernels.layout import (
    ABSENT,
    ASKED_FOR,
    ASSIGN_SLOT,
    ASSIGN_VALUE,
    BATCH,
    BY_ROW,
    CAPACITY,
    DEADLINE,
    DECIDING,
    DONE,
    END,
    F_FILLED,
    FACTS,
    FACTS_MAX,
    FIRST,
    FOUND,
    FRAME,
    H_HASH,
    H_RANK,
    H_TARGET,
    H_WORDS,
    HALF_BYTES,
    HASH,
    HEAT,
    HELD,
    HELD_AT,
    HELD_ROW,
    HOT,
    HOT_AFTER,
    HOT_CODE,
    HOT_LOG,
    HOT_MAX,
    HOT_MODE,
    HOT_START,
    HOT_WORDS,
    INTO,
    IS_APPENDING,
    KEYS_AT,
    KEYS_MAX,
    LARGE,
    MASK,
    MATCH,
    MODE,
    NATIVE,
    ONE,
    OPERATION,
    OUTPUTS,
    PIPELINE_HEADER,
    RELATION,
    SCRATCH,
    SLOTS_AT,
    SOME,
    SOME_IS_WANTED,
    SOME_MINUS,
    SOME_PLUS,
    SOME_STORED,
    STACK_AT,
    STEPS,
    STEPS_OF,
    STOPPED,
    TEST,
    TEST_KIND,
    TEST_LEFT,
    TEST_OPERATOR,
    TEST_RIGHT,
    TICKS,
    TOTALS,
    VALUE_WORDS,
    VISIBLE,
    WORD_BYTES,
    ZERO,
)
from deltalog.engines.embedded.kernels.matching import (
    advance_row,
    fill_batch,
    has_match,
    has_visible,
    is_row_there,
    open_phase,
    prefetch_batch,
    value_at,
)
from deltalog.engines.embedded.kernels.memory import (
    call_machine_code,
    compiled,
    inlined,
    load64,
    monotonic_nanoseconds,
    prefetch_line,
    store64,
)
from deltalog.engines.embedded.kernels.relation_memory import (
    add_hashed,
    append_row,
    expect_row,
)
from deltalog.engines.embedded.kernels.scalars import (
    compare_values,
    evaluate_expression,
)
from deltalog.engines.embedded.kernels.suspects import (
    suspect_row,
)
from deltalog.engines.embedded.kernels.totals import (
    accumulate_binding,
)


@compiled
def run_pipeline(machine, code, start, mode, target, marks, rank):
    """Run the pipeline at `start`; `mode` says what becomes of every row it emits.

    One that runs often becomes machine code (`jit.py`), which does the same.
    """
    native = load64(start, NATIVE)
    if native > ASKED_FOR:
        return call_machine_code(native, machine, code, start, target, marks, rank)
    return interpret_pipeline(machine, code, start, mode, target, marks, rank)


@compiled
def note_steps(machine, code, start, mode, steps):
    """Count steps; machine code is asked for where many have been taken, if there is room."""
    store64(machine, STEPS, load64(machine, STEPS) + steps)
    heat = load64(start, HEAT) + steps
    store64(start, HEAT, heat)
    if heat > load64(machine, HOT_AFTER) and load64(start, NATIVE) == 0 and mode != TOTALS:
        number = load64(machine, HOT)
        if number < HOT_MAX:
            store64(start, NATIVE, ASKED_FOR)
            store64(machine, HOT, number + 1)
            entry = load64(machine, HOT_LOG) + 8 * HOT_WORDS * number
            store64(entry, HOT_CODE, code)
            store64(entry, HOT_START, (start - code) // WORD_BYTES)
            store64(entry, HOT_MODE, mode)


@compiled
def interpret_pipeline(machine, code, start, mode, target, marks, rank):
    scratch = load64(machine, SCRATCH)
    slots = scratch + 8 * SLOTS_AT
    steps = load64(start, STEPS_OF)
    deciding = load64(start, DECIDING)
    outputs = load64(start, OUTPUTS)
    first = start + 8 * PIPELINE_HEADER
    out_at = first + 8 * steps
    depth = np.int64(0)
    is_entering = True
    ticks = np.int64(0)
    while depth >= 0:
        if depth == steps:
            if mode == FIRST:
                note_steps(machine, code, start, mode, ticks)
                return FOUND
            emit_row(machine, mode, target, out_at, outputs, slots, rank)
            ticks += 1
            if ticks & TICKS == 0 and is_over(machine, target, mode) == 1:
                send_rows(machine, mode)
                return STOPPED
            depth = deciding - 1  # what comes after only finds the same row again
            is_entering = False
            continue
        step = code + 8 * load64(first, depth)
        operation = load64(step, OPERATION)
        goes_on = False
        if operation == MATCH and load64(step, MODE) == BY_ROW:
            if is_entering:
                keys = scratch + 8 * (KEYS_AT + KEYS_MAX * depth)
                goes_on = is_row_there(machine, step, keys, slots, marks, rank)
                ticks += 1
        elif operation == MATCH:
            frame = scratch + 8 * FRAME * depth
            keys = scratch + 8 * (KEYS_AT + KEYS_MAX * depth)
            if is_entering:
                open_phase(step, frame, keys, slots, marks, ZERO)
            goes_on = advance_row(step, frame, slots)
            while not goes_on and fill_batch(machine, step, frame, keys, slots, marks, rank):
                if load64(frame, F_FILLED) > 1 and depth + 1 < steps:
                    prefetch_batch(step, frame, slots, code + 8 * load64(first, depth + 1))
                goes_on = advance_row(step, frame, slots)
            ticks += 1
            if ticks & TICKS == 0 and is_over(machine, target, mode) == 1:
                send_rows(machine, mode)
                return STOPPED
        elif is_entering:
            if operation == ABSENT:
                frame = scratch + 8 * FRAME * depth
                keys = scratch + 8 * (KEYS_AT + KEYS_MAX * depth)
                goes_on = not has_match(machine, step, frame, keys, slots, marks)
            elif operation == TEST:
                goes_on = test_holds(machine, code, step) == 1
            elif operation == SOME:
                goes_on = is_some(machine, code, step) == 1
            else:
                goes_on = assign_slot(machine, code, step) == 1
        if goes_on:
            depth += 1
            is_entering = True
        else:
            depth -= 1
            is_entering = False
    if mode == INTO and load64(machine, HELD) > 0:
        send_rows(machine, mode)
    note_steps(machine, code, start, mode, ticks)
    return DONE


@compiled
def test_holds(machine, code, step):
    """Whether a test holds of what is in the slots."""
    scratch = load64(machine, SCRATCH)
    slots, stack = scratch + 8 * SLOTS_AT, scratch + 8 * STACK_AT
    has_left, left = evaluate_expression(code + 8 * load64(step, TEST_LEFT), slots, stack)
    if not has_left:
        return ZERO
    has_right, right = evaluate_expression(code + 8 * load64(step, TEST_RIGHT), slots, stack)
    operator, kind = load64(step, TEST_OPERATOR), load64(step, TEST_KIND)
    is_true = has_right and compare_values(machine, operator, kind, left, right)
    return ONE if is_true else ZERO


@compiled
def is_some(machine, code, step):
    """Whether a relation has rows, if it should have some; or that it has none.

    Counts decide, so neither a large relation nor its dead rows are walked: of more rows than
    `minus` has, one is not in `minus`. Otherwise there are no more than a change has. Rows behind
    the visible end may be among those that are counted.
    """
    stored, minus = load64(step, SOME_STORED), load64(step, SOME_MINUS)
    plus, is_wanted = load64(step, SOME_PLUS), load64(step, SOME_IS_WANTED) == 1
    is_there = plus != 0 and has_visible(plus, ZERO)
    return ONE if (is_there or has_visible(stored, minus)) == is_wanted else ZERO


@compiled
def assign_slot(machine, code, step):
    """Give a slot its value; returns whether there is one."""
    scratch = load64(machine, SCRATCH)
    slots, stack = scratch + 8 * SLOTS_AT, scratch + 8 * STACK_AT
    has_value, value = evaluate_expression(code + 8 * load64(step, ASSIGN_VALUE), slots, stack)
    store64(slots, load64(step, ASSIGN_SLOT), value)
    return ONE if has_value else ZERO


@inlined
def free_row(machine):
    """Where the next row to be held is written."""
    return load64(machine, SCRATCH) + 8 * (HELD_AT + HELD_ROW * load64(machine, HELD))


@inlined
def emit_row(machine, mode, target, outputs, count, slots, rank):
    """Make a row of what is bound, and hold it."""
    row = free_row(machine)
    words = row + 8 * H_WORDS
    state = np.int64(0)
    for i in range(count):
        word = value_at(outputs + 8 * VALUE_WORDS * i, slots)
        state = mix_hash(state, word)
        store64(words, i, word)
    if mode == INTO and load64(machine, IS_APPENDING) == 1:
        append_row(machine, target, words)
    elif mode == TOTALS:
        accumulate_binding(machine, target, words)
    else:
        hold_row(machine, mode, target, row, state, rank)


@inlined
def hold_row(machine, mode, target, row, state, rank):
    """Hold a free row that has been filled, and ask for the memory where it will be looked for.

    Where memory is near, it is put at once.
    """
    relation = target if mode == INTO else load64(target, RELATION)
    if load64(relation, CAPACITY) < LARGE:
        put_row(machine, mode, target, row + 8 * H_WORDS, state, rank)
        return
    prefetch_line(load64(relation, HASH) + HALF_BYTES * (state & load64(relation, MASK)))
    store64(row, H_TARGET, target)
    store64(row, H_RANK, rank)
    store64(row, H_HASH, state)
    held = load64(machine, HELD) + 1
    store64(machine, HELD, held)
    if held == BATCH:
        send_rows(machine, mode)


@compiled
def send_rows(machine, mode):
    """Put the rows that are held, in the order in which they came."""
    held = load64(machine, HELD)
    store64(machine, HELD, 0)
    rows = load64(machine, SCRATCH) + 8 * HELD_AT
    if held > 1:
        for i in range(held):
            row = rows + 8 * HELD_ROW * i
            target = load64(row, H_TARGET)
            relation = target if mode == INTO else load64(target, RELATION)
            expect_row(relation, load64(row, H_HASH))
            if mode == INTO:
                expect_links(relation, row + 8 * H_WORDS)
    for i in range(held):
        row = rows + 8 * HELD_ROW * i
        target, state = load64(row, H_TARGET), load64(row, H_HASH)
        put_row(machine, mode, target, row + 8 * H_WORDS, state, load64(row, H_RANK))
    return ZERO


@compiled
def put_row(machine, mode, target, words, state, rank):
    """Add or suspect a row that was emitted."""
    if mode == INTO:
        add_hashed(machine, target, words, state)
    else:
        suspect_row(machine, target, words, state, rank)
    return ZERO


@compiled
def is_over(machine, target, mode):
    """Whether a limit is reached in the middle of a round: time, or facts of one rule."""
    if monotonic_nanoseconds() > load64(machine, DEADLINE):
        return ONE
    if mode != INTO:
        return ZERO
    made = load64(target, END) - load64(target, VISIBLE)
    return ONE if load64(machine, FACTS) + made > load64(machine, FACTS_MAX) else ZERO
