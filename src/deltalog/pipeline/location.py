"""Where a state is, and whether the driver can reach it.

Deltalog writes small commits from the driver, without a job of Spark. That needs the storage to be
within the driver's reach: a folder of this machine (or one that is mounted), or a bucket for which
delta-rs has credentials. Where only Spark can reach it (Spark Connect, HDFS, a catalogue's volumes)
Spark does the same, with one job for each commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

DIRECT = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory", "file")
"""Schemes of addresses that delta-rs knows."""
BY_SPARK = "spark.deltalog.by_spark"
"""Set to `true`, a session writes even small commits with Spark."""


@dataclass(frozen=True)
class Location:
    """The root of a state: an absolute folder, or an address."""

    name: str
    root: str
    is_direct: bool

    @classmethod
    def of(cls, spark: SparkSession | None, state: str) -> Location:
        # Spark has a working directory of its own, which stays where it was started.
        root = (state if "://" in state else str(Path(state).absolute())).rstrip("/")
        return cls(state, root, _is_direct(spark, root))

    @property
    def folder(self) -> Path | None:
        """The folder of the state if it is on this machine."""
        return None if "://" in self.root else Path(self.root)

    def path(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def uri(self, *names: str) -> str:
        path = self.path(*names)
        return path if "://" in path else f"file://{path}"


def _is_direct(spark: SparkSession | None, root: str) -> bool:
    if spark is not None and spark.conf.get(BY_SPARK, "false") == "true":
        return False
    if "://" in root:
        return root.split("://")[0] in DIRECT
    return not _is_remote(spark)


def _is_remote(spark: Any) -> bool:
    """Whether the session is a client of Spark Connect, whose server has other folders."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
