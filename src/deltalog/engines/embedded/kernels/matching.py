"""Steps of a pipeline that look rows up: which rows a match reads, and what it binds.

Large relations are not in the cache of the processor, and nearly every row that is looked at is
somewhere else in memory. So a match takes its rows in batches: it prefetches the memory of all of
them, and of what the next step will look up for each, before it goes on with the first.

A rule may add rows to the relation that it walks. A resize then makes its indexes anew, and links
get other numbers where they are side by side; so a walk also knows the last row it looked at, and
finds its place again by that (`seek_link`).
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    mix_hash,
    row_address,
)
from deltalog.engines.embedded.kernels.indexes import (
    linked_row,
    next_link,
)
from deltalog.engines.embedded.kernels.layout import (
    ABSENT,
    ALL,
    ARITY,
    BATCH,
    BATCH_FIRST,
    BIND_COLUMN,
    BIND_SLOT,
    BIND_WORDS,
    BINDS,
    BY_INDEX,
    BY_ROW,
    CAPACITY,
    END,
    F_AHEAD,
    F_AT,
    F_CAPACITY,
    F_END,
    F_FILLED,
    F_INDEX,
    F_LAST,
    F_MOST,
    F_PHASE,
    F_RELATION,
    F_ROWS,
    F_START,
    F_TAKEN,
    FROM_SLOT,
    GONE,
    HALF_BYTES,
    HASH,
    HEADER,
    HEADS,
    HEADS_MASK,
    INDEX,
    INDEX_BYTES,
    INDEX_NUMBER,
    INDEXED_COLUMNS,
    IS_OVERLAY,
    IS_RANKED,
    IS_SORTED,
    KEY_COLUMN,
    KEY_VALUE,
    KEY_WORDS,
    KEYS,
    LARGE,
    LINKS,
    LIVE,
    MASK,
    MINUS,
    MODE,
    NEW,
    OCCURRENCE,
    OLD,
    ONE,
    OPERATION,
    PASSED_OVER,
    PLUS,
    PLUS_INDEX,
    RANK,
    ROWS,
    SAMES,
    SCAN,
    STAMP,
    STORED,
    VALUE_KIND,
    VALUE_WORD,
    VARIANT,
    VARIANT_MARK,
    VISIBLE,
    WINDOW,
    ZERO,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    inlined,
    load32,
    load64,
    prefetch_line,
    store64,
)
from deltalog.engines.embedded.kernels.relation_memory import (
    ensure_indexed,
    find_row,
)


@inlined
def value_at(code, slots):
    """The word of a value: of its slot, or its own."""
    value = load64(code, VALUE_WORD)
    return load64(slots, value) if load64(code, VALUE_KIND) == FROM_SLOT else value


@inlined
def open_phase(step, frame, keys, slots, marks, phase):
    """Where the candidates of a match begin: of its stored relation (0) or of `plus` (1)."""
    relation = load64(step, STORED if phase == 0 else PLUS)
    store64(frame, F_PHASE, phase)
    store64(frame, F_RELATION, relation)
    store64(frame, F_AT, -1)
    store64(frame, F_START, 0)
    store64(frame, F_TAKEN, 0)
    store64(frame, F_FILLED, 0)
    store64(frame, F_MOST, BATCH_FIRST)
    if relation == 0:
        return
    window = load64(step, WINDOW)
    is_overlay = load64(step, IS_OVERLAY) == 1
    if phase == 0 and is_overlay and window == NEW:
        return
    start, end = np.int64(0), load64(relation, VISIBLE)
    if window != ALL and (phase == 1 or not is_overlay):
        mark = load64(marks, VARIANT * load64(step, OCCURRENCE) + VARIANT_MARK)
        if window == NEW:
            start = mark
        else:
            end = mark
    if start >= end:
        return
    store64(frame, F_START, start)
    store64(frame, F_END, end)
    mode = load64(step, MODE)
    if mode == SCAN:
        store64(frame, F_AT, end - 1)
        return
    count = load64(step, KEYS)
    at = step + 8 * HEADER
    state = np.int64(0)
    for i in range(count):
        word = value_at(at + 8 * KEY_VALUE, slots)
        store64(keys, i, word)
        if load64(at, KEY_COLUMN) < INDEXED_COLUMNS:
            state = mix_hash(state, word)
        at += 8 * KEY_WORDS
    number = load64(step, INDEX_NUMBER if phase == 0 else PLUS_INDEX)
    index = load64(relation, INDEX) + number * INDEX_BYTES
    store64(frame, F_INDEX, index)
    store64(frame, F_CAPACITY, load64(relation, CAPACITY))
    bucket = state & load64(index, HEADS_MASK)
    store64(frame, F_AT, load32(load64(index, HEADS), bucket) - 1)


@compiled
def seek_link(step, frame, keys):
    """Find the link behind the last row that was looked at, in an index that was made anew.

    Chains go from newer rows to older ones, and a resize keeps the numbers of rows.
    """
    index = load64(frame, F_INDEX)
    state = np.int64(0)
    for i in range(load64(step, KEYS)):
        if load64(step, HEADER + KEY_WORDS * i + KEY_COLUMN) < INDEXED_COLUMNS:
            state = mix_hash(state, load64(keys, i))
    links, last = load64(index, LINKS), load64(frame, F_LAST)
    at = load32(load64(index, HEADS), state & load64(index, HEADS_MASK)) - 1
    while at >= 0 and linked_row(load64(links, at)) >= last:
        at = next_link(load64(links, at))
    store64(frame, F_AT, at)
    store64(frame, F_CAPACITY, load64(load64(frame, F_RELATION), CAPACITY))


@inlined
def advance_row(step, frame, slots):
    """Bind the next row of the batch; False when there is none."""
    relation, filled = load64(frame, F_RELATION), load64(frame, F_FILLED)
    taken = load64(frame, F_TAKEN)
    while taken < filled:
        words = row_address(relation, load64(frame, F_ROWS + taken))
        taken += 1
        at = bind_row(step, words, slots)
        fits = True
        for _ in range(load64(step, SAMES)):
            if load64(words, load64(at, BIND_COLUMN)) != load64(slots, load64(at, BIND_SLOT)):
                fits = False
                break
            at += 8 * BIND_WORDS
        if fits:
            store64(frame, F_TAKEN, taken)
            return True
    store64(frame, F_TAKEN, taken)
    return False


@compiled
def fill_batch(machine, step, frame, keys, slots, marks, rank):
    """Take the next batch of rows that a match may read and that have its key; False at the end.

    First those of its stored relation, then those of `plus`.
    """
    if load64(frame, F_AT) < 0:
        if load64(frame, F_PHASE) == 1 or not has_plus(step):
            return False
        open_phase(step, frame, keys, slots, marks, ONE)
        if load64(frame, F_AT) < 0:
            return False
    relation = load64(frame, F_RELATION)
    rows = load64(relation, ROWS) + 8
    width = 8 * (load64(relation, ARITY) + 1)
    start, end = load64(frame, F_START), load64(frame, F_END)
    is_indexed = load64(step, MODE) == BY_INDEX
    if is_indexed and load64(frame, F_CAPACITY) != load64(relation, CAPACITY):
        seek_link(step, frame, keys)
    at = load64(frame, F_AT)
    last = end
    links = load64(load64(frame, F_INDEX), LINKS) if is_indexed else np.int64(0)
    is_stored = load64(frame, F_PHASE) == 0
    is_ranked = is_stored and load64(step, IS_RANKED) == 1
    minus = load64(step, MINUS) if is_stored else np.int64(0)
    if minus != 0 and (is_ranked or load64(minus, LIVE) == 0):
        minus = np.int64(0)  # what a ranked deletion took is marked
    key_count = load64(step, KEYS) if is_indexed else np.int64(0)
    most = load64(frame, F_MOST)
    store64(frame, F_MOST, min(2 * most, BATCH))
    is_far = is_indexed and load64(relation, CAPACITY) >= LARGE
    count = np.int64(0)
    while at >= 0 and count < most:
        row, at = at, at - 1
        if is_indexed:
            link = load64(links, row)
            row, at = linked_row(link), next_link(link)
        last = row
        if row < start:
            at = -ONE
            break
        words = rows + row * width
        if is_far:
            prefetch_line(words)
        if row < end and (
            is_far or is_read(machine, step, keys, key_count, words, minus, is_ranked, rank)
        ):
            store64(frame, F_ROWS + count, row)
            count += 1
    store64(frame, F_AT, at)
    store64(frame, F_LAST, last)
    if is_far:
        kept = np.int64(0)
        for number in range(count):
            row = load64(frame, F_ROWS + number)
            words = rows + row * width
            if is_read(machine, step, keys, key_count, words, minus, is_ranked, rank):
                store64(frame, F_ROWS + kept, row)
                kept += 1
        count = kept
    store64(frame, F_TAKEN, 0)
    store64(frame, F_FILLED, count)
    return True


@inlined
def is_read(machine, step, keys, key_count, words, minus, is_ranked, rank):
    """Whether a match may read a row, and it has the key."""
    stamp = load64(words, STAMP)
    if stamp < 0:
        return False
    for i in range(key_count):
        if load64(words, load64(step, HEADER + KEY_WORDS * i)) != load64(keys, i):
            return False
    if is_ranked:
        if stamp & GONE != 0:
            return False
        if stamp & RANK >= rank:
            store64(machine, PASSED_OVER, 1)
            return False
    return minus == 0 or find_row(minus, words) < 0


@inlined
def large_relation(step):
    """The large relation in which a step looks something up, or 0."""
    if load64(step, OPERATION) > ABSENT or load64(step, MODE) == SCAN:
        return ZERO
    relation = load64(step, STORED)
    if relation == 0 or load64(relation, CAPACITY) < LARGE:
        return ZERO
    return relation


@compiled
def prefetch_batch(step, frame, slots, ahead):
    """Ask for the memory that the next step needs for each row of a batch."""
    wanted = large_relation(ahead)
    if wanted == 0:
        return
    for number in range(load64(frame, F_FILLED)):
        bind_row(
            step, row_address(load64(frame, F_RELATION), load64(frame, F_ROWS + number)), slots
        )
        prefetch_place(frame, number, place_of(ahead, wanted, slots))
    if load64(ahead, MODE) == BY_INDEX:
        prefetch_links(frame, index_of(ahead, wanted), wanted)
    else:
        prefetch_rows(frame, wanted)


@inlined
def place_of(step, relation, slots):
    """Where in memory a step begins to look for its key in its stored relation."""
    is_indexed = load64(step, MODE) == BY_INDEX
    state = np.int64(0)
    at = step + 8 * HEADER
    for _ in range(load64(step, KEYS)):
        if not is_indexed or load64(at, KEY_COLUMN) < INDEXED_COLUMNS:
            state = mix_hash(state, value_at(at + 8 * KEY_VALUE, slots))
        at += 8 * KEY_WORDS
    if is_indexed:
        index = index_of(step, relation)
        return load64(index, HEADS) + HALF_BYTES * (state & load64(index, HEADS_MASK))
    return load64(relation, HASH) + HALF_BYTES * (state & load64(relation, MASK))


@inlined
def index_of(step, relation):
    return load64(relation, INDEX) + load64(step, INDEX_NUMBER) * INDEX_BYTES


@inlined
def prefetch_place(frame, number, place):
    store64(frame, F_AHEAD + number, place)
    prefetch_line(place)


@compiled
def prefetch_rows(frame, relation):
    """Ask for the rows that the places say, which are there by now."""
    for number in range(load64(frame, F_FILLED)):
        row = load32(load64(frame, F_AHEAD + number), 0) - 1
        if row >= 0:
            prefetch_line(row_address(relation, row))


@compiled
def prefetch_links(frame, index, relation):
    """Ask for the first links that the places say, and for the rows that these tell."""
    links, filled = load64(index, LINKS), load64(frame, F_FILLED)
    is_sorted = load64(index, IS_SORTED) == 1
    for number in range(filled):
        first = load32(load64(frame, F_AHEAD + number), 0) - 1
        if first >= 0:
            prefetch_line(links + 8 * first)
            if not is_sorted:
                prefetch_line(row_address(relation, first))
    if is_sorted:
        for number in range(filled):
            first = load32(load64(frame, F_AHEAD + number), 0) - 1
            if first >= 0:
                prefetch_line(row_address(relation, linked_row(load64(links, first))))


@inlined
def bind_row(step, words, slots):
    """Bind what a match takes from a row; returns where its repeated variables stand."""
    at = step + 8 * (HEADER + KEY_WORDS * load64(step, KEYS))
    for _ in range(load64(step, BINDS)):
        store64(slots, load64(at, BIND_SLOT), load64(words, load64(at, BIND_COLUMN)))
        at += 8 * BIND_WORDS
    return at


@inlined
def has_plus(step):
    """Whether a step has a second phase with something in it."""
    plus = load64(step, PLUS)
    return plus != 0 and load64(plus, LIVE) != 0


@inlined
def is_in_window(step, marks, row, is_plus):
    """Whether a row found is among those that a match reads."""
    window = load64(step, WINDOW)
    if window == ALL:
        return True
    if load64(step, IS_OVERLAY) == 1 and not is_plus:
        return window == OLD
    mark = load64(marks, VARIANT * load64(step, OCCURRENCE) + VARIANT_MARK)
    return row >= mark if window == NEW else row < mark


@inlined
def is_row_there(machine, step, keys, slots, marks, rank):
    """A match whose columns all have values is a test."""
    at = step + 8 * HEADER
    for i in range(load64(step, KEYS)):
        store64(keys, i, value_at(at + 8 * KEY_VALUE, slots))
        at += 8 * KEY_WORDS
    stored = load64(step, STORED)
    row = find_row(stored, keys)
    if 0 <= row < load64(stored, VISIBLE) and is_in_window(step, marks, row, False):
        if load64(step, IS_RANKED) == 1:
            stamp = load64(row_address(stored, row), STAMP)
            if stamp & GONE != 0:
                return False
            if stamp & RANK < rank:
                return True
            store64(machine, PASSED_OVER, 1)
            return False
        minus = load64(step, MINUS)
        if minus == 0 or load64(minus, LIVE) == 0 or find_row(minus, keys) < 0:
            return True
    if not has_plus(step):
        return False
    plus = load64(step, PLUS)
    row = find_row(plus, keys)
    return 0 <= row < load64(plus, VISIBLE) and is_in_window(step, marks, row, True)


@inlined
def has_row(step, keys, slots):
    """Whether the very row of an absent step is there."""
    at = step + 8 * HEADER
    for i in range(load64(step, KEYS)):
        store64(keys, i, value_at(at + 8 * KEY_VALUE, slots))
        at += 8 * KEY_WORDS
    stored, minus = load64(step, STORED), load64(step, MINUS)
    row = find_row(stored, keys)
    if 0 <= row < load64(stored, VISIBLE) and (
        minus == 0 or load64(minus, LIVE) == 0 or find_row(minus, keys) < 0
    ):
        return True
    if not has_plus(step):
        return False
    plus = load64(step, PLUS)
    return 0 <= find_row(plus, keys) < load64(plus, VISIBLE)


@compiled
def has_match(machine, step, frame, keys, slots, marks):
    """Whether some row has the values of an absent step."""
    if load64(step, MODE) == BY_ROW:
        return has_row(step, keys, slots)
    open_phase(step, frame, keys, slots, marks, ZERO)
    while fill_batch(machine, step, frame, keys, slots, marks, ZERO):
        if advance_row(step, frame, slots):
            return True
    return False


@compiled
def has_visible(relation, minus):
    """Whether a relation has a visible row that is not in `minus`, if there is such a relation."""
    visible = load64(relation, VISIBLE)
    less = load64(relation, END) - visible
    if minus != 0:
        less += load64(minus, LIVE)
    if load64(relation, LIVE) > less:
        return True
    if minus != 0:
        ensure_indexed(minus)
    for row in range(visible):
        words = row_address(relation, row)
        if load64(words, STAMP) >= 0 and (minus == 0 or find_row(minus, words) < 0):
            return True
    return False
