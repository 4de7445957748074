"""Where a state is: a folder, or the address of a bucket.

Small commits are written by the driver, without a job of Spark, where it reaches the storage: a
folder of this machine or one that is mounted, or a bucket for which delta-rs finds credentials.
Where it does not (HDFS, a Spark Connect server on another machine), Spark writes them, too. What is
large is always written and read by Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

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
        scheme = _scheme(state)
        said = None if spark is None else spark.conf.get(STORAGE, None)
        hint = "it is `driver` or `spark`, or not set"
        check_argument(said in (None, "driver", "spark"), STORAGE, said, hint)
        is_reached = scheme in _DRIVERS if said is None else said == "driver"
        # Spark has a working directory of its own, which stays where it was started.
        is_folder = not scheme and is_reached
        return cls(
            state, (str(Path(state).absolute()) if is_folder else state).rstrip("/"), is_reached
        )

    @property
    def folder(self) -> Path | None:
        """The folder of the state if it is on this machine."""
        return Path(self.root) if self.is_reached and not _scheme(self.root) else None

    def path(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def files(self, *names: str) -> tuple[FileSystem, str]:
        """A file system of Arrow, and the path there."""
        assert self.is_reached, "the driver does not read and write here"
        path = self.path(*names)
        if self.folder is not None:
            return LocalFileSystem(), path
        found: tuple[FileSystem, str] = FileSystem.from_uri(path)
        return found


def _scheme(address: str) -> str:
    found = _SCHEME.match(address)
    return found[1].lower() if found else ""
