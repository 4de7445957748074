"""The interpreter for pipelines; see `program.py` for the form of a program."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernel import (
    ABSENT,
    ARITY,
    BY_INDEX,
    BY_ROW,
    CAPACITY,
    DONE,
    END,
    FULL,
    HEADS,
    HEADS_MASK,
    INDEX0,
    INDEX_WIDTH,
    MATCH,
    NEW,
    NEXT,
    OLD,
    ROWS,
    STAMPS,
    TEST,
    append,
    compare,
    evaluate,
    find,
    key_hash,
)
from deltalog.engines.embedded.memory import compiled, load32, load64

# Positions inside a match or absent step.
(
    OPERATION,
    MODE,
    STORED,
    MINUS,
    PLUS,
    IS_OVERLAY,
    WINDOW,
    OCCURRENCE,
    IS_RANKED,
    INDEX,
    PLUS_INDEX,
    KEYS,
    BINDS,
    SAMES,
) = range(14)
HEADER = 14


@compiled
def key_value(code, at, slots):
    return slots[code[at + 2]] if code[at + 1] == 0 else code[at + 2]


@compiled
def is_in(table, relation, other, row, buffer):
    """Whether a row of one relation is also in another of the same shape."""
    arity = table[relation, ARITY]
    for column in range(arity):
        buffer[column] = load64(table[relation, ROWS], row * arity + column)
    return find(table, other, buffer) >= 0


@compiled
def fits(table, code, at, relation, row, slots):
    """Whether a row has the values of the step's key columns."""
    arity = table[relation, ARITY]
    rows = table[relation, ROWS]
    position = at + HEADER
    for _ in range(code[at + KEYS]):
        if load64(rows, row * arity + code[position]) != key_value(code, position, slots):
            return False
        position += 3
    return True


@compiled
def first_row(table, code, at, relation, index, slots, start, end, buffer):
    """Where the walk over the candidates of a step begins."""
    mode = code[at + MODE]
    count = code[at + KEYS]
    if mode in (BY_ROW, BY_INDEX):
        position = at + HEADER
        for i in range(count):
            buffer[i] = key_value(code, position, slots)
            position += 3
    if mode == BY_ROW:
        row = find(table, relation, buffer)
        return row if start <= row < end else np.int64(-1)
    if mode == BY_INDEX:
        base = INDEX0 + index * INDEX_WIDTH
        bucket = key_hash(buffer, count) & table[relation, base + HEADS_MASK]
        return load32(table[relation, base + HEADS], bucket) - 1
    return end - 1


@compiled
def next_row(table, code, at, relation, index, row):
    mode = code[at + MODE]
    if mode == BY_ROW:
        return np.int64(-1)
    if mode == BY_INDEX:
        base = INDEX0 + index * INDEX_WIDTH
        return load32(table[relation, base + NEXT], row) - 1
    return row - 1


@compiled
def walk(
    table, code, at, relation, index, row, start, end, slots, minus, rank_limit, is_ranked, buffer
):
    """The first row from `row` on that the step accepts, or -1; chains run from new to old."""
    while row >= start:
        if row < end:
            stamp = load64(table[relation, STAMPS], row)
            if (
                stamp >= 0
                and (not is_ranked or stamp < rank_limit)
                and fits(table, code, at, relation, row, slots)
                and (minus < 0 or not is_in(table, relation, minus, row, buffer))
            ):
                return row
        row = next_row(table, code, at, relation, index, row)
    return np.int64(-1)


@compiled
def binds(table, code, at, relation, row, slots):
    """Bind a row's columns to slots; False if a repeated variable does not agree."""
    arity = table[relation, ARITY]
    rows = table[relation, ROWS]
    position = at + HEADER + 3 * code[at + KEYS]
    for _ in range(code[at + BINDS]):
        slots[code[position + 1]] = load64(rows, row * arity + code[position])
        position += 2
    for _ in range(code[at + SAMES]):
        if load64(rows, row * arity + code[position]) != slots[code[position + 1]]:
            return False
        position += 2
    return True


