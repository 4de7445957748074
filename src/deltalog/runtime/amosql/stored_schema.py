"""The schema of AMOSQL in a database: statements kept as facts, and a program made from them.

    amosql_statement(1, "create type item;").

The statements are facts of the program that is made from them, so both change in one commit, and a
database that is opened again has its schema. Rules and relations of the program that do not come
from AMOSQL stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from deltalog.language.amosql.parser import Parsed, parse_statements
from deltalog.language.amosql.resolution import predicate_of
from deltalog.language.amosql.schema import EMPTY, HIDDEN_PREFIX, Schema
from deltalog.language.amosql.translation import SchemaTranslator
from deltalog.language.amosql.tree import CreateFunction, CreateRule, CreateType
from deltalog.language.ast import Atom, Column, Constant, Declaration, Program
from deltalog.language.printer import (
    print_active_rule,
    print_atom,
    print_declaration,
    print_rule,
)
from deltalog.source import Source

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

_Node = TypeVar("_Node")
STATEMENTS = f"{HIDDEN_PREFIX}statement"
_DECLARATION = Declaration(
    "base", STATEMENTS, (Column("position", "int", key=True), Column("statement", "str"))
)


@dataclass(frozen=True)
class StoredSchema:
    """A schema, the texts of its statements, and the program that they stand for."""

    schema: Schema = EMPTY
    texts: tuple[str, ...] = ()

    def extended(self, parsed: Parsed) -> StoredSchema:
        """The schema with one more statement."""
        statement = parsed.statement
        assert isinstance(statement, CreateType | CreateFunction | CreateRule)
        return StoredSchema(self.schema.with_statement(statement), (*self.texts, parsed.text))

    def rules(self) -> Program:
        """The program without the statements that it was made from."""
        return SchemaTranslator(self.schema).program()

    def program(self) -> Program:
        if not self.texts:
            return Program()
        made = self.rules()
        facts = tuple(
            Atom(STATEMENTS, (Constant(place, "int"), Constant(text, "str")))
            for place, text in enumerate(self.texts, start=1)
        )
        return replace(made, declarations=(_DECLARATION, *made.declarations), facts=facts)


def read_schema(database: MemoryDatabase) -> StoredSchema:
    """The schema that a database has."""
    if STATEMENTS not in database.relations:
        return StoredSchema()
    found = StoredSchema()
    for _, text in sorted(database.facts(STATEMENTS)):
        for parsed in parse_statements(Source("<schema>", str(text))):
            found = found.extended(parsed)
    return found


def change_schema(
    database: MemoryDatabase, old: StoredSchema, new: StoredSchema, inactive: Iterable[str] = ()
) -> None:
    """Go over to another schema; stored functions that get another relation keep their values.

    New rules named in `inactive` wait until they are activated.

    A function that gets a second definition is renamed. Its values are copied while the old schema
    is still there, so that an interruption at any point leaves the old one or the new one.
    """
    before = database.model.checked.program
    after = _replace_amosql_part(before, old.program(), new.program())
    moved = dict(_renamed_relations(old.schema, new.schema))
    if moved:
        database.change_program(after, is_committed=False)  # which raises if it is not right
        names = set(moved.values())
        both = (each for each in after.declarations if each.predicate in names)
        known = {each.predicate for each in before.declarations}
        added = tuple(each for each in both if each.predicate not in known)
        database.change_program(
            replace(before, declarations=(*before.declarations, *added), queries=())
        )
        for source, target in moved.items():
            wanted, there = database.facts(source), database.facts(target)
            database.apply(insert={target: wanted - there}, delete={target: there - wanted})
    database.change_program(after, inactive=inactive)


def _renamed_relations(old: Schema, new: Schema) -> Iterator[tuple[str, str]]:
    """Relations of stored functions whose names change."""
    for function in old.stored():
        source, target = predicate_of(old, function), predicate_of(new, function)
        if source != target:
            yield source, target


def _replace_amosql_part(program: Program, old: Program, new: Program) -> Program:
    """The program with the part that comes from AMOSQL replaced.

    Relations of the new schema may be there already, after an interruption.
    """
    replaced = (*old.declarations, *new.declarations)
    kept = _items_without(program.declarations, replaced, print_declaration)
    return replace(
        program,
        declarations=(*kept, *new.declarations),
        rules=(*_items_without(program.rules, old.rules, print_rule), *new.rules),
        facts=(*_items_without(program.facts, old.facts, print_atom), *new.facts),
        active_rules=(
            *_items_without(program.active_rules, old.active_rules, print_active_rule),
            *new.active_rules,
        ),
        queries=(),
    )


def _items_without(
    items: Iterable[_Node], removed: Iterable[_Node], text: Callable[[_Node], str]
) -> tuple[_Node, ...]:
    """The items that are not among those removed; what is written alike is the same."""
    dropped = set(map(text, removed))
    return tuple(each for each in items if text(each) not in dropped)
