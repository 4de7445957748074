"""Constraints are checked before a change is applied, from the induced update alone.

    deny cycle(X) :- path(X, X).     violated by the facts of cycle__plus
    require ic(2).                   violated if ic__minus has (2)

Both are exact, so nothing is computed again, and views that a change does not reach are not even
looked at. A violation of an enforced constraint refuses the change; why it came about is found out
afterwards (`runtime/refusals.py`), in the state that has not changed.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import LazyRows
from deltalog.language.ast import Constant, Constraint, Row, Variable
from deltalog.language.values import print_value, sort_key, value_in_message
from deltalog.rewrites import names
from deltalog.rewrites.constraint_rules import keyed_views
from deltalog.rewrites.desugar import typed_row
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.readable_state import CurrentState
from deltalog.runtime.violations import ConstraintError, ConstraintWarning, Violation
from deltalog.source import Span

if TYPE_CHECKING:
    from deltalog.checks.program import CheckedProgram
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.outcome import Propagated

PACKAGE = "deltalog."
VIOLATIONS_MAX = 100
"""Violating facts of a constraint that are listed; their number is always known."""
SORTED_MAX = 1_000
"""Of up to this number the first are listed, else those that are read soonest."""


@dataclass(frozen=True)
class Check:
    """A constraint as it is checked: `watched` is empty, or has the `required` row."""

    name: str
    watched: str
    relation: str
    mode: str = "enforce"
    is_immediate: bool = False
    required: Row | None = None
    template: str | None = None
    columns: tuple[str | None, ...] = ()
    key: tuple[int, ...] = ()
    span: Span | None = None

    def violation(self, row: Row) -> Violation:
        """The violation by a row, without its causes."""
        return Violation(
            self.name,
            row,
            self._violation_message(row),
            relation=self.relation,
            is_required=self.required is not None,
            key=self.key,
            span=self.span,
        )

    def _violation_message(self, row: Row) -> str:
        if self.template is not None:
            known = {
                name: value_in_message(v) for name, v in zip(self.columns, row, strict=True) if name
            }
            return self.template.format_map(known)
        fact = fact_text(self.relation, row)
        if self.key:
            key = ", ".join(print_value(row[i]) for i in self.key)
            return f"`{self.relation}` has several facts with the key {key}"
        return f"`{fact}` {'must hold' if self.required is not None else 'must not hold'}"


def checks_of(checked: CheckedProgram) -> Iterator[Check]:
    """The checks of a program: its constraints, then the keys of its views."""
    for constraint in checked.program.constraints:
        yield _make_check(constraint, checked.relations[constraint.name])
    for relation in keyed_views(checked.relations):
        hidden = names.key_denial_name(relation.name)
        yield Check(
            f"key of {relation.name}", hidden, relation.name, key=relation.key, span=relation.span
        )


def _make_check(constraint: Constraint, relation: Relation) -> Check:
    head, name = constraint.head, constraint.name
    is_required = constraint.kind == "require"
    return Check(
        print_fact(constraint) if is_required else name,
        name,
        name,
        constraint.mode,
        constraint.is_immediate,
        typed_row(head, relation) if is_required else None,
        constraint.message,
        tuple(term.name if isinstance(term, Variable) else None for term in head.arguments),
        (),
        head.span,
    )


def print_fact(constraint: Constraint) -> str:
    """The required fact as text, by which the constraint is named."""
    values = (term.value for term in constraint.head.arguments if isinstance(term, Constant))
    return fact_text(constraint.name, tuple(values))


@dataclass(frozen=True)
class Warned:
    """Violations by a change of constraints that only warn, some of many, and their number."""

    violations: tuple[Violation, ...] = ()
    total: int = 0

    def issue(self, known: Set[Violation] = frozenset()) -> None:
        """Issue a warning for each violation that is not known."""
        level = callers_level()
        texts = [violation.message for violation in self.violations if violation not in known]
        if more := self.total - len(self.violations):
            texts.append(f"there are {more:,} more violations")
        for text in texts:
            warnings.warn(text, ConstraintWarning, stacklevel=level)


NOT_WARNED = Warned()


class ConstraintChecks:
    """The constraints of a program; as a `Participant` it stands before the persistence."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self.checks = tuple(checks)
        self.has_immediate = any(check.is_immediate for check in self.checks)
        self.watched = frozenset(check.watched for check in self.checks)
        self.last_warned = NOT_WARNED
        self._by_watched: dict[str, list[Check]] = {}
        for check in self.checks:
            if check.mode != "view":
                self._by_watched.setdefault(check.watched, []).append(check)

    @classmethod
    def of(cls, checked: CheckedProgram) -> ConstraintChecks | None:
        """Those of a program, or None if it has no constraints."""
        checks = tuple(checks_of(checked))
        return cls(checks) if checks else None

    # --- changes

    def before_change(
        self, database: MemoryDatabase, outcome: Propagated, change: ChangeSet
    ) -> None:
        """Refuse a change by which an enforced constraint is violated; keep what others warn of."""
        self.refuse(outcome, is_immediate=False)
        self.last_warned = self._warned_violations(outcome, is_immediate=False)

    def refuse(self, outcome: Propagated, is_immediate: bool) -> None:
        """The same, or only of those constraints that are immediate."""
        found, total = self._new_violations(outcome, "enforce", is_immediate)
        if found:
            raise ConstraintError(found, total)

    def immediate_warnings(self, outcome: Propagated) -> Warned:
        """The violations by an operation of immediate constraints that only warn."""
        return self._warned_violations(outcome, is_immediate=True)

    def _warned_violations(self, outcome: Propagated, is_immediate: bool) -> Warned:
        found, total = self._new_violations(outcome, "warn", is_immediate)
        return Warned(tuple(found), total) if found else NOT_WARNED

    def _new_violations(
        self, outcome: Propagated, mode: str, is_immediate: bool
    ) -> tuple[list[Violation], int]:
        """Violations by a change of constraints of a mode, some of many, and their number."""
        found: list[Violation] = []
        total = 0
        for name in outcome.reached():
            for check in self._by_watched.get(name, ()):
                if check.mode == mode and (check.is_immediate or not is_immediate):
                    rows, count = _violating_rows(check, outcome)
                    found += [check.violation(row) for row in rows]
                    total += count
        return found, total

    def named(self, name: str | None) -> Iterator[Check]:
        """The checks of that name, or all; an unknown name is an error."""
        found = [check for check in self.checks if name in (None, check.name)]
        if name is not None and not found:
            raise unknown_constraint(name, [check.name for check in self.checks])
        yield from found


