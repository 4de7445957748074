"""`why_not` names a literal that is false; made true, it derives the fact or the failure moves on.

`why_changed` names base changes that exist, and without which the fact would not have changed.
"""

from __future__ import annotations

import random
from typing import Any

from effort import effort
from hypothesis import given
from hypothesis import strategies as st
from programs import Features, Scenario, scenarios
from reason_checker import Side, check_blocked, check_changed
from test_rule_changes import RuleChange, rule_changes

import deltalog
from deltalog.language.ast import Row
from deltalog.language.printer import print_program
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.why.asked import parse_fact
from deltalog.runtime.why.why_not import BlockedRule

ASKED_MAX = 3
Facts = dict[str, set[Row]]


def _made(blocked: BlockedRule, db: deltalog.MemoryDatabase) -> bool:
    """Make the literal true if that is one change of a base relation."""
    if blocked.change is None:
        return False
    name, row = parse_fact(blocked.change[1:], db.relations)
    side = "insert" if blocked.change[0] == "+" else "delete"
    change: dict[str, Any] = {side: {name: [row]}}
    db.apply(**change)
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
        side = Side(db.model.checked, state)
        for place, blocked in enumerate(found.rules):
            check_blocked(blocked, side)
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
@effort(quick=20, fuzz=1000)
def test_causes_of_changes_are_enough(
    scenario: Scenario, materialize: bool, random: random.Random
) -> None:
    """The named base changes happened, and lead to the fact step by step."""
    db = deltalog.connect(program=scenario.program, facts=scenario.facts, materialize=materialize)
    everything = {n: db.facts(n) for n in db.relations}
    before = {n: rows for n, rows in everything.items() if db.relations[n].kind == "base"}
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
            assert not found.program
            now = Side(db.model.checked, {n: db.facts(n) for n in db.relations})
            check_changed(found, (name, row), Side(db.model.checked, everything), now)
            _check_alone(scenario, before, found, (op, name, row))
        everything = {n: db.facts(n) for n in db.relations}
        before = {n: rows for n, rows in everything.items() if db.relations[n].kind == "base"}


@given(rule_changes(Features(view_declarations=True)), st.randoms(use_true_random=False))
@effort(quick=20, fuzz=500)
def test_causes_of_changes_of_programs_are_rules_and_facts(
    change: RuleChange, random: random.Random
) -> None:
    """Every change that another program makes is followed to rules that are new or gone."""
    db = deltalog.connect(program=change.old)
    known = {name: rows for name, rows in change.facts.items() if name in db.relations}
    db.apply(insert=known)
    before = Side(db.model.checked, {n: db.facts(n) for n in db.relations})
    delta = db.change_program(change.new)
    after = Side(db.model.checked, {n: db.facts(n) for n in db.relations})
    changed = sorted(delta, key=repr)
    for op, name, row in random.sample(changed, min(len(changed), 4)):
        found = db.why_changed(fact_text(name, row))
        assert found.op == op
        check_changed(found, (name, row), before, after)


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
