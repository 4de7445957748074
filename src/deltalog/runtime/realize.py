"""`db.realize("+path(1, 9)")`: requests as they are written, and their minimal realizations.

A request is a true one (Behrend & Manthey 2007, Def. 6) if the fact does not hold and shall, or
holds and shall not. Of others it is said that they hold already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING

from deltalog.analysis.columns import Relation
from deltalog.analysis.domains import Place
from deltalog.diagnostics import catalogue, view_catalogue
from deltalog.diagnostics.arguments import check_argument, check_flag, check_text
from deltalog.diagnostics.report import DataError, ProgramError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Constant, Rule, Value
from deltalog.language.parser import parse_program
from deltalog.language.walk import atoms_of
from deltalog.rewrites.forms import RequestForm
from deltalog.rewrites.pipeline import UPDATE_VIEWS, apply_passes
from deltalog.runtime.alternatives import rules_by_head
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import checked_row
from deltalog.runtime.constraints import checks_of
from deltalog.runtime.first_level import FirstLevel
from deltalog.runtime.hypothetical import Hypothetical
from deltalog.runtime.realization import Budget, Realization, Realizations, Wish, are_contradictory
from deltalog.runtime.search_nodes import change_set, is_aggregated
from deltalog.runtime.update_choices import choice_of, translate_request
from deltalog.runtime.view_updates import Search, deferred_delta
from deltalog.source import Source, Span

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

MODES = ("complete", "first_level")
RANKS = ("cost", "side_effects")
Costs = Mapping[str, float]
"""The cost of a change, by relation, or by sign and relation (`-edge`); else it is 1."""


def realize(
    database: MemoryDatabase,
    requests: Iterable[str],
    commit: Callable[[ChangeSet], ChangeSet],
    budget: Budget | None = None,
    fixed: Iterable[str] = (),
    costs: Costs | None = None,
    mode: str = "complete",
    trace: bool = False,
    rank: str = "cost",
    domains: Mapping[str, Iterable[Value]] | None = None,
) -> Realizations:
    """The minimal realizations of some requests, cheapest first, found while they are read.

    Relations in `fixed` are not touched. `commit` is called with one that is applied. The `mode`
    is `complete`, or `first_level` for the search of `first_level.py`, of which a `trace` is kept.
    With the `rank` `side_effects` those that cost the same are held back until all are found.
    `domains` are the values that columns may get where nothing determines them (`member.team`).
    """
    _check_mode(mode, trace)
    _check_rank(rank, mode)
    wishes = [parse_request(database, text) for text in requests]
    check_argument(bool(wishes), "requests", (), 'give some, as in `realize("+path(1, 9)")`')
    _check_consistent(wishes)
    check_choice(database, budget, fixed, costs)
    commit = _commit_of(database, wishes, commit)
    state = Hypothetical(database, ChangeSet())
    already = tuple(str(w) for w in wishes if state.holds(w.relation, w.row) == w.holds)
    found = Realizations(already, _base_hints(database, wishes), iter(()))
    denials, required = constraint_wishes(database)
    cost = cost_of(costs or {})

    def skip(reason: str) -> None:
        found.reasons.setdefault(reason)

    if mode == "first_level":
        form = request_form(database)
        _check_requestable(database, form, [*wishes, *required])
        level = FirstLevel(
            database, form, budget or Budget(), commit, frozenset(fixed), cost, skip, found.rounds
        )
        answers = level.run([*wishes, *required], trace)
    else:
        _check_plain(database, wishes)
        declared = declared_domains(database, domains or {})
        search = Search(database, budget or Budget(), commit, denials, cost, fixed, skip, declared)
        answers = search.run([*wishes, *required], is_ranked=rank == "side_effects")
    default = default_choice(database, wishes, [*wishes, *required], denials, commit)
    if default is not None:
        answers = _default_first(default, answers)
    found.source = search_in_turns(database, answers, found)
    return found


def default_choice(
    database: MemoryDatabase,
    wishes: Iterable[Wish],
    kept: Iterable[Wish],
    denials: Iterable[str],
    commit: Callable[[ChangeSet], ChangeSet],
) -> Realization | None:
    """The realization by declared choices, if all requests have one and constraints hold."""
    program, relations = database.model.checked.program, database.model.checked.relations
    made: set[Wish] = set()
    for wish in wishes if program.update_choices else ():
        choice = choice_of(program.update_choices, wish.holds, wish.relation)
        if choice is None:
            return None
        made.update(translate_request(choice, wish.row, relations))
    base = database.net(change_set(made))
    if not base:
        return None
    state = Hypothetical(database, base, frozenset(denials))
    is_realized = all(state.holds(wish.relation, wish.row) == wish.holds for wish in kept)
    if not is_realized or any(state.watched_delta.inserted[name] for name in denials):
        return None
    delta = deferred_delta(database, base)
    return Realization(delta, base, (), commit, is_default=True, wishes=tuple(wishes))


def _default_first(default: Realization, others: Iterator[Realization]) -> Iterator[Realization]:
    yield default
    yield from (each for each in others if each.base != default.base)


def constraint_wishes(database: MemoryDatabase) -> tuple[list[str], list[Wish]]:
    """The views that enforced constraints keep empty, and the facts that they require."""
    enforced = [check for check in checks_of(database.model.checked) if check.mode == "enforce"]
    denials = [check.watched for check in enforced if check.required is None]
    required = [Wish(True, c.watched, c.required) for c in enforced if c.required is not None]
    return denials, required


def request_form(database: MemoryDatabase) -> RequestForm:
    """The rules by which requests go down from the views of a database to its base relations."""
    model = database.model.as_written
    checks = [c for c in checks_of(database.model.checked) if c.mode == "enforce"]
    relations = {**model.relations, **database.model.checked.relations}
    return apply_passes(
        UPDATE_VIEWS,
        RequestForm(
            tuple(rule for rule in model.rules if not is_aggregated(rule)),
            {name: each.arity for name, each in relations.items() if each.kind == "base"},
            {c.watched: relations[c.watched].arity for c in checks if c.required is None},
            tuple((c.watched, c.required) for c in checks if c.required is not None),
        ),
    )


def _check_requestable(database: MemoryDatabase, form: RequestForm, wishes: list[Wish]) -> None:
    """Refuse requests on, and constraints over, what is computed by aggregates."""
    rule = aggregate_below(database, [*(wish.relation for wish in wishes), *form.denied])
    if rule is not None:
        name = rule.head.predicate
        raise DataError([view_catalogue.AGGREGATE_REQUESTED.at(rule.span, name=name)])


def _check_plain(database: MemoryDatabase, wishes: list[Wish]) -> None:
    """Refuse requests on views that nothing but aggregates computes."""
    defined = rules_by_head(database.model.as_written.rules)
    for wish in wishes:
        rules = defined.get(wish.relation, ())
        if rules and all(map(is_aggregated, rules)):
            made = view_catalogue.AGGREGATE_REQUESTED.at(rules[0].span, name=wish.relation)
            raise DataError([made])


def aggregate_below(database: MemoryDatabase, views: Iterable[str]) -> Rule | None:
    """A rule with an aggregate that some views depend on, or None."""
    defined = rules_by_head(database.model.as_written.rules)
    waiting = list(views)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for rule in defined.get(name, ()):
            if is_aggregated(rule):
                return rule
            waiting += [atom.predicate for atom, _ in atoms_of(rule.body)]
    return None


def declared_domains(
    database: MemoryDatabase, domains: Mapping[str, Iterable[Value]]
) -> dict[Place, list[Value]]:
    """The values that a caller declares for columns, by relation and position."""
    found: dict[Place, list[Value]] = {}
    known = {
        f"{name}.{column.name}": (each, i)
        for name, each in database.relations.items()
        for i, column in enumerate(each.columns)
    }
    for name, values in domains.items():
        if name not in known:
            hint = did_you_mean(str(name), known) or "it is RELATION.COLUMN, as `member.team`"
            what = "column in `domains`"
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what=what, name=name, hint=hint)])
        relation, position = known[name]
        is_listed = isinstance(values, Iterable) and not isinstance(values, str)
        check_argument(is_listed, "domains", values, f"give a list of values for `{name}`")
        alone = Relation(relation.name, "base", (relation.columns[position],))
        found[relation.name, position] = [checked_row(alone, (value,))[0] for value in values]
    return found


def _check_mode(mode: str, trace: bool) -> None:
    if mode not in MODES:
        hint = did_you_mean(str(mode), MODES) or "it is `complete` or `first_level`"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="mode", name=mode, hint=hint)])
    check_flag("trace", trace)
    hint = 'only `mode="first_level"` has rounds'
    check_argument(not trace or mode == "first_level", "trace", trace, hint)


def _check_rank(rank: str, mode: str) -> None:
    if rank not in RANKS:
        hint = did_you_mean(str(rank), RANKS) or "it is `cost` or `side_effects`"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="rank", name=rank, hint=hint)])
    hint = 'only `mode="complete"` ranks answers by their side effects'
    check_argument(rank == "cost" or mode == "complete", "rank", rank, hint)


def search_in_turns(
    database: MemoryDatabase, answers: Iterator[Realization], found: Realizations
) -> Iterator[Realization]:
    while True:
        with database.turn():
            answer = next(answers, None)
        if answer is None:
            found.is_exhausted = True
            return
        yield answer


def parse_request(database: MemoryDatabase, text: str) -> Wish:
    """Read `+path(1, 9)`, or `-path(1, 9)`, also written `not path(1, 9)`; `+` is optional."""
    check_text("request", text, 'a request is a text, `"+path(1, 9)"`')
    sign = re.match(r"\s*(\+|-|not\b)?", text)
    assert sign is not None
    blank = " " * sign.end() + text[sign.end() :]
    parsed = parse_program(
        Source("<request>", blank if blank.rstrip().endswith(".") else f"{blank}.")
    )
    span = Span(Source("<request>", text), 0, len(text))
    if len(parsed.facts) != 1 or parsed.rules or parsed.queries or parsed.declarations:
        hint = "as in `+path(1, 9)`; every argument is a value"
        raise ProgramError(
            [catalogue.UNEXPECTED_TOKEN.at(span, expected="a fact", found="other text", hint=hint)]
        )
    (fact,) = parsed.facts
    relations = database.relations
    if fact.predicate not in relations:
        hint_ = did_you_mean(fact.predicate, relations)
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=fact.predicate, hint=hint_)])
    values = [term.value for term in fact.arguments if isinstance(term, Constant)]
    return Wish(
        sign[1] in (None, "+"), fact.predicate, checked_row(relations[fact.predicate], values)
    )


def _check_consistent(wishes: list[Wish]) -> None:
    for i, wish in enumerate(wishes):
        for other in wishes[i + 1 :]:
            if are_contradictory(wish, other):
                raise DataError(
                    [view_catalogue.CONTRADICTING_REQUESTS.at(None, one=wish, other=other)]
                )


def check_choice(
    database: MemoryDatabase, budget: Budget | None, fixed: Iterable[str], costs: Costs | None
) -> None:
    """Refuse what cannot bound or order a search."""
    hint = "give a `deltalog.Budget`"
    check_argument(budget is None or isinstance(budget, Budget), "budget", budget, hint)
    _check_base(database, fixed, "fixed")
    hint = 'give a mapping from relations to costs, as in `{"edge": 2, "-edge": 10}`'
    check_argument(costs is None or isinstance(costs, Mapping), "costs", costs, hint)
    for name, cost in (costs or {}).items():
        _check_base(database, [str(name).lstrip("+-")], "costs")
        is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
        is_cost = is_number and isfinite(cost) and cost >= 0
        check_argument(is_cost, f"the cost of `{name}`", cost, "it is a number, 0 or more")


def _commit_of(
    database: MemoryDatabase, wishes: list[Wish], commit: Callable[[ChangeSet], ChangeSet]
) -> Callable[[ChangeSet], ChangeSet]:
    """Commit a change that does what is requested in the state of now, and no other.

    It may not if the state has changed, or if another value was chosen for a new one.
    """
    version = database.version

    def committed(base: ChangeSet) -> ChangeSet:
        with database.turn():
            for _, relation, row in base:
                checked_row(database.relations[relation], row)
            state = Hypothetical(database, database.net(base))
            missed = [w for w in wishes if state.holds(w.relation, w.row) != w.holds]
            if missed and database.version != version:
                raise DataError([view_catalogue.REQUEST_OUTDATED.at(None, version=version)])
            if missed:
                hint = f"`{missed[0]}` is not realized by them"
                value = f"those of {base}"
                found = catalogue.WRONG_ARGUMENT.at(None, name="values", value=value, hint=hint)
                raise DataError([found])
        return commit(base)

    return committed


def _check_base(database: MemoryDatabase, names: Iterable[str], what: str) -> None:
    base = [name for name, each in database.relations.items() if each.kind == "base"]
    for name in names:
        if name not in base:
            hint = did_you_mean(str(name), base)
            what = f"base relation in `{what}`"
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what=what, name=name, hint=hint)])


def _base_hints(database: MemoryDatabase, wishes: list[Wish]) -> tuple[str, ...]:
    """For requests on base relations, the verb that does it at once."""
    found = []
    for wish in wishes:
        if database.relations[wish.relation].kind == "base":
            verb = "insert" if wish.holds else "delete"
            found.append(f"`{wish.relation}` is a base relation: `apply` can {verb} its facts")
    return tuple(dict.fromkeys(found))


def cost_of(costs: Costs) -> Callable[[Wish], float]:
    def cost(wish: Wish) -> float:
        signed = f"{'+' if wish.holds else '-'}{wish.relation}"
        return float(costs.get(signed, costs.get(wish.relation, 1.0)))

    return cost
