"""What tests with foreign clients need: a service in a process of its own, and packages of Node."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from waiting import HANG_SECONDS, wait_until

NPM = Path(__file__).parent / "npm"
NODE = shutil.which("node")
NO_NODE = "the published JavaScript clients of Durable Streams need Node and npm"
HAS_NODE = NODE is not None and shutil.which("npm") is not None


def node_folder() -> Path:
    """A folder with the pinned packages, made once per machine outside the project."""
    lock = (NPM / "package-lock.json").read_bytes()
    name = f"deltalog-npm-{hashlib.sha256(lock).hexdigest()[:16]}"
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    if not os.access(base if base.exists() else base.parent, os.W_OK):
        base = Path(tempfile.gettempdir())
    folder = base / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # several workers may want it at once
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for file in ("package.json", "package-lock.json"):
                shutil.copy(NPM / file, folder)
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            if subprocess.run(command, cwd=folder, capture_output=True).returncode != 0:
                pytest.skip("the published JavaScript clients cannot be installed here")
            (folder / "ready").touch()
    for script in NPM.glob("*.mjs"):
        shutil.copy(script, folder)
    return folder


class ServedFile:
    """A database file behind `deltalog serve`, which can be killed and started again."""

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


@contextmanager
def served(path: Path) -> Iterator[ServedFile]:
    """Serve a database file until the block ends."""
    file = ServedFile(path)
    file.start()
    try:
        yield file
    finally:
        file.kill()
