"""Walks: a seed gives a setting and steps; a walk that fails is made as short as it can be.

    python tests/walks --store file --engine embedded --steps 10000
    python tests/walks --store file --engine embedded --seed 17          one walk again

A failing walk is shown as Python, with every step left out that it fails without.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from expected import known
from families import FAMILIES, OWN, drawn_rows
from reason_verbs import REASONS
from verbs import VERBS, Drawing, Verb, finish
from walker import Setting, Step, Walker, drawn_manner

from reference_rules import RefusedError

STORES = ("memory", "file")


@dataclass(frozen=True)
class Road:
    """What kind of database is walked over: how it starts, its verbs, and what is checked last."""

    start: Callable[[Setting, Path], Any]
    verbs: Mapping[str, Verb]
    finish: Callable[[Any], None]
    steps_min: int = 40
    steps_max: int = 80


ROADS = {
    store: Road(
        Walker,
        {n: v for n, v in {**VERBS, **REASONS}.items() if v.store in (None, store)},
        finish,
    )
    for store in STORES
}


@dataclass
class Failure:
    """A walk that went wrong, as it was or as short as it can be."""

    road: Road
    seed: int
    setting: Setting
    steps: list[Step]
    lines: list[str]
    error: BaseException

    def __str__(self) -> str:
        lines = self.lines or [str(self.setting)]
        return "\n".join(
            [f"seed {self.seed}, {self.setting.store}", *lines, f"# {_shown(self.error)}"]
        )


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def drawn_setting(
    rng: random.Random, store: str, engine: str, nervous: bool, family: tuple[str, ...] = ()
) -> Setting:
    strict = [name for name in OWN if not name.startswith("rules")]
    names = [*strict, *["negation"] * len(OWN)] if nervous else [*list(OWN) * 3, *FAMILIES]
    texts = list(family or FAMILIES[rng.choice(names)])
    rng.shuffle(texts)
    setting = Setting(store, tuple(texts), drawn_manner(rng, texts[0], engine, nervous), ())
    facts = {r.name: drawn_rows(rng, r, 3) for r in known(texts[0]).base if rng.random() < 0.5}
    filled = replace(setting, facts=tuple((name, tuple(rows)) for name, rows in facts.items()))
    try:
        is_fit = not filled.moment.is_violated
    except RefusedError:
        return setting
    return filled if is_fit else setting


def walk(
    seed: int, store: str, engine: str, nervous: bool = False, family: tuple[str, ...] = ()
) -> tuple[int, Failure | None]:
    """Walk from a seed; returns the number of steps, and what went wrong."""
    rng = random.Random(f"{seed} {store}")
    return walk_from(rng, seed, drawn_setting(rng, store, engine, nervous, family), ROADS[store])


def walk_from(
    rng: random.Random, seed: int, setting: Setting, road: Road
) -> tuple[int, Failure | None]:
    length = rng.randint(road.steps_min, road.steps_max)
    weights = [verb.weight for verb in road.verbs.values()]
    steps: list[Step] = []

    def go(walker: Any) -> None:
        drawing = Drawing(rng, walker)
        while len(steps) < length:
            name = rng.choices(list(road.verbs), weights)[0]
            arguments = road.verbs[name].draw(drawing)
            if arguments is not None:
                steps.append((name, *arguments))
                _take(walker, road, steps[-1])

    failure = _attempt(road, seed, setting, steps, go)
    return len(steps), failure


def _take(walker: Any, road: Road, step: Step) -> None:
    walker.steps += 1
    road.verbs[step[0]].take(walker, *step[1:])


def _attempt(
    road: Road, seed: int, setting: Setting, steps: list[Step], go: Callable[[Any], None]
) -> Failure | None:
    walker = None
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        try:
            walker = road.start(setting, Path(folder))
            lines = walker.lines
            go(walker)
            road.finish(walker)
        except Exception as error:
            return Failure(road, seed, setting, list(steps), lines, error)
        finally:
            if walker is not None:
                walker.close()
    return None


def replay(failure: Failure, setting: Setting, steps: list[Step]) -> Failure | None:
    """Take steps again, perhaps fewer, from a setting; None if nothing goes wrong."""

    def go(walker: Any) -> None:
        for step in steps:
            _take(walker, failure.road, step)

    return _attempt(failure.road, failure.seed, setting, steps, go)


def shrunk(failure: Failure, replays_max: int = 600) -> Failure:
    """The walk without steps and facts that it fails without (delta debugging)."""
    left = replays_max
    best = replay(failure, failure.setting, failure.steps) or failure
    size = max(1, len(best.steps) // 2)
    while left > 0:
        is_shorter = False
        start = 0
        while start < len(best.steps) and left > 0:
            left -= 1
            shorter = best.steps[:start] + best.steps[start + size :]
            found = replay(best, best.setting, shorter)
            if found is None:
                start += size
            else:
                best, is_shorter = found, True
        if size == 1 and not is_shorter:
            break
        size = max(1, size // 2)
    for name, _ in best.setting.facts:
        fewer = replace(best.setting, facts=tuple(f for f in best.setting.facts if f[0] != name))
        found = replay(best, fewer, best.steps)
        best = found or best
    return best
