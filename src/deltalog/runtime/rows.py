"""Rows: facts or the answer to a query, as Python tuples, as Arrow, as frames of other packages.

Rows are lazy: what an engine has copied becomes a table directly, and tuples only for whoever asks
for tuples. All forms have the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, overload

from deltalog.engines.base import Changed, LazyRows
from deltalog.language.arrow import arrow_table
from deltalog.language.ast import Column, Row
from deltalog.language.values import sort_key
from deltalog.runtime import outgoing
from deltalog.runtime.fixpoint import Statistics
from deltalog.runtime.shown import HTML_ROWS, html_table, some_rows

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray

SHOWN_ROWS = 8


class Rows(Sequence[Row]):
    """Distinct rows in a fixed order. A query without variables has one empty row or none."""

    def __init__(
        self,
        columns: tuple[Column, ...],
        rows: set[Row] | Changed,
        statistics: Statistics | None = None,
    ) -> None:
        self.columns = columns
        self.statistics = statistics or Statistics()
        self.held = frozenset(rows) if isinstance(rows, set) else rows  # in any order

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def _ordered_rows(self) -> LazyRows | list[Row]:
        held = self.held
        return held.in_order() if isinstance(held, LazyRows) else sorted(held, key=sort_key)

    @cached_property
    def _row_tuple(self) -> tuple[Row, ...]:
        return tuple(self._ordered_rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self._row_tuple[index]

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._row_tuple)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return self._row_tuple == other._row_tuple
        if isinstance(other, set | frozenset):
            return set(self._row_tuple) == other
        if isinstance(other, list | tuple):
            return list(self._row_tuple) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, some_rows(self.held, SHOWN_ROWS)))
        more = f", … {len(self) - SHOWN_ROWS} more" if len(self) > SHOWN_ROWS else ""
        return f"Rows({', '.join(self.names)})[{shown}{more}]"

    def _repr_html_(self) -> str:
        rows = some_rows(self.held, HTML_ROWS)
        title = f"{len(self):,} row{'' if len(self) == 1 else 's'}"
        return html_table(title, self.names, rows, len(self) - len(rows))

    def to_arrow(self) -> pyarrow.Table:
        """Return a typed Arrow table."""
        ordered = self._ordered_rows
        if isinstance(ordered, LazyRows):
            return ordered.to_arrow(self.columns)
        return arrow_table(self.columns, ordered)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to whatever takes Arrow tables (the Arrow PyCapsule interface)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame; needs pandas (`pip install 'deltalog[pandas]'`)."""
        return cast("pandas.DataFrame", outgoing.to_pandas(self.to_arrow()))

    def to_polars(self) -> polars.DataFrame:
        """Return a DataFrame of polars, which must be installed."""
        return cast("polars.DataFrame", outgoing.to_polars(self.to_arrow()))

    def to_numpy(self, *, structured: bool = False) -> NDArray[Any]:
        """Return an array of rows and columns, of objects if columns are of several types.

        With `structured`, it has one dimension and a field of its own type for each column. Null is
        NaT for dates and timestamps, else None among objects.
        """
        table = self.to_arrow()
        return outgoing.to_structured(table) if structured else outgoing.to_numpy(table)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each row, with the names of the columns."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self._row_tuple]
