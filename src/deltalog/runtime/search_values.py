"""Values for variables that nothing determines: those of joined columns, and new ones.

    alarm() :- reading(S, T), T > 90.         S: known sensors, and a new one
                                              T: known readings, a new one, and 91

A new value stands for any other: it can meet no fact in a join. A comparison by order tells values
apart that a join does not; next to the value where it changes from false to true there is
one on either side, which stands for all others there if nothing else compares the column. Values
that are declared for a column are the only ones that it gets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING

from deltalog.analysis.domains import ColumnClasses, Place
from deltalog.analysis.rule_types import variable_types
from deltalog.engines.base import Engine
from deltalog.engines.extensions import is_prefetching
from deltalog.language.ast import Comparison, Rule, Value, Variable
from deltalog.language.printer import print_literal
from deltalog.language.walk import atoms_of, variable_names
from deltalog.runtime.alternatives import Values
from deltalog.runtime.equations import ORDERS
from deltalog.runtime.realization import Wish

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

NEW_TEXT = "new"


class Domains:
    """The values that a column and those joined with it have, in facts, rules and requests."""

    def __init__(
        self,
        database: MemoryDatabase,
        helpers: Iterable[Rule] = (),
        declared: Mapping[Place, Sequence[Value]] | None = None,
    ) -> None:
        """`helpers` are more rules, whose predicates are no relations of the database.

        `declared` are the values that some columns, and those joined with them, may get.
        """
        self.database = database
        self._helpers = tuple(helpers)
        self.classes = ColumnClasses((*database.model.as_written.rules, *self._helpers))
        self.declared: dict[Place, list[Value]] = {}
        for place, values in (declared or {}).items():
            root = self.classes.root(place)
            known = self.declared.get(root)
            self.declared[root] = [v for v in values if known is None or v in known]
        self.wished: tuple[Wish, ...] = ()
        self._known: dict[Place, list[Value]] = {}
        self._members: dict[Place, frozenset[Value]] = {}

    def known(self, place: Place) -> list[Value]:
        """The values in the columns of a class, sorted."""
        if place not in self._known:
            found = set(self.classes.constants(place))
            relations = self.database.relations
            for relation, position in self.classes.columns(place) or (place,):
                if relation in relations and relations[relation].kind == "base":
                    found |= _column_values(self.database.engine, relation, position)
                found |= {w.row[position] for w in self.wished if w.relation == relation}
            self._known[place] = sorted((v for v in found if v is not None), key=repr)
        return self._known[place]

    def has(self, place: Place, value: Value) -> bool:
        """Whether a value is in the columns of a class."""
        root = self.classes.root(place)
        if root not in self._members:
            self._members[root] = frozenset(self.known(root))
        return value in self._members[root]

    def comparisons(self, place: Place) -> int:
        """How many comparisons by order rules have for columns of a class."""
        root = self.classes.root(place)
        return sum(
            any(self.classes.root(each) == root for each in _places_of(name, rule))
            for rule in self.database.model.as_written.rules
            for test in rule.body
            if isinstance(test, Comparison) and test.operator in ORDERS
            for name in set(variable_names(test))
        )

    def type_of(self, place: Place) -> str:
        """The type of a column, or of one of its class."""
        relations = self.database.model.as_written.relations
        columns = (place, *self.classes.columns(place))
        declared = (relations[n].types[i] for n, i in columns if n in relations)
        return str(next(declared, None) or self._type_in_rules(frozenset(columns)))

    def _type_in_rules(self, columns: Set[Place]) -> str:
        """The type of columns that only helpers have, as in `h(X, Z) :- edge(X, _), Z = X + 1`."""
        for rule in self._helpers:
            types = variable_types(rule.body, self.database.model.as_written.relations)
            for position, term in enumerate(rule.head.arguments):
                if not isinstance(term, Variable) or term.name not in types:
                    continue
                if (rule.head.predicate, position) in columns:
                    return types[term.name]
        raise AssertionError(f"nothing says of which type {sorted(columns)} are")

    def universe(self, type_: str) -> set[Value]:
        """All values of a type that occur anywhere."""
        relations = self.database.model.as_written.relations
        places = ((n, i) for n, each in relations.items() for i in range(each.arity))
        alike = {self.classes.root(each) for each in places if self.type_of(each) == type_}
        return {value for place in alike for value in self.known(place)}


class ChosenValues:
    """Values that a search has chosen for columns that nothing determines."""

    def __init__(self, domains: Domains, most: int, skip: Callable[[str], None]) -> None:
        """No more than `most` are invented; `skip` is called with what is left out."""
        self.domains = domains
        self.new: set[Value] = set()
        """New values: no fact of a class of columns has them."""
        self.near: set[Value] = set()
        """Values next to those that something is compared with."""
        self._most = most
        self._skip = skip

    @property
    def invented(self) -> set[Value]:
        return self.new | self.near

    def is_new(self, relation: str, position: int, value: Value) -> bool:
        """Whether a value of a column is new there, so that any other new one would do."""
        return value in self.new and not self.domains.has((relation, position), value)

    def unsolved(self, rule: Rule, test: Comparison, name: str) -> None:
        """Report an equation whose variable gets known values only."""
        self._skip(
            f"`{print_literal(test)}` is not solved for {name}, in a rule of "
            f"`{rule.head.predicate}`: only known values are tried"
        )

    def following(self, used: Set[Value]) -> Values:
        """Values for columns, after those that are `used`."""

        def values(
            relation: str, position: int, others: Collection[Value], compared: Sequence[Value] = ()
        ) -> list[Value]:
            place = self.domains.classes.root((relation, position))
            if place in self.domains.declared:
                return self.domains.declared[place]
            known = self.domains.known(place)
            taken = {*used, *others}
            found = list(known)
            fresh = new_values(self.domains.type_of((relation, position)), known)
            found += self._invented_values(fresh, taken, self.new)
            for value in compared:
                if self.domains.comparisons(place) > 1:
                    self._skip(
                        f"a column of `{relation}` is compared with several values; only those next"
                        " to them are tried"
                    )
                for beside in (
                    iter((value,)),
                    *(neighbouring_values(value, step) for step in (1, -1)),
                ):
                    unknown = (each for each in beside if each not in known)
                    found += self._invented_values(unknown, taken, self.near)
            return list(dict.fromkeys(found))

        return values

    def _invented_values(
        self, fresh: Iterator[Value], taken: set[Value], chosen: set[Value]
    ) -> Iterator[Value]:
        """Invented values that are taken already, and one more."""
        invented = taken & self.invented
        for value in fresh:
            if value not in invented and len(invented) >= self._most:
                self._skip(f"no more than {self._most} new values are invented")
                return
            chosen.add(value)
            yield value
            if value not in taken:
                return


def neighbouring_values(value: Value, step: int) -> Iterator[Value]:
    """The values next to one on one side; few of them where there is no next one."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        yield from (value + "a" * i for i in range(1, 100)) if step > 0 else ("",)
    elif isinstance(value, date):
        yield from (value + timedelta(days=step * i) for i in range(1, 10_000))
    else:
        unit = type(value)(1)
        yield from (value + step * i * unit for i in range(1, 10_000))  # type: ignore[operator]


