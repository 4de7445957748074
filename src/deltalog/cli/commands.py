"""The commands of the prompt: what begins with a colon.

A command may be shortened as long as it stays the only one: `:q` quits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal as OneOf
from typing import TypeAlias

from rich.text import Text

from deltalog.analysis.columns import Relation
from deltalog.cli.audit import audit_lines
from deltalog.cli.change_lines import change_lines, fact_text
from deltalog.cli.opening import Assignment
from deltalog.cli.session import Session
from deltalog.cli.statements import group_statements
from deltalog.cli.terminal import counted_noun
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Declaration
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_declaration, print_program, print_rule
from deltalog.language.values import sort_key
from deltalog.runtime.explain import explain, predicates_by_stratum
from deltalog.runtime.explanation_text import explanation_text, strata_text
from deltalog.source import Source

Line: TypeAlias = str | Text


class SessionEnd(Exception):  # noqa: N818 - no error
    """The session is over."""


class CommandUsageError(Exception):
    """Wrong usage of a command."""


@dataclass(frozen=True)
class Command:
    """`usage` shows the arguments; `run` yields lines as they become known."""

    name: str
    usage: str
    help: str
    run: Callable[[Session, str], Iterator[Line]]


def run_command(session: Session, line: str) -> Iterator[Line]:
    """Run `:name arguments` and yield its output lines."""
    name, _, arguments = line.strip().partition(" ")
    return _find_command(WORDS.get(name, name)).run(session, arguments.strip())


def _find_command(name: str) -> Command:
    fitting = [command for command in COMMANDS if command.name.startswith(name)]
    if name in NAMES:
        return next(command for command in fitting if command.name == name)
    if len(fitting) == 1 and name != ":":
        return fitting[0]
    hint = did_you_mean(name, NAMES) or f"the commands are {' '.join(NAMES)}"
    raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="command", name=name, hint=hint)])


# --- the commands

LANGUAGES = ("deltalog", "amosql")

STATEMENTS = (
    ("? path(1, Y).", "run a query"),
    ("path(X, Y) :- edge(X, Y).", "add a rule, a declaration or a fact, and show the change"),
    (
        "+edge(1, 2). -edge(2, 3).",
        "insert and delete facts; consecutive changes are one transaction",
    ),
    ('include "more.dl".', "add a whole file"),
)


def _show_help(session: Session, arguments: str) -> Iterator[Line]:
    rows = [*STATEMENTS, *((command.usage, command.help) for command in COMMANDS)]
    width = max(len(usage) for usage, _ in rows)
    yield "A statement ends with a full stop and may take several lines."
    for usage, text in rows:
        yield f"  {usage:<{width}}  {text}"


def _list_program(session: Session, arguments: str) -> Iterator[Line]:
    relations = session.database.relations
    program, known = session.program, session.database.model.checked.relations
    facts = tuple(fact for fact in program.facts if known[fact.predicate].kind == "view")
    text = print_program(replace(program, facts=facts, queries=()))
    if text:
        yield text.rstrip("\n")
    for name, relation in relations.items():
        if relation.kind == "base":
            yield f"% {name}: {counted_noun(len(session.database.facts(name)), 'fact')}"


def _show_schema(session: Session, arguments: str) -> Iterator[Line]:
    relations = session.database.relations
    for name in [arguments] if arguments else relations:
        count = len(session.database.facts(name))  # an unknown name is reported here
        yield f"{_declaration_text(relations[name])}  % {counted_noun(count, 'fact')}"
        if arguments:
            rules = (rule for rule in session.program.definitions if rule.head.predicate == name)
            yield from map(print_rule, rules)


def _declaration_text(relation: Relation) -> str:
    storage: OneOf["virtual"] | None = "virtual" if relation.storage == "virtual" else None
    return print_declaration(Declaration(relation.kind, relation.name, relation.columns, storage))


def _show_facts(session: Session, arguments: str) -> Iterator[Line]:
    if not arguments:
        raise CommandUsageError(":facts NAME")
    for row in sorted(session.database.facts(arguments), key=sort_key):
        yield fact_text(arguments, row)


def _load_file(session: Session, arguments: str) -> Iterator[Line]:
    relation, _, file = arguments.partition(" ")
    path = file.strip().strip("\"'")
    if not path:
        raise CommandUsageError(":load RELATION FILE")
    change = session.load([Assignment(relation, Path(path).expanduser())])
    for name in change.relations:
        inserted, deleted = len(change.inserted[name]), len(change.deleted[name])
        yield f"% {name}: {inserted:,} inserted" + (f", {deleted:,} deleted" if deleted else "")
    if not change:
        yield "% nothing changes"


def _explain_query(session: Session, arguments: str) -> Iterator[Line]:
    query = session.bound(parse_query(arguments)) if arguments else None
    sections = ("strata", "dependencies", "rules", "plan") if query is None else ("rules", "plan")
    yield explanation_text(explain(session.database, query), sections)


def _set_parameter(session: Session, arguments: str) -> Iterator[Line]:
    name, _, value = arguments.partition(" ")
    if not arguments:
        for each, text in sorted(session.parameters.items()):
            yield f"${each} = {text}"
        return
    if not value.strip():
        raise CommandUsageError(":param NAME VALUE")
    session.parameters[name.removeprefix("$")] = value.strip()


def _show_strata(session: Session, arguments: str) -> Iterator[Line]:
    yield strata_text(predicates_by_stratum(session.database.model.checked))


def _show_strategies(session: Session, arguments: str) -> Iterator[Line]:
    choices = session.database.model.choices
    names = [", ".join(choice.predicates) for choice in choices]
    width = max(map(len, names), default=0)
    for name, choice in zip(names, choices, strict=True):
        yield f"{name:<{width}}  {choice.strategy}: {choice.reason}"


def _what_if(session: Session, arguments: str) -> Iterator[Line]:
    source = Source("<what if>", arguments)
    kinds = [kind for kind, _ in group_statements(arguments)]
    if len(kinds) != 1 or "query" in kinds:
        raise CommandUsageError(":what-if +edge(1, 2). -edge(2, 3).  or  :what-if RULE")
    change = session.try_out(source)
    yield from change_lines(change)
    if not change:
        yield "% nothing would change"


def _remove_rules(session: Session, arguments: str) -> Iterator[Line]:
    if not arguments:
        raise CommandUsageError(":remove RULE")
    yield from change_lines(session.remove(Source("<remove>", arguments)))


def _audit_views(session: Session, arguments: str) -> Iterator[Line]:
    with session.progress.phase("recomputing"):
        differences = session.database.audit()
    yield from audit_lines(session.database, differences)


def _switch_language(session: Session, arguments: str) -> Iterator[Line]:
    if not arguments:
        yield LANGUAGES[session.amosql is not None]
        return
    if arguments.lower() not in LANGUAGES:
        raise CommandUsageError(f":language {'|'.join(LANGUAGES)}")
    session.use_amosql(arguments.lower() == "amosql")


def _quit_session(session: Session, arguments: str) -> Iterator[Line]:
    raise SessionEnd


COMMANDS = (
    Command(":help", ":help", "show this help", _show_help),
    Command(":list", ":list", "show the program", _list_program),
    Command(
        ":schema", ":schema [NAME]", "show the columns of all relations, or of one", _show_schema
    ),
    Command(":facts", ":facts NAME", "show all facts of a relation or view", _show_facts),
    Command(
        ":what-if",
        ":what-if CHANGES",
        "show the effect of changes, or of a new rule, without applying it",
        _what_if,
    ),
    Command(
        ":param",
        ":param [NAME VALUE]",
        "set a parameter, `$NAME` in queries, or show all",
        _set_parameter,
    ),
    Command(":remove", ":remove RULE", "remove a rule from the program", _remove_rules),
    Command(
        ":load", ":load RELATION FILE", "load a .csv, .tsv, .jsonl or .parquet file", _load_file
    ),
    Command(
        ":explain",
        ":explain [QUERY]",
        "show how the program, or a query, is evaluated",
        _explain_query,
    ),
    Command(":strata", ":strata", "show the strata of the program", _show_strata),
    Command(
        ":strategies",
        ":strategies",
        "show the strategy of each view, with its reason",
        _show_strategies,
    ),
    Command(
        ":language",
        ":language [NAME]",
        "go on in the language `amosql` or `deltalog`, or show which is used",
        _switch_language,
    ),
    Command(":audit", ":audit", "recompute every view and compare", _audit_views),
    Command(":quit", ":quit", "quit; so does end of input", _quit_session),
)
NAMES = tuple(command.name for command in COMMANDS)
WORDS = {"help": ":help", "quit": ":quit", "exit": ":quit", ":exit": ":quit"}
"""Commands accepted without a colon; each must be alone on its line."""
