"""Routes of view updates: which changes of base facts make a derived fact true, or false."""

from __future__ import annotations

from itertools import islice
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from deltalog.diagnostics import catalogue, service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Value
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.realization import Budget, Realization, Realizations
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.models import Committed, RealizationList, RealizeApplyRequest, RealizeRequest
from deltalog.service.problems import http_problem
from deltalog.service.transaction_routes import committed_json
from deltalog.service.values import change_to_json, row_to_json, rows_to_json

router = APIRouter(prefix="/v1", tags=["view updates"])


@router.post("/realize", response_model=RealizationList)
async def realize(
    body: RealizeRequest, caller: CallerDep, host: HostDep, settings: SettingsDep
) -> Response:
    """Search the minimal changes of base facts that make derived facts true or false.

    Answers are consistent with all constraints, the cheapest first. They have values of any
    relation that a rule joins, so they are for callers that may read everything.
    """
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        found = _search_realizations(database, body, settings.seconds_max)
        answers = [
            _realization_json(number, each, settings.rows_max)
            for number, each in enumerate(islice(found, body.answers), start=1)
        ]
        return {
            "version": database.version,
            "already": list(found.already),
            "hints": list(found.hints),
            "answers": answers,
            "is_complete": found.is_complete,
            "reasons": list(found.reasons),
        }

    return json_answer(await host.compute(run))


@router.post("/realize/apply", response_model=Committed)
async def apply_realization(
    request: Request,
    body: RealizeApplyRequest,
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
) -> Response:
    """Commit the answer of a number, if the version is still the one it was found for."""
    caller.check_write()
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> tuple[int, ChangeSet]:
        if database.version != body.version:
            made = catalogue.REQUEST_OUTDATED.at(None, version=body.version)
            raise DataError([made])
        found = _search_realizations(database, body, settings.seconds_max)
        chosen = next(islice(found, body.number - 1, None), None)
        if chosen is None:
            entry = service_catalogue.NOT_FOUND
            raise http_problem(404, entry, what="realization", name=body.number)
        caller.check_change(chosen.base, database.relations)
        values = {_new_value(chosen, name): value for name, value in body.values.items()}
        delta = request.app.state.recent.committing(database, lambda: chosen.apply(values))
        return database.version, delta

    version, delta = await host.compute(run)
    offset = host.offset(version)
    document = committed_json(version, offset, False, delta, settings.rows_max)
    return json_answer(document, headers={"Stream-Next-Offset": offset})


def _search_realizations(
    database: MemoryDatabase, body: RealizeRequest, seconds_max: float
) -> Realizations:
    seconds = min(body.seconds, seconds_max)
    wanted = max(body.answers, getattr(body, "number", 1))
    budget = Budget(body.nodes, seconds, wanted, body.changes, body.new_values)
    return database.realize(
        *body.requests, budget=budget, fixed=body.fixed, costs=body.costs, rank=body.rank
    )


def _new_value(chosen: Realization, name: str) -> Value:
    for value in chosen.new_values:
        if str(row_to_json([value])[0]) == name:
            return value
    raise http_problem(
        422, service_catalogue.BAD_REQUEST, reason=f"`{name}` is not a new value of it"
    )


def _realization_json(number: int, found: Realization, most: int) -> dict[str, Any]:
    return {
        "number": number,
        "inserted": {name: rows_to_json(sorted(found.inserted[name])) for name in found.inserted},
        "deleted": {name: rows_to_json(sorted(found.deleted[name])) for name in found.deleted},
        "new_values": row_to_json(found.new_values),
        "delta": change_to_json(found.delta, most),
    }
