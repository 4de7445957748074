"""A database as text that makes it again: its program, and every base fact as a statement.

    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).

    edge(1, 2).

Or, for many facts, as a folder: the program, and a CSV file for each base relation. Views follow
from the rules, so they are not written; neither is the past. Of active rules there is what they
have fired and for which parameters they are active, and the messages that are not delivered: dead
letters are messages again, since no target is known in the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from deltalog.analysis.active_rules import MESSAGES
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import LimitError
from deltalog.language.ast import Declaration, Program, Row
from deltalog.language.printer import print_program
from deltalog.language.values import print_value, sort_key
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.messages import PER_COMMIT, Message, stored_messages
from deltalog.store.files import write_rows

PROGRAM = "program.dl"


def dump_lines(database: MemoryDatabase) -> Iterator[str]:
    """The lines of the text."""
    yield print_program(_without_facts(database)).rstrip("\n")
    for name, rows in _facts_of_relations(database):
        if rows:
            yield ""
        for row in rows:
            values = ", ".join(map(print_value, row))
            yield f"{name}({values})." if row else f"{name}."


def dump_folder(database: MemoryDatabase, folder: Path) -> list[Path]:
    """Write the program, and a file of facts for each base relation that has some."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    program.write_text(print_program(_without_facts(database)), encoding="utf-8")
    written = [program]
    for name, rows in _facts_of_relations(database):
        if rows:
            path = folder / f"{name}.csv"
            write_rows(path, database.model.checked.relations[name].columns, rows)
            written.append(path)
    return written


def _facts_of_relations(database: MemoryDatabase) -> Iterator[tuple[str, list[Row]]]:
    """The facts of every base relation; those that active rules keep for themselves come last."""
    for name in _base_relations(database):
        yield name, sorted(database.facts(name), key=sort_key)
    for name in sorted(database.model.hidden & database.model.stored):
        if name == MESSAGES:
            yield name, _undelivered_messages(database)
        else:
            yield name, sorted(database.current_facts(name), key=sort_key)


def _undelivered_messages(database: MemoryDatabase) -> list[Row]:
    """Messages that are not settled and dead letters, numbered as those of version 0."""
    settled = database.settled_messages()
    dead = (letter.message for letter in database.dead_letters())
    found: dict[str, Message] = {message.id: message for message in dead}
    for message in stored_messages(database, -1):
        if message.sequence > settled.get(message.rule, -1):
            found[message.id] = message
    if len(found) >= PER_COMMIT:
        raise LimitError([service_catalogue.TOO_MANY_MESSAGES.at(None, limit=PER_COMMIT - 1)])
    ordered = sorted(found.values(), key=lambda each: each.sequence)
    return [(n, m.id, m.rule, m.name, m.payload) for n, m in enumerate(ordered, start=1)]


def _base_relations(database: MemoryDatabase) -> list[str]:
    return sorted(name for name, each in database.relations.items() if each.kind == "base")


def _without_facts(database: MemoryDatabase) -> Program:
    """The program with every base relation declared and none of its facts."""
    program, relations = database.model.checked.program, database.model.checked.relations
    undeclared = [name for name in _base_relations(database) if not relations[name].is_declared]
    declared = [each for each in program.declarations if each.predicate not in undeclared]
    declared += [Declaration("base", name, relations[name].columns) for name in undeclared]
    facts = tuple(fact for fact in program.facts if relations[fact.predicate].kind == "view")
    return replace(program, declarations=tuple(declared), facts=facts)
