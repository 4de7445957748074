"""A star join with an aggregate and a negation, on Spark: our change beside recomputing by hand.

    open_amount(R, C, sum(A), count()) :-
        invoice(I, U, P, A), not paid(I), customer(U, R), product(P, C).

Of all rows, three in five are invoices, the others their payments; customers and products are few.
A change is 1,000 rows: new invoices, payments, invoices withdrawn, payments returned. Once it is
about *recent* invoices, the last hundredth, as changes mostly are; once about invoices *anywhere*.
Rows are made on the cluster from their number, so nothing large passes through Python.

By hand it is one query over the very frames the database keeps in memory: dimensions broadcast, the
rest as Spark's optimiser thinks right. The state after the changes is made anew from the numbers,
and what the query gives on it must be what the database says.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import deltalog
from bench.measure import BenchError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROGRAM = """
base invoice(id: int, customer: int, product: int, amount: int).
base paid(invoice: int).
base customer(id: int, region: int).
base product(id: int, category: int).
open_amount(R, C, sum(A), count()) :-
    invoice(I, U, P, A), not paid(I), customer(U, R), product(P, C).
"""
CUSTOMERS, PRODUCTS, REGIONS, CATEGORIES, AMOUNTS = 50_000, 5_000, 20, 25, 1_000
KINDS = ("recent", "anywhere")
RECENT_SHARE = 0.01
WARM_UPS = 4
"""Until the machine code of a probe is there, each one is faster than the one before."""
CHANGED = {"billed": 400, "withdrawn": 200, "paid": 300, "returned": 100}
Change = dict[str, dict[str, list[tuple[int, ...]]]]


@dataclass
class StarFound:
    """Seconds at one size: ours per kind of change, and by hand."""

    rows: int
    load_seconds: float = 0.0
    by_hand_seconds: float = 0.0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    jobs: dict[str, dict[str, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return {
            "rows": self.rows,
            "load_seconds": round(self.load_seconds, 2),
            "by_hand_seconds": round(self.by_hand_seconds, 3),
            "seconds": {k: [round(s, 4) for s in v] for k, v in self.seconds.items()},
            "jobs": self.jobs,
        }


class Star:
    """The data, in numbers: the state is what they say, and what has been changed since."""

    def __init__(self, spark: SparkSession, rows: int, seed: int = 5) -> None:
        self.spark = spark
        self.invoices = rows * 3 // 5
        self.next = self.invoices
        self.draw = random.Random(seed)
        self.touched: set[int] = set()
        self.billed: list[tuple[int, ...]] = []
        self.withdrawn: list[tuple[int, ...]] = []
        self.paid: list[tuple[int, ...]] = []
        self.returned: list[tuple[int, ...]] = []

    # --- from numbers to rows

    def base(self) -> dict[str, DataFrame]:
        numbers = self.spark.range(self.invoices)
        return {
            "invoice": self._invoices(numbers),
            "paid": self._paid(numbers),
            "customer": self._dimension(CUSTOMERS, REGIONS),
            "product": self._dimension(PRODUCTS, CATEGORIES),
        }

    def _invoices(self, numbers: DataFrame) -> DataFrame:
        made = (("customer", CUSTOMERS), ("product", PRODUCTS), ("amount", AMOUNTS))
        drawn = (f"pmod(hash(id, '{name}'), {size}L) AS {name}" for name, size in made)
        return numbers.selectExpr("id", *drawn)

    def _paid(self, numbers: DataFrame) -> DataFrame:
        return numbers.where("pmod(hash(id, 'paid'), 3) < 2")

    def _dimension(self, size: int, groups: int) -> DataFrame:
        return self.spark.range(size).selectExpr("id", f"pmod(hash(id), {groups}L) AS its")

    def _numbered(self, ids: list[int]) -> DataFrame:
        return self.spark.createDataFrame([(i,) for i in ids], "id long")

    # --- changes

    def change(self, kind: str) -> Change:
        """The next change of a kind; no number is used twice."""
        first = 0 if kind == "anywhere" else int(self.invoices * (1 - RECENT_SHARE))
        wanted = 4 * sum(CHANGED.values())
        ids = [i for i in self._drawn(first, wanted) if i not in self.touched]
        rows = self._invoices(self._numbered(ids)).collect()
        is_paid = {row[0] for row in self._paid(self._numbered(ids)).collect()}
        paid, unpaid = [i for i in ids if i in is_paid], [i for i in ids if i not in is_paid]
        returned, paid = paid[: CHANGED["returned"]], unpaid[: CHANGED["paid"]]
        used = {*returned, *paid}
        free = [tuple(row) for row in rows if row[0] not in used]
        withdrawn = free[: CHANGED["withdrawn"]]
        new = [*range(self.next, self.next + CHANGED["billed"])]
        billed = [tuple(row) for row in self._invoices(self._numbered(new)).collect()]
        self.next += len(new)
        self.touched |= used | {row[0] for row in withdrawn}
        change: Change = {
            "insert": {"invoice": billed, "paid": [(i,) for i in paid]},
            "delete": {"invoice": withdrawn, "paid": [(i,) for i in returned]},
        }
        self.billed += billed
        self.withdrawn += withdrawn
        self.paid += change["insert"]["paid"]
        self.returned += change["delete"]["paid"]
        return change

    def _drawn(self, first: int, count: int) -> list[int]:
        span = range(first, self.invoices)
        return self.draw.sample(span, min(count, len(span)))

    def now(self) -> dict[str, DataFrame]:
        """The state after all changes, made from the numbers."""
        found = self.base()
        for name, gone, come in (
            ("invoice", self.withdrawn, self.billed),
            ("paid", self.returned, self.paid),
        ):
            data = found[name]
            if gone:
                ids = self._numbered([row[0] for row in gone])
                data = data.join(ids.hint("broadcast"), "id", "left_anti")
            found[name] = (
                data.unionAll(self.spark.createDataFrame(come, data.schema)) if come else data
            )
        return found


def by_hand(frames: dict[str, DataFrame]) -> set[tuple[Any, ...]]:
    """The view as a plain query; columns are taken by their place."""
    invoice = frames["invoice"].toDF("id", "customer", "product", "amount")
    paid = frames["paid"].toDF("id")
    customer = frames["customer"].toDF("customer", "region").hint("broadcast")
    product = frames["product"].toDF("product", "category").hint("broadcast")
    data = invoice.join(paid, "id", "left_anti").join(customer, "customer").join(product, "product")
    groups = data.groupBy("region", "category").agg({"amount": "sum", "*": "count"})
    named = groups.select("region", "category", "sum(amount)", "count(1)")
    return {tuple(row) for row in named.collect()}


def star(spark: SparkSession, found: StarFound, changes: int, is_first: bool) -> Iterator[str]:
    """Measure one size; says what comes next."""
    rows = found.rows
    made = Star(spark, rows)
    yield "loading"
    started = time.perf_counter()
    database = deltalog.connect(spark=spark, program=PROGRAM, facts=made.base())
    found.load_seconds = time.perf_counter() - started
    engine: Any = database.engine
    yield "recomputing by hand"
    frames = {name: engine.frame(name) for name in ("invoice", "paid", "customer", "product")}
    if is_first:
        by_hand(frames)  # compiles what the timed one finds compiled
    started = time.perf_counter()
    expected = by_hand(frames)
    found.by_hand_seconds = time.perf_counter() - started
    _must_agree(database, expected, f"{rows} rows")
    for kind in KINDS:
        yield f"changes, {kind}"
        for _ in range(WARM_UPS):  # they install and compile what later ones find
            database.apply(**made.change(kind))
        for _ in range(changes):
            change = made.change(kind)
            before = Counter(engine.jobs)
            started = time.perf_counter()
            database.apply(**change)
            found.seconds.setdefault(kind, []).append(time.perf_counter() - started)
            found.jobs[kind] = dict(engine.jobs - before)
    yield "checking"
    _must_agree(database, by_hand(made.now()), f"{rows} rows, changed")
    for relation in list(engine.relations):
        engine.drop(relation)


def _must_agree(
    database: deltalog.MemoryDatabase, expected: set[tuple[Any, ...]], what: str
) -> None:
    if database.facts("open_amount") != expected:
        raise BenchError(f"star join, {what}: the view is not what the query by hand says")
