"""What tests with foreign clients need: a service in a process of its own, and packages of Node."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from served_command import ServedFile

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


@contextmanager
def served(path: Path) -> Iterator[ServedFile]:
    """Serve a database file until the block ends."""
    file = ServedFile(path)
    file.start()
    try:
        yield file
    finally:
        file.kill()
