"""Which changes of base facts led to a fact that is new, or to the loss of one.

    +edge(3, 1)   with edge(1, 2), edge(2, 3) there   →   path(1, 1) is caused by +edge(3, 1)

Along a derivation in the state after the change, inserted base facts are causes. What is absent now
and was there before is followed through a derivation that it had in the state before, of which
deleted base facts are the causes; and so on, down the strata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from deltalog.language.ast import Aggregate, Row, Value
from deltalog.language.values import sort_key
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.derivation import Absence, Derivation, DerivationSearch
from deltalog.runtime.readable_state import ReadableState, row_fits

Cause = tuple[str, str, Row]
"""A change of a base fact: `+` or `-`, the relation and the row."""
LOST_MAX = 10
"""Facts that a negated literal excludes now, and that are followed."""


@dataclass
class Causes:
    """Finds the causes of facts in one change: `base` of base relations, both states around it."""

    search: DerivationSearch
    base: ChangeSet
    before: ReadableState
    after: ReadableState
    _found: set[Cause] = field(default_factory=set)

    def of_new(self, derivation: Derivation) -> tuple[Cause, ...]:
        """The causes of a fact that has this derivation in the state after the change."""
        return self._collect_causes(derivation, is_new=True)

    def of_lost(self, derivation: Derivation) -> tuple[Cause, ...]:
        """The causes of the loss of a fact that had this derivation in the state before."""
        return self._collect_causes(derivation, is_new=False)

    def _collect_causes(self, derivation: Derivation, is_new: bool) -> tuple[Cause, ...]:
        self._found = set()
        self._follow_derivation(derivation, is_new)
        return tuple(sorted(self._found, key=lambda each: (each[1], each[0], sort_key(each[2]))))

    def _follow_derivation(self, derivation: Derivation, is_new: bool) -> None:
        for each in _distinct_nodes(derivation):
            op, change = ("+", self.base.inserted) if is_new else ("-", self.base.deleted)
            if each.row in change[each.predicate]:
                self._found.add((op, each.predicate, each.row))
            for absence in each.absent:
                self._follow_absence(absence, is_new)
            if each.rule is not None and each.rule.is_aggregate:
                self._follow_group(each, is_new)

    def _follow_absence(self, absence: Absence, is_new: bool) -> None:
        """Follow what is absent in the one state, and was there in the other."""
        key, name = dict(absence.key), absence.predicate
        op, change = ("-", self.base.deleted) if is_new else ("+", self.base.inserted)
        found = {(op, name, row) for row in change[name] if row_fits(row, key)}
        self._found |= found
        if not found:
            self._follow_rows(name, key, is_new)

    def _follow_group(self, derivation: Derivation, is_new: bool) -> None:
        """An aggregate has another value than before: what was in its group then is not now."""
        assert derivation.rule is not None
        terms = enumerate(derivation.rule.head.arguments)
        key = {i: derivation.row[i] for i, term in terms if not isinstance(term, Aggregate)}
        self._follow_rows(derivation.predicate, key, is_new)

    def _follow_rows(self, name: str, key: Mapping[int, Value], is_new: bool) -> None:
        other = self.before if is_new else self.after
        if "__" in name:  # a helper of desugar
            return
        for row in islice(other.matching(name, key), LOST_MAX):
            derivation = self.search.derive(other, name, row)
            if derivation is not None and derivation.rule is not None:
                self._follow_once(derivation, not is_new)

    def _follow_once(self, derivation: Derivation, is_new: bool) -> None:
        """Follow a derivation in the other state, but not back by way of the same group."""
        if derivation.rule is not None and derivation.rule.is_aggregate:
            for premise in derivation.premises:
                self._follow_derivation(premise, is_new)
            for absence in derivation.absent:
                self._follow_absence(absence, is_new)
        else:
            self._follow_derivation(derivation, is_new)


def _distinct_nodes(derivation: Derivation) -> Iterator[Derivation]:
    """Every node of a derivation, shared ones once."""
    seen, pending = {derivation.fact}, [derivation]
    while pending:
        each = pending.pop()
        yield each
        for premise in each.premises:
            if premise.fact not in seen:
                seen.add(premise.fact)
                pending.append(premise)
