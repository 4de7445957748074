"""Facts and changes as they would be typed at the prompt.

+edge(1, 2).
-path(1, 3).
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from deltalog.language.ast import Row
from deltalog.language.values import print_value
from deltalog.runtime.changes import ChangeSet


def change_lines(change: ChangeSet) -> Iterator[Text]:
    """A line per fact, green for insertions, red for deletions."""
    for op, name, row in change:
        yield Text(f"{op}{fact_text(name, row)}", "green" if op == "+" else "red")


def firing_lines(change: ChangeSet) -> Iterator[Text]:
    """A comment for each rule and instance that a transaction has fired, in order.

    Those by which a what-if would be refused come last.
    """
    for rule, instance in change.firings:
        yield Text(f"% fired {fact_text(rule, instance)}", "yellow")
    for violation in change.rejections:
        yield Text(f"% rejected by {violation.constraint}: {violation.message}", "red")


def fact_text(name: str, row: Row) -> str:
    """A fact as it would be written.

    >>> fact_text("salary", ("ann", 5)), fact_text("rainy", ())
    ('salary("ann", 5).', 'rainy.')
    """
    values = ", ".join(print_value(value) for value in row)
    return f"{name}({values})." if row else f"{name}."
