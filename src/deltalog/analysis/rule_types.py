"""Types and nullability of the variables and terms inside one rule.

    path(X, Y), Z = X + 1       X: int, Y: int, Z: int, given path(int, int)

A variable may be null only if every atom it occurs in allows it and no comparison excludes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from deltalog.analysis.relation import Relations
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Operation,
    Term,
    Value,
    Variable,
)
from deltalog.language.functions import (
    FUNCTIONS,
    GENERATED,
    aggregate_result,
    find_signature,
    widened_type,
)
from deltalog.language.values import VALUE_ERRORS, canonical_value
from deltalog.language.walk import atoms_of, distribute_disjunctions, literals_of, variable_names

BRANCHES_MAX = 1_000
"""More combinations of branches than this are refused in a body."""
VariableTypes = dict[str, str]


def fitting_atoms(body: tuple[Literal, ...], found: Relations) -> Iterator[tuple[Atom, bool]]:
    """The atoms whose relation is known and has as many columns as they have arguments."""
    for atom, positive in atoms_of(body):
        relation = found.get(atom.predicate)
        if relation is not None and relation.arity == len(atom.arguments):
            yield atom, positive


def variable_types(body: tuple[Literal, ...], found: Relations) -> VariableTypes:
    """The type of each variable as far as the body tells it: what binds it comes first."""
    types: VariableTypes = {}
    fitting = list(fitting_atoms(body, found))
    _take_types(types, (atom for atom, positive in fitting if positive), found)
    firm = set(types)
    equations = [c for c in literals_of(body) if isinstance(c, Comparison) and c.operator == "="]
    changed = True
    while changed:
        changed = False
        for equation in equations:
            for side, other in (
                (equation.left, equation.right),
                (equation.right, equation.left),
            ):
                if not isinstance(side, Variable) or side.name in firm:
                    continue
                type_ = expression_type(other, types)
                known = types.get(side.name)
                if type_ is None or type_ in (known, "null"):
                    continue
                wide = type_ if known is None else widened_type(known, type_)
                if wide is not None and wide != known:
                    types[side.name] = wide
                    changed = True
    _take_types(types, (atom for atom, positive in fitting if not positive), found)
    return types


def _take_types(types: VariableTypes, fitting: Iterable[Atom], found: Relations) -> None:
    for atom in fitting:
        for column, term in zip(found[atom.predicate].columns, atom.arguments, strict=True):
            if isinstance(term, Variable) and column.type is not None:
                types.setdefault(term.name, column.type)


def term_type(term: Term, types: Mapping[str, str]) -> str | None:
    """The type of a head term; None when unknown, or null for the constant."""
    if not isinstance(term, Aggregate):
        type_ = expression_type(term, types)
        return None if type_ == "null" else type_
    operand = None if term.argument is None else expression_type(term.argument, types)
    if term.function != "count" and operand is None:
        return None
    return aggregate_result(term.function, operand)


def expression_type(expression: Expression, types: Mapping[str, str]) -> str | None:
    match expression:
        case Variable(name=name):
            return types.get(name)
        case Constant(type=type_):
            return type_
        case Operation(function=function, arguments=arguments):
            operands = operand_types(arguments, types)
            if function not in FUNCTIONS.keys() | GENERATED.keys() or None in operands:
                return None
            found = find_signature(function, tuple(str(operand) for operand in operands))
            return None if found is None else found.result


def operand_types(
    arguments: tuple[Expression, ...], types: Mapping[str, str]
) -> tuple[str | None, ...]:
    """The types of operands that stand side by side: a number literal beside a decimal is one."""
    found = tuple(expression_type(argument, types) for argument in arguments)
    if "decimal" not in found:
        return found
    return tuple(
        "decimal"
        if isinstance(argument, Constant)
        and type_ in ("int", "float")
        and constant_fits(argument, "decimal")
        else type_
        for argument, type_ in zip(arguments, found, strict=True)
    )


def constant_fits(term: Constant, type_: str) -> bool:
    """Whether a literal can stand for a value of the type: numbers may widen, nothing else."""
    if term.type == type_:
        return True
    if type_ in ("float", "decimal") and term.type in ("int", "float"):
        try:
            literal_value(term, type_)
        except VALUE_ERRORS:
            return False
        return True
    return False


def literal_value(term: Constant, type_: str) -> Value:
    """The value of a number literal as another type; a decimal is taken digit for digit."""
    is_written = term.span is not None and not term.span.text.startswith("$")  # a parameter is not
    if type_ == "decimal" and term.type == "float" and term.span is not None and is_written:
        return canonical_value(Decimal(term.span.text.replace(" ", "")), type_)
    return canonical_value(term.value, type_)


def comparison_type(
    left: Expression, left_type: str, right: Expression, right_type: str
) -> str | None:
    """The type two sides are compared in: a number literal takes the other side's type."""
    for literal, type_ in ((left, right_type), (right, left_type)):
        if isinstance(literal, Constant) and constant_fits(literal, type_):
            return type_
    return widened_type(left_type, right_type)


