"""Start the JVM of a session of our own without a word on the console.

Java and Spark write warnings and notes to the console before anybody can ask them not to. Here they
go to a file, for as long as the JVM lives:

    spark.deltalog.console = "/var/log/spark.log"      appended to this file
    spark.deltalog.console = "show"                    to the console, as plain Spark does
    not set                                            a temporary file, removed at the end

If the JVM does not start, the file says why.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError

CONSOLE = "spark.deltalog.console"
SHOWN = "show"
_NOISE = ("WARNING: Using incubator modules", "Picked up ")


def quiet_gateway(settings: Mapping[str, str]) -> None:
    """Start the JVM with these settings, unless this process has one already."""
    is_there = SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ
    if is_there or settings.get(CONSOLE) == SHOWN:
        return
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(settings.items()))
    with _open_log(settings.get(CONSOLE)) as console:
        start = console.tell()
        try:
            gateway = launch_gateway(conf, {"stdout": console, "stderr": console})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            console.seek(start)
            reason = _reason_of_failure(console.read())
            hint = f'look at the settings of Spark; `{CONSOLE} = "show"` shows all it writes'
            raise DataError(
                [catalogue.SPARK_NOT_STARTED.at(None, reason=reason, hint=hint)]
            ) from None
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _open_log(path: str | None) -> IO[str]:
    if path is not None:
        try:
            return Path(path).open("a+", encoding="utf-8", errors="replace")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError([catalogue.CANNOT_WRITE.at(None, name=path, reason=reason)]) from None
    handle, name = tempfile.mkstemp(prefix="deltalog-spark-", suffix=".log")
    os.close(handle)
    atexit.register(Path(name).unlink, missing_ok=True)
    return Path(name).open("a+", encoding="utf-8", errors="replace")


def _reason_of_failure(text: str) -> str:
    """The first line that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(_NOISE)]
    errors = [line for line in telling if "rror" in line or "nvalid" in line or "xception" in line]
    return next(iter([*errors, *telling]), "its process ended without a word")
