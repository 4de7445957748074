"""The arguments and options that several commands share, described once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from deltalog.runtime.limits import Limits


class Format(StrEnum):
    """How answers are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


_EVALUATION = "Limits"

ProgramFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="The program; `-` reads it from standard input."),
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
    int,
    typer.Option(
        "--facts-max",
        metavar="NUMBER",
        min=1,
        rich_help_panel=_EVALUATION,
        help="Stop an evaluation that generates more facts.",
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
