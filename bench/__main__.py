"""`python -m bench`: measure, show tables and a chart, write pictures and, if asked for, JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from bench.contenders import Gap, get_ready, unknown_names
from bench.crossover import crossover
from bench.durability import durability
from bench.embedded import embedded
from bench.follows_change import follows_change
from bench.installing import installing
from bench.measure import UNAVAILABLE, BenchError
from bench.ranked_deletion import ranked_deletion
from bench.settings import Finding, Progress, Settings
from bench.side_by_side import PACKAGES
from bench.single_changes import single_changes
from bench.spark import WORKLOADS as ON_SPARK
from bench.spark import spark
from bench.workloads import WORKLOADS, NothingFreshError

PARTS: Mapping[
    str, tuple[str, Callable[[Settings, Progress], Finding]]
] = {  # what matters most comes first
    "embedded": ("The embedded engine at full size", embedded),
    "durability": ("A database in a file", durability),
    "installing": ("Installing and changing rules", installing),
    "single_changes": ("A single change", single_changes),
    "follows_change": ("The cost follows the change", follows_change),
    "crossover": ("Where recomputation wins", crossover),
    "ranked_deletion": ("Deletion by ranks", ranked_deletion),
    "spark": ("On Spark, at 50 million rows", spark),
}
ALONE = ("spark",)
"""Parts that run only when they are asked for: they take long, and much memory."""
KNOWN = (*WORKLOADS, *ON_SPARK)
RESULTS = Path(__file__).parent / "results"
WIDTH_MIN = 210
SECONDS, SECONDS_QUICK = 6.0, 1.0
ALWAYS_MISSING = (
    Gap(
        "other systems",
        f"only {', '.join(PACKAGES)} and, on w6, DuckDB can be run side by side",
    ),
    Gap("strategies at full size", "scales are chosen so that the reference engine ends in time"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; 1 if a claim does not hold, 2 if the question is wrong."""
    given = _parser().parse_args(arguments)
    settings = _settings(given)
    problems = _problems(settings, given.parts)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 2
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_MIN
    try:
        findings = _measured(settings, given.parts or _usual_parts(), console, given.results)
    except (BenchError, NothingFreshError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    if given.json:
        kept = {name: finding.as_json() for name, finding in findings.items()}
        kept["gaps"] = [[gap.what, gap.why] for gap in _gaps(findings)]
        kept["python"] = platform.python_version()
        kept["load"] = _busy()
        given.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


def _measured(
    settings: Settings, parts: Sequence[str], console: Console, results: Path
) -> dict[str, Finding]:
    started = time.monotonic()
    progress = Progress()
    findings: dict[str, Finding] = {}
    results.mkdir(parents=True, exist_ok=True)
    for number, engine in enumerate(settings.side_by_side, start=1):
        progress.say("getting ready", engine, number, len(settings.side_by_side))
        with suppress(*UNAVAILABLE):  # each part will name it as a gap
            get_ready(engine)
    for name in parts:
        title, measure = PARTS[name]
        try:
            found = measure(settings, progress)
        finally:
            progress.clear()
        findings[name] = found
        console.rule(f"[bold]{title}", align="left", style="dim")
        found.show(console)
        for file, drawn in found.charts().items():
            (results / file).write_text(drawn, encoding="utf-8")
            console.print(f"drawn: {file}", style="dim")
    _show_gaps(_gaps(findings), console)
    console.print(f"{time.monotonic() - started:.0f} s in all. {_busy()}", style="dim")
    return findings


def _usual_parts() -> tuple[str, ...]:
    return tuple(name for name in PARTS if name not in ALONE)


def _busy() -> str:
    """Whether others were at work too: then times are too long, and uneven."""
    if not hasattr(os, "getloadavg"):
        return ""
    load, cores = os.getloadavg()[1], os.cpu_count() or 1
    said = f"The load average was {load:.1f} on {cores} cores"
    return f"{said}: times are longer than they need be." if load > cores else f"{said}."


def _gaps(findings: Mapping[str, Finding]) -> list[Gap]:
    return [*(gap for finding in findings.values() for gap in finding.gaps), *ALWAYS_MISSING]


def _show_gaps(gaps: Sequence[Gap], console: Console) -> None:
    """What could not be measured, gathered by reason."""
    by_reason: dict[str, list[str]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.why, []).append(gap.what)
    console.rule("[bold]Not measured", align="left", style="dim")
    for why, what in by_reason.items():
        console.print(f"[bold]{why}[/]: {'; '.join(what)}")


def _problems(settings: Settings, parts: Sequence[str]) -> list[str]:
    said = unknown_names(settings.strategies, settings.asked_engines)
    said += [f"unknown part `{p}`: there are {', '.join(PARTS)}" for p in parts if p not in PARTS]
    said += [
        f"unknown peer `{name}`: there are {', '.join(PACKAGES)}"
        for name in settings.peers
        if name not in PACKAGES
    ]
    for name in settings.workloads:
        if not any(Settings((name,)).includes(known) for known in KNOWN):
            said.append(f"unknown workload `{name}`: there are {', '.join(KNOWN)}")
    return said


def _settings(given: argparse.Namespace) -> Settings:
    seconds = SECONDS_QUICK if given.quick else SECONDS
    return Settings(
        workloads=given.workloads,
        scale=given.scale,
        changes=given.changes,
        strategies=given.strategies,
        asked_engines=given.engines,
        seconds_max=given.seconds if given.seconds is not None else seconds,
        is_quick=given.quick,
        peers=() if given.recorded_peers else given.peers,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--parts", type=_names, default=(), metavar="A,B", help=f"of {', '.join(PARTS)}")
    add("--workloads", type=_names, default=(), metavar="A,B", help=f"of {', '.join(KNOWN)}")
    add("--scale", type=float, help="one scale for everything, instead of one for each workload")
    add("--changes", type=int, help="transactions of each kind")
    add("--strategies", type=_names, default=(), metavar="A,B", help="only these")
    add("--engines", type=_names, default=(), metavar="A,B", help="side by side")
    add(
        "--seconds",
        type=float,
        help="for the transactions of one contender, or of one kind at full size",
    )
    add("--quick", action="store_true", help="less of everything, and not the largest workloads")
    add(
        "--peers",
        type=_names,
        default=tuple(PACKAGES),
        metavar="A,B",
        help=f"to build and run beside us: of {', '.join(PACKAGES)}; all, if not given",
    )
    add(
        "--recorded-peers",
        action="store_true",
        help="do not build and run them, but show recorded figures",
    )
    add("--json", type=Path, metavar="FILE", help="also write all figures to a file")
    add("--results", type=Path, default=RESULTS, metavar="DIR", help="where pictures go")
    return parser


if __name__ == "__main__":
    sys.exit(main())
