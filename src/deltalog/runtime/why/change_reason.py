"""The answer of `why_changed`: what caused the change of a fact, and the steps in between.

    path(1, 3) was deleted by version 7
      because of -edge(2, 3)
      1 derivation was lost, and none remains
      -path(1, 3) ← -edge(2, 3)   with path(1, 2)   by line 4

A transaction changes base facts. A version that changed the program changed rules, too: a
derivation is gained because its rule is new, and lost because its rule is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from typing import Literal as OneOf

from deltalog.runtime.causes import Cause
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.violations import json_value

LINES_MAX = 200

Sign: TypeAlias = OneOf["+", "-"]


@dataclass(frozen=True, order=True)
class ProgramChange:
    """A rule that is new (`+`) or gone (`-`), or a relation with other columns, as written."""

    op: Sign
    kind: OneOf["rule", "relation"]
    text: str
    place: str = ""

    @property
    def claim(self) -> str:
        """The change without its text: `the rule is new`."""
        return f"the {self.kind} is {'new' if self.op == '+' else 'gone'}"

    def __str__(self) -> str:
        place = f"{self.place}   " if self.place else ""
        return f"{self.claim}: {place}{self.text}"


@dataclass(frozen=True)
class ChangeStep:
    """A derivation that was gained or lost, and those of its premises that changed.

    `conclusion` and `changed` are signed: `-path(1, 3)`. `kept` are premises that did not change.
    `program` is what is new or gone of the program for it: its rule, or columns of relations.
    `sentence` is what the rule has to `say` of it.
    """

    conclusion: str
    rule: str
    place: str
    changed: tuple[str, ...]
    kept: tuple[str, ...] = ()
    program: tuple[ProgramChange, ...] = ()
    sentence: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has."""
        found: dict[str, Any] = {"conclusion": self.conclusion, "rule": self.rule}
        found |= {"place": self.place, "changed": list(self.changed), "kept": list(self.kept)}
        found["program"] = [program_json(each) for each in self.program]
        return found if self.sentence is None else {**found, "sentence": self.sentence}

    def __str__(self) -> str:
        why = ", ".join((*self.changed, *(each.claim for each in self.program)))
        kept = f"   with {', '.join(self.kept)}" if self.kept else ""
        place = f"   by {self.place}" if self.place else ""
        return f"{self.conclusion} ← {why}{kept}{place}"


def program_json(change: ProgramChange) -> dict[str, str]:
    return {
        "op": change.op,
        "kind": change.kind,
        "text": change.text,
        "place": change.place,
    }


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
    """Why a transaction, or a change of the program, inserted or deleted a fact.

    `causes` are changes of base facts, `("+", relation, row)` or `("-", …)`, and `program` has the
    rules that are new or gone. `steps` lead from them to the fact, which comes first; of a deleted
    fact these are all derivations that were lost, and none remains. `is_complete` is False if only
    a part of many was followed.
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
    program: tuple[ProgramChange, ...] = ()

    @property
    def cause_texts(self) -> tuple[str, ...]:
        """The changes of base facts, as they are written: `-edge(2, 3)`."""
        return tuple(f"{op}{fact_text(name, row)}" for op, name, row in self.causes)

    def sentences(self) -> list[str]:
        """The sentences of the rules that derived the fact, now or no longer, and why.

        A step whose rule has none is its fact.
        """
        found: dict[str, None] = {}
        for step in self.steps:
            when = "now" if step.conclusion.startswith("+") else "no longer"
            reasons = ", ".join((*step.changed, *(each.claim for each in step.program)))
            found[f"{when}: {step.sentence or step.conclusion[1:]}, since {reasons}"] = None
        return list(found) or [f"{text} is a change of a base fact" for text in self.cause_texts]

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has."""
        return {
            "conclusion": self.conclusion,
            "op": self.op,
            "version": self.version,
            "time": None if self.time is None else self.time.isoformat(),
            "causes": [[op, name, [json_value(v) for v in row]] for op, name, row in self.causes],
            "program": [program_json(each) for each in self.program],
            "steps": [each.to_json() for each in self.steps],
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
        if self.causes:
            lines.append(f"  because of {', '.join(self.cause_texts)}")
        lines += [f"  because {each}" for each in self.program]
        if self.lost:
            many = "1 derivation was" if self.lost == 1 else f"{self.lost:,} derivations were"
            lines.append(f"  {many} lost, and none remains")
        lines += [f"  {step}" for step in self.steps[:LINES_MAX]]
        lines += [] if len(self.steps) <= LINES_MAX and self.is_complete else ["  …"]
        lines.append(f"  along {', '.join(map(str, self.arcs))}") if self.arcs else None
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"WhyChanged({self.op}{self.conclusion}, version {self.version})"
