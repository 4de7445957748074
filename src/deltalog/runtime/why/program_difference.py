"""Which rules and relations two programs have in common.

    before   path(X, Y) :- edge(X, Y).      after   path(A, B) :- edge(A, B).       the same rule
                                                    path(X, Y) :- road(X, Y).       a new one

Rules are the same if they are written alike but for the names of variables, order and sentences. A
relation is another one if the types of its columns are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from deltalog.analysis.columns import Relation, Relations
from deltalog.language.ast import Declaration, Expression, Rule, Variable
from deltalog.language.printer import print_declaration, print_rule
from deltalog.language.walk import atoms_of, rule_names, substitute_atom, substitute_literal
from deltalog.runtime.why.change_reason import ProgramChange, Sign
from deltalog.runtime.why.clauses import Clause, Clauses


@dataclass(frozen=True)
class ProgramSide:
    """The clauses and relations of one of two programs."""

    clauses: Clauses
    relations: Relations

    @cached_property
    def keys(self) -> dict[Clause, tuple[str, int]]:
        """A key of each clause: its rule as written, and its number among several."""
        found: dict[Clause, tuple[str, int]] = {}
        counts: dict[int, int] = {}
        for clause in (each for members in self.clauses.values() for each in members):
            number = counts[id(clause.written)] = counts.get(id(clause.written), -1) + 1
            found[clause] = normal_text(clause.written), number
        return found

    @cached_property
    def by_key(self) -> dict[tuple[str, int], Clause]:
        return {key: clause for clause, key in self.keys.items()}

    def counterpart(self, other: ProgramSide, clause: Clause) -> Clause | None:
        """The same clause of the other program, if that has it."""
        return other.by_key.get(self.keys[clause])


def normal_text(rule: Rule) -> str:
    """A rule as it is printed, with variables named in the order in which they occur."""
    shown = (name for name in rule_names(rule) if not Variable(name).is_wildcard)
    names = {name: f"V{number}" for number, name in enumerate(shown)}

    def renamed(variable: Variable) -> Expression:
        return replace(variable, name=names.get(variable.name, variable.name))

    head = substitute_atom(rule.head, renamed)
    body = tuple(substitute_literal(each, renamed) for each in rule.body)
    return print_rule(replace(rule, head=head, body=body, message=None))


def changed_relations(
    op: Sign, own: ProgramSide, other: ProgramSide, clause: Clause
) -> Iterator[ProgramChange]:
    """The relations of a rule that have other columns in the other program, old ones first."""
    read = {atom.predicate: None for body in clause.bodies for atom, _ in atoms_of(body)}
    found = [name for name in read if _is_other(own.relations[name], other.relations.get(name))]
    head = clause.head.predicate
    if not found and _is_other(own.relations[head], other.relations.get(head)):
        found = [head]
    sides: tuple[tuple[Sign, ProgramSide], ...] = (
        ("-", other if op == "+" else own),
        ("+", own if op == "+" else other),
    )
    for name in found:
        for sign, side in sides:
            if name in side.relations:
                yield ProgramChange(sign, "relation", _declaration_text(side.relations[name]))


def _is_other(relation: Relation, other: Relation | None) -> bool:
    return other is None or (relation.kind, relation.types) != (other.kind, other.types)


def _declaration_text(relation: Relation) -> str:
    columns = tuple(replace(column, span=None) for column in relation.columns)
    return print_declaration(Declaration(relation.kind, relation.name, columns))
