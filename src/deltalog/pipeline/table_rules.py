"""The verbs of a database in tables that concern constraints and active rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from deltalog.language.ast import Row, Value
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.deliveries import PAUSES_SECONDS, Dispatched
from deltalog.runtime.delivery_records import DeadLetter
from deltalog.runtime.messages import Message
from deltalog.runtime.model import Model
from deltalog.runtime.rule_verbs import ActionFunction, Registered, RuleState
from deltalog.runtime.violations import Violation


class TableRules:
    """Every verb is that of the database on the driver, which keeps its facts in tables."""

    _database: MemoryDatabase

    def _closing_on_failure(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _write_initial_state(self) -> None:
        raise NotImplementedError

    @property
    def model(self) -> Model:
        """The program, and how its relations are kept."""
        return self._database.model

    def registered(self, name: str) -> ActionFunction | None:
        """The function that is registered under this name, if there is one."""
        return self._database.registered(name)

    def call_action(self, name: str, rows: Sequence[Row]) -> Any:
        """Call a registered function; it may read the state before the transaction."""
        return self._database.call_action(name, rows)

    def violations(self, name: str | None = None) -> tuple[Violation, ...]:
        """Return the violations of all constraints, or of the one of that name, as of now."""
        return self._database.violations(name)

    def rules(self) -> list[RuleState]:
        """Return the active rules of the program, in its order, with their state."""
        return self._database.rules()

    def messages(self, after: int = 0) -> list[Message]:
        """Return the messages that rules have emitted, behind a sequence number."""
        return self._database.messages(after)

    def dispatch(
        self,
        handler: Callable[[Message], object],
        *,
        target: str = "python",
        messages: Iterable[str] = (),
        rules: Iterable[str] = (),
        pauses_seconds: Iterable[float] = PAUSES_SECONDS,
    ) -> Dispatched:
        """Pass the messages that are due to a function, at least once, in order per rule."""
        wanted = {"target": target, "messages": messages, "rules": rules}
        return self._database.dispatch(handler, **wanted, pauses_seconds=pauses_seconds)  # type: ignore[arg-type]

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Return the messages that could not be delivered."""
        return self._database.dead_letters()

    def settled_messages(self) -> dict[str, int]:
        """The sequence number up to which the messages of each rule are delivered."""
        return self._database.settled_messages()

    def action(self, name: str) -> Callable[[Registered], Registered]:
        """Register the function that `call name(…)` of active rules calls, as a decorator."""
        return self._database.action(name)

    def activate(self, rule: str, **parameters: Value) -> None:
        """Activate a rule, for these parameters if it has some; nothing fires by that."""
        with self._closing_on_failure():
            self._write_initial_state()
            self._database.activate(rule, **parameters)

    def deactivate(self, rule: str, **parameters: Value) -> None:
        """Deactivate a rule, for these parameters if it has some."""
        with self._closing_on_failure():
            self._write_initial_state()
            self._database.deactivate(rule, **parameters)
