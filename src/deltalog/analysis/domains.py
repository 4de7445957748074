"""Which columns can hold the same value: they are joined by variables of rules.

    path(X, Y) :- edge(X, Z), path(Z, Y).       both columns of edge and of path: one class

A value for a variable that no fact determines is looked for in the columns of its class. Any other
value can meet no fact in a join, so one that is new stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltalog.language.ast import Atom, Constant, Rule, Value, Variable
from deltalog.language.walk import atoms_of

Place = tuple[str, int]
"""A column: the name of its relation, and its position."""


class ColumnClasses:
    """Columns that are connected by rules, and the constants that rules compare them with."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._parents: dict[Place, Place] = {}
        self._constants: list[tuple[Place, Value]] = []
        for rule in rules:
            self._connect_places(rule)

    def _connect_places(self, rule: Rule) -> None:
        first: dict[str, Place] = {}
        for atom in (rule.head, *(atom for atom, _ in atoms_of(rule.body))):
            for place, term in _places_of_atom(atom):
                if isinstance(term, Variable):
                    self._unite_places(place, first.setdefault(term.name, place))
                elif isinstance(term, Constant):
                    self._constants.append((place, term.value))

    def _unite_places(self, place: Place, other: Place) -> None:
        self._parents[self.root(place)] = self.root(other)

    def root(self, place: Place) -> Place:
        """The column that stands for the class of this one."""
        found = place
        while self._parents.setdefault(found, found) != found:
            self._parents[found] = self._parents[self._parents[found]]
            found = self._parents[found]
        return found

    def columns(self, place: Place) -> tuple[Place, ...]:
        """All columns of the class."""
        root = self.root(place)
        return tuple(sorted(each for each in self._parents if self.root(each) == root))

    def constants(self, place: Place) -> set[Value]:
        """The constants that rules have in columns of the class."""
        root = self.root(place)
        return {value for each, value in self._constants if self.root(each) == root}


def _places_of_atom(atom: Atom) -> Iterable[tuple[Place, object]]:
    return (((atom.predicate, i), term) for i, term in enumerate(atom.arguments))
