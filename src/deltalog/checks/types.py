"""Types: everything that meets has one type, and nothing null reaches a column that is not.

Columns have been inferred (`analysis/columns.py`); this reports what does not fit them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.rule_types import (
    BRANCHES_MAX,
    comparison_type,
    constant_fits,
    expression_type,
    fitting_atoms,
    nullable_variables,
    operand_types,
    term_is_nullable,
    term_type,
    variable_types,
)
from deltalog.analysis.system_relations import SYSTEM_RELATIONS
from deltalog.checks.declarations import counted_arguments
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import (
    AGGREGATES,
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Literal,
    Operation,
    Program,
    Rule,
    Term,
    Variable,
)
from deltalog.language.functions import (
    AGGREGATE_OPERANDS,
    FUNCTIONS,
    ORDERED,
    arities_of,
    find_signature,
    widened_type,
)
from deltalog.language.values import print_value
from deltalog.language.walk import atoms_of, distribute_disjunctions, literals_of, operations_of

Types = dict[str, str]


def check_types(program: Program, relations: Relations) -> Iterator[Diagnostic]:
    for rule in program.rules:
        types = variable_types(rule.body, relations)
        yield from _check_body(rule.body, relations, types)
        if relations[rule.head.predicate].arity == len(rule.head.arguments):
            yield from _check_head(rule, relations, types)
    for fact in program.facts:
        if relations[fact.predicate].arity == len(fact.arguments):
            yield from _check_constants(fact, relations[fact.predicate])
    for query in program.queries:
        yield from check_body_types(query.body, {**relations, **SYSTEM_RELATIONS})


def check_body_types(body: tuple[Literal, ...], relations: Relations) -> Iterator[Diagnostic]:
    """Check that the types of everything a body joins, computes and compares fit together."""
    return _check_body(body, relations, variable_types(body, relations))


def _check_body(
    body: tuple[Literal, ...], relations: Relations, types: Types
) -> Iterator[Diagnostic]:
    yield from _check_joined_columns(body, relations, types)
    for atom, _ in fitting_atoms(body, relations):
        yield from _check_constants(atom, relations[atom.predicate])
        yield from _check_computed_arguments(atom, relations[atom.predicate], types)
    for literal in body:
        yield from _check_operations(literal, types)
    for literal in literals_of(body):
        if isinstance(literal, Comparison):
            yield from _check_comparison(literal, types)
    for way in itertools.islice(distribute_disjunctions(body), BRANCHES_MAX):
        bound = {
            term.name
            for atom, positive in atoms_of(way)
            if positive
            for term in _plain_variables(atom)
        }
        for literal in way:
            if isinstance(literal, Comparison):
                yield from _check_assignment(literal, types, bound)


def _check_computed_arguments(atom: Atom, relation: Relation, types: Types) -> Iterator[Diagnostic]:
    """An expression in an atom fits its column; an int may widen."""
    for column, term in zip(relation.columns, atom.arguments, strict=True):
        if not isinstance(term, Operation) or column.type is None:
            continue
        type_ = expression_type(term, types)
        if type_ is not None and widened_type(type_, column.type) != column.type:
            yield _head_conflict(term, type_, column, relation)


def _plain_variables(atom: Atom) -> Iterator[Variable]:
    return (term for term in atom.arguments if isinstance(term, Variable))


def _check_assignment(
    comparison: Comparison, types: Types, bound: set[str]
) -> Iterator[Diagnostic]:
    """A variable assigned by `=` has the type of the assigned value: only a test may convert."""
    if comparison.operator != "=":
        return
    left = expression_type(comparison.left, types)
    right = expression_type(comparison.right, types)
    if left is None or right is None or "null" in (left, right):
        return
    met = comparison_type(comparison.left, left, comparison.right, right)
    for side, type_ in ((comparison.left, left), (comparison.right, right)):
        if isinstance(side, Variable) and side.name not in bound and met not in (None, type_):
            yield catalogue.TYPE_CONFLICT.at(
                comparison.span,
                name=side.name,
                first=met,
                second=type_,
                hint=f"convert the value, as in `{side.name} = {type_}(…)`",
            )


def _check_joined_columns(
    body: tuple[Literal, ...], relations: Relations, types: Types
) -> Iterator[Diagnostic]:
    """A variable that occurs in two columns joins them, so they have one type."""
    first: dict[str, tuple[str, Term, Atom]] = {}
    ordered = sorted(fitting_atoms(body, relations), key=lambda found: not found[1])
    for atom, positive in ordered:
        for column, term in zip(relations[atom.predicate].columns, atom.arguments, strict=True):
            if not isinstance(term, Variable) or column.type is None:
                continue
            known = types.get(term.name, column.type)
            if not positive and term.name not in first and known != column.type:
                yield catalogue.TYPE_CONFLICT.at(
                    term.span,
                    label=_type_in(column.type, atom),
                    name=term.name,
                    first=column.type,
                    second=known,
                )
                continue
            type_, earlier, where = first.setdefault(term.name, (column.type, term, atom))
            if type_ != column.type:
                yield _type_conflict(term.name, (term, column.type, atom), (earlier, type_, where))


def _type_conflict(
    name: str, here: tuple[Term, str, Atom], there: tuple[Term, str, Atom]
) -> Diagnostic:
    (term, type_, atom), (earlier, earlier_type, earlier_atom) = here, there
    others = (
        (Label(earlier.span, _type_in(earlier_type, earlier_atom)),)
        if earlier.span is not None
        else ()
    )
    hint = None
    if widened_type(type_, earlier_type) is not None:
        wide = widened_type(type_, earlier_type)
        hint = f"convert one of them, as in `Y = {wide}(X)`"
    return catalogue.TYPE_CONFLICT.at(
        term.span,
        *others,
        label=_type_in(type_, atom),
        name=name,
        first=type_,
        second=earlier_type,
        hint=hint,
    )


def _type_in(type_: str, atom: Atom) -> str:
    """The type of a column; only the parameters of an active rule stand in a hidden relation."""
    return f"{type_} as a parameter" if "__" in atom.predicate else f"{type_} in `{atom.predicate}`"


def _check_constants(atom: Atom, relation: Relation) -> Iterator[Diagnostic]:
    for column, term in zip(relation.columns, atom.arguments, strict=True):
        if not isinstance(term, Constant) or column.type is None:
            continue
        if term.type == "null":
            if not column.nullable:
                yield _null_misfit(term, column, relation)
        elif not constant_fits(term, column.type):
            yield _constant_misfit(term, column, relation)


def _constant_misfit(term: Constant, column: Column, relation: Relation) -> Diagnostic:
    hint = None
    if term.type == "str" and column.type in ("date", "timestamp", "decimal"):
        hint = f"write `{column.type}{print_value(term.value)}`"
    return catalogue.CONSTANT_MISFIT.at(
        term.span,
        *_declared_at(relation),
        value=f"`{print_value(term.value)}`",
        column=f"`{column.name}`",
        name=relation.name,
        type=column.type,
        hint=hint,
    )


def _null_misfit(term: Term, column: Column, relation: Relation) -> Diagnostic:
    return catalogue.NULL_MISFIT.at(
        term.span,
        *_declared_at(relation),
        column=f"`{column.name}`",
        name=relation.name,
        type=column.type,
    )


def _declared_at(relation: Relation) -> tuple[Label, ...]:
    if relation.span is None or not relation.is_declared:
        return ()
    return (Label(relation.span, "declared here"),)


def _check_operations(node: Literal | Term, types: Types) -> Iterator[Diagnostic]:
    for operation in operations_of(node):
        name = operation.function
        if name not in FUNCTIONS:
            if name not in AGGREGATES:
                yield catalogue.UNKNOWN_FUNCTION.at(
                    operation.span,
                    name=name,
                    hint=did_you_mean(name, FUNCTIONS) or _text_hint(operation),
                )
            continue
        if len(operation.arguments) not in arities_of(name):
            yield catalogue.FUNCTION_ARITY.at(
                operation.span,
                name=name,
                wanted=" or ".join(counted_arguments(n) for n in arities_of(name)),
                given=len(operation.arguments),
            )
            continue
        operands = operand_types(operation.arguments, types)
        if None in operands or find_signature(name, tuple(map(str, operands))) is not None:
            continue
        yield catalogue.NO_SIGNATURE.at(
            operation.span, function=name, operands=" and ".join(map(str, operands))
        )


def _text_hint(operation: Operation) -> str | None:
    if operation.arguments:
        return None
    return f'variables begin with a capital; text is quoted: "{operation.function}"'


def _check_comparison(comparison: Comparison, types: Types) -> Iterator[Diagnostic]:
    left = expression_type(comparison.left, types)
    right = expression_type(comparison.right, types)
    if left is None or right is None:
        yield from _check_null_assignment(comparison, left, right, types)
    elif not _is_comparable(comparison, left, right):
        yield catalogue.NOT_COMPARABLE.at(
            comparison.span, operator=comparison.operator, left=left, right=right
        )


def _check_null_assignment(
    comparison: Comparison, left: str | None, right: str | None, types: Types
) -> Iterator[Diagnostic]:
    """`X = null` binds X to nothing that has a type."""
    for side, other in ((comparison.left, right), (comparison.right, left)):
        if isinstance(side, Variable) and side.name not in types and other == "null":
            yield catalogue.VARIABLE_TYPE_UNKNOWN.at(side.span, name=side.name)


def _is_comparable(comparison: Comparison, left: str, right: str) -> bool:
    operator = comparison.operator
    if operator in ("contains", "starts_with", "ends_with"):
        return left == right == "str"
    if "null" in (left, right):
        return operator in ("=", "!=")
    met = comparison_type(comparison.left, left, comparison.right, right)
    return met is not None and (operator in ("=", "!=") or met in ORDERED)


def _check_head(rule: Rule, relations: Relations, types: Types) -> Iterator[Diagnostic]:
    relation = relations[rule.head.predicate]
    nullable = nullable_variables(rule.body, relations)
    yield from _check_constants(rule.head, relation)
    for column, term in zip(relation.columns, rule.head.arguments, strict=True):
        yield from _check_operations(term, types)
        if isinstance(term, Aggregate):
            yield from _check_aggregate(term, types)
        if isinstance(term, Constant):
            continue
        type_ = term_type(term, types)
        if type_ is not None and column.type is not None and type_ != column.type:
            yield _head_conflict(term, type_, column, relation)
        elif term_is_nullable(term, nullable) and not column.nullable:
            yield _null_misfit(term, column, relation)


def _head_conflict(term: Term, type_: str, column: Column, relation: Relation) -> Diagnostic:
    others = (
        (
            Label(
                relation.span,
                f"`{relation.name}` {'declared' if relation.is_declared else 'first defined'} here",
            ),
        )
        if relation.span is not None
        else ()
    )
    hint = None
    if widened_type(type_, str(column.type)) == column.type:
        hint = f"convert it, as in `{column.type}(…)`"
    return catalogue.TYPE_CONFLICT.at(
        term.span,
        *others,
        label=type_,
        name=f"{relation.name}.{column.name}",
        first=type_,
        second=column.type,
        hint=hint,
    )


def _check_aggregate(term: Aggregate, types: Types) -> Iterator[Diagnostic]:
    if term.argument is None or term.function == "count":
        return
    type_ = expression_type(term.argument, types)
    if type_ is not None and type_ not in AGGREGATE_OPERANDS[term.function]:
        yield catalogue.AGGREGATE_TYPE.at(term.span, function=term.function, type=type_)


def check_types_known(relations: Relations) -> Iterator[Diagnostic]:
    """Every column has a type; asked only where nothing else is wrong, which may be the cause."""
    for relation in relations.values():
        for column in relation.columns:
            if column.type is None:
                columns = ", ".join(f"{c.name}: {c.type or 'int'}" for c in relation.columns)
                yield catalogue.TYPE_UNKNOWN.at(
                    relation.span,
                    column=f"`{column.name}`",
                    name=relation.name,
                    hint=f"declare it, as in `view {relation.name}({columns}).`",
                )
