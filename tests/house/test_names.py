"""Names say what is done with what: a call is read without the module of its function.

Every function of a module and every private method has a name of two words or more: a verb with its
object, as `write_commit`, or the noun of what it returns, as `key_columns`. Public methods may have
one word: they are read with their object, as `relation.clear()`. So may functions whose names are
not chosen where they are defined: they are found or listed here, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_words import SOURCE, modules, name_of, parsed

import deltalog
from deltalog.cli.main import app
from deltalog.rewrites.pipeline import EVERY_PASS

Function = ast.FunctionDef | ast.AsyncFunctionDef

EXCEPTIONS = {
    "cli/main.py": ({"main"}, "entry points of installed commands are called so"),
    "engines/embedded/kernels/memory.py": (
        {"load32", "load64", "store32", "store64"},
        "instructions are called so: a verb, and the size of its object",
    ),
    "runtime/explain.py": ({"explain"}, "the method `explain` of all databases"),
    "runtime/realize.py": ({"realize"}, "the method `realize` of all databases"),
}
"""Functions of one word, by file, with the reason."""


def is_one_word(name: str) -> bool:
    """
    >>> is_one_word("_changes"), is_one_word("net_changes"), is_one_word("__len__")
    (True, False, False)
    """
    return "_" not in name.strip("_") and not name.startswith("__")


def commands() -> Iterator[tuple[str, str]]:
    """The functions of the command line, which have the names that users type."""
    for each in (app, *(group.typer_instance for group in app.registered_groups)):
        for command in each.registered_commands if each is not None else ():
            assert command.callback is not None
            module = command.callback.__module__.removeprefix("deltalog.")
            yield f"{module.replace('.', '/')}.py", command.callback.__name__


def is_public(path: Path, name: str) -> bool:
    """Whether users call it: `deltalog.connect`."""
    module = ".".join(("deltalog", *path.relative_to(SOURCE).with_suffix("").parts))
    known = getattr(deltalog, name, None) if name in deltalog.__all__ else None
    return getattr(known, "__module__", None) == module.removesuffix(".__init__")


def is_route(function: Function) -> bool:
    """Whether an operation of the HTTP interface has the name of the function."""
    return any(ast.unparse(each).startswith("router.") for each in function.decorator_list)


def is_pass(path: Path, name: str) -> bool:
    """Whether it is the rewrite of its file: users name passes in `explain --after`."""
    return name_of(path) == f"rewrites/{name}.py" and name in EVERY_PASS


def functions(tree: ast.Module) -> Iterator[Function]:
    """Functions of a module, and private methods."""
    for node in ast.walk(tree):
        for each in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
            if isinstance(each, Function) and (node is tree or each.name.startswith("_")):
                yield each


COMMANDS = frozenset(commands())


def may_be_one_word(path: Path, function: Function) -> bool:
    name, file = function.name, name_of(path)
    if name in EXCEPTIONS.get(file, ((), ""))[0] or (file, name) in COMMANDS:
        return True
    return is_public(path, name) or is_route(function) or is_pass(path, name)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_functions_have_names_of_two_words(path: Path) -> None:
    found = {
        each.name
        for each in functions(parsed(path))
        if is_one_word(each.name) and not may_be_one_word(path, each)
    }
    assert found == set()


def test_every_exception_is_one() -> None:
    for name, (listed, reason) in EXCEPTIONS.items():
        assert listed <= {each.name for each in functions(parsed(SOURCE / name))}, name
        assert all(map(is_one_word, listed)), name
        assert reason
