"""`deltalog realize`: which changes of base facts make a derived fact true, or false?

    deltalog realize permissions.dl '+readers("ann", "plan")' --facts-dir .
    1  +member("ann", "staff")
       also: +readers("ann", "budget")
    2  …

Nothing is changed unless `--apply` names one of the answers.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from deltalog.cli.change_lines import fact_text
from deltalog.cli.change_results import sorted_facts
from deltalog.cli.opening import open_given
from deltalog.cli.option_groups import FactFiles, LimitOptions, Maintenance, database_settings
from deltalog.cli.options import GivenFile
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import visible_text, write_note, write_result
from deltalog.language.ast import Constant, Value
from deltalog.language.parser import parse_program
from deltalog.language.values import plain_text
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.realization import Budget, Realization, Realizations
from deltalog.source import Source
from deltalog.store.file_database import FileDatabase

EXAMPLE = (
    'deltalog realize shop.db \'+sees("ann", "plan")\' \'not sees("bob", "plan")\' --answers 5'
)
EFFECTS_SHOWN = 5
BUDGET = Budget()


class Mode(StrEnum):
    """How far the search goes."""

    COMPLETE = "complete"
    FIRST_LEVEL = "first-level"


class Rank(StrEnum):
    """The order of answers that cost the same."""

    COST = "cost"
    SIDE_EFFECTS = "side-effects"


def realize(
    file: GivenFile,
    requests: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REQUEST",
            help="A fact that shall hold, '+path(1, 9)', or shall not, '-path(1, 9)' or "
            "'not path(1, 9)'.",
        ),
    ] = None,
    *,
    answers: Annotated[
        int | None,
        typer.Option("--answers", metavar="COUNT", min=1, help="Stop after this many answers."),
    ] = 20,
    changes: Annotated[
        int | None,
        typer.Option(
            "--changes", metavar="COUNT", min=1, help="Look for at most this many base changes."
        ),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option("--nodes", metavar="COUNT", min=1, help="Look at this many states at most."),
    ] = BUDGET.nodes,
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="SECONDS", min=0.001, help="Search for this long."),
    ] = BUDGET.seconds,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--fixed", metavar="RELATION", help="A base relation not to be changed."),
    ] = None,
    costs: Annotated[
        list[str] | None,
        typer.Option(
            "--cost",
            metavar="RELATION=COST",
            help="The cost of a change of a base relation, else 1; `-edge=5` is for deletions.",
        ),
    ] = None,
    domains: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            metavar="RELATION.COLUMN=VALUES",
            help="The only values that a column may get where nothing determines it, as "
            '`member.team="lab", "sales"`.',
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            metavar="|".join(Mode),
            help="Search for all minimal answers, or only the first level of alternatives that has "
            "some.",
        ),
    ] = Mode.COMPLETE,
    rank: Annotated[
        Rank,
        typer.Option(
            "--rank",
            metavar="|".join(Rank),
            help="Show answers that cost the same as they are found, or, when all are found, those "
            "with the fewest side effects first.",
        ),
    ] = Rank.COST,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="With --mode first-level: show what each round requests and changes."
        ),
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("--apply", metavar="NUMBER", min=1, help="Commit the answer of this number."),
    ] = None,
    is_check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Instead, show for every view whether a search by levels is guaranteed to end.",
        ),
    ] = False,
    is_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON line for each answer.")
    ] = False,
    files: FactFiles,
    maintenance: Maintenance,
    limits: LimitOptions,
) -> None:
    """Find the changes of base facts that make derived facts true or false.

    Each answer is minimal: no part of it would do. Answers are consistent with all constraints.
    """
    if trace and mode is not Mode.FIRST_LEVEL:
        raise typer.BadParameter("only --mode first-level has rounds", param_hint="--trace")
    if rank is not Rank.COST and mode is not Mode.COMPLETE:
        raise typer.BadParameter("only --mode complete ranks answers", param_hint="--rank")
    if is_check == bool(requests):
        reason = "give a request, '+path(1, 9)', or --check without one"
        raise typer.BadParameter(reason, param_hint="REQUEST")
    chosen = database_settings(limits, maintenance)
    progress = Progress()
    is_read = number is None
    database = open_given(file, files.facts, files.facts_dir, chosen, progress, read_only=is_read)
    if is_check:
        for check in database.check_requests():
            write_result(visible_text(str(check)))
        _close_file(database)
        return
    wanted = max(answers or 0, number or 0) or None
    budget = Budget(nodes, seconds, wanted, changes)
    found = database.realize(
        *(requests or ()),
        budget=budget,
        fixed=fixed or (),
        costs=_parse_costs(costs),
        mode=mode.replace("-", "_"),
        trace=trace,
        rank=rank.replace("-", "_"),
        domains=_parse_domains(domains),
    )
    for text in found.already:
        write_note(f"`{text}` holds already")
    for hint in found.hints:
        write_note(hint)
    shown = 0
    for shown, answer in enumerate(islice(found, wanted), 1):
        _show_realization(shown, answer, is_json)
        if shown == number:
            delta = answer.apply()
            write_note(f"committed answer {shown}: {len(delta):,} facts changed")
            break
    if trace:
        for line in (line for each in found.rounds for line in str(each).split("\n")):
            write_result(visible_text(line))
    if number is None or shown < number:
        _note_completeness(found, shown)
    _close_file(database)
    if not shown or (number is not None and shown < number):
        raise typer.Exit(1)


def _close_file(database: MemoryDatabase) -> None:
    if isinstance(database, FileDatabase):
        database.close()


def _parse_costs(texts: list[str] | None) -> dict[str, float]:
    found = {}
    for text in texts or ():
        name, _, cost = text.rpartition("=")
        try:
            found[name] = float(cost)
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"`{text}` is not RELATION=COST", param_hint="--cost")
    return found


def _parse_domains(texts: list[str] | None) -> dict[str, list[Value]]:
    found = {}
    for text in texts or ():
        name, _, values = text.partition("=")
        parsed = parse_program(Source("--domain", f"values({values})."))
        terms = [term for fact in parsed.facts for term in fact.arguments]
        found[name.strip()] = [term.value for term in terms if isinstance(term, Constant)]
    return found


def _show_realization(number: int, answer: Realization, is_json: bool) -> None:
    if is_json:
        record = {
            "inserted": sorted_facts(answer.inserted),
            "deleted": sorted_facts(answer.deleted),
            "new_values": answer.new_values,
            "delta": {
                "inserted": sorted_facts(answer.delta.inserted),
                "deleted": sorted_facts(answer.delta.deleted),
            },
        }
        write_result(json.dumps(record, ensure_ascii=False, default=plain_text))
    else:
        default = "  (the declared choice)" if answer.is_default else ""
        changed = _format_facts(answer.base) or "nothing to change"
        write_result(Text(f"{number}  {changed}{default}", style="bold"))
        effects = answer.delta.without(*answer.base.relations)
        if effects:
            write_result(Text(f"   then {_format_facts(effects, EFFECTS_SHOWN)}", style="dim"))
    sys.stdout.flush()


def _format_facts(change: ChangeSet, most: int | None = None) -> str:
    shown = [f"{op}{fact_text(name, row)[:-1]}" for op, name, row in islice(change, most)]
    more = len(change) - len(shown)
    return visible_text(", ".join(shown)) + (f" and {more:,} more" if more else "")


def _note_completeness(found: Realizations, shown: int) -> None:
    if found.is_complete:
        write_note(f"these are all: {shown}" if shown else "no change of base facts can do that")
    else:
        write_note(f"there may be more: {'; '.join(found.reasons) or 'not all were read'}")
