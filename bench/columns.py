"""How fast do many rows get in and out, as columns and as tuples?

    python -m bench.columns            a million pairs of ints, milliseconds for each form

Measured are `apply` to a base relation without views and without a key, and all forms in which the
rows of that relation leave. `--file` measures a database in a file, `--text` pairs of text.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

import deltalog

TUPLES = "tuples"


def inputs(rows: int, is_text: bool) -> dict[str, Any]:
    """The same pairs in every form; polars only if it is installed."""
    random = np.random.default_rng(0)
    pairs = np.stack([random.permutation(rows), random.integers(0, rows, rows)], 1)
    table = pyarrow.table({"src": pairs[:, 0], "dst": pairs[:, 1]})
    if is_text:
        table = table.cast(pyarrow.schema({"src": pyarrow.string(), "dst": pyarrow.string()}))
    found: dict[str, Any] = {"Arrow": table, "pandas": table.to_pandas()}
    if not is_text:
        found["NumPy"] = pairs
    try:
        import polars
    except ImportError:
        print("polars is not installed")
    else:
        found["polars"] = polars.from_arrow(table)
    columns = [column.to_pylist() for column in table.columns]
    found["dict of lists"] = dict(zip(table.column_names, columns, strict=True))
    found[TUPLES] = list(zip(*columns, strict=True))
    return found


def outputs(with_polars: bool) -> Mapping[str, Callable[[deltalog.Rows], object]]:
    forms: dict[str, Callable[[deltalog.Rows], object]] = {
        "Arrow": deltalog.Rows.to_arrow,
        "pandas": deltalog.Rows.to_pandas,
        "NumPy": deltalog.Rows.to_numpy,
    }
    if with_polars:
        forms["polars"] = deltalog.Rows.to_polars
    return {**forms, TUPLES: list}


def _leave(db: deltalog.MemoryDatabase, leave: Callable[[deltalog.Rows], object]) -> object:
    return leave(db.rows("edge"))


def milliseconds(call: Callable[[], object]) -> tuple[float, float]:
    """Of the clock, and of the processor: on a busy machine the second says more."""
    began = time.perf_counter(), time.process_time()
    call()
    return 1000 * (time.perf_counter() - began[0]), 1000 * (time.process_time() - began[1])


def measure(rows: int, times_each: int, is_file: bool, is_text: bool, folder: Path) -> None:
    """Print a line for each form, the best of several times."""
    type_ = "str" if is_text else "int"
    program = f"base edge(src: {type_}, dst: {type_})."
    given = inputs(rows, is_text)

    def opened(number: int, name: str) -> deltalog.MemoryDatabase:
        path = folder / f"{name.replace(' ', '_')}{number}.db"
        return deltalog.connect(path if is_file else None, program=program)

    def report(name: str, times: list[tuple[float, float]]) -> None:
        clock, processor = map(min, zip(*times, strict=True))
        print(f"{name:32}{clock:8.0f} ms{processor:8.0f} ms of processor time")

    for name, form in given.items():
        times = []
        for number in range(times_each):
            db = opened(number, name)
            times.append(milliseconds(partial(db.apply, {"edge": form})))
        report(f"apply from {name}", times)
    for name, leave in outputs("polars" in given).items():
        leaving = partial(_leave, db, leave)
        report(f"rows to {name}", [milliseconds(leaving) for _ in range(times_each)])
    query = "edge(X, Y)"
    report(
        "query to Arrow",
        [milliseconds(lambda: db.query(query).to_arrow()) for _ in range(times_each)],
    )
    delta = db.what_if(delete={"edge": given["Arrow"]})
    report(
        "delta to Arrow", [milliseconds(lambda: delta.to_arrow("edge")) for _ in range(times_each)]
    )
    report("repr of the delta", [milliseconds(lambda: repr(delta))])
    report("facts, as a set", [milliseconds(lambda: db.facts("edge"))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--file", action="store_true")
    parser.add_argument("--text", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.rows, given.times, given.file, given.text, Path(folder))


if __name__ == "__main__":
    main()
