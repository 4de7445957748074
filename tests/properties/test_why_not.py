"""`why_not` names a literal that is false; made true, it derives the fact or the failure moves on.

`why_changed` names base changes that exist, and without which the fact would not have changed.
"""

from __future__ import annotations

import random
from typing import Any

from effort import effort
from hypothesis import given
from hypothesis import strategies as st
from programs import Scenario, scenarios

import deltalog
from deltalog.language.ast import Atom, Constant, Negation, Query, Row, Variable
from deltalog.language.parser import parse_query
from deltalog.language.printer import print_program
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.why.why_not import BlockedRule

ASKED_MAX = 3
Facts = dict[str, set[Row]]


def _matching(literal: Atom, state: Facts) -> list[Row]:
    """Facts that fit an atom; a variable stands for any value."""
    values = [t.value if isinstance(t, Constant) else None for t in literal.arguments]
    free = [isinstance(t, Variable) for t in literal.arguments]
    return [
        row
        for row in state[literal.predicate]
        if all(f or v == x for f, v, x in zip(free, values, row, strict=True))
    ]


def _is_false(blocked: BlockedRule, db: deltalog.MemoryDatabase, state: Facts) -> bool:
    if blocked.kind == "aggregate":
        return "it is" in blocked.reason
    if blocked.kind == "head":
        return "does not fit" in blocked.reason
    (literal,) = parse_query(blocked.literal).body
    if isinstance(literal, Atom):
        return not _matching(literal, state)
    if isinstance(literal, Negation):
        return bool(_matching(literal.atom, state))
    return not len(db.query(Query((literal,))))


def _made(blocked: BlockedRule, db: deltalog.MemoryDatabase) -> bool:
    """Make the literal true if that is one change of a base relation."""
    if blocked.change is None:
        return False
    (atom,) = parse_query(blocked.change[1:]).body
    assert isinstance(atom, Atom)
    row = tuple(t.value for t in atom.arguments if isinstance(t, Constant))
    change: dict[str, Any] = {atom.predicate: [row]}
    if blocked.change[0] == "+":
        db.apply(insert=change)
    else:
        db.apply(delete=change)
    return True


def _undo(db: deltalog.MemoryDatabase) -> None:
    last = db.last_change
    assert last is not None
    base = last.only(*(n for n in last.relations if db.relations[n].kind == "base"))
    db.apply(insert=base.deleted, delete=base.inserted)


@given(scenarios(), st.booleans(), st.randoms(use_true_random=False))
@effort(quick=12, fuzz=1000)
def test_what_blocks_is_false_and_making_it_true_helps(
    scenario: Scenario, materialize: bool, random: random.Random
) -> None:
    db = deltalog.connect(program=scenario.program, facts=scenario.facts, materialize=materialize)
    state = {name: db.facts(name) for name in db.relations}
    for name in random.choices(db.model.views, k=ASKED_MAX):
        if any(column.type != "int" for column in db.relations[name].columns):
            continue
        row: Row = tuple(random.randint(0, 4) for _ in range(db.relations[name].arity))
        if row in state[name]:
            continue
        found = db.why_not(fact_text(name, row))
        assert len(found.rules) >= 1
        for place, blocked in enumerate(found.rules):
            assert _is_false(blocked, db, state), f"{blocked}"
            if _made(blocked, db):
                if row not in db.facts(name):
                    later = db.why_not(fact_text(name, row)).rules[place]
                    assert later.literal != blocked.literal, f"{blocked}\n{later}"
                _undo(db)
        if found.realization is not None:
            base = found.realization.base
            made = db.what_if(base.inserted, base.deleted, views=[name])
            assert row in made.inserted[name]


@given(scenarios(), st.booleans(), st.randoms(use_true_random=False))
@effort(quick=40, fuzz=1000)
def test_causes_of_changes_are_enough(
    scenario: Scenario, materialize: bool, random: random.Random
) -> None:
    """The named base changes happened, and lead to the fact step by step."""
    db = deltalog.connect(program=scenario.program, facts=scenario.facts, materialize=materialize)
    before = {n: db.facts(n) for n in db.relations if db.relations[n].kind == "base"}
    for inserts, deletes in scenario.transactions:
        delta = db.apply(insert=inserts, delete=deletes)
        if not delta:
            continue
        base = {(op, n, r) for op, n, r in delta if db.relations[n].kind == "base"}
        changed = [(op, n, r) for op, n, r in delta if db.relations[n].kind == "view"]
        for op, name, row in random.sample(changed, min(len(changed), 4)):
            found = db.why_changed(fact_text(name, row))
            assert found.op == op
            assert found.causes
            assert set(found.causes) <= base
            assert found.is_complete
            if op == "-":
                assert found.lost >= 1
            steps = {step.conclusion for step in found.steps}
            signed = {f"{o}{fact_text(n, r)}" for o, n, r in base}
            for step in found.steps:
                assert step.changed, str(found)
                assert set(step.changed) <= steps | signed
            _check_alone(scenario, before, found, (op, name, row))
        before = {n: db.facts(n) for n in db.relations if db.relations[n].kind == "base"}


def _check_alone(
    scenario: Scenario, before: Facts, found: deltalog.WhyChanged, change: tuple[str, str, Row]
) -> None:
    """Without aggregates and negation the causes alone bring a new fact about."""
    op, name, row = change
    if op == "-" or any(cause[0] == "-" for cause in found.causes):
        return
    text = print_program(scenario.program)
    if "not " in text or any(f"{each}(" in text for each in ("count", "sum", "min", "max", "avg")):
        return
    other = deltalog.connect(program=scenario.program, facts=before)
    inserted: Facts = {}
    for _, relation, fact in found.causes:
        inserted.setdefault(relation, set()).add(fact)
    assert row in other.what_if(insert=inserted).inserted[name]
