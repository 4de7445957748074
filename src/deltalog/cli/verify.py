"""`deltalog verify`: the file, its views and its log, checked against each other."""

from __future__ import annotations

import typer

from deltalog.cli.audit import audit_lines
from deltalog.cli.exit_codes import ExitCode
from deltalog.cli.opening import Settings, open_database
from deltalog.cli.options import DatabaseFile, Engine, RecomputeWith
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted_noun, write_result
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.store.verify import verify_file

EXAMPLE = "deltalog verify graph.db"


def verify(
    database: DatabaseFile,
    engine: Engine = DEFAULT_ENGINE,
    recompute_with: RecomputeWith = None,
) -> None:
    """Check every page of a database file, its views by recomputation, and its change log.

    The exit code is 1 if a check fails, 4 if the file cannot be read.
    """
    progress = Progress()
    settings = Settings(Limits(), engine=engine)
    with open_database(database, settings, progress, read_only=True) as kept:
        with progress.phase("verifying"):
            found = verify_file(kept, engine=recompute_with)
        commits = kept.version - kept.first_version
        for line in found.pages:
            write_result(line)
        if not found.pages:
            write_result("all pages have valid checksums, and the SQLite integrity check passes")
        for shown in audit_lines(kept, found.differences):
            write_result(shown)
        for line in found.log:
            write_result(line)
        if not found.log:
            write_result(f"the log is consistent over {counted_noun(commits, 'commit')}")
    raise typer.Exit(ExitCode.FINE if found.is_clean else ExitCode.WRONG)
