"""Changing the rules of a live database, with the exact change of every view.

A change of rules is a transaction too. Rules that only the old program has are guarded by a fact
that the transaction deletes, rules that only the new one has by a fact that it inserts:

    old  path(X, Y) :- edge(X, Y).               new  path(X, Y) :- road(X, Y).
    →  path(X, Y) :- rules__old, edge(X, Y).
       path(X, Y) :- rules__new, road(X, Y).     delete rules__old, insert rules__new

Correct because with `rules__old` alone the guarded program is the old one, with `rules__new` alone
the new one, and update propagation is exact. Views that no changed rule reaches are not looked at.

Where it does not apply (`guarded_program` returns None): a relation changes its columns, its kind
or whether it is stored, or old and new rules together are not stratified. Then views are recomputed
and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from deltalog.analysis.active_rules import INACTIVE, STATISTICS, activation_relation
from deltalog.analysis.columns import Relation, Storage, relations_of
from deltalog.analysis.stratification import stratification_of
from deltalog.checks.program import CheckedProgram
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Atom, Declaration, Program, Row, Rule
from deltalog.rewrites.desugar import fact_rows
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import checked_rows
from deltalog.runtime.model import Model

OLD = "rules__old"
NEW = "rules__new"


def guarded_program(old: Model, new: Model) -> CheckedProgram | None:
    """Both programs as one, the difference guarded; None where that is not possible."""
    if not _are_compatible(old, new):
        return None
    before, after = _all_rules(old.checked), _all_rules(new.checked)
    old_rules, new_rules = set(before), set(after)
    rules = (
        *(rule for rule in before if rule in new_rules),
        *(_guard_rule(rule, OLD) for rule in before if rule not in new_rules),
        *(_guard_rule(rule, NEW) for rule in after if rule not in old_rules),
    )
    found = stratification_of(rules)
    if not found.is_stratified:
        return None
    guards = tuple(Declaration("base", name, ()) for name in (OLD, NEW))
    program = Program((*_joint_declarations(old, new), *guards), rules)
    return CheckedProgram(program, relations_of(program), found)


def _are_compatible(old: Model, new: Model) -> bool:
    """Whether relations of both programs have the same kind and columns, and are stored alike."""
    common = old.checked.relations.keys() & new.checked.relations.keys()
    return all(
        _relation_shape(old.checked.relations[name]) == _relation_shape(new.checked.relations[name])
        and (name in old.stored) == (name in new.stored)
        for name in common
    )


def _relation_shape(relation: Relation) -> tuple[object, ...]:
    return (relation.kind, *((c.type, c.nullable, c.key) for c in relation.columns))


def _all_rules(checked: CheckedProgram) -> tuple[Rule, ...]:
    """The rules, and the facts of views, which are rules without a body."""
    facts = (f for f in checked.program.facts if checked.relations[f.predicate].kind == "view")
    rules = (replace(rule, message=None) for rule in checked.program.definitions)
    return (*rules, *(Rule(fact) for fact in facts))


def _guard_rule(rule: Rule, guard: str) -> Rule:
    return replace(rule, body=(Atom(guard), *rule.body))


def _joint_declarations(old: Model, new: Model) -> Iterable[Declaration]:
    """Every relation of both programs, declared with the columns it was found to have."""
    for model in (new, old):
        for name, relation in model.checked.relations.items():
            if model is new or name not in new.checked.relations:
                storage: Storage = "materialized" if name in model.stored else "virtual"
                kept = storage if relation.kind == "view" else None
                yield Declaration(relation.kind, name, relation.columns, kept)


def to_rebuild(old: Model, new: Model, reached: Set[str]) -> frozenset[str]:
    """Stored relations that a migration leaves behind the state or the order they should have.

    Helpers (group state, split joins) are not maintained by it, so those of views that it reached
    are computed anew, and those that have other rules now. Where a helper belongs to a recursive
    component, or components have grown together, or a strategy before did not keep them in order,
    the ranks of their facts could no longer be compared.
    """
    before, after = _helper_rules(old), _helper_rules(new)
    stale = {view for view in after if view in reached or before.get(view) != after[view]}
    helpers = {
        name
        for name in new.stored
        if is_generated(name) and new.relations[name].kind == "view" and _view_of(name) in stale
    }
    component_of = {name: choice.members for choice in old.choices for name in choice.predicates}
    unordered = {n for choice in old.choices if choice.is_unordered for n in choice.predicates}
    unranked = {
        name
        for choice in new.choices
        if choice.is_recursive
        and (
            choice.members & helpers
            or (choice.members & unordered and not choice.is_unordered)
            or not choice.members <= component_of.get(choice.predicates[0], frozenset())
        )
        for name in choice.predicates
        if name in new.stored
    }
    return frozenset(helpers | unranked)


def _helper_rules(model: Model) -> dict[str, set[Rule]]:
    """The rules of helpers by the view that they were made for."""
    found: dict[str, set[Rule]] = {}
    for rule in model.rules:
        if is_generated(rule.head.predicate):
            found.setdefault(_view_of(rule.head.predicate), set()).add(rule)
    return found


def _view_of(helper: str) -> str:
    return helper.split("__")[0]


def base_change(
    old: Model, new: Model, facts: dict[str, set[Row]], inactive: Set[str] = frozenset()
) -> ChangeSet:
    """The change of base facts that a change of programs makes, some rules of which are inactive.

    Facts written only in the new program are inserted. Facts written only in the old one are
    deleted, and so is everything in a relation that is not a base relation of the new program.
    Where a column has another type now, a fact is replaced unless its values are equal ones: `1` is
    `1.0`, but no float is 2^53 + 1.
    """
    before, after = _written_facts(old), _written_facts(new)
    inserted: dict[str, set[Row]] = {}
    deleted: dict[str, set[Row]] = {}
    for name, row in after - before:
        if row not in facts.get(name, set()):
            inserted.setdefault(name, set()).add(row)
    for name, row in before - after:
        if row in facts.get(name, set()):
            deleted.setdefault(name, set()).add(row)
    for name in facts.keys() - base_names(new):
        deleted[name] = set(facts[name])
    for name, rows in _marks_of_removed_rules(old, new, facts):
        deleted.setdefault(name, set()).update(rows)
    for name in facts.keys() & base_names(new):
        relation = new.checked.relations[name]
        if relation.types != old.checked.relations[name].types:
            kept = facts[name] - deleted.get(name, set())
            fitting = set(checked_rows(relation, kept))
            deleted.setdefault(name, set()).update(kept - fitting)
            inserted.setdefault(name, set()).update(fitting - kept)
    if idle := {(name,) for name in inactive} - facts.get(INACTIVE, set()):
        inserted[INACTIVE] = {*idle}
    return ChangeSet(inserted, deleted)


def check_plain_rules(checked: CheckedProgram, wanted: Set[str]) -> None:
    """Raise unless these are active rules without parameters."""
    known = {rule.name: rule for rule in checked.program.active_rules}
    for name in sorted(wanted):
        if name not in known:
            hint = did_you_mean(name, known)
            raise DataError([catalogue.UNKNOWN_RULE.at(None, name=name, hint=hint)])
        if known[name].parameters:
            words = ", ".join(each.name for each in known[name].parameters)
            problem = catalogue.BAD_ACTIVATION.at(
                None, name=name, wanted=words, given="no parameters"
            )
            raise DataError([problem])


def _marks_of_removed_rules(
    old: Model, new: Model, facts: dict[str, set[Row]]
) -> Iterator[tuple[str, set[Row]]]:
    """Rows kept for active rules that are removed: one of the same name that comes later is new.

    A rule with other parameters is another one to its activations.
    """
    rules = {rule.name: rule for rule in new.checked.program.active_rules}
    before, after = old.checked.relations, new.checked.relations
    for name in facts.keys() & base_names(new) & {INACTIVE, STATISTICS}:
        yield name, {row for row in facts[name] if row[0] not in rules}
    for rule in filter(lambda each: each.parameters, rules.values()):
        name = activation_relation(rule)
        if name in facts and before[name].types != after[name].types:
            yield name, set(facts[name])
        if INACTIVE in facts:
            yield INACTIVE, {row for row in facts[INACTIVE] if row[0] == rule.name}


def _written_facts(model: Model) -> set[tuple[str, Row]]:
    """The facts in the text of a program; those of hidden relations only begin a database."""
    return {(name, row) for name, row in fact_rows(model.core) if not is_generated(name)}


def base_names(model: Model) -> set[str]:
    return {n for n, relation in model.checked.relations.items() if relation.kind == "base"}
