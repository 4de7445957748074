"""Firing a rule: what it has not read yet goes through its pipelines, then into groups."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.blocks import (
    row_address,
)
from deltalog.engines.embedded.kernels.layout import (
    ABSENT,
    AGGREGATION,
    AGGREGATION_HEADER,
    ARITY,
    BINDING_COUNT,
    BINDINGS,
    DONE,
    EMITTED_AT,
    END,
    FROM_SLOT,
    FROM_TOTAL,
    GROUP_WIDTH,
    GROUPS,
    HAS_FIRED,
    HEAD,
    HEAD_TOTALS,
    HEAD_VALUES,
    INITIAL,
    INTO,
    IS_APPENDING,
    IS_ONCE,
    IS_OVERLAY,
    LIVE,
    MATCH,
    MAY_APPEND,
    MINUS,
    MODE,
    ONCE,
    ONCE_A_ROW,
    OPERATION,
    PIPELINE_HEADER,
    PLUS,
    RULE_HEADER,
    SCAN,
    SCRATCH,
    SLOTS_AT,
    STEPS_OF,
    STOPPED,
    STORED,
    SUM_WORDS,
    SUMS_HEADER,
    TOTAL,
    TOTALS,
    TOTALS_AT,
    VALUE_KIND,
    VALUE_WORD,
    VALUE_WORDS,
    VARIANT,
    VARIANT_MARK,
    VARIANT_PIPELINE,
    VARIANT_RELATION,
    VARIANTS,
    VISIBLE,
    ZERO,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    inlined,
    load64,
    store64,
)
from deltalog.engines.embedded.kernels.pipeline import (
    run_pipeline,
)
from deltalog.engines.embedded.kernels.relation_memory import (
    add_row,
    clear_relation,
    ensure_indexed,
)
from deltalog.engines.embedded.kernels.totals import (
    total_value,
)


@compiled
def run_into(machine, code, start, target, marks):
    """Run a pipeline into a relation; where rows can come but once, they are appended."""
    walked = walked_first(code, start)
    if walked != 0 and load64(walked, VISIBLE) == 0:
        return np.int64(DONE)
    index_looked_up(code, start)
    once = load64(start, IS_ONCE)
    is_single = walked != 0 and load64(walked, END) == 1
    is_once = once == ONCE or (once == ONCE_A_ROW and is_single)
    is_appending = is_once and load64(machine, MAY_APPEND) == 1 and load64(target, END) == 0
    store64(machine, IS_APPENDING, 1 if is_appending else 0)
    return run_pipeline(machine, code, start, INTO, target, marks, ZERO)


@inlined
def walked_first(code, start):
    """The relation that the first step of a pipeline walks from end to end, or 0."""
    if load64(start, STEPS_OF) == 0:
        return ZERO
    step = code + 8 * load64(start, PIPELINE_HEADER)
    if load64(step, OPERATION) != MATCH or load64(step, MODE) != SCAN:
        return ZERO
    return ZERO if load64(step, IS_OVERLAY) == 1 else load64(step, STORED)


@compiled
def index_looked_up(code, start):
    """Index the rows of all relations in which a pipeline looks something up."""
    for number in range(load64(start, STEPS_OF)):
        step = code + 8 * load64(start, PIPELINE_HEADER + number)
        if load64(step, OPERATION) <= ABSENT:
            if load64(step, MODE) != SCAN:
                ensure_indexed(load64(step, STORED))
                if load64(step, PLUS) != 0:
                    ensure_indexed(load64(step, PLUS))
            if load64(step, MINUS) != 0:
                ensure_indexed(load64(step, MINUS))


@compiled
def fire_rule(machine, code, rule):
    """Derive what one rule derives from what it has not read yet.

    A head without columns has one row at most, so nothing is derived once that is there.
    """
    aggregation = load64(rule, AGGREGATION)
    target = load64(rule, HEAD)
    if load64(target, ARITY) == 0 and load64(target, LIVE) > 0:
        return DONE
    if aggregation != 0:
        target = load64(code + 8 * aggregation, GROUPS)
    marks = rule + 8 * RULE_HEADER
    if load64(rule, HAS_FIRED) == 0 and load64(rule, INITIAL) >= 0:
        start = code + 8 * load64(rule, INITIAL)
        if run_into(machine, code, start, target, marks) == STOPPED:
            return STOPPED
    store64(rule, HAS_FIRED, 1)
    variants = load64(rule, VARIANTS)
    for i in range(variants):
        variant = marks + 8 * VARIANT * i
        if load64(variant, VARIANT_MARK) < load64(load64(variant, VARIANT_RELATION), VISIBLE):
            start = code + 8 * load64(variant, VARIANT_PIPELINE)
            if run_into(machine, code, start, target, marks) == STOPPED:
                return STOPPED
    status = np.int64(DONE)
    if aggregation != 0:
        status = np.int64(fire_groups(machine, code, rule, code + 8 * aggregation, marks))
    for i in range(variants):
        variant = marks + 8 * VARIANT * i
        read = load64(load64(variant, VARIANT_RELATION), VISIBLE)
        store64(variant, VARIANT_MARK, read)
    return status


@compiled
def fire_groups(machine, code, rule, aggregation, marks):
    """Every group that was found becomes at most one row of the head."""
    groups, bindings = load64(aggregation, GROUPS), code + 8 * load64(aggregation, BINDINGS)
    width, values = load64(aggregation, GROUP_WIDTH), load64(aggregation, HEAD_VALUES)
    sums_size = SUMS_HEADER + SUM_WORDS * load64(aggregation, HEAD_TOTALS)
    head_at = aggregation + 8 * AGGREGATION_HEADER
    totals_at = head_at + 8 * VALUE_WORDS * values
    index_looked_up(code, bindings)
    scratch = load64(machine, SCRATCH)
    slots = scratch + 8 * SLOTS_AT
    emitted = scratch + 8 * EMITTED_AT
    sums = scratch + 8 * TOTALS_AT
    for group in range(load64(groups, END)):
        words = row_address(groups, group)
        for i in range(width):
            store64(slots, i, load64(words, i))
        for i in range(sums_size):
            store64(sums, i, 0)
        if run_pipeline(machine, code, bindings, TOTALS, aggregation, marks, ZERO) == STOPPED:
            clear_relation(groups)
            return STOPPED
        has_values = load64(sums, BINDING_COUNT) > 0
        for i in range(values):
            at = head_at + 8 * VALUE_WORDS * i
            kind, value = load64(at, VALUE_KIND), load64(at, VALUE_WORD)
            if kind == FROM_SLOT:
                value = load64(words, value)
            elif kind == FROM_TOTAL and has_values:
                has_values, value = total_value(totals_at + 8 * TOTAL * value, sums, value)
            store64(emitted, i, value)
        if has_values:
            add_row(machine, load64(rule, HEAD), emitted)
    clear_relation(groups)
    return DONE
