"""Messages that rules emit: facts, written in the commit of the transaction that emitted them.

A message has a sequence number, which grows from commit to commit, and a random id, which stays the
same however often it is delivered. Its payload is JSON: the rule, the name, the time and the
arguments.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deltalog.analysis.active_rules import MESSAGES
from deltalog.language.ast import Row
from deltalog.runtime.violations import json_value

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.transaction import Transaction


@dataclass(frozen=True)
class Message:
    """A message that a rule has emitted; `arguments` are values that JSON has."""

    sequence: int
    id: str
    rule: str
    name: str
    payload: str

    @property
    def arguments(self) -> list[Any]:
        found: list[Any] = json.loads(self.payload)["arguments"]
        return found

    @property
    def time(self) -> datetime:
        """When it was emitted."""
        return datetime.fromisoformat(json.loads(self.payload)["time"])


Emitted = tuple[str, str, Row]
"""A rule, the name of a message, and its arguments."""
PER_COMMIT = 2**20
"""Sequence numbers of one commit; the next version begins behind them."""


def add_messages(
    accumulated: Transaction, version: int, sent: int, emitted: Sequence[Emitted]
) -> None:
    """Add messages to the transaction that makes a version, behind those that it has `sent`."""
    made = []
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    for number, (rule, name, row) in enumerate(emitted, start=version * PER_COMMIT + sent):
        arguments = [json_value(value) for value in row]
        said = {"rule": rule, "name": name, "time": now, "arguments": arguments}
        payload = json.dumps(said, ensure_ascii=False)
        made.append((number, f"msg_{secrets.token_hex(16)}", rule, name, payload))
    accumulated.insert(MESSAGES, made)


def stored_messages(database: MemoryDatabase, after: int) -> list[Message]:
    """The messages behind a sequence number, in their order."""
    if MESSAGES not in database.model.stored:
        return []
    rows = (row for row in database.engine.rows(MESSAGES) if int(str(row[0])) > after)
    return [Message(*row) for row in sorted(rows)]  # type: ignore[arg-type]
