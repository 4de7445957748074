"""Keys of lookups, derived by rules beside those that look them up."""

from __future__ import annotations

from deltalog.language.parser import parse_program
from deltalog.language.printer import print_rule
from deltalog.rewrites.lookup_rules import Lookup, lookup_rules
from deltalog.source import Source

STORED = frozenset({"edge", "closed"})


def lookups_of(text: str) -> tuple[dict[str, Lookup], list[str]]:
    found, rules = lookup_rules(parse_program(Source("<test>", text)).rules, STORED)
    return found, [print_rule(rule) for rule in rules]


def test_an_atom_is_looked_up_with_what_is_bound_before_it() -> None:
    found, rules = lookups_of("p(X, Z) :- wanted(X), edge(X, Y), edge(Y, Z).")
    assert found == {"edge__bf__lookup": Lookup("edge", (0,))}
    assert rules == [
        "edge__bf__lookup(X) :- wanted(X).",
        "edge__bf__lookup(Y) :- wanted(X), edge(X, Y).",
    ]


def test_negated_literals_are_looked_up_behind_all_atoms() -> None:
    found, rules = lookups_of("p(X) :- wanted(X, Y), not closed(Y, _).")
    assert found == {"closed__bf__lookup": Lookup("closed", (0,))}
    assert rules == ["closed__bf__lookup(Y) :- wanted(X, Y)."]


def test_constants_are_keys_and_nothing_may_be_bound() -> None:
    found, rules = lookups_of("p(Y) :- edge(1, Y).\nq(X) :- edge(X, X).")
    assert found == {
        "edge__bf__lookup": Lookup("edge", (0,)),
        "edge__ff__lookup": Lookup("edge", ()),
    }
    assert rules == ["edge__bf__lookup(1).", "edge__ff__lookup."]


def test_other_relations_are_not_looked_up() -> None:
    assert lookups_of("p(X) :- wanted(X), other(X).") == ({}, [])
