"""Rounds of a part, and whole sequences of parts run to their fixpoint."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.deletion import (
    run_deletion,
)
from deltalog.engines.embedded.kernels.layout import (
    ABORTED,
    CAN_ABORT,
    CURRENT,
    DEADLINE,
    DELETION,
    DELETION_IS_DONE,
    DELETION_PREDICATES,
    DONE,
    END,
    FACTS,
    FACTS_MAX,
    HAS_FIRED,
    IS_SOFT,
    LAST,
    MADE,
    MAY_ABORT,
    MAY_APPEND,
    PART_HEADER,
    PART_HEADS,
    PART_KIND,
    PART_RULES,
    PARTS,
    PAUSE,
    PAUSE_AT,
    PAUSED,
    PRODUCTIVE,
    ROUNDS,
    ROUNDS_MAX,
    RULE_HEADER,
    SEQUENCE_HEADER,
    STOPPED,
    VARIANT,
    VARIANT_MARK,
    VARIANTS,
    VISIBLE,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    load64,
    monotonic_nanoseconds,
    store64,
)
from deltalog.engines.embedded.kernels.rules import (
    fire_rule,
)


@compiled
def open_round(heads, count):
    for i in range(count):
        head = load64(heads, i)
        store64(head, LAST, load64(head, END))


@compiled
def close_round(machine, heads, count):
    """Make what the round derived visible; returns how much it is."""
    new = np.int64(0)
    for i in range(count):
        head = load64(heads, i)
        end = load64(head, END)
        made = end - load64(head, LAST)
        store64(head, LAST, made)
        store64(head, MADE, load64(head, MADE) + made)
        store64(head, VISIBLE, end)
        new += made
    store64(machine, FACTS, load64(machine, FACTS) + new)
    return new


@compiled
def run_round(machine, code):
    """Fire every rule of a part once: (how it ended, how many facts are new).

    A deletion does all of its work in one round.
    """
    if load64(code, PART_KIND) == DELETION:
        count = load64(code, DELETION_PREDICATES)
        heads = code + 8 * (PART_HEADER + count)
        open_round(heads, 2 * count)
        status = np.int64(run_deletion(machine, code))
        return status, close_round(machine, heads, 2 * count)
    count, rules = load64(code, PART_HEADS), load64(code, PART_RULES)
    heads = code + 8 * PART_HEADER
    open_round(heads, count)
    status = np.int64(DONE)
    for i in range(rules):
        if fire_rule(machine, code, code + 8 * load64(heads, count + i)) == STOPPED:
            status = np.int64(STOPPED)
            break
    return status, close_round(machine, heads, count)


@compiled
def run_sequence(machine, sequence):
    """The soft consequence operator: always the lowest part that still yields something new.

    Comes back PAUSED between rounds when it has taken long, so that others can have a look.
    """
    parts = load64(sequence, PARTS)
    number = load64(sequence, CURRENT)
    store64(machine, MAY_ABORT, load64(sequence, CAN_ABORT))
    while number < parts:
        code = load64(sequence, SEQUENCE_HEADER + number)
        status, new = run_round(machine, code)
        store64(machine, ROUNDS, load64(machine, ROUNDS) + 1)
        if new == 0:
            number += 1
        elif load64(sequence, IS_SOFT) == 1:
            number = np.int64(0)
        store64(sequence, CURRENT, number)
        if status == ABORTED:
            return ABORTED
        if status == STOPPED or load64(machine, FACTS) > load64(machine, FACTS_MAX):
            return STOPPED
        if new > 0:
            productive = load64(machine, PRODUCTIVE) + 1
            store64(machine, PRODUCTIVE, productive)
            if productive >= load64(machine, ROUNDS_MAX):
                return STOPPED
            now = monotonic_nanoseconds()
            if now > load64(machine, DEADLINE):
                return STOPPED
            if now > load64(machine, PAUSE_AT):
                return PAUSED
    return DONE


@compiled
def begin_run(machine, rounds, rounds_max, facts, facts_max, until):
    """Note what a run may use, and what was used before it."""
    store64(machine, PRODUCTIVE, rounds)
    store64(machine, ROUNDS_MAX, rounds_max)
    store64(machine, FACTS, facts)
    store64(machine, FACTS_MAX, facts_max)
    store64(machine, DEADLINE, until)
    store64(machine, ROUNDS, 0)
    store64(machine, PAUSE_AT, monotonic_nanoseconds() + PAUSE)


@compiled
def run_alone(machine, sequence, rounds, rounds_max, facts, facts_max, until):
    """Run a sequence that belongs to no wave; what it makes is there to stay."""
    store64(machine, MAY_APPEND, 0)
    begin_run(machine, rounds, rounds_max, facts, facts_max, until)
    return run_sequence(machine, sequence)


@compiled
def rewind_part(code):
    """Forget what has been read: the next round starts from the beginning."""
    if load64(code, PART_KIND) == DELETION:
        store64(code, DELETION_IS_DONE, 0)
        return
    count, rules = load64(code, PART_HEADS), load64(code, PART_RULES)
    for i in range(rules):
        rule = code + 8 * load64(code, PART_HEADER + count + i)
        store64(rule, HAS_FIRED, 0)
        for variant in range(load64(rule, VARIANTS)):
            store64(rule, RULE_HEADER + VARIANT * variant + VARIANT_MARK, 0)


@compiled
def rewind_sequence(sequence):
    store64(sequence, CURRENT, 0)
    for number in range(load64(sequence, PARTS)):
        rewind_part(load64(sequence, SEQUENCE_HEADER + number))
