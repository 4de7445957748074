"""Rules on a page, as the rewrites print them today.

```rules                              what the passes make of the program above
```rules after split_joins            … after one rewrite of update propagation
```rules after normalize under delta  … under a strategy
```rules under rederive link          … as they run under a strategy, for the view `link`
```rules under demand virtual         … with no view stored; also `flat` and `nervous`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import deltalog
from deltalog.language.ast import DisjunctiveRule, Program, Rule
from deltalog.language.printer import print_rule
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.explain import explain
from deltalog.runtime.explanation_text import rule_text
from deltalog.runtime.network import NetworkStage, network_of

FORMS = ("virtual", "flat", "nervous")


def shown_rules(program: Program, words: tuple[str, ...]) -> str:
    match words:
        case ():
            return _evaluated(program)
        case ("after", name):
            return _after(program, name, "auto", [])
        case ("after", name, "under", strategy, *rest):
            return _after(program, name, strategy, rest)
        case ("under", strategy, *rest):
            return _maintained(program, strategy, rest)
    raise AssertionError(f"a block of rules says {' '.join(words)}")


def _evaluated(program: Program) -> str:
    """The rules after the last pass, for the query if there is one, in their parts."""
    database = deltalog.connect(program=program, materialize=False)
    partition = explain(database, next(iter(program.queries), None)).partition
    return _parts(partition, is_titled=bool(program.queries) and len(partition) > 1)


def _after(program: Program, name: str, strategy: str, rest: list[str]) -> str:
    database = _opened(program, strategy, rest)
    return _parts(explain(database, after=name).partition, is_titled=False)


def _opened(program: Program, strategy: str, rest: list[str]) -> MemoryDatabase:
    return deltalog.connect(
        program=program,
        strategy=strategy,
        materialize="virtual" not in rest,
        network="flat" if "flat" in rest else "bushy",
        nervous="nervous" in rest,
    )


def _parts(partition: Iterable[Sequence[Rule | DisjunctiveRule]], is_titled: bool) -> str:
    parts = ["".join(f"{rule_text(rule)}\n" for rule in part) for part in partition]
    if not is_titled:
        return "".join(parts)
    return "\n".join(f"% part {number}\n{part}" for number, part in enumerate(parts, start=1))


def _maintained(program: Program, strategy: str, rest: list[str]) -> str:
    """The parts of every view, or of those that are named."""
    views = [word for word in rest if word not in FORMS]
    database = _opened(program, strategy, rest)
    nodes = [n for n in network_of(database).nodes if not views or {*views} & {*n.predicates}]
    stages = [
        (f"% {', '.join(node.predicates)}, part {number}", stage)
        for node in nodes
        for number, stage in enumerate(node.stages, start=1)
    ]
    return "\n".join(_stage(stage, title if len(stages) > 1 else "") for title, stage in stages)


def _stage(stage: NetworkStage, title: str) -> str:
    if stage.ranked:
        return f"{title}: deletion by rank\n"
    rules = "".join(f"{print_rule(rule)}\n" for rule in stage.rules)
    return f"{title}\n{rules}" if title else rules
