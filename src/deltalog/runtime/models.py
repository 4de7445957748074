"""`deltalog.models`: the minimal models of a program whose rules may have several heads.

    s(X) ; t(X) :- r(X), not p(X).
    r("a") ; r("b").

A disjunctive program (Behrend & Manthey 2007, section 2.3) has several models. They are computed
stratum by stratum, all heads of a rule in one: wherever a body holds and none of its heads does,
the model branches, and of the branches of a stratum those stay that contain no other. With
stratified negation these are the perfect models. What all of them share is the model state
(`runtime/model_state.py`).

A small form: rules, facts and declarations, without aggregates, constraints and active rules; in a
rule of several heads these have variables and values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from deltalog.analysis.columns import Relations
from deltalog.analysis.relation import Relation
from deltalog.analysis.rule_types import variable_types
from deltalog.analysis.stratification import stratification_of
from deltalog.checks.program import CheckedProgram, check_program
from deltalog.checks.stratified import check_stratified
from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError, ProgramError, raise_if_any
from deltalog.language.ast import (
    Atom,
    Column,
    Constant,
    DisjunctiveRule,
    Literal,
    Program,
    Row,
    Rule,
    Variable,
)
from deltalog.language.parser import parse_program
from deltalog.language.printer import print_disjunctive_rule
from deltalog.language.values import canonical_value, sort_key, type_of
from deltalog.language.walk import variable_names
from deltalog.rewrites import names
from deltalog.rewrites.desugar import typed_row
from deltalog.rewrites.pipeline import EVALUATE, apply_passes
from deltalog.runtime.model import Options, written_form
from deltalog.runtime.model_state import minimal_sets, model_state
from deltalog.runtime.read_program import read_program
from deltalog.runtime.rule_states import RuleState

CLAUSES_MAX = 10_000
Fact = tuple[str, Row]
World = frozenset[Fact]


@dataclass(frozen=True)
class Models:
    """The minimal models of a program, each a set of facts, and the clauses that they share.

    `minimal` has facts by relation; a clause of the `state` is a tuple of facts, each with the name
    of its relation: one of them holds in every model. A clause of one fact is definite.
    """

    minimal: tuple[Mapping[str, frozenset[Row]], ...]
    state: tuple[tuple[Fact, ...], ...]

    def __str__(self) -> str:
        """The state as rules, which can be read again."""
        return "\n".join(clause_text(clause) for clause in self.state)


def models(program: str | Path | Program, models_max: int = 1000) -> Models:
    """The minimal models of a program, and its model state."""
    hint = "it is a whole number, more than 0"
    is_count = isinstance(models_max, int) and not isinstance(models_max, bool)
    check_argument(is_count and models_max > 0, "models_max", models_max, hint)
    parsed = program if isinstance(program, Program) else parse_program(read_program(program))
    found = sorted(_Solver(parsed, models_max).worlds(), key=_world_order)
    clauses = model_state(found, CLAUSES_MAX)
    if clauses is None:
        raise _too_many("clauses", CLAUSES_MAX)
    state = sorted(
        (tuple(sorted(clause, key=_fact_order)) for clause in clauses), key=_clause_order
    )
    return Models(tuple(map(_by_relation, found)), tuple(state))


def clause_text(clause: Iterable[Fact]) -> str:
    """`r("a") ; r("b").`"""
    heads = tuple(
        Atom(name, tuple(Constant(v, type_of(v) or "null") for v in row)) for name, row in clause
    )
    return print_disjunctive_rule(DisjunctiveRule(heads))


class _Solver:
    def __init__(self, program: Program, models_max: int) -> None:
        raise_if_any(_outside_the_form(program))
        self.models_max = models_max
        self.checked = _checked_program(_split_heads(program))
        self.relations: Relations = self.checked.relations
        linked = (rule for each in program.disjunctive_rules for rule in _head_links(each.heads))
        strata = stratification_of((*self.checked.program.rules, *linked))
        raise_if_any(check_stratified(strata))
        self.strata = strata.stratum_of
        self.rules = self._flat_rules(program)
        self.facts = [
            *([fact] for fact in program.facts),
            *(each.heads for each in program.disjunctive_rules if not each.body),
        ]

    def _flat_rules(self, program: Program) -> list[DisjunctiveRule]:
        """All rules with flat bodies, those of several heads by way of a helper."""
        choices = [each for each in program.disjunctive_rules if each.body]
        helpers = [_helper_rule(number, each) for number, each in enumerate(choices)]
        known = dict(self.relations)
        for helper in helpers:
            known[helper.head.predicate] = _helper_relation(helper, self.relations)
        whole = Program(program.declarations, (*program.rules, *helpers))
        form = written_form(CheckedProgram(whole, known, self.checked.stratification), Options())
        heads = {
            helper.head.predicate: each.heads for helper, each in zip(helpers, choices, strict=True)
        }
        return [
            DisjunctiveRule(heads.get(rule.head.predicate, (rule.head,)), rule.body, rule.origin)
            for rule in apply_passes(EVALUATE, form, "desugar").rules
        ]

    # --- models

    def worlds(self) -> list[World]:
        found: list[World] = [frozenset()]
        for number in sorted({0, *self.strata.values()}):
            rules = [rule for rule in self.rules if self._stratum_of(rule.heads) == number]
            facts = [
                [
                    (atom.predicate, typed_row(atom, self.relations[atom.predicate]))
                    for atom in heads
                ]
                for heads in self.facts
                if self._stratum_of(heads) == number
            ]
            found = [more for world in found for more in self._extend_world(world, rules, facts)]
            if len(found) > self.models_max:
                raise _too_many("models", self.models_max)
        return found

    def _stratum_of(self, heads: Iterable[Atom]) -> int:
        return max(self.strata.get(head.predicate, 0) for head in heads)

    def _extend_world(
        self, world: World, rules: list[DisjunctiveRule], facts: list[list[Fact]]
    ) -> list[World]:
        """The minimal models of one stratum over a model of those below."""
        complete: list[World] = []
        waiting, seen = [world], {world}
        while waiting:
            current = waiting.pop()
            open_ = next((c for c in self._unfulfilled_heads(current, rules, facts)), None)
            if open_ is None:
                complete.append(current)
                continue
            for fact in open_:
                longer = current | {fact}
                if longer not in seen:
                    seen.add(longer)
                    waiting.append(longer)
            if len(seen) > 100 * self.models_max:
                raise _too_many("models", self.models_max)
        return minimal_sets(complete)

    def _unfulfilled_heads(
        self, world: World, rules: list[DisjunctiveRule], facts: list[list[Fact]]
    ) -> Iterator[list[Fact]]:
        """Heads of which none holds although one must; those without a choice first."""
        instances = sorted((*facts, *self._head_instances(world, rules)), key=len)
        yield from (heads for heads in instances if world.isdisjoint(heads))

    def _head_instances(self, world: World, rules: list[DisjunctiveRule]) -> Iterator[list[Fact]]:
        rows: dict[str, list[Row]] = {name: [] for name in self.relations}
        for name, row in world:
            rows[name].append(row)
        state = RuleState(None, {})
        for rule in rules:
            for binding in state.solved(rule.body, {}, rows):
                yield [(head.predicate, self._head_row(head, binding)) for head in rule.heads]

    def _head_row(self, head: Atom, binding: Mapping[str, object]) -> Row:
        types = self.relations[head.predicate].types
        values = (
            term.value if isinstance(term, Constant) else binding[term.name]
            for term in head.arguments
            if isinstance(term, Constant | Variable)
        )
        pairs = zip(values, types, strict=True)
        return tuple(
            None if value is None else canonical_value(value, str(type_)) for value, type_ in pairs
        )


# --- the form


def _outside_the_form(program: Program) -> Iterator:  # type: ignore[type-arg]
    parts = (("a constraint", program.constraints), ("an active rule", program.active_rules))
    for what, found in parts:
        for each in found:
            yield view_catalogue.NOT_IN_MODELS.at(each.origin.span, what=what)
    for query in program.queries:
        yield view_catalogue.NOT_IN_MODELS.at(query.span, what="a query")
    for rule in program.rules:
        if rule.is_aggregate:
            yield view_catalogue.NOT_IN_MODELS.at(rule.span, what="an aggregate")
    for choice in program.disjunctive_rules:
        for head in choice.heads:
            if any(not isinstance(term, Constant | Variable) for term in head.arguments):
                yield view_catalogue.NOT_IN_MODELS.at(head.span, what="an expression in this head")


def _split_heads(program: Program) -> Program:
    """Every head by itself: what is wrong with these rules is wrong with the program."""
    single = [
        Rule(head, each.body, each.origin)
        for each in program.disjunctive_rules
        for head in each.heads
    ]
    facts = tuple(rule.head for rule in single if not rule.body and not variable_names(rule.head))
    rules = tuple(rule for rule in single if rule.body or variable_names(rule.head))
    return replace(
        program,
        rules=(*program.rules, *rules),
        facts=(*program.facts, *facts),
        disjunctive_rules=(),
    )


def _checked_program(program: Program) -> CheckedProgram:
    try:
        return check_program(program)
    except ProgramError as error:  # a body is checked once for each of its heads
        raise ProgramError(list(dict.fromkeys(error.diagnostics))) from None


def _head_links(heads: tuple[Atom, ...]) -> Iterator[Rule]:
    """Rules by which the heads of a rule depend on each other, so that they share a stratum."""
    for head, other in zip(heads, (*heads[1:], heads[0]), strict=True):
        yield Rule(head, (other,))


def _helper_rule(number: int, rule: DisjunctiveRule) -> Rule:
    row = tuple(Variable(name) for name in variable_names(*rule.heads))
    return Rule(Atom(names.choice_name(number), row), rule.body, rule.origin)


def _helper_relation(helper: Rule, relations: Relations) -> Relation:
    body: tuple[Literal, ...] = helper.body
    types = variable_types(body, relations)
    found = [term.name for term in helper.head.arguments if isinstance(term, Variable)]
    columns = tuple(Column(name.lower(), types.get(name), True) for name in found)
    return Relation(helper.head.predicate, "view", columns)


# --- order and errors


def _too_many(what: str, most: int) -> DataError:
    return DataError([view_catalogue.TOO_MANY_MODELS.at(None, what=what, most=f"{most:,}")])


def _fact_order(fact: Fact) -> tuple[object, ...]:
    return fact[0], sort_key(fact[1])


def _clause_order(clause: tuple[Fact, ...]) -> tuple[object, ...]:
    return len(clause), [_fact_order(fact) for fact in clause]


def _world_order(world: World) -> tuple[object, ...]:
    return len(world), [_fact_order(fact) for fact in sorted(world, key=_fact_order)]


def _by_relation(world: World) -> Mapping[str, frozenset[Row]]:
    rows: dict[str, set[Row]] = {}
    for name, row in sorted(world, key=_fact_order):
        rows.setdefault(name, set()).add(row)
    return {name: frozenset(found) for name, found in rows.items()}
