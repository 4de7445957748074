"""Records about delivery: who gets messages, how far queues are, what could not be delivered.

    Recipient   warehouse   takes `reorder`, begins behind sequence 0
    Queue       warehouse, reorder   settled up to 17825793; its next message has failed twice
    DeadLetter  warehouse, 17825792  the message, and the reason of its last failure
    Settled     reorder   all recipients have what lies up to 17825793

A queue has the messages of one rule for one recipient, in their order. A message is *settled* when
every recipient that takes it has received it, or has it among its dead letters. Each record is a
row of a table; the first fields are its key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from deltalog.runtime.messages import Message

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Recipient:
    """Somebody who gets messages: those of these names and rules, as JSON; empty ones are all."""

    KEYS: ClassVar[int] = 1
    name: str
    messages: str = "[]"
    rules: str = "[]"
    since: int = -1
    """It gets what lies behind this sequence number."""
    stopped: str = ""
    """The reason why nothing is delivered to it any more, if it is so."""

    def takes(self, rule: str, name: str) -> bool:
        names, rules = _parse_names(self.messages), _parse_names(self.rules)
        return (not names or name in names) and (not rules or rule in rules)


@lru_cache(maxsize=1_000)
def _parse_names(text: str) -> frozenset[str]:
    return frozenset(json.loads(text))


@dataclass(frozen=True)
class Queue:
    """The messages of one rule for one recipient: settled ones, and failures of the next."""

    KEYS: ClassVar[int] = 2
    recipient: str
    rule: str
    settled: int = -1
    attempts: int = 0
    due: float = 0.0
    """The next attempt, in seconds since 1970."""
    error: str = ""


@dataclass(frozen=True)
class DeadLetter:
    """A message that could not be delivered, as often as it was tried."""

    KEYS: ClassVar[int] = 2
    recipient: str
    sequence: int
    id: str
    rule: str
    name: str
    payload: str
    attempts: int
    error: str
    time: str
    is_retried: int = 0
    """1 if it is to be delivered once more."""

    @property
    def message(self) -> Message:
        return Message(self.sequence, self.id, self.rule, self.name, self.payload)


@dataclass(frozen=True)
class Settled:
    """Up to where the messages of a rule are settled."""

    KEYS: ClassVar[int] = 1
    rule: str
    sequence: int


Record: TypeAlias = Recipient | Queue | DeadLetter | Settled
KINDS: tuple[type[Record], ...] = (Recipient, Queue, DeadLetter, Settled)


def record_values(record: Record) -> tuple[Any, ...]:
    return tuple(getattr(record, field.name) for field in fields(record))


def record_key(record: Record) -> Key:
    return record_values(record)[: record.KEYS]


class Book:
    """All records, by kind and key."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._by_kind: dict[type[Record], dict[Key, Any]] = {kind: {} for kind in KINDS}
        self._retried: dict[Key, DeadLetter] = {}
        self.change(records, ())

    def change(self, put: Iterable[Record], removed: Iterable[Record]) -> None:
        for record in removed:
            self._by_kind[type(record)].pop(record_key(record), None)
            self._retried.pop(record_key(record), None)
        for record in put:
            self._by_kind[type(record)][record_key(record)] = record
            if isinstance(record, DeadLetter):
                self._retried.pop(record_key(record), None)
                if record.is_retried:
                    self._retried[record_key(record)] = record

    def draft(self) -> Self:
        """Recipients and queues, to be changed without effect on this book."""
        return type(self)([*self.recipients.values(), *self.queues.values()])

    @property
    def records(self) -> list[Record]:
        return [record for found in self._by_kind.values() for record in found.values()]

    @property
    def recipients(self) -> Mapping[Key, Recipient]:
        return self._by_kind[Recipient]

    @property
    def queues(self) -> Mapping[Key, Queue]:
        return self._by_kind[Queue]

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """In the order of their messages."""
        return _in_order(self._by_kind[DeadLetter].values())

    @property
    def retried(self) -> Sequence[DeadLetter]:
        """Dead letters that are to be delivered once more."""
        return _in_order(self._retried.values())

    @property
    def settled(self) -> dict[str, int]:
        """The sequence number up to which each rule is settled."""
        found: Iterable[Settled] = self._by_kind[Settled].values()
        return {each.rule: each.sequence for each in found}

    def queue(self, recipient: str, rule: str) -> Queue:
        """A queue, which begins where its recipient does."""
        found = self.queues.get((recipient, rule))
        if found is not None:
            return found
        return Queue(recipient, rule, self.recipients[(recipient,)].since)

    def waiting_recipients(self, messages: Collection[Message]) -> list[str]:
        """The names of those who have yet to get some of these messages."""
        return [
            each.name
            for each in self.recipients.values()
            if any(
                each.takes(message.rule, message.name)
                and message.sequence > self.queue(each.name, message.rule).settled
                for message in messages
            )
        ]


def _in_order(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    return sorted(letters, key=lambda each: (each.sequence, each.recipient))


@dataclass(frozen=True)
class StoredMessage:
    """A message that a journal has; `place` is where it finds the rest of it."""

    sequence: int
    rule: str
    name: str
    place: int


class Journal(Protocol):
    """Where messages are read and records are kept. One dispatcher at a time has it."""

    def stored(self, after: int) -> list[StoredMessage]:
        """The messages behind a sequence number, in their order."""

    def message(self, stored: StoredMessage) -> Message | None:
        """The whole message; None if it is not there any more."""

    def read(self) -> Book:
        """All records as they are now."""

    def write(self, put: Sequence[Record], removed: Sequence[Record]) -> None:
        """Change records, all or none of them."""

    def is_changed(self) -> bool:
        """Whether somebody may have written messages or records since the last time."""

    def close(self) -> None: ...
