"""Changes of a state on disk, many in a row, over many views, and at random places.

    python -m bench.durable_changes row --batches 1000      one row each; the last beside the tenth
    python -m bench.durable_changes views --views 50        one row that touches all views
    python -m bench.durable_changes random --rows 1000000   1,000 rows anywhere, and all anew

Everything is durable when it is measured, with tables up to a minute behind and folds included;
`random` shows apart what it takes to bring the tables up, as rows anywhere are in all files.
Beside seconds of the clock, `row` and `views` show processor seconds of the driver, which does all
of their work: those do not depend on who else uses the machine.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deltalog
from bench.measure import BenchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = """
base edge(src: int, dst: int).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view reach(src: int, number: int).
reach(X, count()) :- path(X, _).
"""
STAR = """
base sale(id: int, shop: int, grams: int).
base shop(id: int, town: int).
view weight(id: int, town: int, grams: int).
weight(I, T, G) :- sale(I, S, G), shop(S, T).
view total(town: int, grams: int).
total(T, sum(G)) :- weight(_, T, G).
"""
SHOPS, TOWNS, NODES = 1_000, 100, 100
WINDOW = 20
"""Batches whose median stands for one of them."""


def seconds(change: Callable[[], object]) -> float:
    started = time.perf_counter()
    change()
    return time.perf_counter() - started


class Cost(NamedTuple):
    """Of one change, or the middle of many: by the clock, and of the processor."""

    clock: float
    processor: float

    def __str__(self) -> str:
        return f"{self.clock:.4f} s ({self.processor:.4f} s of the processor)"


def cost(change: Callable[[], object]) -> Cost:
    before = time.process_time()
    clock = seconds(change)
    return Cost(clock, time.process_time() - before)


def middle(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


def ratio(large: Cost, small: Cost) -> str:
    return f"{large.clock / small.clock:.2f} times ({large.processor / small.processor:.2f})"


def row(spark: SparkSession, folder: Path, batches: int) -> None:
    """Single rows in a row: does the cost stay, and do the files?"""
    rng = random.Random(1)
    took: list[Cost] = []
    with deltalog.connect(spark=spark, program=ROW, state=folder / "state") as db:
        db.load("edge", [(n, n + 1) for n in range(NODES)])
        for number in range(batches):
            new = (NODES + number, rng.randrange(NODES))
            took.append(cost(lambda new=new: db.apply(insert={"edge": [new]})))  # type: ignore[misc]
        db.fold()
        files = {name: len(table._rows_per_file()) for name, table in db._writer.stored.items()}
        log = len(db._state.log.table.files_for(-1, db.version))
        print(f"audit: {db.audit()}")
    tenth, last = middle(took[10 : 10 + WINDOW]), middle(took[-WINDOW:])
    print(
        f"batches {batches}: at the tenth {tenth}, at the last {last}, {ratio(last, tenth)}; ",
        end="",
    )
    clocks = [each.clock for each in took]
    print(f"mean {statistics.mean(clocks):.3f} s, most {max(clocks):.2f} s")
    print(f"files: log {log}, tables {files}")
    on_disk = sum(1 for _ in (folder / "state").rglob("*.parquet"))
    print(f"files on disk before a compaction: {on_disk}")


def program_of(views: int) -> str:
    rules = "".join(
        f"view v{n}(src: int, dst: int).\nv{n}(X, Y + {n}) :- edge(X, Y).\n" for n in range(views)
    )
    return f"base edge(src: int, dst: int).\n{rules}"


def views(spark: SparkSession, folder: Path, number: int) -> None:
    """One row that touches every view, beside one view: both states are open, rows alternate."""
    took: dict[int, list[Cost]] = {1: [], number: []}
    with ExitStack() as stack:
        opened: dict[int, Any] = {}
        for count in took:
            made = deltalog.connect(
                spark=spark, program=program_of(count), state=folder / f"state{count}"
            )
            opened[count] = stack.enter_context(made)
            facts = [(n, n) for n in range(2_000)]
            loading = seconds(lambda made=made, facts=facts: made.load("edge", facts))  # type: ignore[misc]
            print(f"{count} views: load {loading:.2f} s")
        for each in range(4 * WINDOW):
            for count, db in opened.items():
                change = {"edge": [(each, -1)]}
                took[count].append(cost(lambda db=db, c=change: db.apply(insert=c)))  # type: ignore[misc]
    found = {count: middle(each[WINDOW:]) for count, each in took.items()}
    for count, each_cost in found.items():
        print(f"{count} views: one row {each_cost}")
    print(f"{number} views cost {ratio(found[number], found[1])} one view")


def anywhere(spark: SparkSession, folder: Path, rows: int) -> None:
    """1,000 rows at random places, beside computing and writing the views anew."""
    from pyspark.sql import functions as F  # noqa: N812

    sale = spark.range(rows).select(
        F.col("id"), (F.col("id") % SHOPS).alias("shop"), (F.col("id") % 997).alias("grams")
    )
    shop = [(n, n % TOWNS) for n in range(SHOPS)]
    rng = random.Random(2)
    with deltalog.connect(spark=spark, program=STAR, state=folder / "state") as db:
        print(f"load of {rows:,}: {seconds(lambda: db.load({'sale': sale, 'shop': shop})):.1f} s")
        took = []
        for number in range(3):
            old = [(i, i % SHOPS, i % 997) for i in rng.sample(range(rows), 500)]
            new = [(rows + 500 * number + i, i, 5) for i in range(500)]
            change = {"delete": {"sale": old}, "insert": {"sale": new}}
            took.append(seconds(lambda c=change: db.apply(**c)))  # type: ignore[misc]
        folding = seconds(db.fold)
        held = db.frame("sale")
        anew = seconds(lambda: by_hand(spark, held, shop, folder / "by_hand"))
        total = spark.read.format("delta").load(str(folder / "by_hand/total"))
        if {tuple(each) for each in total.collect()} != db.facts("total"):
            raise BenchError("the views are not what the query by hand says")
    shown = ", ".join(f"{each:.2f}" for each in took)
    print(
        f"1,000 rows anywhere: {shown} s; anew {anew:.1f} s, {anew / min(took):.0f} times as much; "
        f"tables brought up after {len(took)} changes: {folding:.1f} s"
    )


def by_hand(spark: SparkSession, sale: Any, shop: list[tuple[int, int]], folder: Path) -> None:
    shops = spark.createDataFrame(shop, "shop long, town long")
    weight = sale.join(shops, "shop").select("id", "town", "grams")
    weight.write.format("delta").save(str(folder / "weight"))
    total = weight.groupBy("town").sum("grams")
    total.toDF("town", "grams").write.format("delta").save(str(folder / "total"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("row", "views", "random"))
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--views", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    from deltalog.engines.spark.session import local_session

    folder = Path(tempfile.mkdtemp(prefix="durable-"))
    try:
        spark = local_session(settings={"spark.driver.memory": "6g"})
        if options.what == "row":
            row(spark, folder, options.batches)
        elif options.what == "views":
            views(spark, folder, options.views)
        else:
            anywhere(spark, folder, options.rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
