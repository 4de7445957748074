"""Routes of streams: Durable Streams, read only, with messages of its State Protocol.

    GET  /v1/views/{view}/stream?offset=-1&path.src=1              what there is, and where to go on
    GET  …&offset=OFFSET&live=long-poll                            the same, but wait for more
    GET  …&offset=OFFSET&live=sse                                  events, as long as it lasts
    HEAD …                                                         where the stream ends
    WS   /v1/views/{view}/stream?offset=…                          the same messages

Protocol: `PROTOCOL.md` §5.5–5.8, 6–8 of the public repository durable-streams/durable-streams.
"""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from deltalog.service.answers import SettingsDep, json_answer
from deltalog.service.cursors import next_cursor
from deltalog.service.grants import CallerDep, still_allowed
from deltalog.service.live_readings import polled_reading
from deltalog.service.pieces import Reading
from deltalog.service.selections import Selection
from deltalog.service.stream_events import EventStream, event_stream
from deltalog.service.stream_requests import StreamRequest, stream_request, wait_seconds
from deltalog.service.streams import Streams, running_streams, streams_of
from deltalog.service.values import rows_to_json

router = APIRouter(tags=["streams"], lifespan=running_streams)

JSON = "application/json"
IMMUTABLE = "private, max-age=60, stale-while-revalidate=300"
"""For a part of a stream that more follows: it will never be another one."""
REVALIDATED = "private, no-cache"
UNSTORED = "no-store"
PRECISION = "Deltalog-Precision"
"""A header: `eventual` if the view depends on a source without snapshots, else `exact`."""
_HEADERS = {
    "Stream-Next-Offset": {
        "description": "Where to go on.",
        "schema": {"type": "string"},
    },
    "Stream-Up-To-Date": {
        "description": "Present if nothing more was there.",
        "schema": {"type": "string"},
    },
    "Stream-Cursor": {"description": "To be sent back.", "schema": {"type": "string"}},
    "Deltalog-Precision": {
        "description": "`eventual` if a source without snapshots is behind the view, else `exact`.",
        "schema": {"type": "string"},
    },
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Messages of the State Protocol.",
        "headers": _HEADERS,
        "content": {
            JSON: {"schema": {"type": "array", "items": {"type": "object"}}},
            "text/event-stream": {"schema": {"type": "string"}},
        },
    },
    204: {"description": "A long poll in whose time nothing changed.", "headers": _HEADERS},
    304: {"description": "The client has this part already."},
}
OffsetParameter = Annotated[
    str | None,
    Query(description="Where to begin: `-1` (with the whole answer), `now`, or an offset."),
]
LiveParameter = Annotated[
    str | None, Query(description="`long-poll` or `sse`; left out: what there is.")
]
CursorParameter = Annotated[str | None, Query(description="The last `Stream-Cursor`.")]
PrecisionParameter = Annotated[
    str | None, Query(description="`exact` (the default), `potential` or `touched`.")
]
SecondsParameter = Annotated[
    str | None, Query(description="Net changes, reported every n seconds.")
]
CommitsParameter = Annotated[
    str | None, Query(description="Net changes, reported every n commits.")
]
WaitParameter = Annotated[
    str | None,
    Query(description="An offset that a commit was answered with: wait until it is reached."),
]


@router.get("/v1/views/{view}/stream", response_class=Response, responses=ANSWERS)
async def read_stream(
    request: Request,
    view: str,
    caller: CallerDep,
    offset: OffsetParameter = None,
    live: LiveParameter = None,
    cursor: CursorParameter = None,
    precision: PrecisionParameter = None,
    every_seconds: SecondsParameter = None,
    every_commits: CommitsParameter = None,
    wait_for: WaitParameter = None,
) -> Response:
    """Read the answer and the changes of a view; bindings are `VIEW.COLUMN=VALUE`."""
    streams = streams_of(request)
    await streams.wait_for(wait_for, wait_seconds(request))
    asked = stream_request(request, streams.host, caller, view)
    return await stream_answer(request, streams, asked)


@router.head("/v1/views/{view}/stream", response_class=Response, responses=ANSWERS)
async def end_of_stream(
    request: Request, view: str, caller: CallerDep, offset: OffsetParameter = None
) -> Response:
    """Return the offset at which the stream of a view ends now."""
    streams = streams_of(request)
    stream_request(request, streams.host, caller, view)
    headers = {"Stream-Next-Offset": streams.host.offset(), "Cache-Control": UNSTORED}
    return Response(None, 200, {**headers, **_SAFE}, JSON)


