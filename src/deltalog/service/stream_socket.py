"""A stream over a WebSocket: the same messages as events, each as a JSON text.

    {"event": "data", "data": [{"type": "path", …}]}
    {"event": "control", "data": {"streamNextOffset": …, "streamCursor": …, "upToDate": true}}

The address is that of the stream, with the same parameters but `live`. The server closes with 1012
when it stops and with 1000 when the time of a connection is over: the client connects again with
its last offset. What cannot be read is a close with 1008 and the code of the error.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import orjson
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from deltalog.diagnostics.report import DeltalogError
from deltalog.service.cursors import next_cursor
from deltalog.service.grants import SUBPROTOCOL, CallerDep, still_allowed, unauthenticated_problem
from deltalog.service.live_readings import REVOKED, live_readings
from deltalog.service.offsets import Offset
from deltalog.service.pieces import Reading
from deltalog.service.stream_requests import StreamRequest, stream_request
from deltalog.service.streams import Streams, streams_of

router = APIRouter()

OVER, REFUSED, RESTARTING = 1000, 1008, 1012


@router.websocket("/v1/views/{view}/stream")
async def stream_socket(socket: WebSocket, view: str, caller: CallerDep) -> None:
    """Send the stream of a view until the client leaves or the time of the connection is over."""
    streams = streams_of(socket)
    shown = [str(each) for each in socket.scope.get("subprotocols", ())]
    await socket.accept(next((each for each in shown if each.startswith(SUBPROTOCOL)), None))
    try:
        asked = stream_request(socket, streams.host, caller, view, "sse")
        await _send_readings(socket, streams, asked)
        if not still_allowed(socket)():
            raise unauthenticated_problem(REVOKED)
    except DeltalogError as refused:
        await socket.close(REFUSED, refused.codes[0])
        return
    except (WebSocketDisconnect, TimeoutError, RuntimeError):
        return  # the client has left, or does not receive
    with suppress(RuntimeError):
        await socket.close(RESTARTING if streams.is_stopping else OVER, "resume")


async def _send_readings(socket: WebSocket, streams: Streams, asked: StreamRequest) -> None:
    cursor = next_cursor(asked.cursor)
    wanted = asked.selection, asked.quality, still_allowed(socket)
    async with streams.reader(*wanted) as reader:
        first = await reader.read(asked.offset)
        leaving = asyncio.create_task(_until_it_leaves(socket))
        try:
            async for reading in live_readings(streams, reader, first):
                if leaving.done():
                    return
                for text in _reading_texts(reading, cursor):
                    async with asyncio.timeout(streams.times.sending):
                        await socket.send_text(text)
        finally:
            leaving.cancel()


async def _until_it_leaves(socket: WebSocket) -> None:
    """Read what a client sends, which means nothing, until it is gone."""
    with suppress(RuntimeError):
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass


def _reading_texts(reading: Reading | None, cursor: str) -> list[str]:
    if reading is None:
        return ['{"event":"heartbeat"}']
    made = []
    for piece in reading.pieces:
        is_last = piece is reading.pieces[-1]
        offset = reading.offset if is_last else piece.offset
        made.append(f'{{"event":"data","data":[{piece.payload.decode()}]}}')
        made.append(_control_text(offset, cursor, is_last and reading.is_up_to_date))
    if not reading.pieces:
        made.append(_control_text(reading.offset, cursor, reading.is_up_to_date))
    return made


def _control_text(offset: Offset, cursor: str, is_up_to_date: bool) -> str:
    fields: dict[str, Any] = {"streamNextOffset": str(offset), "streamCursor": cursor}
    if is_up_to_date:
        fields["upToDate"] = True
    return orjson.dumps({"event": "control", "data": fields}).decode()
