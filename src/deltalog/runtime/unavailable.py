"""The verbs of `History` and `Upkeep` where they are not available: each is the same error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError

_A_FILE = "a database in a file has it: `deltalog.connect(path, program=…)`"


class WithoutHistory:
    """A database that has its last state only; `kind` completes "a database …"."""

    kind = "in memory"
    instead: Mapping[str, str] = {}
    """What to use instead of a verb, if it is not a file."""

    def _check_version_known(self, version: int | None) -> None:
        if version is not None:
            hint = "`deltalog.connect(path, program=…)` creates a file that keeps them"
            raise DataError(
                [catalogue.NO_HISTORY.at(None, version=version, kind=self.kind, hint=hint)]
            )

    def _refuse_verb(self, verb: str) -> NoReturn:
        hint = self.instead.get(verb, _A_FILE)
        raise DataError([catalogue.VERB_UNAVAILABLE.at(None, verb=verb, kind=self.kind, hint=hint)])

    @property
    def first_version(self) -> int:
        self._refuse_verb("first_version")

    @property
    def readers(self) -> Mapping[str, int]:
        self._refuse_verb("readers")

    def relations_at(self, version: int) -> Mapping[str, Any]:
        self._refuse_verb("relations_at")

    def delta(self, first: int, last: int | None = None, views: Iterable[str] | None = None) -> Any:
        self._refuse_verb("delta")

    def commits(
        self,
        after: int | None = None,
        until: int | None = None,
        views: Iterable[str] | None = None,
    ) -> Sequence[Any]:
        self._refuse_verb("commits")

    def programs(self) -> Sequence[tuple[int, str, str]]:
        self._refuse_verb("programs")

    def register(self, reader: str) -> int:
        self._refuse_verb("register")

    def acknowledge(self, reader: str, version: int) -> None:
        self._refuse_verb("acknowledge")

    def unregister(self, reader: str) -> None:
        self._refuse_verb("unregister")


class WithoutUpkeep(WithoutHistory):
    """A database that has neither history nor anything to care for outside memory."""

    def backup(self, target: str | Path) -> None:
        self._refuse_verb("backup")

    def compact(self, retention: Any = None) -> Any:
        self._refuse_verb("compact")

    def verify(self, *, engine: str | None = None) -> Any:
        self._refuse_verb("verify")
