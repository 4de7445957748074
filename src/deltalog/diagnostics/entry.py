"""An entry of the catalogue of errors: what `catalogue.py` and `amosql_catalogue.py` consist of."""

from __future__ import annotations

from dataclasses import dataclass

from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.source import Span


@dataclass(frozen=True)
class Entry:
    """One kind of problem; `at` makes a diagnostic of it."""

    code: str
    message: str
    note: str | None = None

    def at(
        self,
        span: Span | None,
        *others: Label,
        label: str = "",
        hint: str | None = None,
        **words: object,
    ) -> Diagnostic:
        labels = ((Label(span, label),) if span is not None else ()) + others
        note = self.note and self.note.format(**words)
        return Diagnostic(self.code, self.message.format(**words), labels, note, hint)
