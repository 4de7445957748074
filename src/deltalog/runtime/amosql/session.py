"""A session of AMOSQL with a database: statements in, selected rows and exact changes out.

    session = deltalog.AmosqlSession(db)
    for outcome in session.execute("create type item; create item instances :item1;"):
        …

Each statement is a transaction, unless it stands between `begin;` and `commit;` or `rollback;`. An
error leaves everything as it was before the statement, or before `begin;`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.report import DataError, ProgramError
from deltalog.language.amosql.context import Typed
from deltalog.language.amosql.parser import Parsed, parse_piece, statement_pieces
from deltalog.language.amosql.schema import LITERAL_TYPES, column_type
from deltalog.language.amosql.translation import SchemaTranslator
from deltalog.language.amosql.tree import (
    Activation,
    Assignment,
    Boundary,
    Call,
    ChangeTypes,
    CreateFunction,
    CreateInstances,
    CreateRule,
    CreateType,
    DeleteObjects,
    Expression,
    Invocation,
    Name,
    Select,
    Statement,
    Update,
)
from deltalog.language.ast import Column, Constant, Row
from deltalog.runtime.amosql.activation import change_activation
from deltalog.runtime.amosql.objects import change_types, create_instances, delete_objects
from deltalog.runtime.amosql.procedures import Execution, is_procedure_call
from deltalog.runtime.amosql.stored_schema import StoredSchema, change_schema, read_schema
from deltalog.runtime.amosql.tabulation import fill_tables, register_tabulations
from deltalog.runtime.amosql.updates import carry_out_update
from deltalog.runtime.amosql.workspace import Workspace
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.execution import make_changes
from deltalog.runtime.transaction import Transaction
from deltalog.source import Source, Span

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


@dataclass(frozen=True)
class Selected:
    """The rows of a `select`, a bag in order, and its text."""

    text: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


class AmosqlSession:
    """Executes statements on a database in memory, a file or tables; knows `:variables`."""

    def __init__(self, database: Any) -> None:
        self.database: MemoryDatabase = database  # or one in tables, which has the same verbs
        self.variables: dict[str, Typed] = {}
        self._transaction: Transaction | None = None
        self._variables_before: dict[str, Typed] = {}
        self._take_schema(read_schema(database))
        fill_tables(database, self.translator)

    def _take_schema(self, stored: StoredSchema) -> None:
        self.stored = stored
        self.translator = SchemaTranslator(stored.schema)
        register_tabulations(self.database, self.translator)

    @property
    def is_in_transaction(self) -> bool:
        return self._transaction is not None

    @property
    def pending(self) -> ChangeSet:
        """The net change of the open transaction so far, of stored functions and types."""
        return ChangeSet() if self._transaction is None else self._transaction.net()

    def execute(self, source: str | Source) -> list[Selected | ChangeSet]:
        """Carry out the statements of a text; return what was selected and what has changed."""
        return list(self.outcomes(source))

    def outcomes(self, source: str | Source) -> Iterator[Selected | ChangeSet]:
        """The same, one statement after the other: each is carried out when it is asked for."""
        if isinstance(source, str):
            source = Source("<text>", source)
        for piece in statement_pieces(source):
            try:
                outcome = self._execute_statement(parse_piece(piece))
            except BaseException:
                self._end_transaction(is_committed=False)
                raise
            if outcome is not None:
                yield outcome

    def _execute_statement(self, parsed: Parsed) -> Selected | ChangeSet | None:
        match parsed.statement:
            case CreateType() | CreateFunction() | CreateRule():
                self._extend_schema(parsed)
                return None
            case Activation() as activation:
                self._check_outside(activation.span)
                workspace = self._workspace_for(self.database.transaction())
                change_activation(self.database, workspace, activation)
                return None
            case Boundary():
                return self._begin_or_end(parsed.statement)
            case Select() as select:
                return self._select_rows(select)
            case Invocation(call=call) if not is_procedure_call(self.stored.schema, call):
                return self._select_rows(Select((call,), (), None, call.span))
            case statement:
                return self._make_change(statement)

    # --- the schema

    def _extend_schema(self, parsed: Parsed) -> None:
        statement = parsed.statement
        assert isinstance(statement, CreateType | CreateFunction | CreateRule)
        self._check_outside(statement.span)
        new = self.stored.extended(parsed)
        is_idle = isinstance(statement, CreateRule) and not statement.parameters
        change_schema(self.database, self.stored, new, [statement.name] if is_idle else [])
        self._take_schema(new)
        fill_tables(self.database, self.translator)

    def _check_outside(self, span: Span) -> None:
        if self._transaction is not None:
            raise ProgramError([errors.SCHEMA_IN_TRANSACTION.at(span)])

    # --- transactions

    def _begin_or_end(self, statement: Boundary) -> ChangeSet | None:
        if statement.verb == "begin":
            if self._transaction is not None:
                raise DataError([errors.TRANSACTION_OPEN.at(statement.span)])
            self._transaction = self.database.transaction()
            self._variables_before = dict(self.variables)
            return None
        if self._transaction is None:
            raise DataError([errors.NO_TRANSACTION.at(statement.span, verb=statement.verb)])
        return self._end_transaction(is_committed=statement.verb == "commit")

    def _end_transaction(self, is_committed: bool) -> ChangeSet:
        """End the open transaction, if there is one."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return ChangeSet()
        if is_committed:
            return transaction.commit()
        transaction.rollback()
        self.variables = self._variables_before
        return ChangeSet()

    # --- statements

    def _workspace_for(self, transaction: Transaction) -> Workspace:
        return Workspace(self.database, self.translator, transaction, self.variables)

    def _select_rows(self, select: Select) -> Selected:
        """Rows in the state of the open transaction, or in that of the database."""
        transaction = self._transaction or self.database.transaction()
        return self._select_in(self._workspace_for(transaction), select)

    def _make_change(self, statement: Statement) -> ChangeSet | None:
        if self._transaction is not None:
            self._carry_out(self._workspace_for(self._transaction), statement)
            return None
        variables = dict(self.variables)
        try:
            with self.database.transaction() as transaction:
                self._carry_out(self._workspace_for(transaction), statement)
        except BaseException:
            self.variables = variables
            raise
        return transaction.delta

    def _carry_out(self, workspace: Workspace, statement: Statement) -> None:
        match statement:
            case CreateInstances():
                create_instances(workspace, statement)
            case ChangeTypes():
                change_types(workspace, statement)
            case DeleteObjects():
                delete_objects(workspace, statement)
            case Update():
                carry_out_update(workspace, statement)
            case Assignment():
                self._assign_variable(workspace, statement)
            case Invocation(call=call):
                Execution(workspace, self._call_foreign).invoke(call)
            case _:
                raise AssertionError(statement)

    def _call_foreign(self, transaction: Transaction, name: str, row: Row, span: Span) -> None:
        """Call a function of Python, and make the changes that it returns."""
        if self.database.registered(name) is None:
            hint = f'`@db.action("{name}")`, or `--actions FILE.py` on the command line'
            raise DataError([errors.FOREIGN_UNKNOWN.at(span, name=name, hint=hint)])
        make_changes(transaction, name, self.database.call_action(name, [row]))

    def _assign_variable(self, workspace: Workspace, statement: Assignment) -> None:
        select = Select((statement.value,), (), None, statement.span, (statement.target,))
        self._select_in(workspace, select)

    def _select_in(self, workspace: Workspace, select: Select) -> Selected:
        body = workspace.body()
        body.declare(select.variables)
        body.require(select.condition)
        values = [body.value(each) for each in select.values]
        rows = workspace.ask(body, [each.term for each in values])
        if select.into:
            self._bind_variables(select, values, rows)
        columns = tuple(
            Column(_column_title(expression), column_type(each.type or "object"))
            for expression, each in zip(select.values, values, strict=True)
        )
        return Selected(" ".join(select.span.text.split()), columns, tuple(rows))

    def _bind_variables(self, select: Select, values: list[Typed], rows: list[Row]) -> None:
        if len(rows) != 1 or len(select.into) != len(values):
            raise DataError([errors.NOT_ONE_ROW.at(select.span, count=len(rows))])
        for name, value, typed in zip(select.into, rows[0], values, strict=True):
            type_ = typed.type if typed.type in LITERAL_TYPES else None
            constant = Constant(value, column_type(typed.type or "object"))
            self.variables[name.name] = Typed(constant, type_)


def _column_title(expression: Expression) -> str:
    match expression:
        case Name(name=name) | Call(function=name):
            return name
        case _:
            assert expression.span is not None
            return " ".join(expression.span.text.split())
