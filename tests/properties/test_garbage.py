"""Whatever is typed, the answer is a result or a diagnostic, never anything else."""

from __future__ import annotations

import random
from math import inf
from pathlib import Path

import pytest
from effort import IS_FUZZ

import deltalog
from casefiles import CASES
from deltalog.diagnostics.report import DeltalogError
from deltalog.runtime.limits import Limits

SEEDS = [path.read_text(encoding="utf-8") for path in sorted(CASES.rglob("*.dl"))]
SEEDS += [
    path.read_text(encoding="utf-8").split("=== program\n")[1].split("\n=== ")[0]
    for path in sorted((CASES / "programs").rglob("*.case"))
]
PIECES = [
    *"()[]{}.,;:?%/*+-=<>!_\"'\\ \n\t\x00",
    *(":-", "not", "p(X)", "sum(X)", "base ", "1e9", 'include "x".', "/*", "*/", "\u202e", "é"),
    *("😀", "mod", "null", 'date"', "count()", "X", "-"),
]
INPUTS = 20_000 if IS_FUZZ else 10_000
LIMITS = Limits(rounds_max=50, facts_max=2_000, seconds_max=inf)


def _random_text(chance: random.Random) -> str:
    data = bytes(chance.randrange(256) for _ in range(chance.randrange(120)))
    return data.decode("utf-8", errors="replace" if chance.random() < 0.5 else "ignore")


def _pieces(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(40)))


def _truncated(chance: random.Random) -> str:
    text = chance.choice(SEEDS)[:3000]
    return text[: chance.randrange(len(text) + 1)]


def _mutated(chance: random.Random) -> str:
    text = chance.choice(SEEDS)[:1500]
    for _ in range(chance.randrange(1, 6)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 1, 5, 20)))
        text = text[:start] + chance.choice(PIECES) + text[end:]
    return text


MAKERS = (_random_text, _pieces, _truncated, _mutated)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__.strip("_"))
def test_garbage(maker: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(None if IS_FUZZ else maker.__name__)
    outcomes = {"program": 0, "diagnostic": 0}
    for _ in range(INPUTS // len(MAKERS)):
        text = maker(chance)
        try:
            deltalog.connect(program=text + "\n", limits=LIMITS)
            outcomes["program"] += 1
        except DeltalogError as error:
            outcomes["diagnostic"] += bool(error.diagnostics and str(error))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for {text!r}") from error
    assert sum(outcomes.values()) == INPUTS // len(MAKERS)
    assert outcomes["diagnostic"] > 0
