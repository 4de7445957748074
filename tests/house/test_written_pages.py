"""Pages that are made from the code and the case files say what these say now.

`make update-cases` writes them. This module comes last by its name, so that by then the case files
have been brought up to date.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import DOCS, PAGES, check_block, check_page
from error_reference import error_reference
from http_reference import http_reference
from pictures import PICTURES, mermaid_blocks


def test_errors_page() -> None:
    check_page(DOCS / "errors.md", error_reference())


def test_cli_page() -> None:
    reference = pytest.importorskip("deltalog.cli.reference", reason="there is no command line")
    check_page(DOCS / "cli.md", reference.reference_page())


def test_http_page() -> None:
    check_page(DOCS / "http.md", http_reference())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_graphs(page: Path) -> None:
    found = list(mermaid_blocks(page))
    made = PICTURES.get(page, [])
    assert len(found) == len(made), "every Mermaid block is made in `tests/house/pictures.py`"
    for (program, block), make in zip(found, made, strict=True):
        check_block(block, make(program))
