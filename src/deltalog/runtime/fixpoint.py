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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal as OneOf

from deltalog.analysis.stratification import Partition
from deltalog.engines.base import Engine, Part
from deltalog.language.walk import atoms
from deltalog.plan.lower import lower_all
from deltalog.runtime.limits import Limits, Meter

Mode = OneOf["semi_naive", "naive"]
Watch = Callable[[int, int], None]


@dataclass
class Statistics:
    """What an evaluation did: rounds run, and facts generated per predicate."""

    rounds: int = 0
    generated: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.generated.values())


@dataclass(frozen=True)
class Installed:
    """A partition prepared on an engine: made once, run for every transaction."""

    parts: tuple[Part, ...]
    is_soft: bool

    def rewind(self) -> None:
        for part in self.parts:
            part.rewind()


def install(engine: Engine, partition: Partition) -> Installed:
    """Lower every rule and prepare every part."""
    heads = [{rule.head.predicate for rule in part} for part in partition]
    is_soft = _is_soft(partition, heads)
    everything: set[str] = set().union(*heads)
    return Installed(
        tuple(
            engine.prepare(lower_all(rules, everything if is_soft else defined))
            for rules, defined in zip(partition, heads, strict=True)
        ),
        is_soft,
    )


def _is_soft(partition: Partition, heads: list[set[str]]) -> bool:
    """Whether a part reads or defines what a later one defines, so that it may have to run again.

    Otherwise the partition is a stratification, and only what a part defines itself can grow while
    it runs.
    """
    later: set[str] = set()
    for part, defined in reversed(list(zip(partition, heads, strict=True))):
        read = {atom.predicate for rule in part for atom, _ in atoms(rule.body)}
        if (read | defined) & later:
            return True
        later |= defined
    return False


def run(
    engine: Engine,
    installed: Installed,
    limits: Limits,
    mode: Mode = "semi_naive",
    watch: Watch | None = None,
) -> Statistics:
    """Apply the soft consequence operator until no part yields anything new."""
    meter = Meter.start(limits)
    statistics = Statistics()
    number = 0
    while number < len(installed.parts):
        part = installed.parts[number]
        if mode == "naive":
            part.rewind()
        new = engine.run_round(part)
        statistics.rounds += 1
        if not new:
            number += 1
            continue
        statistics.generated.update(new)
        meter.count(new)
        if watch is not None:
            watch(statistics.rounds, meter.facts)
        if installed.is_soft:
            number = 0
    return statistics
