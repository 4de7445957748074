"""The forms in which rows are given besides tuples: columns by name, not in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from deltalog.language.ast import Row

Names = Sequence[str]
Rows = Sequence[Row]


def columns(names: Names, rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in reversed(list(enumerate(names)))}


def dicts(names: Names, rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def arrow(names: Names, rows: Rows) -> pa.Table:
    return pa.table(columns(names, rows))


def data_frame(names: Names, rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(c, dtype=object) for name, c in columns(names, rows).items()}
    )


def array(names: Names, rows: Rows) -> Any:
    """An array by position: of numbers if all are ints, else of objects."""
    is_ints = all(type(value) is int for row in rows for value in row)
    made = np.empty((len(rows), len(names)), dtype=np.int64 if is_ints else object)
    for i, row in enumerate(rows):
        made[i, :] = row
    return made


FORMS: dict[str, Callable[[Names, Rows], Any]] = {
    form.__name__: form for form in (columns, dicts, arrow, data_frame, array)
}
