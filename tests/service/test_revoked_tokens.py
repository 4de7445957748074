"""A stream whose token is revoked ends, and nothing that is committed afterwards is sent."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from streaming import QUICK, Service, serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

import deltalog
from deltalog.service.settings import ServiceSettings
from deltalog.service.streams import StreamTimes
from deltalog.service.tokens import create_token, revoke_token
from waiting import HANG_SECONDS, wait_until

PATHS = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
PATIENT = StreamTimes(long_poll=HANG_SECONDS, heartbeat=HANG_SECONDS, connection=HANG_SECONDS)
"""Nothing ends or is sent because time has passed."""
WATCHED = StreamTimes(HANG_SECONDS, HANG_SECONDS, HANG_SECONDS, revoked=0.01)


class Follower(threading.Thread):
    """Reads a stream in one mode until it ends; `keys` are those of the rows that it was sent."""

    def __init__(self, service: Service, mode: str, token: str, offset: str) -> None:
        super().__init__(daemon=True)
        self._address = service.stream("path", offset=offset, live=mode)
        self._token = token
        self._mode = mode
        self.keys: list[str] = []
        self.end: Any = None

    def run(self) -> None:
        getattr(self, f"_{self._mode.replace('-', '_')}")()

    def _take(self, messages: list[dict[str, Any]]) -> None:
        self.keys += [each["key"] for each in messages if "key" in each]

    def _sse(self) -> None:
        headers = {"authorization": f"Bearer {self._token}"}
        with httpx.stream("GET", self._address, headers=headers, timeout=HANG_SECONDS) as answer:
            kind = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data:") and kind == "data":
                    self._take(json.loads(line.removeprefix("data:")))
        self.end = "end"

    def _long_poll(self) -> None:
        headers = {"authorization": f"Bearer {self._token}"}
        answer = httpx.get(self._address, headers=headers, timeout=HANG_SECONDS)
        if answer.status_code == 200:
            self._take(answer.json())
        self.end = answer.status_code

    def _websocket(self) -> None:
        shown = Subprotocol(f"deltalog.token.{self._token}")
        address = self._address.replace("http", "ws", 1).replace("live=websocket", "live=sse")
        with connect(address, subprotocols=[shown], proxy=None) as socket:
            try:
                while True:
                    sent = json.loads(socket.recv(HANG_SECONDS))
                    if sent["event"] == "data":
                        self._take(sent["data"])
            except ConnectionClosed as closed:
                self.end = closed.rcvd and (closed.rcvd.code, closed.rcvd.reason)


ENDS = {"sse": "end", "long-poll": 401, "websocket": (1008, "E1720")}


@pytest.mark.parametrize("is_quiet", [True, False], ids=["quiet", "with commits"])
@pytest.mark.parametrize("mode", ENDS)
def test_a_revoked_token_ends_its_streams(tmp_path: Path, mode: str, is_quiet: bool) -> None:
    tokens = tmp_path / "tokens"
    shown = create_token(tokens, "ann", ["read"], ["path"])
    other = create_token(tokens, "bob", ["read"], ["path"])
    database = deltalog.connect(program=PATHS, engine="reference", facts={"edge": [(1, 2)]})
    settings = ServiceSettings(port=0, tokens=tokens)
    with serving(database, WATCHED if is_quiet else PATIENT, settings) as service:
        start = service.host.offset()
        followers = [Follower(service, mode, each, start) for each in (shown, other)]
        for each in followers:
            each.start()
        wait_until(lambda: len(service.streams.open) == 2, "they wait")
        if mode != "long-poll":
            service.apply(insert={"edge": [(2, 3)]})
            for each in followers:
                wait_until(lambda each=each: len(each.keys) == 2, "it has both")  # type: ignore[misc]
        revoke_token(tokens, "ann")
        revoked, kept = followers
        if not is_quiet:
            service.apply(insert={"edge": [(7, 8)]})
        revoked.join(HANG_SECONDS)
        assert revoked.end == ENDS[mode]
        assert "[7,8]" not in revoked.keys
        if is_quiet:
            assert kept.end is None
            service.apply(insert={"edge": [(7, 8)]})
        wait_until(lambda: "[7,8]" in kept.keys, "the other has the change")
        headers = {"authorization": f"Bearer {shown}"}
        assert httpx.get(service.stream("path"), headers=headers).status_code == 401
    kept.join(HANG_SECONDS)


def test_a_token_with_fewer_grants_is_another_one(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    shown = create_token(tokens, "ann", ["read"], ["path"])
    database = deltalog.connect(program=PATHS, engine="reference", facts={"edge": [(1, 2)]})
    with serving(database, QUICK, ServiceSettings(port=0, tokens=tokens)) as service:
        follower = Follower(service, "sse", shown, service.host.offset())
        follower.start()
        wait_until(lambda: len(service.streams.open) == 1, "it waits")
        tokens.write_text(tokens.read_text().replace('"path"', '"path?x=1"'))
        service.apply(insert={"edge": [(7, 8)]})
        follower.join(HANG_SECONDS)
        assert follower.keys == []
