"""Batches that violate a constraint, or that a rule rejects: as rows of the quarantine.

    deny cycle(X) :- path(X, X) say "{X} contains itself".
    incoming/0007.csv, line 3: +,thread,nut   →   nut contains itself

A constraint is about a batch as a whole, so nothing of it is taken. Rows that led to a violation
have its message as their reason. With `refuse` these are listed, and the file is mended where it
lies; with `quarantine` all rows of the batch are, so that it can be replayed wherever it came from.
Of a batch that is too large for the driver only the violations are listed, as they were found on
the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deltalog.language.values import plain_text
from deltalog.pipeline.classify import OPS, driver_rows
from deltalog.pipeline.offers import Offer, refused_with
from deltalog.pipeline.rejected import Rejected, as_whole
from deltalog.pipeline.text_files import TextRow, json_text
from deltalog.runtime.violations import ConstraintError, Violation

SIGNS = {"insert": "+", "delete": "-", "set": "+"}


class _Offered(NamedTuple):
    """A row of a batch, and the messages of violations that it led to."""

    offer: Offer
    row: TextRow
    messages: list[str]


def violating_rows(
    error: ConstraintError, offers: Sequence[Offer], most: int, is_each: bool
) -> list[Rejected]:
    """The rows of a violating batch for the quarantine: those that led to it, or `is_each`."""
    rows = [(offer, driver_rows(offer, most)) for offer in offers]
    if any(each is None for _, each in rows):
        return _only_violations(error, offers)
    offered = [_Offered(offer, row, []) for offer, each in rows for row in each or ()]
    unexplained = _give_messages(error, offered)
    named = ", ".join(f"`{name}`" for name in dict.fromkeys(v.constraint for v in error.violations))
    if is_each:
        general = "; ".join(unexplained) or f"its batch violates {named}"
        return [_reject_offered(each, each.messages or [general]) for each in offered]
    bad = [_reject_offered(each, each.messages) for each in offered if each.messages]
    if unexplained or not bad:
        bad += _only_violations(error, offers[:1])
    return as_whole([*bad, *refused_with(offers, bad)])


def _give_messages(error: ConstraintError, offered: Sequence[_Offered]) -> list[str]:
    """Give rows the messages of violations they led to; returns those that none led to."""
    by_fact: dict[tuple[str, str, object], list[_Offered]] = {}
    for each in offered:
        sign = SIGNS.get(OPS.get(each.row.op or "+", ""), "-")
        by_fact.setdefault((sign, each.offer.relation.name, each.row.row), []).append(each)
    unexplained = []
    for violation in error.violations:
        found = [row for cause in violation.causes for row in by_fact.get(cause, ())]
        for row in found:
            if violation.message not in row.messages:
                row.messages.append(violation.message)
        if not found:
            unexplained.append(violation.message)
    return unexplained


def _reject_offered(offered: _Offered, messages: Sequence[str]) -> Rejected:
    offer, row = offered.offer, offered.row
    return Rejected(
        offer.relation.name,
        "; ".join(messages),
        row.text,
        row.op,
        row.file or None,
        row.line or None,
        offer.source.name,
        offer.name,
    )


def _only_violations(error: ConstraintError, offers: Sequence[Offer]) -> list[Rejected]:
    """Violations in the place of rows; the first batch has them."""
    first = offers[0]
    found = [
        Rejected(
            violation.relation or violation.constraint,
            violation.message,
            json_text(_format_fact(violation)),
            source=first.source.name,
            batch=first.name,
        )
        for violation in error.violations
    ]
    if error.total > len(found):
        reason = f"there are {error.total - len(found):,} more violations"
        found.append(found[-1]._replace(reason=reason, row='""'))
    return as_whole([*found, *refused_with(offers, found)])


def _format_fact(violation: Violation) -> list[str]:
    return [plain_text(value) for value in violation.fact]
