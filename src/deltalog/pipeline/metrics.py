"""The cost of a batch: seconds, rows that changed, and jobs of Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog.pipeline.log import Record


class Metrics(NamedTuple):
    """Of one commit of a pipeline; by Spark Connect the number of jobs is not known."""

    seconds: float = 0.0
    rows: int = 0
    jobs: int | None = None

    def __str__(self) -> str:
        jobs = "" if self.jobs is None else f", {self.jobs:,} job{'' if self.jobs == 1 else 's'}"
        return f"{self.seconds:.2f} s, {self.rows:,} row{'' if self.rows == 1 else 's'}{jobs}"


UNMEASURED = Metrics()


class Stopwatch:
    """Measures from one batch to the next."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.restart()

    def restart(self) -> None:
        self._started = time.monotonic()
        self._jobs = _count_jobs(self._spark)

    def metrics(self, counts: Mapping[str, tuple[int, int]]) -> Metrics:
        """The metrics so far of a commit that changes these numbers of rows."""
        jobs, rows = _count_jobs(self._spark), sum(map(sum, counts.values()))
        made = None if jobs is None or self._jobs is None else jobs - self._jobs
        return Metrics(round(time.monotonic() - self._started, 3), rows, made)

    def of_record(self, record: Record) -> Mapping[str, float]:
        """The same for the log: until the commit, without what follows it."""
        found = self.metrics(record.counts)._asdict()
        return {name: value for name, value in found.items() if value is not None}


def _count_jobs(spark: SparkSession) -> int | None:
    """The number of jobs that a session has started."""
    try:
        return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
    except (AttributeError, PySparkException):
        return None
