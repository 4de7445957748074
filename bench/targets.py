"""What the embedded engine should reach at full size, and whether it does.

A target belongs to a row of the table: a workload and a kind of change. It compares with something
measured in the same run (differential-dataflow, the limit, DuckDB, another size), with a fixed
bound, or, where the peer was not run, with its recorded figure; that is said in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.full_scale import Measured
from bench.measure import Spread
from bench.peers import DIFFERENTIAL, PG_IVM, Seen, seen

LIMIT_RATIO_MAX = 4.0
PEER_RATIO_MIN = 5.0
BYTES_PER_FACT_MAX = 100.0
SIZES_RATIO_MAX = 1.3
SINGLE_ROW_MILLISECONDS_MAX = 0.1
DUCKDB_RATIO_MIN = 100.0

CLOSURES = ("w1_scc", "w1_dag", "w1_grid", "w1_chain")
OTHERS = ("w2", "w3", "w4", "w7")
SMALLEST_INVENTORY, LARGEST_INVENTORY = "w5_10", "w5_1m"
INVENTORIES = (SMALLEST_INVENTORY, "w5_1k", "w5_100k")
GROUPED = "w6"

Found = Mapping[str, Measured]


@dataclass(frozen=True)
class Verdict:
    """A target, and what was found: `ratio` is at most, or at least, `bound` if it is reached."""

    workload: str
    kind: str
    words: str
    ratio: float
    bound: float
    is_at_most: bool
    is_recorded: bool = False

    @property
    def is_reached(self) -> bool:
        return self.ratio <= self.bound if self.is_at_most else self.ratio >= self.bound

    def as_json(self) -> dict[str, object]:
        return {
            "workload": self.workload,
            "change": self.kind,
            "target": self.words,
            "found": round(self.ratio, 4),
            "bound": self.bound,
            "is_at_most": self.is_at_most,
            "with_recorded_figure": self.is_recorded,
            "is_reached": self.is_reached,
        }


def milliseconds(measured: Measured, kind: str) -> Spread | None:
    """What applying a change costs, or loading."""
    if kind == "load":
        return _once(measured.load_seconds)
    cost = measured.costs.get(kind)
    return cost.apply if cost is not None else None


def limit_milliseconds(measured: Measured, kind: str) -> Spread | None:
    """The same for the limit."""
    if kind == "load":
        return _once(measured.limit_load_seconds)
    cost = measured.costs.get(kind)
    return cost.limit if cost is not None else None


@dataclass(frozen=True)
class Comparison:
    """A peer and the engine; if measured in one run, then over the same transactions."""

    peer: Spread
    ours: Spread
    is_recorded: bool

    @property
    def by_median(self) -> float:
        return self.peer.median / self.ours.median

    @property
    def by_mean(self) -> float:
        return self.peer.mean / self.ours.mean


def recorded_peer(measured: Measured, system: str) -> Seen | None:
    """Figures to fall back on if the peer was not run here; there are some for full size.

    Where differential-dataflow has none, pg_ivm takes its place.
    """
    if system in measured.peers_load_seconds or measured.scale != 1:
        return None
    found = seen(measured.workload, system)
    return seen(measured.workload, PG_IVM) if not found and system == DIFFERENTIAL else found


def beside_peer(measured: Measured, kind: str, system: str = DIFFERENTIAL) -> Comparison | None:
    """The peer measured in the same run, else recorded; never both for one workload."""
    ours, recorded = milliseconds(measured, kind), recorded_peer(measured, system)
    if ours is None:
        return None
    if recorded is not None:
        figures = recorded.milliseconds.get(kind)
        return Comparison(Spread(0, *figures), ours, True) if figures is not None else None
    if kind == "load":
        peer = _once(measured.peers_load_seconds.get(system))
        return Comparison(peer, ours, False) if peer is not None else None
    both = measured.costs[kind].beside_peers.get(system)
    return Comparison(both.peer, both.ours, False) if both is not None else None


def _once(seconds: float | None) -> Spread | None:
    return Spread(1, seconds * 1_000, seconds * 1_000) if seconds is not None else None


def verdicts(found: Found) -> list[Verdict]:
    """Every target whose figures are there. They hold for full size only."""
    whole = {name: measured for name, measured in found.items() if measured.scale == 1}
    said: list[Verdict] = []
    for check in (_near_the_limit, _faster_than_peers, _inventory, _grouped):
        said += check(whole)
    grid = whole.get("w1_grid")
    if grid is not None and grid.bytes_per_fact is not None:
        words = f"<{BYTES_PER_FACT_MAX:.0f} B/fact"
        figure = grid.bytes_per_fact
        said.append(Verdict("w1_grid", "load", words, figure, BYTES_PER_FACT_MAX, True))
    return said


def _near_the_limit(found: Found) -> Iterable[Verdict]:
    for name, kind, ours in _medians(found, CLOSURES, ("load", "insert", "delete")):
        theirs = limit_milliseconds(found[name], kind)
        if theirs is not None:
            words = f"≤{LIMIT_RATIO_MAX:g}× limit"
            ratio = ours.median / theirs.median
            yield Verdict(name, kind, words, ratio, LIMIT_RATIO_MAX, True)


def _faster_than_peers(found: Found) -> Iterable[Verdict]:
    """Closures by their medians; the others by medians and means."""
    words = f"{PEER_RATIO_MIN:g}× faster"
    for name, kind, both in _beside_peers(found, CLOSURES, ("load", "insert", "delete")):
        ratio = both.by_median
        yield Verdict(name, kind, words, ratio, PEER_RATIO_MIN, False, both.is_recorded)
    for name, kind, both in _beside_peers(found, OTHERS, ("insert", "delete")):
        for which, ratio in (("median", both.by_median), ("mean", both.by_mean)):
            said = f"{words}, {which}"
            yield Verdict(name, kind, said, ratio, PEER_RATIO_MIN, False, both.is_recorded)


def _inventory(found: Found) -> Iterable[Verdict]:
    for name, kind, both in _beside_peers(found, INVENTORIES, ("update",)):
        yield Verdict(name, kind, "not slower", both.by_median, 1.0, False, both.is_recorded)
    sizes = list(_medians(found, (SMALLEST_INVENTORY, LARGEST_INVENTORY), ("update",)))
    if len(sizes) == 2:
        (_, kind, small), (_, _, large) = sizes
        words = f"≤{SIZES_RATIO_MAX:g}× {SMALLEST_INVENTORY}"
        ratio = large.median / small.median
        yield Verdict(LARGEST_INVENTORY, kind, words, ratio, SIZES_RATIO_MAX, True)


def _grouped(found: Found) -> Iterable[Verdict]:
    for name, kind, ours in _medians(found, (GROUPED,), ("insert", "delete", "reinsert")):
        bound = SINGLE_ROW_MILLISECONDS_MAX
        yield Verdict(name, kind, f"<{bound:g} ms", ours.median, bound, True)
        duckdb = found[name].duckdb
        if duckdb is not None:
            ratio = duckdb.median / ours.median
            words = f"{DUCKDB_RATIO_MIN:.0f}× DuckDB"
            yield Verdict(name, kind, words, ratio, DUCKDB_RATIO_MIN, False)


def _beside_peers(
    found: Found, names: Sequence[str], kinds: Sequence[str]
) -> Iterable[tuple[str, str, Comparison]]:
    for name, kind, _ in _medians(found, names, kinds):
        both = beside_peer(found[name], kind)
        if both is not None:
            yield name, kind, both


def _medians(
    found: Found, names: Sequence[str], kinds: Sequence[str]
) -> Iterable[tuple[str, str, Spread]]:
    for name in names:
        for kind in kinds:
            ours = milliseconds(found[name], kind) if name in found else None
            if ours is not None and ours.median > 0:
                yield name, kind, ours