def nullable_variables(body: tuple[Literal, ...], found: Relations) -> set[str]:
    """Variables that may be null in some way through the disjunctions of a body."""
    if not _has_nulls(body, found):
        return set()
    branches = itertools.islice(distribute_disjunctions(body), BRANCHES_MAX)
    return set().union(*(_nullable_in(branch, found) for branch in branches))


def _has_nulls(body: tuple[Literal, ...], found: Relations) -> bool:
    """Whether anything in a body can be null at all; mostly nothing can."""
    for literal in literals_of(body):
        match literal:
            case Comparison(left=Constant(type="null")) | Comparison(right=Constant(type="null")):
                return True
            case Atom(predicate=name) if name in found and found[name].is_nullable:
                return True
    return False


def _nullable_in(body: tuple[Literal, ...], found: Relations) -> set[str]:
    """Without disjunctions: every atom allows it and nothing tests it away."""
    allowed: dict[str, bool] = {}
    for atom, positive in fitting_atoms(body, found):
        for column, term in zip(found[atom.predicate].columns, atom.arguments, strict=True):
            if positive and isinstance(term, Variable):
                allowed[term.name] = allowed.get(term.name, True) and column.nullable
    nullable = {name for name, may_be in allowed.items() if may_be}
    comparisons = [c for c in literals_of(body) if isinstance(c, Comparison)]
    for comparison in comparisons:
        nullable -= _tested_variables(comparison)
    return nullable | _nullable_by_equation(comparisons, nullable, set(allowed))


def _tested_variables(comparison: Comparison) -> set[str]:
    """Variables that are not null where the comparison holds."""
    sides = (comparison.left, comparison.right)
    used = {n for side in sides if isinstance(side, Operation) for n in variable_names(side)}
    plain = {side.name for side in sides if isinstance(side, Variable)}
    against_null = any(isinstance(side, Constant) and side.type == "null" for side in sides)
    if comparison.operator == "!=":
        return used | plain if against_null else used
    if comparison.operator == "=":
        definite = any(
            isinstance(side, Operation) or (isinstance(side, Constant) and side.type != "null")
            for side in sides
        )
        return used | plain if definite else used
    return used | plain


def _nullable_by_equation(
    comparisons: list[Comparison], nullable: set[str], bound: set[str]
) -> set[str]:
    """Variables set by `=` from something that may be null."""
    equated: set[str] = set()
    changed = True
    while changed:
        changed = False
        for comparison in comparisons:
            if comparison.operator != "=":
                continue
            for side, other in (
                (comparison.left, comparison.right),
                (comparison.right, comparison.left),
            ):
                if (
                    isinstance(side, Variable)
                    and side.name not in bound | equated
                    and term_is_nullable(other, nullable | equated)
                ):
                    equated.add(side.name)
                    changed = True
    return equated


def term_is_nullable(term: Term, nullable: set[str]) -> bool:
    match term:
        case Variable(name=name):
            return name in nullable
        case Constant(type=type_):
            return type_ == "null"
        case Aggregate(function=function, argument=argument):
            return (
                function != "count"
                and argument is not None
                and term_is_nullable(argument, nullable)
            )
        case _:
            return False
