"""A PostgreSQL server for tests, as Debian's package `postgresql` has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server of its own on a socket; yields the connection string. Skips where none is."""
    if not SERVERS:
        pytest.skip("there is no PostgreSQL server on this machine")
    folder = Path(tempfile.mkdtemp(prefix="deltalog-"))  # sockets have short paths
    as_owner: list[str] = []
    if os.geteuid() == 0:  # a server refuses to run as root
        as_owner = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    control = str(SERVERS[-1] / "pg_ctl")
    data = str(folder / "data")

    def run(*command: str) -> None:
        subprocess.run([*as_owner, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")

    run(str(SERVERS[-1] / "initdb"), "-D", data, "-A", "trust", "-U", "owner", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    run(control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"host={folder} user=owner dbname=postgres password=very-secret"
    finally:
        run(control, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)
