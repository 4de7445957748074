"""Where a state is: a folder, or the address of a bucket.

Small commits are written by the driver, without a job of Spark, where it reaches the storage: a
folder of this machine or one that is mounted, or a bucket for which delta-rs finds credentials.
Where it does not (HDFS, a Spark Connect server on another machine), Spark writes them, too. What is
large is always written and read by Spark.

By Spark Connect, a plain path is one of the server's machine, which may be this one. So the driver
writes an empty file there, and Spark looks for it.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSystem, LocalFileSystem
from pyspark.sql import SparkSession

from deltalog.diagnostics.arguments import check_argument

STORAGE = "spark.deltalog.storage"
"""Who writes small commits, `driver` or `spark`; by the address, if the session does not say it."""
_DRIVERS = frozenset(("", "file", "s3", "s3a", "gs", "az", "abfs", "abfss", "adl"))
"""Addresses that delta-rs knows."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)


@dataclass(frozen=True)
class Location:
    """The root of a state, an absolute folder or an address; `name` is what a person wrote."""

    name: str
    root: str
    is_reached: bool = True
    """Whether the driver reads and writes there itself."""

    @classmethod
    def of(cls, state: str, spark: SparkSession | None = None) -> Location:
        scheme = _scheme_of_address(state)
        said = None if spark is None else spark.conf.get(STORAGE, None)
        hint = "it is `driver` or `spark`, or not set"
        check_argument(said in (None, "driver", "spark"), STORAGE, said, hint)
        is_reached = scheme in _DRIVERS if said is None else said == "driver"
        if is_reached and not scheme and said is None and _is_connected(spark):
            is_reached = _is_shared(spark, Path(state).absolute())
        # Spark has a working directory of its own, which stays where it was started.
        is_folder = not scheme and is_reached
        return cls(
            state, (str(Path(state).absolute()) if is_folder else state).rstrip("/"), is_reached
        )

    @property
    def folder(self) -> Path | None:
        """The folder of the state if it is on this machine."""
        return Path(self.root) if self.is_reached and not _scheme_of_address(self.root) else None

    def path(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def may_have(self, *names: str) -> bool:
        """Whether there may be something at a path: unknown, unless it is on this machine."""
        return self.folder is None or Path(self.path(*names)).exists()

    def files(self, *names: str) -> tuple[FileSystem, str]:
        """A file system of Arrow, and the path there."""
        assert self.is_reached, "the driver does not read and write here"
        path = self.path(*names)
        if self.folder is not None:
            return LocalFileSystem(), path
        found: tuple[FileSystem, str] = FileSystem.from_uri(path)
        return found


def _scheme_of_address(address: str) -> str:
    found = _SCHEME.match(address)
    return found[1].lower() if found else ""


def _is_connected(spark: SparkSession | None) -> bool:
    """Whether a session is one of Spark Connect, which is another class."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _is_shared(spark: Any, folder: Path) -> bool:
    """Whether Spark sees what the driver writes to a folder."""
    made = next((each for each in reversed(folder.parents) if not each.exists()), folder)
    is_new = not made.exists()
    probe = folder / f"probe-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        return not bool(spark.read.text(str(probe)).take(1))
    except Exception:  # of Spark that there is no such file, or ours that we may not write
        return False
    finally:
        probe.unlink(missing_ok=True)
        if is_new:
            _remove_empty(folder, made)


def _remove_empty(folder: Path, made: Path) -> None:
    """Remove a folder and those above it that were made for it, unless they are in use."""
    for each in (folder, *folder.parents):
        try:
            each.rmdir()
        except OSError:
            return
        if each == made:
            return
