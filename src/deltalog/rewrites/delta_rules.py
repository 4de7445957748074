"""Delta rules: the algebra of change as rules, with nothing but old states and increments.

    link__a2(X, Z, Y) :- edge(X, Z), edge(Z, Y).                                  join
    →  link__a2__plus(X, Z, Y) :- edge__plus(X, Z), edge(Z, Y), not edge__minus(Z, Y).
       link__a2__plus(X, Z, Y) :- edge__plus(X, Z), edge__plus(Z, Y).
       link__a2__plus(X, Z, Y) :- edge__plus(Z, Y), edge(X, Z), not edge__minus(X, Z).
       … and the same with minus

Before: rules in algebra format (`normalize`), every predicate stored in its old state, and the
change of what is below. After: the exact change of every predicate (Manthey 1994, sections 2.4 and
3.1). Joins, products and intersections are in the three-part form of Lemma 5 with preserved facts;
new and preserved states are folded away, so no state is copied.

The paper's folded projection is wrong where a second derivation survives: a fact goes only if *no*
match is left, neither a preserved nor an inserted one. Both are looked for by `__still`:

    link__a1(X, Y) :- link__a2(X, Z, Y).                                          projection
    →  link__a1__still(X, Y) :- link__a2__minus(X, Z, Y), link__a2(X, V1, Y),
                                not link__a2__minus(X, V1, Y).
       link__a1__still(X, Y) :- link__a2__minus(X, Z, Y), link__a2__plus(X, V1, Y).
       link__a1__minus(X, Y) :- link__a2__minus(X, Z, Y), not link__a1__still(X, Y).

Recursion makes the folded rules unstratifiable: an insertion needs to know all deletions and the
other way round. `unstratified_cycle` shows the cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltalog.analysis.dependencies import Dependency
from deltalog.analysis.stratification import stratification_of
from deltalog.language.ast import (
    Atom,
    Comparison,
    Literal,
    Negation,
    Rule,
    Term,
    Variable,
)
from deltalog.language.walk import fresh_names, rule_names, substitute_literal, variable_names
from deltalog.rewrites import names
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.propagation_rules import is_injective
from deltalog.source import Origin


def delta_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The change of every predicate that rules in algebra format define."""
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    made: list[Rule] = []
    for own in by_head.values():
        made += _deltas_of_union(*own) if len(own) == 2 else _deltas_of_rule(own[0])
    return tuple(dict.fromkeys(made))


def unstratified_cycle(rules: Iterable[Rule]) -> tuple[Dependency, ...] | None:
    """The negative cycle that recursion brings into the delta rules, if there is one."""
    cycles = stratification_of(delta_rules(normalize(rules))).cycles
    return cycles[0] if cycles else None


def _deltas_of_rule(rule: Rule) -> Iterator[Rule]:
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    negated = [literal.atom for literal in rule.body if isinstance(literal, Negation)]
    if len(atoms) == 2:
        yield from _deltas_of_join(rule, atoms[0], atoms[1])
    elif len(atoms) == 1 and negated:
        yield from _deltas_of_difference(rule, atoms[0], negated[0])
    elif len(atoms) == 1:
        yield from _deltas_of_projection(rule, atoms[0])
    else:
        yield from _deltas_of_negation(rule, negated)


def _plus_atom(atom: Atom) -> Atom:
    return Atom(names.plus_name(atom.predicate), atom.arguments)


def _minus_atom(atom: Atom) -> Atom:
    return Atom(names.minus_name(atom.predicate), atom.arguments)


def _comparisons_of(rule: Rule) -> tuple[Literal, ...]:
    return tuple(literal for literal in rule.body if isinstance(literal, Comparison))


def _make_delta_rule(rule: Rule, head: Atom, *body: Literal) -> Rule:
    origin = Origin.made_by("delta_rules", rule.origin)
    return Rule(head, (*body, *_comparisons_of(rule)), origin, leads=True)


def _deltas_of_join(rule: Rule, q: Atom, r: Atom) -> Iterator[Rule]:
    """Lemma 5, for intersection, product and join alike."""
    for change in (_plus_atom, _minus_atom):
        head = change(rule.head)
        yield _make_delta_rule(rule, head, change(q), r, Negation(_minus_atom(r)))
        yield _make_delta_rule(rule, head, change(q), change(r))
        yield _make_delta_rule(rule, head, change(r), q, Negation(_minus_atom(q)))


