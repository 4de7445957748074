"""The caller of a request: who it is, and which facts it may read or write.

A role says what a token may do (`read`, `write`, `admin`), grants say with which facts. Without a
file of tokens, on loopback only, every caller may do everything. An administrator reads everything.

Facts of a query are those of its atoms, so it may be asked if each atom is covered by a grant:
`path(1, Y)` by `path?src=1`, `path(X, Y)` only by `path`. Then the answer depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, NoReturn

from fastapi import Depends
from starlette.requests import HTTPConnection

from deltalog.analysis.relation import Relation, Relations
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Atom, Constant, Literal, Row, Value
from deltalog.language.walk import atoms_of
from deltalog.runtime.changes import ChangeSet
from deltalog.service.grant_texts import Grant
from deltalog.service.problems import Problem, http_problem
from deltalog.service.rate_limit import RateLimit
from deltalog.service.settings import ServiceSettings
from deltalog.service.tokens import ROLES, Token, TokenFile

SUBPROTOCOL = "deltalog.token."
"""How a page shows its token to a WebSocket, which cannot have headers."""
_NO_VALUES: Mapping[str, Value] = {}


@dataclass(frozen=True)
class Caller:
    """Who calls; `grants` limit the roles, None if nothing is limited.

    It has shown a `token`, unless none are needed.
    """

    name: str
    roles: frozenset[str]
    grants: tuple[Grant, ...] | None = None
    token: Token | None = field(default=None, repr=False, compare=False)

    @property
    def is_administrator(self) -> bool:
        return "admin" in self.roles

    @property
    def reads_all(self) -> bool:
        """Whether there is no fact that it may not read."""
        if self.is_administrator:
            return True
        return "read" in self.roles and (
            self.grants is None
            or any(each.is_unlimited and each.act in (None, "read") for each in self.grants)
        )

    @property
    def reads_some(self) -> bool:
        """Whether it may read anything; from versions others would learn whether facts are new."""
        return "read" in self.roles or self.is_administrator

    def may_read(self, view: str, bindings: Mapping[str, Value] = _NO_VALUES) -> bool:
        """Whether it may read all facts of a relation or view that have these values."""
        return self.reads_all or (
            "read" in self.roles and self._grants_cover("read", view, bindings)
        )

    def may_read_some(self, view: str) -> bool:
        """Whether it may read any fact of a relation or view, so that it may know of it."""
        return self.reads_all or (
            "read" in self.roles
            and any(
                each.relation in ("*", view) and each.act in (None, "read")
                for each in self.grants or ()
            )
        )

    def may_read_row(self, relation: Relation, row: Row) -> bool:
        if self.reads_all:
            return True
        return self.may_read(relation.name, _values_of_row(relation, row))

    def may_write(self, relation: str | None = None) -> bool:
        """Whether it may write at all, or, with a relation, some facts of it."""
        if not self.roles & {"write", "admin"}:
            return False
        if relation is None or self.grants is None or self.is_administrator:
            return True
        return any(
            each.relation in ("*", relation) and each.act in (None, "write") for each in self.grants
        )

    def may_write_row(self, relation: Relation, row: Row) -> bool:
        if self.is_administrator or (self.grants is None and self.may_write()):
            return True
        values = _values_of_row(relation, row)
        return self.may_write() and self._grants_cover("write", relation.name, values)

    @property
    def is_limited_writer(self) -> bool:
        """Whether there are facts that it may not write."""
        return self.grants is not None and not self.is_administrator

    def may_administrate(self) -> bool:
        return self.is_administrator

    def _grants_cover(self, act: str, relation: str, values: Mapping[str, Value]) -> bool:
        if self.grants is None:
            return True
        return any(each.covers(act, relation, values) for each in self.grants)

    # --- checks that raise, and filters

    def check_read(self, view: str, bindings: Mapping[str, Value] = _NO_VALUES) -> None:
        if not self.may_read(view, bindings):
            self.refuse(f"read `{view}`" + (" without a value for its columns" * (not bindings)))

    def check_reads_all(self) -> None:
        if not self.reads_all:
            self.refuse("read everything, as this needs")

    def check_reads_some(self) -> None:
        if not self.reads_some:
            self.refuse("read")

    def check_write(self) -> None:
        if not self.may_write():
            self.refuse("write")

    def check_administrate(self) -> None:
        if not self.may_administrate():
            self.refuse("administrate")

    def check_literals(self, body: Iterable[Literal], relations: Relations) -> None:
        """Raise unless it may read all that a query reads."""
        if self.reads_all:
            return
        for atom, _ in atoms_of(tuple(body)):
            relation = relations.get(atom.predicate)
            if relation is None or not self.may_read(
                atom.predicate, _constants_of_atom(atom, relation)
            ):
                self.refuse(f"read what the atom of `{atom.predicate}` reads")

    def check_change(self, change: ChangeSet, relations: Relations) -> None:
        """Raise unless it may insert and delete these facts."""
        if self.grants is None or self.is_administrator:
            self.check_write()
            return
        for _, name, row in change:
            if not self.may_write_row(relations[name], row):
                self.refuse(f"write these facts of `{name}`")

    def readable(
        self, change: ChangeSet, relations: Relations, before: Relations | None = None
    ) -> ChangeSet:
        """The part of a change that it may read; relations may have been others `before` it."""
        if self.reads_all:
            return change
        inserted: dict[str, set[Row]] = {}
        deleted: dict[str, set[Row]] = {}
        for op, name, row in change:
            known = relations if op == "+" or before is None else before
            if name in known and self.may_read_row(known[name], row):
                (inserted if op == "+" else deleted).setdefault(name, set()).add(row)
        return ChangeSet(inserted, deleted)

    def refuse(self, act: str) -> NoReturn:
        raise http_problem(403, service_catalogue.FORBIDDEN, act=act)


def _values_of_row(relation: Relation, row: Row) -> dict[str, Value]:
    return {column.name: value for column, value in zip(relation.columns, row, strict=True)}


def _constants_of_atom(atom: Atom, relation: Relation) -> dict[str, Value]:
    pairs = zip(relation.columns, atom.arguments, strict=False)
    return {column.name: term.value for column, term in pairs if isinstance(term, Constant)}


LOCAL = Caller("local", frozenset(ROLES))
"""Whoever reaches a service without tokens, on the same machine."""


class Access:
    """Decides who a caller is, and whether it calls too often."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._tokens = None if settings.tokens is None else TokenFile(settings.tokens)
        self._rate = RateLimit(settings.requests_per_second)

    def caller_of(self, connection: HTTPConnection) -> Caller:
        """The caller of a request or WebSocket; raises 401 or 429."""
        address = connection.client.host if connection.client else "?"
        if self._tokens is None:
            self._rate.check(address)
            return LOCAL
        shown = shown_token(connection)
        token = None if shown is None else self._tokens.find(shown)
        self._rate.check(address if token is None else token.id)
        if token is None:
            raise unauthenticated_problem(
                "none was sent" if shown is None else "this one is not, or not any more"
            )
        return caller_with(token)

    def is_valid(self, caller: Caller) -> bool:
        """Whether the token of a caller has not been revoked since; not if that cannot be read."""
        if self._tokens is None or caller.token is None:
            return True
        try:
            return self._tokens.is_valid(caller.token)
        except DataError:
            return False

    @property
    def is_changed(self) -> bool:
        """Whether tokens were made or revoked since somebody was last asked for one."""
        return self._tokens is not None and self._tokens.is_changed


