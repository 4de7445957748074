"""Walks: a seed gives a setting and steps; a walk that fails is made as short as it can be.

    python tests/walks --store file --engine embedded --steps 10000
    python tests/walks --store file --engine embedded --seed 17          one walk again

A failing walk is shown as Python, with every step left out that it fails without.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from expected import RefusedError, known
from families import FAMILIES, OWN, drawn_rows
from verbs import VERBS, Drawing, Verb, finish
from walker import Setting, Step, Walker, drawn_manner

STORES = ("memory", "file")
STEPS_MIN, STEPS_MAX = 40, 80


@dataclass
class Failure:
    """A walk that went wrong, as it was and as short as it can be."""

    seed: int
    setting: Setting
    steps: list[Step]
    lines: list[str]
    error: BaseException

    def __str__(self) -> str:
        return "\n".join(
            [f"seed {self.seed}, {self.setting.store}", *self.lines, f"# {_shown(self.error)}"]
        )


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def drawn_setting(
    rng: random.Random, store: str, engine: str, nervous: bool, family: tuple[str, ...] = ()
) -> Setting:
    names = [*OWN, *["negation"] * len(OWN)] if nervous else [*list(OWN) * 3, *FAMILIES]
    texts = list(family or FAMILIES[rng.choice(names)])
    rng.shuffle(texts)
    setting = Setting(store, tuple(texts), drawn_manner(rng, texts[0], engine, nervous), ())
    facts = {r.name: drawn_rows(rng, r, 3) for r in known(texts[0]).base if rng.random() < 0.5}
    filled = replace(setting, facts=tuple((name, tuple(rows)) for name, rows in facts.items()))
    try:
        _ = filled.moment
    except RefusedError:
        return setting
    return filled


def walk(
    seed: int, store: str, engine: str, nervous: bool = False, family: tuple[str, ...] = ()
) -> tuple[int, Failure | None]:
    """Walk from a seed; returns the number of steps, and what went wrong."""
    rng = random.Random(f"{seed} {store}")
    setting = drawn_setting(rng, store, engine, nervous, family)
    length = rng.randint(STEPS_MIN, STEPS_MAX)
    verbs = {name: verb for name, verb in VERBS.items() if verb.store in (None, store)}
    weights = [verb.weight for verb in verbs.values()]
    steps: list[Step] = []

    def drawn(walker: Walker) -> None:
        drawing = Drawing(rng, walker)
        while len(steps) < length:
            name = rng.choices(list(verbs), weights)[0]
            arguments = verbs[name].draw(drawing)
            if arguments is not None:
                steps.append((name, *arguments))
                _take(walker, verbs[name], arguments)

    failure = _attempt(seed, setting, steps, drawn)
    return len(steps), failure


def _take(walker: Walker, verb: Verb, arguments: Sequence[object]) -> None:
    walker.steps += 1
    verb.take(walker, *arguments)


def _attempt(
    seed: int, setting: Setting, steps: list[Step], go: Callable[[Walker], None]
) -> Failure | None:
    walker = None
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        try:
            walker = Walker(setting, Path(folder))
            lines = walker.lines
            go(walker)
            finish(walker)
        except Exception as error:
            return Failure(seed, setting, list(steps), lines, error)
        finally:
            if walker is not None:
                walker.close()
    return None


def replay(failure: Failure, setting: Setting, steps: list[Step]) -> Failure | None:
    def go(walker: Walker) -> None:
        for name, *arguments in steps:
            _take(walker, VERBS[name], arguments)

    return _attempt(failure.seed, setting, steps, go)


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
