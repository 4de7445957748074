"""Facts as JSON, and back: arrays by position or objects by name, dates and decimals as text.

{"src": 1, "dst": 2}  or  [1, 2]      a fact of edge(src: int, dst: int)
?path.src=1                           a binding in an address; `?src=1` is not one
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from deltalog.analysis.relation import Relation, Relations
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Column, Query, Row, Value
from deltalog.language.values import VALUE_ERRORS, parse_value, plain_text
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.parameters import parameter_types, read_parameters
from deltalog.runtime.violations import json_value
from deltalog.service.problems import http_problem
from deltalog.store.json_lines_file import by_name, from_json
from deltalog.store.records import JsonObject, Place, record_row, shown_cell

NULL = "null"
"""How null is written in an address, where the column may be null and holds no text."""


def row_to_json(row: Iterable[Value]) -> list[object]:
    return [json_value(value) for value in row]


def rows_to_json(rows: Iterable[Row]) -> list[list[object]]:
    return [row_to_json(row) for row in rows]


def change_to_json(change: ChangeSet, most: int) -> dict[str, dict[str, list[list[object]]]]:
    """Both sides by relation, in the order of the change, up to a number of facts."""
    found: dict[str, dict[str, list[list[object]]]] = {"inserted": {}, "deleted": {}}
    for op, relation, row in islice(change, most):
        side = found["inserted" if op == "+" else "deleted"]
        side.setdefault(relation, []).append(row_to_json(row))
    return found


def rows_from_json(relation: Relation, rows: Iterable[Any]) -> list[Row]:
    """Facts of a relation, or a `DataError` with the place of the one that does not fit."""
    converters = [from_json(column) for column in relation.columns]
    found = []
    for number, record in enumerate(rows, start=1):
        place = Place(Path(relation.name), "row", number)
        if isinstance(record, Mapping):
            cells = by_name(place, relation.columns, JsonObject(record.items()))
        elif isinstance(record, list):
            cells = record
        else:
            raise place.wrong(f"{shown_cell(record)} is neither an array nor an object")
        found.append(record_row(place, relation.columns, converters, cells))
    return found


def parameters_from_json(
    query: Query, values: Mapping[str, Any], relations: Relations
) -> dict[str, Any]:
    """Values of the parameters of a query, those that are text in JSON only as their types."""
    types = parameter_types(query, relations)
    texts = {
        name: value
        for name, value in values.items()
        if isinstance(value, str) and types.get(name) in _TEXTS
    }
    return {**values, **read_parameters(query, texts, relations)}


_TEXTS = ("date", "decimal", "timestamp")
"""Types whose values JSON has as text."""


def bindings_of(parameters: Iterable[tuple[str, str]], relation: Relation) -> dict[str, Value]:
    """The bindings of a view in an address, `path.src=1`, as values of its columns."""
    columns = {column.name: column for column in relation.columns}
    found: dict[str, Value] = {}
    for name, text in parameters:
        view, dot, column = name.partition(".")
        if not dot or view != relation.name:
            continue
        if column not in columns:
            reason = f"`{relation.name}` has no column `{column}`"
            hint = did_you_mean(column, columns)
            raise http_problem(400, service_catalogue.BAD_REQUEST, reason=reason, hint=hint)
        if column in found:
            reason = f"`{name}` is bound twice"
            raise http_problem(400, service_catalogue.BAD_REQUEST, reason=reason)
        found[column] = value_from_text(columns[column], text)
    return found


def value_from_text(column: Column, text: str) -> Value:
    """A value of a column, as it is written in an address or in a grant."""
    if text == NULL and column.nullable and column.type != "str":
        return None
    try:
        return parse_value(text, column.type or "str")
    except VALUE_ERRORS:
        reason = f"`{text}` does not fit column `{column.name}`, which is {column.type}"
        raise http_problem(400, service_catalogue.BAD_REQUEST, reason=reason) from None


def value_from_json(column: Column, value: object) -> Value:
    """A value of a column in the body of a request: text is read as in an address."""
    if isinstance(value, bool):
        return value_from_text(column, "true" if value else "false")
    return value_from_text(column, NULL if value is None else str(value))


def value_to_text(value: Value) -> str:
    return NULL if value is None else str(plain_text(value))
