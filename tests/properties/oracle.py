"""The meaning of a program according to clingo, which shares no code and no author with us.

A stratified program has one stable model, so an answer-set solver computes what our engines must:

    v(X, sum(Y)) :- b(X, Y), (c(Y) ; Y > 2).

    bindings__0(V0,V1,V0,V1) :- b(V0,V1), c(V1).
    bindings__0(V0,V1,V0,V1) :- b(V0,V1), V1 > 2.
    v(G0,A0) :- bindings__0(G0,_,_,_), A0 = #sum{ E0,W0,W1 : bindings__0(G0,E0,W0,W1) }.

The bindings hold the group terms, the arguments of the aggregates, and all variables.
Disjunctions are multiplied out. An aggregate ranges over the distinct bindings of all variables
except wildcards that occur only under `not`. clingo has no fractions: an average leaves clingo as
sum and count and is divided here, so no rule may use a view with averages.

clingo's `/` truncates and its `\\` takes the sign of the dividend, as ours do, and an undefined
operation makes the rule instance vanish (seen with clingo 5.8.2, verified at first use). Its
integers have 32 bits and wrap, so callers keep values small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import clingo

from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Literal,
    Negation,
    Operation,
    Program,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import atoms_of, variable_names, variables_of

Model = dict[str, set[tuple[int | float, ...]]]
Conjunction = tuple[Literal, ...]


def clingo_model(program: Program, facts: Mapping[str, set[tuple[int, ...]]]) -> Model:
    """Every relation of the program, base relations and views, also those without rows."""
    assert _divides_as_we_do()
    translation = _translation(program)
    given = [_ground(name, row) for name, rows in facts.items() for row in rows]
    model = _solved("\n".join([*translation.lines, *given]))
    result: Model = {name: set() for name in _predicates(program, facts)}
    for name in result:
        result[name] |= model.get(name, set())
    for average in translation.averages:
        result[average.predicate] |= {average.row(row) for row in model.get(average.source, ())}
    return result


def asp_text(program: Program) -> str:
    """What clingo is given, for looking at when the two disagree."""
    return "\n".join(_translation(program).lines)


@dataclass(frozen=True)
class _Average:
    """A rule with averages; `places` says for each column of its head where `source` has it."""

    predicate: str
    source: str
    places: tuple[int | tuple[int, int], ...]

    def row(self, row: tuple[int | float, ...]) -> tuple[int | float, ...]:
        return tuple(
            row[place] if isinstance(place, int) else row[place[0]] / row[place[1]]
            for place in self.places
        )


@dataclass(frozen=True)
class _Translation:
    lines: list[str]
    averages: list[_Average]


def _translation(program: Program) -> _Translation:
    _refuse_used_averages(program)
    result = _Translation([f"{_atom(fact, {})}." for fact in program.facts], [])
    for number, rule in enumerate(program.rules):
        if rule.is_aggregate:
            _translate_aggregate(rule, number, result)
        else:
            result.lines.extend(_plain(rule))
    return result


def _refuse_used_averages(program: Program) -> None:
    used = {atom.predicate for rule in program.rules for atom, _ in atoms_of(rule.body)}
    for rule in program.rules:
        terms = rule.head.arguments
        has_average = any(isinstance(t, Aggregate) and t.function == "avg" for t in terms)
        if has_average and rule.head.predicate in used:
            raise ValueError(f"clingo has no averages, but a body uses {rule.head.predicate}")


def _predicates(program: Program, facts: Mapping[str, set[tuple[int, ...]]]) -> dict[str, None]:
    declared = [declaration.predicate for declaration in program.declarations]
    heads = [rule.head.predicate for rule in program.rules]
    return dict.fromkeys([*declared, *facts, *(fact.predicate for fact in program.facts), *heads])


# --- clingo -------------------------------------------------------------------------------------


def _solved(text: str) -> dict[str, set[tuple[int, ...]]]:
    control = clingo.Control(["--warn=none"])
    control.add("base", [], text)
    control.ground([("base", [])])
    models: list[dict[str, set[tuple[int, ...]]]] = []
    with control.solve(yield_=True) as handle:
        for model in handle:
            models.append({})
            for symbol in model.symbols(atoms=True):
                row = tuple(argument.number for argument in symbol.arguments)
                models[-1].setdefault(symbol.name, set()).add(row)
    assert len(models) == 1, f"{len(models)} stable models: the program is not stratified"
    return models[0]


@cache
def _divides_as_we_do() -> bool:
    model = _solved("n(-7;7). d(-2;0;2). p(N,D,N/D,N\\D) :- n(N), d(D).")
    return model["p"] == {(-7, -2, 3, -1), (-7, 2, -3, -1), (7, -2, -3, 1), (7, 2, 3, 1)}


def _ground(name: str, row: tuple[int, ...]) -> str:
    return f"{_call(name, [str(value) for value in row])}."


def _call(name: str, arguments: list[str]) -> str:
    return f"{name}({','.join(arguments)})" if arguments else name


# --- rules --------------------------------------------------------------------------------------


def _plain(rule: Rule) -> Iterator[str]:
    for body in _conjunctions(rule.body):
        written = _names(rule.head, body)
        yield _rule(_atom(rule.head, written), body, written)


def _rule(head: str, body: Conjunction, written: dict[str, str]) -> str:
    return (
        f"{head} :- {', '.join(_literal(part, written) for part in body)}." if body else f"{head}."
    )


def _translate_aggregate(rule: Rule, number: int, into: _Translation) -> None:
    terms = rule.head.arguments
    groups = [term for term in terms if not isinstance(term, Aggregate)]
    aggregates = [term for term in terms if isinstance(term, Aggregate)]
    bindings = f"bindings__{number}"
    ranged = _ranged_over(rule)
    for body in _conjunctions(rule.body):
        written = _names(rule.head, body)
        columns = [_term(term, written) for term in groups]
        columns += [_term(_argument(aggregate), written) for aggregate in aggregates]
        columns += [written[name] for name in ranged]
        into.lines.append(_rule(_call(bindings, columns), body, written))
    summary = _Summary(bindings, len(groups), aggregates, len(ranged))
    if any(aggregate.function == "avg" for aggregate in aggregates):
        source = f"averages__{number}"
        into.averages.append(_Average(rule.head.predicate, source, summary.places(terms)))
        into.lines.append(summary.rule(source, summary.all_columns()))
    else:
        group, value = iter(summary.group_columns), iter(summary.value_columns())
        columns = [next(value if isinstance(term, Aggregate) else group) for term in terms]
        into.lines.append(summary.rule(rule.head.predicate, columns))


def _ranged_over(rule: Rule) -> list[str]:
    """The variables of the body, without wildcards that occur only in negated atoms."""
    ranged: dict[str, None] = {}
    for body in _conjunctions(rule.body):
        for literal in body:
            negated = isinstance(literal, Negation)
            found = [v.name for v in variables_of(literal) if not (negated and v.is_wildcard)]
            ranged.update(dict.fromkeys(found))
    return list(ranged)


def _argument(aggregate: Aggregate) -> Expression:
    return Constant(1, "int") if aggregate.argument is None else aggregate.argument


@dataclass(frozen=True)
class _Summary:
    """The rule from the bindings to the groups; an average takes two columns, sum and count."""

    bindings: str
    groups: int
    aggregates: list[Aggregate]
    variables: int

    @property
    def group_columns(self) -> list[str]:
        return [f"G{n}" for n in range(self.groups)]

    def value_columns(self) -> list[str]:
        return [f"A{n}" for n in range(len(self.aggregates))]

    def all_columns(self) -> list[str]:
        counts = [f"C{n}" for n in range(len(self.aggregates))]
        return [*self.group_columns, *self.value_columns(), *counts]

    def places(self, terms: tuple[Term, ...]) -> tuple[int | tuple[int, int], ...]:
        places: list[int | tuple[int, int]] = []
        group, value = iter(range(self.groups)), iter(range(len(self.aggregates)))
        for term in terms:
            if not isinstance(term, Aggregate):
                places.append(next(group))
                continue
            place = self.groups + next(value)
            is_average = term.function == "avg"
            places.append((place, place + len(self.aggregates)) if is_average else place)
        return tuple(places)

    def rule(self, head: str, columns: list[str]) -> str:
        blanks = ["_"] * (len(self.aggregates) + self.variables)
        body = [_call(self.bindings, [*self.group_columns, *blanks])]
        for number, aggregate in enumerate(self.aggregates):
            function = {"count": "sum", "avg": "sum"}.get(aggregate.function, aggregate.function)
            body.append(f"A{number} = #{function}{{ {self.element(f'E{number}')} }}")
            if f"C{number}" in columns:
                body.append(f"C{number} = #sum{{ {self.element('1')} }}")
        return f"{_call(head, columns)} :- {', '.join(body)}."

    def element(self, weight: str) -> str:
        values = [f"E{n}" for n in range(len(self.aggregates))]
        every = [f"W{n}" for n in range(self.variables)]
        condition = _call(self.bindings, [*self.group_columns, *values, *every])
        return f"{','.join([weight, *every])} : {condition}"


# --- bodies -------------------------------------------------------------------------------------


def _conjunctions(body: Conjunction) -> Iterator[Conjunction]:
    """The body with its disjunctions multiplied out."""
    for choice in product(*(_choices(literal) for literal in body)):
        yield tuple(literal for part in choice for literal in part)


def _choices(literal: Literal) -> list[Conjunction]:
    if not isinstance(literal, Disjunction):
        return [(literal,)]
    return [flat for branch in literal.branches for flat in _conjunctions(branch)]


def _names(head: Atom, body: Conjunction) -> dict[str, str]:
    """clingo's name for each variable: `_` for what only `not` asks about, else `V0`, `V1`, …"""
    written = {name: f"V{n}" for n, name in enumerate(variable_names(head, *body))}
    asserted = set(variable_names(head, *(part for part in body if not isinstance(part, Negation))))
    for literal in body:
        for variable in variables_of(literal):
            if variable.is_wildcard and variable.name not in asserted:
                written[variable.name] = "_"
    return written


def _literal(literal: Literal, written: dict[str, str]) -> str:
    match literal:
        case Atom():
            return _atom(literal, written)
        case Negation(atom=atom):
            return f"not {_atom(atom, written)}"
        case Comparison(operator=operator, left=left, right=right):
            return f"{_term(left, written)} {operator} {_term(right, written)}"
        case Disjunction():
            raise AssertionError("disjunctions are multiplied out before")


def _atom(atom: Atom, written: dict[str, str]) -> str:
    return _call(atom.predicate, [_term(term, written) for term in atom.arguments])


def _term(term: Term, written: dict[str, str]) -> str:
    match term:
        case Variable(name=name):
            return written[name]
        case Constant(value=value, type="int"):
            return str(value)
        case Operation(function="-", arguments=(operand,)):
            return f"(-{_term(operand, written)})"
        case Operation(function="+" | "-" | "*" | "/" | "mod" as function, arguments=(left, right)):
            operator = "\\" if function == "mod" else function
            return f"({_term(left, written)}{operator}{_term(right, written)})"
        case _:
            raise ValueError(f"no translation for {term}")
