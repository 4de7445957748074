"""Chained indexes of a relation: heads by the hash of the key, and links, newest row first.

A link holds a row and the next link. The link of a row has its number; but where keys have many
rows, those that are there when an index is made have their links side by side. Dead rows are linked
too (see `relation_memory.py`), and readers of a chain pass over them.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    mix_hash,
    obtain_block,
    obtain_zeros,
    row_address,
)
from deltalog.engines.embedded.kernels.layout import (
    AHEAD,
    COLUMNS,
    HALF_BYTES,
    HEADS,
    HEADS_MASK,
    INDEX,
    INDEX_BYTES,
    INDEXED,
    INDEXES,
    IS_SORTED,
    LINK_SHIFT,
    LINKS,
    LOW_HALF,
    SIDE_BY_SIDE,
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
def index_hash(row, columns):
    state = np.int64(0)
    column = 0
    while columns:
        if columns & 1:
            state = mix_hash(state, load64(row, column))
        columns >>= 1
        column += 1
    return state


@inlined
def link_index(relation, index, row):
    bucket = index_hash(row_address(relation, row), load64(index, COLUMNS))
    bucket &= load64(index, HEADS_MASK)
    heads = load64(index, HEADS)
    store64(load64(index, LINKS), row, row | (load32(heads, bucket) << LINK_SHIFT))
    store32(heads, bucket, row + 1)


@inlined
def linked_row(link):
    return link & LOW_HALF


@inlined
def next_link(link):
    """The number of the link behind this one, or -1."""
    return (link >> LINK_SHIFT) - 1


@compiled
def expect_links(relation, words):
    """A row will be added soon."""
    index = load64(relation, INDEX)
    for _ in range(load64(relation, INDEXES)):
        bucket = index_hash(words, load64(index, COLUMNS)) & load64(index, HEADS_MASK)
        prefetch_line(load64(index, HEADS) + HALF_BYTES * bucket)
        index += INDEX_BYTES


@compiled
def link_rows(relation, index, start, end):
    for row in range(start, end):
        expect_bucket(relation, index, row + AHEAD, end)
        link_index(relation, index, row)


@compiled
def fill_index(relation, index):
    """Fill an empty index: links side by side if keys have many rows.

    Dead rows are linked, too: `restore_row` may bring any row back that is in the hash.
    """
    end, columns = load64(relation, INDEXED), load64(index, COLUMNS)
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
    """A row, if it is one of those below `end`, will be indexed soon."""
    if row < end:
        bucket = index_hash(row_address(relation, row), load64(index, COLUMNS))
        prefetch_line(load64(index, HEADS) + HALF_BYTES * (bucket & load64(index, HEADS_MASK)))


@compiled
def sort_links(relation, index):
    """Link all rows by bucket, and in a bucket newest first.

    Heads count the rows of their bucket, then tell where its next link goes, and finally where
    its first one is. A row that comes later has the link with its own number: it is not taken, as
    there are as many links as rows.
    """
    end, columns = load64(relation, INDEXED), load64(index, COLUMNS)
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
        store64(links, place, row | ((place + 2) << LINK_SHIFT))
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
def resize_index(index, had, capacity):
    if had > 0:
        release_block(load64(index, HEADS))
    store64(index, HEADS, obtain_zeros(4 * capacity))
    store64(index, HEADS_MASK, capacity - 1)
    store64(index, LINKS, obtain_block(load64(index, LINKS), 8 * capacity))
