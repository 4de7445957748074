"""Many queries of one state, on the rows that they look up in an engine that has them elsewhere.

An engine on a cluster answers a query by probes, and runs its rules row by row on what these bring.
A search asks thousands of queries of much the same rows. So each runs on an engine of this process
that has the rows fetched so far, with rules that derive the keys it looks up
(`rewrites/lookup_rules.py`): those that are new are fetched, and it runs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deltalog.engines.extensions import PrefetchingEngine, is_prefetching
from deltalog.language.ast import Query, Row
from deltalog.rewrites.lookup_rules import Lookup
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model
from deltalog.runtime.queries import Inputs, answer_query
from deltalog.runtime.rows import Rows

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

KEYS_MAX = 10_000
"""Keys that one run of a query may look up; where there are more, the engine itself answers."""
WHOLE_MAX = 10_000
"""Facts of a relation that is fetched as a whole, for rules that bind none of its columns."""


class TooManyError(Exception):
    """A query looks up more than should be fetched."""


class FetchedRows:
    """Rows of the stored relations of a database, as long as none of these changes."""

    def __init__(self, source: PrefetchingEngine, model: Model) -> None:
        self._source = source
        self._engine = source.local()
        self._known: dict[Lookup, set[Row]] = {}
        self._refused: set[Query] = set()
        create_relations(self._engine, {name: model.relations[name] for name in model.stored})

    def answer_query(
        self,
        model: Model,
        query: Query,
        limits: Limits,
        watch: Watch | None,
        magic: bool,
        change: ChangeSet,
        inputs: Inputs,
    ) -> Rows | None:
        """The answers; None if the query looks up too much."""
        if query in self._refused:
            return None
        arguments = model, query, limits, watch, magic, change, inputs
        try:
            return answer_query(self._engine, *arguments, self._fetch_missing)
        except TooManyError:
            self._refused.add(query)
            return None

    def _fetch_missing(self, lookups: Mapping[str, Lookup]) -> bool:
        """Fetch the rows with keys that are new, all together; returns whether there were any."""
        missing: dict[Lookup, set[Row]] = {}
        for place, lookup in lookups.items():
            keys = set(self._engine.rows(place)) - self._known.setdefault(lookup, set())
            if keys:
                missing[lookup] = keys
                if not lookup.columns and self._source.size(lookup.relation) > WHOLE_MAX:
                    raise TooManyError
        if sum(map(len, missing.values())) > KEYS_MAX:
            raise TooManyError
        for lookup, keys in missing.items():
            if lookup.columns:
                self._source.expect(lookup.relation, lookup.columns, keys)
        for lookup, keys in missing.items():
            rows = self._source.find(lookup.relation, lookup.columns, keys)
            self._engine.insert(lookup.relation, rows)
            self._known[lookup] |= keys
        return bool(missing)


def fetched_rows_of(database: MemoryDatabase) -> FetchedRows | None:
    """An empty copy for the queries of a database; None if its rows are in this process."""
    engine = database.engine
    return FetchedRows(engine, database.model.as_written) if is_prefetching(engine) else None
