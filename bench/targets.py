"""What the embedded engine should reach at full size, and whether it does.

A target belongs to a row of the table: a workload and a kind of change. It compares with something
measured in the same run (the limit, DuckDB, another size), with a fixed bound, or with a recorded
figure of a peer; the last is said in its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.full_scale import Measured
from bench.measure import Spread
from bench.peers import DIFFERENTIAL, seen

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
    for name, kind, ours in _medians(found, CLOSURES, ("load", "insert", "delete")):
        peer = seen(name, DIFFERENTIAL)
        if peer is not None:
            ratio = peer.milliseconds[kind][0] / ours.median
            yield Verdict(name, kind, words, ratio, PEER_RATIO_MIN, False, True)
    for name, kind, ours in _medians(found, OTHERS, ("insert", "delete")):
        peer = seen(name, DIFFERENTIAL)
        if peer is not None:
            median, mean = peer.milliseconds[kind]
            for which, ratio in (("median", median / ours.median), ("mean", mean / ours.mean)):
                said = f"{words}, {which}"
                yield Verdict(name, kind, said, ratio, PEER_RATIO_MIN, False, True)


def _inventory(found: Found) -> Iterable[Verdict]:
    for name, kind, ours in _medians(found, INVENTORIES, ("update",)):
        peer = seen(name, DIFFERENTIAL)
        if peer is not None:
            ratio = peer.milliseconds[kind][0] / ours.median
            yield Verdict(name, kind, "not slower", ratio, 1.0, False, True)
    both = list(_medians(found, (SMALLEST_INVENTORY, LARGEST_INVENTORY), ("update",)))
    if len(both) == 2:
        (_, kind, small), (_, _, large) = both
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


def _medians(
    found: Found, names: Sequence[str], kinds: Sequence[str]
) -> Iterable[tuple[str, str, Spread]]:
    for name in names:
        for kind in kinds:
            ours = milliseconds(found[name], kind) if name in found else None
            if ours is not None and ours.median > 0:
                yield name, kind, ours
