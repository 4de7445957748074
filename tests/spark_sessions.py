"""The Spark session of tests: one for a run, quick for many small queries."""

from __future__ import annotations

from pyspark.sql import SparkSession

from deltalog.engines.spark.session import local_session

QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:ReservedCodeCacheSize=240m -Dderby.stream.error.file=/dev/null",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.log.level": "ERROR",
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""There are many queries and few rows: what takes time is to compile each of them."""


def delta_session() -> SparkSession:
    return local_session(settings=QUICK)
