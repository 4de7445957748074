"""Requests of a client, without any transport: method, address, body, and how to read the answer.

`Client` and `AsyncClient` send the same ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from deltalog.client.answers import Committed, Tried, read_committed, read_tried
from deltalog.client.errors import bad_stream
from deltalog.client.rows import columns_of, converted_rows, facts_to_json
from deltalog.diagnostics.arguments import check_argument
from deltalog.language.ast import Row
from deltalog.runtime.violations import json_value

Result = TypeVar("Result")
RESTARTS_MAX = 10
"""How often the pages of an answer are read again because a commit came between two of them."""
Facts = Mapping[str, Iterable[Any]] | None


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One request; `is_repeatable` says that it may be sent again after a failure."""

    method: str
    path: str
    read: Callable[[Any], Result]
    body: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True


def transaction_call(
    insert: Facts, delete: Facts, put: Facts, views: Iterable[str] | None, key: str | None
) -> Call[Committed]:
    body = {**changes_to_json(insert, delete, put), "views": _view_names(views)}
    is_sendable = key is None or (isinstance(key, str) and key.isascii() and key.isprintable())
    check_argument(is_sendable, "key", key, "a key is a text of ASCII characters, in one line")
    headers = {"Idempotency-Key": str(uuid.uuid4()) if key is None else key}
    return Call("POST", "/v1/transactions", read_committed, body, headers=headers)


def what_if(insert: Facts, delete: Facts, put: Facts, views: Iterable[str] | None) -> Call[Tried]:
    body = {**changes_to_json(insert, delete, put), "views": _view_names(views)}
    return Call("POST", "/v1/what-if", read_tried, body)


def _view_names(views: Iterable[str] | None) -> list[str] | None:
    check_argument(not isinstance(views, str), "views", views, 'give a list, as in `["path"]`')
    return None if views is None else list(views)


def changes_to_json(insert: Facts, delete: Facts, put: Facts) -> dict[str, Any]:
    return {
        "insert": facts_to_json(insert),
        "delete": facts_to_json(delete),
        "set": facts_to_json(put),
    }


@dataclass(frozen=True)
class QueryPage:
    """Some of the rows of an answer; `following` is where the next ones begin."""

    version: int
    rows: list[Row]
    following: int | None


def query_call(
    text: str, parameters: Mapping[str, Any], version: int | None, start: int = 0
) -> Call[QueryPage]:
    values = {name: json_value(value) for name, value in parameters.items()}
    body = {"query": text, "parameters": values, "version": version, "start": start}
    return Call("POST", "/v1/query", _query_page, body)


def _query_page(document: Mapping[str, Any]) -> QueryPage:
    rows = converted_rows(columns_of(document["columns"]), document["rows"])
    return QueryPage(document["version"], rows, document["next"])


class QueryPages:
    """Collects the pages of an answer; if a commit comes between two, it begins anew."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.start: int | None = 0
        self._version: int | None = None
        self._restarts = 0

    def add(self, page: QueryPage) -> None:
        if self._version not in (None, page.version):
            self._restarts += 1
            if self._restarts > RESTARTS_MAX:
                raise bad_stream("query", f"it changed {RESTARTS_MAX} times between its pages")
            self.rows, self.start, self._version = [], 0, None
            return
        self._version, self.start = page.version, page.following
        self.rows += page.rows


def relation_call(name: str) -> Call[dict[str, Any]]:
    return Call("GET", f"/v1/relations/{quote(name, safe='')}", dict)


def get_call(path: str, **parameters: Any) -> Call[dict[str, Any]]:
    known = {name: value for name, value in parameters.items() if value is not None}
    return Call("GET", path, dict, parameters=known)


def post_call(path: str, body: Any, is_repeatable: bool = True) -> Call[dict[str, Any]]:
    return Call("POST", path, dict, body, is_repeatable=is_repeatable)


def stream_path(view: str) -> str:
    return f"/v1/views/{quote(view, safe='')}/stream"


def selection_parameters(
    view: str,
    bindings: Mapping[str, Any] | None,
    every_seconds: float | None,
    every_commits: int | None,
) -> dict[str, str]:
    """The parameters that select facts of a view, and how often it is reported."""
    found = {
        f"{view}.{name}": _parameter_text(value) for name, value in sorted((bindings or {}).items())
    }
    if every_seconds is not None:
        found["every_seconds"] = str(every_seconds)
    if every_commits is not None:
        found["every_commits"] = str(every_commits)
    return found


def _parameter_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(json_value(value))


def known_values(**values: Any) -> dict[str, Any]:
    """A body with the values that are given."""
    return {name: value for name, value in values.items() if value is not None}