def _deltas_of_difference(rule: Rule, q: Atom, r: Atom) -> Iterator[Rule]:
    """Equations (24) and (25); `not r` in the new state is `not r, not r+`, or `r-`."""
    yield _make_delta_rule(
        rule, _plus_atom(rule.head), _plus_atom(q), Negation(r), Negation(_plus_atom(r))
    )
    yield _make_delta_rule(rule, _plus_atom(rule.head), _plus_atom(q), _minus_atom(r))
    yield _make_delta_rule(rule, _plus_atom(rule.head), _minus_atom(r), q, Negation(_minus_atom(q)))
    yield _make_delta_rule(rule, _minus_atom(rule.head), _minus_atom(q), Negation(r))
    yield _make_delta_rule(rule, _minus_atom(rule.head), _plus_atom(r), q)


def _deltas_of_projection(rule: Rule, q: Atom) -> Iterator[Rule]:
    """Equations (26) and (27), with both parts of the new state looked for."""
    if is_injective(rule):
        yield _make_delta_rule(rule, _plus_atom(rule.head), _plus_atom(q))
        yield _make_delta_rule(rule, _minus_atom(rule.head), _minus_atom(q))
        return
    yield _make_delta_rule(rule, _plus_atom(rule.head), _plus_atom(q), Negation(rule.head))
    still = Atom(names.still_matched_name(rule.head.predicate), rule.head.arguments)
    other, tests = _other_match(rule, q)
    yield _make_delta_rule(rule, still, _minus_atom(q), other, Negation(_minus_atom(other)), *tests)
    yield _make_delta_rule(rule, still, _minus_atom(q), _plus_atom(other), *tests)
    yield _make_delta_rule(rule, _minus_atom(rule.head), _minus_atom(q), Negation(still))


def _other_match(rule: Rule, q: Atom) -> tuple[Atom, tuple[Literal, ...]]:
    """Another fact of q for the same head: what the head does not show is renamed."""
    head = {term.name for term in rule.head.arguments if isinstance(term, Variable)}
    fresh = fresh_names(set(rule_names(rule)), "V")
    bound = variable_names(q, *_comparisons_of(rule))
    renaming = {name: Variable(next(fresh)) for name in bound if name not in head}

    def rename(variable: Variable) -> Term:
        return renaming.get(variable.name, variable)

    other = substitute_literal(q, rename)  # type: ignore[arg-type]
    assert isinstance(other, Atom)
    return other, tuple(substitute_literal(test, rename) for test in _comparisons_of(rule))  # type: ignore[arg-type]


def _deltas_of_negation(rule: Rule, negated: list[Atom]) -> Iterator[Rule]:
    """No positive atom: the head holds exactly while every negated atom fails."""
    for position, atom in enumerate(negated):
        others = [other for i, other in enumerate(negated) if i != position]
        absent = [
            Negation(Atom(names.new_name(other.predicate), other.arguments)) for other in others
        ]
        yield _make_delta_rule(
            rule, _plus_atom(rule.head), _minus_atom(atom), *absent, Negation(rule.head)
        )
        held = [Negation(other) for other in others]
        yield _make_delta_rule(rule, _minus_atom(rule.head), _plus_atom(atom), *held, rule.head)


def _deltas_of_union(first: Rule, second: Rule) -> Iterator[Rule]:
    """Equations (18) and (19)."""
    for rule, other in ((first, second), (second, first)):
        (q,) = (literal for literal in rule.body if isinstance(literal, Atom))
        (r,) = (literal for literal in other.body if isinstance(literal, Atom))
        head = rule.head
        yield _make_delta_rule(rule, _plus_atom(head), _plus_atom(q), Negation(r))
        yield _make_delta_rule(
            rule, _minus_atom(head), _minus_atom(q), Negation(r), Negation(_plus_atom(r))
        )
        yield _make_delta_rule(rule, _minus_atom(head), _minus_atom(q), _minus_atom(r))
