"""Rows: the answer to a query, as Python tuples, as Arrow, as pandas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast, overload

from deltalog.language.ast import Column, Row
from deltalog.language.values import sort_key
from deltalog.runtime.fixpoint import Statistics

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Rows(Sequence[Row]):
    """Distinct rows in a fixed order. A query without variables has one empty row or none."""

    def __init__(
        self, columns: tuple[Column, ...], rows: set[Row], statistics: Statistics | None = None
    ) -> None:
        self.columns = columns
        self.statistics = statistics or Statistics()
        self._rows = tuple(sorted(rows, key=sort_key))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return self._rows == other._rows
        if isinstance(other, set | frozenset):
            return set(self._rows) == other
        if isinstance(other, list | tuple):
            return list(self._rows) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._rows[:8]))
        more = f", … {len(self) - 8} more" if len(self) > 8 else ""
        return f"Rows({', '.join(self.names)})[{shown}{more}]"

    def to_arrow(self) -> pyarrow.Table:
        """A typed Arrow table."""
        from deltalog.language.arrow import arrow_table

        return arrow_table(self.columns, self._rows)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; needs pandas (`pip install 'deltalog[pandas]'`)."""
        return cast("pandas.DataFrame", self.to_arrow().to_pandas())
