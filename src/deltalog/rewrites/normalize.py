"""Algebra format: every rule one relational operator, with auxiliary predicates in between.

    link(X, Y) :- edge(X, Y).
    link(X, Y) :- edge(X, Z), edge(Z, Y).
    →  link__a2(X, Z, Y) :- edge(X, Z), edge(Z, Y).       join
       link__a1(X, Y) :- link__a2(X, Z, Y).               projection
       link(X, Y) :- edge(X, Y).                          union
       link(X, Y) :- link__a1(X, Y).

Before: rules in desugared form, without aggregates. After: an equivalent rule set in which every
predicate is defined by one projection, one join (or product, or intersection), one difference, or
the union of two (Manthey 1994, section 3.1; Behrend & Manthey 2007, section 2.2). Comparisons stay
with the operator that first has their variables: a selection. Correct because each step only names
an intermediate result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from deltalog.analysis.binding import evaluation_order
from deltalog.language.ast import Atom, Comparison, Literal, Negation, Rule, Term, Variable
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.source import Origin

Order = Callable[[tuple[Literal, ...]], tuple[Literal, ...]]


def normalize(rules: Iterable[Rule], order: Order = evaluation_order) -> tuple[Rule, ...]:
    """The rules in algebra format, what a predicate needs before the predicate.

    A longer body is joined in the `order` given.
    """
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    made: list[Rule] = []
    for predicate, own in by_head.items():
        made += _Predicate(predicate, order).normalized(own)
    return tuple(made)


@dataclass
class _Predicate:
    name: str
    order: Order
    rules: list[Rule] = field(default_factory=list)
    count: int = 0

    def normalized(self, own: list[Rule]) -> list[Rule]:
        if len(own) == 1:
            self._add_operators(own[0], own[0].head)
            return self.rules
        arity = len(own[0].head.arguments)
        row = names.row_variables(arity)
        operands = [self._operand_name(rule) for rule in own]
        union = operands[0]
        for number, operand in enumerate(operands[1:], start=1):
            is_last = number == len(operands) - 1
            target = self.name if is_last else self._next_auxiliary()
            for side in (union, operand):
                origin = Origin.made_by("normalize", own[number].origin)
                self.rules.append(Rule(Atom(target, row), (Atom(side, row),), origin))
            union = target
        return self.rules

    def _next_auxiliary(self) -> str:
        self.count += 1
        return names.auxiliary_name(self.name, self.count)

    def _operand_name(self, rule: Rule) -> str:
        """The name of what one rule contributes to a union; a mere copy needs no name."""
        atom = rule.body[0] if len(rule.body) == 1 else None
        if isinstance(atom, Atom):
            distinct = len(set(variable_names(atom))) == len(atom.arguments)
            if distinct and atom.arguments == rule.head.arguments:
                return atom.predicate
        head = replace(rule.head, predicate=self._next_auxiliary())
        self._add_operators(rule, head)
        return head.predicate

    def _add_operators(self, rule: Rule, head: Atom) -> None:
        """The rule as a chain of operators that ends in `head`."""
        origin = Origin.made_by("normalize", rule.origin)
        pending: list[Literal] = []
        ordered = [self._without_wildcards(x, origin) for x in self.order(rule.body)]
        for literal in ordered:
            operands = [x for x in pending if not isinstance(x, Comparison)]
            if isinstance(literal, Comparison) or len(operands) < 2:
                pending.append(literal)
                continue
            pending = [self._add_intermediate(pending, origin), literal]
        if _is_binary(pending) and not _keeps_all(pending, head):
            pending = [self._add_intermediate(pending, origin)]
        self.rules.append(Rule(head, tuple(pending), origin))

    def _add_intermediate(self, body: list[Literal], origin: Origin) -> Atom:
        """A name for the operator built so far, over all its variables."""
        row: tuple[Term, ...] = tuple(Variable(name) for name in _bound_names(body))
        atom = Atom(self._next_auxiliary(), row)
        self.rules.append(Rule(atom, tuple(body), origin))
        return atom

    def _without_wildcards(self, literal: Literal, origin: Origin) -> Literal:
        """`not q(X, _)` is the difference with a projection of q."""
        if not isinstance(literal, Negation):
            return literal
        atom = literal.atom
        wild = [isinstance(t, Variable) and t.is_wildcard for t in atom.arguments]
        if not any(wild):
            return literal
        kept = tuple(Variable(name) for name in _visible_names(atom))
        projection = Atom(self._next_auxiliary(), kept)
        self.rules.append(Rule(projection, (atom,), origin))
        return Negation(projection)


def _visible_names(atom: Atom) -> tuple[str, ...]:
    return tuple(name for name in variable_names(atom) if not Variable(name).is_wildcard)


def _bound_names(body: Iterable[Literal]) -> tuple[str, ...]:
    return variable_names(*(literal for literal in body if not isinstance(literal, Negation)))


def _is_binary(body: list[Literal]) -> bool:
    return sum(not isinstance(literal, Comparison) for literal in body) > 1


def _keeps_all(body: list[Literal], head: Atom) -> bool:
    """Whether the head has every variable of the body, so that nothing is projected away."""
    in_head = {term.name for term in head.arguments if isinstance(term, Variable)}
    return set(_bound_names(body)) <= in_head
