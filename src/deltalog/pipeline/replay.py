"""Take rows back in from quarantine, once they are mended.

    {"id": "4f1c…", "op": "+", "row": {"node": "2", "euros": "x"}, "reason": "…", "line": 3}

Rows are written to a file, one JSON object on each line, a person mends `op` and `row` there and
deletes lines of rows that are not wanted, and the rows are taken in one commit. A batch that was
refused as a whole is mended where it lies, and its files are read again.

Each is taken once: the commit that takes a row has its id among its batches, that of a file its
name, under the name of the source with `MENDED` before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.pipeline.classify import classify_offers
from deltalog.pipeline.offers import Offer
from deltalog.pipeline.problems import Problems
from deltalog.pipeline.project import Project, Source
from deltalog.pipeline.quarantine import MENDED, Quarantined, quarantined_rows
from deltalog.pipeline.rejected import bad_rows_error
from deltalog.pipeline.source_columns import shown_path
from deltalog.pipeline.state import State
from deltalog.pipeline.step import Step
from deltalog.pipeline.text_files import TextReader, TextRow
from deltalog.runtime.violations import ConstraintError
from deltalog.store.records import opened_file, replacing_file

if TYPE_CHECKING:
    from deltalog.pipeline.run import Pipeline

_SHOWN = ("id", "op", "row", "reason", "source", "relation", "file", "line")
CANNOT_READ = "this row cannot be read: it is not a JSON object"


class Mended(NamedTuple):
    """A row that is to be taken back in, and where it is written now."""

    id: str
    op: str | None
    row: Any
    file: str
    line: int


def write_quarantine(project: Project, path: Path) -> int:
    """Write the rows in quarantine to a file, to be mended there; returns how many."""
    state = State(None, project.state)
    state.open(is_writer=False)
    rows = [each for each in quarantined_rows(state) if not each.is_whole]
    with replacing_file(path) as file:
        for each in rows:
            held = {**each._asdict(), "row": json.loads(each.row)}
            line = json.dumps({name: held[name] for name in _SHOWN}, ensure_ascii=False)
            file.write(f"{line}\n".encode())
    return len(rows)


def read_mended(path: Path) -> list[Mended]:
    """The rows of such a file; a `DataError` says what is wrong with its lines."""
    problems: list[Diagnostic] = []
    found: list[Mended] = []
    lines: dict[str, int] = {}
    with opened_file(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            mended = _read_line(line, shown_path(path), number)
            if mended is None:
                reason, hint = "this is not a row of the quarantine", "it has `id`, `op` and `row`"
            elif mended.id in lines:
                reason = f"the row `{mended.id}` is in line {lines[mended.id]}, too"
                hint = "each row is taken once"
            else:
                lines[mended.id] = number
                found.append(mended)
                continue
            place = f"{path}, line {number}"
            problems.append(catalogue.BAD_RECORD.at(None, place=place, reason=reason, hint=hint))
    if problems:
        raise DataError(problems)
    return found


def _read_line(line: bytes, file: str, number: int) -> Mended | None:
    try:
        held = json.loads(line)
        mended = Mended(held["id"], held["op"], held["row"], file, number)
    except (ValueError, KeyError, TypeError):
        return None
    is_fit = isinstance(mended.id, str) and isinstance(mended.op, str | None)
    return mended if is_fit else None


@dataclass
class Replay:
    """Takes rows and batches back in; what still does not fit stays in quarantine."""

    pipeline: Pipeline
    problems: Problems

    def batches(self) -> Iterator[Step]:
        """Read files again that were refused as a whole, together with those of the same name."""
        open_batches = {
            (each.source, each.batch) for each in self.pipeline.quarantined if each.is_whole
        }
        found = [
            (source, Path(source.path) / name)
            for source in self.pipeline.project.sources
            for owner, name in sorted(open_batches)
            if owner == source.name and source.kind == "changes"
        ]
        found.sort(key=lambda each: (each[1].stem, each[0].name))
        for _, group in groupby(found, key=lambda each: each[1].stem):
            yield from self._read_again(list(group))

    def _read_again(self, files: list[tuple[Source, Path]]) -> Iterator[Step]:
        database = self.pipeline.database
        try:
            offers = [
                self.pipeline.reader.file(source, self.pipeline.relation_of(source), path)
                for source, path in files
            ]
            found = classify_offers(database, offers)
            if found.bad:
                raise bad_rows_error(found.bad[0].source, found.bad[0].batch, found.bad)
            batches = tuple((MENDED + source.name, path.name) for source, path in files)
            delta = database.apply(found.insert, found.delete, found.set, batches=batches)
        except (DataError, ConstraintError) as error:
            self.problems.add(f"source {files[0][0].name}", error.diagnostics)
            return
        yield Step(batches, delta)

    def rows(self, mended: Sequence[Mended] | None) -> Iterator[Step]:
        """Take rows, in one commit: those of a file, or all there are, as they are."""
        known = {each.id: each for each in self.pipeline.quarantined if not each.is_whole}
        if mended is None:
            mended = [
                Mended(e.id, e.op, json.loads(e.row), e.file or "", e.line or 0)
                for e in known.values()
            ]
            is_strict = False
        else:
            is_strict = self.pipeline.project.bad_rows == "fail"
        offers = [self._make_offer(known[each.id], each) for each in mended if each.id in known]
        found = classify_offers(self.pipeline.database, offers)
        bad = {each.batch for each in found.bad}
        if found.bad and is_strict:
            self.problems.add(
                "replay", bad_rows_error(found.bad[0].source, "replay", found.bad).diagnostics
            )
            return
        batches = tuple((MENDED + o.source.name, o.name) for o in offers if o.name not in bad)
        if batches:
            sides = found.insert, found.delete, found.set
            try:
                delta = self.pipeline.database.apply(*sides, batches=batches)
            except ConstraintError as error:
                self.problems.add("replay", error.diagnostics)
                return
            yield Step(batches, delta, tuple(found.bad))

    def _make_offer(self, row: Quarantined, mended: Mended) -> Offer:
        source = self._source_named(row.source)
        relation = self.pipeline.relation_of(source)
        if isinstance(mended.row, dict):
            op = mended.op if source.kind in ("changes", "feed", "stream") else "+"
            reader = TextReader(source, relation, source.op)
            read = reader.row(mended.file, mended.line, op, dict(mended.row))
        else:
            text = str(mended.row)
            read = TextRow(mended.file, mended.line, mended.op, None, CANNOT_READ, text)
        return Offer(source, relation, row.id, [read])

    def _source_named(self, name: str) -> Source:
        for source in self.pipeline.project.sources:
            if source.name == name:
                return source
        reason = f"rows of a source `{name}` are in quarantine, and there is none of that name"
        hint = f"add `[sources.{name}]` again"
        raise DataError([catalogue.BAD_PROJECT.at(None, reason=reason, hint=hint)])
