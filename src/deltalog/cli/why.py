"""`deltalog why`: the proof of a fact.

deltalog why graph.dl 'path(1, 3)' --facts edge=edges.csv
path(1, 3)   by graph.dl:4   path(X, Y) :- edge(X, Z), path(Z, Y).
├─ edge(1, 2)
└─ path(2, 3)   by graph.dl:3   path(X, Y) :- edge(X, Y).
   └─ edge(2, 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from deltalog.cli.explain import Form, OutputOptions, draw_graph, write_output
from deltalog.cli.opening import Settings, is_database, open_given
from deltalog.cli.option_groups import FactFiles, LimitOptions
from deltalog.cli.options import GivenFile
from deltalog.cli.progress import Progress
from deltalog.graphs.proof_graph import Drawable, answer_graph
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.why.proof import json_text
from deltalog.store.file_database import FileDatabase

EXAMPLE = 'deltalog why shop.db \'sees("ann", "plan")\' --sentences'

Fact: TypeAlias = Annotated[
    str, typer.Argument(metavar="FACT", help="A fact of a relation or view, as in 'path(1, 3)'.")
]
AsOf: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--version",
        "--as-of",
        metavar="VERSION",
        min=0,
        help="For a database file: ask the program and the facts as of this version.",
    ),
]
Sentences: TypeAlias = Annotated[
    bool, typer.Option("--sentences", help="Show what the rules have to `say` instead.")
]


def why(
    file: GivenFile,
    fact: Annotated[
        str,
        typer.Argument(
            metavar="FACT",
            help="A fact, as in 'path(1, 3)'; with variables, as in 'path(1, X)', all facts that "
            "fit are proved as one.",
        ),
    ],
    *,
    version: AsOf = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show all derivations instead of one lowest proof.")
    ] = False,
    sentences: Sentences = False,
    written: OutputOptions,
    files: FactFiles,
    limits: LimitOptions,
) -> None:
    """Prove why a fact holds, by a proof of least height down to base facts."""
    with open_to_prove(file, files, limits) as database:
        found = database.why(fact, version=version, every=every)
        write_reason(found, sentences, written)


def write_reason(found: Drawable, sentences: bool, written: OutputOptions) -> None:
    """Write an answer in the form that was asked for."""
    if sentences:
        text = "\n".join(found.sentences())
    elif written.form is Form.TEXT:
        text = str(found)
    elif written.form is Form.JSON:
        text = json_text(found.to_json())
    else:
        text = draw_graph(answer_graph(found), written.form)
    write_output(text, written.output)


@contextmanager
def open_to_prove(file: Path, files: FactFiles, limits: LimitOptions) -> Iterator[MemoryDatabase]:
    """The database file, or the program with its facts; views that need not be stored are not."""
    chosen = Settings(limits.limits, materialize=is_database(file))
    database = open_given(file, files.facts, files.facts_dir, chosen, Progress())
    try:
        yield database
    finally:
        if isinstance(database, FileDatabase):
            database.close()
