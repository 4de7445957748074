"""One Spark session for all tests of this folder, with sizes so small that both sides are used.

It is on this machine, unless `DELTALOG_SPARK_MASTER` names a cluster or a Spark Connect server
(`elsewhere.py` starts them).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from deltalog.engines.spark.session import local_session

SMALL = {
    "spark.deltalog.driver_rows_max": "4",
    "spark.deltalog.overlay_rows_max": "6",
    "spark.deltalog.pieces_max": "2",
    "spark.deltalog.literal_keys_max": "5",
    "spark.deltalog.scanned_rows_min": "3",
}
QUICK = {
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
    ),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
}
"""There are many queries and few rows: what takes time is to compile each of them."""


MASTER = os.environ.get("DELTALOG_SPARK_MASTER", "local[2]")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = connected() if MASTER.startswith("sc:") else classic()
    yield session
    session.stop()


def classic() -> SparkSession:
    settings = {
        "spark.master": MASTER,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        **QUICK,
        **SMALL,
    }
    if MASTER.startswith("spark:"):
        settings |= {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        settings["spark.executorEnv.PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    return local_session(has_delta=False, settings=settings)


def connected() -> SparkSession:
    session: SparkSession = SparkSession.builder.remote(MASTER).getOrCreate()
    for name, value in SMALL.items():
        session.conf.set(name, value)
    return session