def _column_values(engine: Engine, relation: str, position: int) -> set[Value]:
    if is_prefetching(engine):
        return engine.values(relation, position)
    return {row[position] for row in engine.rows(relation)}


def _places_of(name: str, rule: Rule) -> Iterator[Place]:
    for atom in (rule.head, *(atom for atom, _ in atoms_of(rule.body))):
        for i, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and term.name == name:
                yield atom.predicate, i


def new_values(type_: str, known: Collection[Value]) -> Iterator[Value]:
    """Values of a type that are not known yet; there are only two bools."""
    if type_ == "bool":
        yield from (value for value in (False, True) if value not in known)
    elif type_ == "str":
        yield from (name for i in count(1) if (name := f"{NEW_TEXT}{i}") not in known)
    elif type_ in ("date", "timestamp"):
        first = date(2000, 1, 1) if type_ == "date" else datetime(2000, 1, 1, tzinfo=UTC)
        latest: date = max(known, default=first)  # type: ignore[type-var,assignment]
        yield from (latest + timedelta(days=i) for i in range(1, 10_000))
    else:
        top = max(known, default=0)  # type: ignore[type-var]
        step = Decimal(1) if type_ == "decimal" else 1.0 if type_ == "float" else 1
        yield from (top + step * i for i in range(1, 10_000))  # type: ignore[operator]
