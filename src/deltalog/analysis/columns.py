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

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Literal as OneOf
from typing import TypeAlias

from deltalog.analysis.dependencies import dependencies
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Expression,
    Literal,
    Operation,
    Program,
    Rule,
    Term,
    Value,
    Variable,
)
from deltalog.language.functions import (
    FUNCTIONS,
    GENERATED,
    aggregate_result,
    signature,
    widened,
)
from deltalog.language.values import VALUE_ERRORS, canonical
from deltalog.language.walk import atoms, distributed, literals, names
from deltalog.source import Span

Storage: TypeAlias = OneOf["materialized", "virtual"]


@dataclass(frozen=True)
class Relation:
    """A base relation or view as the rest of the system sees it."""

    name: str
    kind: OneOf["base", "view"]
    columns: tuple[Column, ...]
    storage: Storage = "materialized"
    is_declared: bool = True  # its columns were, that is; otherwise they are inferred
    inferred: frozenset[int] = frozenset()
    span: Span | None = field(default=None, compare=False, repr=False)

    @cached_property
    def arity(self) -> int:
        return len(self.columns)

    @cached_property
    def is_nullable(self) -> bool:
        """Whether some column is."""
        return any(column.nullable for column in self.columns)

    @cached_property
    def types(self) -> tuple[str | None, ...]:
        return tuple(column.type for column in self.columns)

    @cached_property
    def key(self) -> tuple[int, ...]:
        """Positions of the key columns; empty when the relation has no key."""
        return tuple(i for i, column in enumerate(self.columns) if column.key)


Relations = Mapping[str, Relation]
BRANCHES_MAX = 1_000
"""More combinations of branches than this are refused in a body."""
VariableTypes = dict[str, str]


def relations(program: Program) -> Relations:
    """Every relation of the program; a type that cannot be inferred is None."""
    found = _declared(program)
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
    _infer(found, rules)
    return found


