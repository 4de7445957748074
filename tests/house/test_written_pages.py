"""Pages that are made from the code and the case files say what these say now.

`make update-cases` writes them. This module comes last by its name, so that by then the case files
have been brought up to date.
"""

from __future__ import annotations

import pytest
from documents import DOCS, check_page
from error_reference import error_reference
from pictures import PICTURES


def test_errors_page() -> None:
    check_page(DOCS / "errors.md", error_reference())


def test_cli_page() -> None:
    reference = pytest.importorskip("deltalog.cli.reference", reason="there is no command line")
    check_page(DOCS / "cli.md", reference.reference())


@pytest.mark.parametrize("name", PICTURES)
def test_picture(name: str) -> None:
    check_page(DOCS / "pictures" / name, PICTURES[name]())


def test_every_picture_is_made_here() -> None:
    assert {path.name for path in (DOCS / "pictures").iterdir()} == set(PICTURES)
