"""The stations of a propagation network: base relations, and components of views.

A component is compiled when a change first reaches it, and never again. All that the network and
its routes need to know of it is here: the changes it reads, the relations it fills, and how stored
relations are brought up with them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from deltalog.analysis.columns import Relations
from deltalog.engines.base import Station
from deltalog.language.walk import atoms_of
from deltalog.rewrites import names
from deltalog.rewrites.forms import read_by
from deltalog.rewrites.states import Rename
from deltalog.rewrites.strategies import Choice
from deltalog.runtime.compilation import CompiledComponent
from deltalog.runtime.fanout import Samples
from deltalog.runtime.fixpoint import Installed, Stage

if TYPE_CHECKING:
    from deltalog.runtime.propagation import Propagation
    from deltalog.runtime.route import Route

MUCH_MIN = 500
MUCH_SHARE = 0.5
"""A change of this share of what a component reads is recomputed under `auto` (see bench/)."""
LOST_MIN = 50
LOST_SHARE = 0.1
"""The same for what takes derivations from a recursive component: each may take many facts."""

SIDES: tuple[Rename, ...] = (names.plus_name, names.minus_name)


def sides_of(predicates: Iterable[str]) -> tuple[str, ...]:
    """The changes of some predicates: of each, the insertions and the deletions."""
    return tuple(side(name) for name in predicates for side in SIDES)


@dataclass(frozen=True, eq=False)
class Source:
    """A base relation: a transaction binds its change."""

    number: int
    name: str

    def station(self, route: Route) -> Station:
        sides = sides_of((self.name,))
        readers = route.readers.get(self.name, ())
        return Station(
            made=tuple((side, reader) for side in sides for reader in readers),
            moves=() if route.network.is_in_place else ((self.name, sides[1], sides[0]),),
            outlasting=sides,
            shown=((self.name, sides[0], sides[1]),),
        )


@dataclass(frozen=True, eq=False)
class Node:
    """A component of views: the changes it reads, and what is made of it when one reaches it.

    `number` is its place in the order in which nodes run. One that may be recomputed instead has
    that as another node, in `recomputing`; one whose superset can be had for less, in `potential`.
    """

    number: int
    choice: Choice
    network: Propagation = field(repr=False)
    recomputing: Node | None = None
    potential: Node | None = None

    @cached_property
    def influents(self) -> tuple[str, ...]:
        return tuple(sorted(read_by(self.choice.rules) - self.choice.members))

    @cached_property
    def samples(self) -> Samples | None:
        """Samples that tell how many rows a lookup finds, where it costs little to know."""
        engine = self.network.engine
        return Samples(engine) if engine.capabilities.has_samples else None

    @cached_property
    def compiled(self) -> CompiledComponent:
        compiler = self.network.compiler
        if not self.choice.is_strict and self.choice.strategy == "magic":
            compiler = compiler.instead(self.choice)
        return compiler.compile(self.choice, self.samples)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.compiled.stages

    @cached_property
    def installed(self) -> Installed:
        return self.network.install(self)

    @cached_property
    def relations(self) -> Relations:
        """The relations that only this node needs, with their columns."""
        return self.network.local_relations(self)

    @cached_property
    def local(self) -> frozenset[str]:
        return frozenset(self.relations)

    @cached_property
    def losses(self) -> frozenset[str]:
        """The changes that take derivations away: deletions, or insertions where it is negated."""
        read = (found for rule in self.choice.rules for found in atoms_of(rule.body))
        return frozenset(
            names.minus_name(atom.predicate) if is_positive else names.plus_name(atom.predicate)
            for atom, is_positive in read
            if atom.predicate in self.influents
        )

    @cached_property
    def recomputed(self) -> frozenset[str]:
        """Its new state, which replaces the stored one as a whole."""
        is_recomputed = self.choice.strategy == "recompute"
        return frozenset(map(names.derivable_name, self.choice.predicates if is_recomputed else ()))

    @cached_property
    def is_net(self) -> bool:
        """Whether its stored relations change by exactly its change."""
        return not self.choice.is_maintained and not self.recomputed

    @cached_property
    def transient(self) -> tuple[str, ...]:
        """Relations that nobody needs once the node has run."""
        return tuple(self.local - self.recomputed)

    @cached_property
    def outlasting(self) -> tuple[str, ...]:
        """Relations that are needed until the transaction is over."""
        sides: list[Rename] = [*SIDES]
        sides += [names.overdeleted_name, names.returned_name] if self.choice.is_maintained else []
        made = (side(name) for name in self.choice.predicates for side in sides)
        return (*made, *self.recomputed)

    @cached_property
    def moves(self) -> tuple[tuple[str, str, str], ...]:
        """How stored predicates are brought up: (stored, deleted rows, inserted rows)."""
        deleted, inserted = names.minus_name, names.plus_name
        if self.recomputed:
            deleted, inserted = names.derivable_name, names.derivable_name
        elif self.choice.is_maintained:
            deleted, inserted = names.overdeleted_name, names.returned_name
        stored = (name for name in self.choice.predicates if name in self.network.stored)
        return tuple((name, deleted(name), inserted(name)) for name in stored)

    def shown(self, views: frozenset[str]) -> tuple[tuple[str, str, str], ...]:
        """Its wanted views, with their changes: (view, insertions, deletions)."""
        wanted = (name for name in self.choice.predicates if name in views)
        return tuple((name, names.plus_name(name), names.minus_name(name)) for name in wanted)

    def is_much_changed(self) -> bool:
        """Whether so much of what it reads has changed that recomputing it is cheaper."""
        size, stored = self.network.engine.size, self.network.stored
        changed = sum(map(size, sides_of(self.influents)))
        if changed < min(MUCH_MIN, LOST_MIN):
            return False
        held = sum(size(name) for name in self.influents if name in stored)
        if changed >= MUCH_MIN and changed >= MUCH_SHARE * held:
            return True
        if not self.choice.is_recursive or not stored.issuperset(self.influents):
            return False
        lost = sum(map(size, self.losses))
        return lost >= LOST_MIN and lost >= LOST_SHARE * held

    def station(self, route: Route) -> Station:
        predicates = self.choice.predicates
        return Station(
            self.installed.whole,
            min(MUCH_MIN, LOST_MIN) if self.choice.is_auto else sys.maxsize,
            sides_of(self.influents),
            (*self.transient, *route.released.get(predicates, ())),
            tuple(
                (side, reader)
                for name in predicates
                for reader in route.readers.get(name, ())
                for side in sides_of((name,))
            ),
            predicates if self.recomputed else (),
            self.moves,
            self.outlasting,
            self.shown(route.views),
        )
