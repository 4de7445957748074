"""The tables of the journal of deliveries in a database file, and how they are read.

    deltalog__recipients, deltalog__queues,          a row for each record
    deltalog__dead_letters, deltalog__settled        (`runtime/delivery_records.py`)
    deltalog__deliveries                             how often this journal was written

They are made when a dispatcher first comes (`store/file_journal.py`).
"""

from __future__ import annotations

from dataclasses import fields

import apsw

from deltalog.runtime.delivery_records import (
    KINDS,
    Book,
    DeadLetter,
    Queue,
    Recipient,
    Record,
    Settled,
)
from deltalog.store.schema import guard_triggers

WRITES = "deltalog__deliveries"
TABLES: dict[type[Record], str] = {
    Recipient: "deltalog__recipients",
    Queue: "deltalog__queues",
    DeadLetter: "deltalog__dead_letters",
    Settled: "deltalog__settled",
}
_TYPES = {"str": "TEXT", "int": "INTEGER", "float": "REAL"}


def has_journal(connection: apsw.Connection) -> bool:
    found = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (WRITES,)).get
    return bool(found)


def journal_writes(connection: apsw.Connection) -> int | None:
    """How often the journal was written; None if there is none."""
    if not has_journal(connection):
        return None
    return int(connection.execute(f"SELECT count FROM {WRITES}").get)


def read_book(connection: apsw.Connection) -> Book:
    """All records of a file."""
    if not has_journal(connection):
        return Book()
    found: list[Record] = []
    for kind, table in TABLES.items():
        found += [kind(*row) for row in connection.execute(f"SELECT * FROM {table}")]
    return Book(found)


def read_settled(connection: apsw.Connection) -> dict[str, int]:
    """Up to where the messages of each rule are settled."""
    if not has_journal(connection):
        return {}
    found = connection.execute(f"SELECT rule, sequence FROM {TABLES[Settled]}")
    return {str(rule): int(sequence) for rule, sequence in found}


def journal_layout() -> str:
    made = [f"CREATE TABLE {WRITES} (count INTEGER NOT NULL) STRICT;{guard_triggers(WRITES)}"]
    made.append(f"INSERT INTO {WRITES} VALUES (0);")
    for kind in KINDS:
        columns = [f"{each.name} {_TYPES[str(each.type)]} NOT NULL" for each in fields(kind)]
        columns.append(f"PRIMARY KEY ({', '.join(key_columns(kind))})")
        table = TABLES[kind]
        made.append(f"CREATE TABLE {table} ({', '.join(columns)}) STRICT, WITHOUT ROWID;")
        made.append(guard_triggers(table))
    return "".join(made)


def key_columns(kind: type[Record]) -> list[str]:
    return [field.name for field in fields(kind)][: kind.KEYS]
