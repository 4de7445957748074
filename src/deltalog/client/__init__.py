"""The Python client of a service: transactions and queries, and copies of views that follow it.

    with Client("http://127.0.0.1:8080") as client:
        client.apply(insert={"edge": [(1, 2)]})
        with client.view("path", file="path.copy") as view:
            for delta in view.follow():
                print(delta.inserted, delta.deleted)

`AsyncClient` has the same verbs for asyncio.
"""

from deltalog.client.answers import Committed, Tried
from deltalog.client.asynchronous import AsyncClient, AsyncViewCopy
from deltalog.client.deltas import ViewDelta
from deltalog.client.errors import ServiceError
from deltalog.client.graph import Graph
from deltalog.client.synchronous import Client, ViewCopy

__all__ = [
    "AsyncClient",
    "AsyncViewCopy",
    "Client",
    "Committed",
    "Graph",
    "ServiceError",
    "Tried",
    "ViewCopy",
    "ViewDelta",
]
