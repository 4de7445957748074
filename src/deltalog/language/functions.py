"""The operators and functions of the language: names, operand types, result types.

A signature is found after operands have been brought to one type: an `int` widens to `float` or
`decimal` beside one, nothing else converts by itself. What the functions compute is defined in
`engines/scalars.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

NUMERIC = ("int", "float", "decimal")
ORDERED = (*NUMERIC, "str", "date", "timestamp")
CONVERSIONS = ("int", "float", "decimal", "str", "date")


@dataclass(frozen=True)
class Signature:
    """One way to call a function; `operands` are exact types."""

    operands: tuple[str, ...]
    result: str


def _uniform_signatures(arity: int, *types: str) -> tuple[Signature, ...]:
    return tuple(Signature((type_,) * arity, type_) for type_ in types)


FUNCTIONS: dict[str, tuple[Signature, ...]] = {
    "+": (*_uniform_signatures(2, *NUMERIC), Signature(("date", "int"), "date")),
    "-": (
        *_uniform_signatures(2, *NUMERIC),
        Signature(("date", "int"), "date"),
        Signature(("date", "date"), "int"),
        *_uniform_signatures(1, *NUMERIC),
    ),
    "*": _uniform_signatures(2, *NUMERIC),
    "/": _uniform_signatures(2, *NUMERIC),
    "mod": _uniform_signatures(2, "int"),
    "abs": _uniform_signatures(1, *NUMERIC),
    "round": tuple(Signature((type_,), "int") for type_ in NUMERIC),
    "least": _uniform_signatures(2, *ORDERED),
    "greatest": _uniform_signatures(2, *ORDERED),
    "length": (Signature(("str",), "int"),),
    "lower": _uniform_signatures(1, "str"),
    "upper": _uniform_signatures(1, "str"),
    "trim": _uniform_signatures(1, "str"),
    "concat": _uniform_signatures(2, "str"),
    "replace": _uniform_signatures(3, "str"),
    "substring": (Signature(("str", "int", "int"), "str"),),
    "year": (Signature(("date",), "int"), Signature(("timestamp",), "int")),
    "month": (Signature(("date",), "int"), Signature(("timestamp",), "int")),
    "day": (Signature(("date",), "int"), Signature(("timestamp",), "int")),
    "int": tuple(Signature((type_,), "int") for type_ in (*NUMERIC, "str")),
    "float": tuple(Signature((type_,), "float") for type_ in (*NUMERIC, "str")),
    "decimal": tuple(Signature((type_,), "decimal") for type_ in (*NUMERIC, "str")),
    "str": tuple(
        Signature((type_,), "str")
        for type_ in ("int", "float", "decimal", "bool", "date", "timestamp", "str")
    ),
    "date": tuple(Signature((type_,), "date") for type_ in ("date", "timestamp", "str")),
}

GENERATED: dict[str, tuple[Signature, ...]] = {
    "high__": _uniform_signatures(1, "int"),
    "low__": _uniform_signatures(1, "int"),
    "whole__": _uniform_signatures(2, "int"),
    "exact__": tuple(Signature((type_,), "exact") for type_ in ("float", "decimal")),
    "ratio__": (Signature(("int", "int", "int"), "float"), Signature(("exact", "int"), "float")),
    "decimal_ratio__": (Signature(("exact", "int"), "decimal"),),
    "+": _uniform_signatures(2, "exact"),
    "-": _uniform_signatures(2, "exact"),
    "float": (Signature(("exact",), "float"),),
    "decimal": (Signature(("exact",), "decimal"),),
}
"""Functions for generated rules only: the halves and the exact numbers in which sums are kept.

Of a group's sum of ints the halves H and L are kept, of other sums one exact number.
"""

INFIX = ("+", "-", "*", "/", "mod")


def widened_type(left: str, right: str) -> str | None:
    """The type two operands meet in, or None when they do not meet."""
    if left == right:
        return left
    pair = {left, right}
    if pair == {"int", "float"}:
        return "float"
    if pair == {"int", "decimal"}:
        return "decimal"
    return None


def find_signature(function: str, operands: tuple[str, ...]) -> Signature | None:
    """The signature that fits these operand types, widening `int` where that is needed."""
    known = (*FUNCTIONS.get(function, ()), *GENERATED.get(function, ()))
    candidates = [s for s in known if len(s.operands) == len(operands)]
    for candidate in candidates:
        if candidate.operands == operands:
            return candidate
    for candidate in candidates:
        pairs = zip(operands, candidate.operands, strict=True)
        if all(widened_type(given, wanted) == wanted for given, wanted in pairs):
            return candidate
    return None


def arities_of(function: str) -> tuple[int, ...]:
    return tuple(sorted({len(s.operands) for s in FUNCTIONS[function]}))


AGGREGATE_OPERANDS: dict[str, tuple[str, ...]] = {
    "sum": NUMERIC,
    "avg": NUMERIC,
    "min": (*ORDERED, "bool"),
    "max": (*ORDERED, "bool"),
}


def aggregate_result(function: str, operand: str | None) -> str | None:
    """The type of an aggregate, or None when it is not defined for the operand type."""
    if function == "count":
        return "int"
    if operand not in (*AGGREGATE_OPERANDS[function], "exact"):
        return None
    if function == "avg":
        return "decimal" if operand == "decimal" else "float"
    return operand
