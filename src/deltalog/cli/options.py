"""The arguments and options that several commands share, described once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from deltalog.diagnostics.similar import did_you_mean
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.database import ENGINES
from deltalog.runtime.limits import Limits


class Format(StrEnum):
    """How answers are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class NetworkForm(StrEnum):
    """Whether views under `differencing` are nodes of their own or expanded."""

    BUSHY = "bushy"
    FLAT = "flat"


class DurabilityName(StrEnum):
    """Whether a commit waits for the disk."""

    FULL = "full"
    NORMAL = "normal"


def one_of(name: str, known: Iterable[str], what: str) -> str:
    """The name if it is known; otherwise the command was not called as it should be."""
    known = tuple(known)
    if name in known:
        return name
    listed = f"there is {', '.join(known)}"
    raise typer.BadParameter(f"no {what} `{name}`; {did_you_mean(name, known) or listed}")


def _known_strategies(texts: list[str] | None) -> list[str]:
    for text in texts or ():
        one_of(text.rpartition("=")[2].strip(), STRATEGIES, "strategy")
    return texts or []


def strategy_of(texts: Iterable[str] | None) -> str | Mapping[str, str]:
    """What `connect` expects, from `rederive` and `path=magic`.

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
        help="How long to wait for another process that writes to the database.",
    ),
]
Durability: TypeAlias = Annotated[
    DurabilityName,
    typer.Option(
        "--durability",
        metavar="full|normal",
        help="Of a database file: whether commits survive a power failure, or only a crash.",
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
        help="Load each base relation that has a file of its name in this directory.",
    ),
]
FormatOption: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="table|json|csv",
        help="How answers are written: a table to read, JSON lines, or CSV.",
    ),
]
Strategies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="[VIEW=]NAME",
        callback=_known_strategies,
        help="How changes of views are computed, for all views or for one; may be repeated: "
        f"{', '.join(STRATEGIES)}.",
    ),
]
Engine: TypeAlias = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        callback=lambda name: one_of(name, ENGINES, "engine"),
        help="What holds the facts and runs the rules: compiled and fast, or plain and obvious.",
    ),
]
RecomputeWith: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--recompute-with",
        metavar="|".join(ENGINES),
        callback=lambda name: name if name is None else one_of(name, ENGINES, "engine"),
        help="What recomputes the views, if not a second engine of the same kind.",
    ),
]
Virtual: TypeAlias = Annotated[
    bool,
    typer.Option("--virtual", help="Store no view that is not declared `materialized`."),
]
Network: TypeAlias = Annotated[
    NetworkForm,
    typer.Option(
        "--network",
        metavar="|".join(NetworkForm),
        help="Under `differencing`: views are nodes of their own, or expanded where they are used.",
    ),
]
Parameters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="The value of a parameter, `$NAME` in a query, written without quotes and read as the "
        "type of the column it is compared with; may be repeated.",
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
        help="What a .csv, .tsv or .parquet file changes; without it the name of the file says so.",
    ),
]
Stats: TypeAlias = Annotated[
    bool,
    typer.Option("--stats", help="Show on standard error what was derived on the way."),
]
RoundsMax: TypeAlias = Annotated[
    int,
    typer.Option(
        "--rounds-max",
        metavar="NUMBER",
        min=1,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation after so many rounds.",
    ),
]
FactsMax: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--facts-max",
        metavar="NUMBER",
        min=1,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation that generates more facts. Without it, what half of the memory "
        "holds.",
    ),
]
SecondsMax: TypeAlias = Annotated[
    float,
    typer.Option(
        "--seconds-max",
        metavar="SECONDS",
        min=0,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation that takes longer.",
    ),
]

ROUNDS_MAX = Limits().rounds_max
FACTS_MAX = Limits().facts_max
SECONDS_MAX = Limits().seconds_max