class OpenStream(BaseModel):
    """A selection that is followed now: by how many readers, and how far the last is behind."""

    view: str
    bindings: dict[str, Any]
    precision: str
    readers: int
    commits_behind: int


class OpenStreams(BaseModel):
    """The selections that are followed now, those with most readers first."""

    streams: list[OpenStream]
    readers: int


@router.get("/v1/streams", response_model=OpenStreams)
async def open_streams(request: Request, caller: CallerDep, settings: SettingsDep) -> Response:
    """List what is followed now by streams that are open, durable or not."""
    caller.check_reads_all()
    found: dict[Any, list[int]] = {}
    readers = streams_of(request).open
    for each in readers:
        key = each.selection, each.quality.precision
        found.setdefault(key, []).append(each.commits_behind)
    listed = sorted(found.items(), key=lambda item: (-len(item[1]), item[0][0].name))
    streams = [
        {
            "view": selection.name,
            "bindings": dict(zip(selection.bindings, _bound_values(selection), strict=True)),
            "precision": precision,
            "readers": len(behind),
            "commits_behind": max(behind),
        }
        for (selection, precision), behind in listed[: settings.rows_max]
    ]
    return json_answer({"streams": streams, "readers": len(readers)})


def _bound_values(selection: Selection) -> list[Any]:
    """The bound values as JSON has them."""
    return rows_to_json([selection.values])[0]


async def stream_answer(request: Request, streams: Streams, asked: StreamRequest) -> Response:
    """The answer to a checked request, in its mode."""
    async with AsyncExitStack() as stack:
        wanted = asked.selection, asked.quality, still_allowed(request)
        reader = await stack.enter_async_context(streams.reader(*wanted))
        if asked.live == "long-poll":
            seconds = streams.times.long_poll
            reading = await polled_reading(streams, reader, asked.offset, seconds)
            return _reading_answer(request, asked, reading)
        reading = await reader.read(asked.offset)
        if asked.live is None:
            return _reading_answer(request, asked, reading)
        kept = stack.pop_all()
    following = event_stream(streams, reader, reading, next_cursor(asked.cursor))
    headers = {
        "Cache-Control": f"no-cache, {UNSTORED}",
        "X-Accel-Buffering": "no",
        PRECISION: streams.host.precision_of(asked.selection.name),
        **_SAFE,
    }
    return EventStream(following, headers, streams.times.sending, kept)


_SAFE = {"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin"}


def _reading_answer(request: Request, asked: StreamRequest, reading: Reading) -> Response:
    headers = {
        "Stream-Next-Offset": str(reading.offset),
        "Cache-Control": REVALIDATED if reading.is_up_to_date else IMMUTABLE,
        "Vary": "Authorization",
        PRECISION: streams_of(request).host.precision_of(asked.selection.name),
        **_SAFE,
    }
    if asked.live is not None:
        headers["Stream-Cursor"] = next_cursor(asked.cursor)
    if reading.is_up_to_date:
        headers["Stream-Up-To-Date"] = "true"
    if asked.is_now or (asked.live is not None and not reading.pieces):
        headers["Cache-Control"] = UNSTORED
    if asked.live is not None and not reading.pieces:
        headers["Stream-Up-To-Date"] = "true"
        return Response(None, 204, headers)
    if not asked.is_now:
        headers["ETag"] = tag = _entity_tag(request, asked, reading)
        if tag in _entity_tags(request.headers.get("if-none-match", "")):
            return Response(None, 304, headers)
    return Response(reading.body, 200, headers, JSON)


def _entity_tag(request: Request, asked: StreamRequest, reading: Reading) -> str:
    """The same for the same part of the same selection in the same quality."""
    selection = asked.selection
    named = repr((selection.name, selection.positions, selection.values, asked.quality))
    digest = hashlib.sha256(named.encode(errors="surrogatepass")).hexdigest()[:16]
    return f'"{digest}:{asked.start}:{reading.offset}"'


def _entity_tags(header: str) -> list[str]:
    return [each.strip().removeprefix("W/") for each in header.split(",")]
