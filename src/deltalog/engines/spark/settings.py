"""Where things are done is decided by size: the sizes, and how to change them.

They are read from the session (`spark.conf.set("spark.deltalog.driver_rows_max", "1000")`), so a
database that is opened on a session someone has tuned needs no further word.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from pyspark.sql import SparkSession

PREFIX = "spark.deltalog."


@dataclass(frozen=True)
class Settings:
    """Sizes in rows unless they say otherwise.

    driver_rows_max: relations up to this size live on the driver.
    overlay_rows_max: changes kept on the driver beside a relation of the cluster, then folded in.
    pieces_max: frames of one relation before they are made one.
    literal_keys_max: keys of a probe written as literals; beyond that they are joined as a frame.
    probe_keys_max: keys of one round that are probed; beyond that the rule runs on the cluster.
    scanned_rows_min: rows read from end to end before the driver runs rules with its fast engine.
    cached_rows_max: rows that probes have fetched and a relation remembers.
    shipped_rows_max: rows that every task of a partition-local recursion may be sent.
    partitions: tasks of a partition-local recursion; 0 means as many as shuffles have.
    """

    driver_rows_max: int = 100_000
    overlay_rows_max: int = 50_000
    pieces_max: int = 8
    literal_keys_max: int = 2_000
    probe_keys_max: int = 100_000
    scanned_rows_min: int = 1_000
    cached_rows_max: int = 1_000_000
    shipped_rows_max: int = 5_000_000
    partitions: int = 0

    @classmethod
    def of(cls, spark: SparkSession) -> Settings:
        """The defaults, and what the session says otherwise."""
        found = {field.name: spark.conf.get(PREFIX + field.name, None) for field in fields(cls)}
        return cls(**{name: int(value) for name, value in found.items() if value is not None})
