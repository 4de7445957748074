"""Engines are asked by what they declare, never by what methods they happen to have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from documents import ROOT

from deltalog.engines import extensions

SOURCE = ROOT / "src" / "deltalog"
PROTOCOLS = {name for name in vars(extensions) if name.endswith("Engine")}


def questions(text: str) -> Iterator[str]:
    """Calls that ask an engine what it has, or anything whether it is some engine."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            asked = ast.unparse(node.args[0]).rpartition(".")[2].lstrip("_")
            is_engine = asked == "engine" or asked.endswith("_engine")
            kinds = {ast.unparse(kind) for kind in ast.walk(node.args[1]) if _is_name(kind)}
            if (node.func.id in {"hasattr", "getattr"} and is_engine) or (
                node.func.id == "isinstance" and (is_engine or kinds & PROTOCOLS)
            ):
                yield ast.unparse(node)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def test_no_engine_is_asked_what_it_has() -> None:
    found = {
        str(path.relative_to(SOURCE)): asked
        for path in SOURCE.rglob("*.py")
        if (asked := list(questions(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_questions_are_noticed() -> None:
    asked = "hasattr(self.engine, 'x'); isinstance(made, RankedEngine | int); getattr(_engine, y)"
    assert len(list(questions(asked))) == 3
    assert list(questions("hasattr(rows, 'x'); is_ranked(engine); isinstance(rows, set)")) == []
