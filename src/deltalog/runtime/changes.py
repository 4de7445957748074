"""Change sets: the facts that are inserted and deleted, net, per relation.

A change set is a pair of disjoint families of facts (the delta sets of Manthey 1994). With the
delta-union as composition and swapping the two sides as inverse they form a small algebra:

    a + b          first a, then b (both net, b relative to the state after a)
    -a             the change that undoes a
    a + (-a)       nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from deltalog.analysis.columns import Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import NO_ROWS, Changed, LazyRows, Sides
from deltalog.language.ast import Column, Row
from deltalog.language.values import print_value, sort_key, type_of
from deltalog.runtime.rows import Rows
from deltalog.runtime.shown import HTML_ROWS, SORTED_MAX, TEXT_ROWS, html_table, some_rows

if TYPE_CHECKING:
    import pyarrow

    from deltalog.runtime.violations import Violation

Facts = Mapping[str, frozenset[Row]]


class Firing(NamedTuple):
    """An active rule and an instance for which its condition became true.

    The values of a rule with parameters come before those of the instance.
    """

    rule: str
    instance: Row


NO_RELATIONS: Relations = {}


class ChangeSet:
    """An immutable pair `inserted`, `deleted` of sets of facts per relation, disjoint and net.

    >>> a = ChangeSet({"edge": {(1, 2)}}, {"edge": {(3, 4)}})
    >>> b = ChangeSet({"edge": {(3, 4)}}, {})
    >>> (a + b).inserted["edge"], (a + b).deleted["edge"]
    (frozenset({(1, 2)}), frozenset())
    """

    __slots__ = ("_declared", "_deleted", "_fired", "_inserted", "_read", "_rejections")
    _fired: tuple[Firing, ...]
    _rejections: tuple[Violation, ...]

    def __init__(
        self,
        inserted: Mapping[str, set[Row] | frozenset[Row]] | None = None,
        deleted: Mapping[str, set[Row] | frozenset[Row]] | None = None,
        declared: Relations = NO_RELATIONS,
    ) -> None:
        """`declared` are the relations with their columns, for whoever wants tables."""
        inserted, deleted = dict(inserted or {}), dict(deleted or {})
        self._inserted: dict[str, Changed] = {}
        self._deleted: dict[str, Changed] = {}
        for name in sorted(inserted.keys() | deleted.keys()):
            plus, minus = frozenset(inserted.get(name, ())), frozenset(deleted.get(name, ()))
            if new := plus - minus:
                self._inserted[name] = new
            if old := minus - plus:
                self._deleted[name] = old
        self._read: Callable[[], Sides] | None = None
        self._declared = declared

    @classmethod
    def exact(
        cls,
        inserted: dict[str, Changed],
        deleted: dict[str, Changed],
        declared: Relations = NO_RELATIONS,
    ) -> ChangeSet:
        """A change whose two sides are known to be net, without relations that do not change.

        Rows are read when they are asked for.
        """
        made = cls.__new__(cls)
        made._read, made._inserted, made._deleted = None, inserted, deleted
        made._declared = declared
        return made

    @classmethod
    def lazy(cls, read: Callable[[], Sides], declared: Relations = NO_RELATIONS) -> ChangeSet:
        """A change that is not empty; `read` returns its sides, net, when they are asked for."""
        made = cls.__new__(cls)
        made._read = read
        made._declared = declared
        return made

    @property
    def sides(self) -> Sides:
        """The inserted and the deleted facts, by relation; rows may still be `LazyRows`."""
        read = self._read
        if read is not None:
            self._inserted, self._deleted = read()
            self._read = None
        return self._inserted, self._deleted

    @property
    def firings(self) -> list[Firing]:
        """The active rules that fired, each with an instance, in the order of their execution."""
        return list(getattr(self, "_fired", ()))

    @property
    def rejections(self) -> tuple[Violation, ...]:
        """The violations by which a rule would refuse the transaction; only a what-if has them."""
        return getattr(self, "_rejections", ())

    @property
    def inserted(self) -> _Sparse:
        """The inserted facts, by relation."""
        return _Sparse(self.sides[0], self._declared)

    @property
    def deleted(self) -> _Sparse:
        """The deleted facts, by relation."""
        return _Sparse(self.sides[1], self._declared)

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that change, sorted."""
        return tuple(sorted(self.inserted.held.keys() | self.deleted.held.keys()))

    def __bool__(self) -> bool:
        return self._read is not None or bool(self._inserted) or bool(self._deleted)

    def __len__(self) -> int:
        """How many facts change."""
        return self.inserted.size + self.deleted.size

    def __add__(self, later: ChangeSet) -> ChangeSet:
        """The net effect of this change followed by a later one (delta-union)."""
        inserted, deleted = {}, {}
        for name in {*self.relations, *later.relations}:
            plus, minus = self.inserted[name], self.deleted[name]
            more, less = later.inserted[name], later.deleted[name]
            inserted[name] = (plus - less) | (more - minus)
            deleted[name] = (minus - more) | (less - plus)
        return ChangeSet(inserted, deleted, {**self._declared, **later._declared})

    def __neg__(self) -> ChangeSet:
        return ChangeSet(self.deleted, self.inserted, self._declared)

    def without(self, *relations: str) -> ChangeSet:
        """The change but for these relations."""
        return self.only(*(name for name in self.relations if name not in relations))

    def only(self, *relations: str) -> ChangeSet:
        """The part of the change that concerns these relations."""
        return ChangeSet(
            {name: self.inserted[name] for name in relations},
            {name: self.deleted[name] for name in relations},
            self._declared,
        )

    def to_arrow(self, relation: str) -> pyarrow.Table:
        """Return the change of one relation as a table: `op`, `-` or `+`, before its columns.

        If one of these is named `op`, that of the change is `op__`. One side, in any form, is
        `inserted.rows(relation)` or `deleted.rows(relation)`.
        """
        import pyarrow

        sides = [held.get(relation, NO_ROWS) for held in (self.deleted.held, self.inserted.held)]
        columns = _columns_of(self._declared, relation, *sides)
        op = "op__" if "op" in {column.name for column in columns} else "op"
        tables = [Rows(columns, side).to_arrow() for side in sides]
        signs = [pyarrow.repeat(sign, len(side)) for sign, side in zip("-+", sides, strict=True)]
        whole = pyarrow.concat_tables(tables)
        return whole.add_column(0, op, pyarrow.chunked_array(signs, pyarrow.string()))

    def __iter__(self) -> Iterator[tuple[str, str, Row]]:
        """Every change as `(op, relation, row)`, op `-` or `+`, in a fixed order."""
        for name in self.relations:
            for op, facts in (("-", self.deleted), ("+", self.inserted)):
                for row in sorted(facts[name], key=sort_key):
                    yield op, name, row

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChangeSet):
            return NotImplemented
        return dict(self.inserted) == dict(other.inserted) and dict(self.deleted) == dict(
            other.deleted
        )

    def __hash__(self) -> int:
        return hash((frozenset(self.inserted.items()), frozenset(self.deleted.items())))

    def _some_changes(self, count: int) -> list[tuple[str, str, Row]]:
        """Return some of the changes: the first, or of many those that are read soonest."""
        if len(self) <= SORTED_MAX:
            return list(islice(self, count))
        found: list[tuple[str, str, Row]] = []
        for name in self.relations:
            for op, facts in (("-", self.deleted), ("+", self.inserted)):
                held = facts.held.get(name, NO_ROWS)
                found += [(op, name, row) for row in some_rows(held, count - len(found))]
        return found

    def __repr__(self) -> str:
        shown = ", ".join(f"{op}{name}{row}" for op, name, row in self._some_changes(TEXT_ROWS))
        more = f", … {len(self) - TEXT_ROWS} more" if len(self) > TEXT_ROWS else ""
        return f"ChangeSet({shown}{more})"

    def _repr_html_(self) -> str:
        shown = self._some_changes(HTML_ROWS)
        rows = [(op, name, ", ".join(map(print_value, row))) for op, name, row in shown]
        title = f"{len(self):,} change{'' if len(self) == 1 else 's'}"
        return html_table(title, ("op", "relation", "fact"), rows, len(self) - len(rows))


