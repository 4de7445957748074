"""How results are shown: a part of them, so that showing never costs what reading all would.

Up to `SORTED_MAX` facts are sorted first. Of more, the first in the order of storage are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from deltalog.engines.base import Changed, LazyRows
from deltalog.language.ast import Row, Value
from deltalog.language.values import plain_text, sort_key

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

SORTED_MAX = 1_000
TEXT_ROWS = 10
HTML_ROWS = 20
HTML_RELATIONS = 100
CELL_LENGTH_MAX = 200


def some_rows(rows: Changed, count: int) -> list[Row]:
    """Return up to `count` of the rows: the smallest, or if there are many any of them."""
    if len(rows) <= SORTED_MAX:
        return sorted(rows, key=sort_key)[:count]
    return rows.first(count) if isinstance(rows, LazyRows) else list(islice(rows, count))


def html_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Value]], left_out: int = 0
) -> str:
    """Return a table with a title, and with how many rows it leaves out."""
    lines = [f"<p>{escape(title)}</p>", "<table>", _table_row("th", header)]
    lines += [_table_row("td", list(map(_cell_text, row))) for row in rows]
    lines.append("</table>")
    if left_out:
        lines.append(f"<p>… {left_out:,} more</p>")
    return "\n".join(lines)


def database_html(database: MemoryDatabase) -> str:
    """Return the relations of a database, and how many facts each has, where that is known."""
    known = database.relations
    rows = []
    for name in islice(sorted(known), HTML_RELATIONS):
        relation = known[name]
        columns = ", ".join(f"{c.name}: {c.type}{'?' * c.nullable}" for c in relation.columns)
        rows.append((f"{name}({columns})", relation.kind, _fact_count(database, name)))
    return html_table(repr(database), ("relation", "kind", "facts"), rows, len(known) - len(rows))


def _fact_count(database: MemoryDatabase, name: str) -> str:
    """How many facts a relation has; of a virtual view, and where counting is work, nothing."""
    if name not in database.model.stored:
        return "virtual"
    return f"{database.engine.size(name):,}" if database.engine.capabilities.has_samples else ""


def _table_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _cell_text(value: Value) -> str:
    text = "null" if value is None else plain_text(value)
    return text if len(text) <= CELL_LENGTH_MAX else text[: CELL_LENGTH_MAX - 1] + "…"
