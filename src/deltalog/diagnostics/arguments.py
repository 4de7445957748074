"""Arguments of functions that a person calls: one of the wrong kind is an error with a code.

check_argument(isinstance(facts, Mapping), "facts", facts, "give a mapping")
"""

from __future__ import annotations

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError


def check_flag(name: str, value: object) -> None:
    """Raise unless the value is a bool: a text like `"no"` would count as true."""
    check_argument(isinstance(value, bool), name, value, "give `True` or `False`")


def check_text(name: str, value: object, hint: str) -> None:
    """Raise unless the value is a text, and more than spaces and stops."""
    check_argument(isinstance(value, str) and value.strip(" \t\n.") != "", name, value, hint)


def check_argument(is_fit: bool, name: str, value: object, hint: str) -> None:
    """Raise a `DataError` that shows the value and says what to give instead, unless it fits."""
    if not is_fit:
        shown = repr(value)
        shown = shown if len(shown) <= 80 and "\n" not in shown else f"a {type(value).__name__}"
        raise DataError([catalogue.WRONG_ARGUMENT.at(None, name=name, value=shown, hint=hint)])
