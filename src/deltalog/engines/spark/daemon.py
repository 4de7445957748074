"""The process that Python workers of a session on this machine are forked from.

Spark's own starts every worker with nothing loaded, and it then takes a second or more to import
what tasks run. Here that is loaded once, before the first fork. Named by
`spark.python.daemon.module`; on a cluster Spark's own serves as well, with a slower first job.
"""

from __future__ import annotations

import contextlib

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from deltalog.engines.spark import expressions, partitions, totals  # noqa: F401

with contextlib.suppress(ImportError):
    import numba  # noqa: F401 - the engine that tasks run most likely needs it

if __name__ == "__main__":
    manager()
