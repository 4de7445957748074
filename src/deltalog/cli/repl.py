"""`deltalog repl`: ask, change and extend a program at a prompt, or by a script through a pipe.

    deltalog> base edge(src: int, dst: int).
    deltalog> path(X, Y) :- edge(X, Y).
    deltalog> path(X, Y) :- edge(X, Z), path(Z, Y).
    deltalog> +edge(1, 2). +edge(2, 3).
    +edge(1, 2).
    …
    +path(1, 3).

A problem is reported and changes nothing; a script goes on with its next line and ends with the
exit code of the first problem.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from deltalog.checks.program import check_program
from deltalog.cli import amosql
from deltalog.cli.change_lines import change_lines, firing_lines
from deltalog.cli.commands import NAMES, WORDS, CommandUsageError, SessionEnd, run_command
from deltalog.cli.exit_codes import ExitCode, exit_code_of
from deltalog.cli.line_reader import LineReader, line_reader
from deltalog.cli.messages import report_error
from deltalog.cli.opening import (
    files_in,
    is_database,
    open_database,
    parse_assignments,
    read_and_parse,
    read_facts,
    read_source,
    refuse_facts,
    refuse_facts_of_scripts,
)
from deltalog.cli.option_groups import FactFiles, LimitOptions, Maintenance, database_settings
from deltalog.cli.options import (
    Format,
)
from deltalog.cli.progress import Progress
from deltalog.cli.results import query_result, show_results
from deltalog.cli.session import Answer, Excerpt, Session
from deltalog.cli.statements import is_complete, one_line
from deltalog.cli.terminal import counted_noun, write_message, write_note, write_result
from deltalog.diagnostics.report import DeltalogError
from deltalog.language.ast import Program
from deltalog.runtime.amosql.session import Selected
from deltalog.runtime.changes import ChangeSet

EXAMPLE = "deltalog repl graph.dl --facts edge=edges.csv"
LINES_SHOWN = 50


def repl(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The initial program, or a database file."),
    ] = None,
    *,
    files: FactFiles,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="ROWS",
            min=0,
            help=f"Show at most this many rows of a result or change, 0 for all. Default: "
            f"{LINES_SHOWN} on a terminal, all in a script.",
        ),
    ] = None,
    maintenance: Maintenance,
    limits: LimitOptions,
) -> None:
    """Query, change and extend a program at a prompt or from a script.

    Changes to a database file are committed.
    """
    progress = Progress()
    chosen = database_settings(limits, maintenance)
    if file is not None and is_database(file):
        refuse_facts(files.facts, files.facts_dir)
        with open_database(file, chosen, progress, read_only=False) as kept:
            _run_conversation(Session.of(kept, progress), limit)
        return
    if file is not None and amosql.is_amosql(file):
        refuse_facts_of_scripts(files.facts, files.facts_dir)
        session = Session.new(Program(), chosen, progress, {})
        session.use_amosql(True)
        show_results(amosql.selected_results(session.execute(read_source(file))), Format.TABLE)
        _run_conversation(session, limit)
        return
    program = Program() if file is None else read_and_parse(file, progress)
    relations = check_program(program).relations
    loaded = (*files_in(files.facts_dir, relations), *parse_assignments(files.facts, "--facts"))
    rows = read_facts(program, relations, loaded, progress)
    _run_conversation(Session.new(program, chosen, progress, rows), limit)


def _run_conversation(session: Session, limit: int | None) -> None:
    reader = line_reader(lambda: session.database.relations)
    if limit is None:
        limit = LINES_SHOWN if reader.is_interactive else 0
    conversation = Conversation(session, reader, limit or None)
    try:
        conversation.run()
    finally:
        reader.close()
    raise typer.Exit(ExitCode.FINE if reader.is_interactive else conversation.code)


@dataclass
class Conversation:
    """Lines in, results and messages out."""

    session: Session
    reader: LineReader
    limit: int | None
    code: ExitCode = ExitCode.FINE
    _pending: list[str] = field(default_factory=list)
    _first_line: int = 1
    _line_number: int = 0

    def run(self) -> None:
        if self.reader.is_interactive:
            write_message("Deltalog. End statements with a full stop; type `:help` for help.")
        while True:
            try:
                line = self.reader.read(bool(self._pending))
                if line is None:
                    break
                self._take_line(line)
            except KeyboardInterrupt:
                if not self.reader.is_interactive:
                    raise
                self._pending.clear()
                write_message("\ninterrupted")
            except SessionEnd:
                return
        if self._pending and not self.reader.is_interactive:
            self._report_errors_of(self._execute_pending)

    def _take_line(self, line: str) -> None:
        self._line_number += 1
        if _is_command(line, bool(self._pending)):
            if self._pending:
                self._report_errors_of(self._execute_pending)  # which reports that one never ends
            self.reader.remember(line)
            self._report_errors_of(lambda: self._show_lines(run_command(self.session, line)))
            return
        if not self._pending:
            self._first_line = 1 if self.reader.is_interactive else self._line_number
        stop = "." if self.session.amosql is None else ";"
        could_end = not self._pending or stop in line or "*/" in line
        self._pending.append(line)
        if could_end and self._is_complete("\n".join(self._pending)):
            self.reader.remember(one_line("\n".join(self._pending)))
            self._report_errors_of(self._execute_pending)

    def _is_complete(self, text: str) -> bool:
        return is_complete(text) if self.session.amosql is None else amosql.is_complete(text)

    def _report_errors_of(self, action: Callable[[], None]) -> None:
        """Report what goes wrong and go on."""
        try:
            action()
        except DeltalogError as error:
            report_error(error)
            self._record_failure(exit_code_of(error))
        except CommandUsageError as usage:
            write_message(f"usage: {usage}")
            self._record_failure(ExitCode.USAGE)
        finally:
            self._pending.clear()
            sys.stdout.flush()

    def _record_failure(self, code: ExitCode) -> None:
        if self.code is ExitCode.FINE:
            self.code = code

    # --- statements and what they give

    def _execute_pending(self) -> None:
        source = Excerpt(self.reader.name, "\n".join(self._pending), self._first_line)
        for outcome in self.session.execute(source):
            if isinstance(outcome, Answer):
                result = query_result(outcome.query, outcome.rows)
                show_results([result], Format.TABLE, self.limit)
            elif isinstance(outcome, Selected):
                show_results([amosql.selected_result(outcome)], Format.TABLE, self.limit)
            else:
                self._show_change(outcome)

    def _show_change(self, change: ChangeSet) -> None:
        self._show_lines(change_lines(change))
        self._show_lines(firing_lines(change))
        if not change and self.reader.is_interactive:
            write_note("nothing changes")

    def _show_lines(self, lines: Iterable[str | Text]) -> None:
        remaining = iter(lines)
        for line in islice(remaining, self.limit):
            write_result(line)
        left = sum(1 for _ in remaining)
        if left:
            write_note(f"{counted_noun(left, 'more row')} not shown")


def _is_command(line: str, is_continued: bool) -> bool:
    """Within a statement only what cannot be part of it: `:int` might be a column's type."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    if is_continued:
        return word in NAMES
    if line.strip() in WORDS:
        return True
    return word.startswith(":") and not word.startswith(":-")