def _lowest_first(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """In this order types are known when they are needed, and one pass settles nearly all."""
    component_of = dependencies(rules).component_of()
    return tuple(sorted(rules, key=lambda rule: component_of[rule.head.predicate]))


def generated_relations(rules: Iterable[Rule], known: Relations) -> Relations:
    """The relations that a rewrite's rules define, typed from those already known."""
    rules = tuple(rules)
    found = dict(known)
    for rule in rules:
        if rule.head.predicate not in known:
            found[rule.head.predicate] = undeclared_view(rule.head, "virtual")
    made = _lowest_first(tuple(rule for rule in rules if rule.head.predicate not in known))
    _infer(found, made)
    return {rule.head.predicate: found[rule.head.predicate] for rule in made}


def _declared(program: Program) -> dict[str, Relation]:
    heads = {rule.head.predicate: rule.head for rule in reversed(program.rules)}
    heads |= {fact.predicate: fact for fact in program.facts if fact.predicate not in heads}
    found: dict[str, Relation] = {}
    for declaration in program.declarations:
        name = declaration.predicate
        if name in found:
            continue
        columns = declaration.columns
        if columns is None:
            columns = _unnamed(len(heads[name].arguments) if name in heads else 0)
        storage: Storage = declaration.storage or "materialized"
        is_declared = declaration.columns is not None
        inferred = frozenset(i for i, column in enumerate(columns) if column.type is None)
        found[name] = Relation(
            name, declaration.kind, columns, storage, is_declared, inferred, declaration.span
        )
    return found


def _unnamed(arity: int) -> tuple[Column, ...]:
    return tuple(Column(f"c{i + 1}") for i in range(arity))


def undeclared_view(head: Atom, storage: Storage) -> Relation:
    columns = _unnamed(len(head.arguments))
    named = tuple(
        Column(term.name.lower()) if isinstance(term, Variable) and not term.is_wildcard else column
        for term, column in zip(head.arguments, columns, strict=True)
    )
    distinct = len({column.name for column in named}) == len(named)
    chosen = named if distinct else columns
    inferred = frozenset(range(len(chosen)))
    return Relation(head.predicate, "view", chosen, storage, False, inferred, head.span)


def _from_fact(atom: Atom, known: Relation | None) -> Relation:
    """An undeclared relation that has facts and no rules is a base relation typed by its facts."""
    if known is None:
        known = Relation(
            atom.predicate, "base", _unnamed(len(atom.arguments)), is_declared=False, span=atom.span
        )
    if known.arity != len(atom.arguments):
        return known
    columns = tuple(
        _with_constant(column, term)
        for column, term in zip(known.columns, atom.arguments, strict=True)
    )
    return _replaced(known, columns)


def _with_constant(column: Column, term: Term) -> Column:
    if not isinstance(term, Constant):
        return column
    if term.type == "null":
        return Column(column.name, column.type, True)
    if column.type is None or (column.type == "int" and term.type in ("float", "decimal")):
        return Column(column.name, term.type, column.nullable)
    return column


def _replaced(relation: Relation, columns: tuple[Column, ...]) -> Relation:
    if columns == relation.columns:
        return relation
    return replace(relation, columns=columns)


_Step: TypeAlias = Callable[[Rule, Relations], tuple[Column, ...]]


def _infer(found: dict[str, Relation], rules: tuple[Rule, ...]) -> None:
    """Types and nullability of what the rules define."""
    fitting = [r for r in rules if found[r.head.predicate].arity == len(r.head.arguments)]
    read = [{atom.predicate for atom, _ in atoms(rule.body)} for rule in fitting]
    for step in (_typed_firmly, _typed_fully, _nullable):
        _settle(found, fitting, read, step)


def _settle(
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
    return _typed(rule, found, lambda term: not _is_int_literal(term))


def _typed_fully(rule: Rule, found: Relations) -> tuple[Column, ...]:
    return _typed(rule, found, lambda term: True)


def _is_int_literal(term: Term) -> bool:
    return isinstance(term, Constant) and term.type == "int"


def _typed(rule: Rule, found: Relations, counts: Callable[[Term], bool]) -> tuple[Column, ...]:
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


def _nullable(rule: Rule, found: Relations) -> tuple[Column, ...]:
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


# --- inside one rule ----------------------------------------------------------------------------


def fitting_atoms(body: tuple[Literal, ...], found: Relations) -> Iterator[tuple[Atom, bool]]:
    """The atoms whose relation is known and has as many columns as they have arguments."""
    for atom, positive in atoms(body):
        relation = found.get(atom.predicate)
        if relation is not None and relation.arity == len(atom.arguments):
            yield atom, positive


def variable_types(body: tuple[Literal, ...], found: Relations) -> VariableTypes:
    """The type of each variable as far as the body tells it: what binds it comes first."""
    types: VariableTypes = {}
    fitting = list(fitting_atoms(body, found))
    _take_types(types, (atom for atom, positive in fitting if positive), found)
    firm = set(types)
    equations = [c for c in literals(body) if isinstance(c, Comparison) and c.operator == "="]
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
                wide = type_ if known is None else widened(known, type_)
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
            found = signature(function, tuple(str(operand) for operand in operands))
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
        return canonical(Decimal(term.span.text.replace(" ", "")), type_)
    return canonical(term.value, type_)


def comparison_type(
    left: Expression, left_type: str, right: Expression, right_type: str
) -> str | None:
    """The type two sides are compared in: a number literal takes the other side's type."""
    for literal, type_ in ((left, right_type), (right, left_type)):
        if isinstance(literal, Constant) and constant_fits(literal, type_):
            return type_
    return widened(left_type, right_type)


def nullable_variables(body: tuple[Literal, ...], found: Relations) -> set[str]:
    """Variables that may be null in some way through the disjunctions of a body."""
    if not _has_nulls(body, found):
        return set()
    branches = itertools.islice(distributed(body), BRANCHES_MAX)
    return set().union(*(_nullable_in(branch, found) for branch in branches))


def _has_nulls(body: tuple[Literal, ...], found: Relations) -> bool:
    """Whether anything in a body can be null at all; mostly nothing can."""
    for literal in literals(body):
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
    comparisons = [c for c in literals(body) if isinstance(c, Comparison)]
    for comparison in comparisons:
        nullable -= _tested(comparison)
    return nullable | _equated(comparisons, nullable, set(allowed))


def _tested(comparison: Comparison) -> set[str]:
    """Variables that are not null where the comparison holds."""
    sides = (comparison.left, comparison.right)
    used = {n for side in sides if isinstance(side, Operation) for n in names(side)}
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


def _equated(comparisons: list[Comparison], nullable: set[str], bound: set[str]) -> set[str]:
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
