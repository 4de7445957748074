"""The engines by name, and how each is started: only when it is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.engines.base import Engine
from deltalog.engines.reference.engine import ReferenceEngine


def _embedded_engine() -> Engine:
    """Imported when it is asked for: numba takes its time. Without numba the reference serves."""
    try:
        from deltalog.engines.embedded.engine import EmbeddedEngine
    except ImportError as error:
        warnings.warn(
            f"the embedded engine needs numba ({error}); the reference engine serves instead, with "
            "the same answers, but far slower and with more memory for each fact: "
            "`pip install numba` brings the speed back",
            RuntimeWarning,
            stacklevel=3,
        )
        return ReferenceEngine()
    return EmbeddedEngine()


def spark_engine(session: Any = None) -> Engine:
    """Imported when it is asked for: Spark is an extra."""
    try:
        from deltalog.engines.spark.engine import SparkEngine
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[spark]'`"
        needed = {"name": "spark", "needed": "pyspark", "hint": hint}
        raise DataError([catalogue.ENGINE_NEEDS.at(None, **needed)]) from error
    return SparkEngine(_embedded_engine, session)


ENGINES: Mapping[str, Callable[[], Engine]] = {
    "embedded": _embedded_engine,
    "reference": ReferenceEngine,
}
EXTRA_ENGINES: Mapping[str, Callable[[], Engine]] = {"spark": spark_engine}
"""Engines that need more than the package: they are asked for by name and tested apart."""
DEFAULT_ENGINE = "embedded"


def known_engine(name: str, spark: Any = None) -> Callable[[], Engine]:
    """How to start the engine of that name, or Spark with a session."""
    engines = {**ENGINES, **EXTRA_ENGINES}
    if spark is not None:
        return lambda: spark_engine(spark)
    if name in engines:
        return engines[name]
    hint = f"the engines are {', '.join(sorted(engines))}"
    raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="engine", name=name, hint=hint)])
