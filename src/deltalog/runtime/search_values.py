"""Values for variables that nothing determines: those of joined columns, and new ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING

from deltalog.analysis.domains import ColumnClasses, Place
from deltalog.language.ast import Rule, Value
from deltalog.runtime.realization import Wish

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

NEW_TEXT = "new"


class Domains:
    """The values that a column and those joined with it have, in facts, rules and requests."""

    def __init__(self, database: MemoryDatabase, helpers: Iterable[Rule] = ()) -> None:
        """`helpers` are more rules, whose predicates are no relations of the database."""
        self.database = database
        self.classes = ColumnClasses((*database.model.as_written.rules, *helpers))
        self.wished: tuple[Wish, ...] = ()
        self._known: dict[Place, list[Value]] = {}

    def known(self, place: Place) -> list[Value]:
        """The values in the columns of a class, sorted."""
        if place not in self._known:
            found = set(self.classes.constants(place))
            relations = self.database.relations
            for relation, position in self.classes.columns(place) or (place,):
                if relation in relations and relations[relation].kind == "base":
                    found |= {row[position] for row in self.database.engine.rows(relation)}
                found |= {w.row[position] for w in self.wished if w.relation == relation}
            self._known[place] = sorted((v for v in found if v is not None), key=repr)
        return self._known[place]

    def type_of(self, place: Place) -> str:
        """The type of a column, or of one of its class."""
        relations = self.database.model.as_written.relations
        columns = (place, *self.classes.columns(place))
        return next(str(relations[n].types[i]) for n, i in columns if n in relations)

    def universe(self, type_: str) -> set[Value]:
        """All values of a type that occur anywhere."""
        relations = self.database.model.as_written.relations
        places = ((n, i) for n, each in relations.items() for i in range(each.arity))
        alike = {self.classes.root(each) for each in places if self.type_of(each) == type_}
        return {value for place in alike for value in self.known(place)}


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
