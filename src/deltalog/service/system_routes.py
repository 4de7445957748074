"""Routes about the service itself: whether it lives, whether it can answer, its figures."""

from __future__ import annotations

from dataclasses import asdict
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from starlette.responses import Response

from deltalog import __version__
from deltalog.diagnostics import service_catalogue
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.answers import HostDep, json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.host import Host
from deltalog.service.metrics import MEDIA_TYPE, Metrics
from deltalog.service.problems import http_problem

router = APIRouter(tags=["service"])


class Health(BaseModel):
    status: str


class Status(BaseModel):
    """How the service does; `p50` and `p99` are upper bounds of times of commits, in seconds."""

    deltalog: str
    version: int
    offset: str
    history: str
    seconds: float
    transactions: int
    refused: int
    p50: float | None
    p99: float | None


async def metrics_of(request: Request) -> Metrics:
    found: Metrics = request.app.state.metrics
    return found


MetricsDep = Annotated[Metrics, Depends(metrics_of)]


@router.get("/health", response_model=Health)
async def health() -> Response:
    """Return as soon as the process runs; it does not look at the database."""
    return json_answer({"status": "alive"})


@router.get("/ready", response_model=Health)
async def ready(request: Request, host: HostDep) -> Response:
    """Return 200 if the database answers; 503 while the service starts or is being stopped."""
    if not getattr(request.app.state, "is_ready", False) or request.app.state.stopping.is_set():
        raise http_problem(503, service_catalogue.STOPPING)
    await host.call(lambda database: database.version)
    return json_answer({"status": "ready"})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(caller: CallerDep, figures: MetricsDep) -> Response:
    """Return the figures of the service in the text format of Prometheus."""
    caller.check_reads_all()
    return Response(figures.text(), media_type=MEDIA_TYPE)


class SourceModel(BaseModel):
    """A table elsewhere that has facts of a base relation; `pending` are announcements."""

    relation: str
    place: str
    precision: str
    pending: int


class SourceList(BaseModel):
    """All sources; `problem` is the code of the error that the last pull ended with."""

    version: int
    problem: str | None
    sources: list[SourceModel]


@router.get("/v1/sources", response_model=SourceList)
async def sources(caller: CallerDep, host: HostDep) -> Response:
    """List the sources of base relations, how precise they are, and what is not pulled yet."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> list[dict[str, object]]:
        return [asdict(each) for each in getattr(database, "sources", ())]

    found = await host.call(run)
    document = {"version": host.version, "problem": host.pull_problem, "sources": found}
    return json_answer(document)


@router.get("/v1/status", response_model=Status)
async def status(caller: CallerDep, host: HostDep, figures: MetricsDep) -> Response:
    """Return the version, its offset, and how the service does."""
    caller.check_reads_all()
    return json_answer(status_of(host, figures))


def status_of(host: Host, figures: Metrics) -> dict[str, object]:
    version = host.version
    return {
        "deltalog": __version__,
        "version": version,
        "offset": host.offset(version),
        "history": host.history,
        "seconds": monotonic() - figures.started,
        "transactions": int(figures.total("deltalog_transactions_total")),
        "refused": int(figures.total("deltalog_refused_total")),
        "p50": _finite_bound(figures.quantile("deltalog_commit_seconds", 0.5)),
        "p99": _finite_bound(figures.quantile("deltalog_commit_seconds", 0.99)),
    }


def _finite_bound(bound: float | None) -> float | None:
    return None if bound == float("inf") else bound
