"""A proof over sets: the proofs of many facts read as one.

    path(1, X): 1,000 facts
      path  1,000 rows   edge  1,000 rows
      by graph.dl:3   path ← edge          1 time
      by graph.dl:4   path ← edge, path    999 times

Nodes are tables, the rows that the proofs use; edges are rules, with how often each is applied.
Every fact has a proof of least height, and what proofs share is counted once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from deltalog.language.ast import Row
from deltalog.language.values import sort_key
from deltalog.runtime.derivation import Absence, Fact, fact_text
from deltalog.runtime.violations import json_value
from deltalog.runtime.why.clauses import Clause
from deltalog.runtime.why.instances import Instance
from deltalog.runtime.why.search import ProofSearch

ROWS_SHOWN = 5
"""Rows of a table that are shown."""


@dataclass(frozen=True)
class ProofTable:
    """The rows of a relation or view that proofs use: how many, and the first of them."""

    relation: str
    is_base: bool
    count: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ProofRule:
    """A rule that proofs apply, how often, the relations of its premises, and those it negates.

    `sentence` is what it has to `say`, with the names of its variables in the place of values.
    """

    rule: str
    place: str
    conclusion: str
    premises: tuple[str, ...]
    absent: tuple[str, ...]
    count: int
    is_aggregate: bool = False
    sentence: str | None = None


@dataclass(frozen=True, eq=False)
class SetProof:
    """The proofs of all facts that fit a pattern, as tables and rules.

    `count` facts fit; `proved` is the number of those that are proved, if there are too many.
    `height` is that of the highest proof.
    """

    conclusion: str
    count: int
    proved: int
    height: int
    tables: tuple[ProofTable, ...]
    rules: tuple[ProofRule, ...]

    rule = None

    @property
    def premises(self) -> tuple[ProofRule, ...]:
        """The rules, which stand where a proof of one fact has its premises."""
        return self.rules

    def sentences(self) -> list[str]:
        """The sentences of the rules, each with how often; a rule without one is its text."""
        return [f"{each.sentence or each.rule} ({_times_text(each.count)})" for each in self.rules]

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has."""
        tables = [
            {
                "relation": each.relation,
                "is_base": each.is_base,
                "count": each.count,
                "rows": [[json_value(value) for value in row] for row in each.rows],
            }
            for each in self.tables
        ]
        rules = [
            {
                "conclusion": each.conclusion,
                "rule": each.rule,
                "place": each.place,
                "premises": list(each.premises),
                "absent": list(each.absent),
                "count": each.count,
                **({} if each.sentence is None else {"sentence": each.sentence}),
            }
            for each in self.rules
        ]
        own = {"conclusion": self.conclusion, "count": self.count, "proved": self.proved}
        return {**own, "height": self.height, "tables": tables, "rules": rules}

    def __str__(self) -> str:
        part = "" if self.proved == self.count else f", of which {self.proved:,} are proved"
        lines = [f"{self.conclusion}: {_count_text(self.count, 'fact')}{part}"]
        for table in self.tables:
            shown = ", ".join(fact_text(table.relation, row) for row in table.rows)
            more = ", …" if table.count > len(table.rows) else ""
            kind = "base facts" if table.is_base else "facts"
            lines.append(f"  {table.relation}   {table.count:,} {kind}: {shown}{more}")
        for rule in self.rules:
            read = ", ".join((*rule.premises, *(f"not {name}" for name in rule.absent)))
            place = f"{rule.place}   " if rule.place else ""
            lines.append(
                f"  by {place}{rule.conclusion} ← {read or 'nothing'}   {_times_text(rule.count)}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"SetProof({self.conclusion}, {_count_text(self.count, 'fact')})"


def _count_text(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _times_text(count: int) -> str:
    return _count_text(count, "time")


def set_proof(
    search: ProofSearch, conclusion: str, count: int, goals: Collection[Fact]
) -> SetProof:
    """The facts that the chosen proofs of the goals use, by relation and by rule."""
    used: dict[str, list[Row]] = {}
    applied: dict[Clause, list[Instance]] = {}
    for name, row in search.needed(goals):
        used.setdefault(name, []).append(row)
        instance = search.chosen.get((name, row))
        if instance is not None:
            applied.setdefault(instance.clause, []).append(instance)
    height = max((search.heights[goal] for goal in goals), default=0)
    tables = tuple(
        _proof_table(name, rows, name not in search.clauses) for name, rows in used.items()
    )
    rules = tuple(_proof_rule(clause, found) for clause, found in applied.items())
    ordered = sorted(tables, key=lambda each: (each.is_base, each.relation))
    by_rule = sorted(rules, key=lambda each: (each.conclusion, each.place, each.rule))
    return SetProof(conclusion, count, len(goals), height, tuple(ordered), tuple(by_rule))


def _proof_table(name: str, rows: list[Row], is_base: bool) -> ProofTable:
    shown = sorted(rows, key=sort_key)[:ROWS_SHOWN]
    return ProofTable(name, is_base, len(rows), tuple(shown))


def _proof_rule(clause: Clause, found: Iterable[Instance]) -> ProofRule:
    found = list(found)
    premises = {name: None for each in found for name, _ in each.facts}
    absent = {
        premise.predicate: None
        for each in found
        for premise in each.premises
        if isinstance(premise, Absence)
    }
    head = clause.head.predicate
    names = tuple(premises), tuple(absent)
    said = clause.worded(_Names())
    return ProofRule(clause.text, clause.place, head, *names, len(found), clause.is_aggregate, said)


class _Names(dict[str, str]):
    """Every variable as its own name."""

    def __missing__(self, name: str) -> str:
        return name
