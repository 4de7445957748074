"""A stream as server-sent events: `data`, then `control` with the offset behind it.

    event: data                              event: control
    data:[{"type": "path", …}]               data:{"streamNextOffset": …, "streamCursor": …,
                                                   "upToDate": true}
                                             id: 6a1b…

Every commit has a control event of its own. A quiet stream sends a comment as often as the
heartbeat says, and with it the offset if commits have passed that did not change the view: so
silence and a stall differ. After a while the server ends the connection at a control event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from deltalog.service.event_text import KEEPALIVE, event_text
from deltalog.service.live_readings import live_readings
from deltalog.service.offsets import Offset
from deltalog.service.pieces import Reading
from deltalog.service.stream_reading import StreamReader
from deltalog.service.streams import Streams

EVENTS = "text/event-stream"
"""The type of the answer; it has no parameter, since events are always UTF-8."""
RESUME_MILLISECONDS = 1_000
"""How long a plain EventSource waits before it connects again to a server that was stopped."""


def control_event(offset: Offset, cursor: str, is_up_to_date: bool, is_end: bool = False) -> bytes:
    """The event behind data: where to go on."""
    fields: dict[str, object] = {"streamNextOffset": str(offset), "streamCursor": cursor}
    if is_up_to_date:
        fields["upToDate"] = True
    if is_end:
        fields["resume"] = True
    retry = RESUME_MILLISECONDS if is_end else None
    return event_text("control", orjson.dumps(fields), str(offset), retry)


class EventStream(StreamingResponse):
    """Ends if a client does not receive what is sent within some seconds; then frees `held`."""

    def __init__(
        self,
        content: AsyncIterator[bytes],
        headers: dict[str, str],
        sending_seconds: float,
        held: AsyncExitStack,
    ) -> None:
        super().__init__(content, headers={**headers, "Content-Type": EVENTS})
        self._sending_seconds = sending_seconds
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._sending_seconds):
                await send(message)

        with suppress(TimeoutError):  # it does not receive: it is cut off, and may resume
            await super().stream_response(send_in_time)


async def event_stream(
    streams: Streams, reader: StreamReader, first: Reading, cursor: str
) -> AsyncIterator[bytes]:
    """The events from a first reading on."""
    async for reading in live_readings(streams, reader, first):
        if reading is None:
            yield KEEPALIVE
        elif streams.is_stopping:
            yield b"".join(_reading_events(reading, cursor, True))
        else:
            made = reading.events.get(cursor)
            if made is None:
                made = b"".join(_reading_events(reading, cursor, False))
                reading.events[cursor] = made
            yield made


def _reading_events(reading: Reading, cursor: str, is_end: bool) -> list[bytes]:
    made = []
    for piece in reading.pieces:
        is_last = piece is reading.pieces[-1]
        offset = reading.offset if is_last else piece.offset
        made += [piece.event, control_event(offset, cursor, is_last and reading.is_up_to_date)]
    if not reading.pieces or is_end:
        made.append(control_event(reading.offset, cursor, reading.is_up_to_date, is_end))
    return made