class _Sparse(Mapping[str, frozenset[Row]]):
    """Facts per relation without empty entries; a relation that does not change has none."""

    __slots__ = ("declared", "held")

    def __init__(self, held: dict[str, Changed], declared: Relations) -> None:
        self.held = held
        self.declared = declared

    def rows(self, name: str) -> Rows:
        """Return the facts of one relation, to be read as tuples or as a table of any kind."""
        held = self.held.get(name, NO_ROWS)
        return Rows(_columns_of(self.declared, name, held), held)

    @property
    def size(self) -> int:
        """How many facts there are, without reading them."""
        return sum(map(len, self.held.values()))

    def __getitem__(self, name: str) -> frozenset[Row]:
        rows = self.held.get(name, NO_ROWS)
        if isinstance(rows, LazyRows):
            rows = self.held[name] = frozenset(rows.read())
        return rows

    def __contains__(self, name: object) -> bool:
        return name in self.held

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def __repr__(self) -> str:
        if self.size <= SORTED_MAX:
            return repr({name: set(rows) for name, rows in self.items()})
        return "{" + ", ".join(f"{n!r}: {len(held)} facts" for n, held in self.held.items()) + "}"


def _columns_of(declared: Relations, name: str, *sides: Changed) -> tuple[Column, ...]:
    """The columns of a relation; of a change made by hand, as many as its rows have."""
    if name in declared:
        return declared[name].columns
    if declared:
        hint = did_you_mean(name, declared)
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=name, hint=hint)])
    values = zip(*(row for side in sides for row in side), strict=True)
    return tuple(
        Column(f"c{i}", next((type_of(v) for v in column if v is not None), None), True)
        for i, column in enumerate(values, 1)
    )


def with_firings(
    change: ChangeSet, fired: Sequence[Firing], rejections: tuple[Violation, ...] = ()
) -> ChangeSet:
    """The same change, made by a transaction in which these rules fired."""
    made = ChangeSet.exact(*change.sides, change._declared)
    made._fired, made._rejections = tuple(fired), rejections
    return made


NO_CHANGE = ChangeSet()
