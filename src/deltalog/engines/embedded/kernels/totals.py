"""Totals of an aggregation: taking bindings in, and the value at the end."""

from __future__ import annotations

from deltalog.engines.embedded.kernels.layout import (
    AGGREGATION_HEADER,
    AVG,
    BINDING_COUNT,
    COUNT,
    EXTREME,
    HEAD_TOTALS,
    HEAD_VALUES,
    LOW_HALF,
    MIN,
    NULL,
    SCRATCH,
    SUM,
    SUM_COUNT,
    SUM_HIGH,
    SUM_LOW,
    SUM_WORDS,
    SUMS_HEADER,
    TOTAL,
    TOTAL_COLUMN,
    TOTAL_FUNCTION,
    TOTAL_KIND,
    TOTALS_AT,
    VALUE_WORDS,
)
from deltalog.engines.embedded.kernels.memory import (
    compiled,
    load64,
    store64,
)
from deltalog.engines.embedded.kernels.scalars import (
    int_of_halves,
    mean_of_halves,
    order_of,
)


@compiled
def accumulate_binding(machine, aggregation, binding):
    """Take one binding into the totals: bindings are counted, then each total has its sums."""
    sums = load64(machine, SCRATCH) + 8 * TOTALS_AT
    store64(sums, BINDING_COUNT, load64(sums, BINDING_COUNT) + 1)
    values_words = VALUE_WORDS * load64(aggregation, HEAD_VALUES)
    totals = aggregation + 8 * (AGGREGATION_HEADER + values_words)
    for i in range(load64(aggregation, HEAD_TOTALS)):
        each = totals + 8 * TOTAL * i
        function = load64(each, TOTAL_FUNCTION)
        if function == COUNT:
            continue
        word = load64(binding, load64(each, TOTAL_COLUMN))
        if word == NULL:
            continue
        at = sums + 8 * (SUMS_HEADER + SUM_WORDS * i)
        number = load64(at, SUM_COUNT)
        store64(at, SUM_COUNT, number + 1)
        if function in (SUM, AVG):
            store64(at, SUM_HIGH, load64(at, SUM_HIGH) + (word >> 32))
            store64(at, SUM_LOW, load64(at, SUM_LOW) + (word & LOW_HALF))
        elif number == 0:
            store64(at, EXTREME, word)
        else:
            order = order_of(machine, load64(each, TOTAL_KIND), word, load64(at, EXTREME))
            if (order < 0) == (function == MIN) and order != 0:
                store64(at, EXTREME, word)


@compiled
def total_value(code, sums, number):
    """The value of a total: null if there was nothing to take in."""
    at = sums + 8 * (SUMS_HEADER + SUM_WORDS * number)
    function = load64(code, TOTAL_FUNCTION)
    if function == COUNT:
        return True, load64(sums, BINDING_COUNT)
    if load64(at, SUM_COUNT) == 0:
        return True, NULL
    if function == SUM:
        return int_of_halves(load64(at, SUM_HIGH), load64(at, SUM_LOW))
    if function == AVG:
        return mean_of_halves(load64(at, SUM_HIGH), load64(at, SUM_LOW), load64(at, SUM_COUNT))
    return True, load64(at, EXTREME)
