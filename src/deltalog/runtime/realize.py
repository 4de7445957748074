"""`db.realize("+path(1, 9)")`: requests as they are written, and their minimal realizations.

A request is a true one (Behrend & Manthey 2007, Def. 6) if the fact does not hold and shall, or
holds and shall not. Of others it is said that they hold already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError, ProgramError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Constant
from deltalog.language.parser import parse
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import checked_row
from deltalog.runtime.constraints import checks_of
from deltalog.runtime.hypothetical import Hypothetical
from deltalog.runtime.realization import Budget, Realization, Realizations, Wish, contradict
from deltalog.runtime.view_updates import Search
from deltalog.source import Source, Span

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

Costs = Mapping[str, float]
"""The cost of a change, by relation, or by sign and relation (`-edge`); else it is 1."""


def realize(
    database: MemoryDatabase,
    requests: Iterable[str],
    commit: Callable[[ChangeSet], ChangeSet],
    budget: Budget | None = None,
    fixed: Iterable[str] = (),
    costs: Costs | None = None,
) -> Realizations:
    """The minimal realizations of some requests, cheapest first, found while they are read.

    Relations in `fixed` are not touched. `commit` is called with one that is applied.
    """
    wishes = [parse_request(database, text) for text in requests]
    check_argument(bool(wishes), "requests", (), 'give some, as in `realize("+path(1, 9)")`')
    _check_consistent(wishes)
    _check_base(database, fixed, "fixed")
    _check_base(database, (name.lstrip("+-") for name in costs or {}), "costs")
    state = Hypothetical(database, ChangeSet())
    already = tuple(str(w) for w in wishes if state.holds(w.relation, w.row) == w.holds)
    found = Realizations(already, _hints(database, wishes), iter(()))
    enforced = [check for check in checks_of(database.model.checked) if check.mode == "enforce"]
    search = Search(
        database,
        budget or Budget(),
        commit,
        [check.watched for check in enforced if check.required is None],
        cost=_cost_of(costs or {}),
        fixed=fixed,
        skip=lambda reason: found.reasons.setdefault(reason),
    )
    required = [Wish(True, c.watched, c.required) for c in enforced if c.required is not None]
    found.source = _searched(database, search, [*wishes, *required], found)
    return found


def _searched(
    database: MemoryDatabase, search: Search, wishes: list[Wish], found: Realizations
) -> Iterator[Realization]:
    answers = search.run(wishes)
    while True:
        with database.turn():
            answer = next(answers, None)
        if answer is None:
            found.is_exhausted = True
            return
        yield answer


def parse_request(database: MemoryDatabase, text: str) -> Wish:
    """Read `+path(1, 9)`, or `-path(1, 9)`, also written `not path(1, 9)`; `+` is optional."""
    check_argument(isinstance(text, str), "request", text, 'a request is a text, `"+path(1, 9)"`')
    sign = re.match(r"\s*(\+|-|not\b)?", text)
    assert sign is not None
    blank = " " * sign.end() + text[sign.end() :]
    parsed = parse(Source("<request>", blank if blank.rstrip().endswith(".") else f"{blank}."))
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
            if contradict(wish, other):
                raise DataError([catalogue.CONTRADICTING_REQUESTS.at(None, one=wish, other=other)])


def _check_base(database: MemoryDatabase, names: Iterable[str], what: str) -> None:
    base = [name for name, each in database.relations.items() if each.kind == "base"]
    for name in names:
        if name not in base:
            hint = did_you_mean(str(name), base)
            what = f"base relation in `{what}`"
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what=what, name=name, hint=hint)])


def _hints(database: MemoryDatabase, wishes: list[Wish]) -> tuple[str, ...]:
    """For requests on base relations, the verb that does it at once."""
    found = []
    for wish in wishes:
        if database.relations[wish.relation].kind == "base":
            verb = "insert" if wish.holds else "delete"
            found.append(f"`{wish.relation}` is a base relation: `apply` can {verb} its facts")
    return tuple(dict.fromkeys(found))


def _cost_of(costs: Costs) -> Callable[[Wish], float]:
    def cost(wish: Wish) -> float:
        signed = f"{'+' if wish.holds else '-'}{wish.relation}"
        return float(costs.get(signed, costs.get(wish.relation, 1.0)))

    return cost
