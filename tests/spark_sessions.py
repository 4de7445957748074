"""The Spark session of tests: one for a run, quick for many small queries.

It is on this machine, unless `DELTALOG_SPARK_MASTER` names a cluster or a Spark Connect server
(`tests/spark/elsewhere.py` starts them).
"""

from __future__ import annotations

import os
import tempfile

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from deltalog.engines.spark.session import local_session

WAREHOUSE = tempfile.TemporaryDirectory(prefix="warehouse-")
"""Where schemas without a location go; by default that is the folder of the project."""
QUICK = {
    "spark.sql.warehouse.dir": WAREHOUSE.name,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:ReservedCodeCacheSize=240m -Dderby.stream.error.file=/dev/null",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.log.level": "ERROR",
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""There are many queries and few rows: what takes time is to compile each of them."""


PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
MASTER = os.environ.get("DELTALOG_SPARK_MASTER", "")
ELSEWHERE = {
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    "spark.cores.max": "1",  # a run that is killed, and the one that looks at what it left
}


def delta_session() -> SparkSession:
    if PORT in os.environ:
        return attached_session()
    if MASTER.startswith("sc:"):
        connected: SparkSession = SparkSession.builder.remote(MASTER).getOrCreate()
        return connected
    if MASTER.startswith("spark:"):
        return local_session(settings={**QUICK, **ELSEWHERE, "spark.master": MASTER})
    return local_session(settings=QUICK)


def gateway_of(spark: SparkSession) -> dict[str, str]:
    """Settings of the environment by which another process works with the JVM of a session."""
    found = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    return {PORT: str(found.port), SECRET: found.auth_token}


def attached_session() -> SparkSession:
    """A session in the JVM of another process, which stays when this process is killed."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    context = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(context)
    conf = SparkConf(loadDefaults=False, _jvm=jvm, _jconf=java.getConf())
    shared = SparkSession(SparkContext(gateway=gateway, jsc=java, conf=conf))
    return shared.newSession()  # settings are its own
