"""WebSockets pass the same gate: names, origins and tokens, which a page shows as a subprotocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import GRAPH, serving
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

import deltalog
from deltalog.service.tokens import create_token

STREAM = "/v1/views/path/stream?offset=-1"


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
