"""A service in a process of its own: what `deltalog serve` starts, which can be killed."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from waiting import HANG_SECONDS, wait_until


class ServedFile:
    """A file, a program or a state, served by `deltalog serve` in a process of its own."""

    def __init__(self, path: Path, options: Sequence[str] = ()) -> None:
        self.path = path
        self._options = options
        self._client = httpx.Client(timeout=HANG_SECONDS, trust_env=False, verify=False)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        log = self.path.with_suffix(".log").open("ab")
        command = [sys.executable, "-m", "deltalog.cli.main", "serve", str(self.path)]
        command += ["--port", str(self.port), "--requests-per-second", "100000", *self._options]
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        wait_until(self.is_ready, "the service is ready")

    def is_ready(self) -> bool:
        assert self._process is not None
        log = self.path.with_suffix(".log")
        assert self._process.poll() is None, log.read_text(encoding="utf-8")
        try:
            return self._client.get(f"{self.address}/ready").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it as a power switch would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(HANG_SECONDS)

    def stop(self) -> None:
        """End it as a person would."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(HANG_SECONDS)

    def apply(self, **sides: object) -> str:
        """Commit a transaction; returns the offset behind it."""
        response = self._client.post(f"{self.address}/v1/transactions", json=sides)
        assert response.status_code == 200, response.text
        return str(response.json()["offset"])

    def stream(self, view: str) -> str:
        return f"{self.address}/v1/views/{view}/stream"
