"""Many small tables in one pipeline: does the cost of a batch follow their number?

    python -m bench.many_tables --tables 20 --rows 2000

A project with this many base tables, a view of each and one that joins two, is loaded from CSV
files with that many rows together; then single rows come in files, for one table and for all.
Seconds are those of the run, without the start of Spark, with `freshness = "commit"`: all tables
that changed are brought up with every commit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from deltalog.engines.spark.session import local_session
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline

BATCHES = 5


def prepared(folder: Path, tables: int, rows: int) -> Path:
    """Write the program, the project and the files that are loaded."""
    each = rows // tables
    program, project = [], ['program = "shop.dl"', 'state = "state"', 'freshness = "commit"']
    for table in range(tables):
        following = (table + 1) % tables
        program.append(f"base t{table}(id: int key, amount: int, name: str).")
        program.append(f"v{table}(I, A) :- t{table}(I, A, _), A > 50.")
        program.append(f"w{table}(I, N) :- v{table}(I, _), t{following}(I, _, N).")
        project += [f"[sources.t{table}]", 'kind = "load"', 'format = "csv"']
        project += [f'path = "load/{table}.csv"', f"[sources.c{table}]", f'relation = "t{table}"']
        project += ['kind = "changes"', 'format = "csv"', f'path = "incoming/{table}"']
        (folder / f"incoming/{table}").mkdir(parents=True)
        (folder / "load").mkdir(exist_ok=True)
        lines = [f"{row},{row * 7 % 101},name {row}" for row in range(each)]
        text = "\n".join(["id,amount,name", *lines, ""])
        (folder / f"load/{table}.csv").write_text(text, encoding="utf-8")
    (folder / "shop.dl").write_text("\n".join(program), encoding="utf-8")
    (folder / "project.toml").write_text("\n".join(project), encoding="utf-8")
    return folder / "project.toml"


def put(folder: Path, table: int, name: str, row: int) -> None:
    text = f"op,id,amount,name\n+,{row},99,new\n"
    (folder / f"incoming/{table}/{name}.csv").write_text(text, encoding="utf-8")


def seconds(pipeline: Pipeline, commits: int) -> float:
    started = time.perf_counter()
    steps = list(pipeline.steps())
    assert len(steps) == commits, steps
    return time.perf_counter() - started


def measure(folder: Path, tables: int, rows: int) -> dict[str, float]:
    path = prepared(folder, tables, rows)
    spark = local_session(settings={"spark.log.level": "ERROR"})
    found: dict[str, float] = {}
    started = time.perf_counter()
    with Pipeline(read_project(path), spark) as pipeline:
        found["open"] = time.perf_counter() - started
        found["load"] = seconds(pipeline, 1)
        one, everywhere = [], []
        for batch in range(BATCHES):
            put(folder, batch % tables, f"{batch}-one", 1_000_000 + batch)
            one.append(seconds(pipeline, 1))
            for table in range(tables):
                put(folder, table, f"{batch}-two", 2_000_000 + batch)
            everywhere.append(seconds(pipeline, 1))
        assert not pipeline.database.audit()
    spark.stop()
    found["one row"] = statistics.median(one)
    found["a row for each table"] = statistics.median(everywhere)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), asked.tables, asked.rows)
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
