"""The relations of a program with the type of every column, declared or inferred.

Types flow from declarations and facts through rule bodies to heads until nothing changes:

    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).                     path(int, int)
    total(X, sum(Y)) :- path(X, Y).               total(int, int)

An int literal alone does not settle a column: beside a float or decimal it widens. Whether a column
may be null flows the same way: a variable may be null only if every atom it occurs in allows it.
What does not fit together is not judged here but in `checks/types.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from deltalog.analysis.dependencies import dependencies_of
from deltalog.analysis.relation import Relation, Relations, Storage
from deltalog.analysis.rule_types import (
    nullable_variables,
    term_is_nullable,
    term_type,
    variable_types,
)
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Column,
    Constant,
    Program,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import atoms_of

__all__ = [
    "Relation",
    "Relations",
    "Storage",
    "generated_relations",
    "relations_of",
    "undeclared_view",
]


def relations_of(program: Program) -> Relations:
    """Every relation of the program; a type that cannot be inferred is None."""
    found = _declared_relations(program)
    for atom in program.facts:
        known = found.get(atom.predicate)
        if known is None or (known.kind == "base" and not known.is_declared):
            found[atom.predicate] = _from_fact(atom, known)
    for rule in reversed(program.rules):
        known = found.get(rule.head.predicate)
        if known is None or not known.is_declared:
            storage = "materialized" if known is None else known.storage
            found[rule.head.predicate] = undeclared_view(rule.head, storage)
    all_rules = (*program.rules, *(Rule(fact) for fact in program.facts))
    views = (r for r in all_rules if found[r.head.predicate].kind == "view")
    rules = _lowest_first(tuple(views))
    _infer_columns(found, rules)
    return found


def _lowest_first(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """In this order types are known when they are needed, and one pass settles nearly all."""
    component_of = dependencies_of(rules).component_of()
    return tuple(sorted(rules, key=lambda rule: component_of[rule.head.predicate]))


def generated_relations(rules: Iterable[Rule], known: Relations) -> Relations:
    """The relations that a rewrite's rules define, typed from those already known."""
    rules = tuple(rules)
    found = dict(known)
    for rule in rules:
        if rule.head.predicate not in known:
            found[rule.head.predicate] = undeclared_view(rule.head, "virtual")
    made = _lowest_first(tuple(rule for rule in rules if rule.head.predicate not in known))
    _infer_columns(found, made)
    return {rule.head.predicate: found[rule.head.predicate] for rule in made}


def _declared_relations(program: Program) -> dict[str, Relation]:
    heads = {rule.head.predicate: rule.head for rule in reversed(program.rules)}
    heads |= {fact.predicate: fact for fact in program.facts if fact.predicate not in heads}
    found: dict[str, Relation] = {}
    for declaration in program.declarations:
        name = declaration.predicate
        if name in found:
            continue
        columns = declaration.columns
        if columns is None:
            columns = _numbered_columns(len(heads[name].arguments) if name in heads else 0)
        storage: Storage = declaration.storage or "materialized"
        is_declared = declaration.columns is not None
        inferred = frozenset(i for i, column in enumerate(columns) if column.type is None)
        found[name] = Relation(
            name, declaration.kind, columns, storage, is_declared, inferred, declaration.span
        )
    return found


def _numbered_columns(arity: int) -> tuple[Column, ...]:
    return tuple(Column(f"c{i + 1}") for i in range(arity))


def undeclared_view(head: Atom, storage: Storage) -> Relation:
    chosen = tuple(Column(name) for name in _head_names(head))
    inferred = frozenset(range(len(chosen)))
    return Relation(head.predicate, "view", chosen, storage, False, inferred, head.span)


def _head_names(head: Atom) -> list[str]:
    """Names of columns from the first rule of a view: `total(X, sum(Y))` has `x` and `sum_y`."""
    names: list[str] = []
    for number, term in enumerate(head.arguments, 1):
        name = _term_name(term) or f"c{number}"
        names.append(f"{name}_{number}" if name in names else name)
    return names


