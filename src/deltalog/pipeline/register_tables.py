"""Tables of a state in a catalogue: `deltalog.register_tables(spark, "state", "shop")`.

    SELECT * FROM shop.path       the table as it lies in the state, as far behind as it is

The catalogue gets the names and places of tables, no data; they follow the log as before.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.read import opened_state
from deltalog.pipeline.state_tables import is_stored, known_table
from deltalog.store.programs import stored_program


def register_tables(spark: SparkSession, state: str, schema: str) -> list[str]:
    """Register every base relation and stored view that has a table; returns their names there.

    The schema is created if the catalogue does not have it. A table of that name which lies
    elsewhere is an error.
    """
    opened = opened_state(state, spark)
    if not spark.catalog.databaseExists(schema):
        spark.sql(f"CREATE SCHEMA {schema}")
    made: list[str] = []
    for name in sorted(stored_program(opened.program).relations):
        table = known_table(opened, name)
        if is_stored(table) and table.exists:
            full = f"{schema}.{name}"
            if not spark.catalog.tableExists(full):
                spark.sql(f"CREATE TABLE {full} USING delta LOCATION '{_quote_path(table.path)}'")
            _check_place(spark, full, table.path)
            made.append(full)
    return made


def _check_place(spark: SparkSession, full: str, path: str) -> None:
    row = spark.sql(f"DESCRIBE DETAIL {full}").select("location").first()
    assert row is not None
    if _normalize_address(row[0]) != _normalize_address(path):
        reason = f"the catalogue has a table of that name at {row[0]}"
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=full, reason=reason)])


def _normalize_address(address: str) -> str:
    """An address without what a catalogue may add to it."""
    parts = urlsplit(address)
    is_local = parts.scheme in ("", "file")
    return unquote(parts.path).rstrip("/") if is_local else address.rstrip("/")


def _quote_path(path: str) -> str:
    return path.replace("\\", "\\\\").replace("'", "\\'")
