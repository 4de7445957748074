"""Facts as arguments, `{"edge": [(1, 2)]}`: into a transaction, or into an empty database."""

from __future__ import annotations

from collections.abc import Mapping

from deltalog.diagnostics.arguments import check_argument
from deltalog.engines.base import Engine
from deltalog.engines.extensions import takes_frames
from deltalog.rewrites.desugar import fact_rows
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import check_taken_keys, with_unique_keys
from deltalog.runtime.incoming import incoming_facts
from deltalog.runtime.model import Model
from deltalog.runtime.protocols import Facts
from deltalog.runtime.transaction import Transaction, base_relation


def fill_transaction(
    transaction: Transaction, insert: Facts | None, delete: Facts | None, put: Facts | None
) -> Transaction:
    """Delete, insert and set: the order of files of changes, too. A set replaces an insert."""
    if delete is not None:
        if type(delete) is not dict:
            _check_facts("delete", delete)
        for relation, rows in delete.items():
            transaction.delete(relation, rows)
    if insert is not None:
        if type(insert) is not dict:
            _check_facts("insert", insert)
        for relation, rows in insert.items():
            transaction.insert(relation, rows)
    if put is not None:
        if type(put) is not dict:
            _check_facts("set", put)
        for relation, rows in put.items():
            transaction.set(relation, rows)
    return transaction


def load_facts(engine: Engine, model: Model, facts: Facts, loading: Transaction) -> None:
    """Load the facts of the program, by way of a transaction, and those of a caller."""
    _check_facts("facts", facts)
    relations = model.checked.relations
    for relation, row in fact_rows(model.core):
        loading.insert(relation, [row])
    for relation, new in loading.net().inserted.items():
        engine.insert(relation, new)
    for relation, rows in facts.items():
        known = base_relation(relations, relation)
        if hasattr(rows, "toArrow") and takes_frames(engine):
            engine.load_frame(relation, rows)
            continue
        checked = with_unique_keys(known, incoming_facts(known, rows))
        if known.key and engine.size(relation):  # facts of the program
            check_taken_keys(ChangeSet({relation: set(checked)}), relations, engine.lookup)
        engine.insert(relation, checked)


def _check_facts(name: str, facts: object) -> None:
    if not isinstance(facts, Mapping):
        hint = 'give a mapping from relations to rows, as in `{"edge": [(1, 2)]}`'
        check_argument(False, name, facts, hint)
