"""Programs of many rules, the same for the same arguments: how a large program looks.

Views stand in layers over base relations and over each other. A tenth of the rules are aggregates,
a tenth recursive, a fifth have a negation; the others join two to four relations, and many views
have two rules. Most read what was defined shortly before, some what is far below, and a few
relations are read by many.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

BASE = 40


def many_rules(count: int, seed: int = 31) -> str:
    """A program of so many rules.

    >>> many_rules(50) == many_rules(50), many_rules(50).count(":-")
    (True, 50)
    """
    draw = random.Random(seed)
    known = [f"table_{number}" for number in range(BASE)]
    lines = [f"base {name}(source: int, target: int, amount: int)." for name in known]
    made = 0
    while made < count:
        kind = draw.choices(KINDS, WEIGHTS)[0]
        rules = list(kind(f"view_{made}", known, draw))[: count - made]
        lines += rules
        known.append(f"view_{made}")
        made += len(rules)
    return "\n".join(lines)


def _read(known: list[str], draw: random.Random) -> str:
    """Mostly something recent, sometimes anything, sometimes one of a few that many read."""
    chance = draw.random()
    if chance < 0.6:
        return draw.choice(known[-20:])
    return draw.choice(known[:8] if chance < 0.7 else known)


def _chain(known: list[str], draw: random.Random, atoms: int) -> str:
    """A join of so many atoms from X0 on."""
    return ", ".join(f"{_read(known, draw)}(X{i}, X{i + 1}, N{i})" for i in range(atoms))


def _join(view: str, known: list[str], draw: random.Random) -> Iterator[str]:
    for _ in range(draw.choice((1, 1, 2))):
        atoms = draw.choice((2, 2, 3, 4))
        test = f", N0 > {draw.randrange(100)}" if draw.random() < 0.3 else ""
        yield f"{view}(X0, X{atoms}, N0 + N1) :- {_chain(known, draw, atoms)}{test}."


def _copy(view: str, known: list[str], draw: random.Random) -> Iterator[str]:
    for _ in range(draw.choice((1, 2, 3))):
        yield f"{view}(X, Y, N) :- {_read(known, draw)}(X, Y, N), N != {draw.randrange(100)}."


def _negation(view: str, known: list[str], draw: random.Random) -> Iterator[str]:
    hidden = "_" if draw.random() < 0.5 else "N0"
    lacking = _read(known, draw)
    yield f"{view}(X0, X2, N1) :- {_chain(known, draw, 2)}, not {lacking}(X0, X2, {hidden})."


def _aggregate(view: str, known: list[str], draw: random.Random) -> Iterator[str]:
    function = draw.choice(("sum(N0)", "count()", "max(N0)"))
    yield f"{view}(X0, X1, {function}) :- {_chain(known, draw, draw.choice((1, 2)))}."


def _recursion(view: str, known: list[str], draw: random.Random) -> Iterator[str]:
    step = _read(known, draw)
    yield f"{view}(X, Y, N) :- {step}(X, Y, N)."
    yield f"{view}(X, Z, M) :- {view}(X, Y, N), {step}(Y, Z, M)."


KINDS: tuple[Callable[[str, list[str], random.Random], Iterator[str]], ...] = (
    _join,
    _copy,
    _negation,
    _aggregate,
    _recursion,
)
WEIGHTS = (35, 15, 20, 10, 5)
