"""The verbs of a database that concern constraints and active rules.

@db.action("order")
def order(rows): ...              # what `call order(I, N)` calls
db.activate("low", L=10)          # a rule with parameters
db.rules()                        # every rule, and how often it has fired
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from deltalog.analysis.active_rules import INACTIVE, STATISTICS, activation_relation
from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import ActiveRule, Row, Value
from deltalog.language.values import print_value
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.check_phase import CheckPhase, settle_transaction
from deltalog.runtime.checked_rows import checked_row
from deltalog.runtime.constraints import NOT_WARNED, ConstraintChecks, current_violations
from deltalog.runtime.delivery_verbs import undelivered_counts
from deltalog.runtime.fact_arguments import fill_transaction
from deltalog.runtime.immediate import ImmediateChecks, ImmediateTransaction
from deltalog.runtime.messages import Message, stored_messages
from deltalog.runtime.rehearsal import Rehearsal
from deltalog.runtime.rule_trace import RuleTrace
from deltalog.runtime.violations import Violation

if TYPE_CHECKING:
    from deltalog.engines.base import Engine
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.model import Model
    from deltalog.runtime.propagation import Propagation
    from deltalog.runtime.transaction import Commit, Transaction

ActionFunction = Callable[..., Any]
Counts = tuple[int, float, datetime | None]
Registered = TypeVar("Registered", bound=ActionFunction)


@dataclass(frozen=True)
class RuleState:
    """An active rule: whether it is active, for which parameters, and what it has done so far."""

    name: str
    priority: int
    is_active: bool
    firings: int = 0
    seconds: float = 0.0
    last: datetime | None = None
    parameters: tuple[Row, ...] = ()
    undelivered: int = 0
    """Messages that not everybody who wants them has received."""
    dead: int = 0
    """Messages that could not be delivered."""


def _with_counts(state: RuleState, undelivered: int, dead: int) -> RuleState:
    return replace(state, undelivered=undelivered, dead=dead)


class RuleVerbs:
    """The part of a database that knows of constraints and active rules."""

    model: Model
    engine: Engine
    propagation: Propagation
    _phase: CheckPhase | None = None
    _warned = NOT_WARNED
    """The violations by a commit of which warnings are not issued yet."""
    _already_warned: Set[Violation] = frozenset()
    """The violations of which a transaction that commits has warned after its operations."""
    _actions: dict[str, ActionFunction] | None = None
    _is_acting = False
    rehearsed: Rehearsal | None = None
    """A transaction whose steps are made in the engine, to be undone before it is committed."""
    action_error: BaseException | None = None
    """What a called function raised last: nothing has been written or applied then."""

    @cached_property
    def trace(self) -> RuleTrace:
        """The firings of this database, recorded while somebody wants them."""
        return RuleTrace()

    def turn(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    @property
    def _this_database(self) -> MemoryDatabase:
        return cast("MemoryDatabase", self)

    # --- constraints

    def issue_warnings(self) -> None:
        """Warn of what a commit has violated, once all of it is done: a warning may be raised."""
        if self._warned.total:
            warned, self._warned = self._warned, NOT_WARNED
            warned.issue(self._already_warned)

    def violations(self, name: str | None = None) -> tuple[Violation, ...]:
        """Return the violations of all constraints, or of the one of that name, as of now.

        An enforced constraint has none. Those of a required fact have it as their name.
        """
        with self.turn():
            return tuple(self._violations_of(name))

    def _violations_of(self, name: str | None) -> Iterator[Violation]:
        constraints = self.propagation.constraints or ConstraintChecks(())
        for check in constraints.named(name):
            yield from current_violations(self._this_database, check)

    # --- active rules

    def rules(self) -> list[RuleState]:
        """Return the active rules of the program, in its order, with their state."""
        with self.turn():
            counts = undelivered_counts(self._this_database)
            return [
                _with_counts(state, *counts.get(state.name, (0, 0))) for state in self.rule_states()
            ]

    def rule_states(self) -> list[RuleState]:
        """Return the same in the turn of the caller, without counts of messages."""
        return [self._state_of(rule) for rule in self.model.checked.program.active_rules]

    def _state_of(self, rule: ActiveRule) -> RuleState:
        engine = self.engine
        fired = next(iter(engine.lookup(STATISTICS, {0: rule.name})), None)
        count, seconds, last = cast("Counts", (0, 0.0, None) if fired is None else fired[1:])
        parameters: tuple[Row, ...] = ()
        if rule.parameters:
            parameters = tuple(sorted(engine.rows(activation_relation(rule))))
            is_active = bool(parameters)
        else:
            is_active = not any(engine.present(INACTIVE, [(rule.name,)]))
        return RuleState(rule.name, rule.priority, is_active, count, seconds, last, parameters)

    def activate(self, rule: str, **parameters: Value) -> None:
        """Activate a rule, for these parameters if it has some; nothing fires by that."""
        known, row = self._known_rule(rule, parameters)
        if known.parameters:
            self._change_activation({activation_relation(known): [row]}, {})
        else:
            self._change_activation({}, {INACTIVE: [(rule,)]})

    def deactivate(self, rule: str, **parameters: Value) -> None:
        """Deactivate a rule, for these parameters if it has some."""
        known, row = self._known_rule(rule, parameters)
        if known.parameters:
            self._change_activation({}, {activation_relation(known): [row]})
        else:
            self._change_activation({INACTIVE: [(rule,)]}, {})

    def are_inactive(self, names: Iterable[str]) -> bool:
        """Whether all of these are names of active rules that are deactivated."""
        rules = self.propagation.rules
        idle = rules.inactive(self.engine) if rules is not None else set()
        return idle.issuperset(names)

    def _known_rule(self, name: str, parameters: dict[str, Value]) -> tuple[ActiveRule, Row]:
        check_argument(isinstance(name, str), "rule", name, 'as in `db.activate("reorder")`')
        rules = {rule.name: rule for rule in self.model.checked.program.active_rules}
        if name not in rules:
            hint = did_you_mean(str(name), rules)
            raise DataError([catalogue.UNKNOWN_RULE.at(None, name=name, hint=hint)])
        wanted = [variable.name for variable in rules[name].parameters]
        if set(wanted) != set(parameters):
            shown = [", ".join(each) or "no parameters" for each in (wanted, list(parameters))]
            raise DataError(
                [catalogue.BAD_ACTIVATION.at(None, name=name, wanted=shown[0], given=shown[1])]
            )
        row = tuple(parameters[each] for each in wanted)
        if wanted:
            self._check_parameters(rules[name], row)
        return rules[name], row

    def _check_parameters(self, rule: ActiveRule, row: Row) -> None:
        relation = self.model.checked.relations[activation_relation(rule)]
        for variable, column, value in zip(rule.parameters, relation.columns, row, strict=True):
            try:
                checked_row(Relation(rule.name, "base", (column,)), (value,))
            except DataError:
                shown = print_value(value) if isinstance(value, str) or value is None else value
                words = {"parameter": variable.name, "name": rule.name, "value": str(shown)}
                problem = catalogue.BAD_PARAMETER.at(None, type=str(column.type), **words)
                raise DataError([problem]) from None

    def _change_activation(
        self, insert: dict[str, list[Row]], delete: dict[str, list[Row]]
    ) -> None:
        database = self._this_database
        self.check_not_acting()
        with self.turn():
            changing = database.silent_transaction()
            changing._is_internal = True
            for relation, rows in insert.items():
                changing.insert(relation, rows)
            for relation, rows in delete.items():
                changing.delete(relation, rows)
            changing.commit()
            self.propagation.watch_active_rules()

    def messages(self, after: int = 0) -> list[Message]:
        """Return the messages that rules have emitted, behind a sequence number."""
        is_number = isinstance(after, int) and not isinstance(after, bool)
        check_argument(is_number, "after", after, "it is the `sequence` of a message")
        with self.turn():
            return stored_messages(self._this_database, after)

    # --- functions

    def action(self, name: str) -> Callable[[Registered], Registered]:
        """Register the function that `call name(…)` calls, as a decorator.

        It gets the list of distinct argument tuples, once for each execution of a rule, inside the
        transaction. It returns nothing, or changes: a mapping with `insert`, `delete` or `set`.
        """
        hint = 'as in `@db.action("order")`'
        check_argument(isinstance(name, str), "name", name, hint)

        def register(function: Registered) -> Registered:
            check_argument(callable(function), "function", function, "it is called with rows")
            self._actions = {**(self._actions or {}), name: function}
            return function

        return register

    def registered(self, name: str) -> ActionFunction | None:
        """The function that is registered under this name, if there is one."""
        return (self._actions or {}).get(name)

    def take_actions(self, other: RuleVerbs) -> None:
        """Take over the functions that are registered elsewhere."""
        self._actions = other._actions

    def check_actions(self) -> None:
        """Raise if a transaction must not begin: a function is not registered, or is running."""
        self.check_not_acting()
        self.rewind_rehearsal()
        registered = self._actions or {}
        rules = self.propagation.rules
        assert rules is not None
        for name, rule in rules.called.items():
            if name not in registered and rule not in rules.inactive(self.engine):
                hint = f'`@db.action("{name}")`, or `--actions FILE.py` on the command line'
                entry = catalogue.UNKNOWN_ACTION
                raise DataError([entry.at(None, rule=rule, name=name, hint=hint)])

    def check_not_acting(self) -> None:
        """Raise if a function that a rule calls is running: nobody else changes the database."""
        if self._is_acting:
            raise DataError([catalogue.CHANGE_IN_ACTION.at(None)])

    def call_action(self, name: str, rows: Sequence[Row]) -> Any:
        """Call a registered function; it may read the state before the transaction."""
        assert self._actions is not None
        rehearsed = self.rehearsed
        self._is_acting = True
        try:
            with nullcontext() if rehearsed is None else rehearsed.suspended():
                return self._actions[name](list(rows))
        except BaseException as error:
            self.action_error = error
            raise
        finally:
            self._is_acting = False

    def rewind_rehearsal(self) -> None:
        """Have the state before the transaction, for a function that a rule calls.

        So it is, too, for whoever comes after a rehearsal whose end was interrupted.
        """
        if self.rehearsed is not None and self.rehearsed.is_reading_before:
            self.rehearsed.rewind()

    # --- transactions with rules

    def settled(
        self, base: ChangeSet, is_committed: bool, views: frozenset[str] | None
    ) -> ChangeSet:
        """Propagate a change, and execute the rules that it triggers, until none is."""
        database, rules = self._this_database, self.propagation.rules
        assert rules is not None
        inserted, deleted = base.sides
        influents = self.propagation.rule_influents
        if self._phase is None and influents.isdisjoint(inserted) and influents.isdisjoint(deleted):
            return database._run_propagation(base, is_committed, views)
        if is_committed:
            self.check_actions()
        phase = self._phase or CheckPhase(database, rules, is_tried=not is_committed)

        def run(changed: ChangeSet, checking: CheckPhase | None) -> ChangeSet:
            return database._run_propagation(changed, is_committed, views, checking)

        return settle_transaction(database, phase, base, run)

    def silent_transaction(self) -> Transaction:
        """A transaction in which no rule fires."""
        database = self._this_database
        return database._transaction_by(partial(database.propagate_wanted, is_firing=False))

    def rehearsal(self, base: ChangeSet) -> Transaction:
        """A transaction that begins with these changes and is never committed."""
        made = self._this_database._transaction_by(lambda wanted: wanted)
        made._is_internal = True
        return fill_transaction(made, base.inserted, base.deleted, None)

    def immediate_transaction(self, commit: Commit, is_tried: bool) -> Transaction:
        """A transaction after each operation of which something is checked."""
        checks = ImmediateChecks(self._this_database, is_tried)

        def commit_phase(wanted: ChangeSet) -> ChangeSet:
            self._phase, self._already_warned = checks.phase, checks.warned
            try:
                return commit(wanted)
            finally:
                self._phase, self._already_warned = None, frozenset()

        checked = partial(ImmediateTransaction, after_operation=checks.after_operation)
        return self._this_database._transaction_by(commit_phase, checked)
