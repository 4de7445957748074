"""A database as text that makes it again: its program, and every base fact as a statement.

    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).

    edge(1, 2).

Or, for many facts, as a folder: the program, and a CSV file for each base relation. Views follow
from the rules, so they are not written; neither is the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from deltalog.language.ast import Declaration, Program
from deltalog.language.printer import print_program
from deltalog.language.values import print_value, sort_key
from deltalog.runtime.database import MemoryDatabase
from deltalog.store.files import write_rows

PROGRAM = "program.dl"


def dump(database: MemoryDatabase) -> Iterator[str]:
    """The lines of the text."""
    yield print_program(_without_facts(database)).rstrip("\n")
    for name in _base(database):
        rows = sorted(database.facts(name), key=sort_key)
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
    for name in _base(database):
        rows = sorted(database.facts(name), key=sort_key)
        if rows:
            path = folder / f"{name}.csv"
            write_rows(path, database.relations[name].columns, rows)
            written.append(path)
    return written


def _base(database: MemoryDatabase) -> list[str]:
    return sorted(name for name, each in database.relations.items() if each.kind == "base")


def _without_facts(database: MemoryDatabase) -> Program:
    """The program with every base relation declared and none of its facts."""
    program, relations = database.model.checked.program, database.relations
    undeclared = [name for name in _base(database) if not relations[name].is_declared]
    declared = [each for each in program.declarations if each.predicate not in undeclared]
    declared += [Declaration("base", name, relations[name].columns) for name in undeclared]
    facts = tuple(fact for fact in program.facts if relations[fact.predicate].kind == "view")
    return replace(program, declarations=tuple(declared), facts=facts)
