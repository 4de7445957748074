"""A client of a stream that notes what it was told, to be compared with the truth afterwards.

    told:   (version 3) ── messages ──▶ (version 5) ── messages ──▶ (version 6) …

It disconnects at random and resumes from its last offset; the service may be killed under it. What
it knows of a version must be right for every version that it was told of, in its quality:

exact       its copy is the view
potential   its messages have every change between two versions, and nothing that never held
touched     there was a message if the view is another one
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from deltalog.service.offsets import Offset, read_offset

Rows = frozenset[tuple[Any, ...]]
TIMEOUT = httpx.Timeout(10.0, read=1.0)
"""After a second of silence it disconnects."""
Versions = Mapping[tuple[str, int], Rows]
"""The rows of a view, by history and version."""


@dataclass(frozen=True)
class Step:
    """What came between two offsets; `before` is None if it began with a snapshot."""

    before: Offset | None
    after: Offset
    inserted: Rows
    deleted: Rows
    copy: Rows
    has_messages: bool
    is_potential: bool


class Recorder(threading.Thread):
    """Follows one view in one mode and quality, while there is an `address` of its stream."""

    def __init__(self, view: str, mode: str, quality: Mapping[str, str], seed: int) -> None:
        super().__init__(daemon=True)
        self.view, self.quality, self._mode = view, dict(quality), mode
        self._random = random.Random(seed)
        self._client = httpx.Client(timeout=TIMEOUT, trust_env=False, verify=False)
        self.address: str | None = None
        self.is_over = False
        self.steps: list[Step] = []
        self.expired = 0
        self.problem: BaseException | None = None
        self._offset = "-1"
        self._is_quiet = False
        self._place: Offset | None = None
        self._state: dict[str, tuple[Any, ...]] = {}
        self._messages: list[dict[str, Any]] = []

    @property
    def precision(self) -> str:
        return self.quality.get("precision", "exact")

    def run(self) -> None:
        try:
            while not self.is_over:
                time.sleep(0.02)  # others work, too
                if self.address is None:
                    continue
                try:
                    self._read(self.address)
                    self._is_quiet = False
                except httpx.TransportError as cut:
                    self._messages.clear()  # what has no offset behind it is sent again
                    self._is_quiet = isinstance(cut, httpx.ReadTimeout)
        except BaseException as problem:
            self.problem = problem

    def _read(self, address: str) -> None:
        live = {"live": self._mode}
        if self._mode == "catch-up" or self._is_quiet:  # ask where the stream is
            live = {}
        asked = {"offset": self._offset, **live, **self.quality}
        with self._client.stream("GET", address, params=asked) as response:
            if response.status_code == 410:
                self.expired += 1
                self._offset, self._place = "-1", None
                return
            if response.status_code == 503:
                return
            assert response.status_code in (200, 204), response.read()
            if live and self._mode == "sse":
                self._follow(response)
                return
            response.read()
            self._messages += response.json() if response.content else []
            self._note(response.headers["Stream-Next-Offset"])

    def _follow(self, response: httpx.Response) -> None:
        kind = ""
        for line in response.iter_lines():
            if line.startswith("event:"):
                kind = line[6:].strip()
            elif line.startswith("data:") and kind == "data":
                self._messages += json.loads(line[5:])
            elif line.startswith("data:"):
                self._note(json.loads(line[5:])["streamNextOffset"])
                if self.is_over or self._random.random() < 0.1:
                    return  # disconnect

    def _note(self, offset: str) -> None:
        """Apply what came before an offset, and go on behind it."""
        found = read_offset(offset)
        assert found is not None
        inserted, deleted = set(), set()
        is_potential = False
        for message in self._messages:
            headers = message["headers"]
            is_potential = is_potential or headers.get("precision") == "potential"
            if headers.get("control") == "reset":
                self._state, self._place = {}, None
            elif self.precision == "touched":
                continue
            elif headers.get("operation") == "delete":
                deleted.add(tuple(message["old_value"].values()))
                self._state.pop(message["key"], None)
            elif "operation" in headers:
                inserted.add(tuple(message["value"].values()))
                self._state[message["key"]] = tuple(message["value"].values())
                if message.get("old_value"):
                    deleted.add(tuple(message["old_value"].values()))
        has_messages, self._messages = bool(self._messages), []
        self._offset = offset
        if found.is_complete:
            made = frozenset(inserted), frozenset(deleted), frozenset(self._state.values())
            self.steps.append(Step(self._place, found, *made, has_messages, is_potential))
            self._place = found

    def has_reached(self, history: str, version: int) -> bool:
        """Whether it was told of this version or a later one; also if it has failed."""
        if self.problem is not None:
            return True
        last = self.steps[-1].after if self.steps else None
        return last is not None and last.history == history and last.version >= version

    def end(self, timeout_seconds: float) -> None:
        self.is_over = True
        self.join(timeout_seconds)
        self._client.close()

    def check(self, versions: Versions) -> None:
        """Compare all that it was told with the view at each of its versions."""
        assert self.problem is None, repr(self.problem)
        assert self.steps
        for step in self.steps:
            after = versions[step.after.history, step.after.version]
            where = self.view, self.quality, step
            if step.before is None:
                assert self.precision == "touched" or step.copy == after, where
                continue
            before = versions[step.before.history, step.before.version]
            if self.precision == "touched":
                assert before == after or step.has_messages, where
            elif self.precision == "potential":
                assert after - before <= step.inserted, where
                assert before - after <= step.deleted, where
            if self.precision == "exact" or (
                self.precision == "potential" and not any(x.is_potential for x in self.steps)
            ):
                assert not step.is_potential, where
                assert step.copy == after, where
