"""Every statement on the page about AMOSQL is carried out, in order, and returns what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from documents import DOCS, Block, blocks, check_block, table_rows

import deltalog
from deltalog.cli.change_lines import change_lines, firing_lines
from deltalog.language.amosql.schema import LITERAL_TYPES
from deltalog.language.ast import Program
from deltalog.language.printer import print_program
from deltalog.runtime.amosql.session import Selected
from deltalog.source import Source

PAGE = DOCS / "amosql.md"


def pairs() -> Iterator[tuple[Block, Block | None]]:
    """Statements, with the output that stands below them."""
    found = blocks(PAGE)
    for block, following in zip(found, [*found[1:], None], strict=False):
        if block.language == "amosql":
            is_shown = following is not None and following.language == "output"
            yield block, following if is_shown else None


def test_statements_return_what_the_page_shows() -> None:
    database = deltalog.connect(program=Program(), engine="reference")
    lines: list[str] = []

    @database.action("order")
    def order(rows: list[tuple[Any, ...]]) -> None:
        lines.extend(f"order{row}" for row in rows)

    session = deltalog.AmosqlSession(database)
    for block, shown in pairs():
        lines.clear()
        before = print_program(database.model.checked.program).splitlines()
        try:
            for outcome in session.outcomes(Source("<prompt>", block.text)):
                lines.extend(_lines(outcome))
        except deltalog.DeltalogError as error:
            lines.append(str(error))
        actual = "".join(f"{line}\n" for line in lines)
        if shown is not None and "rules" in shown.words:
            after = print_program(replace(database.model.checked.program, facts=()))
            check_block(
                shown, "".join(f"{line}\n" for line in after.splitlines() if line not in before)
            )
        elif shown is not None:
            check_block(shown, actual)
        else:
            assert "error[" not in actual, f"{block.place}: {actual}"
    assert database.audit() == ()


def _lines(outcome: Selected | deltalog.ChangeSet) -> Iterator[str]:
    if isinstance(outcome, Selected):
        yield from (", ".join(map(str, row)) for row in outcome.rows)
        return
    yield from (line.plain for line in change_lines(outcome))
    yield from (line.plain for line in firing_lines(outcome))


def test_the_table_of_types_is_complete() -> None:
    cells = [(a.strip("`"), b.strip("`")) for a, b in table_rows(PAGE, "Types and objects")]
    assert dict(cells) == LITERAL_TYPES
