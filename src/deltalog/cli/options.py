"""The arguments and options that several commands share, described once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from deltalog.diagnostics.similar import did_you_mean
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.limits import Limits


class Format(StrEnum):
    """Output format of results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class NetworkForm(StrEnum):
    """Whether views under `differencing` are nodes of their own or expanded."""

    BUSHY = "bushy"
    FLAT = "flat"


class DurabilityName(StrEnum):
    """Durability of commits."""

    FULL = "full"
    NORMAL = "normal"


ProjectFile = Annotated[Path, typer.Argument(metavar="PROJECT", help="The project file, in TOML.")]
WholeJson = Annotated[bool, typer.Option("--json", help="Write one JSON object.")]


def one_of(name: str, known: Iterable[str], what: str) -> str:
    """Return the name if it is known, else raise a usage error."""
    known = tuple(known)
    if name in known:
        return name
    listed = f"use one of {', '.join(known)}"
    raise typer.BadParameter(f"unknown {what} `{name}`; {did_you_mean(name, known) or listed}")


def _known_strategies(texts: list[str] | None) -> list[str]:
    for text in texts or ():
        one_of(text.rpartition("=")[2].strip(), STRATEGIES, "strategy")
    return texts or []


def strategy_of(texts: Iterable[str] | None) -> str | Mapping[str, str]:
    """Convert `rederive` and `path=magic` to the argument of `connect`.

    >>> strategy_of(["rederive", "path=magic"]), strategy_of(None)
    ({'*': 'rederive', 'path': 'magic'}, 'auto')
    """
    chosen: dict[str, str] = {}
    for text in texts or ():
        view, _, name = text.rpartition("=")
        view = view.strip() or "*"
        if chosen.setdefault(view, name.strip()) != name.strip():
            whose = "all views" if view == "*" else f"`{view}`"
            message = f"{whose} cannot have two strategies"
            raise typer.BadParameter(message, param_hint="--strategy")
    return chosen if chosen.keys() - {"*"} else chosen.get("*", "auto")


_EVALUATION = "Limits"

ProgramFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The program; `-` reads it from standard input."),
]
GivenFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The program, or a database file; `-` reads a program from standard input.",
    ),
]
DatabaseFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DATABASE", help="A database file.")
]
Wait: TypeAlias = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="How long to wait while another process is writing to the database.",
    ),
]
Durability: TypeAlias = Annotated[
    DurabilityName,
    typer.Option(
        "--durability",
        metavar="full|normal",
        help="For a database file: commits survive a power failure, or only a process crash.",
    ),
]
Facts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--facts",
        metavar="RELATION=FILE",
        help="Load a base relation from a .csv, .tsv, .jsonl or .parquet file; may be repeated.",
    ),
]
FactsDirectory: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--facts-dir",
        metavar="DIRECTORY",
        help="Load every base relation from the file of the same name in this directory.",
    ),
]
FormatOption: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="table|json|csv",
        help="Output format: a table, JSON lines, or CSV.",
    ),
]
Strategies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="[VIEW=]NAME",
        callback=_known_strategies,
        help="Strategy that computes the changes of all views, or of one; may be repeated: "
        f"{', '.join(STRATEGIES)}.",
    ),
]
Engine: TypeAlias = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        callback=lambda name: one_of(name, ENGINES, "engine"),
        help="The engine that stores the facts and runs the rules: compiled, or the plain Python "
        "reference.",
    ),
]
RecomputeWith: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--recompute-with",
        metavar="|".join(ENGINES),
        callback=lambda name: name if name is None else one_of(name, ENGINES, "engine"),
        help="The engine that recomputes the views. Default: a second one of the same kind.",
    ),
]
Virtual: TypeAlias = Annotated[
    bool,
    typer.Option("--virtual", help="Store only views declared `materialized`."),
]
Network: TypeAlias = Annotated[
    NetworkForm,
    typer.Option(
        "--network",
        metavar="|".join(NetworkForm),
        help="For `differencing`: each view is a node, or is expanded into the views that use it.",
    ),
]
Parameters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Value of the parameter `$NAME` of a query, without quotes, parsed as the type of the "
        "column it is compared with; may be repeated.",
    ),
]
ChangesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--changes",
        metavar="CHANGES",
        help="Apply the transactions in this file first, as `deltalog apply` does.",
    ),
]
Relation: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--relation",
        metavar="NAME",
        help="The relation that a .csv, .tsv or .parquet file changes. Default: the file's name.",
    ),
]
Stats: TypeAlias = Annotated[
    bool,
    typer.Option("--stats", help="Show rounds and derived facts on standard error."),
]
RoundsMax: TypeAlias = Annotated[
    int,
    typer.Option(
        "--rounds-max",
        metavar="NUMBER",
        min=1,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation after this many rounds.",
    ),
]
FactsMax: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--facts-max",
        metavar="NUMBER",
        min=1,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation that generates more facts than this. Default: as many as fit into "
        "half of the memory.",
    ),
]
SecondsMax: TypeAlias = Annotated[
    float,
    typer.Option(
        "--seconds-max",
        metavar="SECONDS",
        min=0,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation that takes longer than this.",
    ),
]
FiringsMax: TypeAlias = Annotated[
    int,
    typer.Option(
        "--firings-max",
        metavar="NUMBER",
        min=1,
        rich_help_panel=_EVALUATION,
        help="Stop a transaction that executes active rules more often than this.",
    ),
]

ROUNDS_MAX = Limits().rounds_max
FACTS_MAX = Limits().facts_max
SECONDS_MAX = Limits().seconds_max
FIRINGS_MAX = Limits().firings_max