@compiled
def advance(table, code, at, slots, phase, row, ends, read, rank_limit, buffer):
    """The next accepted row of a match: (phase, row), phase 2 when there is none.

    Phase 0 walks the stored relation (of an overlay, what is not in `minus`), phase 1 the `plus`
    relation of an overlay. `row` is -2 where a phase has not begun.
    """
    window = code[at + WINDOW]
    is_overlay = code[at + IS_OVERLAY] == 1
    while phase < 2:
        relation = code[at + STORED] if phase == 0 else code[at + PLUS]
        index = code[at + INDEX] if phase == 0 else code[at + PLUS_INDEX]
        skipped = relation < 0 or (phase == 0 and is_overlay and window == NEW)
        if not skipped:
            start, end = np.int64(0), ends[relation]
            if phase == 1 or not is_overlay:
                if window == NEW:
                    start = read[code[at + OCCURRENCE]]
                elif window == OLD:
                    end = read[code[at + OCCURRENCE]]
            minus = code[at + MINUS] if phase == 0 else np.int64(-1)
            ranked = phase == 0 and code[at + IS_RANKED] == 1
            if row == -2:
                row = first_row(table, code, at, relation, index, slots, start, end, buffer)
            else:
                row = next_row(table, code, at, relation, index, row)
            row = walk(
                table, code, at, relation, index, row, start, end, slots, minus, rank_limit,
                ranked, buffer,
            )  # fmt: skip
            if row >= 0:
                return phase, row
        if not is_overlay:
            return np.int64(2), np.int64(-1)
        phase += 1
        row = np.int64(-2)
    return np.int64(2), np.int64(-1)


@compiled
def run_pipeline(table, code, start_at, given, head, ends, read, clock, rank_limit, sink):
    """Run a pipeline and append what it emits to `head`, if it is new; FULL when there is no room.

    With `head` -1 rows go to the relation `sink` even if they are there (an answer is wanted), and
    with `sink` -1 the run stops at the first way through: it answers FULL then.
    """
    steps = code[start_at]
    slot_count = code[start_at + 1]
    outputs = code[start_at + 2]
    first = start_at + 3
    out_at = first + steps
    slots = np.zeros(slot_count + 1, np.int64)
    for i in range(len(given)):
        slots[i] = given[i]
    phases = np.zeros(steps + 1, np.int64)
    rows = np.full(steps + 1, -2, np.int64)
    stack = np.empty(32, np.int64)
    buffer = np.empty(64, np.int64)
    emitted = np.empty(64, np.int64)
    has_value = np.zeros(1, np.bool_)
    depth = 0
    while depth >= 0:
        if depth == steps:
            if head < 0:
                return FULL
            for i in range(outputs):
                at = out_at + 2 * i
                emitted[i] = slots[code[at + 1]] if code[at] == 0 else code[at + 1]
            if find(table, head, emitted) < 0:
                if table[head, END] >= table[head, CAPACITY]:
                    return FULL
                append(table, head, emitted, clock)
            depth -= 1
            continue
        at = code[first + depth]
        operation = code[at]
        went_on = False
        if operation == MATCH:
            phase, row = advance(
                table, code, at, slots, phases[depth], rows[depth], ends, read, rank_limit, buffer
            )
            while phase < 2:
                relation = code[at + STORED] if phase == 0 else code[at + PLUS]
                if binds(table, code, at, relation, row, slots):
                    went_on = True
                    break
                phase, row = advance(
                    table, code, at, slots, phase, row, ends, read, rank_limit, buffer
                )
            phases[depth] = phase
            rows[depth] = row
        elif rows[depth] == -2:  # a test is done once on the way down
            rows[depth] = 0
            if operation == ABSENT:
                phase, row = advance(
                    table, code, at, slots, np.int64(0), np.int64(-2), ends, read, rank_limit,
                    buffer,
                )  # fmt: skip
                went_on = phase == 2
            elif operation == TEST:
                left = evaluate(code, code[at + 3], slots, stack, has_value)
                if has_value[0]:
                    right = evaluate(code, code[at + 4], slots, stack, has_value)
                    went_on = has_value[0] and compare(code[at + 1], code[at + 2], left, right)
            else:
                value = evaluate(code, code[at + 2], slots, stack, has_value)
                slots[code[at + 1]] = value
                went_on = has_value[0]
        if went_on:
            depth += 1
            phases[depth] = 0
            rows[depth] = -2
        else:
            depth -= 1
    return DONE
