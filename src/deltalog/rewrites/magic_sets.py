"""Magic Sets: evaluate only what a query needs, bottom-up.

    ? path(1, Y).
    →  path__bf__magic(1).
       path__bf(X, Y) :- path__bf__magic(X), edge(X, Y).
       path__bf__magic(Z) :- path__bf__magic(X), edge(X, Z).
       path__bf(X, Y) :- path__bf__magic(X), edge(X, Z), path__bf(Z, Y).
       answer__(Y) :- path__bf(1, Y).

Before: rules in desugared, stratified form and the predicate asked for. After: an equivalent rule
set for that predicate, in supplementary form: a prefix of a body that is needed twice (to ask, and
to go on) is computed once, under a name of its own. Adornments say which arguments are bound; they
follow the evaluation order of `analysis/binding.py`, which goes where most arguments are bound
instead of from left to right.

Negated views are asked like positive ones, so the result may not be stratifiable. It is softly
stratifiable: `analysis/stratification.py` says why that is enough. A rule with an aggregate is
asked for its group; its supplementary predicates keep every variable, because the aggregate ranges
over the bindings of all of them.

Correct because the rewritten rules derive exactly the facts of the original ones whose bound
arguments have been asked for (Beeri & Ramakrishnan 1987; Behrend & Manthey 2004, section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from deltalog.analysis.binding import evaluation_order, variables_bound_by
from deltalog.analysis.dependencies import dependencies_of
from deltalog.language.ast import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.source import Origin


@dataclass(frozen=True)
class _Asked:
    """A predicate and which of its arguments are bound: `bf` for path(bound, free)."""

    predicate: str
    adornment: str

    @property
    def name(self) -> str:
        return names.adorned_name(self.predicate, self.adornment)

    def magic(self, atom: Atom) -> Atom:
        """The question for an atom: its bound arguments."""
        pairs = zip(atom.arguments, self.adornment, strict=True)
        return Atom(names.magic_name(self.name), tuple(term for term, mark in pairs if mark == "b"))


def magic_sets(rules: Iterable[Rule], root: str, stored: Set[str]) -> tuple[Rule, ...]:
    """The rules that compute `root` and only what it needs; `stored` predicates are just read."""
    return asked_rules(rules, (root,), stored)


def asked_rules(
    rules: Iterable[Rule],
    roots: Iterable[str],
    stored: Set[str],
    *,
    is_supplementary: bool = True,
    is_adorned: bool = True,
    asked_instead: Mapping[str, str] = MappingProxyType({}),
    silent: Set[str] = frozenset(),
    rewrite: str = "magic_sets",
) -> tuple[Rule, ...]:
    """The rules of the roots as they are, and of everything they ask for only what they ask.

    `is_supplementary` names prefixes that are needed twice. Without `is_adorned` the answers to all
    questions about a predicate share its own name. A literal of a predicate in `asked_instead` is
    read as it is, and its question goes to another predicate. Rules of a `silent` root ask nothing:
    they read whatever has been answered.
    """
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    options = _Options(frozenset(stored), is_supplementary, is_adorned, asked_instead, rewrite)
    rewriting = _Rewriting(options, by_head)
    result: list[Rule] = []
    for root in roots:
        for number, rule in enumerate(by_head.get(root, ()), start=1):
            result += [rule] if root in silent else rewriting.answer(rule, number, None)
    seen: set[_Asked] = set()
    while rewriting.waiting:
        asked = rewriting.waiting.pop(0)
        if asked in seen:
            continue
        seen.add(asked)
        for number, rule in enumerate(by_head.get(asked.predicate, ()), start=1):
            result += rewriting.answer(rule, number, asked)
    return tuple(dict.fromkeys(result))


@dataclass(frozen=True)
class _Options:
    stored: frozenset[str]
    is_supplementary: bool
    is_adorned: bool
    asked_instead: Mapping[str, str]
    rewrite: str


def _total_positions(by_head: Mapping[str, Iterable[Rule]]) -> Mapping[str, Set[int]]:
    """Per predicate the positions some rule fills with an aggregate: they cannot be asked for."""
    return {
        predicate: {
            position
            for rule in rules
            for position, term in enumerate(rule.head.arguments)
            if isinstance(term, Aggregate)
        }
        for predicate, rules in by_head.items()
    }


@dataclass
class _Rewriting:
    options: _Options
    by_head: Mapping[str, list[Rule]]
    waiting: list[_Asked] = field(default_factory=list)

    @cached_property
    def totals(self) -> Mapping[str, Set[int]]:
        return _total_positions(self.by_head)

    @cached_property
    def component_of(self) -> Mapping[str, int]:
        return dependencies_of([r for own in self.by_head.values() for r in own]).component_of()

    def answer(self, rule: Rule, number: int, asked: _Asked | None) -> Iterator[Rule]:
        """The answer rule, the supplementary rules and the questions made from one rule."""
        origin = Origin.made_by(self.options.rewrite, rule.origin)
        name = rule.head.predicate if asked is None else asked.name
        prefix: list[Literal] = [] if asked is None else [asked.magic(rule.head)]
        bound = set(variable_names(*prefix))
        order = self._order_body(rule, bound, asked is None)
        cuts = 0
        for position, literal in enumerate(order):
            atom = literal.atom if isinstance(literal, Negation) else literal
            if not isinstance(atom, Atom) or atom.predicate in self.options.stored:
                prefix.append(literal)
                bound |= variables_bound_by(literal, bound)
                continue
            if len(prefix) > 1 and self.options.is_supplementary:
                cuts += 1
                kept = _needed_variables(rule, prefix, order[position:])
                supplementary = Atom(names.supplementary_name(name, number, cuts), kept)
                yield Rule(supplementary, tuple(prefix), origin, leads=True)
                prefix = [supplementary]
            question = self._ask_question(atom, bound - self._computed_variables(rule, order, atom))
            magic = question.magic(atom)
            if prefix != [magic]:
                yield Rule(magic, tuple(prefix), origin, leads=True)
            answered = Atom(self._predicate_to_read(atom, question), atom.arguments, atom.span)
            prefix.append(Negation(answered) if isinstance(literal, Negation) else answered)
            bound |= variables_bound_by(literal, bound)
        head = rule.head.predicate if asked is None or not self.options.is_adorned else asked.name
        yield Rule(
            Atom(head, rule.head.arguments, rule.head.span), tuple(prefix), origin, leads=True
        )

    def _order_body(self, rule: Rule, bound: Set[str], is_root: bool) -> tuple[Literal, ...]:
        """A root that has a leading atom starts from it; everything else from what is bound."""
        first = rule.body[0] if rule.body else None
        leads = is_root and rule.leads and isinstance(first, Atom)
        return evaluation_order(rule.body, bound, first if leads else None)  # type: ignore[arg-type]

    def _computed_variables(self, rule: Rule, order: tuple[Literal, ...], atom: Atom) -> set[str]:
        """Variables that a recursive rule computes: asking with them might never end.

        Full evaluation meets only values it derives; a question `n(X + 1)` from `n(X)` would invent
        new ones for ever. So a computed value is not passed on inside a recursive component.
        """
        predicate = self.options.asked_instead.get(atom.predicate, atom.predicate)
        here = self.component_of.get(rule.head.predicate)
        if here is None or self.component_of.get(predicate) != here:
            return set()
        bound_by_atoms = {n for x in order if isinstance(x, Atom) for n in variable_names(x)}
        computed = {
            name
            for literal in order
            if isinstance(literal, Comparison) and _is_computation(literal)
            for name in variable_names(literal)
        }
        return computed - {n for n in bound_by_atoms if n not in variable_names(atom)}

    def _ask_question(self, atom: Atom, bound: Set[str]) -> _Asked:
        predicate = self.options.asked_instead.get(atom.predicate, atom.predicate)
        totals = self.totals.get(predicate, frozenset())
        adornment = "".join(
            "b" if position not in totals and _is_bound(term, bound) else "f"
            for position, term in enumerate(atom.arguments)
        )
        asked = _Asked(predicate, adornment)
        self.waiting.append(asked)
        return asked

    def _predicate_to_read(self, atom: Atom, question: _Asked) -> str:
        """The predicate a literal reads its answers from."""
        if atom.predicate in self.options.asked_instead or not self.options.is_adorned:
            return atom.predicate
        return question.name


def _is_computation(comparison: Comparison) -> bool:
    sides = (comparison.left, comparison.right)
    return comparison.operator == "=" and any(isinstance(side, Operation) for side in sides)


def _is_bound(term: Term, bound: Set[str]) -> bool:
    return isinstance(term, Constant) or (isinstance(term, Variable) and term.name in bound)


def _needed_variables(
    rule: Rule, prefix: list[Literal], rest: Iterable[Literal]
) -> tuple[Variable, ...]:
    """The variables of the prefix that are still needed; under an aggregate, all of them."""
    available = variable_names(*(x for x in prefix if not isinstance(x, Negation)))
    needed = set(variable_names(rule.head, *rest))
    return tuple(Variable(name) for name in available if rule.is_aggregate or name in needed)
