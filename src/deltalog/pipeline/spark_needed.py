"""Importing what needs Spark, which is an extra of the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError


@contextmanager
def spark_needed() -> Iterator[None]:
    """Report an import that fails as the extra that is missing."""
    try:
        yield
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[spark]'`"
        needed = {"name": "spark", "needed": "pyspark", "hint": hint}
        raise DataError([catalogue.ENGINE_NEEDS.at(None, **needed)]) from error
