"""`deltalog audit`: recompute every view from the base facts and report what differs.

all 3 views agree with recomputation        1 of 3 views differs from recomputation
                                            path: 1 missing, 2 in excess
                                              missing  path(1, 4).
                                              excess   path(7, 8).
                                              excess   path(8, 9).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from deltalog.cli.applying import each_applied
from deltalog.cli.change_files import check_changes
from deltalog.cli.change_lines import fact_text
from deltalog.cli.exit_codes import ExitCode
from deltalog.cli.opening import is_database, open_given
from deltalog.cli.option_groups import (
    ChangesFile,
    FactFiles,
    LimitOptions,
    Maintenance,
    NetworkOptions,
    database_settings,
)
from deltalog.cli.options import (
    GivenFile,
    RecomputeWith,
)
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted_noun, write_note, write_result
from deltalog.language.ast import Row
from deltalog.language.values import plain_text, sort_key
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.evaluation import Difference

EXAMPLE = "deltalog audit graph.dl --changes changes.jsonl --strategy magic"
FACTS_SHOWN = 20


def audit(
    file: GivenFile,
    *,
    files: FactFiles,
    changed: ChangesFile,
    maintenance: Maintenance,
    recompute_with: RecomputeWith = None,
    network: NetworkOptions,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write everything as one JSON object.")
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            metavar="FACTS",
            min=0,
            help="Show at most this many missing and excess facts of each view, 0 for all.",
        ),
    ] = FACTS_SHOWN,
    limits: LimitOptions,
) -> None:
    """Recompute every view, after applying changes if any, and report the differences.

    The exit code is 1 if a view differs.
    """
    chosen = database_settings(limits, maintenance, network)
    changes = changed.changes
    progress = Progress()
    if changes is not None:
        if is_database(file):
            hint = "use `deltalog apply` to change a database file"
            raise typer.BadParameter(hint, param_hint="--changes")
        check_changes(changes, file)
    database = open_given(file, files.facts, files.facts_dir, chosen, progress)
    if changes is not None:
        number = sum(1 for _ in each_applied(database, changes, changed.relation, progress))
        write_note(f"{counted_noun(number, 'transaction')} applied")
    with progress.phase("recomputing"):
        differences = database.audit(engine=recompute_with)
    if as_json:
        write_result(audit_json(database, differences))
    else:
        for line in audit_lines(database, differences, limit or None):
            write_result(line)
    raise typer.Exit(ExitCode.WRONG if differences else ExitCode.FINE)


def audit_lines(
    database: MemoryDatabase, differences: Sequence[Difference], limit: int | None = FACTS_SHOWN
) -> Iterator[str | Text]:
    """One line if all is well; otherwise what each view lacks and what it has in excess."""
    number = len(database.model.views)
    views = [each for each in differences if each.view in database.model.views]
    for each in differences:
        if each not in views:
            title = f"{each.view}: {counted_noun(len(each.excess), 'fact')} against its declaration"
            yield Text(f"{title} (key, or null)", style="bold red")
            yield from _fact_lines(each.view, each.excess, "excess", limit)
    if not views:
        yield _agreement_text(number)
        return
    verb = "differs" if len(views) == 1 else "differ"
    title = f"{len(views):,} of {counted_noun(number, 'view')} {verb} from recomputation"
    yield Text(title, style="bold red")
    for each in views:
        sides = ((each.missing, "missing"), (each.excess, "in excess"))
        counts = ", ".join(f"{len(facts):,} {word}" for facts, word in sides if facts)
        yield Text(f"{each.view}: {counts}", style="bold")
        yield from _fact_lines(each.view, each.missing, "missing", limit)
        yield from _fact_lines(each.view, each.excess, "excess", limit)


def _agreement_text(number: int) -> str:
    if number == 0:
        return "there are no views to recompute"
    if number == 1:
        return "1 view agrees with recomputation"
    return f"all {number:,} views agree with recomputation"


def _fact_lines(view: str, rows: Iterable[Row], word: str, limit: int | None) -> Iterator[str]:
    ordered = _sort_rows(rows)
    for row in islice(ordered, limit):
        yield f"  {word:<7}  {fact_text(view, row)}"
    if limit is not None and len(ordered) > limit:
        yield f"  {word:<7}  … {len(ordered) - limit:,} more"


def _sort_rows(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=sort_key)


def audit_json(database: MemoryDatabase, differences: Sequence[Difference]) -> str:
    record = {
        "views": len(database.model.views),
        "version": database.version,
        "differences": [
            {
                "view": each.view,
                "missing": _sort_rows(each.missing),
                "excess": _sort_rows(each.excess),
            }
            for each in differences
        ],
    }
    return json.dumps(record, ensure_ascii=False, default=plain_text)
