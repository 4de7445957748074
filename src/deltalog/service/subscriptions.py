"""Durable subscriptions: a name, what it is about, and how far its subscriber has come.

    PUT  /v1/subscriptions/billing           {"view": "owes", "bindings": {"who": "ann"}}
    POST /v1/subscriptions/billing/claim     ▶ generation 3, and the offset to go on from
    GET  /v1/subscriptions/billing/stream?generation=3&live=sse
    POST /v1/subscriptions/billing/ack       {"generation": 3, "offset": …}

An acknowledgement is inclusive and monotone. Whoever claims a subscription begins a *generation*:
what earlier ones send is refused (FENCED), so that two processes of one subscriber cannot disturb
each other. A lease keeps others from claiming it while its holder lives.

The log of a file is kept behind what was acknowledged (`store/readers.py`), up to a number of bytes
and an idle time. The state is called as PostgreSQL calls that of its replication slots:

    reserved     kept anyway                   extended    kept for this subscription only
    unreserved   not kept for it any more      lost        what it needs next is no longer there
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from deltalog.diagnostics import service_catalogue
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.host import Host
from deltalog.service.offsets import Offset
from deltalog.service.problems import Problem, http_problem
from deltalog.store.logged import Logged

PREFIX = "subscription:"
LEASE_SECONDS_MAX = 3_600.0


@dataclass(frozen=True)
class Reservation:
    """How much of the log a subscription may hold, and for how long it may be idle."""

    bytes_max: int = 2**30
    idle_seconds_max: float = 7 * 86_400.0


@dataclass(frozen=True)
class Subscription:
    """A subscription as it is kept; `acknowledged` is a version of `history`, or None."""

    name: str
    owner: str
    view: str
    bindings: Mapping[str, Any]
    quality: Mapping[str, Any]
    history: str
    since: int
    acknowledged: int | None = None
    generation: int = 0
    used_at: float = 0.0
    leased_until: float = 0.0
    is_reserved: bool = True

    @property
    def place(self) -> int:
        """The version behind which it needs the log."""
        return self.since if self.acknowledged is None else self.acknowledged

    @property
    def definition(self) -> tuple[Any, ...]:
        return self.owner, self.view, dict(self.bindings), dict(self.quality)

    @property
    def wanted(self) -> tuple[str, bool]:
        """The view, and whether a superset of its changes is enough."""
        return self.view, self.quality.get("precision") == "potential"

    @property
    def offset(self) -> str:
        """The offset to go on from: the start, if nothing was acknowledged."""
        if self.acknowledged is None:
            return "-1"
        return str(Offset(self.history, self.acknowledged))


class Subscriptions:
    """The durable subscriptions of a host; what they change is on the disk when it returns."""

    def __init__(
        self,
        host: Host,
        reservation: Reservation | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._host = host
        self.reservation = reservation or Reservation()
        self._now = now
        self._known: dict[str, Subscription] = {}

    async def start(self) -> None:
        """Read what is kept, and propagate the views it is about."""
        found = await self._host.call(lambda _: self._host.settings.list(PREFIX))
        for text in found.values():
            self._remember_subscription(Subscription(**json.loads(text)))

    def _remember_subscription(self, subscription: Subscription) -> None:
        if subscription.name not in self._known:
            self._host.want(*subscription.wanted)
        self._known[subscription.name] = subscription

    def all(self) -> list[Subscription]:
        return [self._known[name] for name in sorted(self._known)]

    def get(self, name: str, caller: str, is_administrator: bool) -> Subscription:
        """A subscription of the caller; those of others are not shown to it."""
        found = self._known.get(name)
        if found is None or not (is_administrator or found.owner == caller):
            raise http_problem(404, service_catalogue.NO_SUCH_SUBSCRIPTION, name=name)
        return found

    async def create(self, wanted: Subscription) -> tuple[Subscription, bool]:
        """Make a subscription, or return the one that is there already and whether it is new."""
        known = self._known.get(wanted.name)
        if known is not None:
            if known.definition != wanted.definition:
                raise http_problem(409, service_catalogue.SUBSCRIPTION_DIFFERS, name=wanted.name)
            return known, False
        self._host.want(*wanted.wanted)

        def register(database: MemoryDatabase) -> Subscription:
            made = replace(wanted, since=database.version, used_at=self._now())
            if isinstance(database, Logged):
                _unregister_reader(database, made)
                database.register(PREFIX + made.name)
            self._put_setting(made)
            return made

        made = await self._host.call(register)
        self._known[made.name] = made
        return made, True

    async def delete(self, subscription: Subscription) -> None:
        def unregister(database: MemoryDatabase) -> None:
            if isinstance(database, Logged):
                _unregister_reader(database, subscription)
            self._host.settings.delete(PREFIX + subscription.name)

        await self._host.call(unregister)
        if self._known.pop(subscription.name, None) is not None:
            self._host.release(*subscription.wanted)

    async def claim(
        self, subscription: Subscription, lease_seconds: float, is_takeover: bool
    ) -> Subscription:
        """Begin a new generation, unless the lease of another one lasts."""
        now = self._now()
        if now < subscription.leased_until and not is_takeover:
            reason = "another one holds its lease, and was not taken over"
            raise fenced_problem(subscription, subscription.generation + 1, reason)
        lease = min(lease_seconds, LEASE_SECONDS_MAX)
        made = replace(
            subscription,
            generation=subscription.generation + 1,
            used_at=now,
            leased_until=now + lease if lease else 0.0,
        )
        return await self._save_subscription(made)

    def check_generation(self, subscription: Subscription, generation: int) -> None:
        """Raise 409 unless it is the generation of now."""
        if generation != subscription.generation:
            raise fenced_problem(
                subscription, generation, f"it is {subscription.generation} by now"
            )

    async def acknowledge(
        self, subscription: Subscription, generation: int, offset: Offset, lease_seconds: float
    ) -> Subscription:
        """Everything up to an offset was received; an earlier one changes nothing."""
        self.check_generation(subscription, generation)
        if offset.history != subscription.history:
            raise lost_problem(subscription, "the history of the database is another one now")
        now, before = self._now(), subscription.acknowledged
        acknowledged = offset.version if before is None else max(before, offset.version)
        lease = min(lease_seconds, LEASE_SECONDS_MAX)
        made = replace(
            subscription,
            acknowledged=acknowledged,
            used_at=now,
            leased_until=now + lease if lease else subscription.leased_until,
        )
        return await self._save_subscription(made)

    async def _save_subscription(self, made: Subscription) -> Subscription:
        def save(database: MemoryDatabase) -> None:
            if isinstance(database, Logged) and made.is_reserved:
                _hold_log(database, made)
            self._put_setting(made)

        self._known[made.name] = made  # a request of the old generation is refused from now on
        await self._host.call(save)
        return made

    def _put_setting(self, subscription: Subscription) -> None:
        value = json.dumps(asdict(subscription), default=str)
        self._host.settings.put(PREFIX + subscription.name, value)

    # --- what is kept

    async def states(self) -> dict[str, tuple[str, int]]:
        """The state of every subscription, and the bytes of the log behind its place."""
        known = list(self._known.values())
        return await self._host.call(
            lambda database: {s.name: _state_of(database, s) for s in known}
        )

    async def enforce(self) -> list[str]:
        """Give up the reservations that have become too large or idle; returns their names."""
        now, limits = self._now(), self.reservation
        sizes = await self.states()
        over = [
            each
            for each in self._known.values()
            if each.is_reserved
            and (
                now - each.used_at > limits.idle_seconds_max
                or sizes[each.name][1] > limits.bytes_max
            )
        ]

        def release(database: MemoryDatabase) -> None:
            for each in over:
                if isinstance(database, Logged):
                    _unregister_reader(database, each)
                self._put_setting(replace(each, is_reserved=False))

        if over:
            await self._host.call(release)
        for each in over:
            self._known[each.name] = replace(each, is_reserved=False)
        return [each.name for each in over]


def _state_of(database: MemoryDatabase, subscription: Subscription) -> tuple[str, int]:
    if not isinstance(database, Logged):
        return "reserved" if subscription.is_reserved else "unreserved", 0
    if subscription.place < database.first_version:
        return "lost", 0
    held, is_kept = database.log_behind(subscription.place)
    if not subscription.is_reserved:
        return "unreserved", held
    return "reserved" if is_kept else "extended", held


def _hold_log(database: MemoryDatabase, subscription: Subscription) -> None:
    """Hold the log behind its place, or what is left of it, whatever others did to its reader."""
    reader = PREFIX + subscription.name
    if reader not in database.readers:
        database.register(reader)
    elif subscription.place >= database.first_version:
        database.acknowledge(reader, subscription.place)


def _unregister_reader(database: MemoryDatabase, subscription: Subscription) -> None:
    if PREFIX + subscription.name in database.readers:
        database.unregister(PREFIX + subscription.name)


def fenced_problem(subscription: Subscription, generation: int, reason: str) -> Problem:
    made = http_problem(
        409,
        service_catalogue.FENCED,
        generation=generation,
        name=subscription.name,
        reason=reason,
    )
    made.more["error"] = "FENCED"
    return made


def lost_problem(subscription: Subscription, reason: str) -> Problem:
    hint = "delete it, make it again, and read from offset -1"
    entry = service_catalogue.SUBSCRIPTION_LOST
    return http_problem(410, entry, name=subscription.name, reason=reason, hint=hint)
