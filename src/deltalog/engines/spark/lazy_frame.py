"""Rows on the cluster as the change of a relation: they are read only if somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame

from deltalog.engines.base import LazyRows
from deltalog.language.ast import Row


class LazyFrame(LazyRows):
    """Rows that stay on the cluster until they are read; `data` are the same as a DataFrame."""

    __slots__ = ("data", "some")

    def __init__(
        self,
        size: int,
        read: Callable[[], Iterable[Row]],
        data: DataFrame,
        some: Callable[[int], list[Row]] | None = None,
    ) -> None:
        super().__init__(size, read)
        self.data = data
        self.some = some

    def first(self, count: int) -> list[Row]:
        return super().first(count) if self.some is None else self.some(count)
