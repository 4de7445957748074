"""Relations in native memory: rows, a hash over rows, chained indexes; and scalar operations.

A relation is a line of words at a fixed address; what it points to is allocated here and grows
here. Rows stand in the order they came, so a row's position tells what is new; its stamp, a word
before the others, is the rank of first derivation, comparable between relations, and -1 once the
row is dead. A dead row keeps its place until the relation is compacted between transactions, and
has it again if the same row returns before: only its stamp is set. That is right because *an index
has every row that the hash has*, dead ones included, whenever the index was built: `fill_index`
links dead rows too, `resize` builds hash and indexes together, and whatever adds a row to the hash
(`add_hashed`, `link`) links it into all indexes. Readers of a chain pass over dead rows.

    hash      open addressing over the whole row: position + 1, of dead rows too; 0 is free
    index     per set of columns: heads by the hash of the key, and links, newest row first; a link
              tells a row and the next link. The link of a row has its number; but where keys have
              many rows, those that are there when an index is made have their links side by side
    visible   where the rows end that rules may read; a round appends behind it
    entered   how many rows have been entered into hash and indexes; a *list* lags behind

Changes are often only walked over. So where rows cannot come twice they are listed, which costs
little, and entered when somebody looks one up, which may be never.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.memory import (
    allocated_zeros,
    as_float,
    as_word,
    ask_for_large_pages,
    compared_bytes,
    compiled,
    inlined,
    load32,
    load64,
    prefetch,
    reallocated,
    release,
    store32,
    store64,
    zero_bytes,
)

# A relation's line.
ROWS, ARITY, END, VISIBLE, CAPACITY, HASH, MASK, LIVE = range(8)
INDEX, INDEXES, LAST, MADE, NOTHING, ENTERED, ROOM = range(8, 15)
LINE = 16
STAMP = np.int64(-1)
"""Where the stamp of a row is, seen from its words."""
# An index.
COLUMNS, HEADS, HEADS_MASK, LINKS, IS_SORTED = range(5)
INDEX_BYTES = 40
SIDE_BY_SIDE = 4
"""From so many rows to a key on their links are side by side."""
# The machine: what all kernels of an engine share.
CLOCK, SCRATCH, DEADLINE, FACTS, FACTS_MAX, ROUNDS, ROUNDS_MAX, TEXTS = range(8)
QUEUE, QUEUED, QUEUE_SIZE, SEEN_LOG, SEEN_COUNT, SEEN_SIZE, PAUSE_AT, FRUITFUL = range(8, 16)
PASSED_OVER, STEPS, MAY_GIVE_UP, HELD, LOWEST, HOT_AFTER, HOT, HOT_LOG = range(16, 24)
IS_LIST, MAY_LIST = 24, 25
CALLED = 26
"""From here on: where the kernels are that machine code calls (`assembler.py`)."""
MACHINE = 40

CAPACITY_MIN, CAPACITY_MAX = 16, 2**30
INDEXED_COLUMNS = 63
"""Columns from here on have no bit in an index; they are compared, and not looked up by."""
LARGE_PAGE, LARGE_BLOCK = np.int64(1 << 21), np.int64(1 << 23)
KEPT_MAX = 1 << 14
"""A relation that is emptied keeps memory for so many rows, and more if it used much of it."""

# Expressions, in postfix order.
STOP, PUSH_SLOT, PUSH_WORD, APPLY = range(4)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE, ABSOLUTE, TO_FLOAT = range(8)
LEAST, GREATEST, HIGH, LOW, WHOLE, RATIO, SAME = range(8, 15)
INT, FLOAT, WORD, TEXT, DATE = range(5)

NULL = np.int64(-(2**63))
LARGEST = np.int64(2**63 - 1)
LAST_DAY = np.int64(3_652_059)

_MULTIPLIER = np.int64(-7046029254386353131)
_LOW_BITS = np.int64(0x7FFFFFFFF)
_HALF = np.int64(0xFFFFFFFF)


@inlined
def mixed(state, word):
    state = (state ^ word) * _MULTIPLIER
    return state ^ ((state >> 29) & _LOW_BITS)


@inlined
def words_hash(words, count):
    state = np.int64(0)
    for i in range(count):
        state = mixed(state, load64(words, i))
    return state


@inlined
def row_address(relation, row):
    """Where the words of a row begin; its stamp stands before them."""
    return load64(relation, ROWS) + 8 * (row * (load64(relation, ARITY) + 1) + 1)


@inlined
def are_same(left, right, count):
    for i in range(count):  # noqa: SIM110 (kernels have no generators)
        if load64(left, i) != load64(right, i):
            return False
    return True


@inlined
def find(relation, key):
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
def add(machine, relation, key):
    """Append a row unless it is there; answers whether it was new."""
    return add_hashed(machine, relation, key, words_hash(key, load64(relation, ARITY)))


@compiled
def append(machine, relation, words):
    """List a row that cannot be there; it is entered when somebody looks one up."""
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
    """Give a relation memory for so many rows, or more."""
    if capacity > CAPACITY_MAX:
        raise MemoryError("a relation of the embedded engine holds at most 2^30 rows")
    if capacity > load64(relation, ROOM):
        set_room(relation, capacity)


@compiled
def set_room(relation, capacity):
    width = 8 * (load64(relation, ARITY) + 1)
    store64(relation, ROWS, obtained(load64(relation, ROWS), width * capacity))
    store64(relation, ROOM, capacity)


@inlined
def enter(relation):
    """Rows are going to be looked up."""
    if load64(relation, ENTERED) != load64(relation, END):
        enter_listed(relation)


@compiled
def enter_listed(relation):
    end, capacity = load64(relation, END), load64(relation, CAPACITY)
    if end > capacity:
        capacity = max(np.int64(CAPACITY_MIN), capacity)
        while capacity < end:
            capacity *= 2
        store64(relation, ENTERED, end)
        resize(relation, capacity)
    else:
        link(relation, load64(relation, ENTERED), end)
        store64(relation, ENTERED, end)


@compiled
def add_hashed(machine, relation, key, state):
    enter(relation)
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
        resize(relation, max(CAPACITY_MIN, 2 * row))
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
    store64(relation, ENTERED, row + 1)
    store64(relation, LIVE, load64(relation, LIVE) + 1)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        link_index(relation, index, row)
        index += INDEX_BYTES
    return True


@inlined
def index_hash(row, columns):
    state = np.int64(0)
    column = 0
    while columns:
        if columns & 1:
            state = mixed(state, load64(row, column))
        columns >>= 1
        column += 1
    return state


@inlined
def link_index(relation, index, row):
    bucket = index_hash(row_address(relation, row), load64(index, COLUMNS))
    bucket &= load64(index, HEADS_MASK)
    heads = load64(index, HEADS)
    store64(load64(index, LINKS), row, row | (load32(heads, bucket) << 32))
    store32(heads, bucket, row + 1)


@inlined
def linked_row(link):
    return link & _HALF


@inlined
def next_link(link):
    """The number of the link behind this one, or -1."""
    return (link >> 32) - 1


AHEAD = 12
"""How many rows ahead of a loop over many of them memory is asked for."""


@inlined
def expect_slot(relation, words):
    """A row will be looked for soon."""
    state = words_hash(words, load64(relation, ARITY))
    prefetch(load64(relation, HASH) + 4 * (state & load64(relation, MASK)))


@inlined
def expect_row(relation, state):
    """A row with this hash will be looked for very soon, and its slot has been asked for."""
    found = load32(load64(relation, HASH), state & load64(relation, MASK))
    if found > 0:
        prefetch(row_address(relation, found - 1))


@compiled
def expect_links(relation, words):
    """A row will be added soon."""
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        bucket = index_hash(words, load64(index, COLUMNS)) & load64(index, HEADS_MASK)
        prefetch(load64(index, HEADS) + 4 * bucket)
        index += INDEX_BYTES


@compiled
def expect(relation, words):
    """A row that is probably new will be added soon."""
    expect_slot(relation, words)
    expect_links(relation, words)


@compiled
def look_ahead_among(relation, words, width, number, count):
    """In a loop over `count` rows, `width` bytes apart: ask for what later ones will need."""
    if number + 2 * AHEAD < count:
        expect_slot(relation, words + (number + 2 * AHEAD) * width)
    if number + AHEAD < count:
        key = words + (number + AHEAD) * width
        expect_row(relation, words_hash(key, load64(relation, ARITY)))


@compiled
def obtained(address, size):
    block = reallocated(address, size)
    if block == 0:
        raise MemoryError("no memory for a relation")
    in_large_pages(block, size)
    return block


@compiled
def zeros(size):
    block = allocated_zeros(size)
    if block == 0:
        raise MemoryError("no memory for a relation")
    in_large_pages(block, size)
    return block


@compiled
def in_large_pages(block, size):
    """With pages of the usual size, a row somewhere in a large block is not even known by address.

    The processor holds the addresses of some thousand pages.
    """
    if size >= LARGE_BLOCK:
        start = (block + LARGE_PAGE - 1) & -LARGE_PAGE
        end = (block + size) & -LARGE_PAGE
        ask_for_large_pages(start, end - start)


@compiled
def resize(relation, capacity):
    """Give a relation room for `capacity` rows (a power of two), and enter its rows anew."""
    had = load64(relation, CAPACITY)
    if had == capacity:
        unlink_all(relation)
        link_anew(relation)
        return
    make_room(relation, capacity)
    if had > 0:
        release(load64(relation, HASH))
    store64(relation, HASH, zeros(8 * capacity))
    store64(relation, MASK, 2 * capacity - 1)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        resize_index(index, had, capacity)
        index += INDEX_BYTES
    store64(relation, CAPACITY, capacity)
    link_anew(relation)


@compiled
def reserve(relation, count):
    """Make room at once for so many rows in all."""
    capacity = max(np.int64(CAPACITY_MIN), load64(relation, CAPACITY))
    while capacity < count:
        capacity *= 2
    if capacity > load64(relation, CAPACITY):
        resize(relation, capacity)


@compiled
def reserve_for_many(relation, count):
    """Make room at once for rows that are more than those that are there."""
    if count > load64(relation, END):
        reserve(relation, load64(relation, END) + count)


@compiled
def resize_index(index, had, capacity):
    if had > 0:
        release(load64(index, HEADS))
    store64(index, HEADS, zeros(4 * capacity))
    store64(index, HEADS_MASK, capacity - 1)
    store64(index, LINKS, obtained(load64(index, LINKS), 8 * capacity))


@compiled
def link(relation, start, end):
    """Enter the rows of a range, in neither hash nor indexes yet; the hash takes live ones only."""
    enter_hash(relation, start, end)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        link_rows(relation, index, start, end)
        index += INDEX_BYTES


@compiled
def link_anew(relation):
    """Enter all rows into the indexes and the live ones into the hash; all of these are empty."""
    enter_hash(relation, np.int64(0), load64(relation, ENTERED))
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        fill_index(relation, index)
        index += INDEX_BYTES


@compiled
def enter_hash(relation, start, end):
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
def link_rows(relation, index, start, end):
    for row in range(start, end):
        expect_bucket(relation, index, row + AHEAD, end)
        link_index(relation, index, row)


@compiled
def fill_index(relation, index):
    """Fill an empty index: links side by side if keys have many rows.

    Dead rows are linked, too: `restore` may bring any row back that is in the hash.
    """
    end, columns = load64(relation, ENTERED), load64(index, COLUMNS)
    heads, mask = load64(index, HEADS), load64(index, HEADS_MASK)
    buckets = np.int64(0)
    for row in range(end):
        expect_bucket(relation, index, row + AHEAD, end)
        bucket = index_hash(row_address(relation, row), columns) & mask
        count = load32(heads, bucket)
        store32(heads, bucket, count + 1)
        buckets += 1 if count == 0 else 0
    is_sorted = end > 0 and end >= SIDE_BY_SIDE * buckets
    store64(index, IS_SORTED, 1 if is_sorted else 0)
    if is_sorted:
        sort_links(relation, index)
        return
    zero_bytes(heads, 4 * (mask + 1))
    link_rows(relation, index, np.int64(0), end)


@inlined
def expect_bucket(relation, index, row, end):
    """A row, if it is one of those below `end`, will be entered into an index soon."""
    if row < end:
        bucket = index_hash(row_address(relation, row), load64(index, COLUMNS))
        prefetch(load64(index, HEADS) + 4 * (bucket & load64(index, HEADS_MASK)))


@compiled
def sort_links(relation, index):
    """Link all rows by bucket, and in a bucket newest first.

    Heads count the rows of their bucket, then tell where its next link goes, and in the end where
    its first one is. A row that comes later has the link with its own number: it is not taken, as
    there are as many links as rows.
    """
    end, columns = load64(relation, ENTERED), load64(index, COLUMNS)
    heads, mask, links = load64(index, HEADS), load64(index, HEADS_MASK), load64(index, LINKS)
    first = np.int64(0)
    for bucket in range(mask + 1):
        count = load32(heads, bucket)
        store32(heads, bucket, first)
        first += count
    for number in range(end):
        row = end - 1 - number
        if row >= AHEAD:
            expect_bucket(relation, index, row - AHEAD, end)
        bucket = index_hash(row_address(relation, row), columns) & mask
        place = load32(heads, bucket)
        store32(heads, bucket, place + 1)
        store64(links, place, row | ((place + 2) << 32))
    first = np.int64(0)
    for bucket in range(mask + 1):
        behind = load32(heads, bucket)
        if behind > first:
            store64(links, behind - 1, linked_row(load64(links, behind - 1)))
            store32(heads, bucket, first + 1)
        else:
            store32(heads, bucket, 0)
        first = behind


@compiled
def forget_memory(relation):
    """Give all memory of rows back; an empty relation reads a shared block of zeros."""
    if load64(relation, ROOM) > 0:
        release(load64(relation, ROWS))
    if load64(relation, CAPACITY) > 0:
        release(load64(relation, HASH))
    nothing = load64(relation, NOTHING)
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        if load64(relation, CAPACITY) > 0:
            release(load64(index, HEADS))
            release(load64(index, LINKS))
        store64(index, HEADS, nothing)
        store64(index, HEADS_MASK, 0)
        store64(index, LINKS, 0)
        store64(index, IS_SORTED, 0)
        index += INDEX_BYTES
    for word in (ROWS, ROOM, MASK, CAPACITY, END, ENTERED, VISIBLE, LIVE):
        store64(relation, word, 0)
    store64(relation, HASH, nothing)


@compiled
def discard(relation):
    forget_memory(relation)
    if load64(relation, INDEX) != 0:
        release(load64(relation, INDEX))
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
    store64(relation, INDEX, obtained(index, (count + 1) * INDEX_BYTES))
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
def remove(relation, key):
    """Mark a row dead, if it is there; chains pass over it until the relation is compacted."""
    enter(relation)
    slots = load64(relation, HASH)
    slot = slot_of(relation, key, words_hash(key, load64(relation, ARITY)))
    row = load32(slots, slot) - 1
    if row >= 0 and load64(row_address(relation, row), STAMP) >= 0:
        store64(row_address(relation, row), STAMP, -1)
        store64(relation, LIVE, load64(relation, LIVE) - 1)


@compiled
def restore(machine, relation, key):
    """Add a row that is not there; if a dead one has its words, it lives again, with a new rank.

    Every index has that dead row, however late it was built (see the top of this module).
    """
    state = words_hash(key, load64(relation, ARITY))
    row = load32(load64(relation, HASH), slot_of(relation, key, state)) - 1
    if row < 0:
        if load64(relation, END) == load64(relation, CAPACITY):
            compact(relation, np.int64(1))
        add_hashed(machine, relation, key, state)
        return
    stamp = load64(machine, CLOCK)
    store64(machine, CLOCK, stamp + 1)
    store64(row_address(relation, row), STAMP, stamp)
    store64(relation, LIVE, load64(relation, LIVE) + 1)


@compiled
def compact(relation, more):
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
    store64(relation, ENTERED, kept)
    store64(relation, VISIBLE, kept)
    capacity = np.int64(CAPACITY_MIN)
    while capacity < max(kept + kept // 4, kept + more):
        capacity *= 2
    if capacity < load64(relation, ROOM):
        set_room(relation, capacity)
    resize(relation, capacity)


@compiled
def clear(relation):
    """Take all rows away, at the cost of the rows there are."""
    end = load64(relation, END)
    if end == 0:
        return
    room, capacity = load64(relation, ROOM), load64(relation, CAPACITY)
    if room > KEPT_MAX and 8 * end < room:
        forget_memory(relation)
        return
    entered = load64(relation, ENTERED)
    if 8 * entered > capacity or load64(relation, LIVE) != end:
        unlink_all(relation)
    else:
        unlink_rows(relation, entered)
    for word in (END, ENTERED, VISIBLE, LIVE):
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


# --- many rows at once --------------------------------------------------------------------------


@compiled
def insert_rows(machine, relation, words, count):
    """Add rows that are not there; answers how many were new."""
    reserve_for_many(relation, count)
    before = load64(relation, LIVE)
    width = 8 * load64(relation, ARITY)
    for number in range(count):
        if load64(relation, END) == load64(relation, CAPACITY):
            compact(relation, np.int64(1))
        if number + AHEAD < count:
            expect(relation, words + (number + AHEAD) * width)
        add(machine, relation, words + number * width)
    store64(relation, VISIBLE, load64(relation, END))
    return load64(relation, LIVE) - before


@compiled
def load_rows(machine, relation, rows, count):
    """Add rows that have their stamps before them, as they stand in a relation."""
    reserve_for_many(relation, count)
    before = load64(relation, LIVE)
    width = 8 * (load64(relation, ARITY) + 1)
    for number in range(count):
        row = rows + number * width
        store64(machine, CLOCK, load64(row, 0))
        if number + AHEAD < count:
            expect(relation, row + AHEAD * width + 8)
        add(machine, relation, row + 8)
    store64(relation, VISIBLE, load64(relation, END))
    return load64(relation, LIVE) - before


@compiled
def delete_rows(relation, words, count):
    before = load64(relation, LIVE)
    width = 8 * load64(relation, ARITY)
    for number in range(count):
        look_ahead_among(relation, words, width, number, count)
        remove(relation, words + number * width)
    compact(relation, np.int64(0))
    return before - load64(relation, LIVE)


@compiled
def find_rows(relation, words, count, out):
    """Whether each row is there, as words 0 and 1."""
    enter(relation)
    width = 8 * load64(relation, ARITY)
    for number in range(count):
        look_ahead_among(relation, words, width, number, count)
        store64(out, number, 1 if find(relation, words + number * width) >= 0 else 0)


@compiled
def copy_rows(relation, start, end, words, stamps):
    """Copy the live rows of a range, and their stamps if wanted; answers how many."""
    arity = load64(relation, ARITY)
    count = np.int64(0)
    for row in range(start, end):
        source = row_address(relation, row)
        stamp = load64(source, STAMP)
        if stamp >= 0:
            target = words + 8 * count * arity
            for column in range(arity):
                store64(target, column, load64(source, column))
            if stamps != 0:
                store64(stamps, count, stamp)
            count += 1
    return count


@compiled
def matching_rows(relation, number, keys, count, start, end, out, room):
    """Copy the live rows of a range that have these (column, word) pairs; -1 if there are more.

    Newest first; with index number -1 every row of the range is looked at.
    """
    enter(relation)
    arity = load64(relation, ARITY)
    index = load64(relation, INDEX) + number * INDEX_BYTES
    at = end - 1
    if number >= 0:
        state = np.int64(0)
        for i in range(count):
            if load64(keys, 2 * i) < INDEXED_COLUMNS:
                state = mixed(state, load64(keys, 2 * i + 1))
        at = load32(load64(index, HEADS), state & load64(index, HEADS_MASK)) - 1
    found = np.int64(0)
    while at >= 0:
        row, at = at, at - 1
        if number >= 0:
            link = load64(load64(index, LINKS), row)
            row, at = linked_row(link), next_link(link)
        if row < start:
            break
        source = row_address(relation, row)
        if row < end and load64(source, STAMP) >= 0:
            fits = True
            for i in range(count):
                if load64(source, load64(keys, 2 * i)) != load64(keys, 2 * i + 1):
                    fits = False
                    break
            if fits:
                if found == room:
                    return np.int64(-1)
                target = out + 8 * found * arity
                for column in range(arity):
                    store64(target, column, load64(source, column))
                found += 1
    return found


@compiled
def is_there(relation, key):
    enter(relation)
    return find(relation, key) >= 0


@compiled
def rank(relation, key):
    enter(relation)
    return load64(row_address(relation, find(relation, key)), STAMP)


@compiled
def move(machine, pairs, count):
    """Take `gone` away from each stored relation, then append what came, in the order of stamps.

    Nothing that came is there. `pairs` holds per relation: stored, gone, come, and a cursor.
    """
    for i in range(count):
        pair = pairs + 32 * i
        stored, gone = load64(pair, 0), load64(pair, 1)
        end, rows = load64(gone, END), row_address(gone, 0)
        width = row_address(gone, 1) - rows
        for row in range(end):
            look_ahead_among(stored, rows, width, row, end)
            remove(stored, rows + row * width)
        dead = load64(stored, END) - load64(stored, LIVE)
        more = max(np.int64(0), load64(load64(pair, 2), END) - dead)  # those that return have room
        compact(stored, more)
        if more > 0:
            reserve(stored, load64(stored, END) + more)
        store64(pair, 3, 0)
    while True:
        best, first = np.int64(-1), np.int64(0)
        for i in range(count):
            pair = pairs + 32 * i
            come, row = load64(pair, 2), load64(pair, 3)
            if row < load64(come, END):
                stamp = load64(row_address(come, row), STAMP)
                if best < 0 or stamp < first:
                    best, first = np.int64(i), stamp
        if best < 0:
            break
        pair = pairs + 32 * best
        stored, come, row = load64(pair, 0), load64(pair, 2), load64(pair, 3)
        rows = row_address(come, 0)
        width = row_address(come, 1) - rows
        look_ahead_among(stored, rows, width, row, load64(come, END))
        restore(machine, stored, rows + row * width)
        store64(pair, 3, row + 1)
    for i in range(count):
        stored = load64(pairs + 32 * i, 0)
        store64(stored, VISIBLE, load64(stored, END))


@compiled
def clear_all(relations, count):
    for i in range(count):
        clear(load64(relations, i))


@compiled
def mark_words(relation, column, marks):
    """Mark every word of a column in an array of words."""
    for row in range(load64(relation, END)):
        words = row_address(relation, row)
        if load64(words, STAMP) >= 0:
            word = load64(words, column)
            if word != NULL:
                store64(marks, word, 1)


@compiled
def discard_machine(machine):
    release(load64(machine, QUEUE))
    release(load64(machine, SEEN_LOG))


# --- scalars ------------------------------------------------------------------------------------


@compiled
def evaluate(code, slots, stack):
    """A postfix expression: (whether it has a value, the value). A plain null is a value."""
    depth = np.int64(0)
    at = np.int64(0)
    while True:
        kind = load64(code, at)
        if kind == STOP:
            return True, load64(stack, 0)
        if kind == PUSH_SLOT:
            store64(stack, depth, load64(slots, load64(code, at + 1)))
            depth += 1
            at += 2
        elif kind == PUSH_WORD:
            store64(stack, depth, load64(code, at + 1))
            depth += 1
            at += 2
        else:
            function, kind, count = load64(code, at + 1), load64(code, at + 2), load64(code, at + 3)
            depth -= count
            for i in range(count):
                if load64(stack, depth + i) == NULL:
                    return False, np.int64(0)
            left = load64(stack, depth)
            right = load64(stack, depth + 1)
            if function == RATIO:
                has_value, value = ratio(left, right, load64(stack, depth + 2))
            elif kind == FLOAT:
                has_value, value = float_result(function, left, right)
            elif kind == DATE:
                has_value, value = date_result(function, left, right)
            else:
                has_value, value = int_result(function, left, right)
            if not has_value:
                return False, np.int64(0)
            store64(stack, depth, value)
            depth += 1
            at += 4


@compiled
def int_result(function, left, right):
    # Looked at before computing: the compiler may assume that signed words do not overflow.
    if function == ADD:
        if (right > 0 and left > LARGEST - right) or (right < 0 and left < -LARGEST - right):
            return False, np.int64(0)
        return True, left + right
    if function == SUBTRACT:
        if (right < 0 and left > LARGEST + right) or (right > 0 and left < -LARGEST + right):
            return False, np.int64(0)
        return True, left - right
    if function == MULTIPLY:
        if left == 0 or right == 0:
            return True, np.int64(0)
        if abs(left) > LARGEST // abs(right):
            return False, np.int64(0)
        return True, left * right
    if function in (DIVIDE, MODULO):
        if right == 0:
            return False, np.int64(0)
        quotient = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            quotient = -quotient
        return True, quotient if function == DIVIDE else left - quotient * right
    if function == NEGATE:
        return True, -left
    if function == ABSOLUTE:
        return True, abs(left)
    if function == TO_FLOAT:
        return True, as_word(np.float64(left))
    if function == LEAST:
        return True, min(left, right)
    if function == GREATEST:
        return True, max(left, right)
    if function == HIGH:
        return True, left >> 32
    if function == LOW:
        return True, left & _HALF
    if function == WHOLE:
        return whole(left, right)
    return True, left  # SAME


@compiled
def float_result(function, left_word, right_word):
    left, right = as_float(left_word), as_float(right_word)
    if function == ADD:
        result = left + right
    elif function == SUBTRACT:
        result = left - right
    elif function == MULTIPLY:
        result = left * right
    elif function == DIVIDE:
        if right == 0.0:
            return False, np.int64(0)
        result = left / right
    elif function == NEGATE:
        result = -left
    elif function == ABSOLUTE:
        result = abs(left)
    elif function == LEAST:
        result = right if right < left else left
    elif function == GREATEST:
        result = right if right > left else left
    else:
        result = left  # SAME
    if not np.isfinite(result):
        return False, np.int64(0)
    return True, as_word(result + 0.0)


@compiled
def date_result(function, day, days):
    """A day so many days later or earlier, or the days between two."""
    if abs(days) > 2 * LAST_DAY:
        return False, np.int64(0)
    result = day + days if function == ADD else day - days
    return 1 <= result <= LAST_DAY, result


@compiled
def whole(high, low):
    """The int made of a high and a low half (sums of halves, so the low one may be long)."""
    high += low >> 32
    low &= _HALF
    if high < -(2**31) or high >= 2**31:
        return False, np.int64(0)
    result = high * np.int64(2**32) + low
    return result != NULL, result


@compiled
def ratio(high, low, count):
    """The float nearest to (high * 2^32 + low) / count, for a count below 2^32."""
    if count <= 0 or count > _HALF:
        return False, np.int64(0)
    high += low >> 32
    low &= _HALF
    is_negative = high < 0
    if is_negative:  # the absolute value, in halves again
        high = -high
        if low != 0:
            high -= 1
            low = (_HALF + 1) - low
    # Digits to the base 2^32, three of them behind the point; quotient digits by long division.
    digits = (high >> 32, high & _HALF, low, np.int64(0), np.int64(0), np.int64(0))
    rest = np.uint64(0)
    top = np.uint64(0)  # the first 64 significant bits, as they come
    taken = np.int64(0)  # how many bits of the quotient have been taken, leading zeros left out
    left_out = np.int64(0)
    is_inexact = False
    divisor = np.uint64(count)
    for i in range(6):
        current = (rest << np.uint64(32)) | np.uint64(digits[i])
        digit = current // divisor
        rest = current - digit * divisor
        for bit in range(31, -1, -1):
            is_set = (digit >> np.uint64(bit)) & np.uint64(1)
            if taken == 0 and is_set == 0:
                continue
            if taken < 64:
                top = (top << np.uint64(1)) | is_set
                taken += 1
            else:
                left_out += 1
                if is_set != 0:
                    is_inexact = True
    if taken == 0:
        return True, as_word(0.0)
    exponent = left_out - 96
    is_inexact = is_inexact or rest != 0
    # 53 bits, halves to even.
    drop = max(taken - 53, np.int64(0))
    kept = top >> np.uint64(drop)
    if drop > 0:
        cut = top & ((np.uint64(1) << np.uint64(drop)) - np.uint64(1))
        half = np.uint64(1) << np.uint64(drop - 1)
        if cut > half or (cut == half and (is_inexact or (kept & np.uint64(1)) != 0)):
            kept += np.uint64(1)
    exponent += drop
    result = np.float64(kept)
    while exponent < 0:
        result *= 0.5
        exponent += 1
    while exponent > 0:
        result *= 2.0
        exponent -= 1
    return True, as_word(-result if is_negative else result)


@compiled
def text_order(machine, left, right):
    """Negative, zero or positive; texts are numbered, and their UTF-8 bytes sort as they do."""
    texts = load64(machine, TEXTS)
    left_size, right_size = load64(texts, 2 * left + 1), load64(texts, 2 * right + 1)
    order = compared_bytes(
        load64(texts, 2 * left), load64(texts, 2 * right), min(left_size, right_size)
    )
    return order if order != 0 else left_size - right_size


@compiled
def order_of(machine, kind, left, right):
    """Negative, zero or positive, for words that are no nulls."""
    if kind == FLOAT:
        a, b = as_float(left), as_float(right)
        return np.int64(-1) if a < b else np.int64(1) if a > b else np.int64(0)
    if kind == TEXT:
        return text_order(machine, left, right)
    return np.int64(-1) if left < right else np.int64(1) if left > right else np.int64(0)


@compiled
def compare(machine, operator, kind, left, right):
    """Operators 0 to 5: = != < <= > >=; nothing but equality holds of a null."""
    if operator == 0:
        return left == right
    if operator == 1:
        return left != right
    if left == NULL or right == NULL:
        return False
    order = order_of(machine, kind, left, right)
    if operator == 2:
        return order < 0
    if operator == 3:
        return order <= 0
    if operator == 4:
        return order > 0
    return order >= 0
