"""The format `deltalog` for every Spark session: PySpark looks for packages named `pyspark_…`.

It does so when a Python data source is first asked for, so a session that never does pays nothing.
Filters are not handed to it, since sessions must allow that (`deltalog.register_format`).
"""

from deltalog.pipeline.data_source import PlainSource as DefaultSource

__all__ = ["DefaultSource"]
