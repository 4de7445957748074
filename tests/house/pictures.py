"""The graphs on the pages: Mermaid blocks, each made of the program above it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from documents import DOCS, ROOT, Block, blocks

import deltalog
from deltalog.graphs.mermaid import mermaid_text
from deltalog.graphs.network_graph import network_graph
from deltalog.graphs.proof_graph import answer_graph
from deltalog.runtime.network import network_of


def inventory_network(program: str) -> str:
    """The network of the inventory, after the transaction described in `docs/propagation.md`."""
    database = deltalog.connect(
        program=program,
        strategy="differencing",
        facts={
            "quantity": [("bolt", 200), ("nut", 400)],
            "uses": [("bolt", 20), ("nut", 30)],
            "delay": [("bolt", 2), ("nut", 3)],
            "reserve": [("bolt", 100), ("nut", 200)],
        },
    )
    with database.transaction() as tx:
        tx.set("quantity", ("bolt", 120))
        tx.set("reserve", ("nut", 250))
    assert tx.delta.inserted["low"] == {("bolt",)}
    return mermaid_text(network_graph(network_of(database), database.model.checked, ""))


def permission_proof(_: str) -> str:
    """The proof that the first example of `docs/why.md` prints."""
    example = next(block for block in blocks(DOCS / "why.md") if block.language == "python")
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()):
        exec(example.text, names)
    return mermaid_text(answer_graph(names["proof"])).split("---\n")[-1]


PICTURES: dict[Path, list[Callable[[str], str]]] = {
    ROOT / "README.md": [inventory_network],
    DOCS / "propagation.md": [inventory_network],
    DOCS / "why.md": [permission_proof],
}


def mermaid_blocks(page: Path) -> Iterator[tuple[str, Block]]:
    """The Mermaid blocks of a page, each with the last program above it."""
    program = ""
    for block in blocks(page):
        if block.language == "deltalog":
            program = block.text
        elif block.language == "mermaid":
            yield program, block
