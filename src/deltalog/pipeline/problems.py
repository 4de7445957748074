"""Parts of a run that fail while the others go on: sources and sinks.

Each is reported when the run has done everything else, is noted in the log so that `status` shows
it, and is tried again by the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltalog.diagnostics.report import DataError, Diagnostic


class PartsFailedError(DataError):
    """Some sources or sinks of a pipeline failed; everything else has been done."""


class Problems:
    """The problems of one run, by the part that has them: `source prices`, `sink offer`."""

    def __init__(self) -> None:
        self._found: dict[str, list[Diagnostic]] = {}

    def add(self, part: str, diagnostics: Iterable[Diagnostic]) -> None:
        self._found.setdefault(part, []).extend(diagnostics)

    def __contains__(self, part: str) -> bool:
        return part in self._found

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return [each for found in self._found.values() for each in found]

    def noted(self, before: Mapping[str, str]) -> dict[str, str | None]:
        """The difference from what was noted before, a part that is mended as None."""
        waits = "it waits for a batch of another source"
        now = {part: found[0].message if found else waits for part, found in self._found.items()}
        mended = {part: None for part in before if part not in now}
        return {p: why for p, why in {**now, **mended}.items() if before.get(p) != why}

    def raise_if_any(self) -> None:
        if self._found:
            raise PartsFailedError(self.diagnostics)