def unauthenticated_problem(reason: str) -> Problem:
    headers = {"WWW-Authenticate": 'Bearer realm="deltalog"'}
    return http_problem(401, service_catalogue.UNAUTHENTICATED, reason=reason, headers=headers)


def caller_with(token: Token) -> Caller:
    return Caller(token.name, frozenset(token.roles), token.grants or None, token)


def shown_token(connection: HTTPConnection) -> str | None:
    """The token in the header `Authorization`, or among the subprotocols of a WebSocket."""
    scheme, _, text = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text:
        return text.strip()
    if connection.scope["type"] == "websocket":
        for each in connection.scope.get("subprotocols", ()):
            if str(each).startswith(SUBPROTOCOL):
                return str(each).removeprefix(SUBPROTOCOL)
    return None


async def caller_of(connection: HTTPConnection) -> Caller:
    """The dependency of every route that shows or changes anything."""
    access: Access = connection.app.state.access
    caller = access.caller_of(connection)
    connection.state.caller = caller
    return caller


def still_allowed(connection: HTTPConnection) -> Callable[[], bool]:
    """A function that returns whether the token of a request has not been revoked since."""
    access: Access = connection.app.state.access
    caller: Caller = connection.state.caller
    return partial(access.is_valid, caller)


CallerDep = Annotated[Caller, Depends(caller_of)]
