"""Every program case under every treatment: one expectation, many ways to get there.

Sections: `program`; `expect NAME…` gives the whole contents of these relations; `update` is one
transaction of `+fact.` and `-fact.` lines, after which further `expect` sections hold; a `delta`
section after it gives, as such lines, everything the transaction changes in all views.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import deltalog
from casefiles import UPDATE, Case, Section, find, identify, read_case
from deltalog import ChangeSet
from deltalog.analysis.columns import Relations, relations_of
from deltalog.language.ast import Constant, Program, Row
from deltalog.language.parser import parse_text
from deltalog.language.values import print_value, sort_key
from deltalog.runtime.transaction import checked_row
from treatments import EVALUATIONS, UPKEEP, Facts, contents, difference, naive

CHANGE = re.compile(r"([+-])\s*([^\n]*?\.)\s*(?=[+-]|%|$)", re.MULTILINE)


def facts_in(text: str) -> Facts:
    facts: Facts = {}
    for fact in parse_text(text).facts:
        row = tuple(term.value for term in fact.arguments if isinstance(term, Constant))
        facts.setdefault(fact.predicate, set()).add(row)
    return facts


def changes_in(text: str) -> list[tuple[str, str, Row]]:
    return [
        (sign, name, row)
        for sign, statement in CHANGE.findall(text)
        for name, rows in facts_in(statement).items()
        for row in rows
    ]


def shown(facts: Facts, wanted: list[str]) -> str:
    lines = [
        f"{name}({', '.join(print_value(value) for value in row)})." if row else f"{name}."
        for name in wanted
        for row in sorted(facts[name], key=sort_key)
    ]
    return "\n".join(lines)


def without_facts(program: Program) -> tuple[Program, Facts]:
    """Facts of base relations apart, so that updates can change them."""
    heads = {rule.head.predicate for rule in program.rules}
    views = heads | {d.predicate for d in program.declarations if d.kind == "view"}
    declared = {d.predicate for d in program.declarations}
    moved = [f for f in program.facts if f.predicate in declared and f.predicate not in views]
    kept = tuple(fact for fact in program.facts if fact not in moved)
    rest = Program(program.declarations, program.rules, kept, program.queries)
    found = relations_of(program)
    facts: Facts = {}
    for fact in moved:
        row = tuple(term.value for term in fact.arguments if isinstance(term, Constant))
        checked = checked_row(found[fact.predicate], row)
        facts.setdefault(fact.predicate, set()).add(checked)
    return rest, facts


def check(case: Case, section: Section, results: Facts) -> None:
    wanted = section.words[1:]
    actual = shown(results, wanted)
    if UPDATE:
        section.text = actual + "\n"
        case.save()
    expected = facts_in(section.text)
    for name in wanted:
        assert results[name] == expected.get(name, set()), f"{name} {section.name}"


@pytest.mark.parametrize("treatment", EVALUATIONS)
@pytest.mark.parametrize("path", find("programs"), ids=identify)
def test_program(path: Path, treatment: str) -> None:
    case = read_case(path)
    program, facts = without_facts(parse_text(case.text("program")))
    results = EVALUATIONS[treatment](program, facts)
    expectations = 0
    for section in case.sections:
        if section.name == "update":
            for sign, name, row in changes_in(section.text):
                (set.add if sign == "+" else set.discard)(facts.setdefault(name, set()), row)
            results = EVALUATIONS[treatment](program, facts)
        elif section.words[0] == "expect":
            check(case, section, results)
            expectations += 1
    assert expectations, "a case without an expectation shows nothing"


# --- a live database -----------------------------------------------------------------------------


def change_in(text: str, known: Relations) -> ChangeSet:
    """`+fact.` and `-fact.` lines as a change set, values in the types of their columns."""
    sides: dict[str, Facts] = {"+": {}, "-": {}}
    for sign, name, row in changes_in(text):
        sides[sign].setdefault(name, set()).add(checked_row(known[name], row))
    return ChangeSet(sides["+"], sides["-"])


def applied(database: deltalog.MemoryDatabase, change: ChangeSet) -> ChangeSet:
    """What the database says that one transaction changes in its views."""
    delta = database.apply(
        insert={name: list(rows) for name, rows in change.inserted.items()},
        delete={name: list(rows) for name, rows in change.deleted.items()},
    )
    assert delta.only(*change.relations) == change
    return delta.only(*database.model.views)


@pytest.mark.parametrize("upkeep", UPKEEP)
@pytest.mark.parametrize("path", find("programs"), ids=identify)
def test_live_program(path: Path, upkeep: str) -> None:
    """The facts are there from the beginning, every `update` is one transaction."""
    case = read_case(path)
    program, facts = without_facts(parse_text(case.text("program")))
    database = UPKEEP[upkeep].connect(program, facts)
    delta = ChangeSet()
    for section in case.sections:
        if section.name == "update":
            before = contents(database)
            change = change_in(section.text, database.relations)
            delta = applied(database, change)
            after = contents(database)
            assert delta == difference(before, after).only(*database.model.views)
        elif section.name == "delta":
            assert delta == change_in(section.text, database.relations)
        elif section.words[0] == "expect":
            check(case, section, contents(database))
    assert database.audit() == ()


@pytest.mark.parametrize("upkeep", UPKEEP)
@pytest.mark.parametrize("path", find("programs"), ids=identify)
def test_program_fact_by_fact(path: Path, upkeep: str) -> None:
    """The facts come one by one and go again in another order; all deltas add up."""
    program, facts = without_facts(parse_text(read_case(path).text("program")))
    database = UPKEEP[upkeep].connect(program)
    empty, full = naive(program, {}), naive(program, facts)
    single = [ChangeSet({name: {row}}) for name in facts for row in sorted(facts[name], key=repr)]
    total = ChangeSet()
    for change in single:
        total += applied(database, change)
    assert contents(database) == full
    assert total == difference(empty, full).only(*database.model.views)
    for change in single[1::2] + single[::2]:
        total += applied(database, -change)
    assert contents(database) == empty
    assert total == ChangeSet()
