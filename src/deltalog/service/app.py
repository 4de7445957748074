"""The application: routes, the gate before them, and one shape of errors behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from deltalog import __version__
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DeltalogError
from deltalog.service import (
    delivery_routes,
    history_routes,
    page_routes,
    program_routes,
    query_routes,
    realize_routes,
    rule_routes,
    stored_queries,
    stream_routes,
    stream_socket,
    subscription_routes,
    system_routes,
    transaction_routes,
    why_routes,
)
from deltalog.service.gate import REQUESTS, SECONDS, Gate, Observer
from deltalog.service.grants import Access
from deltalog.service.host import Host
from deltalog.service.metrics import Metrics, describe_metrics
from deltalog.service.open_api import describe_api
from deltalog.service.parameters import check_members, check_parameters
from deltalog.service.problems import Problem, http_problem, problem_response
from deltalog.service.recent import Recent
from deltalog.service.request_keys import RequestKeys
from deltalog.service.settings import ServiceSettings

ROUTERS = (
    system_routes.router,
    transaction_routes.router,
    query_routes.router,
    realize_routes.router,
    why_routes.router,
    rule_routes.router,
    delivery_routes.router,
    history_routes.router,
    program_routes.router,
    stored_queries.router,
    stream_routes.router,
    stream_socket.router,
    page_routes.router,
    subscription_routes.router,
)
EXPOSED = (
    "Deltalog-Precision",
    "ETag",
    "Location",
    "Retry-After",
    "Stream-Cursor",
    "Stream-Next-Offset",
    "X-Request-Id",
)
"""Headers that pages of other origins may read."""
_FIGURES = {
    REQUESTS: "Requests by route and status.",
    SECONDS: "Seconds from a request to the end of its answer.",
    "deltalog_transactions_total": "Transactions by result.",
    "deltalog_commit_seconds": "Seconds from a transaction to its commit.",
}


def make_app(host: Host, settings: ServiceSettings) -> FastAPI:
    """The service of one database; it is opened and closed with the application."""
    settings.check()
    app = FastAPI(
        title="Deltalog",
        version=__version__,
        lifespan=_host_lifespan,
        dependencies=[Depends(check_parameters), Depends(check_members)],
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.host = host
    host.seconds_max = settings.seconds_max
    app.state.settings = settings
    app.state.metrics = metrics = describe_metrics(Metrics(), _FIGURES)
    app.state.access = Access(settings)
    app.state.recent = Recent()
    app.state.request_keys = RequestKeys(host.settings, settings.request_keys_seconds)
    app.state.stopping = asyncio.Event()
    metrics.gauge("deltalog_version", lambda: host.version, "The version of the database.")
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(DeltalogError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_misfit)
    app.add_exception_handler(HTTPException, _on_http_error)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=list(EXPOSED),
        )
    app.add_middleware(Gate, settings=settings)
    app.add_middleware(Observer, metrics=metrics)  # outermost: it sees all that is refused
    describe_api(app)
    return app


@asynccontextmanager
async def _host_lifespan(app: FastAPI) -> AsyncIterator[None]:
    host: Host = app.state.host
    await host.start()
    app.state.is_ready = True
    try:
        yield
    finally:
        app.state.is_ready = False
        app.state.stopping.set()
        await host.stop()


# --- errors


def _error_answer(request: Request, error: DeltalogError) -> Response:
    caller = getattr(request.state, "caller", None)
    return problem_response(error, caller, request.app.state.host.database.relations)


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, DeltalogError)
    return _error_answer(request, error)


async def _on_misfit(request: Request, error: Exception) -> Response:
    """A request that does not have the form that the OpenAPI description states."""
    assert isinstance(error, RequestValidationError)
    found = [
        {"where": ".".join(map(str, each["loc"])), "what": str(each["msg"])}
        for each in error.errors()
    ]
    reason = "; ".join(f"{each['where']}: {each['what']}" for each in found[:3])
    reason = reason or "it cannot be read"
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    hint = None
    if request.method in ("POST", "PUT") and sent != "application/json":
        hint = "send the body with the header `Content-Type: application/json`"
    return _error_answer(
        request, http_problem(422, service_catalogue.BAD_REQUEST, reason=reason, hint=hint)
    )


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error_answer(request, _http_problem(request, error))


def _http_problem(request: Request, error: HTTPException) -> Problem:
    if error.status_code == 404:
        return http_problem(404, service_catalogue.NOT_FOUND, what="address", name=request.url.path)
    if error.status_code == 405:
        headers = dict(error.headers or {})
        entry = service_catalogue.WRONG_METHOD
        return http_problem(405, entry, method=request.method, headers=headers)
    reason = str(error.detail).lower()
    return http_problem(error.status_code, service_catalogue.BAD_REQUEST, reason=reason)
