"""Rules as proofs use them: flat, without helpers, and knowing what a person wrote.

    sees(U, D) :- owner(U, D) ; member(U, G), grant(G, D).      two clauses, one written rule
    size(G, count()) :- member(U, G) ; guest(U, G).             one clause with two bodies

A disjunction gives a clause per branch. An aggregate is one clause whatever its body: its group is
all distinct bindings of all branches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from deltalog.analysis.binding import bound_variables
from deltalog.checks.program import CheckedProgram
from deltalog.language.ast import Aggregate, Atom, Constant, Literal, Row, Rule, Value, Variable
from deltalog.language.printer import print_rule
from deltalog.language.values import value_in_message
from deltalog.language.walk import substitute_literal, variable_names
from deltalog.rewrites.desugar import flat_rules
from deltalog.rewrites.names import is_generated


@dataclass(frozen=True, eq=False)
class Clause:
    """A head, the bodies that lead to it, and the rule that these come from."""

    written: Rule
    head: Atom
    bodies: tuple[tuple[Literal, ...], ...]
    counted: tuple[str, ...] = ()
    """Variables whose distinct bindings an aggregate ranges over."""

    @cached_property
    def is_aggregate(self) -> bool:
        return any(isinstance(term, Aggregate) for term in self.head.arguments)

    @cached_property
    def group(self) -> tuple[str, ...]:
        """The variables of the head, without those of aggregates, each once."""
        found = [term.name for term in self.head.arguments if isinstance(term, Variable)]
        return tuple(dict.fromkeys(found))

    def group_of(self, row: Row) -> dict[str, Value] | None:
        """The values of the group in a fact; None if the head does not fit it."""
        found: dict[str, Value] = {}
        for term, value in zip(self.head.arguments, row, strict=True):
            if isinstance(term, Variable):
                if found.setdefault(term.name, value) != value:
                    return None
            elif isinstance(term, Constant) and term.value != value:
                return None
        return found

    def said(self, binding: Mapping[str, Value]) -> str | None:
        """The sentence of the rule for the values of its variables; one without a value is `_`."""
        values = {name: value_in_message(value) for name, value in binding.items()}
        return self.worded(defaultdict(lambda: "_", values))

    def worded(self, words: Mapping[str, str]) -> str | None:
        """The sentence of the rule with words in the place of its variables."""
        template = self.written.message
        return None if template is None else template.format_map(words)

    @cached_property
    def text(self) -> str:
        """The rule as it is printed, without its sentence."""
        return print_rule(replace(self.written, message=None))

    @cached_property
    def place(self) -> str:
        """File and line of the rule, or only the line in a text that has no file."""
        span = self.written.span
        if span is None:
            return ""
        line = span.source.position(span.start)[0]
        name = span.source.name
        return f"line {line}" if name.startswith("<") else f"{name}:{line}"


Clauses = Mapping[str, tuple[Clause, ...]]


def clauses_of(checked: CheckedProgram) -> Clauses:
    """The clauses of every view that a person defined, in the order of writing."""
    found: dict[str, list[Clause]] = {
        name: [] for name, each in checked.relations.items() if each.kind == "view"
    }
    for rule in _written_rules(checked):
        found[rule.head.predicate] += _rule_clauses(rule, checked)
    return {name: tuple(each) for name, each in found.items()}


def _written_rules(checked: CheckedProgram) -> Iterator[Rule]:
    program = checked.program
    yield from program.rules
    for constraint in program.constraints:
        for rule in constraint.definition:
            yield replace(rule, message=constraint.message)
    for fact in program.facts:
        if checked.relations[fact.predicate].kind == "view":
            yield Rule(fact)


def _rule_clauses(rule: Rule, checked: CheckedProgram) -> Iterator[Clause]:
    made = flat_rules(rule, checked.relations)
    if not rule.is_aggregate:
        yield from (Clause(rule, each.head, (each.body,)) for each in made)
        return
    *branches, whole = made
    if not branches:
        bound = bound_variables(whole.body)
        counted = tuple(name for name in variable_names(*whole.body) if name in bound)
        yield Clause(rule, whole.head, (whole.body,), counted)
        return
    union = branches[0].head
    rest = tuple(x for x in whole.body if not (isinstance(x, Atom) and is_generated(x.predicate)))
    taken = {*variable_names(*rest)} - {*variable_names(union)}
    bodies = tuple((*_rename_apart(branch.body, taken), *rest) for branch in branches)
    yield Clause(rule, whole.head, bodies, variable_names(union))


def _rename_apart(body: tuple[Literal, ...], taken: Set[str]) -> tuple[Literal, ...]:
    """A body with other names in the place of those taken: both have variables for expressions."""
    if taken.isdisjoint(variable_names(*body)):
        return body

    def own(variable: Variable) -> Variable:
        return replace(variable, name=f"{variable.name}_") if variable.name in taken else variable

    return tuple(substitute_literal(literal, own) for literal in body)
