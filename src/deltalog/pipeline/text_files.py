"""CSV and JSON lines of sources, read record by record: the same on the driver and in tasks.

    op,node,euros                  line 2   op +   (1, 1.5)
    +,1,1.5                  →     line 3   op +   "x" does not fit column `euros`, which is decimal
    +,2,x

CSV is that of RFC 4180, in UTF-8, with a header: a quote inside quotes is doubled, a value in
quotes may have line breaks, a line ends with a line feed, before which a carriage return does not
count. An empty value is null; in a column of text `""` is the empty text. JSON has one object on
each line; a name that is left out is null, and values have their types: `"5"` is not an int.

A record that does not fit has a reason, its line and its values. What concerns a file as a whole is
an error: it cannot be read, it has no header, a quote is never closed, columns are not those of the
relation. The readers of Spark replace broken characters, lose empty texts and read on behind an
open quote, so they are used only for formats and options that are unknown here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from deltalog.analysis.columns import Relation
from deltalog.language.ast import Column, Row, Value
from deltalog.language.values import VALUE_ERRORS, parse_value, plain_text
from deltalog.pipeline.csv_records import csv_records, escape_undecodable, is_broken, text_lines
from deltalog.pipeline.project import Source
from deltalog.pipeline.source_columns import (
    Place,
    check_columns,
    leaves_values_out,
    shorten_text,
    shown_path,
)
from deltalog.store.json_lines_file import from_json
from deltalog.store.records import Converter, unreadable_file

OPTIONS = {"csv": frozenset({"sep", "delimiter", "nullValue"}), "json": frozenset[str]()}
"""The options of Spark that are known here."""
DELETES = ("-", "delete")
DELETE_KEY = "delete by key"
"""The operation of a row that deletes what has its key, whatever the other values are."""
ONLY_DELETIONS = "columns are left out, and only deletions go by key"
NOT_JSON = "this row cannot be read: it is not a JSON object, or has a name twice"


class TextRow(NamedTuple):
    """A record of a file: a checked row, or the reason why there is none, and its values."""

    file: str
    line: int
    op: str | None
    row: Row | None
    reason: str | None
    values: dict[str, Any] | str

    @property
    def text(self) -> str:
        return json_text(self.values)


def json_text(values: Any) -> str:
    """The values of a row as they are kept in quarantine; of one that cannot be read, its text."""
    text = json.dumps(values, ensure_ascii=False, default=_format_json_value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair, written as `\\ud800`
        return json.dumps(values, default=_format_json_value)
    return text


def _format_json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        near = float(value)
        return near if Decimal(repr(near)) == value else str(value)
    return plain_text(value)


def is_known(source: Source) -> bool:
    """Whether files of a source can be read here."""
    options = OPTIONS.get(source.format)
    return options is not None and "://" not in source.path and options.issuperset(source.options)


def files_of(path: Path) -> list[Path]:
    """A file, or the files of a folder; names that begin with `.` or `_` are passed over."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))


