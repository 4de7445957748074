"""Relations in native memory: rows, a hash over rows, chained indexes.

A relation is a line of words at a fixed address; what it points to is allocated here and grows
here. Rows stand in the order they came, so a row's position tells what is new; its stamp, a word
before the others, is the rank of first derivation, comparable between relations, and -1 once the
row is dead. A dead row keeps its place until the relation is compacted between transactions, and
has it again if the same row returns before: only its stamp is set. That is right because *an index
has every row that the hash has*, dead ones included, whenever the index was built: `fill_index`
links dead rows too, `resize_relation` builds hash and indexes together, and whatever adds a row to
the hash (`add_hashed`, `index_range`) links it into all indexes. Readers of a chain pass over dead
rows.

    hash      open addressing over the whole row: position + 1, of dead rows too; 0 is free
    index     per set of columns: see `indexes.py`
    visible   where the rows end that rules may read; a round appends behind it
    indexed   how many rows are in hash and indexes; appended rows may not be yet

Changes are often only walked over. So rows that cannot come twice are just appended, which costs
little, and indexed when somebody looks one up, which may be never.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    are_same,
    obtain_block,
    obtain_zeros,
    row_address,
    words_hash,
)
from deltalog.engines.embedded.kernels.indexes import (
    expect_links,
    fill_index,
    index_hash,
    link_index,
    link_rows,
    resize_index,
)
from deltalog.engines.embedded.kernels.layout import (
    AHEAD,
    ARITY,
    CAPACITY,
    CAPACITY_MAX,
    CAPACITY_MIN,
    CLOCK,
    COLUMNS,
    END,
    HALF_BYTES,
    HASH,
    HEADS,
    HEADS_MASK,
    INDEX,
    INDEX_BYTES,
    INDEXED,
    INDEXES,
    IS_SORTED,
    KEPT_MAX,
    LINKS,
    LIVE,
    MASK,
    NOTHING,
    ROOM,
    ROWS,
    STAMP,
    VISIBLE,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    inlined,
    load32,
    load64,
    prefetch_line,
    release_block,
    store32,
    store64,
    zero_bytes,
)


@inlined
def find_row(relation, key):
    """The position of the row with exactly these words, or -1."""
    return find_hashed(relation, key, words_hash(key, load64(relation, ARITY)))


@inlined
def find_hashed(relation, key, state):
    slot = slot_of(relation, key, state)
    row = load32(load64(relation, HASH), slot) - 1
    return row if row < 0 or load64(row_address(relation, row), STAMP) >= 0 else np.int64(-1)


@inlined
def slot_of(relation, key, state):
    """The slot of the row, live or dead, with these words, whose hash is `state`; or a free one."""
    arity = load64(relation, ARITY)
    rows = load64(relation, ROWS) + 8
    width = 8 * (arity + 1)
    slots = load64(relation, HASH)
    mask = load64(relation, MASK)
    slot = state & mask
    while True:
        found = load32(slots, slot)
        if found == 0 or are_same(rows + (found - 1) * width, key, arity):
            return slot
        slot = (slot + 1) & mask


@compiled
def add_row(machine, relation, key):
    """Append a row unless it is there; returns whether it was new."""
    return add_hashed(machine, relation, key, words_hash(key, load64(relation, ARITY)))


@compiled
def append_row(machine, relation, words):
    """Append a row that cannot be there; it is indexed when a row is looked up."""
    row = load64(relation, END)
    if row == load64(relation, ROOM):
        make_room(relation, max(np.int64(CAPACITY_MIN), 2 * row))
    arity = load64(relation, ARITY)
    target = row_address(relation, row)
    for column in range(arity):
        store64(target, column, load64(words, column))
    stamp = load64(machine, CLOCK)
    store64(machine, CLOCK, stamp + 1)
    store64(target, STAMP, stamp)
    store64(relation, END, row + 1)
    store64(relation, LIVE, load64(relation, LIVE) + 1)
    return np.int64(0)


@compiled
def make_room(relation, capacity):
    """Give a relation memory for `capacity` rows, or more."""
    if capacity > CAPACITY_MAX:
        raise MemoryError("a relation of the embedded engine holds at most 2^30 rows")
    if capacity > load64(relation, ROOM):
        set_room(relation, capacity)


@compiled
def set_room(relation, capacity):
    width = 8 * (load64(relation, ARITY) + 1)
    store64(relation, ROWS, obtain_block(load64(relation, ROWS), width * capacity))
    store64(relation, ROOM, capacity)


@inlined
def ensure_indexed(relation):
    """Rows are going to be looked up."""
    if load64(relation, INDEXED) != load64(relation, END):
        index_appended(relation)


@compiled
def index_appended(relation):
    end, capacity = load64(relation, END), load64(relation, CAPACITY)
    if end > capacity:
        capacity = max(np.int64(CAPACITY_MIN), capacity)
        while capacity < end:
            capacity *= 2
        store64(relation, INDEXED, end)
        resize_relation(relation, capacity)
    else:
        index_range(relation, load64(relation, INDEXED), end)
        store64(relation, INDEXED, end)


@compiled
def add_hashed(machine, relation, key, state):
    ensure_indexed(relation)
    arity = load64(relation, ARITY)
    rows = load64(relation, ROWS) + 8
    width = 8 * (arity + 1)
    slots = load64(relation, HASH)
    mask = load64(relation, MASK)
    slot = state & mask
    while True:
        found = load32(slots, slot)
        if found == 0:
            break
        other = rows + (found - 1) * width
        if are_same(other, key, arity):
            if load64(other, STAMP) >= 0:
                return False
            break
        slot = (slot + 1) & mask
    row = load64(relation, END)
    if row == load64(relation, CAPACITY):
        resize_relation(relation, max(CAPACITY_MIN, 2 * row))
        rows = load64(relation, ROWS) + 8
        slots = load64(relation, HASH)
        mask = load64(relation, MASK)
        slot = state & mask
        while load32(slots, slot) != 0:
            slot = (slot + 1) & mask
    store32(slots, slot, row + 1)
    target = rows + row * width
    for column in range(arity):
        store64(target, column, load64(key, column))
    stamp = load64(machine, CLOCK)
    store64(machine, CLOCK, stamp + 1)
    store64(target, STAMP, stamp)
    store64(relation, END, row + 1)
    store64(relation, INDEXED, row + 1)
    store64(relation, LIVE, load64(relation, LIVE) + 1)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        link_index(relation, index, row)
        index += INDEX_BYTES
    return True


@inlined
def expect_slot(relation, words):
    """A row will be looked for soon."""
    state = words_hash(words, load64(relation, ARITY))
    prefetch_line(load64(relation, HASH) + HALF_BYTES * (state & load64(relation, MASK)))


@inlined
def expect_row(relation, state):
    """A row with this hash will be looked for very soon, and its slot has been asked for."""
    found = load32(load64(relation, HASH), state & load64(relation, MASK))
    if found > 0:
        prefetch_line(row_address(relation, found - 1))


@compiled
def expect_new_row(relation, words):
    """A row that is probably new will be added soon."""
    expect_slot(relation, words)
    expect_links(relation, words)


@compiled
def prefetch_among(relation, words, width, number, count):
    """In a loop over `count` rows, `width` bytes apart: ask for what later ones will need."""
    if number + 2 * AHEAD < count:
        expect_slot(relation, words + (number + 2 * AHEAD) * width)
    if number + AHEAD < count:
        key = words + (number + AHEAD) * width
        expect_row(relation, words_hash(key, load64(relation, ARITY)))


@compiled
def resize_relation(relation, capacity):
    """Give a relation room for `capacity` rows (a power of two), and index its rows anew."""
    had = load64(relation, CAPACITY)
    if had == capacity:
        unlink_all(relation)
        link_anew(relation)
        return
    make_room(relation, capacity)
    if had > 0:
        release_block(load64(relation, HASH))
    store64(relation, HASH, obtain_zeros(8 * capacity))
    store64(relation, MASK, 2 * capacity - 1)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        resize_index(index, had, capacity)
        index += INDEX_BYTES
    store64(relation, CAPACITY, capacity)
    link_anew(relation)


@compiled
def reserve_rows(relation, count):
    """Make room at once for `count` rows in all."""
    capacity = max(np.int64(CAPACITY_MIN), load64(relation, CAPACITY))
    while capacity < count:
        capacity *= 2
    if capacity > load64(relation, CAPACITY):
        resize_relation(relation, capacity)


@compiled
def reserve_for_many(relation, count):
    """Make room at once for rows that are more than those that are there."""
    if count > load64(relation, END):
        reserve_rows(relation, load64(relation, END) + count)


@compiled
def index_range(relation, start, end):
    """Index the rows of a range, in neither hash nor indexes yet; the hash takes live ones only."""
    hash_rows(relation, start, end)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        link_rows(relation, index, start, end)
        index += INDEX_BYTES


@compiled
def link_anew(relation):
    """Add all rows to the indexes and the live ones to the hash; all of these are empty."""
    hash_rows(relation, np.int64(0), load64(relation, INDEXED))
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        fill_index(relation, index)
        index += INDEX_BYTES


@compiled
def hash_rows(relation, start, end):
    arity = load64(relation, ARITY)
    slots = load64(relation, HASH)
    mask = load64(relation, MASK)
    for row in range(start, end):
        if row + AHEAD < end:
            expect_slot(relation, row_address(relation, row + AHEAD))
        words = row_address(relation, row)
        if load64(words, STAMP) >= 0:
            slot = words_hash(words, arity) & mask
            while load32(slots, slot) != 0:
                slot = (slot + 1) & mask
            store32(slots, slot, row + 1)


@compiled
def forget_memory(relation):
    """Give all memory of rows back; an empty relation reads a shared block of zeros."""
    if load64(relation, ROOM) > 0:
        release_block(load64(relation, ROWS))
    if load64(relation, CAPACITY) > 0:
        release_block(load64(relation, HASH))
    nothing = load64(relation, NOTHING)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        if load64(relation, CAPACITY) > 0:
            release_block(load64(index, HEADS))
            release_block(load64(index, LINKS))
        store64(index, HEADS, nothing)
        store64(index, HEADS_MASK, 0)
        store64(index, LINKS, 0)
        store64(index, IS_SORTED, 0)
        index += INDEX_BYTES
    for word in (ROWS, ROOM, MASK, CAPACITY, END, INDEXED, VISIBLE, LIVE):
        store64(relation, word, 0)
    store64(relation, HASH, nothing)


@compiled
def discard_relation(relation):
    forget_memory(relation)
    if load64(relation, INDEX) != 0:
        release_block(load64(relation, INDEX))
    store64(relation, INDEX, 0)
    store64(relation, INDEXES, 0)


@compiled
def add_index(relation, columns):
    """The number of the index on a set of columns, made if it is not there."""
    count = load64(relation, INDEXES)
    index = load64(relation, INDEX)
    for number in range(count):
        if load64(index + number * INDEX_BYTES, COLUMNS) == columns:
            return number
    store64(relation, INDEX, obtain_block(index, (count + 1) * INDEX_BYTES))
    index = load64(relation, INDEX) + count * INDEX_BYTES
    store64(index, COLUMNS, columns)
    store64(index, HEADS, load64(relation, NOTHING))
    store64(index, HEADS_MASK, 0)
    store64(index, LINKS, 0)
    store64(index, IS_SORTED, 0)
    store64(relation, INDEXES, count + 1)
    capacity = load64(relation, CAPACITY)
    if capacity > 0:
        resize_index(index, np.int64(0), capacity)
        fill_index(relation, index)
    return count


@compiled
def remove_row(relation, key):
    """Mark a row dead, if it is there; chains pass over it until the relation is compacted."""
    ensure_indexed(relation)
    slots = load64(relation, HASH)
    slot = slot_of(relation, key, words_hash(key, load64(relation, ARITY)))
    row = load32(slots, slot) - 1
    if row >= 0 and load64(row_address(relation, row), STAMP) >= 0:
        store64(row_address(relation, row), STAMP, -1)
        store64(relation, LIVE, load64(relation, LIVE) - 1)


@compiled
def restore_row(machine, relation, key):
    """Add a row that is not there; if a dead one has its words, it lives again, with a new rank.

    Every index has that dead row, however late it was built (see the top of this module).
    """
    state = words_hash(key, load64(relation, ARITY))
    row = load32(load64(relation, HASH), slot_of(relation, key, state)) - 1
    if row < 0:
        if load64(relation, END) == load64(relation, CAPACITY):
            compact_relation(relation, np.int64(1))
        add_hashed(machine, relation, key, state)
        return
    stamp = load64(machine, CLOCK)
    store64(machine, CLOCK, stamp + 1)
    store64(row_address(relation, row), STAMP, stamp)
    store64(relation, LIVE, load64(relation, LIVE) + 1)


@compiled
def compact_relation(relation, more):
    """Give dead rows back when there are more of them than live ones.

    When there is no room for `more` rows, already when a fifth is dead: to grow costs as much.
    """
    live = load64(relation, LIVE)
    end = load64(relation, END)
    has_room = end + more <= load64(relation, CAPACITY) or 5 * live > 4 * end
    if end <= 2 * live + 64 and has_room:
        return
    if live == 0:
        forget_memory(relation)
        return
    arity = load64(relation, ARITY)
    kept = np.int64(0)
    for row in range(end):
        source = row_address(relation, row)
        if load64(source, STAMP) >= 0:
            target = row_address(relation, kept)
            for column in range(-1, arity):  # the stamp too
                store64(target, column, load64(source, column))
            kept += 1
    store64(relation, END, kept)
    store64(relation, INDEXED, kept)
    store64(relation, VISIBLE, kept)
    capacity = np.int64(CAPACITY_MIN)
    while capacity < max(kept + kept // 4, kept + more):
        capacity *= 2
    if capacity < load64(relation, ROOM):
        set_room(relation, capacity)
    resize_relation(relation, capacity)


@compiled
def clear_relation(relation):
    """Take all rows away, at the cost of the rows there are."""
    end = load64(relation, END)
    if end == 0:
        return
    room, capacity = load64(relation, ROOM), load64(relation, CAPACITY)
    if room > KEPT_MAX and 8 * end < room:
        forget_memory(relation)
        return
    indexed = load64(relation, INDEXED)
    if 8 * indexed > capacity or load64(relation, LIVE) != end:
        unlink_all(relation)
    else:
        unlink_rows(relation, indexed)
    for word in (END, INDEXED, VISIBLE, LIVE):
        store64(relation, word, 0)


@compiled
def unlink_all(relation):
    capacity = load64(relation, CAPACITY)
    zero_bytes(load64(relation, HASH), 8 * capacity)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        zero_bytes(load64(index, HEADS), 4 * capacity)
        index += INDEX_BYTES


@compiled
def unlink_rows(relation, end):
    arity = load64(relation, ARITY)
    slots = load64(relation, HASH)
    mask = load64(relation, MASK)
    for row in range(end):
        address = row_address(relation, row)
        slot = words_hash(address, arity) & mask
        while load32(slots, slot) != row + 1:
            slot = (slot + 1) & mask
        store32(slots, slot, 0)
        index = load64(relation, INDEX)
        for _ in range(load64(relation, INDEXES)):
            bucket = index_hash(address, load64(index, COLUMNS)) & load64(index, HEADS_MASK)
            store32(load64(index, HEADS), bucket, 0)
            index += INDEX_BYTES
