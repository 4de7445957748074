"""Idempotency keys: a transaction that is offered twice is applied once, also after a restart.

    POST /v1/transactions   Idempotency-Key: 7f…     version 17
    POST /v1/transactions   Idempotency-Key: 7f…     version 17 again, and nothing has happened

The key is written in the commit that it belongs to, so there is no moment in which one of the two
is there and the other is not. It is remembered with a hash of the body, under a hash of who called
and its text. A transaction that was refused is not remembered: it may be offered again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import time
from typing import Protocol

from deltalog.diagnostics import service_catalogue
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.problems import http_problem

PREFIX = "request:"
KEYS_BETWEEN_PRUNINGS = 1_000


class KeyStore(Protocol):
    """Where keys are kept: the settings of a file, or of a database in memory."""

    def get(self, name: str) -> str | None: ...
    def list(self, prefix: str = "") -> dict[str, str]: ...
    def put(self, name: str, value: str) -> None: ...
    def delete(self, name: str) -> None: ...
    def with_next_commit(self, name: str, value: str) -> AbstractContextManager[None]:
        """Put a setting in the same moment as the commit that the block makes."""


class RequestKeys:
    """Keys that are remembered for `seconds_max`; used in the thread that owns the database."""

    def __init__(self, store: KeyStore, seconds_max: float) -> None:
        self._store = store
        self._seconds_max = seconds_max
        self._since_pruning = KEYS_BETWEEN_PRUNINGS

    def once(
        self,
        database: MemoryDatabase,
        caller: str,
        key: str,
        body: bytes,
        commit: Callable[[], object],
    ) -> tuple[int, bool]:
        """Commit unless that was done before; returns the version, and whether it was."""
        name = PREFIX + hashlib.sha256(f"{caller}\0{key}".encode()).hexdigest()
        digest = hashlib.sha256(body).hexdigest()
        found = self._store.get(name)
        if found is not None:
            known = json.loads(found)
            if known["time"] + self._seconds_max > time():
                if known["body"] != digest:
                    raise http_problem(422, service_catalogue.KEY_REUSED, key=key)
                return int(known["version"]), True
        before = database.version
        with self._store.with_next_commit(name, _record_text(before + 1, digest)):
            commit()
        if database.version == before:  # it changed nothing, and must not do so later either
            self._store.put(name, _record_text(before, digest))
        self._prune_keys()
        return database.version, False

    def _prune_keys(self) -> None:
        """Forget old keys, now and then."""
        self._since_pruning += 1
        if self._since_pruning < KEYS_BETWEEN_PRUNINGS:
            return
        self._since_pruning = 0
        oldest = time() - self._seconds_max
        for name, value in self._store.list(PREFIX).items():
            if json.loads(value)["time"] < oldest:
                self._store.delete(name)


def _record_text(version: int, digest: str) -> str:
    return json.dumps({"version": version, "body": digest, "time": int(time())})
