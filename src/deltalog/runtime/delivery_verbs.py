"""The verbs of a database that concern the delivery of messages.

def send(message): ...                    # raises if it cannot be delivered now
db.dispatch(send, messages=["reorder"])   # what is due, in order per rule
db.query("sys_dead_letter(T, S, I, R, N, P, A, E, W)")

Settled messages are deleted with later ones: a commit that emits looks for them when there are
twice as many messages as were left the last time, so that the cost for each message is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Protocol, cast

from deltalog.analysis.active_rules import MESSAGES
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Row
from deltalog.runtime.deliveries import PAUSES_SECONDS, Dispatched, Target, dispatch_to
from deltalog.runtime.delivery_records import Book, DeadLetter, Journal, Record, StoredMessage
from deltalog.runtime.messages import Message, stored_messages

if TYPE_CHECKING:
    from deltalog.checks.program import CheckedProgram
    from deltalog.engines.base import Engine
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.model import Model

DEFAULT_TARGET = "python"
MESSAGES_MIN = 100
"""From this number of messages on settled ones are deleted."""


class MemoryJournal:
    """The journal of a database in memory, which ends with it."""

    def __init__(self, database: MemoryDatabase, book: Book) -> None:
        self._database = database
        self._book = book

    def stored(self, after: int) -> list[StoredMessage]:
        found = self._database.messages(after)
        return [StoredMessage(each.sequence, each.rule, each.name, 0) for each in found]

    def message(self, stored: StoredMessage) -> Message | None:
        with self._database.turn():
            found = self._database.engine.lookup(MESSAGES, {0: stored.sequence})
            return next((Message(*row) for row in found), None)  # type: ignore[arg-type]

    def read(self) -> Book:
        return Book(self._book.records)

    def write(self, put: Sequence[Record], removed: Sequence[Record]) -> None:
        with self._database.turn():
            self._book.change(put, removed)

    def is_changed(self) -> bool:
        return True

    def close(self) -> None:
        pass


class JournalElsewhere(Protocol):
    """Where the deliveries of a database are written down that is kept elsewhere."""

    def open(self) -> Journal: ...
    def book(self) -> Book: ...


class DeliveryVerbs:
    """The part of a database that knows of the delivery of messages."""

    model: Model
    engine: Engine
    _book: Book | None = None
    _journal_elsewhere: JournalElsewhere | None = None
    _prune_from = MESSAGES_MIN

    def turn(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def check_not_acting(self) -> None:
        raise NotImplementedError

    def dispatch(
        self,
        handler: Callable[[Message], object],
        *,
        target: str = DEFAULT_TARGET,
        messages: Iterable[str] = (),
        rules: Iterable[str] = (),
        pauses_seconds: Iterable[float] = PAUSES_SECONDS,
    ) -> Dispatched:
        """Pass the messages that are due to a function, at least once, in order per rule.

        What it raises is a failure: the message is due again after a pause, and a dead letter after
        the last of them. `target` names the recipient, who gets all messages, or those of these
        names and rules. Not inside a transaction.
        """
        check_argument(callable(handler), "handler", handler, "it is a function of one message")
        check_argument(
            isinstance(target, str) and bool(target), "target", target, "its name is a text"
        )
        self.check_not_acting()
        pauses = tuple(pauses_seconds)
        names = tuple(messages), tuple(rules)
        with self.journal() as journal:
            return dispatch_to(journal, Target(target, *names, pauses_seconds=pauses), handler)

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal of deliveries, for one dispatcher at a time."""
        if self._journal_elsewhere is not None:
            with closing(self._journal_elsewhere.open()) as journal:
                yield journal
            return
        with self.turn():
            if self._book is None:
                self._book = Book()
        yield MemoryJournal(cast("MemoryDatabase", self), self._book)

    def delivery_book(self) -> Book:
        """The records about deliveries, in the turn of the caller."""
        if self._journal_elsewhere is not None:
            return self._journal_elsewhere.book()
        return self._book or Book()

    def settled_messages(self) -> dict[str, int]:
        """The sequence number up to which each rule is settled, in the turn of the caller."""
        return self.delivery_book().settled

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Return the messages that could not be delivered."""
        with self.turn():
            return self.delivery_book().dead_letters

    def prunable_messages(self) -> list[Row]:
        """Settled messages, to be deleted with the next commit that emits; mostly none."""
        if self.engine.size(MESSAGES) < self._prune_from:
            return []
        settled = self.settled_messages()
        found = []
        for row in self.engine.rows(MESSAGES) if settled else ():
            sequence, rule = cast("int", row[0]), cast("str", row[2])
            if sequence <= settled.get(rule, -1):
                found.append(row)
        self._prune_from = max(MESSAGES_MIN, 2 * (self.engine.size(MESSAGES) - len(found)))
        return found


def undelivered_counts(database: MemoryDatabase) -> dict[str, tuple[int, int]]:
    """For each rule the messages that are not settled, and the dead letters."""
    book = database.delivery_book()
    counts: dict[str, tuple[int, int]] = {}
    for message in _unsettled_messages(database, book):
        waiting, dead = counts.get(message.rule, (0, 0))
        counts[message.rule] = waiting + 1, dead
    for letter in book.dead_letters:
        waiting, dead = counts.get(letter.rule, (0, 0))
        counts[letter.rule] = waiting, dead + 1
    return counts


def _unsettled_messages(database: MemoryDatabase, book: Book) -> list[Message]:
    settled = book.settled
    return [m for m in stored_messages(database, -1) if m.sequence > settled.get(m.rule, -1)]


def check_delivered(database: MemoryDatabase, new: CheckedProgram) -> None:
    """Raise if messages are not settled and the new program has no relation for them."""
    if MESSAGES in new.relations:
        return
    book = database.delivery_book()
    if found := _unsettled_messages(database, book):
        entry = service_catalogue.MESSAGES_LOST
        hint = _way_to_settle(book.waiting_recipients(found))
        raise DataError([entry.at(None, count=f"{len(found):,}", hint=hint)])


def _way_to_settle(recipients: Sequence[str]) -> str:
    if not {*recipients} - {DEFAULT_TARGET}:
        return "deliver them, or discard them with `db.dispatch(lambda message: None)`"
    names = ", ".join(f"`{name}`" for name in recipients)
    return f"deliver them to {names}, or drop one with `deltalog dispatch FILE --forget TARGET`"
