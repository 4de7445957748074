"""Slow subscribers, TLS, reservations, open streams, and warnings of commits."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from streaming import serving

import deltalog
from deltalog.service.journal import Journal
from deltalog.service.streams import StreamTimes
from served_command import ServedFile
from waiting import HANG_SECONDS, wait_until

PROGRAM = """
    base made(number: int, body: str).
    shown(N, B) :- made(N, B).
"""
BIG = "x" * 500_000
IMPATIENT = StreamTimes(long_poll=1.0, heartbeat=0.2, connection=5.0, sending=0.5)


def test_a_slow_subscriber_delays_nobody_and_resumes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not receive; the journal is bounded; its connection ends; it misses nothing."""
    path = tmp_path / "slow.db"
    database = deltalog.connect(path, program=PROGRAM, engine="reference")
    with serving(database, times=IMPATIENT) as service:
        service.host.journal = Journal(database.version, commits_max=5)
        port = int(service.address.rpartition(":")[2])
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)  # so it does not grow
            slow.connect(("127.0.0.1", port))
            address = "/v1/views/shown/stream?offset=-1&live=sse"
            slow.sendall(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            wait_until(lambda: bool(service.streams.open), "it follows")
            count = 40  # beyond what the buffers of a connection hold
            for number in range(count):
                service.apply(insert={"made": [(number, BIG)]})
            feeds = service.on_loop(lambda: service.streams.feeds.of_view("shown"))
            assert all(len(feed._items) <= 5 for feed in feeds)
            read = httpx.get(service.stream("shown", offset="now"), timeout=HANG_SECONDS)
            assert read.headers["Stream-Next-Offset"] == service.host.offset()
            wait_until(lambda: not service.streams.open, "its connection ends")
            slow.settimeout(HANG_SECONDS)
            received = bytearray()
            while part := slow.recv(1 << 20):
                received += part
                if b"\r\n0\r\n" in received[-64:]:
                    break
        lines = bytes(received).split(b"\n")
        kept = [line for line in lines if line.startswith(b"id: ")]
        offset = kept[-1].removeprefix(b"id: ").decode().strip()
        assert offset < service.host.offset(), "it was disconnected before the end"
        got = sum(line.count(b'"operation":"insert"') for line in lines)
        rest = 0
        while offset < service.host.offset():
            then = httpx.get(service.stream("shown", offset=offset), timeout=HANG_SECONDS)
            assert then.status_code == 200
            rest += len(then.json())
            offset = then.headers["Stream-Next-Offset"]
        assert got + rest == count
    assert "internal error" not in caplog.text


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
def test_the_service_ends_tls(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    path = tmp_path / "served.dl"
    path.write_text(PROGRAM, encoding="utf-8")
    options = ["--engine", "reference", "--tls-certificate", str(certificate)]
    service = ServedFile(path, [*options, "--tls-key", str(key)])
    service.address = service.address.replace("http:", "https:")
    service.start()
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=service.address, verify=trusted, trust_env=False) as client:
            body = {"insert": {"made": [[1, "a"]]}}
            assert client.post("/v1/transactions", json=body).json()["version"] == 1
            with client.stream("GET", "/v1/views/shown/stream?offset=-1&live=sse") as events:
                line = next(line for line in events.iter_lines() if line.startswith("data:"))
                assert json.loads(line[5:])[2]["value"] == {"n": 1, "b": "a"}
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{service.address}/ready", trust_env=False)
        with pytest.raises(httpx.TransportError):
            httpx.get(service.address.replace("https:", "http:") + "/ready", trust_env=False)
    finally:
        service.kill()


def test_open_streams_are_listed() -> None:
    database = deltalog.connect(program=PROGRAM, engine="reference")
    with serving(database) as service:

        def listed() -> dict[str, Any]:
            return dict(httpx.get(f"{service.address}/v1/streams", timeout=HANG_SECONDS).json())

        assert listed() == {"streams": [], "readers": 0}
        address = service.stream("shown", offset="now", live="sse")
        bound = service.stream("shown", offset="now", live="sse", **{"shown.n": "1"})
        with httpx.stream("GET", address), httpx.stream("GET", address), httpx.stream("GET", bound):
            wait_until(lambda: listed()["readers"] == 3, "all follow")
            both, one = listed()["streams"]
            assert (both["view"], both["readers"], both["bindings"]) == ("shown", 2, {})
            assert (one["readers"], one["bindings"], one["commits_behind"]) == (1, {"n": 1}, 0)
        wait_until(lambda: listed()["readers"] == 0, "all have left")


@pytest.mark.filterwarnings("ignore::deltalog.ConstraintWarning")
def test_commits_report_warnings() -> None:
    program = "base price(item: str, amount: int).\ndeny warn dear(I) :- price(I, A), A > 9."
    database = deltalog.connect(program=program, engine="reference")
    with serving(database) as service:

        def commit(*row: object) -> Any:
            body = {"insert": {"price": [row]}}
            headers = {"Idempotency-Key": str(row)}
            sent = f"{service.address}/v1/transactions"
            return httpx.post(sent, json=body, headers=headers, timeout=HANG_SECONDS).json()

        assert commit("a", 1)["warnings"] == []
        (found,) = commit("b", 10)["warnings"]
        assert found["constraint"] == "dear"
        assert commit("b", 10)["warnings"] == [], "nothing was committed again"
        assert commit("c", 2)["warnings"] == []
