"""WebSockets pass the same gate: names, origins and tokens, which a page shows as a subprotocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import GRAPH, serving
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

import deltalog
from deltalog.service.tokens import create_token
from waiting import HANG_SECONDS

STREAM = "/v1/views/path/stream?offset=-1"


def test_what_a_client_sends_means_nothing_and_limits_end_a_stream() -> None:
    counting = GRAPH + "virtual view far(n: int). far(1). far(N + 1) :- far(N), N < 1000000."
    database = deltalog.connect(program=counting, engine="reference", facts={"edge": [(1, 2)]})
    with serving(database, seconds_max=0.01) as service:
        root = service.address.replace("http", "ws")
        with connect(root + STREAM, proxy=None) as socket:
            assert "reset" in str(socket.recv())
            socket.send(b"bytes")
            socket.send("text")
            socket.recv()
            service.post("/v1/transactions", {"insert": {"edge": [[2, 3]]}})
            assert '"insert"' in str(socket.recv(HANG_SECONDS))
        with (
            connect(root + STREAM.replace("path", "far"), proxy=None) as socket,
            pytest.raises(ConnectionClosedError) as ended,
        ):
            socket.recv(HANG_SECONDS)
        assert ended.value.rcvd is not None
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1008, "E0803")
        refused = service.get("/v1/views/far/stream?offset=-1")
        assert (refused.status_code, refused.json()["code"]) == (503, "E0803")


def test_foreign_origins_and_missing_tokens_are_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    shown = create_token(tokens, "ann", ["read"], [])
    database = deltalog.connect(program=GRAPH, engine="reference", facts={"edge": [(1, 2)]})
    with serving(database, tokens=tokens) as service:
        address = service.address.replace("http", "ws") + STREAM
        allowed = [Subprotocol(f"deltalog.token.{shown}")]
        with pytest.raises(InvalidStatus):
            connect(address, origin=Origin("https://example.com"), subprotocols=allowed, proxy=None)
        with pytest.raises(InvalidStatus) as refused:
            connect(address, proxy=None)
        assert refused.value.response.status_code == 401
        own = Origin(service.address)
        with connect(address, origin=own, subprotocols=allowed, proxy=None) as socket:
            assert "reset" in str(socket.recv())
