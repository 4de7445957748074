"""Routes of durable subscriptions (`subscriptions.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from deltalog.diagnostics.report import DeltalogError
from deltalog.language.ast import Value
from deltalog.service.answers import json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.offsets import Offset
from deltalog.service.selections import Selection
from deltalog.service.stream_reading import checked_offset
from deltalog.service.stream_requests import (
    Live,
    StreamRequest,
    bad_read,
    live_of,
    quality_of,
    readable_relation,
)
from deltalog.service.stream_routes import (
    ANSWERS,
    CursorParameter,
    LiveParameter,
    OffsetParameter,
    stream_answer,
)
from deltalog.service.streams import streams_of
from deltalog.service.subscriptions import Reservation, Subscription, Subscriptions, lost_problem
from deltalog.service.values import value_from_json, value_from_text, value_to_text

ENFORCED_SECONDS = 60.0


@asynccontextmanager
async def _running_subscriptions(app: Any) -> AsyncIterator[None]:
    settings = app.state.settings
    reservation = Reservation(settings.reserved_bytes_max, settings.reserved_seconds_max)
    app.state.subscriptions = made = Subscriptions(app.state.host, reservation)
    await made.start()
    enforcing = asyncio.create_task(_enforce_bounds(made))
    try:
        yield
    finally:
        enforcing.cancel()
        with suppress(asyncio.CancelledError):
            await enforcing


async def _enforce_bounds(subscriptions: Subscriptions) -> None:
    """Let go, now and then, of what is held for subscriptions beyond their bounds."""
    while True:
        await asyncio.sleep(ENFORCED_SECONDS)
        with suppress(DeltalogError):  # the disk may be full: try again later
            await subscriptions.enforce()


router = APIRouter(prefix="/v1", tags=["subscriptions"], lifespan=_running_subscriptions)
Name = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9_.\-]+$")]
Generation = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0, le=3_600)]


class SubscriptionRequest(BaseModel):
    """The facts that a subscription is about, and how precise and how soon it wants to know."""

    model_config = ConfigDict(extra="forbid")
    view: str
    bindings: dict[str, str | int | float | bool | None] = {}
    precision: str = "exact"
    every_seconds: float | None = None
    every_commits: int | None = None


class ClaimRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    lease_seconds: Seconds = 0.0
    takeover: bool = False


class Acknowledgement(BaseModel):
    model_config = ConfigDict(extra="forbid")
    generation: Generation
    offset: str
    lease_seconds: Seconds = 0.0


class SubscriptionModel(BaseModel):
    """A subscription; `offset` is where to go on, `versions_behind` how far that is."""

    name: str
    owner: str
    view: str
    bindings: dict[str, Any]
    quality: dict[str, Any]
    generation: int
    offset: str
    state: str
    versions_behind: int
    bytes_behind: int
    leased_until: float | None


class SubscriptionList(BaseModel):
    subscriptions: list[SubscriptionModel]


def _subscriptions_of(request: Request) -> Subscriptions:
    found: Subscriptions = request.app.state.subscriptions
    return found


@router.put("/subscriptions/{name}", response_model=SubscriptionModel)
async def create_subscription(
    request: Request, name: Name, body: SubscriptionRequest, caller: CallerDep
) -> Response:
    """Make a durable subscription; making the same once more changes nothing."""
    host, subscriptions = request.app.state.host, _subscriptions_of(request)
    relation = readable_relation(host, caller, body.view)
    columns = {column.name: column for column in relation.columns}
    bindings: dict[str, Value] = {}
    for column, value in body.bindings.items():
        if column not in columns:
            raise bad_read(f"`{body.view}` has no column `{column}`")
        bindings[column] = value_from_json(columns[column], value)
    caller.check_read(body.view, bindings)
    sent = {"precision": body.precision}
    for each in ("every_seconds", "every_commits"):
        if getattr(body, each) is not None:
            sent[each] = str(getattr(body, each))
    quality_of(sent)
    shown = {column: value_to_text(value) for column, value in bindings.items()}
    wanted = Subscription(name, caller.name, body.view, shown, sent, host.history, 0)
    made, is_new = await subscriptions.create(wanted)
    return await _subscription_answer(request, made, 201 if is_new else 200)


@router.get("/subscriptions", response_model=SubscriptionList)
async def list_subscriptions(request: Request, caller: CallerDep) -> Response:
    """List the subscriptions of the caller; an administrator sees all."""
    subscriptions = _subscriptions_of(request)
    states = await subscriptions.states()
    found = [
        _subscription_model(request, each, *states[each.name])
        for each in subscriptions.all()
        if each.name in states and (caller.is_administrator or each.owner == caller.name)
    ]
    return json_answer({"subscriptions": found})


@router.get("/subscriptions/{name}", response_model=SubscriptionModel)
async def show_subscription(request: Request, name: Name, caller: CallerDep) -> Response:
    """Show a subscription, how far it is behind, and whether what it needs is kept."""
    subscriptions = _subscriptions_of(request)
    found = subscriptions.get(name, caller.name, caller.is_administrator)
    return await _subscription_answer(request, found)


@router.delete("/subscriptions/{name}", status_code=204, response_class=Response)
async def delete_subscription(request: Request, name: Name, caller: CallerDep) -> Response:
    """Forget a subscription, and let go of what the log holds for it."""
    subscriptions = _subscriptions_of(request)
    found = subscriptions.get(name, caller.name, caller.is_administrator)
    await subscriptions.delete(found)
    return Response(None, 204)


@router.post("/subscriptions/{name}/claim", response_model=SubscriptionModel)
async def claim_subscription(
    request: Request, name: Name, body: ClaimRequest, caller: CallerDep
) -> Response:
    """Begin a new generation: earlier ones are fenced off."""
    subscriptions = _subscriptions_of(request)
    found = subscriptions.get(name, caller.name, caller.is_administrator)
    return await _subscription_answer(
        request, await subscriptions.claim(found, body.lease_seconds, body.takeover)
    )


@router.post("/subscriptions/{name}/ack", response_model=SubscriptionModel)
async def acknowledge(
    request: Request, name: Name, body: Acknowledgement, caller: CallerDep
) -> Response:
    """Acknowledge everything up to an offset, this one included; it never goes back."""
    subscriptions = _subscriptions_of(request)
    found = subscriptions.get(name, caller.name, caller.is_administrator)
    subscriptions.check_generation(found, body.generation)
    offset = checked_offset(request.app.state.host, body.offset)
    if not offset.is_complete:
        raise bad_read("a snapshot is acknowledged as a whole, by the offset behind it")
    made = await subscriptions.acknowledge(found, body.generation, offset, body.lease_seconds)
    return await _subscription_answer(request, made)


@router.get("/subscriptions/{name}/stream", response_class=Response, responses=ANSWERS)
async def read_subscription(
    request: Request,
    name: Name,
    caller: CallerDep,
    generation: Annotated[int, Query(ge=0, le=2**53)],
    offset: OffsetParameter = None,
    live: LiveParameter = None,
    cursor: CursorParameter = None,
) -> Response:
    """Read the stream of a subscription, behind what was acknowledged unless an offset is sent."""
    subscriptions, streams = _subscriptions_of(request), streams_of(request)
    found = subscriptions.get(name, caller.name, caller.is_administrator)
    subscriptions.check_generation(found, generation)
    if found.history != streams.host.history:
        raise lost_problem(found, "the history of the database is another one now")
    relation = readable_relation(streams.host, caller, found.view)
    columns = {column.name: column for column in relation.columns}
    if not columns.keys() >= found.bindings.keys():
        raise lost_problem(found, f"`{found.view}` has other columns now")
    bindings = {each: value_from_text(columns[each], text) for each, text in found.bindings.items()}
    caller.check_read(found.view, bindings)
    text = offset or found.offset
    place: Offset | None = None
    if text != "-1":
        place = checked_offset(streams.host, text)
    mode: Live | None = live_of(live)
    quality = quality_of({each: str(value) for each, value in found.quality.items()})
    asked = StreamRequest(Selection.of(relation, bindings), place, False, mode, cursor, quality)
    return await stream_answer(request, streams, asked)


async def _subscription_answer(
    request: Request, subscription: Subscription, status: int = 200
) -> Response:
    states = await _subscriptions_of(request).states()
    state = states.get(subscription.name, ("lost", 0))
    return json_answer(_subscription_model(request, subscription, *state), status)


def _subscription_model(
    request: Request, subscription: Subscription, state: str, held: int
) -> dict[str, Any]:
    host = request.app.state.host
    is_lost = subscription.history != host.history
    return {
        "name": subscription.name,
        "owner": subscription.owner,
        "view": subscription.view,
        "bindings": dict(subscription.bindings),
        "quality": dict(subscription.quality),
        "generation": subscription.generation,
        "offset": subscription.offset,
        "state": "lost" if is_lost else state,
        "versions_behind": max(host.version - subscription.place, 0),
        "bytes_behind": held,
        "leased_until": subscription.leased_until or None,
    }
