"""A transaction: inserts, deletes and sets, checked as they come, applied together or not at all.

    with db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
        tx.set("salary", ("ann", 5))      # replaces ann's salary

`tx.query` and `tx.facts` read the state that it would make. Operations count in the order they are
given. What is applied is their *net effect* on the state before: inserting what is there, deleting
what is not, or undoing an earlier operation is nothing. A transaction knows what is wanted; what of
that is a no-op, the engine knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from deltalog.analysis.columns import Relation, Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import Changed, LazyTable
from deltalog.language.ast import Query, Row, Rule
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.checked_rows import (
    FindKey,
    check_set_once,
    check_taken_keys,
    checked_row,
    checked_rows,
    key_of,
    key_taken,
    with_unique_keys,
)
from deltalog.runtime.incoming import (
    COLUMNAR_FROM,
    RowsLike,
    incoming_facts,
    incoming_rows,
    is_many,
    rows_as_columns,
)
from deltalog.runtime.realization import Wish
from deltalog.runtime.state_after import facts_after, query_after, query_with_views
from deltalog.runtime.view_requests import ViewRequests
from deltalog.runtime.whole_tables import WholeTables

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.rows import Rows

FactSet = set[Row]
Net = Callable[[ChangeSet], ChangeSet]
"""Returns a change without its no-ops."""
Commit = Callable[[ChangeSet], ChangeSet]
MakeTransaction = Callable[["Ground", Commit, "MemoryDatabase"], "Transaction"]
HasFreeKeys = Callable[[Relation, LazyTable], bool]
"""Whether no other fact has the key of one of the rows; False also if it takes long to find out."""
Expect = Callable[[str, tuple[int, ...], Collection[Row]], None]
"""Called with keys that will be looked up in some columns, so that they are fetched together."""
_NO_TABLES = WholeTables()


def base_relation(relations: Relations, name: str) -> Relation:
    """The base relation of that name, or a `DataError`."""
    if name not in relations:
        raise DataError(
            [catalogue.NO_SUCH_RELATION.at(None, name=name, hint=did_you_mean(name, relations))]
        )
    if relations[name].kind != "base":
        raise DataError([catalogue.NOT_BASE.at(None, name=name)])
    return relations[name]


class Ground(NamedTuple):
    """Access to the state that transactions change; one for many of them."""

    relations: Relations
    find: FindKey
    net: Net
    lock: AbstractContextManager[object] = nullcontext()
    expect: Expect | None = None
    has_free_keys: HasFreeKeys = lambda *_: False


class Transaction:
    """Collects changes; commits when its `with` block ends without an exception."""

    __slots__ = (
        "_commit",
        "_database",
        "_ground",
        "_holders",
        "_is_internal",
        "_is_over",
        "_relations",
        "_requests",
        "_set_keys",
        "_state",
        "_tables",
        "delta",
    )

    def __init__(
        self, ground: Ground, commit: Commit, database: MemoryDatabase | None = None
    ) -> None:
        self._ground = ground
        self._database = database
        self._relations = ground.relations
        self._commit = commit
        self._state: dict[str, dict[Row, bool]] = {}
        self._tables = _NO_TABLES
        self._holders: dict[tuple[str, Row], Row | None] = {}
        self._set_keys: dict[str, set[Row]] = {}
        self._requests: tuple[Wish, ...] = ()
        self._is_over = False
        self._is_internal = False
        """Whether it may change what active rules keep for themselves."""
        self.delta = NO_CHANGE

    def insert(self, relation: str, rows: RowsLike) -> None:
        """Add facts to a base relation: rows, a table, a DataFrame, an array (`RowsLike`).

        A view can be changed if a choice is declared for it, `to insert path(X, Y) do …`.
        """
        known = self._target_relation(relation, rows, True)
        if known is not None:
            checked = self._take_rows(known, rows, True)
            if known.key:
                self._check_keys(known, with_unique_keys(known, checked))
            self._put_all(known, checked, True)

    def _check_keys(self, relation: Relation, rows: list[Row]) -> None:
        """No other fact may have the key of one of the rows."""
        if self._ground.expect is not None:
            self._ground.expect(
                relation.name, relation.key, [key_of(relation, row) for row in rows]
            )
        for row in rows:
            other = self._holder_of(relation, row)
            if other not in (row, None):
                raise DataError([key_taken(relation, other)])

    def delete(self, relation: str, rows: RowsLike) -> None:
        """Remove facts from a base relation, or from a view with a declared choice."""
        known = self._target_relation(relation, rows, False)
        if known is not None:
            self._put_all(known, self._take_rows(known, rows, False), False)

    def set(self, relation: str, rows: RowsLike) -> None:
        """Replace the fact that has this key, or add it if there is none; one row or many.

        Rows of one call have no order: two that set a key to different facts are an error.
        """
        known = self._open_relation(relation)
        if not known.key:
            raise DataError([catalogue.NO_KEY.at(None, name=relation)])
        self._split_tables(known)
        many = incoming_rows(known, rows) if is_many(rows) else [checked_row(known, rows)]
        check_set_once(known, many)
        for checked in many:
            other = self._holder_of(known, checked)
            if other is not None:
                self._put_row(known, other, False)
            self._put_row(known, checked, True)
            self._set_keys.setdefault(known.name, set()).add(key_of(known, checked))

    def _is_requested(self, relation: str, rows: RowsLike, holds: bool) -> bool:
        """Translate facts of a view by its declared choice; False if there is none."""
        known = self._relations.get(relation)
        if known is None or known.kind != "view" or self._database is None or self._is_over:
            return False
        requests = ViewRequests(self._database)
        choice = requests.choice(holds, relation)
        if choice is None:
            return False
        for row in incoming_rows(known, rows) if is_many(rows) else [checked_row(known, rows)]:
            wish = Wish(holds, relation, row)
            if not requests.holds(wish, self.net()):
                for made in requests.translated(choice, row):
                    put = self.insert if made.holds else self.delete
                    put(made.relation, [made.row])
            self._requests = (*self._requests, wish)
        return True

    def _take_rows(self, relation: Relation, given: RowsLike, holds: bool) -> list[Row]:
        """Check rows; return those to be put one by one: none, if they stay a whole table."""
        if type(given) is list and len(given) < COLUMNAR_FROM and not self._tables:
            return checked_rows(relation, given)
        rows = incoming_facts(relation, given)
        if len(rows) >= COLUMNAR_FROM and isinstance(rows, list):
            rows = rows_as_columns(relation, rows)
        if isinstance(rows, LazyTable):
            name = relation.name
            is_whole = name not in self._state and not (relation.key and name in self._tables)
            if is_whole and relation.key and holds:
                with self._ground.lock:
                    is_whole = self._ground.has_free_keys(relation, rows)
            if is_whole and self._own_tables().put(name, rows, holds):
                return []
            rows = list(rows.read())
        if rows and self._tables:
            self._split_tables(relation)
        return rows

    def _own_tables(self) -> WholeTables:
        if self._tables is _NO_TABLES:
            self._tables = WholeTables()
        return self._tables

    def _split_tables(self, relation: Relation) -> None:
        """Put the rows of whole tables one by one, since their relation is touched again."""
        if relation.name in self._tables:
            rows, holds = self._tables.rows(relation.name)
            self._put_all(relation, rows, holds)
            del self._tables[relation.name]

    def _open_relation(self, relation: str) -> Relation:
        if self._is_over:
            raise DataError([catalogue.TRANSACTION_OVER.at(None)])
        known = self._relations.get(relation)
        if known is None or known.kind != "base" or self._is_hidden(relation):
            visible = {n: r for n, r in self._relations.items() if not self._is_hidden(n)}
            return base_relation(visible, relation)  # which says what is wrong
        return known

    def _target_relation(self, relation: str, rows: RowsLike, holds: bool) -> Relation | None:
        """The base relation to be changed; None if rows of a view have been translated."""
        if self._is_over:
            raise DataError([catalogue.TRANSACTION_OVER.at(None)])
        known = self._relations.get(relation)
        if known is not None and known.kind == "base" and "__" not in relation:
            return known
        return None if self._is_requested(relation, rows, holds) else self._open_relation(relation)

    def _is_hidden(self, relation: str) -> bool:
        return "__" in relation and not self._is_internal

    def _put_all(self, relation: Relation, rows: list[Row], holds: bool) -> None:
        if not rows:
            return
        if not relation.key:
            fresh = dict.fromkeys(rows, holds)
            if relation.name in self._state:
                self._state[relation.name].update(fresh)
            else:
                self._state[relation.name] = fresh
            return
        for row in rows:
            self._put_row(relation, row, holds)

    def _put_row(self, relation: Relation, row: Row, holds: bool) -> None:
        self._state.setdefault(relation.name, {})[row] = holds
        if relation.key:
            if not holds and self._holder_of(relation, row) not in (row, None):
                return
            self._holders[relation.name, key_of(relation, row)] = row if holds else None

    def _holder_of(self, relation: Relation, row: Row) -> Row | None:
        """The fact that holds at this point of the transaction and has the row's key."""
        if not relation.key:
            return None
        key = key_of(relation, row)
        if (relation.name, key) in self._holders:
            return self._holders[relation.name, key]
        with self._ground.lock:
            found = self._ground.find(relation.name, dict(zip(relation.key, key, strict=True)))
            return next(iter(found), None)

    def _fact_with_key(self, relation: str, key: Row) -> Row | None:
        """The fact of a base relation that has this key after the changes so far."""
        known = self._open_relation(relation)
        values = dict(zip(known.key, key, strict=True))
        return self._holder_of(known, tuple(values.get(i) for i in range(known.arity)))

    def query(self, text: str | Query, parameters: Mapping[str, Any] | None = None) -> Rows:
        """The answers of a query after the changes so far, which nobody else sees."""
        return query_after(self._readable_database(), self._requested_change, text, parameters)

    def _query_with_views(self, query: Query, rules: tuple[Rule, ...]) -> Rows:
        """The answers of a query that reads views of its own, which these rules define."""
        return query_with_views(self._readable_database(), self._requested_change, query, rules)

    def facts(self, relation: str) -> FactSet:
        """All facts of a base relation or view after the changes so far."""
        return facts_after(self._readable_database(), self._requested_change, relation)

    def _readable_database(self) -> MemoryDatabase:
        if self._is_over or self._database is None:
            raise DataError([catalogue.TRANSACTION_OVER.at(None)])
        return self._database

    def net(self) -> ChangeSet:
        """The effect on the state before: facts that will be inserted and deleted."""
        with self._ground.lock:
            return self._ground.net(self._requested_change())

    def _requested_change(self) -> ChangeSet:
        """The changes asked for, each fact as it was left last; some may be no-ops."""
        inserted: dict[str, Changed] = {}
        deleted: dict[str, Changed] = {}
        for relation, rows in self._state.items():
            if not rows:
                continue
            if False not in rows.values():
                inserted[relation] = frozenset(rows)
            elif True not in rows.values():
                deleted[relation] = frozenset(rows)
            else:
                inserted[relation] = new = frozenset([row for row, holds in rows.items() if holds])
                deleted[relation] = frozenset(rows).difference(new)
        if self._set_keys:
            for name, replaced in self._replaced_meanwhile().items():
                deleted[name] = frozenset(replaced).union(deleted.get(name, ()))
        wanted = ChangeSet.exact(inserted, deleted)
        if self._holders:  # another transaction may have taken a key since this one looked
            check_taken_keys(wanted, self._relations, self._ground.find)
        for name, table, holds in self._tables.whole() if self._tables else ():
            known = self._relations[name]
            if known.key and holds and not self._ground.has_free_keys(known, table):
                check_taken_keys(
                    ChangeSet.exact({name: table}, {}), self._relations, self._ground.find
                )
            (inserted if holds else deleted)[name] = table
        return wanted

    def _replaced_meanwhile(self) -> dict[str, FactSet]:
        """Return facts with keys that were set, committed by others since: a set replaces them."""
        found: dict[str, FactSet] = {}
        for name, keys in self._set_keys.items():
            positions = self._relations[name].key
            for key in keys:
                for row in self._ground.find(name, dict(zip(positions, key, strict=True))):
                    if row not in self._state[name]:
                        found.setdefault(name, set()).add(row)
        return found

    def commit(self) -> ChangeSet:
        """Apply the net effect; returns the exact change of every relation and view."""
        if self._is_over:
            raise DataError([catalogue.TRANSACTION_OVER.at(None)])
        self._is_over = True
        if self._requests and self._database is not None:
            ViewRequests(self._database).check(self._requests, self.net())
        with self._ground.lock:
            self.delta = self._commit(self._requested_change())
        return self.delta

    def rollback(self) -> None:
        self._is_over = True

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.rollback()
        elif not self._is_over:
            self.commit()
