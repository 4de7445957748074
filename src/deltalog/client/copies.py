"""The part of a copy of a view that does not depend on how requests are sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deltalog.client import calls
from deltalog.client.deltas import ViewDelta
from deltalog.client.follower import Follower, Message
from deltalog.client.graph import Graph
from deltalog.client.rows import RowFormat, columns_of
from deltalog.client.stored_copy import StoredCopy
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError

IDLE_SECONDS = 0.02


@dataclass(frozen=True)
class Polled:
    """An answer of a stream."""

    messages: list[Message]
    offset: str
    cursor: str | None
    is_up_to_date: bool


def read_poll(response: httpx.Response) -> Polled:
    headers = response.headers
    messages = [] if response.status_code == 204 else response.json()
    is_up_to_date = headers.get("stream-up-to-date") == "true"
    return Polled(
        messages, headers["stream-next-offset"], headers.get("stream-cursor"), is_up_to_date
    )


class CopyOfView:
    """Rows of a view as of one version, and where its stream goes on.

    Iteration, `len` and `in` are over its rows: tuples, or objects of the dataclass `into`.
    """

    def __init__(
        self, name: str, selection: Mapping[str, str], file: str | Path | None, into: type | None
    ) -> None:
        self.name = name
        self._into = into
        self._path = calls.stream_path(name)
        self._lock = threading.RLock()
        self._is_closed = False
        identity = json.dumps([name, dict(selection)], ensure_ascii=False)
        copy = StoredCopy(None if file is None else Path(file), identity)
        self._follower = Follower(name, selection, copy)
        if copy.columns is not None:
            self._follower.row_format = RowFormat(name, columns_of(copy.columns), into)
            self._follower.row_format.maker()

    @property
    def version(self) -> int | None:
        """The version of the database that the copy is of; None before the first read."""
        return self._follower.version

    @property
    def offset(self) -> str | None:
        return self._follower.copy.offset

    @property
    def rows(self) -> frozenset[Any]:
        """All rows, as of `version`."""
        return frozenset(self)

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            rows = list(self._follower.copy.rows.values())
        row_format = self._follower.row_format
        return iter(()) if row_format is None else map(row_format.maker(), rows)

    def __len__(self) -> int:
        return len(self._follower.copy.rows)

    def graph(self) -> Graph:
        """The rows of a binary view as one object; deltas can be applied to it."""
        with self._lock:
            rows = list(self._follower.copy.rows.values())
        row_format = self._follower.row_format
        if row_format is not None and len(row_format.columns) != 2:
            reason = f"it has {len(row_format.columns)} columns, and an arc has two"
            entry = service_catalogue.ROW_MISFIT
            raise DataError([entry.at(None, view=self.name, name="Graph", reason=reason)])
        return Graph((row[0], row[1]) for row in rows)

    # --- for those who send requests

    @property
    def _needs_format(self) -> bool:
        return self._follower.row_format is None

    def _use_format(self, relation: dict[str, Any]) -> None:
        self._follower.row_format = RowFormat.read(relation, self._into)

    def _restart_copy(self, relation: dict[str, Any]) -> None:
        with self._lock:
            self._follower.restart(RowFormat.read(relation, self._into))

    def _poll_parameters(self, is_live: bool, wait_for: str | None) -> dict[str, str]:
        found = self._follower.parameters(is_live)
        return found if wait_for is None else {**found, "wait_for": wait_for}

    def _apply_polled(self, polled: Polled) -> list[ViewDelta]:
        with self._lock:
            if self._is_closed:
                return []
            return self._follower.received(polled.messages, polled.offset, polled.cursor)

    def _is_idle(self, started: float) -> bool:
        """Whether an empty answer arrived at once, as from a service that is being stopped."""
        return self.version is not None and time.monotonic() - started < IDLE_SECONDS

    def _close_copy(self) -> None:
        with self._lock:
            self._is_closed = True
            self._follower.copy.close()
