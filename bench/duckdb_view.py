"""The view of w6 recomputed by DuckDB: what a single change is compared with.

The rows are loaded into tables of DuckDB's own, which is not timed. What is timed is to compute the
view into a table, the way one would refresh it: all cores, nothing read from disk, no rows fetched.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa

from bench.workloads import Fact

TIMES = 7
TABLES = {"orders": ("id", "customer", "amount"), "customer": ("id", "region")}
VIEW = """
    CREATE OR REPLACE TABLE by_region AS
    SELECT region, count(*) AS orders, sum(amount)::BIGINT AS amount
    FROM orders JOIN customer ON orders.customer = customer.id GROUP BY region
"""


def recomputed(base: Mapping[str, Collection[Fact]]) -> tuple[list[float], set[Fact]]:
    """Milliseconds of each recomputation, and the rows of the view. May raise `ImportError`."""
    import duckdb

    connection = duckdb.connect()
    for name, columns in TABLES.items():
        size = (len(base[name]), len(columns))
        values = np.fromiter(chain.from_iterable(base[name]), np.int64, size[0] * size[1])
        given = pa.table(dict(zip(columns, values.reshape(size).T, strict=True)))
        connection.register("given", given)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    milliseconds = []
    for _ in range(TIMES):
        started = time.perf_counter()
        connection.execute(VIEW)
        milliseconds.append((time.perf_counter() - started) * 1_000)
    return milliseconds, set(connection.execute("SELECT * FROM by_region").fetchall())