def _term_name(term: Term) -> str | None:
    match term:
        case Variable() if not term.is_wildcard:
            return term.name.lower()
        case Aggregate(function, argument):
            inner = None if argument is None else _term_name(argument)
            return function if inner is None else f"{function}_{inner}"
        case _:
            return None


def _from_fact(atom: Atom, known: Relation | None) -> Relation:
    """An undeclared relation that has facts and no rules is a base relation typed by its facts."""
    if known is None:
        known = Relation(
            atom.predicate,
            "base",
            _numbered_columns(len(atom.arguments)),
            is_declared=False,
            span=atom.span,
        )
    if known.arity != len(atom.arguments):
        return known
    columns = tuple(
        _with_constant(column, term)
        for column, term in zip(known.columns, atom.arguments, strict=True)
    )
    return _with_columns(known, columns)


def _with_constant(column: Column, term: Term) -> Column:
    if not isinstance(term, Constant):
        return column
    if term.type == "null":
        return Column(column.name, column.type, True)
    if column.type is None or (column.type == "int" and term.type in ("float", "decimal")):
        return Column(column.name, term.type, column.nullable)
    return column


def _with_columns(relation: Relation, columns: tuple[Column, ...]) -> Relation:
    if columns == relation.columns:
        return relation
    return replace(relation, columns=columns)


_Step: TypeAlias = Callable[[Rule, Relations], tuple[Column, ...]]


def _infer_columns(found: dict[str, Relation], rules: tuple[Rule, ...]) -> None:
    """Types and nullability of what the rules define."""
    fitting = [r for r in rules if found[r.head.predicate].arity == len(r.head.arguments)]
    read = [{atom.predicate for atom, _ in atoms_of(rule.body)} for rule in fitting]
    for step in (_typed_firmly, _typed_fully, _nullable_columns):
        _apply_to_fixpoint(found, fitting, read, step)


def _apply_to_fixpoint(
    found: dict[str, Relation], rules: list[Rule], read: list[set[str]], step: _Step
) -> None:
    """Apply `step` to every rule until no column changes; a column never changes back.

    Once is enough for a rule unless something that it reads changes afterwards.
    """
    waiting = set(range(len(rules)))
    while waiting:
        changed_by: dict[str, int] = {}
        for number in sorted(waiting):
            name = rules[number].head.predicate
            columns = step(rules[number], found)
            if columns != found[name].columns:
                found[name] = replace(found[name], columns=columns)
                changed_by[name] = number
        waiting = {
            number
            for number, names in enumerate(read)
            for name in names & changed_by.keys()
            if number not in waiting or number <= changed_by[name]
        }


def _typed_firmly(rule: Rule, found: Relations) -> tuple[Column, ...]:
    """Types from everything but int literals, which may still widen."""
    return _typed_columns(rule, found, lambda term: not _is_int_literal(term))


def _typed_fully(rule: Rule, found: Relations) -> tuple[Column, ...]:
    return _typed_columns(rule, found, lambda term: True)


def _is_int_literal(term: Term) -> bool:
    return isinstance(term, Constant) and term.type == "int"


def _typed_columns(
    rule: Rule, found: Relations, counts: Callable[[Term], bool]
) -> tuple[Column, ...]:
    columns = found[rule.head.predicate].columns
    if None not in found[rule.head.predicate].types:
        return columns
    types = variable_types(rule.body, found)
    return tuple(
        replace(column, type=term_type(term, types))
        if column.type is None and counts(term)
        else column
        for column, term in zip(columns, rule.head.arguments, strict=True)
    )


def _nullable_columns(rule: Rule, found: Relations) -> tuple[Column, ...]:
    """Only undeclared columns become nullable; a declared one that would is an error."""
    nullable = nullable_variables(rule.body, found)
    relation = found[rule.head.predicate]
    return tuple(
        replace(column, nullable=True)
        if position in relation.inferred
        and not column.nullable
        and term_is_nullable(term, nullable)
        else column
        for position, (column, term) in enumerate(
            zip(relation.columns, rule.head.arguments, strict=True)
        )
    )
