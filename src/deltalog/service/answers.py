"""Parts that routes share: the host behind them, answers as JSON, limits of time."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.responses import Response

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
