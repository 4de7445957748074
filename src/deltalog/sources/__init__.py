"""Tables elsewhere that hold the facts of base relations, probed where they are.

db = deltalog.connect(program=…, sources={"edge": SqliteTable("graph.sqlite", "edge")})
db.pull()                          # the exact change of every view by what the source announced
"""

from deltalog.sources.delta_table import DeltaLakeTable
from deltalog.sources.parquet_files import ParquetFiles
from deltalog.sources.postgres_table import PostgresTable
from deltalog.sources.sqlite_table import SqliteTable

__all__ = ["DeltaLakeTable", "ParquetFiles", "PostgresTable", "SqliteTable"]
