"""One Spark session for all tests of this folder, with sizes so small that both sides are used."""

from __future__ import annotations

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
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
}
"""There are many queries and few rows: what takes time is to compile each of them."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        **QUICK,
        **SMALL,
    }
    session = local_session(has_delta=False, settings=settings)
    yield session
    session.stop()
