"""From the command line to a database: read the program, open it, load the files of facts.

    --facts edge=edges.csv      this file into this base relation
    --facts-dir data            data/edge.csv (or .tsv, .jsonl, .parquet) into edge, and so on

What is loaded at the start is there before views are computed for the first time. A bad file loads
nothing, and the problems of all files are reported together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from deltalog.analysis.columns import Relations
from deltalog.checks.program import check_program
from deltalog.cli.actions import register_actions
from deltalog.cli.amosql import is_amosql, schema_program
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import write_note
from deltalog.connect import connect
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Atom, Constant, Program, Row, Value
from deltalog.language.parser import parse_program
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.runtime.read_program import read_program
from deltalog.runtime.transaction import Ground, Transaction, base_relation
from deltalog.source import Source
from deltalog.store.file_database import FileDatabase
from deltalog.store.files import read_rows
from deltalog.store.log import Log
from deltalog.store.programs import stored_program
from deltalog.store.sqlite import sqlite_errors_reported
from deltalog.store.storage import open_to_read

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
STANDARD_INPUT = Path("-")
FactRows = Mapping[str, list[Row]]


@dataclass(frozen=True)
class Assignment:
    """`edge=edges.csv`: a relation and the file it comes from or goes to."""

    relation: str
    path: Path


def parse_assignments(texts: Iterable[str] | None, option: str) -> tuple[Assignment, ...]:
    """The values of an option such as `--facts`, each `RELATION=FILE`."""
    return tuple(_parse_assignment(text, option) for text in texts or ())


def _parse_assignment(text: str, option: str) -> Assignment:
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


def read_and_parse(file: Path, progress: Progress) -> Program:
    with progress.phase(f"reading {file}"):
        source = read_source(file)
        return schema_program(source) if is_amosql(file) else parse_program(source)


@dataclass(frozen=True)
class Settings:
    """How a database is opened, whatever program and facts it gets."""

    limits: Limits
    strategy: str | Mapping[str, str] = "auto"
    engine: str = DEFAULT_ENGINE
    materialize: bool = True
    network: str = "bushy"
    durability: str = "full"
    wait_seconds: float = 0.0
    actions: Path | None = None


def open_program(
    program: Program, settings: Settings, progress: Progress, facts: FactRows | None = None
) -> MemoryDatabase:
    """A database of the program; the facts are there before views are computed."""
    with progress.phase("evaluating"):
        made = connect(
            program=program,
            engine=settings.engine,
            strategy=settings.strategy,
            materialize=settings.materialize,
            network=settings.network,
            facts=facts,
            limits=settings.limits,
            watch=progress.watch,
        )
    register_actions(made, settings.actions)
    return made


def is_database(file: Path) -> bool:
    """Whether a file is a database rather than a program; what it is worth is seen later."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


_MAGIC = b"SQLite format 3\0"


def open_database(
    file: Path, settings: Settings, progress: Progress, read_only: bool
) -> FileDatabase:
    """A database file, as it is."""
    with progress.phase(f"loading {file}"):
        made = connect(
            file,
            engine=settings.engine,
            strategy=settings.strategy,
            materialize=settings.materialize,
            network=settings.network,
            limits=settings.limits,
            watch=progress.watch,
            durability=settings.durability,
            wait=settings.wait_seconds,
            read_only=read_only,
        )
    register_actions(made, settings.actions)
    return made


def program_in(file: Path) -> Program:
    """The program of a database file, without loading its facts."""
    storage = open_to_read(file)
    try:
        with sqlite_errors_reported(file):
            return stored_program(Log(storage.connection).program).program
    finally:
        storage.close()


def create_database(
    path: Path, program: Path | Program, settings: Settings, progress: Progress, facts: FactRows
) -> FileDatabase:
    """A new database file."""
    with progress.phase("evaluating"):
        return connect(
            path,
            program=program,
            engine=settings.engine,
            strategy=settings.strategy,
            materialize=settings.materialize,
            network=settings.network,
            facts=facts,
            limits=settings.limits,
            watch=progress.watch,
            durability=settings.durability,
        )


def refuse_facts(facts: Iterable[str] | None, facts_dir: Path | None) -> None:
    """A database file has its own."""
    if facts or facts_dir:
        raise typer.BadParameter(
            "a database file has its own facts; use `deltalog apply` to change them",
            param_hint="--facts" if facts else "--facts-dir",
        )


def refuse_facts_of_scripts(facts: Iterable[str] | None, facts_dir: Path | None) -> None:
    """An AMOSQL script sets its own values."""
    if facts or facts_dir:
        raise typer.BadParameter(
            "an AMOSQL script sets the values of its functions itself",
            param_hint="--facts" if facts else "--facts-dir",
        )


