"""A durable subscription of a copy: the service keeps what lies behind its last acknowledgement.

    PUT …/NAME  ─▶  POST …/NAME/claim  ─▶  generation 3  ─▶  POST …/NAME/ack, each time

The offset is acknowledged after the copy is stored. If the client ends in between, it acknowledges
more the next time; nothing is lost, and nothing is applied twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from deltalog.client.calls import Call


class DurableSubscription:
    """The calls of one named subscription, and its generation once it is claimed."""

    def __init__(self, name: str, view: str, selection: Mapping[str, str]) -> None:
        self._path = f"/v1/subscriptions/{quote(name, safe='')}"
        prefix = f"{view}."
        self._definition: dict[str, Any] = {
            "view": view,
            "bindings": {
                each.removeprefix(prefix): value
                for each, value in selection.items()
                if each.startswith(prefix)
            },
        }
        if "every_seconds" in selection:
            self._definition["every_seconds"] = float(selection["every_seconds"])
        if "every_commits" in selection:
            self._definition["every_commits"] = int(selection["every_commits"])
        self._generation: int | None = None
        self._acknowledged: str | None = None

    @property
    def is_claimed(self) -> bool:
        return self._generation is not None

    def definition(self) -> Call[dict[str, Any]]:
        return Call("PUT", self._path, dict, self._definition)

    def claim(self) -> Call[None]:
        """Begin a generation of this client; one before it can acknowledge no more."""
        return Call("POST", f"{self._path}/claim", self._record_claim, {"takeover": True})

    def _record_claim(self, document: Mapping[str, Any]) -> None:
        self._generation = document["generation"]

    def acknowledgement(self, offset: str | None) -> Call[None] | None:
        """The call that acknowledges an offset; None if that has been done."""
        if offset is None or offset == self._acknowledged:
            return None
        body = {"generation": self._generation, "offset": offset}

        def acknowledged(_: Any) -> None:
            self._acknowledged = offset

        return Call("POST", f"{self._path}/ack", acknowledged, body)
