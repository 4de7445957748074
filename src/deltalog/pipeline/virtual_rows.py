"""The facts of a view that is not stored, at a version, computed without Spark.

The rules of that version run in this process over the base facts of that version; bound columns are
constants of the query, so Magic Sets derive only what they ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow

from deltalog.language.ast import Atom, Constant, Query, Row, Value, Variable
from deltalog.language.values import constant_of
from deltalog.pipeline.relation_parts import Bindings, RowsPart, contents_at, known_rows
from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import known_table
from deltalog.pipeline.stored_table import StoredTable
from deltalog.runtime.engine_choice import DEFAULT_ENGINE, ENGINES
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import query_model
from deltalog.runtime.queries import answer_query, stored_reads
from deltalog.store.programs import stored_program


def virtual_rows(
    state: State, table: StoredTable, name: str, version: int, bindings: Bindings
) -> list[RowsPart]:
    """All facts of the view in which columns have the values they are bound to."""
    checked = stored_program(state.program_at(version))
    base = frozenset(n for n, each in checked.relations.items() if each.kind == "base")
    model = query_model(checked, base)
    terms = [
        _term_of_column(number, type_, bindings.get(column, ()))
        for number, (column, type_) in enumerate(zip(table.columns, table.types, strict=True))
    ]
    query = Query((Atom(name, tuple(terms)),))
    engine = ENGINES[DEFAULT_ENGINE]()
    for read in stored_reads(model, query):
        create_relations(engine, {read: checked.relations[read]})
        engine.insert(read, set(_stored_facts(state, read, version)))
    found = answer_query(engine, model, query, Limits())
    return known_rows(table, (_fill_constants(terms, row) for row in found), bindings)


def _term_of_column(number: int, type_: str, values: Sequence[Value]) -> Constant | Variable:
    """A constant for a column that is bound to one value, else a variable."""
    if len(values) == 1 and values[0] is not None:
        return constant_of(values[0], type_)
    return Variable(f"V{number}")


def _fill_constants(terms: Sequence[Constant | Variable], row: Row) -> Row:
    """An answer with the constants of the query."""
    values = iter(row)
    return tuple(next(values) if isinstance(term, Variable) else term.value for term in terms)


def _stored_facts(state: State, relation: str, version: int) -> Iterator[Row]:
    table = known_table(state, relation, version)
    for part in contents_at(state, table, relation, version, {}):
        for batch in part.read():
            yield from table.rows(pyarrow.Table.from_batches([batch]))
