"""Grammars with the tables of their parsers, which are kept beside the byte code.

To make the tables of a grammar takes as long as to import this package, so they are made once.
Where Python writes no byte code, or the folder is read only, every process makes them. Kept tables
carry a digest of the grammar and the version of the parser; others are made anew.
"""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from lark import Lark, Transformer


def load_grammar(folder: Path, builder: Transformer[Any, Any]) -> Lark:
    """Return the parser of a folder's `grammar.lark`, whose nodes `builder` makes."""
    path = folder / "grammar.lark"
    return Lark(
        path.read_text("utf-8"), parser="lalr", lexer="basic", start="statement",
        transformer=builder, maybe_placeholders=True, cache=_kept_tables(path),
    )  # fmt: skip


def _kept_tables(path: Path) -> str | bool:
    if sys.dont_write_bytecode:
        return False
    return str(Path(cache_from_source(str(path))).with_suffix(".lark"))
