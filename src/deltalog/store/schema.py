"""The layout of a database file: a table for each stored relation, and five of our own.

    base edge(src: int, note: str?).

    CREATE TABLE "edge" ("src" INTEGER NOT NULL, "note" TEXT, "rank__" INTEGER PRIMARY KEY) STRICT

`rank__` is the rank of a fact (see the glossary): when it was derived, compared with others. It
costs nothing, as SQLite numbers rows anyway, but it must be a column: `VACUUM` renumbers rows that
have none. Names with a double underscore cannot be a user's.

    deltalog__log         a row for each commit: version, time, kind, and its changes as JSON;
                          since format 2 also which views it omits
    deltalog__changes     the same with a row for each fact, as an SQL view
    deltalog__programs    every program there was, and the version from which on it counted
    deltalog__relations   the stored relations with their tables and columns; `unordered` is the
                          kind of one whose ranks a strategy that does without has not kept
    deltalog__readers     who reads the log, and how far

`PRAGMA application_id` says that a file is ours, `PRAGMA user_version` which format it has.

Every table has triggers that refuse to write. Our connections do without triggers (`opened` in
`sqlite.py`), so they stop other tools alone, at no cost for us.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import apsw

from deltalog.analysis.columns import Relation
from deltalog.language.ast import Column
from deltalog.store.cells import AFFINITIES, Converters, Types, to_cell

APPLICATION = 0x44454C54  # "DELT"
FORMAT = 2
SPOILED = -1
"""In the place of the format: another program has written to the file."""
RANK = "rank__"
PARTS = 20
"""A commit has up to 2^20 rows in the log; the number of a row is its version and its part."""

CHANGES = """
CREATE VIEW deltalog__changes AS
    SELECT log.version AS version, log.time AS time, substr(side.key, 1, 1) AS op,
           substr(side.key, 2) AS relation, fact.value AS row
    FROM deltalog__log AS log, json_each(log.changes) AS side, json_each(side.value) AS fact
    WHERE side.key <> '?';
