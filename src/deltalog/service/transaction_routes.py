"""Routes that change facts, or try what a change would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from deltalog.diagnostics.report import DeltalogError
from deltalog.language.ast import Row
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.constraints import Check
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fact_arguments import fill_transaction
from deltalog.runtime.transaction import Transaction, base_relation
from deltalog.runtime.violations import Violation
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import Caller, CallerDep
from deltalog.service.metrics import Metrics
from deltalog.service.models import Changes, Committed, TransactionRequest, Tried, WhatIfRequest
from deltalog.service.problems import violation_json
from deltalog.service.query_routes import known_relation
from deltalog.service.recent import Recent
from deltalog.service.request_keys import RequestKeys
from deltalog.service.values import change_to_json, rows_from_json

router = APIRouter(prefix="/v1", tags=["transactions"])
TRANSACTIONS = "deltalog_transactions_total"
REFUSED = "deltalog_refused_total"
COMMIT_SECONDS = "deltalog_commit_seconds"
Warnings = Sequence[Mapping[str, Any]]
Sides = tuple[Mapping[str, list[Row]], Mapping[str, list[Row]], Mapping[str, list[Row]]]


@router.post("/transactions", response_model=Committed)
async def transact(
    request: Request,
    body: TransactionRequest,
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255)
    ] = None,
) -> Response:
    """Delete, insert and set facts in one transaction.

    With the header `Idempotency-Key` a transaction that is offered again is not applied again: the
    answer has the version that it made the first time, and `is_repeated`.
    """
    caller.check_write()
    state, raw, started = request.app.state, await request.body(), perf_counter()
    metrics: Metrics = state.metrics

    def run(database: MemoryDatabase) -> tuple[int, bool, ChangeSet | None, Warnings]:
        made: list[ChangeSet] = []

        def commit() -> None:
            recent: Recent = state.recent
            made.append(recent.committing(database, lambda: commit_changes(database, caller, body)))

        keys: RequestKeys = state.request_keys
        before = version = database.version
        is_repeated = False
        if key is None:
            commit()
            version = database.version
        else:
            version, is_repeated = keys.once(database, caller.name, key, raw, commit)
        shown = None
        if made and body.views is not None:
            shown = caller.readable(made[0], database.relations)
        is_new = made and database.version != before
        return version, is_repeated, shown, warnings_of(database, caller) if is_new else []

    try:
        version, is_repeated, delta, warned = await host.compute(run)
    except DeltalogError:
        metrics.count(REFUSED)
        raise
    metrics.count(TRANSACTIONS, result="repeated" if is_repeated else "committed")
    metrics.observe(COMMIT_SECONDS, perf_counter() - started)
    if not caller.reads_some:
        return json_answer(committed_json(None, None, is_repeated, None, settings.rows_max))
    shown = warned[: settings.rows_max]
    offset = host.offset(version)
    document = committed_json(version, offset, is_repeated, delta, settings.rows_max, shown)
    return json_answer(document, headers={"Stream-Next-Offset": offset})


def warnings_of(database: MemoryDatabase, caller: Caller) -> Warnings:
    """Violations by the last commit of constraints that only warn, those that may be read."""
    constraints = database.propagation.constraints
    found = () if constraints is None else constraints.last_warned.violations
    seen = (each for each in found if _may_see(caller, database, each))
    return [violation_json(each, caller.reads_all) for each in seen]


def committed_json(
    version: int | None,
    offset: str | None,
    is_repeated: bool,
    delta: ChangeSet | None,
    most: int,
    warned: Warnings = (),
) -> dict[str, Any]:
    is_complete = delta is None or len(delta) <= most
    return {
        "accepted": True,
        "version": version,
        "offset": offset,
        "is_repeated": is_repeated,
        "is_complete": is_complete,
        "delta": None if delta is None else change_to_json(delta, most),
        "warnings": list(warned),
    }


def commit_changes(database: MemoryDatabase, caller: Caller, body: TransactionRequest) -> ChangeSet:
    """Commit what a caller sends, if it may write all of the facts that change by it."""
    sides = changes_of(database, caller, body)
    views = _views_to_show(database, caller, body.views)
    transaction = fill_transaction(database.transaction(views=views or ()), *sides)
    check_written(database, caller, transaction)
    return transaction.commit()


def _views_to_show(
    database: MemoryDatabase, caller: Caller, views: list[str] | None
) -> list[str] | None:
    """The views whose change a caller asks for; one that it may not know of is not there."""
    if not caller.reads_some:
        return []
    for name in () if caller.reads_all else views or ():
        known_relation(database.relations, name, caller)
    return views


def check_written(database: MemoryDatabase, caller: Caller, transaction: Transaction) -> None:
    """Raise unless the caller may write each fact that changes, those that are replaced too."""
    if caller.is_limited_writer:
        caller.check_change(transaction.net(), database.relations)


def changes_of(database: MemoryDatabase, caller: Caller, body: Changes) -> Sides:
    """Facts to insert, delete and set, as values of their columns."""

    def side(facts: Mapping[str, list[Any]]) -> dict[str, list[Row]]:
        found = {}
        for name, rows in facts.items():
            if not caller.may_write(name):
                caller.refuse(f"write `{name}`")
            relation = base_relation(database.relations, name)
            found[name] = rows_from_json(relation, rows)
            for row in found[name] if caller.is_limited_writer else ():
                if not caller.may_write_row(relation, row):
                    caller.refuse(f"write these facts of `{name}`")
        return found

    return side(body.insert), side(body.delete), side(body.set)


@router.post("/what-if", response_model=Tried)
async def what_if(
    body: WhatIfRequest, caller: CallerDep, host: HostDep, settings: SettingsDep
) -> Response:
    """Return the exact change that a transaction would make, without making it.

    Facts that may not be written cannot be tried either: the effect of a change on a view tells
    about the facts that it is joined with. `violations` are those that would refuse it.
    """
    caller.check_write()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        insert, delete, put = changes_of(database, caller, body)
        probe = fill_transaction(database.silent_transaction(), insert, delete, put)
        check_written(database, caller, probe)
        probe.rollback()
        views = _views_to_show(database, caller, body.views)
        change = database.what_if(insert, delete, put, views=views)
        broken = [
            violation
            for violation in tried_violations(database, change)
            if _may_see(caller, database, violation)
        ]
        shown = caller.readable(change, database.relations)
        return {
            "version": database.version if caller.reads_some else None,
            "is_complete": len(shown) <= settings.rows_max,
            "delta": change_to_json(shown, settings.rows_max),
            "violations": [violation_json(each, caller.reads_all) for each in broken],
        }

    return json_answer(await host.compute(run))


def _may_see(caller: Caller, database: MemoryDatabase, violation: Violation) -> bool:
    relation = database.relations.get(violation.relation)
    return relation is not None and caller.may_read_row(relation, violation.fact)


def tried_violations(database: MemoryDatabase, change: ChangeSet) -> list[Violation]:
    """Violations that a change would bring about, as its own facts have them."""
    constraints = database.propagation.constraints
    found = []
    for check in () if constraints is None else constraints.checks:
        found += [check.violation(row) for row in _violating_rows(check)(change)]
    return found


def _violating_rows(check: Check) -> Callable[[ChangeSet], list[Row]]:
    if check.required is None:
        return lambda change: sorted(change.inserted[check.watched], key=repr)
    required = check.required
    return lambda change: [required] if required in change.deleted[check.watched] else []
