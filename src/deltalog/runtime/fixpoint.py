"""The fixpoint driver: it knows no engine and no method, and runs them all.

It is given an ordered partition of rules and applies the soft consequence operator (Behrend &
Manthey 2004, Def. 2): always fire the lowest part that still yields something new. On a
stratification this is the iterated fixpoint; on a soft stratification of a program made by Magic
Sets it computes the well-founded model, where questions asked by higher parts send it back down.

*Semi-naive*: a rule reads each body relation only from where it stopped last. *Naive*: every rule
reads everything in every round; slower and obviously right, so it is the yardstick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as OneOf

from deltalog.analysis.binding import Fanout
from deltalog.engines.base import AbortedError, Engine, Part, RunResult, Sequence
from deltalog.engines.stepped_sequence import SteppedSequence
from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of
from deltalog.plan.lower import Overlays, lower_all
from deltalog.plan.nodes import Overlay, RankedDeletion, RulePlan
from deltalog.plan.ranked_deletion import RankedComponent, lower_ranked_deletion
from deltalog.runtime.limits import Limits, Meter

if TYPE_CHECKING:
    from deltalog.runtime.changes import ChangeSet

Mode = OneOf["semi_naive", "naive"]
Watch = Callable[[int, int], None]
MakePeak: TypeAlias = "Callable[[ChangeSet, Mapping[str, int]], int]"


class Statistics:
    """Counts of an evaluation: rounds run, and facts generated per predicate.

    Counts of facts are `lazy`: they are read when somebody asks. For a change that was propagated,
    `peak_of` is the change, and what makes its peak of it and of what was generated.
    """

    __slots__ = ("lazy", "peak_of", "rounds")

    def __init__(self) -> None:
        self.rounds = 0
        self.lazy: list[Callable[[], Mapping[str, int]]] = []
        self.peak_of: tuple[MakePeak, ChangeSet] | None = None

    def __repr__(self) -> str:
        return f"Statistics(rounds={self.rounds}, generated={dict(self.generated)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Statistics):
            return NotImplemented
        return self.rounds == other.rounds and self.generated == other.generated

    @property
    def generated(self) -> Counter[str]:
        """Facts per predicate; 0 for one of which there are none."""
        counts: Counter[str] = Counter()
        for read in self.lazy:
            counts.update(read())
        return counts

    @property
    def total(self) -> int:
        return self.generated.total()

    @property
    def peak(self) -> int:
        """How many facts of changes were held at most at one time while a change was propagated."""
        if self.peak_of is None:
            return 0
        make_peak, change = self.peak_of
        return make_peak(change, self.generated)


@dataclass(frozen=True)
class Installed:
    """A partition prepared on an engine: made once, run for every transaction."""

    parts: tuple[Part, ...]
    is_soft: bool
    whole: Sequence

    def rewind(self) -> None:
        self.whole.rewind()


Stage: TypeAlias = tuple[Rule, ...] | RankedComponent
Lowered: TypeAlias = tuple[tuple[tuple[RulePlan, ...] | RankedDeletion, ...], bool]
"""Plans in their order, and whether the partition is a soft one."""


def install_stages(
    engine: Engine,
    stages: Iterable[Stage],
    overlays: Overlays = MappingProxyType({}),
    may_abort: bool = False,
    fanout: Fanout | None = None,
) -> Installed:
    """Lower every rule and prepare every part, in this order.

    With `may_abort`, `run_fixpoint` may end in a `AbortedError`.
    """
    return install_lowered(engine, lower_stages(stages, overlays, fanout), may_abort)


def install_lowered(engine: Engine, found: Lowered, may_abort: bool = False) -> Installed:
    """Prepare plans that were lowered before."""
    plans, is_soft = found
    parts = tuple(
        engine.prepare_deletion(plan) if isinstance(plan, RankedDeletion) else engine.prepare(plan)
        for plan in plans
    )
    return Installed(parts, is_soft, engine.sequence(parts, is_soft, may_abort))


def lower_stages(
    stages: Iterable[Stage],
    overlays: Overlays = MappingProxyType({}),
    fanout: Fanout | None = None,
) -> Lowered:
    """The plans of every stage, and whether the partition is a soft one."""
    stages = tuple(stages)
    heads = [_defined_predicates(stage) for stage in stages]
    is_soft = _is_soft(stages, heads, overlays)
    everything: set[str] = set().union(*heads)
    plans: list[tuple[RulePlan, ...] | RankedDeletion] = []
    for stage, defined in zip(stages, heads, strict=True):
        if isinstance(stage, RankedComponent):
            plans.append(lower_ranked_deletion(stage, overlays))
        else:
            growing = everything if is_soft else defined
            plans.append(lower_all(stage, growing, overlays, fanout))
    return tuple(plans), is_soft


def _defined_predicates(stage: Stage) -> set[str]:
    if isinstance(stage, RankedComponent):
        made = (stage.deleted, stage.doubtful)
        return {each(name) for each in made for name in stage.predicates}
    return {rule.head.predicate for rule in stage}


def _is_soft(stages: tuple[Stage, ...], heads: list[set[str]], overlays: Overlays) -> bool:
    """Whether a part reads or defines what a later one defines, so that it may have to run again.

    Otherwise the partition is a stratification, and only what a part defines itself can grow while
    it runs.
    """
    later: set[str] = set()
    for stage, defined in reversed(list(zip(stages, heads, strict=True))):
        if (_read_predicates(stage, overlays) | defined) & later:
            return True
        later |= defined
    return False


def _read_predicates(stage: Stage, overlays: Overlays) -> set[str]:
    if isinstance(stage, RankedComponent):
        return {stage.suspect(name) for name in stage.predicates}
    read = {atom.predicate for rule in stage for atom, _ in atoms_of(rule.body)}
    for name in tuple(read):
        overlay = overlays.get(name)
        if isinstance(overlay, Overlay):
            read |= {part for part in (overlay.minus, overlay.plus) if part is not None}
    return read


def run_fixpoint(
    engine: Engine,
    installed: Installed,
    limits: Limits,
    mode: Mode = "semi_naive",
    watch: Watch | None = None,
    meter: Meter | None = None,
    statistics: Statistics | None = None,
) -> Statistics:
    """Apply the soft consequence operator until no part yields anything new.

    What was done is added to the `statistics` given.
    """
    meter = meter or Meter(limits, engine.capabilities.fact_bytes)
    statistics = statistics or Statistics()
    sequence = installed.whole
    if mode == "naive":
        sequence = SteppedSequence(engine, installed.parts, installed.is_soft, is_naive=True)
    while True:
        engine.watch(meter.look)
        try:
            ended = sequence.run(*meter.rest)
        finally:
            engine.watch(None)
        count_run(ended, meter, watch, statistics)
        if ended.is_aborted:
            raise AbortedError
        if ended.is_done:
            return statistics


def count_run(ended: RunResult, meter: Meter, watch: Watch | None, statistics: Statistics) -> None:
    """Count what an engine did by itself; raises a `LimitError` if it had to stop."""
    statistics.rounds += ended.rounds
    meter.rounds = ended.productive
    if ended.facts:
        statistics.lazy.append(ended.generated)
        meter.facts += ended.facts
    if ended.is_stopped:
        meter.check(ended.growing)
        meter.look()
        raise AssertionError("stopped without a limit")
    if watch is not None and ended.facts:
        watch(statistics.rounds, meter.facts)