def open_given(
    file: Path,
    facts: Iterable[str] | None,
    facts_dir: Path | None,
    settings: Settings,
    progress: Progress,
    *,
    read_only: bool = True,
) -> MemoryDatabase:
    """A database file, or a program with files of facts, whichever is named."""
    if not is_database(file):
        return open_files(file, facts, facts_dir, settings, progress)
    refuse_facts(facts, facts_dir)
    return open_database(file, settings, progress, read_only)


def open_files(
    file: Path,
    facts: Iterable[str] | None,
    facts_dir: Path | None,
    settings: Settings,
    progress: Progress,
) -> MemoryDatabase:
    """A database from what the command line names: a program and files of facts."""
    loaded = parse_assignments(facts, "--facts")
    program = read_and_parse(file, progress)
    relations = check_program(program).relations
    files = (*files_in(facts_dir, relations), *loaded)
    rows = read_facts(program, relations, files, progress)
    return open_program(program, settings, progress, rows)


def read_facts(
    program: Program, relations: Relations, files: Iterable[Assignment], progress: Progress
) -> FactRows:
    """Rows of all the files; keys are checked with the facts of the program."""
    found: dict[str, list[Row]] = {}
    keys = _key_check(program, relations)
    with progress.phase("reading facts"), _collect_problems() as attempt:
        for file in files:
            with attempt(file):
                rows = list(_read_assigned_rows(relations, file, progress))
                if relations[file.relation].key:
                    keys.insert(file.relation, rows)
                found.setdefault(file.relation, []).extend(rows)
    return found


def _key_check(program: Program, relations: Relations) -> Transaction:
    """A transaction on nothing, never committed: it knows when a key is taken."""
    check = Transaction(Ground(relations, lambda *_: (), lambda base: base), lambda base: base)
    for fact in program.facts:
        relation = relations[fact.predicate]
        if relation.kind == "base" and relation.key:
            check.insert(fact.predicate, [constant_values(fact)])
    return check


def constant_values(fact: Atom) -> tuple[Value, ...]:
    """The values of a fact in a program."""
    return tuple(term.value for term in fact.arguments if isinstance(term, Constant))


def load_files(
    database: MemoryDatabase, files: Iterable[Assignment], progress: Progress
) -> ChangeSet:
    """Insert the facts in all the files into a running database, in one transaction."""
    transaction = database.transaction()
    with progress.phase("reading facts"):
        with _collect_problems() as attempt:
            for file in files:
                with attempt(file):
                    rows = _read_assigned_rows(database.relations, file, progress)
                    transaction.insert(file.relation, rows)
        return transaction.commit()


def _read_assigned_rows(
    relations: Relations, file: Assignment, progress: Progress
) -> Iterator[Row]:
    columns = base_relation(relations, file.relation).columns
    return progress.counted(read_rows(file.path, columns), str(file.path))


Attempt = Callable[[Assignment], AbstractContextManager[None]]


@contextmanager
def _collect_problems() -> Iterator[Attempt]:
    """Attempts at files, whose problems are raised together at the end."""
    problems: list[Diagnostic] = []

    @contextmanager
    def attempt(file: Assignment) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            problems.extend(_name_file_of(diagnostic, file) for diagnostic in error.diagnostics)

    yield attempt
    if problems:
        raise DataError(problems)


def _name_file_of(diagnostic: Diagnostic, file: Assignment) -> Diagnostic:
    """Name the file where the message does not: a key that is taken, say."""
    is_about_name = diagnostic.code in (catalogue.NO_SUCH_RELATION.code, catalogue.NOT_BASE.code)
    if is_about_name or str(file.path) in diagnostic.message:
        return diagnostic
    return replace(diagnostic, message=f"{file.path}: {diagnostic.message}", hint=None)


def files_in(directory: Path | None, relations: Relations) -> tuple[Assignment, ...]:
    """The files in the directory that are named after base relations."""
    if directory is None:
        return ()
    base = {name for name, relation in relations.items() if relation.kind == "base"}
    found: dict[str, list[Path]] = {}
    for path in _fact_files(directory):
        if path.stem in base:
            found.setdefault(path.stem, []).append(path)
        elif hint := did_you_mean(path.stem, base):
            write_note(f"{path} is not loaded: no base relation has this name; {hint}")
    if not found:
        write_note(f"no file in {directory} has the name of a base relation")
    return tuple(Assignment(name, _only_path(name, paths)) for name, paths in found.items())


def _only_path(name: str, paths: list[Path]) -> Path:
    if len(paths) == 1:
        return paths[0]
    names = " and ".join(path.name for path in paths)
    reason = f"it contains {names}; choose one with `--facts {name}=FILE`"
    raise DataError([catalogue.CANNOT_READ.at(None, name=paths[0].parent, reason=reason)])


def _fact_files(directory: Path) -> Iterator[Path]:
    try:
        paths = sorted(directory.iterdir())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_READ.at(None, name=directory, reason=reason)]) from None
    return (path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file())
