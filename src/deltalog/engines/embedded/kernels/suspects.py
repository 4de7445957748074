"""The queue of suspects of a ranked deletion: facts that lost a derivation, by rank."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    obtain_block,
    row_address,
)
from deltalog.engines.embedded.kernels.layout import (
    LISTS_MIN,
    LOWEST,
    PREDICATE,
    QUEUE,
    QUEUE_RANK,
    QUEUE_SIZE,
    QUEUE_SUSPECT,
    QUEUE_WORDS,
    QUEUED,
    RELATION,
    SEEN,
    SEEN_COUNT,
    SEEN_LOG,
    SEEN_SIZE,
    STAMP,
    SUSPECT_SHIFT,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    inlined,
    load64,
    store64,
)
from deltalog.engines.embedded.kernels.relation_memory import (
    find_hashed,
)


@inlined
def set_queued(heap, at, rank, suspect):
    store64(heap, QUEUE_WORDS * at + QUEUE_RANK, rank)
    store64(heap, QUEUE_WORDS * at + QUEUE_SUSPECT, suspect)


@inlined
def copy_queued(heap, source, target):
    from_, to = heap + 8 * QUEUE_WORDS * source, heap + 8 * QUEUE_WORDS * target
    store64(to, QUEUE_RANK, load64(from_, QUEUE_RANK))
    store64(to, QUEUE_SUSPECT, load64(from_, QUEUE_SUSPECT))


@compiled
def push_suspect(machine, stamp, entry):
    """Put a suspect into the queue, a heap by rank in which an entry has four below it."""
    size = load64(machine, QUEUED)
    if size == load64(machine, QUEUE_SIZE):
        store64(machine, QUEUE_SIZE, max(LISTS_MIN, 2 * size))
        wanted = 8 * QUEUE_WORDS * load64(machine, QUEUE_SIZE)
        store64(machine, QUEUE, obtain_block(load64(machine, QUEUE), wanted))
    heap = load64(machine, QUEUE)
    at = size
    while at > 0:
        parent = (at - 1) >> 2
        if load64(heap, QUEUE_WORDS * parent + QUEUE_RANK) <= stamp:
            break
        copy_queued(heap, parent, at)
        at = parent
    set_queued(heap, at, stamp, entry)
    store64(machine, QUEUED, size + 1)


@inlined
def log_seen(machine, entry):
    seen = load64(machine, SEEN_COUNT)
    if seen == load64(machine, SEEN_SIZE):
        store64(machine, SEEN_SIZE, max(LISTS_MIN, 2 * seen))
        wanted = 8 * load64(machine, SEEN_SIZE)
        store64(machine, SEEN_LOG, obtain_block(load64(machine, SEEN_LOG), wanted))
    store64(load64(machine, SEEN_LOG), seen, entry)
    store64(machine, SEEN_COUNT, seen + 1)


@compiled
def pop_suspect(machine):
    """The suspect of lowest rank: (rank, predicate and row)."""
    heap = load64(machine, QUEUE)
    stamp, entry = load64(heap, QUEUE_RANK), load64(heap, QUEUE_SUSPECT)
    size = load64(machine, QUEUED) - 1
    store64(machine, QUEUED, size)
    last = load64(heap, QUEUE_WORDS * size + QUEUE_RANK)
    last_entry = load64(heap, QUEUE_WORDS * size + QUEUE_SUSPECT)
    at = np.int64(0)
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        child, least = first, load64(heap, QUEUE_WORDS * first + QUEUE_RANK)
        for other in range(first + 1, min(first + 4, size)):
            rank = load64(heap, QUEUE_WORDS * other + QUEUE_RANK)
            child = other if rank < least else child
            least = min(rank, least)
        if least >= last:
            break
        copy_queued(heap, child, at)
        at = child
    set_queued(heap, at, last, last_entry)
    return stamp, entry


@inlined
def suspect_row(machine, predicate, words, state, rank):
    """A fact lost a derivation: if it is there and of higher rank, it must be examined."""
    relation = load64(predicate, RELATION)
    row = find_hashed(relation, words, state)
    if row < 0:
        return
    found = row_address(relation, row)
    stamp = load64(found, STAMP)
    if stamp & SEEN == 0 and stamp > rank:
        store64(found, STAMP, stamp | SEEN)
        entry = (load64(predicate, PREDICATE) << SUSPECT_SHIFT) | row
        push_suspect(machine, stamp, entry)
        log_seen(machine, entry)
        store64(machine, LOWEST, min(stamp, load64(machine, LOWEST)))
