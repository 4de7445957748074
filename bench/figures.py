"""Figures in few characters: three digits, and a letter for thousands and millions."""

from __future__ import annotations

from bench.measure import Spread

NOTHING = "–"


def compact(number: float) -> str:
    """
    >>> compact(0), compact(0.0431), compact(7.25), compact(38), compact(25_713), compact(3.3e6)
    ('0', '0.043', '7.2', '38', '25.7k', '3.3M')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * unit:
            return f"{number / unit:.{0 if number >= 100 * unit else 1}f}{letter}"
    if number == int(number) or abs(number) >= 99.5:
        return f"{number:.0f}"
    return f"{number:.1f}" if abs(number) >= 1 else f"{number:.2g}"


def pair(spread: Spread | None) -> str:
    """Median and mean."""
    if spread is None:
        return NOTHING
    return f"{compact(spread.median)}/{compact(spread.mean)}"


def ratio(above: float, below: float) -> str:
    """
    >>> ratio(300, 2), ratio(1, 0)
    ('150×', '–')
    """
    return f"{compact(above / below)}×" if below else NOTHING


def percent(share: float) -> str:
    """
    >>> percent(0.001), percent(0.275), percent(1)
    ('0.1 %', '28 %', '100 %')
    """
    return f"{share * 100:.2g} %" if share < 0.995 else f"{share * 100:.0f} %"
