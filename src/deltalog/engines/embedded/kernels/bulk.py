"""Operations on many rows at once, as the engine calls them, and on all memory of an engine."""

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
    AHEAD,
    ARITY,
    CAPACITY,
    CLOCK,
    END,
    HEADS,
    HEADS_MASK,
    INDEX,
    INDEX_BYTES,
    INDEXED_COLUMNS,
    LINKS,
    LIVE,
    MOVE_CURSOR,
    MOVE_DELETED,
    MOVE_INSERTED,
    MOVE_STORED,
    MOVE_WORDS,
    NULL,
    PAIR_COLUMN,
    PAIR_WORD,
    PAIR_WORDS,
    QUEUE,
    SEEN_LOG,
    STAMP,
    VISIBLE,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    load32,
    load64,
    release_block,
    store64,
)
from deltalog.engines.embedded.kernels.relation_memory import (
    add_row,
    clear_relation,
    compact_relation,
    ensure_indexed,
    expect_new_row,
    find_row,
    prefetch_among,
    remove_row,
    reserve_for_many,
    reserve_rows,
    restore_row,
)


@compiled
def insert_rows(machine, relation, words, count):
    """Add rows that are not there; returns how many were new."""
    reserve_for_many(relation, count)
    before = load64(relation, LIVE)
    width = 8 * load64(relation, ARITY)
    for number in range(count):
        if load64(relation, END) == load64(relation, CAPACITY):
            compact_relation(relation, np.int64(1))
        if number + AHEAD < count:
            expect_new_row(relation, words + (number + AHEAD) * width)
        add_row(machine, relation, words + number * width)
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
            expect_new_row(relation, row + AHEAD * width + 8)
        add_row(machine, relation, row + 8)
    store64(relation, VISIBLE, load64(relation, END))
    return load64(relation, LIVE) - before


@compiled
def delete_rows(relation, words, count):
    before = load64(relation, LIVE)
    width = 8 * load64(relation, ARITY)
    for number in range(count):
        prefetch_among(relation, words, width, number, count)
        remove_row(relation, words + number * width)
    compact_relation(relation, np.int64(0))
    return before - load64(relation, LIVE)


@compiled
def find_rows(relation, words, count, out):
    """Whether each row is there, as words 0 and 1."""
    ensure_indexed(relation)
    width = 8 * load64(relation, ARITY)
    for number in range(count):
        prefetch_among(relation, words, width, number, count)
        store64(out, number, 1 if find_row(relation, words + number * width) >= 0 else 0)


@compiled
def copy_rows(relation, start, end, words, stamps):
    """Copy the live rows of a range, and their stamps if wanted; returns how many."""
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
    ensure_indexed(relation)
    arity = load64(relation, ARITY)
    index = load64(relation, INDEX) + number * INDEX_BYTES
    at = end - 1
    if number >= 0:
        state = np.int64(0)
        for i in range(count):
            if load64(keys, PAIR_WORDS * i + PAIR_COLUMN) < INDEXED_COLUMNS:
                state = mix_hash(state, load64(keys, PAIR_WORDS * i + PAIR_WORD))
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
                pair = keys + 8 * PAIR_WORDS * i
                if load64(source, load64(pair, PAIR_COLUMN)) != load64(pair, PAIR_WORD):
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
    ensure_indexed(relation)
    return find_row(relation, key) >= 0


@compiled
def rank_of_row(relation, key):
    ensure_indexed(relation)
    return load64(row_address(relation, find_row(relation, key)), STAMP)


@compiled
def move_rows(machine, moves, count):
    """Delete from each stored relation, then append what is inserted, in the order of stamps.

    Nothing that is inserted is there.
    """
    for i in range(count):
        each = moves + 8 * MOVE_WORDS * i
        stored, deleted = load64(each, MOVE_STORED), load64(each, MOVE_DELETED)
        end, rows = load64(deleted, END), row_address(deleted, 0)
        width = row_address(deleted, 1) - rows
        for row in range(end):
            prefetch_among(stored, rows, width, row, end)
            remove_row(stored, rows + row * width)
        dead = load64(stored, END) - load64(stored, LIVE)
        more = max(
            np.int64(0), load64(load64(each, MOVE_INSERTED), END) - dead
        )  # those that return have room
        compact_relation(stored, more)
        if more > 0:
            reserve_rows(stored, load64(stored, END) + more)
        store64(each, MOVE_CURSOR, 0)
    while True:
        best, first = np.int64(-1), np.int64(0)
        for i in range(count):
            each = moves + 8 * MOVE_WORDS * i
            inserted, row = load64(each, MOVE_INSERTED), load64(each, MOVE_CURSOR)
            if row < load64(inserted, END):
                stamp = load64(row_address(inserted, row), STAMP)
                if best < 0 or stamp < first:
                    best, first = np.int64(i), stamp
        if best < 0:
            break
        each = moves + 8 * MOVE_WORDS * best
        stored, inserted, row = (
            load64(each, MOVE_STORED),
            load64(each, MOVE_INSERTED),
            load64(each, MOVE_CURSOR),
        )
        rows = row_address(inserted, 0)
        width = row_address(inserted, 1) - rows
        prefetch_among(stored, rows, width, row, load64(inserted, END))
        restore_row(machine, stored, rows + row * width)
        store64(each, MOVE_CURSOR, row + 1)
    for i in range(count):
        stored = load64(moves + 8 * MOVE_WORDS * i, MOVE_STORED)
        store64(stored, VISIBLE, load64(stored, END))


@compiled
def clear_all(relations, count):
    for i in range(count):
        clear_relation(load64(relations, i))


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
    release_block(load64(machine, QUEUE))
    release_block(load64(machine, SEEN_LOG))
