"""Comparisons and equations of a rule, solved for a variable where that is exact.

T = F + 2, T known: F is T - 2            Q + 1 < 10: it changes from true to false at Q = 9
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from deltalog.engines.scalars import comparison_holds, function_value
from deltalog.language.ast import Comparison, Constant, Expression, Operation, Value, Variable
from deltalog.language.walk import variable_names

Binding = Mapping[str, Value]
ORDERS = ("<", "<=", ">", ">=")


def compared_with(tests: Iterable[Comparison], name: str, binding: Binding) -> list[Value]:
    """The values of a variable at which comparisons by order change from false to true.

    `Q + 1 < 10` changes at 9; where that is not exact, there are none.
    """
    found: dict[Value, None] = {}
    for test in tests:
        free = {each for each in variable_names(test) if each not in binding}
        if test.operator in ORDERS and free == {name}:
            found |= dict.fromkeys(solve_equation(test, name, binding))
    return list(found)


def determine_variables(
    binding: dict[str, Value], tests: Sequence[Comparison]
) -> dict[str, Value] | None:
    """The binding with variables that equations determine; None if a test fails already."""
    found = dict(binding)
    while True:
        size = len(found)
        for test in tests:
            free = [name for name in variable_names(test) if name not in found]
            if not free and not is_passed(test, found):
                return None
            if len(free) == 1 and test.operator == "=":
                for value in solve_equation(test, free[0], found):
                    found[free[0]] = value
        if len(found) == size:
            return found


def solve_equation(test: Comparison, name: str, binding: Binding) -> Iterator[Value]:
    """The value that makes an equation true, if there is exactly one and it can be computed."""
    for side, other in ((test.left, test.right), (test.right, test.left)):
        if name in variable_names(side) and name not in variable_names(other):
            value = value_of(other, binding)
            if isinstance(side, Variable) and not isinstance(other, Operation):
                yield value  # which may be null
                return
            solved = None if value is None else _invert_side(side, name, value, binding)
            if solved is not None:
                yield solved
            return


def _invert_side(side: Expression, name: str, value: Value, binding: Binding) -> Value:
    """The value of a variable with which an expression has this value; None if not exact."""
    if isinstance(side, Variable):
        return value
    if not isinstance(side, Operation) or side.type not in ("int", "decimal"):
        return None
    if side.function == "-" and len(side.arguments) == 1:
        return _invert_side(
            side.arguments[0], name, function_value("-", side.type, (value,)), binding
        )
    if side.function not in ("+", "-", "*") or len(side.arguments) != 2:
        return None
    left, right = side.arguments
    is_left = name in variable_names(left)
    if is_left and name in variable_names(right):
        return None
    known = value_of(right if is_left else left, binding)
    if side.function == "*":
        if not isinstance(known, int) or not isinstance(value, int) or not known or value % known:
            return None
        return _invert_side(left if is_left else right, name, value // known, binding)
    if side.function == "+":
        operands: tuple[Value, Value] = (value, known)
    else:
        operands = (value, known) if is_left else (known, value)
    back = "+" if side.function == "-" and is_left else "-"
    inner = function_value(back, side.type, operands)
    return None if inner is None else _invert_side(left if is_left else right, name, inner, binding)


def is_passed(test: Comparison, binding: Binding) -> bool:
    if any(name not in binding for name in variable_names(test)):
        return True  # not yet known
    sides = [(side, value_of(side, binding)) for side in (test.left, test.right)]
    if any(value is None and isinstance(side, Operation) for side, value in sides):
        return False  # an operation without a value; a variable or constant may be null
    return comparison_holds(test.operator, sides[0][1], sides[1][1])


def value_of(expression: Expression, binding: Binding) -> Value:
    match expression:
        case Constant(value=value):
            return value
        case Variable(name=name):
            return binding[name]
        case Operation(function=function, arguments=arguments, type=type_):
            return function_value(
                function, str(type_), [value_of(each, binding) for each in arguments]
            )
