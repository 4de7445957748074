"""Rows as tuples or dataclasses, and back to JSON.

    @dataclass(frozen=True)
    class Access:                    access("ada", "handbook")  ↔  Access(user="ada", title=…)
        user: str
        title: str

Fields are matched with columns by name; if no name fits and there are as many fields as columns,
by position: columns of a view without a declaration are named after variables of its rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Column, Row
from deltalog.language.values import VALUE_ERRORS
from deltalog.runtime.violations import json_value
from deltalog.store.json_lines_file import from_json

Made = Callable[[Row], Any]


@dataclasses.dataclass(frozen=True)
class RowFormat:
    """The columns of a view, and how its rows are shown to the user of a client."""

    view: str
    columns: tuple[Column, ...]
    into: type | None = None

    @staticmethod
    def read(document: Mapping[str, Any], into: type | None = None) -> RowFormat:
        """The format of a relation that a service has described."""
        columns = columns_of(document["columns"])
        found = RowFormat(document["name"], columns, into)
        found.maker()
        return found

    def row(self, value: Mapping[str, Any]) -> Row:
        """The values of a message, in the order and of the types of the columns."""
        converters = [from_json(column) for column in self.columns]
        cells = [value[column.name] for column in self.columns]
        return _convert_row(converters, cells)

    def rows(self, values: Iterable[Mapping[str, Any]]) -> list[Row]:
        converters = [from_json(column) for column in self.columns]
        names = [column.name for column in self.columns]
        return [_convert_row(converters, [value[name] for name in names]) for value in values]

    def maker(self) -> Made:
        """The function that shows a row: the tuple itself, or an object of the dataclass."""
        into = self.into
        if into is None:
            return lambda row: row
        if not dataclasses.is_dataclass(into):
            raise self._row_misfit("it is not a dataclass")
        fields = [field.name for field in dataclasses.fields(into) if field.init]
        names = [column.name for column in self.columns]
        if not set(fields) & set(names) and len(fields) == len(names):
            return lambda row: into(*row)
        missing = [name for name in fields if name not in names]
        if missing:
            raise self._row_misfit(f"`{self.view}` has no column `{missing[0]}`")
        places = [names.index(name) for name in fields]
        return lambda row: into(*(row[place] for place in places))

    def _row_misfit(self, reason: str) -> DataError:
        name = getattr(self.into, "__name__", str(self.into))
        made = service_catalogue.ROW_MISFIT.at(None, name=name, view=self.view, reason=reason)
        return DataError([made])


def columns_of(documents: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(each["name"], each["type"], nullable=each["nullable"], key=each["key"])
        for each in documents
    )


def converted_rows(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows of an answer as values of their columns."""
    converters = [from_json(column) for column in columns]
    return [_convert_row(converters, row) for row in rows]


def _convert_row(converters: Sequence[Callable[[Any], Any]], cells: Sequence[Any]) -> Row:
    try:
        return tuple(convert(cell) for convert, cell in zip(converters, cells, strict=True))
    except VALUE_ERRORS as error:
        reason = f"{list(cells)!r} does not fit its columns"
        made = service_catalogue.BAD_STREAM.at(None, view="rows", reason=reason)
        raise DataError([made]) from error


def facts_to_json(facts: Mapping[str, Iterable[Any]] | None) -> dict[str, list[Any]]:
    """Facts to send, by relation; a fact is a sequence, a mapping or a dataclass object."""
    hint = 'give a mapping from relations to rows, as in `{"edge": [(1, 2)]}`'
    check_argument(facts is None or isinstance(facts, Mapping), "facts", facts, hint)
    return {name: [fact_to_json(fact) for fact in rows] for name, rows in (facts or {}).items()}


def fact_to_json(fact: Any) -> Any:
    if dataclasses.is_dataclass(fact) and not isinstance(fact, type):
        return [json_value(getattr(fact, each.name)) for each in dataclasses.fields(fact)]
    if isinstance(fact, Mapping):
        return {name: json_value(value) for name, value in fact.items()}
    hint = "a fact is a sequence, a mapping or a dataclass object, and facts are in a list"
    check_argument(isinstance(fact, Sequence) and not isinstance(fact, str), "fact", fact, hint)
    return [json_value(value) for value in fact]
