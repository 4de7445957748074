"""Every check of rows against their relation: number and type of values, nulls, keys.

    [(1, "a"), {"name": "b", "id": 2}]  ->  [(1, "a"), (2, "b")]      in canonical form
    [(1, "a"), (1, "b")]                ->  an error, if the first column is the key

A row is a sequence of values, by position, or a mapping, by the names of the columns. A name that
is left out means null, where the column may be null. Rows are counted from 1 in messages. Columns
are checked as a whole (`checked_columns.py`), with the same messages.

Rows are checked once: `CheckedRows` pass through every later check of their values. The same checks
for DataFrames of Spark are in `pipeline/checked_frames.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from deltalog.analysis.columns import Relation, Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import Changed, Engine, LazyRows, LazyTable
from deltalog.language.arrow import arrow_schema, is_key
from deltalog.language.ast import Column, Row
from deltalog.language.values import (
    VALUE_ERRORS,
    canonical_value,
    is_canonical,
    is_null,
    print_value,
)
from deltalog.runtime.checked_columns import Vector, checked_column

if TYPE_CHECKING:
    import pyarrow

    from deltalog.runtime.changes import ChangeSet

FORMS = "facts are a list of tuples or dicts, a table or a DataFrame"
SMALL_SHARE = 0.1
"""Keys of a table that is smaller than this share of its relation are looked up one by one."""
FindKey = Callable[[str, Mapping[int, Any]], Iterable[Row]]
"""Returns the facts of a relation that have these values at these positions."""
RowsOrTable = TypeVar("RowsOrTable", list[Row], list[Row] | LazyTable)


class CheckedRows(list[Row]):
    """Rows in canonical form that fit a relation, so that nobody checks them again."""

    def __init__(self, relation: Relation, rows: Iterable[Row]) -> None:
        super().__init__(rows)
        self.relation = relation


# --- values and nulls


def checked_rows(relation: Relation, rows: Iterable[Any]) -> list[Row]:
    """Return the rows in canonical form; all are checked before anything is done."""
    if type(rows) is list:
        given = rows.copy()
    elif isinstance(rows, CheckedRows) and rows.relation is relation:
        return rows.copy()
    else:
        given = _list_rows(relation, rows)
    if is_canonical(given, relation.plain_types):
        return given
    if len(given) == relation.arity > 1 and not any(map(_is_row, given)):
        hint = f"one fact is given in a list: `[{tuple(given)!r}]`"
        raise DataError([wrong_arity(relation, repr(given[0])[:80], "is not a tuple", hint)])
    if len(given) == 1:
        return [checked_row(relation, given[0])]
    return [checked_row(relation, row, number) for number, row in enumerate(given, 1)]


def _is_row(row: Any) -> bool:
    if isinstance(row, str | bytes | bytearray | memoryview):
        return False
    return isinstance(row, Mapping | Sequence)


def checked_row(relation: Relation, row: Any, number: int | None = None) -> Row:
    """Return the row in canonical form, or raise a `DataError` that says what does not fit."""
    if isinstance(row, Mapping):
        row = _by_name(relation, row, number)
    elif not _is_row(row):
        hint = "a fact is a tuple; write `(value,)` for a single value"
        raise DataError([wrong_arity(relation, repr(row)[:80], "is not a tuple", hint)])
    if len(row) != relation.arity:
        shown = f"({', '.join(shown_value(value) for value in row)})"[:120]
        raise DataError([wrong_arity(relation, shown, f"has {len(row)}", None)])
    try:
        return tuple(
            [
                None
                if column.nullable and is_null(value)
                else canonical_value(value, str(column.type))
                for value, column in zip(row, relation.columns, strict=True)
            ]
        )
    except VALUE_ERRORS:
        raise DataError(list(_row_misfits(relation, row, number))) from None


def checked_table(relation: Relation, vectors: Sequence[Vector]) -> pyarrow.Table:
    """Return columns, which are in the relation's order, as a table of canonical values."""
    import pyarrow

    found, wrong = [], []
    for column, vector in zip(relation.columns, vectors, strict=True):
        checked = checked_column(vector, column)
        if checked.wrong_at is None:
            found.append(checked.values)
        else:
            wrong.append(value_misfit(relation, column, checked.wrong, checked.wrong_at + 1))
    if wrong:
        raise DataError(wrong)
    return pyarrow.Table.from_arrays(found, schema=arrow_schema(relation.columns))


