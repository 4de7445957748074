"""Change sets: what is really new and what is really gone, per relation.

A change set is a pair of disjoint families of facts (the delta sets of Manthey 1994). With the
delta-union as composition and swapping the two sides as inverse they form a small algebra:

    a + b          first a, then b (both net, b relative to the state after a)
    -a             the change that undoes a
    a + (-a)       nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from deltalog.engines.base import NO_ROWS, Changed, Copied, Sides
from deltalog.language.ast import Row
from deltalog.language.values import sort_key

Facts = Mapping[str, frozenset[Row]]


class ChangeSet:
    """An immutable pair `inserted`, `deleted` of sets of facts per relation, disjoint and net.

    >>> a = ChangeSet({"edge": {(1, 2)}}, {"edge": {(3, 4)}})
    >>> b = ChangeSet({"edge": {(3, 4)}}, {})
    >>> (a + b).inserted["edge"], (a + b).deleted["edge"]
    (frozenset({(1, 2)}), frozenset())
    """

    __slots__ = ("_come", "_gone", "_read")

    def __init__(
        self,
        inserted: Mapping[str, set[Row] | frozenset[Row]] | None = None,
        deleted: Mapping[str, set[Row] | frozenset[Row]] | None = None,
    ) -> None:
        new, gone = dict(inserted or {}), dict(deleted or {})
        kept_new: dict[str, Changed] = {}
        kept_gone: dict[str, Changed] = {}
        for name in sorted(new.keys() | gone.keys()):
            plus, minus = frozenset(new.get(name, ())), frozenset(gone.get(name, ()))
            if come := plus - minus:
                kept_new[name] = come
            if go := minus - plus:
                kept_gone[name] = go
        self._read: Callable[[], Sides] | None = None
        self._come, self._gone = kept_new, kept_gone

    @classmethod
    def exact(cls, inserted: dict[str, Changed], deleted: dict[str, Changed]) -> ChangeSet:
        """A change whose two sides are known to be net, without relations that do not change.

        Rows are read when they are asked for.
        """
        made = cls.__new__(cls)
        made._read, made._come, made._gone = None, inserted, deleted
        return made

    @classmethod
    def told(cls, read: Callable[[], Sides]) -> ChangeSet:
        """A change that is not nothing; `read` tells its sides, net, when they are asked for."""
        made = cls.__new__(cls)
        made._read = read
        return made

    @property
    def sides(self) -> Sides:
        """What is new and what is gone, by relation; rows may still be `Copied`."""
        read = self._read
        if read is not None:
            self._come, self._gone = read()
            self._read = None
        return self._come, self._gone

    @property
    def inserted(self) -> _Sparse:
        """What is really new, by relation."""
        return _Sparse(self.sides[0])

    @property
    def deleted(self) -> _Sparse:
        """What is really gone, by relation."""
        return _Sparse(self.sides[1])

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that change, sorted."""
        return tuple(sorted(self.inserted.held.keys() | self.deleted.held.keys()))

    def __bool__(self) -> bool:
        return self._read is not None or bool(self._come) or bool(self._gone)

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
        return ChangeSet(inserted, deleted)

    def __neg__(self) -> ChangeSet:
        return ChangeSet(self.deleted, self.inserted)

    def without(self, *relations: str) -> ChangeSet:
        """The change but for these relations."""
        return self.only(*(name for name in self.relations if name not in relations))

    def only(self, *relations: str) -> ChangeSet:
        """The part of the change that concerns these relations."""
        return ChangeSet(
            {name: self.inserted[name] for name in relations},
            {name: self.deleted[name] for name in relations},
        )

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

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{op}{name}{row}" for _, (op, name, row) in zip(range(10), self, strict=False)
        )
        more = f", … {len(self) - 10} more" if len(self) > 10 else ""
        return f"ChangeSet({shown}{more})"


class _Sparse(Mapping[str, frozenset[Row]]):
    """Facts per relation without empty entries; a relation that does not change has none."""

    __slots__ = ("held",)

    def __init__(self, held: dict[str, Changed]) -> None:
        self.held = held

    @property
    def size(self) -> int:
        """How many facts there are, without reading them."""
        return sum(map(len, self.held.values()))

    def __getitem__(self, name: str) -> frozenset[Row]:
        rows = self.held.get(name, NO_ROWS)
        if isinstance(rows, Copied):
            rows = self.held[name] = frozenset(rows.read())
        return rows

    def __contains__(self, name: object) -> bool:
        return name in self.held

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def __repr__(self) -> str:
        return repr({name: set(rows) for name, rows in self.items()})


NO_CHANGE = ChangeSet()
