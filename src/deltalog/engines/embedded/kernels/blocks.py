"""Blocks of memory, the words of rows in them, and the hash of words."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.layout import (
    ARITY,
    HASH_MULTIPLIER,
    HASH_SHIFT,
    HASH_SHIFTED_BITS,
    LARGE_BLOCK,
    LARGE_PAGE,
    ROWS,
)
from deltalog.engines.embedded.kernels.memory import (
    allocated_zeros,
    ask_for_large_pages,
    compiled,
    inlined,
    load64,
    reallocated_block,
)


@inlined
def mix_hash(state, word):
    state = (state ^ word) * HASH_MULTIPLIER
    return state ^ ((state >> HASH_SHIFT) & HASH_SHIFTED_BITS)


@inlined
def words_hash(words, count):
    state = np.int64(0)
    for i in range(count):
        state = mix_hash(state, load64(words, i))
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


@compiled
def obtain_block(address, size):
    block = reallocated_block(address, size)
    if block == 0:
        raise MemoryError("no memory for a relation")
    in_large_pages(block, size)
    return block


@compiled
def obtain_zeros(size):
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
