"""All checks of a program, in one go: every problem is reported at once, sorted by place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deltalog.analysis.active_rules import hidden_relations
from deltalog.analysis.columns import Relations, relations_of
from deltalog.analysis.stratification import Stratification, stratification_of
from deltalog.checks.active_rules import check_active_rules
from deltalog.checks.aggregates import check_aggregates
from deltalog.checks.constraints import check_constraints
from deltalog.checks.declarations import check_atoms, check_declarations, check_system_facts
from deltalog.checks.disjunctive import check_disjunctive
from deltalog.checks.keys import check_keys
from deltalog.checks.safety import check_query_safety, check_safety
from deltalog.checks.sentences import check_sentences
from deltalog.checks.stratified import check_stratified
from deltalog.checks.types import check_body_types, check_types, check_types_known
from deltalog.checks.update_choices import check_update_choices
from deltalog.diagnostics.report import raise_if_any
from deltalog.language.ast import Program, Query


@dataclass(frozen=True)
class CheckedProgram:
    """A program that means something, with what the checks found out about it."""

    program: Program
    relations: Relations
    stratification: Stratification


def check_program(program: Program) -> CheckedProgram:
    """Raise a `ProgramError` with every problem, or return the checked program."""
    whole = replace(program, rules=program.definitions) if program.constraints else program
    system = tuple(fact for fact in program.facts if "__" in fact.predicate)
    if system:
        whole = replace(whole, facts=tuple(f for f in program.facts if "__" not in f.predicate))
    found = relations_of(whole)
    strata = stratification_of(whole.rules)
    raise_if_any(
        [
            *check_declarations(whole, found),
            *check_safety(whole),
            *check_aggregates(whole),
            *check_types(whole, found),
            *check_keys(whole, found),
            *check_stratified(strata),
            *check_constraints(program, found),
            *check_sentences(program),
            *check_active_rules(program, found),
            *check_disjunctive(program),
            *check_update_choices(program, found),
        ]
    )
    raise_if_any(check_types_known(found))
    hidden = hidden_relations(program, found)
    if system:
        raise_if_any(check_system_facts(system, hidden))
        raise_if_any(check_types(Program(facts=system), hidden))
    return CheckedProgram(program, {**found, **hidden} if hidden else found, strata)


def check_query(query: Query, known: Relations) -> None:
    """Raise a `ProgramError` if the query does not fit the relations."""
    program = Program(queries=(query,))
    raise_if_any(
        [
            *check_atoms(query.body, known, is_query=True),
            *check_query_safety(query),
            *check_aggregates(program),
            *check_body_types(query.body, known),
        ]
    )
