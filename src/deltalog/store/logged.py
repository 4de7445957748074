"""A database whose commits are in a log, which is read as well as written.

    commits of other processes ─▶ log ─▶ `tail`, a batch of them at a time
    earlier versions           ─▶ log ─▶ `commits_of` one relation, `summaries` of all

A file has such a log, and so has a state in tables. A service follows both in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from deltalog.store.log import Commit, Summary

Listed = TypeVar("Listed", Commit, Summary)
FACTS_EACH = 1_000_000
"""Changed facts after which reading commits pauses; a commit is never divided."""


class Settings(Protocol):
    """Texts by name that belong to no version."""

    @property
    def is_writable(self) -> bool: ...
    def get(self, name: str) -> str | None:
        """The value of a setting, or None."""

    def list(self, prefix: str = "") -> dict[str, str]:
        """All settings whose names begin with a prefix, sorted by name."""

    def put(self, name: str, value: str) -> None: ...
    def delete(self, name: str) -> None: ...
    def with_next_commit(self, name: str, value: str) -> AbstractContextManager[None]:
        """Set a value in the same moment as the commit that the block makes."""


@dataclass(frozen=True)
class Tailed:
    """A commit of the log; only the changes of relations in `known` were read, if it is a set."""

    commit: Commit
    known: frozenset[str] | None = None


class Logged:
    """A database with a log; these verbs join those of `History`."""

    @property
    def settings(self) -> Settings:
        """Texts by name that belong to no version, such as what a service keeps here."""
        raise NotImplementedError

    @property
    def is_tailed(self) -> bool:
        """Whether other processes commit, so that the log must be looked at."""
        raise NotImplementedError

    def tail(self, wanted: frozenset[str]) -> list[Tailed]:
        """Take over what others have committed; the changes of `wanted` relations are read."""
        raise NotImplementedError

    def commits_of(self, relation: str, after: int, until: int) -> tuple[int, list[Commit]] | None:
        """The commits after a version, with the changes of one relation, and how far they go.

        They end before another version if they are many facts; None if the first one is too large.
        """
        raise NotImplementedError

    def summaries(self, after: int, until: int) -> tuple[int, list[Summary]]:
        """The commits after a version without their facts, and how far they go.

        They end before another version if these are many facts; nothing is derived.
        """
        raise NotImplementedError

    def log_behind(self, version: int) -> tuple[int, bool]:
        """Bytes of the log behind a version, and whether the retention alone keeps all of it."""
        raise NotImplementedError


def first_commits(commits: Iterable[Listed], facts_of: Callable[[Listed], int]) -> list[Listed]:
    """The first commits, up to a number of facts."""
    found: list[Listed] = []
    facts = 0
    for each in commits:
        found.append(each)
        facts += 1 + facts_of(each)
        if facts >= FACTS_EACH:
            break
    return found
