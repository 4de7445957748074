"""Violations of constraints, and the one exception that refuses a change because of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deltalog.diagnostics import catalogue, view_catalogue
from deltalog.diagnostics.report import DataError, DeltalogError, Diagnostic
from deltalog.language.ast import Row
from deltalog.language.values import plain_text
from deltalog.runtime.causes import Cause
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.derivation import Derivation, fact_text
from deltalog.runtime.realization import Budget, Realizations
from deltalog.source import Span

SHOWN_MAX = 10
"""Violations that are printed; the exception has more of them."""
CAUSES_SHOWN = 3


@dataclass(frozen=True)
class Violation:
    """A fact that must not hold, or, of a required one, that must.

    `causes` are the base changes of the refused transaction that led to it: `("+", relation, row)`
    or `("-", …)`. `derivation` derives it, or did so before.
    """

    constraint: str
    fact: Row
    message: str
    causes: tuple[Cause, ...] = ()
    derivation: Derivation | None = field(default=None, compare=False, repr=False)
    relation: str = ""
    is_required: bool = False
    is_rejection: bool = field(default=False, repr=False)
    key: tuple[int, ...] = field(default=(), compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has; what it has no form for is text."""
        return {
            "constraint": self.constraint,
            "relation": self.relation,
            "fact": [json_value(value) for value in self.fact],
            "message": self.message,
            "causes": [[op, name, [json_value(v) for v in row]] for op, name, row in self.causes],
        }

    @property
    def diagnostic(self) -> Diagnostic:
        if self.is_rejection:
            return catalogue.REJECTED.at(self.span, message=self.message, rule=self.constraint)
        fact = fact_text(self.relation, self.fact)
        shown = [f"{op}{fact_text(name, row)}" for op, name, row in self.causes[:CAUSES_SHOWN]]
        more = len(self.causes) - len(shown)
        shown += [f"{more} more"] if more else []
        reason = f", because of {', '.join(shown)}" if shown else ""
        return catalogue.CONSTRAINT_VIOLATED.at(
            self.span,
            message=self.message,
            constraint=self.constraint,
            fact=f"the absence of {fact}" if self.is_required else fact,
            reason=reason,
        )


def json_value(value: object) -> object:
    """The value as JSON has it: null, truth values, numbers and text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return plain_text(value)  # type: ignore[arg-type]


class ConstraintError(DeltalogError):
    """A change would violate constraints, or was rejected by a rule; nothing has changed.

    `violations` has the violating facts, or the first of many: `total` is their number. `base` is
    the refused change of base relations, if active rules have added to it.
    """

    base: ChangeSet | None = None
    searcher: Callable[..., Realizations] | None = None

    def __init__(self, violations: Sequence[Violation], total: int) -> None:
        self.violations = tuple(violations)
        self.total = total
        super().__init__(_shown_diagnostics(self.violations, total))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.violations, self.total)

    def repairs(
        self,
        *,
        budget: Budget | None = None,
        fixed: Iterable[str] = (),
        costs: Mapping[str, float] | None = None,
    ) -> Realizations:
        """Search the minimal additions by which the refused change satisfies all constraints.

        Each has its `additions`; `apply` commits them with the change, as one transaction. It is
        searched when it is called, in the state that has refused the change.
        """
        if self.searcher is None:
            raise DataError([view_catalogue.NO_REPAIRS.at(None)])
        return self.searcher(budget, fixed, costs)

    @property
    def code(self) -> str:
        return self.codes[0]

    @property
    def constraint(self) -> str:
        """The name of the first constraint that is violated."""
        return self.violations[0].constraint


def _shown_diagnostics(violations: Sequence[Violation], total: int) -> Iterable[Diagnostic]:
    shown = [each.diagnostic for each in violations[:SHOWN_MAX]]
    if total > len(shown):
        shown[-1] = replace(shown[-1], hint=f"there are {total - len(shown):,} more violations")
    return shown


class ConstraintWarning(UserWarning):
    """A change has violated a constraint whose mode is `warn`; it was made all the same."""
