"""How many rows a lookup finds, estimated from the data that is there.

    can__red(U, D) :- can__overdeleted(U, D), in_group(U, G), grant(G, F), under(D, F).

Whether to go on from U or from D is all the same to the rule, and a matter of three times the work
to whoever runs it. So when a part of the propagation network is installed, which is when a change
first reaches it, a sample of each relation tells how often two rows agree in the columns that are
bound. Twice as many rows make this twice as many, so it needs no more than a sample; and it counts
a value as often as it occurs, as lookups do. It only decides between atoms with equally many bound
arguments (`analysis/binding.py`), and nothing of what is derived depends on it: a sample that is
old by the time it is used, because its rows died or others came, costs time and nothing else.
"""

from __future__ import annotations

from collections import Counter

from deltalog.analysis.binding import Fanout
from deltalog.engines.base import Engine
from deltalog.language.ast import Row
from deltalog.plan.lower import Overlays
from deltalog.plan.nodes import Overlay

SAMPLE = 1_000


class Samples:
    """Samples of relations, each taken when it is first asked for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rows: dict[str, tuple[Row, ...]] = {}
        self._known: dict[tuple[str, tuple[int, ...]], float] = {}

    def fanout(self, overlays: Overlays) -> Fanout:
        """Of a relation with fewer rows than a sample nothing is known: 0."""

        def fanout(predicate: str, columns: tuple[int, ...]) -> float:
            read = overlays.get(predicate, predicate)
            relation = read.stored if isinstance(read, Overlay) else read
            if (relation, columns) not in self._known:
                self._known[relation, columns] = self._estimated_matches(relation, columns)
            return self._known[relation, columns]

        return fanout

    def _estimated_matches(self, relation: str, columns: tuple[int, ...]) -> float:
        if relation not in self._rows:
            self._rows[relation] = tuple(self._engine.sample(relation, SAMPLE))
        rows = self._rows[relation]
        return _agreeing_fraction(rows, columns) * self._engine.size(relation) if rows else 0.0


def _agreeing_fraction(rows: tuple[Row, ...], columns: tuple[int, ...]) -> float:
    """How often two rows have the same values in some columns.

    >>> _agreeing_fraction(((1, 2), (1, 3), (4, 5)), (0,))
    0.3333333333333333
    """
    if len(rows) < 2:
        return 0.0
    counts = Counter(tuple(row[column] for column in columns) for row in rows)
    return sum(n * (n - 1) for n in counts.values()) / (len(rows) * (len(rows) - 1))
