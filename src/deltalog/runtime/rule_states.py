"""Rules over a hypothetical state, literal by literal: what view-update rules ask for.

Helpers of the algebra format are no relations of a database. Their rules are followed down to
relations, which are looked up with what is known; facts of other predicates may be supplied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from deltalog.language.ast import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Row,
    Rule,
    Value,
    Variable,
)
from deltalog.language.walk import variable_names
from deltalog.runtime.equations import is_passed, solve_equation
from deltalog.runtime.hypothetical import Binding, Hypothetical

Facts = Mapping[str, Iterable[Row]]


class RuleState:
    """A state in which bodies are solved."""

    def __init__(self, state: Hypothetical | None, helpers: Mapping[str, Sequence[Rule]]) -> None:
        """Without a `state`, all facts must be supplied."""
        self.state = state
        self.helpers = helpers
        self._found: dict[tuple[str, tuple[tuple[int, Value], ...]], list[Row]] = {}

    def solved(
        self, body: Sequence[Literal], binding: Binding, facts: Facts | None = None
    ) -> Iterator[Binding]:
        """The bindings with which a body holds; `facts` hold, whatever the state is."""
        if not body:
            yield binding
            return
        first = min(range(len(body)), key=lambda i: _literal_urgency(body[i], binding, facts or {}))
        literal, rest = body[first], (*body[:first], *body[first + 1 :])
        for longer in self._solve_literal(literal, binding, facts or {}):
            yield from self.solved(rest, longer, facts)

    def _solve_literal(self, literal: Literal, binding: Binding, facts: Facts) -> Iterator[Binding]:
        match literal:
            case Comparison():
                yield from _solve_test(literal, binding)
            case Negation(atom=atom):
                if not any(True for _ in self._match_atom(atom, binding, facts)):
                    yield binding
            case Atom():
                yield from self._match_atom(literal, binding, facts)

    def _match_atom(self, atom: Atom, binding: Binding, facts: Facts) -> Iterator[Binding]:
        known: dict[int, Value] = {}
        for i, term in enumerate(atom.arguments):
            if isinstance(term, Constant):
                known[i] = term.value
            elif isinstance(term, Variable) and term.name in binding:
                known[i] = binding[term.name]
        rows = facts.get(atom.predicate)
        for row in self.rows(atom.predicate, known) if rows is None else rows:
            longer = dict(binding)
            if all(
                _match_term(term, value, longer)
                for term, value in zip(atom.arguments, row, strict=True)
            ):
                yield longer

    def rows(self, predicate: str, known: Mapping[int, Value]) -> list[Row]:
        """The facts of a relation or helper that have these values at these positions."""
        key = predicate, tuple(sorted(known.items()))
        if key not in self._found:
            self._found[key] = self._looked_up(predicate, known)
        return self._found[key]

    def _looked_up(self, predicate: str, known: Mapping[int, Value]) -> list[Row]:
        assert self.state is not None, predicate
        if predicate not in self.helpers:
            arity = self.state.database.relations[predicate].arity
            if len(known) < arity:
                return self.state.matching(predicate, known)
            row = tuple(known[i] for i in range(arity))
            return [row] if self.state.holds(predicate, row) else []
        found: dict[Row, None] = {}
        for rule in self.helpers[predicate]:
            given: dict[str, Value] = {}
            terms = rule.head.arguments
            if all(_match_term(terms[i], value, given) for i, value in known.items()):
                for binding in self.solved(rule.body, given):
                    found[row_of(rule.head, binding)] = None
        return list(found)


def row_of(atom: Atom, binding: Binding) -> Row:
    """The fact that an atom is under a binding of all its variables."""
    return tuple(
        term.value if isinstance(term, Constant) else binding[term.name]
        for term in atom.arguments
        if isinstance(term, Constant | Variable)
    )


def _match_term(term: object, value: Value, binding: dict[str, Value]) -> bool:
    """Whether a term can have this value; a variable that is free is bound to it."""
    if isinstance(term, Constant):
        return term.value == value
    assert isinstance(term, Variable), "desugared atoms hold no expressions"
    return term.is_wildcard or binding.setdefault(term.name, value) == value


def _solve_test(test: Comparison, binding: Binding) -> Iterator[Binding]:
    free = [name for name in variable_names(test) if name not in binding]
    if not free:
        if is_passed(test, binding):
            yield binding
        return
    for value in solve_equation(test, free[0], binding):
        yield {**binding, free[0]: value}


def _literal_urgency(literal: Literal, binding: Binding, facts: Facts) -> tuple[int, int]:
    """The order in which literals are solved: supplied facts, tests, then what has most values."""
    free = sum(name not in binding for name in variable_names(literal))
    match literal:
        case Atom(predicate=predicate) if predicate in facts:
            return 0, free
        case Atom():
            return 2 if free else 1, free
        case Comparison(operator=operator):
            return (1, 0) if not free or (free == 1 and operator == "=") else (4, free)
        case Negation(atom=atom):
            open_ = sum(
                isinstance(t, Variable) and not t.is_wildcard and t.name not in binding
                for t in atom.arguments
            )
            return (1, 1) if not open_ else (3, open_)
        case _:
            return 5, free