def check_state(database: MemoryDatabase) -> None:
    """Refuse a first state in which an enforced constraint is violated."""
    found: list[Violation] = []
    total = 0
    for check in checks_of(database.model.checked):
        if check.mode == "enforce":
            rows, count = _violating_now(database, check)
            found += map(check.violation, rows)
            total += count
    if found:
        raise ConstraintError(found, total)


def unknown_constraint(name: str, known: Collection[str]) -> DataError:
    hint = did_you_mean(str(name), known)
    return DataError([catalogue.UNKNOWN_OPTION.at(None, what="constraint", name=name, hint=hint)])


def _violating_rows(check: Check, outcome: Propagated) -> tuple[list[Row], int]:
    """Rows by which a change violates a constraint, some of many, and their number."""
    if check.required is not None:
        is_lost = outcome.has_deleted(check.watched, check.required)
        return ([check.required], 1) if is_lost else ([], 0)
    total = outcome.inserted_count(check.watched)
    if not total:
        return [], 0
    most = SORTED_MAX if total <= SORTED_MAX else VIOLATIONS_MAX
    rows = outcome.some_inserted(check.watched, most)
    return sorted(rows, key=sort_key)[:VIOLATIONS_MAX], total


def current_violations(database: MemoryDatabase, check: Check) -> Iterator[Violation]:
    """The violations of a constraint in the current state, sorted by their facts."""
    rows, _ = _violating_now(database, check, None)
    yield from map(check.violation, rows)


def _violating_now(
    database: MemoryDatabase, check: Check, most: int | None = VIOLATIONS_MAX
) -> tuple[list[Row], int]:
    """Rows that violate a constraint in the current state, at most some of them, and how many."""
    if check.required is not None:
        key = dict(enumerate(check.required))
        is_there = any(True for _ in CurrentState(database).matching(check.watched, key))
        return ([], 0) if is_there else ([check.required], 1)
    if check.key:
        shared = _sharing_key(database.current_facts(check.relation), check.key)
        return sorted(shared, key=sort_key)[:most], len(shared)
    held = database.held_facts(check.relation)
    is_large = most is not None and isinstance(held, LazyRows) and len(held) > most
    rows = held.first(most) if is_large else held  # type: ignore[union-attr, arg-type]
    return sorted(rows, key=sort_key)[:most], len(held)


def _sharing_key(facts: Collection[Row], key: tuple[int, ...]) -> list[Row]:
    by_key: dict[Row, list[Row]] = {}
    for row in facts:
        by_key.setdefault(tuple(row[i] for i in key), []).append(row)
    return [row for rows in by_key.values() if len(rows) > 1 for row in rows]


def check_new_program(database: MemoryDatabase, checked: CheckedProgram, change: ChangeSet) -> None:
    """Refuse another program, which makes this change, if it has a constraint that is violated."""
    found = [
        check.violation(row)
        for check in checks_of(checked)
        if check.mode == "enforce"
        for row in _violating_after(database, check, change)
    ]
    if found:
        raise ConstraintError(found[:VIOLATIONS_MAX], len(found))


def _violating_after(database: MemoryDatabase, check: Check, change: ChangeSet) -> list[Row]:
    known = database.model.checked.relations
    before = database.current_facts(check.relation) if check.relation in known else set()
    after = before - change.deleted[check.relation] | change.inserted[check.relation]
    if check.required is not None:
        return [] if check.required in after else [check.required]
    return sorted(_sharing_key(after, check.key) if check.key else after, key=sort_key)


def callers_level() -> int:
    """How far up the stack of the caller the first frame outside of this package is."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