def _row_misfits(
    relation: Relation, row: Sequence[Any], number: int | None
) -> Iterator[Diagnostic]:
    for value, column in zip(row, relation.columns, strict=True):
        if column.nullable and is_null(value):
            continue
        try:
            canonical_value(value, str(column.type))
        except VALUE_ERRORS:
            yield value_misfit(relation, column, value, number)


def _by_name(relation: Relation, row: Mapping[Any, Any], number: int | None) -> list[Any]:
    names = [column.name for column in relation.columns]
    unknown = [str(name) for name in row if name not in names]
    missing = [c.name for c in relation.columns if c.name not in row and not c.nullable]
    if unknown or missing:
        where = "a row" if number is None else f"row {number}"
        raise DataError([columns_differ(relation, where, unknown, missing)])
    return [row.get(name) for name in names]


def columns_differ(
    relation: Relation, what: str, unknown: Sequence[str], missing: Sequence[str]
) -> Diagnostic:
    """Report which names of columns are not known and which are missing."""
    names = [column.name for column in relation.columns]
    reasons = [f"there is no `{name}`" for name in unknown]
    reasons += [f"`{name}` is missing" for name in missing]
    near = (did_you_mean(name, missing or names) for name in unknown)
    hint = next((each for each in near if each), None)
    return catalogue.COLUMNS_DIFFER.at(
        None,
        what=what,
        name=relation.name,
        reason=", ".join(reasons),
        hint=hint or (f"its columns are {', '.join(names)}" if names else "it has no columns"),
    )


def _list_rows(relation: Relation, rows: Iterable[Any]) -> list[Any]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError([wrong_arity(relation, repr(rows)[:80], "is not a list", FORMS)])
    try:
        return list(rows)
    except TypeError:  # an array without dimensions, or an iterator that fails
        raise DataError([wrong_arity(relation, repr(rows)[:80], "is not a list", FORMS)]) from None


def value_misfit(relation: Relation, column: Column, value: Any, number: int | None) -> Diagnostic:
    """Report that a value, that of a row with this number, does not fit its column."""
    return catalogue.VALUE_MISFIT.at(
        None,
        value=shown_value(value)[:80] + ("" if number is None else f" in row {number}"),
        column=column.name,
        name=relation.name,
        type=column.type,
        hint=None if value is None else _misfit_hint(value, str(column.type)),
    )


def _misfit_hint(value: Any, type_: str) -> str:
    is_far = type(value).__name__ == "datetime64" and type_ in ("date", "timestamp")
    return PYTHON_HINTS[type_] + (", of the years 1 to 9999" if is_far else "")


PYTHON_HINTS = {
    "int": "use an int from -(2^63 - 1) to 2^63 - 1",
    "float": "use a finite float",
    "str": "use a str",
    "bool": "use True or False",
    "date": "use a datetime.date",
    "timestamp": "use a datetime.datetime",
    "decimal": "use a decimal.Decimal with at most 20 digits before the point and 18 after it",
}


def wrong_arity(relation: Relation, row: str, has: str, hint: str | None) -> Diagnostic:
    """Report that something is no row of a relation."""
    return catalogue.ROW_ARITY.at(
        None,
        name=relation.name,
        wanted=_count_of_values(relation.arity),
        row=row,
        has=has,
        hint=hint,
    )


def shown_value(value: Any) -> str:
    """A value as it would be written in a program, or as Python shows it."""
    known = value is None or isinstance(value, bool | int | float | str | date | Decimal)
    return print_value(value) if known else repr(value)


def _count_of_values(number: int) -> str:
    return f"{number} value{'' if number == 1 else 's'}"


# --- keys


def key_of(relation: Relation, row: Row) -> Row:
    return tuple([row[position] for position in relation.key])


def with_unique_keys(relation: Relation, rows: RowsOrTable) -> RowsOrTable:
    """Return the rows, of which no two may have the same key."""
    taken: dict[Row, Row] = {}
    if isinstance(rows, LazyTable) and is_key(rows.table, relation.key):
        return rows
    for row in rows if relation.key else ():
        other = taken.setdefault(key_of(relation, row), row)
        if other != row:
            raise DataError([key_taken(relation, other)])
    return rows


