"""One execution of an active rule: its actions, for all triggered instances, in one state.

All arguments are asked before the first action is carried out, so they belong to one state: that
after the changes of the transaction so far. `call` gets the distinct argument tuples of all
instances as one list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deltalog.analysis.active_rules import activation_relation, instance_variables
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Label, with_diagnostics
from deltalog.language.ast import Action, Query, Row
from deltalog.language.values import sort_key, value_in_message
from deltalog.rewrites.action_rules import AskedAction, driven_by
from deltalog.rewrites.names import is_generated
from deltalog.runtime.active_rules import PreparedRule
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.messages import Emitted
from deltalog.runtime.outcome import Propagated
from deltalog.runtime.queries import answer_query, stored_reads
from deltalog.runtime.violations import ConstraintError, Violation

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.transaction import Transaction

CHANGES = ("delete", "insert", "set")


def make_changes(transaction: Transaction, name: str, made: object) -> None:
    """Make the changes that a registered function has returned."""
    if made is None:
        return
    if not isinstance(made, Mapping) or not all(
        verb in CHANGES and isinstance(facts or {}, Mapping) for verb, facts in made.items()
    ):
        raise DataError([catalogue.BAD_RESULT.at(None, name=name, value=f"{made!r:.80}")])
    for verb in CHANGES:
        for relation, facts in (made.get(verb) or {}).items():
            if is_generated(str(relation)):
                raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=relation)])
            getattr(transaction, verb)(relation, facts)


class Execution:
    """The execution of a rule; `is_stopped` says that a what-if cannot go on behind it."""

    def __init__(
        self,
        database: MemoryDatabase,
        prepared: PreparedRule,
        accumulated: Transaction,
        base: ChangeSet,
        is_tried: bool,
    ) -> None:
        self._database = database
        self._prepared = prepared
        self._accumulated = accumulated
        self._is_tried = is_tried
        self._base = base
        self.is_stopped = False
        self.rejections: tuple[Violation, ...] = ()
        self.emitted: list[Emitted] = []

    def run(self, rose: set[Row], fell: set[Row]) -> set[Row]:
        """Execute the actions, and those of `else`; returns the instances that fired."""
        fired, holding, failing = self._split_triggered(rose, fell)
        steps = [
            (each, self._argument_rows(each, holding)) for each in self._prepared.actions if holding
        ]
        steps += [
            (each, self._argument_rows(each, failing))
            for each in self._prepared.otherwise
            if failing
        ]
        for asked, rows in steps:
            if rows and not self.is_stopped:
                try:
                    self._carry_out(asked, rows)
                except DataError as error:
                    raise self._placed_error(asked.action, error) from None
        return fired

    def _split_triggered(
        self, rose: set[Row], fell: set[Row]
    ) -> tuple[set[Row], set[Row], set[Row]]:
        """The instances that fire, and what actions and `else` are asked for."""
        prepared = self._prepared
        query, instance, driving = prepared.fired
        if prepared.rule.event is None:
            if fell and prepared.rule.is_nervous:  # the condition may hold in another way
                fell = fell - {
                    tuple(row[i] for i in driving) for row in self._ask_query(query, fell)
                }
            return rose, rose, fell
        if prepared.rule.parameters:
            active = set(self._database.engine.rows(activation_relation(prepared.rule)))
            rose = prepared.for_activations(rose, active)
        answers = list(self._ask_query(query, rose))
        fired = {tuple(row[i] for i in instance) for row in answers}
        holding = {tuple(row[i] for i in driving) for row in answers}
        return fired, holding, rose - holding if prepared.otherwise else set()

    # --- asking

    def _argument_rows(self, asked: AskedAction, triggered: Collection[Row]) -> list[Row]:
        """The argument tuples of an action, sorted; of `reject` the instances."""
        answers = self._ask_query(asked.query, triggered)
        if asked.action.verb == "reject":
            found = {tuple(row[i] for i in asked.instance) for row in answers}
        else:
            found = set(asked.rows(answers))
        return sorted(found, key=sort_key)

    def _ask_query(self, query: Query, triggered: Collection[Row]) -> Any:
        database, model = self._database, self._database.model.as_written
        change = self._change_read.only(
            *(n for n in self._change_read.relations if n in model.stored)
        )
        inputs = ((self._prepared.input, triggered),)
        return answer_query(
            database.engine, model, query, database.limits, None, True, change, inputs
        )

    @cached_property
    def _change_read(self) -> ChangeSet:
        """The change of the stored relations that the actions read."""
        database = self._database
        reads = self._find_reads()
        views = frozenset(n for n in reads if database.model.relations[n].kind == "view")
        if not views or not self._base:
            return self._base.only(*(n for n in self._base.relations if n in reads))
        network = database.propagation
        arguments = network, self._base, database.limits, database.watch, True
        with Propagated(*arguments, network.route_to(views)) as outcome:
            return outcome.changes().only(*reads)

    def _find_reads(self) -> frozenset[str]:
        """The stored relations that the rule reads when it is executed; found out once."""
        model, prepared = self._database.model.as_written, self._prepared
        key = "reads of a rule", prepared.name
        if key not in model.query_plans:
            queries = [each.query for each in (*prepared.actions, *prepared.otherwise)]
            is_asked = prepared.rule.event is not None or prepared.rule.is_nervous
            queries += [prepared.fired[0]] if is_asked else []
            inputs = {prepared.input.name: prepared.input}
            found = (stored_reads(model, query, inputs) for query in queries)
            model.query_plans[key] = frozenset().union(*found)
        reads: frozenset[str] = model.query_plans[key]
        return reads

    # --- carrying out

    def _carry_out(self, asked: AskedAction, rows: list[Row]) -> None:
        action, accumulated = asked.action, self._accumulated
        name = "" if action.atom is None else action.atom.predicate
        match action.verb:
            case "insert":
                accumulated.insert(name, rows)
            case "delete":
                accumulated.delete(name, rows)
            case "set":
                accumulated.set(name, rows)
            case "call":
                self._call_action(name, rows)
            case "emit":
                self.emitted += [(self._prepared.name, name, row) for row in rows]
            case "reject":
                self._reject_transaction(asked, rows)

    def _placed_error(self, action: Action, error: DataError) -> DataError:
        """The error with the action that caused it, which may be far from what was applied."""
        if action.span is None:
            return error
        label = Label(action.span, f"an action of the rule `{self._prepared.name}`")
        placed = (replace(each, labels=(*each.labels, label)) for each in error.diagnostics)
        return with_diagnostics(error, placed)

    def _call_action(self, name: str, rows: list[Row]) -> None:
        if self._is_tried:
            self.is_stopped = True
            return
        make_changes(self._accumulated, name, self._database.call_action(name, rows))

    def _reject_transaction(self, asked: AskedAction, rows: list[Row]) -> None:
        """Refuse the transaction; a what-if ends here, and says so."""
        found = tuple(self._rejections_of(asked, rows))
        if not self._is_tried:
            raise ConstraintError(found, len(found))
        self.is_stopped, self.rejections = True, found

    def _rejections_of(self, asked: AskedAction, rows: list[Row]) -> Iterator[Violation]:
        rule = self._prepared.rule
        is_otherwise = asked in self._prepared.otherwise
        own = driven_by(rule) if is_otherwise else (*rule.parameters, *instance_variables(rule))
        for row in rows:
            known = {v.name: value_in_message(value) for v, value in zip(own, row, strict=True)}
            message = (asked.action.message or "").format_map(known)
            yield Violation(rule.name, row, message, span=asked.action.span, is_rejection=True)
