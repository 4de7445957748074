"""The Spark session: the user's, the active one, or one of our own on this machine.

Our own has what a single machine wants: few shuffle partitions, no web pages, and Delta Lake, whose
jars are fetched on first use and kept after that (`jars.py`). It is plain Spark, so everything that
is set here can be set by hand on a session of the user's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.spark.jars import delta_settings
from deltalog.engines.spark.java import HINT, WANTED, java_home
from deltalog.engines.spark.quiet_gateway import quiet_gateway

CORES_MAX = 8
LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.python.daemon.module": "deltalog.engines.spark.daemon",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
DELTA: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # tables of one machine have few files
}
NO_SETTINGS: Mapping[str, str] = {}


def active_or_new_session(
    *, has_delta: bool = True, settings: Mapping[str, str] = NO_SETTINGS
) -> SparkSession:
    """The active session, or a new one on this machine."""
    active = SparkSession.getActiveSession()
    return active if active is not None else local_session(has_delta=has_delta, settings=settings)


def local_session(
    *, has_delta: bool = True, settings: Mapping[str, str] = NO_SETTINGS
) -> SparkSession:
    """A session on this machine; `settings` are Spark's own and win over ours."""
    home = java_home()
    if home is None:
        words = {"name": "spark", "needed": WANTED, "hint": HINT}
        raise DataError([catalogue.ENGINE_NEEDS.at(None, **words)])
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks need this package, too
    cores = min(os.cpu_count() or 1, CORES_MAX)
    wanted = {
        "spark.app.name": "deltalog",
        "spark.master": f"local[{cores}]",
        "spark.sql.shuffle.partitions": str(cores),
        **LOCAL,
        **(DELTA if has_delta else {}),
        **settings,
    }
    if has_delta:
        wanted |= delta_settings(settings)
    quiet_gateway(wanted)
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    made: SparkSession = builder.getOrCreate()
    return made