def key_conflicts(relation: Relation, rows: Iterable[Row]) -> set[Row]:
    """Return the rows that have the key of a row with other values."""
    found: set[Row] = set()
    first: dict[Row, Row] = {}
    for row in rows if relation.key else ():
        other = first.setdefault(key_of(relation, row), row)
        if other != row:
            found.update((other, row))
    return found


def check_set_once(relation: Relation, rows: Iterable[Row]) -> None:
    """No two rows of one `set` have the same key and different values."""
    first: dict[Row, tuple[int, Row]] = {}
    for number, row in enumerate(rows, 1):
        key = key_of(relation, row)
        earlier, other = first.setdefault(key, (number, row))
        if other != row:
            raise DataError([key_set_twice(relation, f"rows {earlier} and {number}", key)])


def check_taken_keys(change: ChangeSet, relations: Relations, find: FindKey) -> None:
    """Nothing is inserted beside a fact that has its key and stays."""
    for name in change.inserted:
        relation = relations[name]
        for row in change.inserted[name] if relation.key else ():
            key = dict(zip(relation.key, key_of(relation, row), strict=True))
            for other in find(name, key):
                if other != row and other not in change.deleted[name]:
                    raise DataError([key_taken(relation, other)])


def split_by_taken_keys(
    relation: Relation, rows: Iterable[Row], deleted: Iterable[Row], holders: Mapping[Row, Row]
) -> tuple[list[Row], list[tuple[Row, Row]]]:
    """Return the rows that can be inserted, and the others, each with the fact that has its key.

    `holders` are the facts that have the keys of the rows, before some facts are deleted.
    """
    gaps, present = set(deleted), dict(holders)
    free: list[Row] = []
    refused: list[tuple[Row, Row]] = []
    for row in rows:
        key = key_of(relation, row)
        holder = present.get(key)
        if holder is None or holder in gaps or holder == row:
            present[key] = row
            gaps.discard(row)
            free.append(row)
        else:
            refused.append((row, holder))
    return free, refused


def has_free_keys(engine: Engine, relation: Relation, table: LazyTable) -> bool:
    """Whether no key has two facts among those of the table and those that are there.

    It is also False if it is less work to look the keys up one by one.
    """
    import pyarrow

    there = engine.size(relation.name)
    if not there:
        return is_key(table.table, relation.key)
    if not engine.capabilities.has_samples or len(table) < SMALL_SHARE * there:
        return False
    facts = engine.copied(relation.name)
    if isinstance(facts, frozenset):  # which would have to become a table first
        return False
    return is_key(
        pyarrow.concat_tables([facts.to_arrow(relation.columns), table.table]), relation.key
    )


def forbidden_rows(relation: Relation, rows: Changed) -> frozenset[Row]:
    """Return rows that share a key, or have null in a column that may not be null."""
    if isinstance(rows, LazyRows):
        table = rows.to_arrow(relation.columns)
        columns = zip(relation.columns, table.columns, strict=True)
        has_null = any(values.null_count and not each.nullable for each, values in columns)
        if not has_null and (not relation.key or is_key(table, relation.key)):
            return frozenset()
    wanted = [at for at, column in enumerate(relation.columns) if not column.nullable]
    held = list(rows)
    nulls = {row for row in held if any(row[at] is None for at in wanted)}
    return frozenset(nulls | key_conflicts(relation, held))


def key_set_twice(relation: Relation, rows: str, key: Row) -> Diagnostic:
    """Report that some rows set a key to different facts."""
    return catalogue.KEY_SET_TWICE.at(
        None,
        rows=rows,
        key=", ".join(map(print_value, key)),
        name=relation.name,
        hint="leave one row per key; in a transaction a later `set` replaces an earlier one",
    )


def key_taken(relation: Relation, row: Row) -> Diagnostic:
    """Report that a fact has a key, which therefore no other can have."""
    key = ", ".join(map(print_value, key_of(relation, row)))
    return catalogue.KEY_TAKEN.at(
        None,
        key=key,
        name=relation.name,
        row=shown_fact(relation, row),
        hint="`set` replaces it",
    )


def shown_fact(relation: Relation, row: Row) -> str:
    return f"{relation.name}({', '.join(map(print_value, row))})"
