"""`db.why_changed("path(1, 3)", 7)`: which changes of a version changed a derived fact.

    -path(1, 3) in version 7
      -edge(2, 3) → -path(2, 3) → -path(1, 3)

A fact that is new has a proof in the state after; what of its premises was not there before is
followed. A fact that is gone had derivations in the state before: each has lost a premise, or
something it negates has come, and is followed, too; none remains. So changes are followed backwards
along the arcs that they took, down to base facts.

Where the version changed the program, both states are asked with their own rules. A derivation is
also gained because its rule is new, and lost because its rule is gone; or, by the same rule over
the same premises, because a relation has columns of other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from deltalog.analysis.columns import Relations
from deltalog.diagnostics import why_catalogue as errors
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Aggregate, Row
from deltalog.language.values import sort_key
from deltalog.runtime.causes import Cause
from deltalog.runtime.derivation import Absence, Fact, fact_text
from deltalog.runtime.why.asked import parse_fact
from deltalog.runtime.why.change_reason import (
    ChangeArc,
    ChangeStep,
    ProgramChange,
    Sign,
    WhyChanged,
)
from deltalog.runtime.why.clauses import Clause, clauses_of
from deltalog.runtime.why.fitting import fitting_row, fitting_values
from deltalog.runtime.why.instances import Instance, Premise, groups_of, premises_of, rule_instances
from deltalog.runtime.why.program_difference import ProgramSide, changed_relations
from deltalog.runtime.why.search import ProofSearch
from deltalog.runtime.why.state import AskedState
from deltalog.runtime.why.why import too_long

LOST_MAX = 100
"""Derivations of a deleted fact that are shown, and facts that came for one negated literal."""
FOLLOWED_MAX = 10_000
"""Changed facts that are followed."""

Changed: TypeAlias = tuple[Sign, Fact]
_OPPOSITE: dict[Sign, Sign] = {"+": "-", "-": "+"}


@dataclass(frozen=True)
class Transition:
    """The states before and after a transaction or a change of the program, and which it is."""

    before: AskedState
    after: AskedState
    version: int
    time: datetime | None = None

    def close(self) -> None:
        """Close both states."""
        self.before.close()
        self.after.close()


def parse_changed(text: str, transition: Transition) -> Fact:
    """Read a fact of a relation that may have other columns before than after, or not be there."""
    before, after = (s.model.visible for s in (transition.before, transition.after))
    try:
        return parse_fact(text, {**before, **after})
    except DataError as error:
        found = _earlier_fact(text, before, after)
        if found is None:
            raise error
        return found


def _earlier_fact(text: str, before: Relations, after: Relations) -> Fact | None:
    try:
        found = parse_fact(text, before)
    except DataError:
        return None
    return found if found[0] in after else None


def why_changed_fact(transition: Transition, fact: Fact) -> WhyChanged:
    """Follow the change of a fact to its causes; raises if the version did not change it."""
    was, is_ = (bool(s.holding([fact])) for s in (transition.before, transition.after))
    if was == is_:
        when = f"version {transition.version}"
        hint = f"it {'holds' if is_ else 'does not hold'}, before and after"
        raise DataError([errors.NOT_CHANGED.at(None, when=when, fact=fact_text(*fact), hint=hint)])
    op: Sign = "+" if is_ else "-"
    name, row = fact
    own = transition.after if is_ else transition.before
    fitting = fitting_row(own.model.checked.relations[name], row)
    assert fitting is not None
    following = _Following(transition)
    following.follow(op, (name, fitting))
    return WhyChanged(
        fact_text(name, fitting),
        op,
        transition.version,
        transition.time,
        tuple(sorted(following.causes, key=lambda each: (each[1], each[0], sort_key(each[2])))),
        tuple(following.steps),
        tuple(sorted(following.arcs)),
        following.lost.get((name, fitting), 0) if op == "-" else 0,
        following.is_complete,
        tuple(sorted(following.program, key=lambda each: (each.kind, each.text, each.op))),
    )


@dataclass(frozen=True)
class _Derived:
    """A derivation that one of the states has, and premises to look for in the other.

    Each of these has the sign of the change that it is if the other state does not have it.
    """

    op: Sign
    fact: Fact
    instance: Instance
    premises: tuple[tuple[Sign, Premise], ...]
    is_group: bool


@dataclass
class _Following:
    """Changes that were followed so far, level by level from the fact."""

    transition: Transition
    causes: set[Cause] = field(default_factory=set)
    steps: list[ChangeStep] = field(default_factory=list)
    arcs: set[ChangeArc] = field(default_factory=set)
    program: set[ProgramChange] = field(default_factory=set)
    lost: dict[Fact, int] = field(default_factory=dict)
    is_complete: bool = True
    seen: set[Changed] = field(default_factory=set)

    def __post_init__(self) -> None:
        before, after = self.transition.before, self.transition.after
        self.states: dict[Sign, AskedState] = {"-": before, "+": after}
        self.sides: dict[Sign, ProgramSide] = {
            op: ProgramSide(clauses_of(state.model.checked), state.model.checked.relations)
            for op, state in self.states.items()
        }
        self.is_same_program = before.model.checked.program == after.model.checked.program
        self.proofs = ProofSearch(after, self.sides["+"].clauses)

    def follow(self, op: Sign, fact: Fact) -> None:
        level: list[Changed] = [(op, fact)]
        self.seen.update(level)
        while level:
            found: dict[Changed, None] = {}
            for derived, changed, kept in self._compare_premises(
                list(self._level_derivations(level))
            ):
                self._note_step(derived, changed, kept)
                found.update(dict.fromkeys(changed))
            level = [each for each in found if each not in self.seen]
            self.seen.update(level)
            if len(self.seen) > FOLLOWED_MAX:
                self.is_complete = False
                return

    def _level_derivations(self, level: Iterable[Changed]) -> Iterator[_Derived]:
        """The derivations that the facts of a level have, each in the state that has it."""
        derived: dict[Sign, list[Fact]] = {"+": [], "-": []}
        for op, fact in level:
            if fact[0] not in self.sides[op].clauses:
                self.causes.add((op, *fact))
            else:
                derived[op].append(fact)
        for op, find in (("+", self._inserted_instances), ("-", self._deleted_instances)):
            found = find(derived[op])
            yield from (self._derived_fact(op, fact, instance) for fact, instance in found)

    def _inserted_instances(self, facts: list[Fact]) -> list[tuple[Fact, Instance]]:
        """The lowest proof of each fact that is new."""
        if not self.proofs.least(facts):
            raise too_long(self.proofs, fact_text(*facts[0]))
        return [(fact, self.proofs.chosen[fact]) for fact in facts]

    def _deleted_instances(self, facts: list[Fact]) -> list[tuple[Fact, Instance]]:
        """Every derivation, up to a number, of each fact that is gone."""
        kept: list[tuple[Fact, Instance]] = []
        for fact, instance in rule_instances(self.states["-"], self.sides["-"].clauses, facts):
            self.lost[fact] = self.lost.get(fact, 0) + 1
            if self.lost[fact] <= LOST_MAX:
                kept.append((fact, instance))
            else:
                self.is_complete = False
        return kept

    def _derived_fact(self, op: Sign, fact: Fact, instance: Instance) -> _Derived:
        """An aggregate has all rows of its group that only one of the states has as premises."""
        clause = instance.clause
        if not clause.is_aggregate:
            premises = tuple((op, each) for each in dict.fromkeys(instance.premises))
            return _Derived(op, fact, instance, premises, False)
        here = self._group_premises(op, clause, fact[1])
        there = self._group_premises(_OPPOSITE[op], self._counterpart_clause(op, clause), fact[1])
        found: dict[tuple[Sign, Premise], None] = {}
        for sign, rows, others in ((op, here, there), (_OPPOSITE[op], there, here)):
            for binding, members in rows.items():
                if binding not in others:
                    found.update(dict.fromkeys((sign, each) for each in members))
        return _Derived(op, fact, instance, tuple(found), True)

    def _group_premises(
        self, op: Sign, clause: Clause | None, row: Row
    ) -> dict[Row, tuple[Premise, ...]]:
        """The premises of each binding of the group of a fact, in one of the states."""
        fitting = None
        if clause is not None:
            fitting = _group_row(self.sides[op].relations, clause, row)
        group = None if clause is None or fitting is None else clause.group_of(fitting)
        if clause is None or group is None:
            return {}
        key = tuple(group[name] for name in clause.group)
        members, _ = groups_of(self.states[op], clause, [key]).get(key, ([], ()))
        return {
            tuple(binding[name] for name in clause.counted): premises_of(clause.bodies[n], binding)
            for n, binding in members
        }

    def _counterpart_clause(self, op: Sign, clause: Clause) -> Clause | None:
        if self.is_same_program:
            return clause
        return self.sides[op].counterpart(self.sides[_OPPOSITE[op]], clause)

    def _compare_premises(
        self, level: list[_Derived]
    ) -> Iterator[tuple[_Derived, list[Changed], list[str]]]:
        """Each derivation with those of its premises that changed, and with the others as text.

        All premises of a level are looked for at once.
        """
        asked = dict.fromkeys(premise for each in level for premise in each.premises)
        holding: dict[Sign, set[Fact]] = {}
        excluding: dict[Sign, dict[Absence, list[Row]]] = {}
        for op in self.states:
            premises = [premise for sign, premise in asked if sign == op]
            other = self.states[_OPPOSITE[op]]
            holding[op] = other.holding(p for p in premises if isinstance(p, tuple))
            excluding[op] = other.excluding(p for p in premises if isinstance(p, Absence))
        for each in level:
            changed: dict[Changed, None] = {}
            kept: list[str] = []
            for op, premise in each.premises:
                if isinstance(premise, Absence) and premise in excluding[op]:
                    rows = excluding[op][premise]
                    self.is_complete &= len(rows) <= LOST_MAX
                    found = ((premise.predicate, row) for row in rows[:LOST_MAX])
                    changed.update(dict.fromkeys((_OPPOSITE[op], fact) for fact in found))
                elif isinstance(premise, tuple) and premise not in holding[op]:
                    changed[op, premise] = None
                elif isinstance(premise, tuple | Absence) and not each.is_group:
                    kept.append(fact_text(*premise) if isinstance(premise, tuple) else str(premise))
            yield each, list(changed), kept

    def _note_step(self, derived: _Derived, changed: list[Changed], kept: list[str]) -> None:
        effect, fact = derived.op, derived.fact
        clause = derived.instance.clause
        program = tuple(self._program_change(effect, clause, bool(changed)))
        self.program.update(program)
        self.steps.append(
            ChangeStep(
                f"{effect}{fact_text(*fact)}",
                clause.text,
                clause.place,
                tuple(f"{op}{fact_text(*each)}" for op, each in changed),
                tuple(kept),
                program,
                clause.said(derived.instance.binding),
            )
        )
        self.arcs |= {
            ChangeArc(each[0], influence, fact[0], effect, clause.place)
            for influence, each in changed
        }

    def _program_change(self, op: Sign, clause: Clause, is_led: bool) -> Iterator[ProgramChange]:
        """The rule itself if only one of the programs has it; else columns, if nothing changed."""
        if self._counterpart_clause(op, clause) is None:
            yield ProgramChange(op, "rule", clause.text, clause.place)
        elif not is_led and not self.is_same_program:
            yield from changed_relations(op, self.sides[op], self.sides[_OPPOSITE[op]], clause)


def _group_row(relations: Relations, clause: Clause, row: Row) -> Row | None:
    """A fact with values of the types that the head of an aggregate rule has; totals stay."""
    columns = relations[clause.head.predicate].columns
    if len(columns) != len(row):
        return None
    places = [i for i, t in enumerate(clause.head.arguments) if not isinstance(t, Aggregate)]
    values = fitting_values(tuple(columns[i] for i in places), tuple(row[i] for i in places))
    if values is None:
        return None
    made = list(row)
    for i, value in zip(places, values, strict=True):
        made[i] = value
    return tuple(made)
