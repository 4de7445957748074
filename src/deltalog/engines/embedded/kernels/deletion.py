"""Ranked deletion (see plan/ranked_deletion.py): suspects are examined in order of rank."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    row_address,
    words_hash,
)
from deltalog.engines.embedded.kernels.layout import (
    ABORTED,
    AHEAD,
    ARITY,
    BATCH,
    DEADLINE,
    DELETED,
    DELETION_IS_DONE,
    DELETION_PREDICATES,
    DONE,
    DOUBTFUL,
    END,
    FIRST,
    FOUND,
    GONE,
    H_WORDS,
    HELD,
    LARGEST,
    LIVE,
    LOST,
    LOST_HEAD,
    LOST_PIPELINE,
    LOST_WORDS,
    LOW_HALF,
    LOWEST,
    MAY_ABORT,
    ONE,
    PART_HEADER,
    PASSED_OVER,
    PIPELINE_HEADER,
    PREDICATE_HEADER,
    QUEUED,
    RANK,
    RELATION,
    SCRATCH,
    SEEN_COUNT,
    SEEN_LOG,
    SLOTS_AT,
    STAMP,
    STEPS,
    STEPS_MIN,
    STEPS_OF,
    STEPS_PER_FACT,
    STOPPED,
    SUPPORT,
    SUSPECT,
    SUSPECT_SHIFT,
    SUSPECTS,
    T_RANK,
    T_STANDS,
    T_SUSPECT,
    TAKEN_AT,
    TAKEN_ROW,
    ZERO,
)
from deltalog.engines.embedded.kernels.matching import (
    large_relation,
    place_of,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    inlined,
    load64,
    monotonic_nanoseconds,
    prefetch_line,
    store64,
)
from deltalog.engines.embedded.kernels.pipeline import (
    free_row,
    hold_row,
    run_pipeline,
    send_rows,
)
from deltalog.engines.embedded.kernels.relation_memory import (
    append_row,
    ensure_indexed,
)
from deltalog.engines.embedded.kernels.rules import (
    index_looked_up,
)
from deltalog.engines.embedded.kernels.suspects import (
    pop_suspect,
    push_suspect,
)


@inlined
def predicate_at(code, number):
    """The record of a predicate of a deletion."""
    return code + 8 * load64(code, PART_HEADER + number)


@compiled
def steps_allowed(machine, code, count):
    """Return how many steps a deletion may take before it is aborted."""
    if load64(machine, MAY_ABORT) == 0:
        return np.int64(1 << 62)
    facts = np.int64(0)
    for number in range(count):
        predicate = predicate_at(code, number)
        facts += load64(load64(predicate, RELATION), LIVE)
    return max(np.int64(STEPS_MIN), STEPS_PER_FACT * facts)


@inlined
def suspect_of_entry(code, entry):
    """A suspect: (its predicate, where its words are)."""
    predicate = predicate_at(code, entry >> SUSPECT_SHIFT)
    return predicate, row_address(load64(predicate, RELATION), entry & LOW_HALF)


@compiled
def take_batch(machine, code):
    """Take the suspects of lowest rank, and ask for the memory that is needed to examine them."""
    batch = load64(machine, SCRATCH) + 8 * TAKEN_AT
    count = min(BATCH, load64(machine, QUEUED))
    for i in range(count):
        taken = batch + 8 * TAKEN_ROW * i
        rank, entry = pop_suspect(machine)
        store64(taken, T_RANK, rank)
        store64(taken, T_SUSPECT, entry)
        _, words = suspect_of_entry(code, entry)
        prefetch_line(words)
    looked_at, is_far = ZERO, False
    for i in range(count):
        taken = batch + 8 * TAKEN_ROW * i
        predicate, words = suspect_of_entry(code, load64(taken, T_SUSPECT))
        if predicate != looked_at:
            looked_at, is_far = predicate, prefetch_for_suspect(code, predicate, words)
        elif is_far:
            prefetch_for_suspect(code, predicate, words)
    return count


@compiled
def prefetch_for_suspect(code, predicate, words):
    """Ask for the memory that the first steps for a suspect need; returns whether it is far."""
    lost = load64(predicate, LOST)
    at = predicate + 8 * PREDICATE_HEADER
    is_far = False
    for number in range(lost + load64(predicate, SUPPORT)):
        where = LOST_WORDS * number + LOST_PIPELINE if number < lost else lost + number
        pipeline = code + 8 * load64(at, where)
        if load64(pipeline, STEPS_OF) > 0:
            step = code + 8 * load64(pipeline, PIPELINE_HEADER)
            wanted = large_relation(step)
            if wanted != 0:
                is_far = True
                prefetch_line(place_of(step, wanted, words))  # its columns are the first slots
    return is_far


@inlined
def set_slots(slots, words, arity):
    for column in range(arity):
        store64(slots, column, load64(words, column))


@compiled
def examine_suspect(machine, code, predicate, words, rank):
    """Return whether a suspect has support; one without is deleted, which happens but once."""
    slots = load64(machine, SCRATCH) + 8 * SLOTS_AT
    arity = load64(load64(predicate, RELATION), ARITY)
    at = predicate + 8 * (PREDICATE_HEADER + LOST_WORDS * load64(predicate, LOST))
    store64(machine, PASSED_OVER, 0)
    for i in range(load64(predicate, SUPPORT)):
        set_slots(slots, words, arity)
        pipeline = code + 8 * load64(at, i)
        if run_pipeline(machine, code, pipeline, FIRST, ZERO, ZERO, rank) == FOUND:
            return True
    append_row(machine, load64(predicate, DELETED), words)
    store64(words, STAMP, load64(words, STAMP) | GONE)
    if load64(machine, PASSED_OVER) == 1:
        append_row(machine, load64(predicate, DOUBTFUL), words)
    return False


@compiled
def index_examined(code, predicate):
    """Index the rows that a deletion looks up."""
    lost = load64(predicate, LOST)
    at = predicate + 8 * PREDICATE_HEADER
    for i in range(lost):
        index_looked_up(code, code + 8 * load64(at, LOST_WORDS * i + LOST_PIPELINE))
    for i in range(load64(predicate, SUPPORT)):
        index_looked_up(code, code + 8 * load64(at, LOST_WORDS * lost + i))


@compiled
def suspect_derived(machine, code, predicate, words, rank):
    """Suspect what was derived from a deleted fact."""
    slots = load64(machine, SCRATCH) + 8 * SLOTS_AT
    arity = load64(load64(predicate, RELATION), ARITY)
    at = predicate + 8 * PREDICATE_HEADER
    for i in range(load64(predicate, LOST)):
        set_slots(slots, words, arity)
        head = predicate_at(code, load64(at, LOST_WORDS * i + LOST_HEAD))
        pipeline = code + 8 * load64(at, LOST_WORDS * i + LOST_PIPELINE)
        run_pipeline(machine, code, pipeline, SUSPECT, head, ZERO, rank)


@compiled
def run_deletion(machine, code):
    """Examine suspects in order of rank; those without support are deleted.

    They are taken in batches, so that memory is asked for before it is needed. A batch is
    examined in order of rank, but suspects that its deletions make come too late for it. One
    found without support by then has none now. One found with support, and has a higher rank
    than one of the new suspects, is examined again. The first of a batch never is, so this ends.
    """
    if load64(code, DELETION_IS_DONE) != 0:
        return DONE
    store64(code, DELETION_IS_DONE, 1)
    count = load64(code, DELETION_PREDICATES)
    store64(machine, QUEUED, 0)
    store64(machine, SEEN_COUNT, 0)
    store64(machine, HELD, 0)
    steps_max = load64(machine, STEPS) + steps_allowed(machine, code, count)
    for i in range(count):
        predicate = predicate_at(code, i)
        ensure_indexed(load64(predicate, RELATION))
        index_examined(code, predicate)
        suspects = load64(predicate, SUSPECTS)
        arity = load64(suspects, ARITY)
        for number in range(load64(suspects, END)):
            words = row_address(suspects, number)
            row = free_row(machine)
            set_slots(row + 8 * H_WORDS, words, arity)
            hold_row(machine, SUSPECT, predicate, row, words_hash(words, arity), -ONE)
    send_rows(machine, SUSPECT)
    status = np.int64(DONE)
    batch = load64(machine, SCRATCH) + 8 * TAKEN_AT
    examined = np.int64(0)
    while load64(machine, QUEUED) > 0:
        examined += 1
        if examined & 0xFF == 0 and monotonic_nanoseconds() > load64(machine, DEADLINE):
            status = np.int64(STOPPED)
            break
        if load64(machine, STEPS) > steps_max:
            status = np.int64(ABORTED)
            break
        run_batch(machine, code, batch, take_batch(machine, code))
    log, seen = load64(machine, SEEN_LOG), load64(machine, SEEN_COUNT)
    for i in range(seen):
        if i + AHEAD < seen:
            _, words = suspect_of_entry(code, load64(log, i + AHEAD))
            prefetch_line(words)
        _, words = suspect_of_entry(code, load64(log, i))
        store64(words, STAMP, load64(words, STAMP) & RANK)
    return status


@compiled
def run_batch(machine, code, batch, count):
    """Examine all suspects of a batch, then suspect what was derived from those that go."""
    for i in range(count):
        taken = batch + 8 * TAKEN_ROW * i
        predicate, words = suspect_of_entry(code, load64(taken, T_SUSPECT))
        stands = examine_suspect(machine, code, predicate, words, load64(taken, T_RANK))
        store64(taken, T_STANDS, 1 if stands else 0)
    store64(machine, LOWEST, LARGEST)
    for i in range(count):
        taken = batch + 8 * TAKEN_ROW * i
        if load64(taken, T_STANDS) == 0:
            predicate, words = suspect_of_entry(code, load64(taken, T_SUSPECT))
            suspect_derived(machine, code, predicate, words, load64(taken, T_RANK))
    send_rows(machine, SUSPECT)
    for i in range(count):
        taken = batch + 8 * TAKEN_ROW * i
        rank = load64(taken, T_RANK)
        if load64(taken, T_STANDS) == 1 and rank > load64(machine, LOWEST):
            push_suspect(machine, rank, load64(taken, T_SUSPECT))
