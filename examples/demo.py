"""The data pipeline in one minute: `make demo`.

A parts catalogue: what does a thing consist of, through all levels, and what does it cost? Tables
are loaded, three batches of changes arrive, and a bad one is refused. Spark runs on this machine;
what is left behind are Delta tables and Parquet files in `demo-catalogue/`.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import duckdb
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.step import Step

EXAMPLE = Path(__file__).parent / "catalogue"
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-catalogue")
VIEWS = ("contains", "bought", "material", "unpriced", "offer")

console = Console(highlight=False)
console.width = min(console.width, 100)


def main() -> None:
    prepare()
    show_rules()
    with console.status("starting Spark (the jars of Delta Lake are fetched on first use)"):
        pipeline = Pipeline(read_project(FOLDER / "project.toml"))
    with pipeline:
        for batch in (None, *batches()):
            show_batch(batch)
            for step in run(pipeline):
                show_step(step)
        show_audit(pipeline)
        show_spark(pipeline)
    show_duckdb()


def prepare() -> None:
    """The example, with nothing in its folder of incoming changes."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(EXAMPLE, FOLDER)
    for source in ("component", "price"):
        (FOLDER / "incoming" / source).mkdir(parents=True)


def batches() -> list[str]:
    """The names of the batches; one may have files of several sources."""
    return sorted({path.stem for path in (FOLDER / "batches").rglob("*.csv")})


def chapter(title: str, text: str) -> None:
    console.print()
    console.rule(f"[bold]{title}", align="left", style="dim")
    console.print(text)


def show_rules() -> None:
    chapter("Rules", "Components have components, so `contains` uses itself:")
    lines = (FOLDER / "catalogue.dl").read_text(encoding="utf-8").splitlines()
    rules = "\n".join(line for line in lines if line.startswith(VIEWS))
    console.print(Panel(Text(rules, style="cyan"), border_style="dim", expand=False))


def show_batch(batch: str | None) -> None:
    if batch is None:
        chapter("Load", "Three CSV files become tables, and every view is computed:")
        return
    number, _, name = batch.partition("-")
    files = sorted((FOLDER / "batches").rglob(f"{batch}.csv"))
    chapter(f"Batch {number}: {name.replace('-', ' ')}", "These files arrive:")
    for path in files:
        source = path.parent.name
        text = path.read_text(encoding="utf-8").strip()
        console.print(Panel(text, title=f"incoming/{source}", border_style="dim", expand=False))
        shutil.copy(path, FOLDER / "incoming" / source)


def run(pipeline: Pipeline) -> list[Step]:
    started = time.monotonic()
    with console.status("running"):
        steps = list(pipeline.steps())
    console.print(f"[dim]{time.monotonic() - started:.1f} s[/]")
    return steps


def show_step(step: Step) -> None:
    if step.refused:
        console.print("[red]Refused, nothing of it is taken; it is in the quarantine, with why:[/]")
        for bad in step.refused:
            console.print(f"  [red]{bad.reason}[/]  [dim]{bad.row}[/]")
        return
    table = Table("", "view", "facts", title=f"exact change, version {step.delta.version}")
    for op, name, row in step.delta.changes:
        colour = "green" if op == "+" else "red"
        table.add_row(op, name, ", ".join(map(str, row)), style=colour)
    if not step.delta.changes:
        table = Table("relation", "facts", title="loaded, version 1")
        for name, (new, _) in step.delta.counts.items():
            table.add_row(name, f"{new:,}")
    console.print(table)


def show_audit(pipeline: Pipeline) -> None:
    chapter("Audit", "Every view recomputed from the base tables, and compared:")
    differences = pipeline.database.audit()
    console.print("[red]they differ[/]" if differences else "[green]no difference[/]")
    if differences:
        raise SystemExit(1)


def show_spark(pipeline: Pipeline) -> None:
    path = FOLDER / "state/tables/offer"
    chapter("Plain Spark", f"[cyan]spark.read.format('delta').load('{path}')[/]")
    shown(*rows_of(pipeline.spark.read.format("delta").load(str(path)).orderBy("part")))


def rows_of(frame: object) -> tuple[list[str], list[tuple[object, ...]]]:
    return frame.columns, [tuple(row) for row in frame.collect()]  # type: ignore[attr-defined]


def show_duckdb() -> None:
    files = FOLDER / "out/offer/*.parquet"
    query = f"FROM '{files}' ORDER BY cents DESC"
    chapter("DuckDB, on the Parquet files that the sink writes", f"[cyan]{query}[/]")
    found = duckdb.sql(query)
    shown(found.columns, found.fetchall())
    console.print(f"\nEverything is in [bold]{FOLDER}[/]. Change it, and go on with")
    console.print(f"  [cyan]deltalog pipeline run {FOLDER}/project.toml[/]")


def shown(columns: list[str], rows: list[tuple[object, ...]]) -> None:
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


if __name__ == "__main__":
    main()
