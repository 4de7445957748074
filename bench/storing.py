"""What it costs the embedded engine merely to store rows: the least that any change can cost.

    python -m bench.storing
    python -m bench.storing --held 550000 --rows 14000,100000,340000

Rows come to a relation that holds some already, then go again, by one call of a kernel each: no
rule, no test, no Python for each row. Users and documents, as in w7, which changes thousands of
rows at once. Before each call memory is walked over, so that nothing is in the cache of the
processor, as after other work. The same with two threads, each with a relation of its own.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from deltalog.engines.embedded.engine import EmbeddedEngine
from deltalog.engines.embedded.kernels import bulk

USERS, DOCUMENTS = 1_200, 4_000
CACHE, LINE = 64 << 20, 64
TRIES = 5


class Store:
    """A relation that holds rows, and others that are to come."""

    def __init__(self, held: int, rows: int, seed: int) -> None:
        draw = random.Random(seed)
        each = (held + rows) // USERS + 1
        pairs = [(u, d) for u in range(USERS) for d in draw.sample(range(DOCUMENTS), each)]
        draw.shuffle(pairs)
        self.engine = EmbeddedEngine()
        self.engine.create("pair", ("int", "int"))
        self.engine.insert("pair", pairs[:held])
        self.relation = self.engine.relations["pair"].address
        come = sorted(pairs[held : held + rows])
        self.words = array("q", (word for pair in come for word in pair))
        self.count = len(come)

    def insert(self) -> None:
        words = self.words.buffer_info()[0]
        bulk.insert_rows(self.engine.machine_address, self.relation, words, self.count)

    def delete(self) -> None:
        bulk.delete_rows(self.relation, self.words.buffer_info()[0], self.count)


def seconds(work: Callable[[], None], junk: bytearray) -> float:
    junk[::LINE] = bytes(len(junk) // LINE)
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def at_once(first: Callable[[], None], second: Callable[[], None]) -> None:
    other = threading.Thread(target=first)
    other.start()
    second()
    other.join()


def measured(held: int, rows: int, tries: int) -> Iterator[tuple[str, float]]:
    """What is done, and the nanoseconds it takes for a row, the median of some tries."""
    junk = bytearray(CACHE)
    found: dict[str, list[float]] = {"insert": [], "delete": [], "insert, two threads": []}
    for seed in range(tries):
        first, second = (Store(held, rows, 2 * seed + i) for i in range(2))
        one = seconds(first.insert, junk), seconds(first.delete, junk)
        first = Store(held, rows, 2 * seed)
        two = seconds(partial(at_once, first.insert, second.insert), junk) / 2
        for name, taken in zip(found, (*one, two), strict=True):
            found[name].append(1e9 * taken / rows)
    return ((name, median(all_taken)) for name, all_taken in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--held", type=int, default=550_000, help="rows that are there before")
    parser.add_argument("--rows", default="14000,100000,340000", help="how many come, A,B,…")
    parser.add_argument("--tries", type=int, default=TRIES)
    asked = parser.parse_args()
    Store(10, 10, 0).insert()  # kernels are loaded
    for rows in map(int, asked.rows.split(",")):
        for name, nanoseconds in measured(asked.held, rows, asked.tries):
            print(f"{rows:>9,} rows  {name:<20} {nanoseconds:6.0f} ns a row", flush=True)


if __name__ == "__main__":
    main()
