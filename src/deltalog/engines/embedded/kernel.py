"""The kernels: relations as addressed arrays, and an interpreter for pipelines.

Compiled once per machine and cached on disk; installing a rule compiles nothing. A pipeline is a
short integer program (`program.py`), run by backtracking: a match step walks its rows, binds slots
and goes one step deeper; a test goes deeper or back. Rows that a round derives are appended behind
the end that the round started with, so no rule of the round sees them.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.memory import compiled, load32, load64, store32, store64

# One line of the relation table.
ROWS, ARITY, END, CAPACITY, HASH, MASK, LIVE, STAMPS, INDEXES, DIRTY = range(10)
INDEX0, INDEX_WIDTH, INDEXES_MAX = 10, 4, 12
COLUMNS, HEADS, HEADS_MASK, NEXT = range(4)
WIDTH = INDEX0 + INDEX_WIDTH * INDEXES_MAX

# Steps and match modes.
MATCH, ABSENT, TEST, ASSIGN = 1, 2, 3, 4
SCAN, BY_INDEX, BY_ROW = 0, 1, 2
ALL, OLD, NEW = 0, 1, 2

# Expressions, in postfix order.
PUSH_SLOT, PUSH_WORD, APPLY, STOP = 1, 2, 3, 0
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE, ABSOLUTE, TO_FLOAT = range(8)
INT, FLOAT, WORD = 0, 1, 2

NULL = np.int64(-(2**63))
LARGEST = np.int64(2**63 - 1)
DONE, FULL = 0, 1

_MULTIPLIER = np.int64(-7046029254386353131)


@compiled
def mixed(state, word):
    state = (state ^ word) * _MULTIPLIER
    return state ^ ((state >> 29) & 0x7FFFFFFFF)


@compiled
def row_hash(table, relation, row):
    arity = table[relation, ARITY]
    rows = table[relation, ROWS]
    state = np.int64(0)
    for column in range(arity):
        state = mixed(state, load64(rows, row * arity + column))
    return state


@compiled
def key_hash(key, size):
    state = np.int64(0)
    for column in range(size):
        state = mixed(state, key[column])
    return state


@compiled
def index_hash(table, relation, row, columns):
    arity = table[relation, ARITY]
    rows = table[relation, ROWS]
    state = np.int64(0)
    for column in range(arity):
        if (columns >> column) & 1:
            state = mixed(state, load64(rows, row * arity + column))
    return state


@compiled
def find(table, relation, key):
    """The row with exactly these values, or -1."""
    arity = table[relation, ARITY]
    rows = table[relation, ROWS]
    slots = table[relation, HASH]
    mask = table[relation, MASK]
    slot = key_hash(key, arity) & mask
    while True:
        found = load32(slots, slot)
        if found == 0:
            return np.int64(-1)
        if found > 0:
            same = True
            for column in range(arity):
                if load64(rows, (found - 1) * arity + column) != key[column]:
                    same = False
                    break
            if same:
                return np.int64(found - 1)
        slot = (slot + 1) & mask


@compiled
def link(table, relation, row):
    """Enter a row into the hash and every index."""
    slots = table[relation, HASH]
    mask = table[relation, MASK]
    slot = row_hash(table, relation, row) & mask
    while load32(slots, slot) > 0:
        slot = (slot + 1) & mask
    store32(slots, slot, row + 1)
    for number in range(table[relation, INDEXES]):
        link_index(table, relation, row, number)


@compiled
def link_index(table, relation, row, number):
    base = INDEX0 + number * INDEX_WIDTH
    bucket = index_hash(table, relation, row, table[relation, base + COLUMNS])
    bucket &= table[relation, base + HEADS_MASK]
    heads = table[relation, base + HEADS]
    store32(table[relation, base + NEXT], row, load32(heads, bucket))
    store32(heads, bucket, row + 1)


@compiled
def append(table, relation, key, clock):
    """Append a row that is not there; the relation has room."""
    arity = table[relation, ARITY]
    row = table[relation, END]
    rows = table[relation, ROWS]
    for column in range(arity):
        store64(rows, row * arity + column, key[column])
    store64(table[relation, STAMPS], row, clock[0])
    clock[0] += 1
    table[relation, END] = row + 1
    table[relation, LIVE] += 1
    link(table, relation, row)


@compiled
def remove(table, relation, row):
    """Mark a row dead; chains pass over it until the relation is compacted."""
    slots = table[relation, HASH]
    mask = table[relation, MASK]
    slot = row_hash(table, relation, row) & mask
    while load32(slots, slot) != row + 1:
        slot = (slot + 1) & mask
    store32(slots, slot, -1)
    store64(table[relation, STAMPS], row, -1)
    table[relation, LIVE] -= 1
    table[relation, DIRTY] = 1


@compiled
def relink(table, relation):
    """Enter every live row into fresh hash and index arrays."""
    for row in range(table[relation, END]):
        if load64(table[relation, STAMPS], row) >= 0:
            link(table, relation, row)


@compiled
def build_index(table, relation, number):
    for row in range(table[relation, END]):
        if load64(table[relation, STAMPS], row) >= 0:
            link_index(table, relation, row, number)


@compiled
def unlink_all(table, relation):
    """Empty a relation that never lost a row, at the cost of the rows it has."""
    slots = table[relation, HASH]
    mask = table[relation, MASK]
    for row in range(table[relation, END]):
        slot = row_hash(table, relation, row) & mask
        while load32(slots, slot) != row + 1:
            slot = (slot + 1) & mask
        store32(slots, slot, 0)
        for number in range(table[relation, INDEXES]):
            base = INDEX0 + number * INDEX_WIDTH
            bucket = index_hash(table, relation, row, table[relation, base + COLUMNS])
            store32(table[relation, base + HEADS], bucket & table[relation, base + HEADS_MASK], 0)
    table[relation, END] = 0
    table[relation, LIVE] = 0


@compiled
def insert_all(table, relation, rows, clock, added):
    """Add rows that are not there; `added` marks which were new. The relation has room."""
    count = 0
    for number in range(rows.shape[0]):
        if find(table, relation, rows[number]) < 0:
            append(table, relation, rows[number], clock)
            added[number] = 1
            count += 1
    return count


@compiled
def remove_all(table, relation, rows):
    count = 0
    for number in range(rows.shape[0]):
        row = find(table, relation, rows[number])
        if row >= 0:
            remove(table, relation, row)
            count += 1
    return count


@compiled
def live_rows(table, relation, out):
    """Positions of the live rows, in order."""
    count = 0
    for row in range(table[relation, END]):
        if load64(table[relation, STAMPS], row) >= 0:
            out[count] = row
            count += 1
    return count


@compiled
def matching_rows(table, relation, number, columns, key, start, end, out):
    """Positions of live rows in a range with these values, by an index; -1 if too many."""
    base = INDEX0 + number * INDEX_WIDTH
    arity = table[relation, ARITY]
    size = len(columns)
    bucket = key_hash(key, size) & table[relation, base + HEADS_MASK]
    row = load32(table[relation, base + HEADS], bucket) - 1
    count = 0
    while row >= start:
        if row < end and load64(table[relation, STAMPS], row) >= 0:
            same = True
            for i in range(size):
                if load64(table[relation, ROWS], row * arity + columns[i]) != key[i]:
                    same = False
                    break
            if same:
                if count == len(out):
                    return -1
                out[count] = row
                count += 1
        row = load32(table[relation, base + NEXT], row) - 1
    return count


# --- expressions --------------------------------------------------------------------------------


@compiled
def evaluate(code, at, slots, stack, has_value):
    """A postfix expression; `has_value[0]` tells whether it has a value. A plain null is one."""
    depth = 0
    has_value[0] = True
    while True:
        kind = code[at]
        if kind == STOP:
            break
        if kind == PUSH_SLOT:
            stack[depth] = slots[code[at + 1]]
            depth += 1
            at += 2
        elif kind == PUSH_WORD:
            stack[depth] = code[at + 1]
            depth += 1
            at += 2
        else:
            function = code[at + 1]
            if code[at + 3] == 2:
                depth -= 1
                stack[depth - 1] = binary(
                    function, code[at + 2], stack[depth - 1], stack[depth], has_value
                )
            else:
                stack[depth - 1] = unary(function, code[at + 2], stack[depth - 1], has_value)
            if not has_value[0]:
                return np.int64(0)
            at += 4
    return stack[0]


@compiled
def binary(function, kind, left, right, has_value):
    if left == NULL or right == NULL:
        has_value[0] = False
        return np.int64(0)
    if kind == FLOAT:
        return binary_float(function, left, right, has_value)
    # Looked at before computing: the compiler may assume that signed words do not overflow.
    if function == ADD:
        if (right > 0 and left > LARGEST - right) or (right < 0 and left < -LARGEST - right):
            has_value[0] = False
            return np.int64(0)
        return left + right
    if function == SUBTRACT:
        if (right < 0 and left > LARGEST + right) or (right > 0 and left < -LARGEST + right):
            has_value[0] = False
            return np.int64(0)
        return left - right
    if function == MULTIPLY:
        if left == 0 or right == 0:
            return np.int64(0)
        if abs(left) > LARGEST // abs(right):
            has_value[0] = False
            return np.int64(0)
        return left * right
    if right == 0:
        has_value[0] = False
        return np.int64(0)
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    if function == DIVIDE:
        return quotient
    return left - quotient * right


@compiled
def binary_float(function, left_word, right_word, has_value):
    buffer = np.empty(2, np.int64)
    buffer[0] = left_word
    buffer[1] = right_word
    floats = buffer.view(np.float64)
    left, right = floats[0], floats[1]
    if function == ADD:
        result = left + right
    elif function == SUBTRACT:
        result = left - right
    elif function == MULTIPLY:
        result = left * right
    else:
        if right == 0.0:
            has_value[0] = False
            return np.int64(0)
        result = left / right
    if not np.isfinite(result):
        has_value[0] = False
    floats[0] = result + 0.0
    return buffer[0]


@compiled
def unary(function, kind, word, has_value):
    if word == NULL:
        has_value[0] = False
        return np.int64(0)
    if function == TO_FLOAT:
        buffer = np.empty(1, np.int64)
        buffer.view(np.float64)[0] = np.float64(word)
        return buffer[0]
    if kind == FLOAT:
        buffer = np.empty(1, np.int64)
        buffer[0] = word
        floats = buffer.view(np.float64)
        if function == NEGATE or floats[0] < 0.0:
            floats[0] = -floats[0] + 0.0
        return buffer[0]
    if function == NEGATE or word < 0:
        return -word
    return word


@compiled
def compare(operator, kind, left, right):
    """Operators 0 to 5: = != < <= > >=; nothing but equality holds of a null."""
    if operator == 0:
        return left == right
    if operator == 1:
        return left != right
    if left == NULL or right == NULL:
        return False
    if kind == FLOAT:
        buffer = np.empty(2, np.int64)
        buffer[0] = left
        buffer[1] = right
        floats = buffer.view(np.float64)
        a, b = floats[0], floats[1]
        if operator == 2:
            return a < b
        if operator == 3:
            return a <= b
        if operator == 4:
            return a > b
        return a >= b
    if operator == 2:
        return left < right
    if operator == 3:
        return left <= right
    if operator == 4:
        return left > right
    return left >= right
