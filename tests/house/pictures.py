"""The pictures in `docs/pictures`, each made of the program beside which a page shows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from documents import DOCS, blocks

import deltalog
from deltalog.cli.network_picture import network_picture
from deltalog.runtime.network import network

_IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def images(page: Path) -> list[Path]:
    """The pictures that a page shows."""
    return [page.parent / name for name in _IMAGE.findall(page.read_text(encoding="utf-8"))]


def _program_beside(page: Path, picture: str) -> str:
    """The last program above the picture."""
    place = page.read_text(encoding="utf-8").index(f"({picture})")
    return [b.text for b in blocks(page) if b.language == "deltalog" and b.end < place][-1]


def inventory_network() -> str:
    """The network of the inventory, after a transaction that `docs/propagation.md` tells."""
    program = _program_beside(DOCS / "propagation.md", "pictures/network.svg")
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
    return network_picture(network(database), database.relations, "Inventory")


PICTURES: dict[str, Callable[[], str]] = {"network.svg": inventory_network}
