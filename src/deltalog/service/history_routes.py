"""Routes of time travel: commits, changes between versions, and the programs there were."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from deltalog.runtime.database import MemoryDatabase
from deltalog.service.answers import HostDep, SettingsDep, compute_answer, json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.models import CommitList, DeltaAnswer, ProgramList
from deltalog.service.values import change_to_json

router = APIRouter(prefix="/v1", tags=["history"])
Bound = Annotated[int | None, Query(ge=0, le=2**63 - 1)]


@router.get("/commits", response_model=CommitList)
async def commits(
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    after: Bound = None,
    until: Bound = None,
) -> Response:
    """List commits after a version, up to another one: when, of which kind, how many facts."""

    def run(database: MemoryDatabase) -> dict[str, Any]:
        first = database.first_version
        start = first if after is None else after
        end = database.version if until is None else until
        found = database.commits(start, min(end, start + settings.rows_max))
        return {
            "first": first,
            "last": database.version,
            "commits": [
                {
                    "version": each.version,
                    "time": each.time.isoformat(),
                    "kind": each.kind,
                    "facts": len(each.change) if caller.reads_all else None,
                }
                for each in found
            ],
        }

    return json_answer(await compute_answer(host, settings, run))


@router.get("/deltas", response_model=DeltaAnswer)
async def deltas(
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    first: Annotated[int, Query(ge=0, le=2**63 - 1, description="From this version …")],
    last: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="… to this one, or to the last.")
    ] = None,
    relation: Annotated[list[str] | None, Query(description="Of these relations only.")] = None,
) -> Response:
    """Return the net change from one version to another, which may also be an earlier one."""

    def run(database: MemoryDatabase) -> dict[str, Any]:
        change = database.delta(first, last)
        if relation is not None:
            change = change.only(*(name for name in relation if name in change.relations))
        end = database.version if last is None else last
        relations = {**database.relations_at(first), **database.relations_at(end)}
        shown = caller.readable(change, relations)
        return {
            "first": first,
            "last": end,
            "is_complete": len(shown) <= settings.rows_max,
            "delta": change_to_json(shown, settings.rows_max),
        }

    return json_answer(await compute_answer(host, settings, run))


@router.get("/programs", response_model=ProgramList)
async def programs(caller: CallerDep, host: HostDep) -> Response:
    """Return every program there was, and the version from which on it counted."""
    caller.check_reads_all()
    found = await host.call(lambda database: database.programs())
    listed = [{"version": v, "time": time, "text": text} for v, time, text in found]
    return json_answer({"programs": listed})
