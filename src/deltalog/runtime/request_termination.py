"""Static check of requests: is the search by levels guaranteed to end, and if not, why?

    +h   not guaranteed: ∇h⁺ → ∇e⁺ → Δe⁺ → Δi⁺ → Δh⁻

A search goes on for ever only if it introduces new values for ever. New values come from requests
for what a projection has dropped; that they come again in a later round takes a change that breaks
what was requested. So if no cycle of view-update rules, propagation rules and repairs has both, the
search ends (Behrend & Manthey 2007, section 5). Otherwise it may, or may not: the path that is
shown begins with a request, introduces a new value, and ends with the opposite change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from deltalog.language.ast import Atom, DisjunctiveRule, Rule
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.rewrites.forms import RequestForm
from deltalog.runtime.realize import aggregate_below, request_form

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


@dataclass(frozen=True)
class RequestCheck:
    """Whether a search for a request, `+path`, is guaranteed to end by `mode="first_level"`.

    If not, `cycle` has the requests (∇) and changes (Δ) by which it may go on for ever, or
    `aggregate` names a view that cannot be requested.
    """

    request: str
    is_guaranteed: bool
    cycle: tuple[str, ...] = ()
    aggregate: str | None = None

    def __str__(self) -> str:
        if self.is_guaranteed:
            return f"{self.request}: guaranteed to end"
        if self.aggregate is not None:
            return f"{self.request}: refused, `{self.aggregate}` is an aggregate"
        return f"{self.request}: may go on for ever: {' → '.join(self.cycle)}"


class Step(NamedTuple):
    """A request or change leads to another, by the names that rules have.

    It may introduce a new value; or be a repair, which a change leads to if the request `given` is
    there, too.
    """

    tail: str
    head: str
    is_new: bool = False
    is_repair: bool = False
    given: str | None = None


def check_requests(database: MemoryDatabase) -> tuple[RequestCheck, ...]:
    """The check of insertions into and deletions from every view."""
    form = request_form(database)
    steps = list(_request_steps(form))
    views = [name for name, each in database.relations.items() if each.kind == "view"]
    return tuple(
        _check_request(database, view, holds, steps)
        for view in sorted(views)
        for holds in (True, False)
    )


def _check_request(
    database: MemoryDatabase, view: str, holds: bool, steps: Iterable[Step]
) -> RequestCheck:
    text = f"{'+' if holds else '-'}{view}"
    aggregate = aggregate_below(database, [view])
    if aggregate is not None:
        return RequestCheck(text, False, aggregate=aggregate.head.predicate)
    start = names.request_plus_name(view) if holds else names.request_minus_name(view)
    active = _active_steps(start, steps)
    if not _is_endless(active):
        return RequestCheck(text, True)
    return RequestCheck(text, False, tuple(_shown_path(_endless_path(start, active))))


def _request_steps(form: RequestForm) -> Iterator[Step]:
    for rule in form.requests:
        lead = _lead_predicate(rule)
        is_new = not set(variable_names(*rule.heads)) <= set(variable_names(*rule.body))
        yield from (Step(lead, head.predicate, is_new) for head in rule.heads)
    for change in form.changes:
        yield Step(_lead_predicate(change), change.head.predicate)
    for rule in form.transitions:
        driving = [
            x.predicate for x in rule.body if isinstance(x, Atom) and _is_driving(x.predicate)
        ]
        for head in rule.heads:
            if names.as_change(head.predicate):
                yield Step(driving[0], head.predicate)
            else:
                given = driving[0] if len(driving) > 1 else None
                yield Step(driving[-1], head.predicate, is_repair=True, given=given)


def _lead_predicate(rule: Rule | DisjunctiveRule) -> str:
    lead = rule.body[0]
    assert isinstance(lead, Atom)
    return lead.predicate


def _is_driving(name: str) -> bool:
    return names.as_request(name) is not None or names.as_change(name) is not None


def _active_steps(start: str, steps: Iterable[Step]) -> list[Step]:
    """The steps that a request can lead to."""
    reached = {start}
    while True:
        found = [s for s in steps if s.tail in reached and (s.given is None or s.given in reached)]
        more = {step.head for step in found} - reached
        if not more:
            return found
        reached |= more


def _is_endless(active: list[Step]) -> bool:
    """Whether a cycle introduces a new value and turns a change into a request."""
    after = {step.tail: _reached_predicates(step.tail, active) for step in active}
    for new in (step for step in active if step.is_new):
        for repair in (step for step in active if step.is_repair):
            leads = repair.tail in after.get(new.head, {new.head})
            if leads and new.tail in after.get(repair.head, {repair.head}):
                return True
    return False


def _reached_predicates(start: str, active: Iterable[Step]) -> set[str]:
    found = {start}
    while True:
        more = {step.head for step in active if step.tail in found} - found
        if not more:
            return found
        found |= more


def _endless_path(start: str, active: list[Step]) -> list[str]:
    """From a request, by a new value, to the opposite change: the request itself if possible."""
    requests = [start, *(step.head for step in active if names.as_request(step.head))]
    for request in dict.fromkeys(requests):
        found = _shortest_path(
            request, _opposite_change(request), active, lambda step: not step.is_repair
        )
        if found is not None:
            return found
    repairs = (step for step in active if step.is_repair)
    cycles = (_shortest_path(step.head, step.tail, active, lambda step: True) for step in repairs)
    return next((cycle for cycle in cycles if cycle is not None), [start])


def _opposite_change(request: str) -> str:
    named = names.as_request(request)
    assert named is not None
    return names.minus_name(named[0]) if named[1] else names.plus_name(named[0])


def _shortest_path(
    start: str, goal: str, active: list[Step], is_allowed: Callable[[Step], bool]
) -> list[str] | None:
    """The shortest path on which a new value is introduced."""
    paths: dict[tuple[str, bool], list[str]] = {(start, False): [start]}
    frontier = list(paths)
    while frontier:
        following: list[tuple[str, bool]] = []
        for place in frontier:
            for step in active:
                if step.tail == place[0] and is_allowed(step):
                    then = step.head, place[1] or step.is_new
                    if then not in paths:
                        paths[then] = [*paths[place], step.head]
                        following.append(then)
        if (goal, True) in paths:
            return paths[goal, True]
        frontier = following
    return None


def _shown_path(path: Iterable[str]) -> Iterator[str]:
    """Requests and changes of relations that a person has written."""
    for mark, name in ((_mark_of(each), each) for each in path):
        named = names.as_request(name) or names.as_change(name)
        assert named is not None
        if not names.is_generated(named[0]):
            yield f"{mark}{named[0]}{'⁺' if named[1] else '⁻'}"


def _mark_of(name: str) -> str:
    return "∇" if names.as_request(name) else "Δ"