@dataclass(frozen=True)
class TextReader:
    """Reads files of a source; `op` is the column of operations, if it has one."""

    source: Source
    relation: Relation
    op: str | None = None

    def rows(self, path: Path) -> Iterator[TextRow]:
        """The records of a file, in order; a `DataError` concerns the file as a whole."""
        name = shown_path(path)
        for record in (
            self._read_csv(path) if self.source.format == "csv" else self._read_json(path)
        ):
            line, values, reason = record
            if isinstance(values, str):
                yield TextRow(name, line, None, None, reason, values)
                continue
            op = values.pop(self.op, None) if self.op else None
            yield self.row(name, line, None if op is None else str(op), values)

    def row(self, file: str, line: int, op: str | None, values: dict[str, Any]) -> TextRow:
        """The row that values by name stand for."""
        reason = self._reason_of_unknown(values)
        is_by_key = reason is None and op in DELETES and self._has_key_only(values)
        if is_by_key:
            op = DELETE_KEY
        found: list[Value] = []
        for column, convert in zip(self.relation.columns, self._converters_of_columns, strict=True):
            if is_by_key and not column.key:
                found.append(None)
                continue
            value = values.get(column.name)
            try:
                found.append(convert(value))
            except VALUE_ERRORS:
                wanted = f"column `{column.name}`, which is {column.type}"
                reason = reason or f"{shorten_text(json_text(value))} does not fit {wanted}"
        return TextRow(file, line, op, None if reason else tuple(found), reason, values)

    @cached_property
    def _converters_of_columns(self) -> list[Converter]:
        convert = {"csv": _from_field, "json": from_json}.get(self.source.format, _from_either)
        return [convert(column) for column in self.relation.columns]

    def _reason_of_unknown(self, values: dict[str, Any]) -> str | None:
        known = self._column_names
        unknown = (n for n, value in values.items() if n not in known and value is not None)
        return next((f"column `{name}` is unknown" for name in unknown), None)

    @cached_property
    def _column_names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.relation.columns)

    def _has_key_only(self, values: dict[str, Any]) -> bool:
        """Whether a row leaves out everything but the key: where null is a value, by no name."""
        others = [column for column in self.relation.columns if not column.key]
        return (
            bool(self.relation.key)
            and bool(others)
            and all(
                column.name not in values
                or (not column.nullable and values[column.name] in (None, ""))
                for column in others
            )
        )

    # --- formats

    def _read_csv(self, path: Path) -> Iterator[_Record]:
        options = self.source.options
        null = options.get("nullValue")
        records = csv_records(path, options.get("sep", options.get("delimiter", ",")))
        header = next(records, None)
        if header is None or header.fields is None:
            missing = "it has no header" if header is None else str(header.reason)
            raise unreadable_file(Path(shown_path(path)), missing)
        renamed, ignored = self.source.columns, self.source.ignore
        names = [renamed.get(str(field), str(field)) for field in header.fields]
        kept = [at for at, name in enumerate(names) if name not in ignored]
        place = Place(self.source.name, shown_path(path), header.line, header.text)
        self._check_header(place, [names[at] for at in kept])
        is_by_key = leaves_values_out(self.relation, [names[at] for at in kept], self.op)
        for line, fields, text, reason in records:
            if fields is None:
                yield _Record(line, text, reason)
            elif len(fields) != len(names):
                counts = f"it has {len(fields)} values, the header has {len(names)}"
                yield _Record(line, text, f"this row cannot be read: {counts}")
            else:
                found = {names[at]: None if fields[at] == null else fields[at] for at in kept}
                if is_by_key and found[str(self.op)] not in DELETES:
                    yield _Record(line, text, ONLY_DELETIONS)
                else:
                    yield _Record(line, found, None)

    def _check_header(self, place: Place, names: list[str]) -> None:
        twice = [f"`{name}` occurs twice" for name in {*names} if names.count(name) > 1]
        check_columns(place, self.relation, names, self.op, misfits=sorted(twice))

    def _read_json(self, path: Path) -> Iterator[_Record]:
        renamed, ignored = self.source.columns, self.source.ignore
        is_first = True
        for line, written in text_lines(path):
            text = written.strip()
            if not text:
                continue
            found = None if is_broken(text) else _decode_object(text)
            named = {renamed.get(name, name): value for name, value in (found or {}).items()}
            if found is None or len(named) < len(found):
                yield _Record(line, escape_undecodable(text), NOT_JSON)
                continue
            kept = {name: value for name, value in named.items() if name not in ignored}
            if is_first:
                place = Place(self.source.name, shown_path(path), line, text)
                check_columns(place, self.relation, kept, self.op, is_loose=True)
            is_first = False
            yield _Record(line, kept, None)


class _Record(NamedTuple):
    """Values by the names of columns, or a text and the reason why it has none."""

    line: int
    values: dict[str, Any] | str
    reason: str | None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of_pairs,
    parse_float=Decimal,  # digit for digit, should the column be a decimal
    parse_constant=_refuse_constant,
)


def _decode_object(text: str) -> dict[str, Any] | None:
    try:
        found = _DECODER.decode(text)
    except (*VALUE_ERRORS, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _from_field(column: Column) -> Converter:
    """A function from a field of CSV, None if it is empty and has no quotes, to a value."""
    type_, is_text = str(column.type), column.type == "str"

    def convert(field: Any) -> Value:
        if field is not None and not isinstance(field, str):  # mended by hand
            field = plain_text(field)
        if field is not None and (field or is_text):
            return parse_value(field, type_)
        if not column.nullable:
            raise ValueError("null")
        return None

    return convert


def _from_either(column: Column) -> Converter:
    """A function from a value of other formats, as the quarantine has it, to a value."""
    typed, written = from_json(column), _from_field(column)

    def convert(value: Any) -> Value:
        return written(value) if isinstance(value, str) else typed(value)

    return convert
