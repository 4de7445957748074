"""The net effect of a change: without what the stored relations already say.

    wanted +edge(1, 2) -edge(3, 4)   with edge(1, 2) there and edge(3, 4) not   →   nothing

An engine that fetches from elsewhere is prefetched first, so that rows are asked for together.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from functools import partial

from deltalog.analysis.columns import Relations
from deltalog.engines.base import Engine
from deltalog.engines.extensions import PrefetchingEngine, is_prefetching
from deltalog.language.ast import Row
from deltalog.rewrites import names
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import has_free_keys
from deltalog.runtime.transaction import Expect, Ground


def ground_of(engine: Engine, relations: Relations, lock: AbstractContextManager[object]) -> Ground:
    """Return the access that transactions have to the state of these relations."""
    return Ground(
        relations,
        engine.lookup,
        partial(net_change, engine, relations),
        lock,
        prefetch_function(engine, relations),
        partial(has_free_keys, engine),
    )


def net_change(engine: Engine, relations: Relations, wanted: ChangeSet) -> ChangeSet:
    """Return the change without its no-ops."""
    inserted, deleted = wanted.inserted, wanted.deleted
    expect = prefetch_function(engine, relations)
    if expect is not None:
        for name in inserted.held | deleted.held:
            columns = tuple(range(relations[name].arity))
            expect(name, columns, inserted[name] | deleted[name])
    return ChangeSet(
        {name: _present_rows(engine, name, rows, False) for name, rows in inserted.items()},
        {name: _present_rows(engine, name, rows, True) for name, rows in deleted.items()},
    )


def _present_rows(
    engine: Engine, relation: str, rows: frozenset[Row], is_there: bool
) -> frozenset[Row]:
    """Return those of the rows that are there, or those that are not."""
    known = zip(rows, engine.present(relation, rows), strict=True)
    return frozenset([row for row, found in known if found == is_there])


def prefetch_function(engine: Engine, relations: Relations) -> Expect | None:
    """Return the function that prefetches, if the engine does."""
    return partial(_prefetch_keys, engine, relations) if is_prefetching(engine) else None


def _prefetch_keys(
    engine: PrefetchingEngine,
    relations: Relations,
    relation: str,
    columns: tuple[int, ...],
    keys: Collection[Row],
) -> None:
    """Prefetch keys; whole rows may become changes, which rules will look up, too."""
    engine.expect(relation, columns, keys)
    if len(columns) == relations[relation].arity:
        for side in (names.plus_name, names.minus_name):
            engine.look_ahead(side(relation), keys)
