"""From the command line to a database: read the program, open it, load the files of facts.

    --facts edge=edges.csv      this file into this base relation
    --facts-dir data            data/edge.csv (or .tsv, .jsonl, .parquet) into edge, and so on

All files are loaded in one transaction: it is evaluated once, and a bad file loads nothing. The
problems of all files are reported together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from deltalog.cli.progress import Progress
from deltalog.cli.terminal import note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Program
from deltalog.language.parser import parse
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import Database, connect, read_program
from deltalog.runtime.limits import Limits
from deltalog.runtime.transaction import Transaction, base_relation
from deltalog.source import Source
from deltalog.store.files import read_rows

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
STANDARD_INPUT = Path("-")


@dataclass(frozen=True)
class Assignment:
    """`edge=edges.csv`: a relation and the file it comes from or goes to."""

    relation: str
    path: Path


def assignments(texts: Iterable[str] | None, option: str) -> tuple[Assignment, ...]:
    """The values of an option such as `--facts`, each `RELATION=FILE`."""
    return tuple(_assignment(text, option) for text in texts or ())


def _assignment(text: str, option: str) -> Assignment:
    relation, equals, path = text.partition("=")
    if not (relation.strip() and equals and path):
        raise typer.BadParameter(
            f"`{text}` is not of the form RELATION=FILE, as in `{option} edge=edges.csv`",
            param_hint=option,
        )
    return Assignment(relation.strip(), Path(path))


def read_source(file: Path) -> Source:
    """The text of a program, from a file or from standard input."""
    if file != STANDARD_INPUT:
        return read_program(file)
    try:
        return Source("<stdin>", sys.stdin.read())
    except UnicodeDecodeError:
        raise not_text("standard input") from None


def not_text(name: str) -> DataError:
    return DataError([catalogue.CANNOT_READ.at(None, name=name, reason="it is not UTF-8 text")])


def open_program(
    program: Program, limits: Limits, progress: Progress, materialize: bool = True
) -> Database:
    with progress.phase("evaluating"):
        return connect(
            program=program, materialize=materialize, limits=limits, watch=progress.watch
        )


def read_and_parse(file: Path, progress: Progress) -> Program:
    with progress.phase(f"reading {file}"):
        return parse(read_source(file))


def load(database: Database, files: Iterable[Assignment], progress: Progress) -> ChangeSet:
    """Insert the facts in all the files, in one transaction."""
    transaction = database.transaction()
    problems: list[Diagnostic] = []
    with progress.phase("reading facts"):
        for file in files:
            try:
                _insert(database, transaction, file, progress)
            except DataError as error:
                problems += [_placed(diagnostic, file) for diagnostic in error.diagnostics]
        if problems:
            raise DataError(problems)
        return transaction.commit()


def _insert(
    database: Database, transaction: Transaction, file: Assignment, progress: Progress
) -> None:
    relation = base_relation(database.relations, file.relation)
    rows = read_rows(file.path, relation.columns)
    transaction.insert(file.relation, progress.counted(rows, str(file.path)))


def _placed(diagnostic: Diagnostic, file: Assignment) -> Diagnostic:
    """Name the file where the message does not: a key that is taken, say."""
    is_about_name = diagnostic.code in (catalogue.NO_SUCH_RELATION.code, catalogue.NOT_BASE.code)
    if is_about_name or str(file.path) in diagnostic.message:
        return diagnostic
    return replace(diagnostic, message=f"{file.path}: {diagnostic.message}", hint=None)


def files_in(directory: Path | None, database: Database) -> tuple[Assignment, ...]:
    """The files in the directory that are named after base relations."""
    if directory is None:
        return ()
    found: dict[str, list[Path]] = {}
    for path in _fact_files(directory):
        found.setdefault(path.stem, []).append(path)
    for name, paths in found.items():
        if len(paths) > 1:
            both = " and ".join(path.name for path in paths)
            reason = f"{both} are both there; name one with `--facts {name}=FILE`"
            raise DataError([catalogue.CANNOT_READ.at(None, name=directory, reason=reason)])
    base = {name for name, relation in database.relations.items() if relation.kind == "base"}
    for name in sorted(found.keys() - base):
        hint = did_you_mean(name, base)
        note(f"{found[name][0]} is not loaded: no base relation has this name" + _also(hint))
    return tuple(Assignment(name, found[name][0]) for name in sorted(found.keys() & base))


def _also(hint: str | None) -> str:
    return f"; {hint}" if hint else ""


def _fact_files(directory: Path) -> Iterator[Path]:
    try:
        paths = sorted(directory.iterdir())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_READ.at(None, name=directory, reason=reason)]) from None
    return (path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file())
