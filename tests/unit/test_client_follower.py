"""The state machine of a client: snapshots in parts, repeats, and a copy that lacks a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltalog.client.follower import Follower
from deltalog.client.rows import RowFormat
from deltalog.client.stored_copy import StoredCopy
from deltalog.language.ast import Column
from deltalog.service.offsets import Offset

HISTORY = "6a1b2c3d9f00e1d2"
FORMAT = RowFormat("edge", (Column("src", "int"), Column("dst", "int")))
Message = dict[str, Any]


def at(version: int, part: int | None = None) -> str:
    return str(Offset(HISTORY, version) if part is None else Offset(HISTORY, version, part))


def change(operation: str, version: int, *row: int) -> Message:
    value = {"src": row[0], "dst": row[1]}
    headers = {"operation": operation, "txid": str(version)}
    return {"type": "edge", "key": str(list(row)), "value": value, "headers": headers}


def control(kind: str, version: int) -> Message:
    return {"headers": {"control": kind, "offset": at(version)}}


def snapshot(version: int, *rows: tuple[int, int]) -> list[Message]:
    inside = [change("insert", version, *row) for row in rows]
    ends = control("reset", version), control("snapshot-start", version)
    return [*ends, *inside, control("snapshot-end", version)]


def started(file: Path | None = None) -> Follower:
    made = Follower("edge", {}, StoredCopy(file, "edge"))
    made.row_format = FORMAT
    return made


def test_a_snapshot_counts_when_its_end_has_arrived() -> None:
    follower = started()
    messages = snapshot(3, (1, 2), (2, 3))
    assert follower.received(messages[:3], at(3, 1)) == []
    assert follower.version is None
    assert follower.parameters(is_live=False) == {"offset": at(3, 1)}
    (delta,) = follower.received(messages[3:], at(3))
    assert (delta.version, delta.is_snapshot) == (3, True)
    assert delta.inserted == ((1, 2), (2, 3))
    assert follower.version == 3


def test_commits_are_apart_and_repeats_are_dropped() -> None:
    follower = started()
    follower.received(snapshot(3, (1, 2)), at(3))
    messages = [change("insert", 4, 2, 3), change("delete", 5, 1, 2), change("insert", 5, 1, 5)]
    first, second = follower.received(messages, at(5))
    assert (first.inserted, first.deleted) == (((2, 3),), ())
    assert (second.inserted, second.deleted) == (((1, 5),), ((1, 2),))
    assert follower.received(messages, at(5)) == []
    assert set(follower.copy.rows.values()) == {(2, 3), (1, 5)}


def test_an_empty_answer_moves_the_offset(tmp_path: Path) -> None:
    follower = started(tmp_path / "edge.copy")
    follower.received(snapshot(3, (1, 2)), at(3))
    assert follower.received([], at(9)) == []
    follower.copy.close()
    again = started(tmp_path / "edge.copy")
    assert again.version == 9
    assert list(again.copy.rows.values()) == [(1, 2)]


def test_a_copy_that_lacks_a_row_is_read_again_and_the_difference_reported() -> None:
    follower = started()
    follower.received(snapshot(3, (1, 2)), at(3))
    assert follower.received([change("delete", 4, 7, 8)], at(4)) == []
    assert follower.parameters(is_live=False) == {"offset": "-1"}
    assert follower.version == 3
    (delta,) = follower.received(snapshot(4, (1, 2), (2, 3)), at(4))
    assert (delta.inserted, delta.deleted, delta.is_snapshot) == (((2, 3),), (), True)
