"""Checks of what `why_not` and `why_changed` return, by facts and rules alone.

A `Side` is a program with all its facts. What blocks a rule must be false there, and what is said
to hold must hold. A step of a change must be an instance of a rule that its own side has, over
premises that this side has; what is said to have changed must differ between the sides. The
derivations that a fact had are counted by nested loops over all facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from proof_checker import derived_by

import deltalog
from deltalog.analysis.columns import Relation
from deltalog.checks.program import CheckedProgram
from deltalog.language.ast import Atom, Constant, Negation, Program, Query, Row, Rule, Variable
from deltalog.language.parser import parse_program, parse_query
from deltalog.language.printer import print_rule
from deltalog.rewrites.desugar import flat_rules, typed_atom
from deltalog.runtime.derivation import DerivationSearch
from deltalog.runtime.readable_state import row_fits
from deltalog.runtime.why.asked import parse_fact
from deltalog.runtime.why.change_reason import ChangeStep
from deltalog.runtime.why.why_not import BlockedRule
from deltalog.source import Source

State = Mapping[str, "set[Row] | frozenset[Row]"]


@dataclass(frozen=True)
class Side:
    """A program and all facts that it has."""

    checked: CheckedProgram
    state: State

    @property
    def program(self) -> Program:
        return self.checked.program

    @property
    def relations(self) -> Mapping[str, Relation]:
        return self.checked.relations

    @property
    def rules(self) -> set[str]:
        """Rules and facts as they read: a tree that was not parsed may be another one."""
        facts = {print_rule(Rule(fact)) for fact in self.program.facts}
        made = (replace(rule, message=None) for rule in self.program.definitions)
        return facts | {print_rule(rule) for rule in made}

    def has(self, name: str, row: Row) -> bool:
        return row in self.state.get(name, ())

    def matching(self, relation: str, key: Mapping[int, object]) -> list[Row]:
        return [row for row in self.state[relation] if row_fits(row, key)]  # type: ignore[arg-type]


# --- why_not --------------------------------------------------------------------------------------


def check_blocked(blocked: BlockedRule, side: Side) -> None:
    """Raise unless what blocks a rule is false, and what is said to hold does."""
    assert _is_false(blocked, side), f"{blocked}: it is not false"
    for text in blocked.holding:
        assert _is_true(text, side), f"{blocked}: {text} does not hold"
    for row in blocked.excluding:
        assert side.has(str(blocked.relation), row), f"{blocked} names a fact that does not hold"


def _is_false(blocked: BlockedRule, side: Side) -> bool:
    if blocked.kind == "aggregate":
        return "it is" in blocked.reason
    if blocked.kind == "head":
        return "does not fit" in blocked.reason
    return not _is_true(blocked.literal, side)


def _is_true(text: str, side: Side) -> bool:
    """Whether a literal holds; a variable stands for any value."""
    (literal,) = parse_query(text).body
    if isinstance(literal, Atom):
        return bool(_matching(literal, side))
    if isinstance(literal, Negation):
        return not _matching(literal.atom, side)
    return bool(len(_nothing().query(Query((literal,)))))


def _matching(atom: Atom, side: Side) -> list[Row]:
    typed = typed_atom(atom, side.relations[atom.predicate]).arguments
    key = {i: t.value for i, t in enumerate(typed) if isinstance(t, Constant)}
    places: dict[str, list[int]] = {}
    for i, term in enumerate(typed):
        if isinstance(term, Variable):
            places.setdefault(term.name, []).append(i)
    found = side.matching(atom.predicate, key)
    return [r for r in found if all(len({r[i] for i in each}) == 1 for each in places.values())]


@lru_cache(maxsize=1)
def _nothing() -> deltalog.MemoryDatabase:
    """A database to evaluate comparisons in."""
    return deltalog.connect(program="base nothing().", engine="reference")


def check_moved_on(
    place: int,
    blocked: BlockedRule,
    changed: Callable[[str, str, Row], tuple[Side, Callable[[], deltalog.WhyNot]] | None],
    side: Side,
    fact: tuple[str, Row],
) -> bool:
    """Make what blocks a rule true: then the fact holds, or something else blocks the rule.

    `changed` returns the side after one change of a base relation, and asks there. Returns whether
    it is such a change.
    """
    if blocked.change is None:
        return False
    op, name, row = blocked.change[0], *parse_fact(blocked.change[1:], side.relations)
    made = changed(op, name, row)
    if made is None:
        return False
    later, ask = made
    if not later.has(*fact):
        moved = ask().rules[place]
        assert moved.literal != blocked.literal, f"{blocked}\n{moved}"
        check_blocked(moved, later)
    return True


# --- why_changed ----------------------------------------------------------------------------------


def check_changed(
    found: deltalog.WhyChanged, fact: tuple[str, Row], before: Side, after: Side
) -> None:
    """Raise unless every step is right, and the steps lead to changes of base facts and rules."""
    name, row = fact
    sides = {"+": (after, before), "-": (before, after)}
    own, other = sides[found.op]
    assert own.has(name, row), f"{found}: it is no such change"
    assert not other.has(name, row), f"{found}: it is no such change"
    for op, relation, values in found.causes:
        own, other = sides[op]
        assert own.relations[relation].kind == "base", f"{found}: {relation} is derived"
        assert own.has(relation, values), f"{found}: {values}"
        assert not other.has(relation, values), f"{found}: {values}"
    shown = {step.conclusion for step in found.steps} | set(found.cause_texts)
    assert f"{found.op}{found.conclusion}" in shown
    for step in found.steps:
        assert step.changed or step.program, f"{found}\n{step} has no reason"
        assert not found.is_complete or set(step.changed) <= shown, f"{found}\n{step} leads away"
        _check_step(step, sides)
    for change in found.program:
        own, other = sides[change.op]
        if change.kind == "rule":
            rule = print_rule(_rule(change.text))
            assert rule in own.rules, f"{found}: no such rule"
            assert rule not in other.rules, f"{found}: it is in both programs"
    if found.op == "-":
        assert found.lost == _derivations(before, fact), f"{found}: derivations"


def _check_step(step: ChangeStep, sides: Mapping[str, tuple[Side, Side]]) -> None:
    op = step.conclusion[0]
    own, _ = sides[op]
    name, row = _signed(step.conclusion, sides)
    used: dict[str, set[Row]] = {}
    for text in step.changed:
        relation, values = _signed(text, sides)
        if text[0] == op:
            used.setdefault(relation, set()).add(values)
    for text in step.kept:
        assert _is_true(text, own), f"{step}: {text} does not hold"
        if not text.startswith("not "):
            relation, values = parse_fact(text, own.relations)
            used.setdefault(relation, set()).add(values)
    rule = _rule(step.rule)
    assert print_rule(rule) in own.rules, f"{step}: no such rule"
    if not rule.body:
        return
    everything = {n: set(rows) for n, rows in own.state.items()}
    premises = everything if rule.is_aggregate else used
    derived = derived_by(rule, own.relations, premises, everything)
    assert row in derived, f"{step}: {name}{row} is not derived from {premises}"


def _signed(text: str, sides: Mapping[str, tuple[Side, Side]]) -> tuple[str, Row]:
    """A fact that its own side has, and the other does not."""
    own, other = sides[text[0]]
    name, row = parse_fact(text[1:], own.relations)
    assert own.has(name, row), f"{text} is no change"
    assert not other.has(name, row), f"{text} is no change"
    return name, row


@lru_cache(maxsize=1_000)
def _rule(text: str) -> Rule:
    read = parse_program(Source("<rule>", text))
    return read.rules[0] if read.rules else Rule(read.facts[0])


def _derivations(side: Side, fact: tuple[str, Row]) -> int:
    """The number of rule instances that derive a fact; 0 of a base fact."""
    if side.relations[fact[0]].kind == "base":
        return 0
    return sum(1 for rules in _flat(side) for _ in DerivationSearch(rules).instances(side, fact))


def _flat(side: Side) -> Iterable[tuple[Rule, ...]]:
    for rule in side.program.definitions:
        yield tuple(flat_rules(replace(rule, message=None), side.relations))
    for atom in side.program.facts:
        yield (Rule(typed_atom(atom, side.relations[atom.predicate])),)