"""
OWN_TABLES = f"""
CREATE TABLE deltalog__log (
    number INTEGER PRIMARY KEY,
    version INTEGER AS (number >> {PARTS}),
    time TEXT,
    kind TEXT NOT NULL,
    changes TEXT NOT NULL
);
{CHANGES}
CREATE TABLE deltalog__programs (
    version INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    text TEXT NOT NULL,
    relations TEXT NOT NULL
) STRICT;
CREATE TABLE deltalog__relations (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    stored_in TEXT NOT NULL,
    columns TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE deltalog__readers (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    time TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
OWN_NAMES = tuple(f"deltalog__{each}" for each in ("log", "programs", "relations", "readers"))


@dataclass(frozen=True)
class Table:
    """Where a stored relation is kept, and the statements for it.

    What every commit reads are plain attributes, since properties take longer. `append` leaves the
    rank to SQLite, which gives one more than the largest.
    """

    relation: str
    kind: str
    name: str
    columns: tuple[Column, ...]
    types: Types = field(init=False, compare=False, repr=False)
    converters: Converters = field(init=False, compare=False, repr=False)
    insert: str = field(init=False, compare=False, repr=False)
    append: str = field(init=False, compare=False, repr=False)
    delete: str = field(init=False, compare=False, repr=False)
    delete_all: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        types = tuple(column.type for column in self.columns)
        marks = "?, " * len(self.columns)
        insert = f"INSERT INTO {quoted_name(self.name)} VALUES ({marks}"
        delete = f"DELETE FROM {quoted_name(self.name)}"
        made = {
            "types": types,
            "converters": to_cell(types),
            "insert": f"{insert}?)",
            "append": f"{insert}NULL)",
            "delete": f"{delete} WHERE {RANK} = ?",
            "delete_all": delete,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns in SQLite."""
        return _distinct_names([column.name for column in self.columns], {RANK})

    @cached_property
    def select(self) -> str:
        """Every fact, its rank first, lowest first."""
        wanted = ", ".join([RANK, *map(quoted_name, self.names)])
        return f"SELECT {wanted} FROM {quoted_name(self.name)} ORDER BY {RANK}"

    @cached_property
    def create(self) -> str:
        columns = [
            f"{quoted_name(name)} {AFFINITIES.get(column.type or '', 'TEXT')}"
            f"{'' if column.nullable else ' NOT NULL'}"
            for name, column in zip(self.names, self.columns, strict=True)
        ]
        columns.append(f"{RANK} INTEGER PRIMARY KEY")
        return f"CREATE TABLE {quoted_name(self.name)} ({', '.join(columns)}) STRICT"


def guard_triggers(table: str) -> str:
    """Triggers that keep other tools from writing to a table."""
    return "".join(
        f"CREATE TRIGGER {quoted_name(f'{table}__{event}')} BEFORE {event} ON {quoted_name(table)} "
        "BEGIN SELECT RAISE(ABORT, 'only Deltalog writes to this file'); END;"
        for event in ("insert", "update", "delete")
    )


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _distinct_names(names: Iterable[str], taken: set[str]) -> list[str]:
    """The names, with a number behind those that SQLite, which ignores case, would confuse."""
    taken = set(taken)
    found = []
    for name in names:
        wanted = f"relation__{name}" if name.lower().startswith("sqlite_") else name
        free = wanted
        for number in itertools.count(2):
            if free.lower() not in taken:
                break
            free = f"{wanted}__{number}"
        taken.add(free.lower())
        found.append(free)
    return found


def table_for(relation: Relation, kind: str, taken: Iterable[str]) -> Table:
    """A table for a relation beside those whose names are taken."""
    (name,) = _distinct_names([relation.name], {each.lower() for each in taken})
    return Table(relation.name, kind, name, relation.columns)


# --- columns as JSON ----------------------------------------------------------------------------


def columns_json(columns: Iterable[Column]) -> list[list[object]]:
    return [[column.name, column.type, column.nullable, column.key] for column in columns]


def columns_of(found: Iterable[Iterable[object]]) -> tuple[Column, ...]:
    return tuple(Column(*each) for each in found)  # type: ignore[arg-type]


def types_of(found: Iterable[Iterable[object]]) -> tuple[str | None, ...]:
    return tuple(column.type for column in columns_of(found))


def read_tables(connection: apsw.Connection) -> dict[str, Table]:
    """The tables of the stored relations, as the file says."""
    found = connection.execute("SELECT name, kind, stored_in, columns FROM deltalog__relations")
    return {
        str(name): Table(str(name), str(kind), str(place), columns_of(json.loads(str(columns))))
        for name, kind, place, columns in found
    }


def add_table(connection: apsw.Connection, table: Table) -> None:
    connection.execute(f"{table.create}; {guard_triggers(table.name)}")
    connection.execute(
        "INSERT INTO deltalog__relations VALUES (?, ?, ?, ?)",
        (table.relation, table.kind, table.name, json.dumps(columns_json(table.columns))),
    )


def change_kind(connection: apsw.Connection, table: Table, kind: str) -> Table:
    """The same table as one of another kind."""
    connection.execute(
        "UPDATE deltalog__relations SET kind = ? WHERE name = ?", (kind, table.relation)
    )
    return Table(table.relation, kind, table.name, table.columns)


def drop_table(connection: apsw.Connection, table: Table) -> None:
    connection.execute(f"DROP TABLE {quoted_name(table.name)}")
    connection.execute("DELETE FROM deltalog__relations WHERE name = ?", (table.relation,))


def relations_json(relations: Mapping[str, Relation]) -> str:
    """The columns of every relation, virtual ones too: what the log is read by."""
    return json.dumps({name: columns_json(each.columns) for name, each in relations.items()})
