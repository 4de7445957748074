"""`db.why_changed("path(1, 3)", 7)`: which base changes of a transaction changed a derived fact.

    -path(1, 3) in version 7
      -edge(2, 3) → -path(2, 3) → -path(1, 3)

A fact that is new has a proof in the state after the transaction; what of its premises was not
there before is followed. A fact that is gone had derivations in the state before: each has lost a
premise, or something it negates has come, and is followed, too; none remains. So changes are
followed backwards along the arcs that they took, down to base facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias
from typing import Literal as OneOf

from deltalog.diagnostics import why_catalogue as errors
from deltalog.diagnostics.report import DataError
from deltalog.runtime.causes import Cause
from deltalog.runtime.derivation import Absence, Fact, fact_text
from deltalog.runtime.violations import json_value
from deltalog.runtime.why.clauses import clauses_of
from deltalog.runtime.why.instances import (
    Instance,
    Premise,
    groups_of,
    instances,
    premises_of,
)
from deltalog.runtime.why.search import ProofSearch
from deltalog.runtime.why.state import AskedState
from deltalog.runtime.why.why import too_long

LOST_MAX = 100
"""Derivations of a deleted fact that are shown."""
FOLLOWED_MAX = 10_000
"""Changed facts that are followed."""
LINES_MAX = 200

Sign: TypeAlias = OneOf["+", "-"]
Changed: TypeAlias = tuple[Sign, Fact]
_OPPOSITE: dict[Sign, Sign] = {"+": "-", "-": "+"}


@dataclass(frozen=True)
class Transition:
    """The states before and after a transaction, and which it is."""

    before: AskedState
    after: AskedState
    version: int
    time: datetime | None = None


@dataclass(frozen=True)
class ChangeStep:
    """A derivation that was gained or lost, and those of its premises that changed.

    `conclusion` and `changed` are signed: `-path(1, 3)`. `kept` are premises that did not change.
    """

    conclusion: str
    rule: str
    place: str
    changed: tuple[str, ...]
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class ChangeArc:
    """An arc of the propagation network that a change took: influent, affected view, and signs."""

    influent: str
    influence: str
    affected: str
    effect: str
    place: str

    def __str__(self) -> str:
        place = f" by {self.place}" if self.place else ""
        return f"Δ{self.effect}{self.affected}/Δ{self.influence}{self.influent}{place}"


@dataclass(frozen=True, eq=False)
class WhyChanged:
    """Why a transaction inserted or deleted a fact.

    `causes` are changes of base facts, `("+", relation, row)` or `("-", …)`. `steps` lead from them
    to the fact, which comes first; of a deleted fact these are all derivations that were lost, and
    none remains. `is_complete` is False if only a part of many was followed.
    """

    conclusion: str
    op: Sign
    version: int
    time: datetime | None
    causes: tuple[Cause, ...]
    steps: tuple[ChangeStep, ...]
    arcs: tuple[ChangeArc, ...]
    lost: int = 0
    is_complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has."""
        return {
            "conclusion": self.conclusion,
            "op": self.op,
            "version": self.version,
            "time": None if self.time is None else self.time.isoformat(),
            "causes": [[op, name, [json_value(v) for v in row]] for op, name, row in self.causes],
            "steps": [
                {
                    "conclusion": each.conclusion,
                    "rule": each.rule,
                    "place": each.place,
                    "changed": list(each.changed),
                    "kept": list(each.kept),
                }
                for each in self.steps
            ],
            "arcs": [
                [arc.influence, arc.influent, arc.effect, arc.affected, arc.place]
                for arc in self.arcs
            ],
            "lost": self.lost,
            "is_complete": self.is_complete,
        }

    def __str__(self) -> str:
        when = "" if self.time is None else f", {self.time:%Y-%m-%d %H:%M:%S}"
        what = "inserted" if self.op == "+" else "deleted"
        lines = [f"{self.conclusion} was {what} by version {self.version}{when}"]
        causes = [f"{op}{fact_text(name, row)}" for op, name, row in self.causes]
        lines.append(f"  because of {', '.join(causes)}")
        if self.lost:
            many = "1 derivation was" if self.lost == 1 else f"{self.lost:,} derivations were"
            lines.append(f"  {many} lost, and none remains")
        for step in self.steps[:LINES_MAX]:
            kept = f"   with {', '.join(step.kept)}" if step.kept else ""
            place = f"   by {step.place}" if step.place else ""
            lines.append(f"  {step.conclusion} ← {', '.join(step.changed)}{kept}{place}")
        lines += [] if len(self.steps) <= LINES_MAX and self.is_complete else ["  …"]
        lines.append(f"  along {', '.join(map(str, self.arcs))}") if self.arcs else None
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"WhyChanged({self.op}{self.conclusion}, version {self.version})"


def why_changed_fact(transition: Transition, fact: Fact) -> WhyChanged:
    """Follow the change of a fact to base facts; raises if the transaction did not change it."""
    was, is_ = (bool(s.holding([fact])) for s in (transition.before, transition.after))
    if was == is_:
        when = f"version {transition.version}"
        hint = f"it {'holds' if is_ else 'does not hold'}, before and after"
        raise DataError([errors.NOT_CHANGED.at(None, when=when, fact=fact_text(*fact), hint=hint)])
    op: Sign = "+" if is_ else "-"
    following = _Following(transition)
    following.follow(op, fact)
    steps = tuple(following.steps)
    lost = following.lost.get(fact, 0) if op == "-" else 0
    return WhyChanged(
        fact_text(*fact),
        op,
        transition.version,
        transition.time,
        tuple(sorted(following.causes, key=lambda each: (each[1], each[0], str(each[2])))),
        steps,
        tuple(sorted(following.arcs)),
        lost,
        following.is_complete,
    )


