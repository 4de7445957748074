"""Active rules: does an update cost what it changes, whatever else there is?

    python -m bench.active_rules --items 1000000

- beside ten items, and beside a million;
- with one rule, and with a thousand over shared conditions;
- of a relation that no rule reads, with and without rules;
- of a relation that one integrity view reads, and 79 others do not;
- in cascades: each execution propagates what it adds, so a long one costs what its steps cost.

Medians of single updates, in microseconds of this process: other processes do not count.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import deltalog

INVENTORY = """
base quantity(item: int key, amount: int).
base reserve(item: int key, amount: int).
base other(x: int key, y: int).
threshold(I, T) :- reserve(I, R), T = R * 2.
low(I) :- quantity(I, Q), threshold(I, T), Q < T.
"""
RULE = """
base scarce(i: int).
rule reorder for I when low(I) do insert scarce(I) else delete scarce(I).
"""
UPDATES = 2_000
WARM = 500


Case = tuple[str, int, str]
"""A program, a number of items, and the relation that is updated."""


def median_updates(*cases: Case) -> list[float]:
    """The medians of single updates that trigger nothing, the cases taking turns."""
    databases = [deltalog.connect(program=text, facts=stock(items)) for text, items, _ in cases]
    times: list[list[float]] = [[] for _ in cases]
    for number in range(WARM + UPDATES):
        for db, (*_, relation), taken in zip(databases, cases, times, strict=True):
            row = (5, 1_000 + number % 7)
            started = time.process_time()
            db.apply(set={relation: [row]})
            taken.append(time.process_time() - started)
    return [statistics.median(taken[WARM:]) * 1e6 for taken in times]


def stock(items: int) -> dict[str, Any]:
    return {
        "quantity": [(i, 500) for i in range(items)],
        "reserve": [(i, 10) for i in range(items)],
        "other": [(i, 0) for i in range(10)],
    }


def shared(count: int) -> str:
    """This many rules, all of which begin with one condition."""
    lines = ["base scarce(i: int, n: int).\n"]
    lines += [f"rule r{n} for I when low(I) do insert scarce(I, {n}).\n" for n in range(count)]
    return INVENTORY + "".join(lines)


def views(count: int) -> str:
    """This many integrity views, the first of them over the relation that is updated."""
    lines = ["deny view v0(X) :- other(X, Y), Y < 0.\n"]
    lines += [f"deny view v{n}(I) :- quantity(I, Q), Q < {n}, low(I).\n" for n in range(1, count)]
    return INVENTORY + "".join(lines)


def cascade(length: int) -> float:
    """Seconds for a transaction in which a rule is executed this many times."""
    program = "base n(x: int). rule next on insert n(X) when X < {} do insert n(X + 1)."
    limits = deltalog.Limits(firings_max=length + 10)
    db = deltalog.connect(program=program.format(length), limits=limits)
    db.apply(insert={"n": [(length - 3,)]})
    started = time.process_time()
    delta = db.apply(insert={"n": [(0,)]})
    seconds = time.process_time() - started
    assert len(delta.firings) == length - 3
    return seconds


def figures(items: int) -> Iterator[str]:
    ruled = INVENTORY + RULE
    few, many = median_updates((ruled, 10, "quantity"), (ruled, items, "quantity"))
    yield f"update beside 10 items {few:.0f} µs, beside {items:,} {many:.0f} µs: {many / few:.2f}×"
    one, thousand = median_updates((shared(1), 10, "quantity"), (shared(1_000), 10, "quantity"))
    yield f"update with 1 rule {one:.0f} µs, with 1,000 {thousand:.0f} µs: {thousand / one:.2f}×"
    plain, beside = median_updates((INVENTORY, 10, "other"), (shared(1_000), 10, "other"))
    ratio = f"{beside / plain:.2f}×"
    yield f"update that no rule reads: {plain:.0f} µs, with 1,000 rules {beside:.0f} µs: {ratio}"
    single, all_views = median_updates((views(1), 10, "other"), (views(80), 10, "other"))
    ratio = f"{all_views / single:.2f}×"
    yield f"update that touches 1 of 1 view {single:.0f} µs, 1 of 80 {all_views:.0f} µs: {ratio}"
    for length in (10, 100, 500, 1_000):
        yield f"cascade of {length} executions: {cascade(length) * 1e3:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    for line in figures(parser.parse_args().items):
        print(line, flush=True)


if __name__ == "__main__":
    main()
