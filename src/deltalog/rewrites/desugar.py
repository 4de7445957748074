"""From what is pleasant to write to what is simple to evaluate.

    far(X + 1) :- distance(X, D), (D > 9 ; red(X)).
    →  far(V1) :- distance(X, D), D > 9.0, V1 = X + 1.
       far(V1) :- distance(X, D), red(X), V1 = X + 1.

Before: a checked program. After: arguments of atoms are variables or constants, aggregates have a
variable or nothing inside, bodies hold no disjunction, constants have the type of their column,
every operation and comparison carries the type it works in, and conversions are written out.
Correct because each step is an equivalence: naming a value, distributing `or` over rules, widening
an int. Under an aggregate the union of the branches becomes a predicate of its own, since two rules
would aggregate twice; and an aggregate that shares its head with other rules gets a name of its
own, so that later passes see it alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from deltalog.analysis.binding import bound_variables
from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.rule_types import (
    VariableTypes,
    comparison_type,
    literal_value,
    operand_types,
    variable_types,
)
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Program,
    Query,
    Row,
    Rule,
    Term,
    Variable,
)
from deltalog.language.functions import find_signature
from deltalog.language.walk import (
    answer_names,
    distribute_disjunctions,
    fresh_names,
    rule_names,
    substitute_atom,
    substitute_literal,
    variable_names,
    variables_of,
)
from deltalog.rewrites.names import ANSWER, bindings_name, total_name
from deltalog.source import Origin


def desugar(program: Program, relations: Relations) -> Program:
    rules: list[Rule] = []
    views = {name for name, relation in relations.items() if relation.kind == "view"}
    facts = tuple(typed_atom(fact, relations[fact.predicate]) for fact in program.facts)
    shared = _shared_heads(program)
    for number, said in enumerate(program.rules, start=1):
        rule = said if said.message is None else replace(said, message=None)
        if rule.is_aggregate and rule.head.predicate in shared:
            head = typed_atom(rule.head, relations[rule.head.predicate])
            rule, union = _separate_aggregate(replace(rule, head=head), number)
            rules.append(union)
        rules += _desugar_rule(rule, number, relations)
    constant = (Rule(fact, (), Origin(fact.span)) for fact in facts if fact.predicate in views)
    base = tuple(fact for fact in facts if fact.predicate not in views)
    return Program(program.declarations, (*rules, *constant), base, program.queries)


def fact_rows(program: Program) -> list[tuple[str, Row]]:
    """The facts of a desugared program as rows."""
    return [
        (fact.predicate, tuple(t.value for t in fact.arguments if isinstance(t, Constant)))
        for fact in program.facts
    ]


def typed_row(fact: Atom, relation: Relation) -> Row:
    """The values of a fact, each in the type of its column."""
    typed = typed_atom(fact, relation)
    return tuple(term.value for term in typed.arguments if isinstance(term, Constant))


def _shared_heads(program: Program) -> set[str]:
    """Predicates that more than one rule or fact defines."""
    heads = [rule.head.predicate for rule in program.rules]
    heads += {fact.predicate for fact in program.facts}
    return {name for name, count in Counter(heads).items() if count > 1}


def _separate_aggregate(rule: Rule, number: int) -> tuple[Rule, Rule]:
    """The aggregate under a name of its own, and the rule that brings it back to its head."""
    row = tuple(Variable(f"T{i + 1}") for i in range(len(rule.head.arguments)))
    name = total_name(rule.head.predicate, number)
    origin = Origin.made_by("desugar", rule.origin)
    union = Rule(Atom(rule.head.predicate, row), (Atom(name, row),), origin)
    return replace(rule, head=replace(rule.head, predicate=name)), union


def flat_rules(rule: Rule, relations: Relations) -> tuple[Rule, ...]:
    """One rule by itself: a rule per branch; of an aggregate the branches come first."""
    return tuple(_desugar_rule(replace(rule, message=None), 0, relations))


def desugar_query(query: Query, relations: Relations) -> tuple[Rule, ...]:
    """The query as rules for the predicate `answer__`, whose arguments are its named variables."""
    head = Atom(ANSWER, tuple(map(Variable, answer_names(query))), query.span)
    return tuple(_desugar_rule(Rule(head, query.body, Origin(query.span)), 0, relations))


def typed_atom(fact: Atom, relation: Relation) -> Atom:
    """The atom with its constants in the types of their columns."""
    arguments = tuple(
        _typed_constant(term, column.type)
        for term, column in zip(fact.arguments, relation.columns, strict=True)
    )
    return replace(fact, arguments=arguments)


def _typed_constant(term: Term, type_: str | None) -> Term:
    if isinstance(term, Constant) and type_ is not None and term.type not in (type_, "null"):
        return replace(term, value=literal_value(term, type_), type=type_)
    return term


def _desugar_rule(rule: Rule, number: int, relations: Relations) -> Iterator[Rule]:
    types = variable_types(rule.body, relations)
    if rule.is_aggregate and any(isinstance(literal, Disjunction) for literal in rule.body):
        union = Atom(bindings_name(rule.head.predicate, number), _binding_variables(rule.body))
        origin = Origin.made_by("desugar", rule.origin)
        for body in distribute_disjunctions(rule.body):
            yield _flatten_rule(Rule(union, body, origin), types, relations)
        rule = replace(rule, body=(union,))
    for body in distribute_disjunctions(rule.body):
        yield _flatten_rule(replace(rule, body=body), types, relations)


def _binding_variables(body: tuple[Literal, ...]) -> tuple[Variable, ...]:
    """All variables that have a value in every branch, wildcards of positive atoms included."""
    bound = bound_variables(body)
    return tuple(Variable(name) for name in variable_names(*body) if name in bound)


# --- one rule without disjunctions --------------------------------------------------------------


def _flatten_rule(rule: Rule, types: VariableTypes, relations: Relations) -> Rule:
    rule = _with_named_wildcards(rule)
    fresh = _fresh_variables(rule)
    body: list[Literal] = []
    for literal in rule.body:
        match literal:
            case Atom():
                equations, atom = _flat_atom(literal, types, relations, fresh)
                body += [*equations, atom]
            case Negation():
                equations, atom = _flat_atom(literal.atom, types, relations, fresh)
                body += [*equations, Negation(atom, literal.span)]
            case Comparison():
                body.append(_typed_comparison(literal, types))
            case Disjunction():
                raise AssertionError("disjunctions have been distributed")
    equations, head = _flat_atom(rule.head, types, relations, fresh)
    changed = Rule(head, (*body, *equations), rule.origin, rule.leads)
    return rule if changed == rule else changed


def _fresh_variables(rule: Rule) -> Iterator[Variable]:
    """Names are looked for only if one is wanted."""
    for name in fresh_names(set(rule_names(rule)), "V"):
        yield Variable(name)


def _with_named_wildcards(rule: Rule) -> Rule:
    """A `_` in a positive atom is a variable like any other; only in `not` it means anything."""
    bound = (x for x in rule.body if isinstance(x, Atom))
    wildcards = dict.fromkeys(v.name for atom in bound for v in variables_of(atom) if v.is_wildcard)
    if not wildcards:
        return rule
    named = dict(zip(wildcards, fresh_names(set(rule_names(rule)), "W"), strict=False))

    def rename(variable: Variable) -> Variable:
        return replace(variable, name=named.get(variable.name, variable.name))

    body = tuple(substitute_literal(literal, rename) for literal in rule.body)
    return replace(rule, head=substitute_atom(rule.head, rename), body=body)


def _flat_atom(
    atom: Atom, types: VariableTypes, relations: Relations, fresh: Iterator[Variable]
) -> tuple[list[Literal], Atom]:
    """The atom with expressions named, and the equations that name them."""
    relation = relations.get(atom.predicate)
    columns = relation.columns if relation else (Column("_"),) * len(atom.arguments)
    equations: list[Literal] = []
    arguments: list[Term] = []
    for term, column in zip(atom.arguments, columns, strict=True):
        if isinstance(term, Operation):
            equation, variable = _name_expression(typed_expression(term, column.type, types), fresh)
            equations.append(equation)
            arguments.append(variable)
        elif isinstance(term, Aggregate):
            more, aggregate = _flat_aggregate(term, types, fresh)
            equations += more
            arguments.append(aggregate)
        else:
            arguments.append(_typed_constant(term, column.type))
    return equations, Atom(atom.predicate, tuple(arguments), atom.span)


def _name_expression(value: Expression, fresh: Iterator[Variable]) -> tuple[Literal, Variable]:
    variable = next(fresh)
    return Comparison("=", variable, value, None, getattr(value, "span", None)), variable


def _flat_aggregate(
    term: Aggregate, types: VariableTypes, fresh: Iterator[Variable]
) -> tuple[list[Literal], Aggregate]:
    if term.argument is None:
        return [], term
    (type_,) = operand_types((term.argument,), types)
    if isinstance(term.argument, Variable):
        return [], replace(term, type=type_)
    equation, variable = _name_expression(typed_expression(term.argument, None, types), fresh)
    return [equation], replace(term, argument=variable, type=type_)


def _typed_comparison(comparison: Comparison, types: VariableTypes) -> Comparison:
    left_type, right_type = operand_types((comparison.left, comparison.right), types)
    if "null" in (left_type, right_type):
        met: str | None = left_type if right_type == "null" else right_type
    else:
        met = comparison_type(comparison.left, str(left_type), comparison.right, str(right_type))
    return replace(
        comparison,
        left=typed_expression(comparison.left, met, types),
        right=typed_expression(comparison.right, met, types),
        type=met,
    )


def typed_expression(
    expression: Expression, wanted: str | None, types: VariableTypes
) -> Expression:
    """The expression with types on its operations, converted to `wanted` where that differs."""
    match expression:
        case Constant():
            constant = _typed_constant(expression, wanted)
            assert isinstance(constant, Constant)
            return constant
        case Variable(name=name):
            given = types.get(name)
            result: Expression = expression
        case Operation(function=function, arguments=arguments):
            operands = operand_types(arguments, types)
            found = find_signature(function, tuple(str(operand) for operand in operands))
            assert found is not None, f"unchecked operation {function} on {operands}"
            given = found.result
            result = replace(
                expression,
                arguments=tuple(
                    typed_expression(argument, type_, types)
                    for argument, type_ in zip(arguments, found.operands, strict=True)
                ),
                type=",".join(dict.fromkeys(found.operands)),
            )
    if wanted is None or given is None or given == wanted or wanted == "null":
        return result
    return Operation(wanted, (result,), given, expression.span)
