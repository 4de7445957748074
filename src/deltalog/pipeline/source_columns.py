"""The columns of a source against those of its relation: the same check with and without Spark.

    op,node,euro            `euros` is missing, `euro` is unknown

Changes of a relation with a key may leave out all other columns: then they delete by key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltalog.analysis.columns import Relation
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import similar_name
from deltalog.source import Source, Span

HINT = "`columns` renames columns, `ignore` leaves them out"
TEXT_MAX = 200
"""Characters of a value or line in a message."""


@dataclass(frozen=True)
class Place:
    """Something that has columns, and where they are written if they are."""

    source: str
    file: str = ""
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        return (
            f"`{self.file}` of source `{self.source}`" if self.file else f"source `{self.source}`"
        )

    def span(self, words: Sequence[str] = ()) -> Span | None:
        """The first of these words in the text, or all of it."""
        return None if not self.line else line_span(self.file, self.line, self.text, words)


def line_span(file: str, line: int, text: str, words: Sequence[str] = ()) -> Span:
    """A place in a line of a file that is not read as a whole."""
    shown = shorten_text(text.split("\n", 1)[0])
    word = next((each for each in words if each and each in shown), shown)
    start = line - 1 + shown.find(word)
    return Span(Source(file, "\n" * (line - 1) + shown), start, start + len(word))


def shown_path(path: str | Path) -> str:
    """A path as a person who works in this folder writes it."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def leaves_values_out(relation: Relation, found: Collection[str], op: str | None) -> bool:
    """Whether columns are those of changes that only delete, by key."""
    key = {column.name for column in relation.columns if column.key}
    return bool(op and key and len(key) < relation.arity) and {*found} <= {*key, str(op)}


def check_columns(
    place: Place,
    relation: Relation,
    found: Collection[str],
    op: str | None = None,
    *,
    misfits: Sequence[str] = (),
    is_loose: bool = False,
) -> None:
    """Raise a `DataError` that names columns which are missing or unknown, and other `misfits`.

    `op` is a column beside those of the relation. If `is_loose`, rows have columns of their own.
    """
    wanted = [column.name for column in relation.columns]
    needed = [*(wanted if not is_loose else ()), *([op] if op else ())]
    if leaves_values_out(relation, found, op):
        needed = [name for name in needed if name == op or name in key_names(relation)]
    known = {*wanted, *([op] if op else ())}
    missing = [name for name in needed if name not in found]
    unknown = [name for name in found if name not in known and not is_loose]
    reasons = [f"`{name}` is missing" for name in missing]
    reasons += [f"`{name}` is unknown" for name in unknown]
    if reasons or misfits:
        hint = _hint_for_names(place, missing, unknown)
        beside = f", and `{op}`" if op else ""
        words = {"what": str(place), "relation": relation.name, "op": beside}
        span = place.span(unknown)
        reason = ", ".join([*reasons, *misfits])
        raise DataError([catalogue.SOURCE_COLUMNS.at(span, **words, reason=reason, hint=hint)])


def key_names(relation: Relation) -> list[str]:
    return [relation.columns[at].name for at in relation.key]


def _hint_for_names(place: Place, missing: Sequence[str], unknown: Sequence[str]) -> str:
    """Names that were meant: of a file, the setting that renames them."""
    near = {name: found for name in missing if (found := similar_name(name, unknown))}
    if not near:
        return HINT
    if not place.file:
        return f"did you mean `{next(iter(near.values()))}`?"
    renamed = ", ".join(f'{_toml_key(found)} = "{name}"' for name, found in near.items())
    return f"`columns = {{ {renamed} }}` renames; `ignore` leaves columns out"


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def shorten_text(text: str) -> str:
    """A value or line as messages show it."""
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"
