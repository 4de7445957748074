"""A proof: a fact, the rule that derives it, and proofs of its premises.

    path(1, 3)   by graph.dl:4   path(X, Y) :- edge(X, Z), path(Z, Y).
    ├─ edge(1, 2)
    └─ path(2, 3)   by graph.dl:3   path(X, Y) :- edge(X, Y).
       └─ edge(2, 3)

Trees share subproofs; where one is printed a second time, it is only named. Nothing here recurses:
a proof may be thousands of steps high.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from typing import Literal as OneOf

from deltalog.language.ast import Row

LINES_MAX = 1_000
"""Lines of a proof that are printed."""
NODES_MAX = 10_000
"""Steps of a proof as JSON from which on a repeated subproof is cut off."""
REPEATED = "  (as above)"

Kind = OneOf["base", "derived", "aggregate", "absent", "comparison"]


@dataclass(frozen=True, eq=False)
class Proof:
    """A step of a proof; `premises` are the steps below it.

    `conclusion` is the fact as it is written; of kind `absent` it is `not p(1, _)`: no such fact
    was found. `rule` and `place` are the rule as written and its file and line. `contributors`
    counts the rows of an aggregate, of which the first are among the premises. `sentence` is what
    the rule has to `say`.
    """

    conclusion: str
    kind: Kind
    rule: str | None = None
    place: str | None = None
    premises: tuple[Proof, ...] = field(default=(), repr=False)
    relation: str | None = None
    row: Row | None = None
    height: int = 0
    contributors: int | None = None
    sentence: str | None = None

    def steps(self) -> Iterator[Proof]:
        """Yield every step once, the conclusion first."""
        seen, pending = {id(self)}, [self]
        while pending:
            each = pending.pop()
            yield each
            for premise in reversed(each.premises):
                if id(premise) not in seen:
                    seen.add(id(premise))
                    pending.append(premise)

    def sentences(self) -> list[str]:
        """The sentences of the rules, the conclusion first; steps without one are facts.

        Base facts, absent ones and comparisons are left to the sentences that speak of them.
        """
        found = [each.sentence or each.conclusion for each in self.steps() if each.rule is not None]
        return list(dict.fromkeys(found))

    def to_json(self) -> dict[str, Any]:
        """Return it as nested values that JSON has: `conclusion`, `rule`, `place`, `premises`.

        In a tree of more than ten thousand steps a subproof that comes again is cut off there, and
        marked as `repeated`.
        """
        is_cut = tree_size(self) > NODES_MAX
        root: dict[str, Any] = {}
        pending: list[tuple[Proof, dict[str, Any]]] = [(self, root)]
        seen: set[int] = set()
        while pending:
            each, made = pending.pop()
            made.update(_own_json(each))
            if is_cut and each.premises and id(each) in seen:
                made.update(repeated=True, premises=[])
                continue
            seen.add(id(each))
            made["premises"] = [{} for _ in each.premises]
            pending += reversed(list(zip(each.premises, made["premises"], strict=True)))
        return root

    def __str__(self) -> str:
        return "\n".join(tree_lines(self))

    def __repr__(self) -> str:
        return f"Proof({self.conclusion}, height {self.height})"


def _own_json(proof: Proof) -> dict[str, Any]:
    found: dict[str, Any] = {"conclusion": proof.conclusion, "kind": proof.kind}
    found |= {"rule": proof.rule, "place": proof.place}
    if proof.contributors is not None:
        found["contributors"] = proof.contributors
    if proof.sentence is not None:
        found["sentence"] = proof.sentence
    return found


def tree_size(proof: Proof) -> int:
    """The number of steps of the whole tree, shared ones as often as they occur."""
    sizes: dict[int, int] = {}
    for each in sorted(proof.steps(), key=lambda step: step.height):
        sizes[id(each)] = 1 + sum(sizes[id(premise)] for premise in each.premises)
    return sizes[id(proof)]


def tree_lines(proof: Proof) -> list[str]:
    """The tree as lines, the first ones of many."""
    lines: list[str] = []
    seen: set[int] = set()
    pending: list[tuple[Proof, str, str]] = [(proof, "", "")]
    while pending and len(lines) < LINES_MAX:
        each, opening, indent = pending.pop()
        is_repeated = id(each) in seen and bool(each.premises)
        lines.append(f"{opening}{step_text(each)}{REPEATED if is_repeated else ''}")
        if is_repeated:
            continue
        seen.add(id(each))
        last = len(each.premises) - 1
        for i in range(last, -1, -1):
            mark, bar = ("└─ ", "   ") if i == last else ("├─ ", "│  ")
            pending.append((each.premises[i], indent + mark, indent + bar))
    return [*lines, "…"] if pending else lines


def step_text(proof: Proof) -> str:
    """One step, with its rule and what is to be known about it."""
    if proof.kind == "absent":
        return f"{proof.conclusion}   no such fact"
    text = proof.conclusion
    if proof.rule is not None:
        text += "   by " + "   ".join(filter(None, (proof.place, proof.rule)))
    if proof.contributors is not None:
        text += f"   of {proof.contributors:,} row{'' if proof.contributors == 1 else 's'}"
    return text


def json_text(made: Any) -> str:
    """Nested lists and dicts as JSON, however deep: the module `json` recurses."""
    pieces: list[str] = []
    pending: list[Any] = [made]
    while pending:
        each = pending.pop()
        if isinstance(each, _Piece):
            pieces.append(each)
        elif isinstance(each, dict):
            pending.append(_Piece("}"))
            for i, (key, value) in reversed(list(enumerate(each.items()))):
                pending += [value, _Piece(f"{', ' if i else ''}{json.dumps(key)}: ")]
            pending.append(_Piece("{"))
        elif isinstance(each, list):
            pending.append(_Piece("]"))
            for i, value in reversed(list(enumerate(each))):
                pending.append(value)
                if i:
                    pending.append(_Piece(", "))
            pending.append(_Piece("["))
        else:
            pieces.append(json.dumps(each, ensure_ascii=False))
    return "".join(pieces)


class _Piece(str):
    """Text of the output, which is not a value of the input."""

    __slots__ = ()
