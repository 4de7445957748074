"""Live reading: what comes after what, for as long as a connection lasts.

A reader that has caught up waits for its feed; one whose position the feed has dropped meanwhile is
too slow, and its connection ends: the client resumes from its last offset. One whose token was
revoked ends, too, before anything else is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from deltalog.diagnostics.report import DeltalogError
from deltalog.service.grants import unauthenticated_problem
from deltalog.service.offsets import Offset
from deltalog.service.pieces import Reading
from deltalog.service.stream_reading import StreamReader
from deltalog.service.streams import Streams

REVOKED = "it was revoked"


async def live_readings(
    streams: Streams, reader: StreamReader, first: Reading
) -> AsyncIterator[Reading | None]:
    """Readings from a first one on; None is a heartbeat in which nothing was committed.

    The last one, when the service stops, may be empty.
    """
    loop = asyncio.get_running_loop()
    times, feed, every_seconds = streams.times, reader.feed, reader.quality.every_seconds
    until, beat = loop.time() + times.connection, loop.time() + times.heartbeat
    due = loop.time() + (every_seconds or 0)
    reading, reported = first, first.offset
    yield first
    while reader.is_allowed() and not (streams.is_stopping or feed.is_over):
        position = reading.offset
        was_in_window = position.is_complete and position.version >= feed.since
        if reading.is_up_to_date:
            if loop.time() >= until:
                return
            waking = min(until, beat) if every_seconds is None else min(until, beat, due)
            await wait_for_more(streams, reader, position, max(waking - loop.time(), 0))
        if streams.is_stopping or (was_in_window and position.version < feed.since):
            break
        is_due = every_seconds is None or loop.time() >= due or not reading.is_up_to_date
        if is_due:
            try:
                reading = await reader.read(position)
            except DeltalogError:
                break  # the client gets it when it resumes
            due = loop.time() + (every_seconds or 0)
        if not reader.is_allowed():
            return
        is_beat = loop.time() >= beat
        if is_due and reading.pieces:
            reported = reading.offset
            yield reading
        elif is_beat:
            yield None if reading.offset == reported else Reading((), reading.offset, True)
            reported = reading.offset
        if is_beat:
            beat = loop.time() + times.heartbeat
    if streams.is_stopping and reader.is_allowed():
        yield Reading((), reading.offset, False)


async def polled_reading(
    streams: Streams, reader: StreamReader, offset: Offset | None, timeout_seconds: float
) -> Reading:
    """The next reading that has something, or what there is when the time is over.

    Raises 401 if the token was revoked meanwhile.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_seconds
    if offset is not None and reader.quality.every_seconds is not None:
        await streams.sleep(min(reader.quality.every_seconds, timeout_seconds))
    reading = await reader.read(offset)
    while not reading.pieces and not streams.is_stopping and reader.is_allowed():
        rest = until - loop.time()
        if reading.is_up_to_date:
            if rest <= 0:
                break
            await wait_for_more(streams, reader, reading.offset, rest)
        reading = await reader.read(reading.offset)
    if not reader.is_allowed():
        raise unauthenticated_problem(REVOKED)
    return reading


async def wait_for_more(
    streams: Streams, reader: StreamReader, position: Offset, timeout_seconds: float
) -> None:
    """Wait until there may be something behind a position."""
    quality = reader.quality
    if quality.every_seconds is not None:
        await streams.sleep(min(quality.every_seconds, timeout_seconds))
    elif quality.every_commits is not None:
        last = position.version + quality.every_commits - 1
        await streams.host.wait_beyond(last, timeout_seconds)
    else:
        await reader.feed.wait(position.version, timeout_seconds)
