"""The limit: transitive closure by hand, what an engine that knows all rules could at best reach.

    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z).

It knows these two rules and nothing else. Paths are rows of an append-only store with a hash over
`(x, y)` and a chain of the rows that end in `y`; edges are chained by both ends. The rank of a path
is the order of its first derivation. A deletion follows only paths whose every derivation from
older paths is gone, so that what it deletes is nearly always really gone; the few others are
derived again. Dead rows are removed when the store is full.

What it does not do, and every real engine must: check what it is given, keep other relations, say
what changed. Compiled by numba, kept on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Edge = tuple[int, ...]

NONE = -1  # the end of a chain, and a slot that was never taken
GONE = -2  # a slot whose row was deleted: a search goes on, an insertion takes it
ROWS, LIVE = 0, 1  # places in `counts`
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio

CAPACITY = 1 << 20
NODES = 1 << 13
EDGES = 1 << 15
STACK = 1 << 25
ROOM = 8192  # rows that one step may add
FULL_SHARE = 0.7


# --- the hash over (x, y), open addressing --------------------------------------------------------


@njit(cache=True, inline="always")
def _slot(x: int, y: int, mask: int) -> int:
    key = np.uint64((np.int64(x) << 32) | y) * SPREAD
    return np.int64((key ^ (key >> np.uint64(32))) & np.uint64(mask))


@njit(cache=True)
def _find(slots: Ints, xs: Ints, ys: Ints, x: int, y: int) -> int:
    """The row of a path, or `NONE`."""
    mask = len(slots) - 1
    place = _slot(x, y, mask)
    while True:
        row = slots[place]
        if row == NONE:
            return np.int64(NONE)
        if row >= 0 and xs[row] == x and ys[row] == y:
            return np.int64(row)
        place = (place + 1) & mask


@njit(cache=True)
def _put(slots: Ints, x: int, y: int, row: int) -> None:
    mask = len(slots) - 1
    place = _slot(x, y, mask)
    while slots[place] >= 0:
        place = (place + 1) & mask
    slots[place] = row


@njit(cache=True)
def _take(slots: Ints, xs: Ints, ys: Ints, row: int) -> None:
    mask = len(slots) - 1
    place = _slot(xs[row], ys[row], mask)
    while slots[place] != row:
        place = (place + 1) & mask
    slots[place] = GONE


# --- rows -----------------------------------------------------------------------------------------
# `paths` is (slots, xs, ys, ranks, is_live, following, preceding, ending, counts): following and
# preceding chain the rows that end in the same node, ending holds the first of each chain.
# `edges` is (sources, targets, next_out, next_in, first_out, first_in).


@njit(cache=True)
def _add(paths: Any, x: int, y: int) -> None:
    slots, xs, ys, ranks, is_live, following, preceding, ending, counts = paths
    row = counts[ROWS]
    xs[row], ys[row], ranks[row], is_live[row] = x, y, row, 1
    first = ending[y]
    following[row], preceding[row] = first, NONE
    if first >= 0:
        preceding[first] = row
    ending[y] = row
    _put(slots, x, y, row)
    counts[ROWS] = row + 1
    counts[LIVE] += 1


@njit(cache=True)
def _remove(paths: Any, row: int) -> None:
    slots, xs, ys, _, is_live, following, preceding, ending, counts = paths
    _take(slots, xs, ys, row)
    is_live[row] = 0
    before, after = preceding[row], following[row]
    if before >= 0:
        following[before] = after
    else:
        ending[ys[row]] = after
    if after >= 0:
        preceding[after] = before
    counts[LIVE] -= 1


@njit(cache=True)
def _link(paths: Any, count: int) -> None:
    """Chain and hash rows that were copied into a new store."""
    slots, xs, ys, _, _, following, preceding, ending, _ = paths
    for row in range(count):
        y = ys[row]
        first = ending[y]
        following[row], preceding[row] = first, NONE
        if first >= 0:
            preceding[first] = row
        ending[y] = row
        _put(slots, xs[row], y, row)


# --- the four steps of maintenance ----------------------------------------------------------------


@njit(cache=True)
def _seed(paths: Any, a: int, b: int) -> None:
    """The paths that a new edge makes at once: itself, and what ended where it begins."""
    slots, xs, ys, _, _, following, _, ending, _ = paths
    if _find(slots, xs, ys, a, b) < 0:
        _add(paths, a, b)
    row = ending[a]
    while row >= 0:
        x = xs[row]
        if _find(slots, xs, ys, x, b) < 0:
            _add(paths, x, b)
        row = following[row]


@njit(cache=True)
def _extend(paths: Any, edges: Any, start: int, capacity: int) -> int:
    """Semi-naive from a row on; the first row not looked at, if there is no room for more."""
    slots, xs, ys, _, _, _, _, _, counts = paths
    _, targets, next_out, _, first_out, _ = edges
    row = start
    while row < counts[ROWS]:
        if counts[ROWS] + ROOM // 2 > capacity:
            return row
        x = xs[row]
        edge = first_out[ys[row]]
        while edge >= 0:
            z = targets[edge]
            if _find(slots, xs, ys, x, z) < 0:
                _add(paths, x, z)
            edge = next_out[edge]
        row += 1
    return row


@njit(cache=True)
def _delete(paths: Any, edges: Any, gone: Ints, stack: Ints, dead: Ints) -> int:
    """Delete what has no derivation from older paths; how many, with their ends in `dead`.

    The edges that are gone are unlinked already.
    """
    slots, xs, ys, ranks, is_live, following, _, ending, _ = paths
    sources, targets, next_out, next_in, first_out, first_in = edges
    height = 0
    count = 0
    for number in range(len(gone)):
        a, b = gone[number, 0], gone[number, 1]
        row = _find(slots, xs, ys, a, b)
        if row >= 0:
            stack[height] = row
            height += 1
        shorter = ending[a]
        while shorter >= 0:
            row = _find(slots, xs, ys, xs[shorter], b)
            if row >= 0 and ranks[row] > ranks[shorter]:
                stack[height] = row
                height += 1
            shorter = following[shorter]
    while height > 0:
        height -= 1
        row = stack[height]
        if not is_live[row]:
            continue
        x, z = xs[row], ys[row]
        is_derived = False
        edge = first_in[z]
        while edge >= 0:
            y = sources[edge]
            if y == x:
                is_derived = True
                break
            older = _find(slots, xs, ys, x, y)
            if older >= 0 and ranks[older] < ranks[row]:
                is_derived = True
                break
            edge = next_in[edge]
        if is_derived:
            continue
        _remove(paths, row)
        dead[count, 0], dead[count, 1] = x, z
        count += 1
        edge = first_out[z]
        while edge >= 0:
            longer = _find(slots, xs, ys, x, targets[edge])
            if longer >= 0 and ranks[longer] > ranks[row]:
                stack[height] = longer
                height += 1
            edge = next_out[edge]
    return count


@njit(cache=True)
def _rederive(paths: Any, edges: Any, dead: Ints, count: int) -> int:
    """Put back what younger paths derive; answers the first row that is new."""
    slots, xs, ys, _, _, _, _, _, counts = paths
    sources, _, _, next_in, _, first_in = edges
    start = counts[ROWS]
    for number in range(count):
        x, z = dead[number, 0], dead[number, 1]
        if _find(slots, xs, ys, x, z) >= 0:
            continue
        edge = first_in[z]
        while edge >= 0:
            y = sources[edge]
            shorter = _find(slots, xs, ys, x, y) if y != x else np.int64(0)
            if y == x or (shorter >= 0 and shorter < start):
                _add(paths, x, z)
                break
            edge = next_in[edge]
    return start


# --- from Python ----------------------------------------------------------------------------------


class Limit:
    """The closure of a set of edges, kept while edges come and go."""

    def __init__(self, capacity: int = CAPACITY, stack: int = STACK) -> None:
        self._nodes: dict[int, int] = {}
        self._edges: dict[Edge, int] = {}
        self._made = 0  # edges ever made; their rows are not used again
        self._ending = _none(NODES)
        self._first_out, self._first_in = _none(NODES), _none(NODES)
        self._sources, self._targets = _none(EDGES), _none(EDGES)
        self._next_out, self._next_in = _none(EDGES), _none(EDGES)
        self._counts = np.zeros(2, np.int64)
        self._stack = np.empty(stack, np.int32)
        self._dead = np.empty((stack, 2), np.int32)
        self._allocate(capacity)

    @property
    def size(self) -> int:
        """How many paths there are."""
        return int(self._counts[LIVE])

    def keys(self) -> NDArray[np.int64]:
        """Every path `(x, y)` as the number `x * 2**32 + y`, sorted: to be compared."""
        count = int(self._counts[ROWS])
        live = np.nonzero(self._is_live[:count])[0]
        nodes = np.fromiter(self._nodes, np.int64, len(self._nodes))
        return np.sort((nodes[self._xs[live]] << 32) + nodes[self._ys[live]])

    def apply(self, insert: Sequence[Edge] = (), delete: Sequence[Edge] = ()) -> None:
        """Edges to insert are not there, and edges to delete are."""
        if delete:
            self._apart(self._numbered(delete))
        if insert:
            self._join(self._numbered(insert))

    def _join(self, edges: list[tuple[int, int]]) -> None:
        for a, b in edges:
            self._link_edge(a, b)
        start = int(self._counts[ROWS])
        for a, b in edges:
            if self._counts[ROWS] + len(self._nodes) + ROOM > self._capacity:
                start = self._after_growing(start)
            _seed(self._paths, a, b)
        self._run(start)

    def _apart(self, edges: list[tuple[int, int]]) -> None:
        for a, b in edges:
            self._unlink_edge(a, b)
        gone = np.array(edges, np.int32)
        count = _delete(self._paths, self._graph, gone, self._stack, self._dead)
        if count:
            if self._counts[ROWS] + count + ROOM > self._capacity:
                self._grow()
            self._run(_rederive(self._paths, self._graph, self._dead, count))

    def _run(self, start: int) -> None:
        while True:
            reached = _extend(self._paths, self._graph, start, self._capacity)
            if reached >= self._counts[ROWS]:
                return
            start = self._after_growing(reached)

    def _after_growing(self, start: int) -> int:
        """Grow; rows from `start` on are live and still to be looked at."""
        rest = int(self._counts[ROWS]) - start
        self._grow()
        return int(self._counts[ROWS]) - rest

    def _grow(self) -> None:
        """Drop dead rows, keeping the order, and double the store if it is still rather full."""
        keep = np.nonzero(self._is_live[: int(self._counts[ROWS])])[0]
        xs, ys, count = self._xs[keep], self._ys[keep], len(keep)
        capacity = self._capacity
        while count > FULL_SHARE * capacity - ROOM:
            capacity *= 2
        self._allocate(capacity)
        self._xs[:count], self._ys[:count] = xs, ys
        self._ranks[:count], self._is_live[:count] = np.arange(count), 1
        self._ending[:] = NONE
        self._counts[ROWS] = count
        _link(self._paths, count)

    def _allocate(self, capacity: int) -> None:
        self._capacity = capacity
        self._xs, self._ys = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        self._ranks = np.empty(capacity, np.int64)
        self._is_live = np.zeros(capacity, np.uint8)
        self._following = np.empty(capacity, np.int32)
        self._preceding = np.empty(capacity, np.int32)
        self._slots = _none(capacity * 2)
        self._pack()

    def _pack(self) -> None:
        """The arrays as the kernels take them; again whenever one is replaced."""
        self._paths = (
            *(self._slots, self._xs, self._ys, self._ranks, self._is_live),
            *(self._following, self._preceding, self._ending, self._counts),
        )
        self._graph = (
            *(self._sources, self._targets, self._next_out, self._next_in),
            *(self._first_out, self._first_in),
        )

    def _numbered(self, edges: Iterable[Edge]) -> list[tuple[int, int]]:
        return [(self._number(a), self._number(b)) for a, b in edges]

    def _number(self, node: int) -> int:
        number = self._nodes.setdefault(node, len(self._nodes))
        if number >= len(self._ending):
            self._ending = _doubled(self._ending)
            self._first_out = _doubled(self._first_out)
            self._first_in = _doubled(self._first_in)
            self._pack()
        return number

    def _link_edge(self, a: int, b: int) -> None:
        edge = self._made
        self._made += 1
        if edge >= len(self._sources):
            self._sources, self._targets = _doubled(self._sources), _doubled(self._targets)
            self._next_out, self._next_in = _doubled(self._next_out), _doubled(self._next_in)
            self._pack()
        self._sources[edge], self._targets[edge] = a, b
        self._next_out[edge], self._first_out[a] = self._first_out[a], edge
        self._next_in[edge], self._first_in[b] = self._first_in[b], edge
        self._edges[a, b] = edge

    def _unlink_edge(self, a: int, b: int) -> None:
        edge = self._edges.pop((a, b))
        for first, following, node in (
            (self._first_out, self._next_out, a),
            (self._first_in, self._next_in, b),
        ):
            if first[node] == edge:
                first[node] = following[edge]
                continue
            before = first[node]
            while following[before] != edge:
                before = following[before]
            following[before] = following[edge]


def _none(count: int) -> Ints:
    return np.full(count, NONE, np.int32)


def _doubled(array: Ints) -> Ints:
    return np.concatenate((array, _none(len(array))))


def get_ready() -> None:
    """Compile every kernel, or read it from disk, before time counts."""
    closure = Limit(capacity=4 * ROOM, stack=1 << 12)
    closure.apply(insert=[(1, 2), (2, 3), (3, 1), (1, 3)])
    closure.apply(delete=[(1, 2)])
    closure.apply(insert=[(1, 2)])
    closure._grow()
