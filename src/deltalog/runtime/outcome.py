"""The outcome of a propagated change: what changes, what is written, and whether it is applied.

    with Propagated(propagation, base, limits, watch) as outcome:
        change = outcome.changes()
        outcome.apply()

What is not applied inside has never happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, cast

from deltalog.engines.base import NO_ROWS, Engine, LazyRows
from deltalog.engines.extensions import RankedEngine
from deltalog.language.ast import Row
from deltalog.rewrites import names
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.fixpoint import Statistics, Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.nodes import Node, Source
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.route import Route


class StoredChange(NamedTuple):
    """One stored relation, and what a commit does to it.

    `deleted_in` and `inserted_in` are relations of the engine that hold the rows; if `deleted_in`
    is None all rows are deleted. A row that is in both is inserted with another rank. If it
    `is_net`, this is exactly the change of the relation.

    Where ranks were asked for: `deleted` are the ranks of the rows that are deleted (None: all),
    `ranks` and `rows` those that are inserted.
    """

    relation: str
    deleted_in: str | None
    inserted_in: str
    is_net: bool
    deleted: Sequence[int] | None = ()
    ranks: Sequence[int] = ()
    rows: Collection[Row] = ()


Replaced = tuple[str, list[Row], list[Row]]
"""A stored relation, rows that are deleted, each behind its rank, lowest first; inserted rows."""


class Propagated:
    """A change of base relations, propagated while it is entered, and not yet applied."""

    __slots__ = (
        "_base",
        "_deleted_ranks",
        "_is_kept",
        "_is_open",
        "_limits",
        "_propagation",
        "_route",
        "_watch",
        "statistics",
    )

    def __init__(
        self,
        propagation: Propagation,
        base: ChangeSet,
        limits: Limits,
        watch: Watch | None,
        is_kept: bool = False,
        route: Route | None = None,
    ) -> None:
        """With `is_kept` somebody will ask at once what changes, and what is `written`."""
        self._propagation = propagation
        self._route = route or propagation.whole
        self._base = base
        self._limits = limits
        self._watch = watch
        self._is_kept = is_kept
        self._is_open = True
        self._deleted_ranks = _NO_RANKS
        self.statistics = _NOTHING_DONE

    def __enter__(self) -> Propagated:
        if self._propagation.is_in_place:
            self._update_in_place()
        try:
            self._propagation.last = route = self._route
            self.statistics = route.run(self._base, self._limits, self._watch)
        except BaseException:
            self._end_run(is_applied=False)
            raise
        return self

    def changes(self) -> ChangeSet:
        """The exact change of base relations and of the views that are wanted."""
        route, declared = self._route, self._propagation.relations
        if self._is_kept:
            change = ChangeSet.exact(*route.wave.changes(), declared)
        else:
            lazy = route.wave.lazy_changes()
            change = NO_CHANGE if lazy is None else ChangeSet.lazy(lazy, declared)
        self.statistics.peak_of = route.peak, change
        return change

    @property
    def omitted(self) -> Sequence[str]:
        """Views whose change is not among `changes` and may be there, sorted."""
        route = self._route
        return () if route.is_whole else route.omitted_by(frozenset(self._base.relations))

    # --- reading the change of one relation, before the end

    def reached(self) -> Iterator[str]:
        """The base relations and views that the change reached."""
        stations = self._propagation.stations
        for number in self._route.wave.ran():
            station = stations[number]
            if isinstance(station, Node):
                yield from station.choice.predicates
            else:
                yield station.name

    def inserted_count(self, name: str) -> int:
        return self._propagation.engine.size(names.plus_name(name))

    def some_inserted(self, name: str, count: int) -> list[Row]:
        """Some of the inserted rows; of many that are elsewhere no more are fetched."""
        held = self._propagation.engine.copied(names.plus_name(name))
        return held.first(count) if isinstance(held, LazyRows) else list(islice(held, count))

    def inserted_rows(self, name: str) -> Iterator[Row]:
        return self._propagation.engine.rows(names.plus_name(name))

    def deleted_rows(self, name: str) -> Iterator[Row]:
        return self._propagation.engine.rows(names.minus_name(name))

    def has_deleted(self, name: str, row: Row) -> bool:
        (found,) = self._propagation.engine.present(names.minus_name(name), [row])
        return found

    def apply(self) -> None:
        """Make the new state the stored one."""
        self._end_run(True)

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._end_run(is_applied=False)

    def _end_run(self, is_applied: bool) -> None:
        """Forget the run; if it is applied, stored relations have their new state.

        Rows are appended in the order of their derivation, which keeps ranks well-founded.
        """
        propagation = self._propagation
        self._is_open = False
        self._route.wave.end(is_applied)
        if propagation.is_in_place and not is_applied:
            self._undo_in_place()
        propagation.engine.settle()

    # --- base relations that are updated in place

    def _update_in_place(self) -> None:
        """Bring base relations to their new state; remember the ranks of what is deleted."""
        engine, deleted = self._propagation.engine, self._base.deleted
        if self._propagation.is_ranked:
            ranks = cast("RankedEngine", engine).ranks
            self._deleted_ranks = {name: ranks(name, deleted[name]) for name in deleted}
        _write_change(engine, self._base)

    def _undo_in_place(self) -> None:
        """Bring base relations back to their old state, each row with the rank it had.

        A file knows rows by their ranks: with another rank a later deletion would miss the row.
        """
        engine, deleted = self._propagation.engine, self._base.deleted
        _write_change(engine, ChangeSet({}, self._base.inserted))
        if not self._propagation.is_ranked:
            _write_change(engine, ChangeSet(deleted))
            return
        for name, ranks in self._deleted_ranks.items():
            ranked = zip(ranks, deleted[name], strict=True)
            cast("RankedEngine", engine).load(name, sorted((rank, *row) for rank, row in ranked))

    def replaced(self) -> Iterator[Replaced]:
        """Rows that `apply` deletes, with their ranks, and inserts: all that it takes to undo it.

        A row that is deleted and inserted gets another rank.
        """
        engine = cast("RankedEngine", self._propagation.engine)
        if self._propagation.is_in_place:
            for name in self._base.relations:
                known = self._deleted_ranks.get(name, ())
                ranked = zip(known, self._base.deleted[name], strict=True)
                yield name, sorted((r, *row) for r, row in ranked), list(self._base.inserted[name])
        for number in self._route.wave.ran():
            station = self._propagation.stations[number]
            if isinstance(station, Node):
                moves, is_whole = station.moves, bool(station.recomputed)
            else:
                moves, is_whole = station.station(self._route).moves, False
            for stored, deleted_in, inserted_in in moves:
                if is_whole:
                    left: list[Row] = [(rank, *row) for rank, row in engine.ranked(stored)]
                else:
                    rows = list(engine.rows(deleted_in))
                    ranks = engine.ranks(stored, rows) if rows else []
                    left = sorted((r, *row) for r, row in zip(ranks, rows, strict=True))
                yield stored, left, list(engine.rows(inserted_in))

    # --- what is written

    def stored_changes(self) -> Iterator[StoredChange]:
        """Changes that `apply` will make to stored views, without ranks and rows.

        Base relations are not among them: their change is what the run began from.
        """
        for node in self._propagation.ran:
            for stored, deleted, inserted in node.moves:
                yield StoredChange(
                    stored, None if node.recomputed else deleted, inserted, node.is_net
                )

    def written(self, change: ChangeSet, clock: int) -> Iterable[StoredChange]:
        """Changes that `apply` will make to stored relations, with ranks and rows.

        Every row that is inserted gets the next rank, from the engine's `clock` on, in the order of
        `Engine.move`. `change` is the one that `changes` returned: rows copied for it are not
        copied again.
        """
        made = self._appended_changes(change, clock) if self._route.is_plain else None
        found = self._moved_changes(change, clock) if made is None else made
        return chain(found, self._written_in_place()) if self._propagation.is_in_place else found

    def _appended_changes(self, change: ChangeSet, clock: int) -> list[StoredChange] | None:
        """The same if rows are only inserted, each relation has its exact change, and in order."""
        inserted, deleted = change.sides
        if deleted:
            return None
        bound, _ = self._base.sides
        made: list[StoredChange] = []
        for name, found in inserted.items():  # sources first, then as nodes ran
            if isinstance(found, LazyRows):
                rows: Collection[Row] = list(found.read())
            elif found is bound.get(name):
                rows = found
            else:
                return None
            end = clock + len(rows)
            sides = names.minus_name(name), names.plus_name(name)
            made.append(StoredChange(name, *sides, True, (), range(clock, end), rows))
            clock = end
        return made

    def _moved_changes(self, change: ChangeSet, clock: int) -> Iterator[StoredChange]:
        stations = self._propagation.stations
        for number in self._route.wave.ran():
            station = stations[number]
            found = (
                self._moved_view(station, change, clock)
                if isinstance(station, Node)
                else self._moved_source(station, change, clock)
            )
            for each in found:
                clock += len(each.rows)
                if each.rows or each.deleted is None or each.deleted:
                    yield each

    def _moved_source(
        self, source: Source, change: ChangeSet, clock: int
    ) -> Iterator[StoredChange]:
        """A base relation, its rows in the order in which they were bound."""
        if self._propagation.is_in_place:
            return
        engine, name = cast("RankedEngine", self._propagation.engine), source.name
        inserted, deleted = change.sides
        bound: Collection[Row] = self._base.inserted[name]
        if inserted.get(name, NO_ROWS) is not bound:  # some of them were there already
            bound = list(engine.rows(names.plus_name(name)))
        left = engine.ranks(name, change.deleted[name]) if name in deleted else ()
        ranks = range(clock, clock + len(bound))
        yield StoredChange(
            name, names.minus_name(name), names.plus_name(name), True, left, ranks, bound
        )

    def _moved_view(self, node: Node, change: ChangeSet, clock: int) -> Iterator[StoredChange]:
        engine = cast("RankedEngine", self._propagation.engine)
        for stored, deleted_in, inserted_in, ranks, rows in self._inserted_moves(
            node, change, clock
        ):
            if node.recomputed:
                yield StoredChange(stored, None, inserted_in, False, None, ranks, rows)
                continue
            deleted: Sequence[int] = ()
            if engine.size(deleted_in):
                deleted = engine.ranks(stored, tuple(engine.rows(deleted_in)))
            yield StoredChange(stored, deleted_in, inserted_in, node.is_net, deleted, ranks, rows)

    def _inserted_moves(
        self, node: Node, change: ChangeSet, clock: int
    ) -> Sequence[tuple[str, str, str, Sequence[int], list[Row]]]:
        """The moves of a node, each with the ranks and rows that are inserted."""
        engine = self._propagation.engine
        if len(node.moves) == 1:
            (move,) = node.moves
            copied = change.sides[0].get(move[0]) if node.is_net else None
            rows = list(copied.read() if isinstance(copied, LazyRows) else engine.rows(move[2]))
            return ((*move, range(clock, clock + len(rows)), rows),)
        found: dict[str, tuple[list[int], list[Row]]] = {
            inserted: ([], []) for _, _, inserted in node.moves
        }
        for rank, (name, row) in enumerate(engine.history(tuple(found)), clock):
            ranks, rows = found[name]
            ranks.append(rank)
            rows.append(row)
        return [(*move, *found[move[2]]) for move in node.moves]

    def _written_in_place(self) -> Iterator[StoredChange]:
        """Base relations that have changed already."""
        deleted, inserted = self._base.deleted, self._base.inserted
        for name in self._base.relations:
            rows = tuple(inserted[name])
            ranks = cast("RankedEngine", self._propagation.engine).ranks(name, rows)
            going = self._deleted_ranks[name] if name in deleted else ()
            sides = names.minus_name(name), names.plus_name(name)
            yield StoredChange(name, *sides, True, going, ranks, rows)


_NOTHING_DONE = Statistics()
_NO_RANKS: Mapping[str, list[int]] = {}


def _write_change(engine: Engine, change: ChangeSet) -> None:
    inserted, deleted = change.sides
    for name, rows in deleted.items():
        engine.delete(name, rows)
    for name, rows in inserted.items():
        engine.insert(name, rows)
