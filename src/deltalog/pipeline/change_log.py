"""The log of a state as a `ChangeLog`: net changes, commits and programs, on the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

import pyarrow
import pyarrow.compute as pc

from deltalog.language.ast import Row
from deltalog.pipeline.checked_frames import engine_types
from deltalog.pipeline.log import Record
from deltalog.pipeline.log_rows import DELETE, INSERT, decoded_rows
from deltalog.pipeline.state import State
from deltalog.pipeline.stored_table import StoredTable
from deltalog.runtime.changes import ChangeSet
from deltalog.store.log import Commit, Summary
from deltalog.store.programs import stored_program

Types = tuple[str, ...]


class TableLog:
    """Reads what the log has, and files that commits name; both are few where this is used."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def first(self) -> int:
        return self._state.first

    def program_at(self, version: int) -> str:
        return self._state.program_at(version)

    def programs(self) -> list[tuple[int, str, str]]:
        """Every program there was: the version from which on it counted, the time, the text."""
        return [(r.version, str(r.at), r.program) for r in self._state.records if r.program]

    def columns_at(self, version: int) -> Mapping[str, Types]:
        return _column_types(self.program_at(version))

    def net(self, after: int, until: int, relation: str | None = None) -> ChangeSet:
        """All changes after a version, up to another one, as one; `relation` selects its part."""
        return _net_of_changes(self._changes_between(after, until, relation))

    def omitted(self, after: int, until: int) -> frozenset[str]:
        """None: commits of a state have the changes of all views."""
        return frozenset()

    def commits(
        self, after: int, until: int, relations: Collection[str] | None = None
    ) -> Iterator[Commit]:
        """The commits that changed something after a version, up to another one.

        Changes are those of all relations, or of some.
        """
        changes: dict[int, list[_Change]] = {}
        for name in [None] if relations is None else sorted(relations):
            for version, *each in self._changes_between(after, until, name):
                changes.setdefault(version, []).append((version, *each))  # type: ignore[arg-type]
        for found in self.summaries(after, until):
            change = _net_of_changes(changes.get(found.version, []))
            yield Commit(found.version, found.time, found.kind, change)

    def summaries(self, after: int, until: int) -> Iterator[Summary]:
        """The same commits without their facts: nothing is read for them."""
        for record in self._records_between(after, until):
            if _is_version(record):
                assert record.at is not None
                counts = {name: sum(each) for name, each in record.counts.items()}
                yield Summary(record.version, record.at, record.kind, counts)

    def _changes_between(self, after: int, until: int, relation: str | None) -> Iterator[_Change]:
        names = {n for r in self._records_between(after, until) for n in r.counts}
        for name in sorted(names if relation is None else names & {relation}):
            yield from self._changes_from_log(name, self._state.log.changes(name, after, until))
            for version, files in self._state.files_of(name, after, until):
                for kind, folder in ((INSERT, files.inserted), (DELETE, files.deleted)):
                    if folder is not None:
                        for row in self._read_folder(
                            folder, self._types_of_change(name, kind, version)
                        ):
                            yield version, name, kind, row

    def _changes_from_log(self, name: str, logged: pyarrow.Table) -> Iterator[_Change]:
        """Rows of the log, decoded with the columns that the relation had."""
        for kind in (INSERT, DELETE):
            held = logged.filter(pc.field("change") == kind)
            versions = held.column("version").to_pylist()
            by_types: dict[Types, list[int]] = {}
            for number, version in enumerate(versions):
                by_types.setdefault(self._types_of_change(name, kind, version), []).append(number)
            for types, numbers in by_types.items():
                for number, row in zip(
                    numbers, decoded_rows(held.take(numbers), types), strict=True
                ):
                    yield versions[number], name, kind, row

    def _records_between(self, after: int, until: int) -> Iterable[Record]:
        return (r for r in self._state.records if after < r.version <= until)

    def _types_of_change(self, name: str, kind: str, version: int) -> Types:
        return self.columns_at(version if kind == INSERT else version - 1)[name]

    def _read_folder(self, folder: str, types: Types) -> list[Row]:
        data = self._state.read_rows(folder)
        columns = tuple(each for each in data.column_names if not each.endswith("__"))
        return StoredTable(self._state.location, "", columns, types).rows(data)


_Change = tuple[int, str, str, Row]


def _net_of_changes(changes: Iterable[_Change]) -> ChangeSet:
    totals: Counter[tuple[str, Row]] = Counter()
    for _, name, kind, row in changes:
        totals[name, row] += 1 if kind == INSERT else -1
    inserted: dict[str, set[Row]] = {}
    deleted: dict[str, set[Row]] = {}
    for (name, row), total in totals.items():
        if total:
            (inserted if total > 0 else deleted).setdefault(name, set()).add(row)
    return ChangeSet(inserted, deleted)


def _is_version(record: Record) -> bool:
    """Whether a commit made a version; those about sinks and refused rows do not."""
    return bool(record.counts) or record.kind == "program"


@lru_cache(maxsize=64)
def _column_types(text: str) -> Mapping[str, Types]:
    relations = stored_program(text).relations
    return {name: engine_types(relation) for name, relation in relations.items()}
