"""Shapes of pipelines: all that decides about the machine code of one, and no address."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lookup:
    """A match or absent step; of a constant, the slot is None."""

    operation: int
    mode: int
    arity: int
    is_overlay: bool
    has_minus: bool
    has_plus: bool
    window: int
    occurrence: int
    is_ranked: bool
    keys: tuple[tuple[int, int | None], ...]
    binds: tuple[tuple[int, int], ...]
    sames: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Check:
    """A test or an assignment, computed by a kernel from what is in the slots."""

    operation: int
    reads: tuple[int, ...]
    assigned: int | None = None


@dataclass(frozen=True)
class Comparison:
    """A test of two ints, or of words that are equal or not; a side is a slot, or None."""

    operator: int
    left: int | None
    right: int | None


@dataclass(frozen=True)
class Shape:
    steps: tuple[Lookup | Check | Comparison, ...]
    deciding: int
    outputs: tuple[int | None, ...]
    mode: int
    is_once: bool
