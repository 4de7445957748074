"""Parts that routes share: the host behind them, answers as JSON, limits of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.responses import Response

from deltalog.runtime.database import MemoryDatabase
from deltalog.service.host import Host
from deltalog.service.problems import json_bytes
from deltalog.service.settings import ServiceSettings

Result = TypeVar("Result")


async def host_of(request: Request) -> Host:
    """The host; asynchronous, since a function that is not would run in a thread of its own."""
    found: Host = request.app.state.host
    return found


async def settings_of(request: Request) -> ServiceSettings:
    found: ServiceSettings = request.app.state.settings
    return found


HostDep = Annotated[Host, Depends(host_of)]
SettingsDep = Annotated[ServiceSettings, Depends(settings_of)]


def json_answer(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer whose data is JSON already: rows have been converted by `values.py`."""
    return Response(json_bytes(data), status, headers, "application/json")


async def compute_answer(
    host: Host, settings: ServiceSettings, function: Callable[[MemoryDatabase], Result]
) -> Result:
    """Run a function on the database, for as long as one request may compute."""

    def run(database: MemoryDatabase) -> Result:
        with limited_evaluation(database, settings.seconds_max):
            return function(database)

    return await host.call(run)


@contextmanager
def limited_evaluation(database: MemoryDatabase, seconds_max: float) -> Iterator[None]:
    """Evaluate with a limit of time, in the thread that owns the database."""
    limits = database.limits
    if limits.seconds_max > seconds_max:
        database.limits = replace(limits, seconds_max=seconds_max)
    try:
        yield
    finally:
        database.limits = limits
