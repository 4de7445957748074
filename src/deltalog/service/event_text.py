"""Server-sent events as bytes, for data that is JSON.

JSON as it is written here has no line break, so an event has one line of data. There is no space
behind `data:`, which the standard leaves to the sender: the published conformance tests of Durable
Streams compare the line with the form that has none.
"""

from __future__ import annotations

KEEPALIVE = b": ping\n\n"
"""A comment, which clients ignore."""


def event_text(
    kind: str, data: bytes, event_id: str | None = None, retry: int | None = None
) -> bytes:
    """An event; `retry` is how long a client waits before it connects again, in milliseconds.

    >>> event_text("data", b"[1]")
    b'event: data\\ndata:[1]\\n\\n'
    """
    made = b"event: %b\ndata:%b\n" % (kind.encode(), data)
    if event_id is not None:
        made += b"id: %b\n" % event_id.encode()
    if retry is not None:
        made += b"retry: %d\n" % retry
    return made + b"\n"
