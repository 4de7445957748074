"""Requests and changes as facts of rules, and the rules that they drive (`first_level.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from deltalog.language.ast import Atom, DisjunctiveRule, Literal, Negation, Rule, Value
from deltalog.rewrites import names
from deltalog.runtime.level_trace import Fact
from deltalog.runtime.realization import Wish
from deltalog.runtime.rule_states import RuleState, row_of


def request_of(wish: Wish) -> Fact:
    name = names.request_plus_name if wish.holds else names.request_minus_name
    return name(wish.relation), wish.row


def requested_back(change: Fact) -> Fact:
    return request_of(wish_of(change))


def wish_of(change: Fact) -> Wish:
    named = names.as_change(change[0])
    assert named is not None
    return Wish(named[1], named[0], change[1])


def has_contradiction(requests: Mapping[Fact, None]) -> bool:
    """Whether a fact is requested to hold and not to hold."""
    for predicate, row in requests:
        named = names.as_request(predicate)
        if named is not None and named[1] and (names.request_minus_name(named[0]), row) in requests:
            return True
    return False


def by_predicate(facts: Iterable[Fact]) -> dict[str, list[tuple[Value, ...]]]:
    found: dict[str, list[tuple[Value, ...]]] = {}
    for predicate, row in facts:
        found.setdefault(predicate, []).append(row)
    return found


def derived_facts(
    rule: DisjunctiveRule, state: RuleState, facts: Mapping[str, list[tuple[Value, ...]]]
) -> Iterator[Fact]:
    """The facts of the only head of a rule, of whose requests and changes these are all."""
    (head,) = rule.heads
    driving = (x.predicate for x in rule.body if isinstance(x, Atom))
    if any(is_driving(name) and name not in facts for name in driving):
        return
    for binding in state.solved(rule.body, {}, facts):
        yield head.predicate, row_of(head, binding)


def is_driving(name: str) -> bool:
    return names.as_request(name) is not None or names.as_change(name) is not None


def is_seeding(rule: DisjunctiveRule) -> bool:
    """Whether a rule makes base changes of requests."""
    return len(rule.heads) == 1 and names.as_change(rule.heads[0].predicate) is not None


def rules_by_first(rules: Iterable[DisjunctiveRule | Rule]) -> dict[str, list]:  # type: ignore[type-arg]
    """The rules by the predicate that their bodies begin with."""
    found: dict[str, list[DisjunctiveRule | Rule]] = {}
    for rule in rules:
        assert isinstance(rule.body[0], Atom)
        found.setdefault(rule.body[0].predicate, []).append(rule)
    return found


def split_by_state(body: Sequence[Literal]) -> tuple[list[Literal], list[Literal]]:
    """The literals that are read in the new state, and those in the old, both by plain names."""
    new: list[Literal] = []
    old: list[Literal] = []
    for literal in body:
        atom = literal if isinstance(literal, Atom) else getattr(literal, "atom", None)
        plain = None if atom is None else names.as_new(atom.predicate)
        if atom is None or plain is None:
            old.append(literal)
        else:
            renamed = Atom(plain, atom.arguments)
            new.append(Negation(renamed) if isinstance(literal, Negation) else renamed)
    return new, old
