"""Changing rules: the delta is what recomputation of both programs says, and life goes on.

Two programs are made from one that is valid: each leaves out some of its rules and views, and the
second also alters some and has other facts. So rules go, come and change at once, views appear and
disappear, and base relations do, too. What random pairs do not meet is written down as `PAIRS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from effort import IS_FUZZ, effort
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from hypothesis.vendor.pretty import RepresentationPrinter
from programs import Facts, Features, Row, Transaction, applied, scenarios

import deltalog
from deltalog import ProgramError
from deltalog.analysis.columns import relations_of
from deltalog.checks.program import check_program
from deltalog.language.ast import Atom, Comparison, Constant, Negation, Program, Rule, Variable
from deltalog.language.parser import parse_text
from deltalog.language.printer import print_program
from deltalog.language.walk import atoms_of
from treatments import UPKEEP, contents, difference, helpers, naive

RULES_MAX = 30 if IS_FUZZ else 7
TREATMENTS = (
    "auto-stored",
    "recompute-stored",
    "delta-stored",
    "differencing-stored",
    "magic-stored",
    "demand-stored",
    "magic-virtual",
    "demand-virtual",
    "differencing-flat-virtual",
)


@dataclass(frozen=True)
class RuleChange:
    """A program, its facts, the program that replaces it, and transactions before and after."""

    old: Program
    new: Program
    facts: Facts
    before: list[Transaction]
    after: list[Transaction]

    def __str__(self) -> str:
        parts = [f"% old\n{print_program(self.old)}", f"% new\n{print_program(self.new)}"]
        return "\n".join([*parts, f"{self.facts}", f"{self.before}", f"{self.after}"])

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text(f"\n{self}\n")


# --- two programs from one ------------------------------------------------------------------------


@st.composite
def rule_changes(draw: DrawFn, features: Features) -> RuleChange:
    scenario = draw(scenarios(features))
    old = draw(variants(scenario.program, is_altered=False))
    new = draw(variants(scenario.program, is_altered=True))
    split = draw(st.integers(0, len(scenario.transactions)))
    return RuleChange(
        old, new, scenario.facts, scenario.transactions[:split], scenario.transactions[split:]
    )


@st.composite
def variants(draw: DrawFn, program: Program, is_altered: bool) -> Program:
    """The program with some rules left out or altered, and a few facts of its own."""
    rules = [rule for rule in program.rules[:RULES_MAX] if draw(st.integers(0, 3)) < 3]
    if is_altered:
        rules = [draw(altered(rule)) for rule in rules]
    made = _whole(replace(program, rules=tuple(rules)), keeps_unused=draw(st.booleans()))
    facts = draw(st.lists(_facts(program, is_altered), max_size=3))
    with_facts = replace(made, facts=tuple(dict.fromkeys(facts)))
    for candidate in (with_facts, made):
        if _is_valid(candidate):
            return candidate
    return _whole(replace(program, rules=()), keeps_unused=True)


def _facts(program: Program, is_altered: bool) -> st.SearchStrategy[Atom]:
    """A fact of the first base relation; programs share some and not others."""
    name = program.declarations[0].predicate
    values = st.integers(1 if is_altered else 0, 3).map(lambda value: Constant(value, "int"))
    return st.tuples(values, values).map(lambda pair: Atom(name, pair))


@st.composite
def altered(draw: DrawFn, rule: Rule) -> Rule:
    """The rule as it is, or without a negation, or with a comparison more."""
    kind = draw(st.sampled_from(("same", "less", "more")))
    if kind == "less":
        body = tuple(x for x in rule.body if not isinstance(x, Negation))
        return replace(rule, body=body) if body else rule
    positive = [literal for literal in rule.body if isinstance(literal, Atom)]
    names = [term.name for atom in positive for term in atom.arguments if _is_named(term)]
    if kind == "more" and names:
        variable = Variable(draw(st.sampled_from(names)))
        test = Comparison("!=", variable, Constant(draw(st.integers(0, 4)), "int"))
        return replace(rule, body=(*rule.body, test))
    return rule


def _is_named(term: object) -> bool:
    return isinstance(term, Variable) and not term.is_wildcard


def _whole(program: Program, keeps_unused: bool) -> Program:
    """Without rules that use a view nothing defines, and without declarations of such views."""
    rules = program.rules
    while True:
        defined = {rule.head.predicate for rule in rules}
        defined |= {d.predicate for d in program.declarations if d.kind == "base"}
        kept = tuple(rule for rule in rules if _used([rule]) <= defined)
        if kept == rules:
            break
        rules = kept
    used = _used(rules) | {rule.head.predicate for rule in rules}
    first = program.declarations[0]
    declarations = tuple(
        d
        for d in program.declarations
        if d.predicate in used or (d.kind == "base" and keeps_unused) or d is first
    )
    return replace(program, declarations=declarations, rules=rules)


def _used(rules: Iterable[Rule]) -> set[str]:
    return {atom.predicate for rule in rules for atom, _ in atoms_of(rule.body)}


def _is_valid(program: Program) -> bool:
    try:
        check_program(program)
    except ProgramError:
        return False
    return True


# --- what must hold -------------------------------------------------------------------------------


def base_of(program: Program) -> set[str]:
    return {name for name, found in relations_of(program).items() if found.kind == "base"}


def written(program: Program) -> set[tuple[str, Row]]:
    """The base facts in the text of a program; those of views are rules."""
    base = base_of(program)
    return {
        (fact.predicate, tuple(t.value for t in fact.arguments if isinstance(t, Constant)))
        for fact in program.facts
        if fact.predicate in base
    }


def without(program: Program) -> Program:
    """The program without its base facts, which are state like any other."""
    base = base_of(program)
    return replace(program, facts=tuple(f for f in program.facts if f.predicate not in base))


def state_of(program: Program, facts: Facts) -> Facts:
    return naive(without(program), {n: rows for n, rows in facts.items() if n in base_of(program)})


def migrated(change: RuleChange, facts: Facts) -> Facts:
    """Base facts after the change: what only one program has written comes or goes."""
    old, new = written(change.old), written(change.new)
    return {
        name: {row for row in facts.get(name, set()) if (name, row) not in old - new}
        | {row for written_name, row in new - old if written_name == name}
        for name in base_of(change.new)
    }


def step(
    database: deltalog.MemoryDatabase, program: Program, facts: Facts, made: Transaction
) -> Facts:
    """One transaction on what the program knows; its delta and the state after it are exact."""
    inserts, deletes = ({n: r for n, r in part.items() if n in facts} for part in made)
    after = applied(facts, (inserts, deletes))
    expected = state_of(program, after)
    delta = database.apply(insert=inserts, delete=deletes)
    assert delta == difference(state_of(program, facts), expected)
    assert contents(database) == expected
    return after


def check(change: RuleChange, upkeep: str) -> None:
    known = base_of(change.old)
    facts = {name: set(rows) for name, rows in change.facts.items() if name in known}
    database = UPKEEP[upkeep].connect(change.old, facts)
    for name, row in written(change.old):
        facts.setdefault(name, set()).add(row)
    for transaction in change.before:
        facts = step(database, change.old, facts, transaction)
    before, version = state_of(change.old, facts), database.version
    moved = migrated(change, facts)
    expected = difference(before, state_of(change.new, moved))
    assert database.change_program(change.new, is_committed=False) == expected, "what-if"
    assert contents(database) == before, "a what-if changes nothing"
    assert database.version == version
    for transaction in change.after[:1]:
        facts = step(database, change.old, facts, transaction)
    moved = migrated(change, facts)
    expected = difference(state_of(change.old, facts), state_of(change.new, moved))
    assert database.change_program(change.new) == expected
    assert contents(database) == state_of(change.new, moved)
    assert database.audit() == ()
    for transaction in change.after:
        assert helpers(database) == helpers(UPKEEP[upkeep].connect(without(change.new), moved))
        moved = step(database, change.new, moved, transaction)


@pytest.mark.parametrize("upkeep", TREATMENTS)
def test_a_change_of_rules_is_exact(upkeep: str) -> None:
    @effort(quick=8, fuzz=300)
    @given(rule_changes(Features(view_declarations=upkeep.endswith("-virtual"))))
    def run(change: RuleChange) -> None:
        check(change, upkeep)

    run()


@effort(quick=30, fuzz=300)
@given(rule_changes(Features(longer_joins=True)))
def test_longer_joins_come_and_go(change: RuleChange) -> None:
    check(change, "auto-stored")


# --- pairs that random programs do not make -------------------------------------------------------

EDGE = "base edge(src: int, dst: int)."
CLOSURE = "path(X, Y) :- edge(X, Y). path(X, Y) :- edge(X, Z), path(Z, Y)."
SPLIT = " path(X, Y) :- edge(A, X), path(A, B), path(B, Y)."
UPWARDS = " up(X, Y) :- edge(X, Y), X < Y. p(X, Y) :- edge(X, Y)."
PAIRS: dict[str, tuple[str, str]] = {
    "nothing": (f"{EDGE}{CLOSURE}", f"{EDGE}{CLOSURE}"),
    "the same rules in another order": (
        f"{EDGE} p(X) :- edge(X, _). q(X) :- p(X).",
        f"{EDGE} q(X) :- p(X). p(X) :- edge(X, _).",
    ),
    "recursion comes": (f"{EDGE} path(X, Y) :- edge(X, Y).", f"{EDGE}{CLOSURE}"),
    "recursion goes": (f"{EDGE}{CLOSURE}", f"{EDGE} path(X, Y) :- edge(X, Y)."),
    "recursion turns around": (
        f"{EDGE}{CLOSURE}",
        f"{EDGE} path(X, Y) :- edge(X, Y). path(X, Y) :- path(X, Z), path(Z, Y).",
    ),
    "together they are not stratified": (
        f"{EDGE} p(X) :- edge(X, _). q(X) :- edge(_, X), not p(X).",
        f"{EDGE} q(X) :- edge(X, _). p(X) :- edge(_, X), not q(X).",
    ),
    "a view gets another column": (
        f"{EDGE} p(X) :- edge(X, _). q(X) :- p(X).",
        f"{EDGE} p(X, Y) :- edge(X, Y). q(X) :- p(X, X).",
    ),
    "a column gets another type": (
        f"{EDGE} p(X, 1) :- edge(X, _). q(X) :- p(X, _).",
        f'{EDGE} p(X, "a") :- edge(X, _). q(X) :- p(X, _).',
    ),
    "a base relation becomes a view": (
        f"{EDGE} base node(x: int). p(X) :- node(X). node(1). node(7).",
        f"{EDGE} node(X) :- edge(X, _). p(X) :- node(X).",
    ),
    "a view becomes a base relation": (
        f"{EDGE} node(X) :- edge(X, _). p(X) :- node(X).",
        f"{EDGE} base node(x: int). p(X) :- node(X). node(1). node(7).",
    ),
    "a base relation comes with its facts": (
        f"{EDGE} p(X) :- edge(X, _).",
        f"{EDGE} base color(x: int, name: str). p(X) :- edge(X, _), color(X, _)."
        ' color(1, "red"). color(4, "red").',
    ),
    "a base relation goes with its facts": (
        f'{EDGE} base color(x: int, name: str). p(X) :- color(X, _). color(1, "red").',
        f"{EDGE} p(X) :- edge(X, _).",
    ),
    "facts of the program come and go": (
        f"{EDGE}{CLOSURE} edge(1, 2). edge(2, 9).",
        f"{EDGE}{CLOSURE} edge(2, 9). edge(9, 1).",
    ),
    "facts of a view come and go": (
        f"{EDGE} p(X) :- edge(X, _). p(8). p(9). q(X) :- p(X), not edge(X, _).",
        f"{EDGE} p(X) :- edge(X, _). p(9). p(1). q(X) :- p(X), not edge(X, _).",
    ),
    "a view is stored from now on": (
        f"{EDGE} virtual view path. {CLOSURE} far(X) :- path(1, X).",
        f"{EDGE} materialized view path. {CLOSURE} far(X) :- path(1, X).",
    ),
    "a view is no longer stored": (
        f"{EDGE} materialized view path. {CLOSURE} far(X) :- path(1, X).",
        f"{EDGE} virtual view path. {CLOSURE} far(X) :- path(1, X).",
    ),
    "an aggregate changes its function": (
        f"{EDGE}{CLOSURE} reach(X, count()) :- path(X, Y). top(max(N)) :- reach(_, N).",
        f"{EDGE}{CLOSURE} reach(X, sum(Y)) :- path(X, Y). top(max(N)) :- reach(_, N).",
    ),
    "an aggregate ranges over another column": (
        f"{EDGE} total(sum(X)) :- edge(X, _). low(min(X)) :- edge(X, _).",
        f"{EDGE} total(sum(X)) :- edge(_, X). low(min(X)) :- edge(_, X).",
    ),
    "a maximum becomes a count": (
        f"{EDGE} end(X, max(Y)) :- edge(X, Y).",
        f"{EDGE} end(X, count()) :- edge(X, Y).",
    ),
    "an aggregate gets company": (
        f"{EDGE} rank(X, count()) :- edge(X, Y).",
        f"{EDGE} rank(X, count()) :- edge(X, Y). rank(X, 0) :- edge(_, X), not edge(X, _).",
    ),
    "a negation comes": (
        f"{EDGE}{CLOSURE} p(X) :- path(X, _).",
        f"{EDGE}{CLOSURE} p(X) :- path(X, _), not path(_, X).",
    ),
    "a longer join comes": (f"{EDGE}{CLOSURE}", f"{EDGE}{CLOSURE}{SPLIT}"),
    "a longer join goes": (f"{EDGE}{CLOSURE}{SPLIT}", f"{EDGE}{CLOSURE}"),
    "a longer join is another": (
        f"{EDGE}{CLOSURE}{SPLIT}",
        f"{EDGE}{CLOSURE} path(X, Y) :- path(X, A), edge(B, A), path(B, Y).",
    ),
    "longer joins change places": (
        f"{EDGE}{UPWARDS} p(X, Y) :- up(A, X), p(A, B), p(B, Y)."
        " p(X, Y) :- p(X, A), edge(B, A), p(Y, B).",
        f"{EDGE}{UPWARDS} p(X, Y) :- p(X, A), edge(B, A), p(Y, B)."
        " p(X, Y) :- up(A, X), p(A, B), p(B, Y).",
    ),
    "what a longer join reads changes": (
        f"{EDGE} mid(X, Y) :- edge(X, Y), X < 4. path(X, Y) :- edge(X, Y)."
        " path(X, Y) :- path(X, A), mid(B, A), path(B, Y).",
        f"{EDGE} mid(X, Y) :- edge(X, Y), X > 1. path(X, Y) :- edge(X, Y)."
        " path(X, Y) :- path(X, A), mid(B, A), path(B, Y).",
    ),
    "everything goes": (f"{EDGE}{CLOSURE} p(X) :- path(X, _).", EDGE),
    "everything comes": (EDGE, f"{EDGE}{CLOSURE} p(X) :- path(X, _)."),
}
LATER: list[Transaction] = [
    ({"edge": {(4, 1)}}, {}),
    ({"edge": {(1, 4)}}, {"edge": {(2, 3)}}),
    ({}, {"edge": {(4, 1), (1, 2)}}),
]


@pytest.mark.parametrize("upkeep", UPKEEP)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_of_programs(pair: str, upkeep: str) -> None:
    old, new = (parse_text(text) for text in PAIRS[pair])
    facts: Facts = {"edge": {(1, 2), (2, 3), (3, 2), (3, 4)}}
    check(RuleChange(old, new, facts, [], LATER), upkeep)
