"""Routes of the program: its text and its change, its network, and whether views are true."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.graphs.network_graph import network_graph
from deltalog.language.parser import parse_program
from deltalog.language.printer import print_program
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.network import network_of
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.models import (
    AuditAnswer,
    AuditRequest,
    NetworkAnswer,
    ProgramChanged,
    ProgramModel,
    ProgramRequest,
)
from deltalog.service.values import change_to_json, rows_to_json
from deltalog.source import Source
from deltalog.store.logged import Logged
from deltalog.store.programs import no_file

router = APIRouter(prefix="/v1", tags=["program"])


@router.get("/program", response_model=ProgramModel)
async def program(caller: CallerDep, host: HostDep) -> Response:
    """Return the program, as it was written if a file keeps it, else as it is printed."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        if isinstance(database, Logged):
            version, time, text = database.programs()[-1]
            return {"version": version, "time": time, "text": text}
        text = print_program(database.model.checked.program)
        return {"version": database.version, "time": None, "text": text}

    return json_answer(await host.call(run))


@router.put("/program", response_model=ProgramChanged)
async def change_program(
    body: ProgramRequest, caller: CallerDep, host: HostDep, settings: SettingsDep
) -> Response:
    """Go over to another program, or try it; returns the exact change of every relation and view.

    A program that is sent cannot include files.
    """
    caller.check_administrate()

    def run(database: MemoryDatabase) -> tuple[int, ChangeSet]:
        if body.version is not None and body.version != database.version:
            raise DataError([catalogue.REQUEST_OUTDATED.at(None, version=body.version)])
        parse_program(Source("<request>", body.text), no_file)
        text = f"{body.text}\n"  # a single line that ends in `.dl` would be a path
        change = database.change_program(text, is_committed=not body.dry_run)
        return database.version, change

    version, change = await host.compute(run)
    return json_answer(
        {
            "version": version,
            "offset": host.offset(version),
            "is_complete": len(change) <= settings.rows_max,
            "delta": change_to_json(change, settings.rows_max),
        }
    )


@router.post("/audit", response_model=AuditAnswer)
async def audit(
    body: AuditRequest, caller: CallerDep, host: HostDep, settings: SettingsDep
) -> Response:
    """Recompute every view from the base facts and return what differs: nothing, normally."""
    caller.check_administrate()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        found = database.audit(engine=body.engine)
        most = settings.rows_max
        return {
            "version": database.version,
            "differences": [
                {
                    "view": each.view,
                    "missing": rows_to_json(sorted(each.missing, key=repr)[:most]),
                    "excess": rows_to_json(sorted(each.excess, key=repr)[:most]),
                }
                for each in found
            ],
        }

    return json_answer(await host.compute(run))


@router.get("/network", response_model=NetworkAnswer)
async def network(request: Request, caller: CallerDep, host: HostDep) -> Response:
    """Return the propagation network, and the facts that flowed over it in the last commits."""
    caller.check_reads_all()
    recent = request.app.state.recent

    def run(database: MemoryDatabase) -> dict[str, Any]:
        graph = network_graph(network_of(database), database.model.checked, "network")
        return {
            "version": database.version,
            "nodes": [asdict(node) for node in graph.nodes],
            "arcs": [asdict(arc) for arc in graph.arcs],
            "flows": list(recent.flows),
        }

    return json_answer(await host.call(run))