@dataclass
class _Following:
    """Changes that were followed so far, level by level from the fact."""

    transition: Transition
    causes: set[Cause] = field(default_factory=set)
    steps: list[ChangeStep] = field(default_factory=list)
    arcs: set[ChangeArc] = field(default_factory=set)
    lost: dict[Fact, int] = field(default_factory=dict)
    is_complete: bool = True
    seen: set[Changed] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.before = clauses_of(self.transition.before.model.checked)
        self.after = clauses_of(self.transition.after.model.checked)
        self.proofs = ProofSearch(self.transition.after, self.after)

    def follow(self, op: Sign, fact: Fact) -> None:
        level: list[Changed] = [(op, fact)]
        self.seen.update(level)
        while level:
            found: dict[Changed, None] = {}
            for head, clause_place, rule, changed, kept in self._level(level):
                self._note(head, rule, clause_place, changed, kept)
                found.update(dict.fromkeys(changed))
            level = [each for each in found if each not in self.seen]
            self.seen.update(level)
            if len(self.seen) > FOLLOWED_MAX:
                self.is_complete = False
                return

    def _level(
        self, level: Iterable[Changed]
    ) -> Iterator[tuple[Changed, str, str, list[Changed], list[str]]]:
        inserted: list[Fact] = []
        deleted: list[Fact] = []
        for op, fact in level:
            known = self.after if op == "+" else self.before
            if fact[0] not in known:
                self.causes.add((op, *fact))
            else:
                (inserted if op == "+" else deleted).append(fact)
        for op, found in (("+", self._gained(inserted)), ("-", self._lost(deleted))):
            for fact, instance in found:
                changed, kept = self._changed(op, fact, instance)
                clause = instance.clause
                yield (op, fact), clause.place, clause.text, changed, kept

    def _gained(self, facts: list[Fact]) -> list[tuple[Fact, Instance]]:
        """The lowest proof of each fact that is new."""
        if not self.proofs.least(facts):
            raise too_long(self.proofs, fact_text(*facts[0]))
        return [(fact, self.proofs.chosen[fact]) for fact in facts]

    def _lost(self, facts: list[Fact]) -> list[tuple[Fact, Instance]]:
        """Every derivation, up to a number, of each fact that is gone."""
        kept: list[tuple[Fact, Instance]] = []
        for fact, instance in instances(self.transition.before, self.before, facts):
            self.lost[fact] = self.lost.get(fact, 0) + 1
            if self.lost[fact] <= LOST_MAX:
                kept.append((fact, instance))
            else:
                self.is_complete = False
        return kept

    def _changed(self, op: Sign, fact: Fact, instance: Instance) -> tuple[list[Changed], list[str]]:
        """The premises of an instance that changed, and the others as text."""
        own, other = self.transition.after, self.transition.before
        if op == "-":
            own, other = other, own
        if not instance.clause.is_aggregate:
            return _differing(op, instance.premises, other)
        group = instance.clause.group_of(fact[1])
        assert group is not None
        key = tuple(group[name] for name in instance.clause.group)
        here = _bindings(own, instance, key)
        there = _bindings(other, instance, key)
        changed: dict[Changed, None] = {}
        for binding, premises in here.items():
            if binding not in there:
                changed.update(dict.fromkeys(_differing(op, premises, other)[0]))
        for binding, premises in there.items():
            if binding not in here:
                changed.update(dict.fromkeys(_differing(_OPPOSITE[op], premises, own)[0]))
        return list(changed), []

    def _note(
        self, head: Changed, rule: str, place: str, changed: list[Changed], kept: list[str]
    ) -> None:
        effect, fact = head
        texts = tuple(f"{op}{fact_text(*each)}" for op, each in changed)
        self.steps.append(
            ChangeStep(f"{effect}{fact_text(*fact)}", rule, place, texts, tuple(kept))
        )
        self.arcs |= {
            ChangeArc(each[0], influence, fact[0], effect, place) for influence, each in changed
        }


def _bindings(
    state: AskedState, instance: Instance, key: tuple[Any, ...]
) -> dict[tuple[Any, ...], tuple[Premise, ...]]:
    """The premises of each binding of a group in a state."""
    clause = instance.clause
    group, _ = groups_of(state, clause, [key]).get(key, ([], ()))
    return {
        tuple(binding[name] for name in clause.counted): premises_of(clause.bodies[n], binding)
        for n, binding in group
    }


def _differing(
    op: Sign, premises: Iterable[Premise], other: AskedState
) -> tuple[list[Changed], list[str]]:
    """Premises of an instance that the other state does not have, and the rest as text."""
    changed: dict[Changed, None] = {}
    kept: list[str] = []
    premises = list(dict.fromkeys(premises))
    holding = other.holding([each for each in premises if isinstance(each, tuple)])
    for premise in premises:
        if isinstance(premise, tuple):
            if premise in holding:
                kept.append(fact_text(*premise))
            else:
                changed[op, premise] = None
        elif isinstance(premise, Absence):
            columns = [i for i, _ in premise.key]
            rows = other.matching(premise.predicate, columns, [tuple(v for _, v in premise.key)])
            if rows:
                found = ((_OPPOSITE[op], (premise.predicate, row)) for row in rows)
                changed.update(dict.fromkeys(found))
            else:
                kept.append(str(premise))
    return list(changed), kept
