"""Where the command is, what most tests run it on, and a short way to write files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

GRAPH = """\
base edge(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Y) :- edge(X, Z), path(Z, Y).
"""
COMMAND = Path(sys.executable).with_name("deltalog")

Call = Callable[..., Any]


def write(name: str, text: str | bytes) -> str:
    """Write a file and return its name."""
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name
