"""Who is measured: an engine and a strategy, on views that are stored or virtual.

A contender opens a workload and answers something that applies transactions, says the exact change
and counts the facts it generated. What cannot be measured is a gap, with its reason, and is named
in the end; it never vanishes silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import deltalog
from bench.workloads import Workload
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.engine_choice import ENGINES

NOT_RECURSIVE = ("delta", "differencing")


@dataclass(frozen=True)
class Contender:
    """One way to keep the views of a workload true."""

    strategy: str
    is_virtual: bool = False
    engine: str = "reference"

    @property
    def label(self) -> str:
        """The strategy, and whether views are virtual."""
        return f"{self.strategy} virtual" if self.is_virtual else self.strategy

    def open(self, workload: Workload) -> deltalog.MemoryDatabase:
        return deltalog.connect(
            program=workload.program,
            engine=self.engine,
            strategy=self.strategy,
            materialize=not self.is_virtual,
            facts=workload.base,
        )

    def obstacle(self, workload: Workload) -> str | None:
        """Why this strategy cannot keep all views of the workload, if so."""
        if self.strategy not in NOT_RECURSIVE:
            return None
        model = deltalog.connect(program=workload.program).model
        if any(choice.is_recursive for choice in model.choices):
            return f"`{self.strategy}` does not handle recursion"
        return None


@dataclass(frozen=True)
class Gap:
    """Something that was not measured, and why."""

    what: str
    why: str


RECOMPUTE = Contender("recompute")
REDERIVE = Contender("rederive")
MAGIC = Contender("magic")
MAGIC_VIRTUAL = Contender("magic", is_virtual=True)
DEMAND = Contender("demand")
DEMAND_VIRTUAL = Contender("demand", is_virtual=True)

CONTENDERS: Sequence[Contender] = (
    RECOMPUTE,
    REDERIVE,
    MAGIC,
    MAGIC_VIRTUAL,
    DEMAND_VIRTUAL,
    Contender("delta"),
    Contender("differencing"),
)


def get_ready(engine: str) -> None:
    """Do a little of everything once: grammars are read and kernels compiled before time counts."""
    rules = "base edge(a: int, b: int).\npath(X, Y) :- edge(X, Y)."
    for contender in CONTENDERS:
        database = deltalog.connect(
            program=rules,
            engine=engine,
            strategy=contender.strategy,
            materialize=not contender.is_virtual,
        )
        database.apply(insert={"edge": [(1, 2)]})


def unknown_names(strategies: Iterable[str], engines: Iterable[str]) -> list[str]:
    """What was asked for and does not exist, in words."""
    known = {contender.strategy for contender in CONTENDERS} & STRATEGIES.keys()
    said = [
        f"unknown strategy `{name}`: there are {', '.join(sorted(known))}"
        for name in strategies
        if name not in known
    ]
    return said + [
        f"unknown engine `{name}`: there are {', '.join(sorted(ENGINES))}"
        for name in engines
        if name not in ENGINES
    ]
