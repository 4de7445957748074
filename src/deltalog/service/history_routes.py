"""Routes of time travel: commits, changes between versions, and the programs there were."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from deltalog.rewrites.names import is_generated
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import Caller, CallerDep
from deltalog.service.models import CommitList, DeltaAnswer, ProgramList
from deltalog.service.query_routes import known_relation
from deltalog.service.values import change_to_json
from deltalog.store.log import Summary
from deltalog.store.logged import Logged

router = APIRouter(prefix="/v1", tags=["history"])
Bound = Annotated[int | None, Query(ge=0, le=2**63 - 1)]


@router.get("/commits", response_model=CommitList)
async def commits(
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    after: Bound = None,
    until: Bound = None,
    limit: Annotated[int | None, Query(ge=1, description="Of no more commits than this.")] = None,
) -> Response:
    """List commits after a version, up to another one: when, of which kind, how many facts.

    Nothing is derived for it: `GET /v1/deltas` shows the change of a view that the log omits.
    """
    caller.check_reads_some()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        first, last = database.first_version, database.version
        assert isinstance(database, Logged)
        start = first if after is None else after
        end = last if until is None else min(until, last)
        most = min(limit or settings.rows_max, settings.rows_max)
        reached, found = database.summaries(start, min(end, start + most))
        return {
            "first": first,
            "last": last,
            "commits": [_summary_json(each, caller) for each in found],
            "next": reached if reached < end else None,
        }

    return json_answer(await host.compute(run))


def _summary_json(found: Summary, caller: Caller) -> dict[str, Any]:
    facts = sum(count for name, count in found.counts.items() if not is_generated(name))
    return {
        "version": found.version,
        "time": found.time.isoformat(),
        "kind": found.kind,
        "facts": facts if caller.reads_all else None,
        "omitted": sorted(found.omitted) if caller.reads_all else None,
    }


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
    caller.check_reads_some()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        end = database.version if last is None else last
        before, after = database.relations_at(first), database.relations_at(end)
        for name in relation or ():
            known_relation({**before, **after}, name, caller)
        change = database.delta(first, last, relation)
        if relation is not None:
            change = change.only(*(name for name in relation if name in change.relations))
        shown = caller.readable(change, after, before)
        return {
            "first": first,
            "last": end,
            "is_complete": len(shown) <= settings.rows_max,
            "delta": change_to_json(shown, settings.rows_max),
        }

    return json_answer(await host.compute(run))


@router.get("/programs", response_model=ProgramList)
async def programs(caller: CallerDep, host: HostDep) -> Response:
    """Return every program there was, and the version from which on it counted."""
    caller.check_reads_all()
    found = await host.call(lambda database: database.programs())
    listed = [{"version": v, "time": time, "text": text} for v, time, text in found]
    return json_answer({"programs": listed})
