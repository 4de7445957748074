"""Deliveries: which message is next for whom, and what follows from a success or a failure.

    messages ─▶ a queue for each recipient and rule ─▶ its first message is due
                                                          │ attempt
    delivered: settled ◀──────────────────────────────────┤
    failed:    due again after a pause ◀──────────────────┤
    too often: settled, a dead letter ◀───────────────────┘

A message waits for those before it in its queue, so the order per rule is kept; queues do not wait
for each other. What has been delivered is written down afterwards: if the process is killed in
between, the message is delivered again, with the id that it had. Nothing here knows how messages
travel: `dispatch_to` passes them to a function, `service/dispatch.py` to HTTP.
"""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from deltalog.runtime.delivery_records import (
    Book,
    DeadLetter,
    Journal,
    Queue,
    Recipient,
    Record,
    Settled,
    StoredMessage,
)
from deltalog.runtime.messages import Message

PAUSES_SECONDS = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Between attempts, as Standard Webhooks recommends; after the last one a message is dead."""
PAUSE_SECONDS_MAX = 86_400.0
JITTER = 0.2
REASON_CHARACTERS_MAX = 500

QueueKey = tuple[str, str]
"""A recipient and a rule."""


@dataclass(frozen=True)
class Target:
    """Somebody who is to get messages, and the pauses after failed attempts."""

    name: str
    messages: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    is_from_now: bool = False
    pauses_seconds: tuple[float, ...] = PAUSES_SECONDS


@dataclass(frozen=True)
class Delivery:
    """One attempt to deliver a message."""

    target: str
    message: Message
    attempt: int
    letter: DeadLetter | None = None
    """The dead letter that is delivered once more, if it is one."""

    @property
    def queue(self) -> QueueKey:
        return self.target, self.message.rule


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt: delivered, or the reason why not."""

    reason: str = ""
    pause_seconds: float = 0.0
    """The recipient wants no attempt before."""
    is_refused_for_good: bool = False
    """The recipient wants no message any more."""

    @property
    def is_delivered(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class Recorded:
    """An attempt, its outcome, and what becomes of the message: `delivered`, `waiting`, `dead`."""

    delivery: Delivery
    outcome: Outcome
    state: str
    due: float = 0.0


class Deliveries:
    """The queues of the messages in a journal, for these targets."""

    def __init__(
        self,
        journal: Journal,
        targets: Iterable[Target],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._journal = journal
        self._targets = {target.name: target for target in targets}
        self._chance = chance
        self._seen = -1
        self._waiting: dict[QueueKey, deque[StoredMessage]] = {}
        self._unsettled: dict[str, deque[StoredMessage]] = {}
        self._busy: set[QueueKey] = set()
        self.book = Book()
        self._register_recipients()
        self.refresh()

    def _register_recipients(self) -> None:
        """Write down who gets messages; whoever is known keeps its place."""
        known = self._journal.read().recipients
        put: list[Record] = []
        for target in self._targets.values():
            before = known.get((target.name,))
            since = -1
            if before is None and target.is_from_now:
                since = max((each.sequence for each in self._journal.stored(-1)), default=-1)
            made = replace(
                before or Recipient(target.name, since=since),
                messages=json.dumps(sorted(target.messages)),
                rules=json.dumps(sorted(target.rules)),
            )
            if made != before:
                put.append(made)
        if put:
            self._journal.write(put, ())

    def refresh(self) -> None:
        """Take in what others have written: new messages, and wishes about recipients."""
        self.book = self._journal.read()
        recipients = list(self.book.recipients.values())
        settled = self.book.settled
        for stored in self._journal.stored(self._seen):
            self._seen = stored.sequence
            if stored.sequence > settled.get(stored.rule, -1):
                self._unsettled.setdefault(stored.rule, deque()).append(stored)
            for recipient in recipients:
                if recipient.takes(stored.rule, stored.name):
                    queue = recipient.name, stored.rule
                    if stored.sequence > self.book.queue(*queue).settled:
                        self._waiting.setdefault(queue, deque()).append(stored)
        self._write_records(self._newly_settled(self.book), ())

    # --- which is next

    def due(self, now: float) -> Iterator[Delivery]:
        """Begin the attempts that are due: at most one for each queue, until it is recorded."""
        for letter in self.book.retried:
            if self._is_open((letter.recipient, letter.rule)):
                self._busy.add((letter.recipient, letter.rule))
                yield Delivery(letter.recipient, letter.message, letter.attempts + 1, letter)
        for queue in list(self._waiting):
            if self._is_open(queue) and self.book.queue(*queue).due <= now:
                message = self._first_message(queue)
                if message is not None:
                    self._busy.add(queue)
                    yield Delivery(queue[0], message, self.book.queue(*queue).attempts + 1)

    def _is_open(self, queue: QueueKey) -> bool:
        if queue in self._busy or queue[0] not in self._targets:
            return False
        recipient = self.book.recipients.get((queue[0],))
        return recipient is not None and not recipient.stopped

    def _first_message(self, queue: QueueKey) -> Message | None:
        """The first message of a queue; those that are not stored any more are passed over."""
        waiting = self._waiting[queue]
        while waiting:
            message = self._journal.message(waiting[0])
            if message is not None:
                return message
            waiting.popleft()
        return None

    def next_due(self) -> float | None:
        """The time of the next attempt after a failure, if there is one."""
        return min(
            (
                self.book.queue(*queue).due
                for queue, waiting in self._waiting.items()
                if waiting and self._is_open(queue)
            ),
            default=None,
        )

    @property
    def undelivered(self) -> int:
        """How many deliveries to these targets are waiting."""
        return sum(len(each) for queue, each in self._waiting.items() if queue[0] in self._targets)

    @property
    def unclaimed(self) -> set[str]:
        """The names of messages that no recipient takes."""
        recipients = self.book.recipients.values()
        return {
            stored.name
            for each in self._unsettled.values()
            for stored in each
            if not any(recipient.takes(stored.rule, stored.name) for recipient in recipients)
        }

    # --- what follows

    def record(
        self, ended: Sequence[tuple[Delivery, Outcome]], now: float | None = None
    ) -> list[Recorded]:
        """Write down the outcome of attempts; if that fails they can be recorded again."""
        now = time.time() if now is None else now
        book = self.book.draft()
        put: list[Record] = []
        removed: list[Record] = []
        found = []
        for delivery, outcome in ended:
            made, state, due = self._consequence_of(book, delivery, outcome, now)
            put += made
            if delivery.letter is not None and outcome.is_delivered:
                removed.append(delivery.letter)
            book.change(made, ())
            found.append(Recorded(delivery, outcome, state, due))
        put += self._newly_settled(book)
        self._write_records(put, removed)
        for delivery, _ in ended:
            self._busy.discard(delivery.queue)
            waiting = self._waiting.get(delivery.queue, deque())
            while waiting and waiting[0].sequence <= self.book.queue(*delivery.queue).settled:
                waiting.popleft()
        return found

    def _consequence_of(
        self, book: Book, delivery: Delivery, outcome: Outcome, now: float
    ) -> tuple[list[Record], str, float]:
        """The records that an outcome leads to, the state of the message, and its next attempt."""
        recipient, message, letter = delivery.target, delivery.message, delivery.letter
        reason = outcome.reason[:REASON_CHARACTERS_MAX]
        made: list[Record] = []
        if outcome.is_refused_for_good:
            made.append(replace(book.recipients[(recipient,)], stopped=reason))
        if letter is not None:
            if not outcome.is_delivered:
                attempts = delivery.attempt
                made.append(replace(letter, is_retried=0, attempts=attempts, error=reason))
            return made, "delivered" if outcome.is_delivered else "dead", 0.0
        queue = Queue(recipient, message.rule, message.sequence)
        if outcome.is_delivered:
            return [*made, queue], "delivered", 0.0
        pauses = self._targets[recipient].pauses_seconds
        if delivery.attempt > len(pauses) and not outcome.is_refused_for_good:
            return [*made, queue, _dead_letter(delivery, reason)], "dead", 0.0
        before = book.queue(recipient, message.rule)
        pause = pauses[min(delivery.attempt, len(pauses)) - 1] if pauses else 0.0
        pause *= 1 + JITTER * (2 * self._chance() - 1)
        due = now + min(max(pause, outcome.pause_seconds), PAUSE_SECONDS_MAX)
        failed = replace(before, attempts=delivery.attempt, due=due, error=reason)
        return [*made, failed], "waiting", due

    def _write_records(self, put: Sequence[Record], removed: Sequence[Record]) -> None:
        if put or removed:
            self._journal.write(put, removed)
            self.book.change(put, removed)
            for record in put:
                if isinstance(record, Settled):
                    self._forget_settled(record)

    def _newly_settled(self, book: Book) -> list[Record]:
        """Rules of which all recipients have received more than is written down."""
        recipients = list(book.recipients.values())
        found: list[Record] = []
        for rule, unsettled in self._unsettled.items():
            last = None
            for stored in unsettled:
                takers = [each for each in recipients if each.takes(rule, stored.name)]
                if not takers or any(
                    book.queue(each.name, rule).settled < stored.sequence for each in takers
                ):
                    break
                last = stored.sequence
            if last is not None:
                found.append(Settled(rule, last))
        return found

    def _forget_settled(self, settled: Settled) -> None:
        unsettled = self._unsettled.get(settled.rule, deque())
        while unsettled and unsettled[0].sequence <= settled.sequence:
            unsettled.popleft()


def _dead_letter(delivery: Delivery, reason: str) -> DeadLetter:
    message = delivery.message
    now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ")
    return DeadLetter(
        delivery.target,
        message.sequence,
        message.id,
        message.rule,
        message.name,
        message.payload,
        delivery.attempt,
        reason,
        now,
    )


# --- wishes about recipients --------------------------------------------------------------------


def retry_dead_letters(journal: Journal, recipient: str | None = None) -> int:
    """Let dead letters be delivered once more, of one recipient or of all; returns their number."""
    found = [
        replace(letter, is_retried=1)
        for letter in journal.read().dead_letters
        if recipient in (None, letter.recipient)
    ]
    journal.write(found, ())
    return len(found)


def resume_deliveries(journal: Journal, recipient: str) -> bool:
    """Let a stopped recipient get messages again; returns whether it was stopped."""
    book = journal.read()
    known = book.recipients.get((recipient,))
    if known is None or not known.stopped:
        return False
    queues = [
        replace(each, due=0.0) for each in book.queues.values() if each.recipient == recipient
    ]
    journal.write([replace(known, stopped=""), *queues], ())
    return True


def forget_deliveries(journal: Journal, recipient: str) -> bool:
    """Hold nothing any more for a recipient, and drop its dead letters."""
    book = journal.read()
    known = book.recipients.get((recipient,))
    if known is None:
        return False
    queues = [queue for queue in book.queues.values() if queue.recipient == recipient]
    letters = [letter for letter in book.dead_letters if letter.recipient == recipient]
    journal.write((), [known, *queues, *letters])
    Deliveries(journal, ())  # settles what was held for nobody else
    return True


# --- delivery to a function ---------------------------------------------------------------------


@dataclass(frozen=True)
class Dispatched:
    """How many messages a call has delivered, failed to deliver, and given up as dead letters."""

    delivered: int
    failed: int
    dead: int
    waiting: int
    """Messages that remain, also those behind one that has failed."""


def dispatch_to(
    journal: Journal, target: Target, handler: Callable[[Message], object]
) -> Dispatched:
    """Pass the messages that are due to a function, in order per rule; what it raises is a failure.

    A message that is emitted meanwhile waits for the next call.
    """
    deliveries = Deliveries(journal, [target])
    counts = {"delivered": 0, "waiting": 0, "dead": 0}
    while begun := list(deliveries.due(time.time())):
        for delivery in begun:
            outcome = Outcome()
            try:
                handler(delivery.message)
            except Exception as error:
                outcome = Outcome(f"{type(error).__name__}: {error}")
            for recorded in deliveries.record([(delivery, outcome)]):
                counts[recorded.state] += 1
    delivered, failed, dead = counts["delivered"], counts["waiting"], counts["dead"]
    return Dispatched(delivered, failed, dead, deliveries.undelivered)
