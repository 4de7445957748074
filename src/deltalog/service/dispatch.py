"""The dispatcher: delivers the messages of a journal, beside whoever writes them.

    journal ─ due ─▶ an attempt for each queue, up to 16 at a time ─▶ outcomes ─▶ journal

An attempt that has ended is written down before its queue goes on. If the file is busy for long
(a group of transactions is open), outcomes wait in memory; if the process is killed then, these
messages are delivered once more.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.deliveries import Deliveries, Delivery, Outcome, Recorded
from deltalog.runtime.delivery_records import Journal
from deltalog.service.addresses import Resolve, resolve_name
from deltalog.service.targets import HttpTarget
from deltalog.service.webhooks import Webhook

ATTEMPTS_AT_ONCE = 16
POLL_SECONDS = 0.5
"""How long a message may wait before the journal is looked at."""

Attempts = dict["asyncio.Task[Outcome]", Delivery]


@dataclass
class Summary:
    """How many attempts ended in which way, and how many deliveries are left."""

    states: Counter[str] = field(default_factory=Counter)
    undelivered: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether everything was delivered."""
        return not self.undelivered and not self.states["dead"]


class Dispatcher:
    """Delivers messages to these targets; `report` gets every attempt that was recorded."""

    def __init__(
        self,
        journal: Journal,
        targets: Sequence[HttpTarget],
        report: Callable[[Recorded], None] = lambda recorded: None,
        resolve: Resolve = resolve_name,
    ) -> None:
        self._journal = journal
        self._report = report
        self.deliveries = Deliveries(journal, [each.target for each in targets])
        self._webhooks = {each.name: Webhook(each, resolve) for each in targets if each.url}
        self._ended: list[tuple[Delivery, Outcome]] = []
        self._stopping = asyncio.Event()
        self.summary = Summary()

    def stop(self) -> None:
        """End when the attempts that have begun are over."""
        self._stopping.set()

    async def run(self, *, is_once: bool, poll_seconds: float = POLL_SECONDS) -> Summary:
        """Deliver until stopped, or once what is due now; failures wait for their next attempt."""
        attempts: Attempts = {}
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            while True:
                if not is_once and self._journal.is_changed():
                    self.deliveries.refresh()
                if not self._stopping.is_set():
                    self._begin_attempts(attempts)
                if not attempts and not self._ended and (is_once or self._stopping.is_set()):
                    break
                await self._wait_for_attempts(attempts, stopping, poll_seconds)
                self._record_ended(attempts)
        finally:
            await self._end_attempts(attempts, stopping)
        self.summary.undelivered = self.deliveries.undelivered
        return self.summary

    def _begin_attempts(self, attempts: Attempts) -> None:
        free = ATTEMPTS_AT_ONCE - len(attempts)
        for delivery in islice(self.deliveries.due(time.time()), max(free, 0)):
            attempts[asyncio.create_task(self._attempt_delivery(delivery))] = delivery

    async def _attempt_delivery(self, delivery: Delivery) -> Outcome:
        webhook = self._webhooks.get(delivery.target)
        return Outcome() if webhook is None else await webhook.deliver(delivery.message)

    async def _wait_for_attempts(
        self, attempts: Attempts, stopping: asyncio.Task[bool], poll_seconds: float
    ) -> None:
        """Until an attempt has ended, or it is time to look whether there is more to do."""
        waited = set(attempts) if stopping.done() else {*attempts, stopping}
        due = self.deliveries.next_due()
        seconds = poll_seconds if due is None else min(poll_seconds, max(due - time.time(), 0.01))
        if waited:
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)

    def _record_ended(self, attempts: Attempts) -> None:
        for task in [task for task in attempts if task.done()]:
            self._ended.append((attempts.pop(task), task.result()))
        if not self._ended:
            return
        try:
            recorded = self.deliveries.record(self._ended)
        except DataError as error:
            if catalogue.FILE_IN_USE.code not in error.codes:
                raise
            return  # later: whoever writes has the file for long
        self._ended = []
        for each in recorded:
            self.summary.states[each.state] += 1
            self._report(each)

    async def _end_attempts(self, attempts: Attempts, stopping: asyncio.Task[bool]) -> None:
        for task in (*attempts, stopping):
            task.cancel()
        await asyncio.gather(*attempts, stopping, return_exceptions=True)
        for webhook in self._webhooks.values():
            await webhook.close()
