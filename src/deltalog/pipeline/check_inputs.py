"""Look at the inputs of a project without Spark: do they exist, and have they the right columns?

A sample: of a folder of changes the files that are last by name, of each the header or the first
record, or the schema of a Parquet file or Delta table. Streams, databases and tables of a catalogue
are not looked at, and neither are files that only Spark can read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
from pyarrow import types as T

from deltalog.analysis.columns import Relation
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.pipeline.check_project import CheckedProject
from deltalog.pipeline.project import Source
from deltalog.pipeline.source_columns import Place, check_columns, shown_path
from deltalog.pipeline.text_files import TextReader, files_of, is_known
from deltalog.store.records import unreadable_file

SAMPLE = 3


def check_inputs(checked: CheckedProject) -> list[Diagnostic]:
    """Everything that is wrong with a sample of what sources have now."""
    return [
        problem
        for source in checked.project.sources
        if source.path and "://" not in source.path
        for problem in _of_source(source, checked.relation_of(source))
    ]


def _of_source(source: Source, relation: Relation) -> Iterator[Diagnostic]:
    path = Path(source.path)
    if not path.exists():
        yield from unreadable_file(Path(shown_path(path)), "no such file or directory").diagnostics
        return
    op = source.op if source.kind in ("changes", "stream") else None
    for sample in _sample_files(source, path):
        try:
            _check_sample(source, relation, op, sample)
        except DataError as error:
            yield from error.diagnostics


def _sample_files(source: Source, path: Path) -> list[Path]:
    if source.kind != "changes" or not path.is_dir():
        return [path]
    return [p for p in sorted(path.iterdir()) if not p.name.startswith((".", "_"))][-SAMPLE:]


def _check_sample(source: Source, relation: Relation, op: str | None, path: Path) -> None:
    if source.format == "delta":
        schema = _delta_schema(path)
        if schema is not None:
            _check_schema(source, relation, op, path, schema)
        return
    for file in files_of(path)[:1]:
        if is_known(source):
            next(TextReader(source, relation, op).rows(file), None)
        elif source.format == "parquet":
            try:
                schema = pyarrow.parquet.read_schema(file)
            except (pyarrow.ArrowException, OSError) as error:
                reason = str(error).splitlines()[0]
                raise unreadable_file(Path(shown_path(file)), reason) from None
            _check_schema(source, relation, op, file, schema)


def _delta_schema(path: Path) -> pyarrow.Schema | None:
    """The schema of a Delta table, if the package that reads it is installed."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        return None
    try:
        return pyarrow.schema(DeltaTable(path).schema().to_arrow())
    except DeltaError as error:
        raise unreadable_file(Path(shown_path(path)), str(error).splitlines()[0]) from None


def _check_schema(
    source: Source, relation: Relation, op: str | None, path: Path, schema: pyarrow.Schema
) -> None:
    found = {source.columns.get(field.name, field.name): field.type for field in schema}
    found = {name: type_ for name, type_ in found.items() if name not in source.ignore}
    misfits = [
        f"`{column.name}` is {found[column.name]} instead of {column.type}"
        for column in relation.columns
        if column.name in found and not _is_readable(found[column.name], str(column.type))
    ]
    place = Place(source.name, shown_path(path))
    check_columns(place, relation, found, op, misfits=misfits)


def _is_readable(type_: pyarrow.DataType, wanted: str) -> bool:
    """Whether values of a column can be of a type; text can always be read."""
    if T.is_string(type_) or T.is_large_string(type_) or T.is_null(type_):
        return True
    whole = T.is_integer(type_)
    readable = {
        "int": whole,
        "float": whole or T.is_floating(type_),
        "str": False,
        "bool": T.is_boolean(type_),
        "date": T.is_date(type_),
        "timestamp": T.is_timestamp(type_) or T.is_date(type_),
        "decimal": whole or T.is_decimal(type_),
    }
    return bool(readable[wanted])
