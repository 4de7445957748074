"""Streams over real sockets: modes, headers, offsets, snapshots, deltas."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from streaming import Service, serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import deltalog
from deltalog.service import stream_reading
from deltalog.service.offsets import read_offset
from deltalog.service.streams import StreamTimes
from waiting import HANG_SECONDS, wait_until

CLOSURE = """
    base edge(src: int, dst: int).
    base price(item: str key, amount: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    virtual view back(dst: int, src: int).
    back(Y, X) :- path(X, Y).
    view dear(item: str key, amount: int).
    dear(I, A) :- price(I, A), A > 10.
"""
Message = dict[str, Any]


@pytest.fixture(params=["memory", "file"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    facts = {"edge": [(1, 2), (2, 3)]}
    if request.param == "memory":
        database = deltalog.connect(program=CLOSURE, facts=facts)
    else:
        database = deltalog.connect(tmp_path / "graph.db", program=CLOSURE, facts=facts)
    with serving(database) as running:
        yield running


def read(service: Service, view: str, offset: str = "-1", **more: str) -> httpx.Response:
    return httpx.get(service.stream(view, offset=offset, **more), timeout=HANG_SECONDS)


def next_offset(response: httpx.Response) -> str:
    return response.headers["Stream-Next-Offset"]


def applied(state: dict[str, Any], messages: list[Message]) -> dict[str, Any]:
    """What a client holds after some messages."""
    for message in messages:
        headers = message["headers"]
        if headers.get("control") == "reset":
            state.clear()
        elif headers.get("operation") in ("insert", "update"):
            state[message["key"]] = message["value"]
        elif headers.get("operation") == "delete":
            del state[message["key"]]
    return state


def rows_of(state: dict[str, Any]) -> set[tuple[Any, ...]]:
    return {tuple(value.values()) for value in state.values()}


def operations(response: httpx.Response) -> list[tuple[str, str]]:
    found = []
    for message in response.json():
        headers = message["headers"]
        found.append((headers.get("control") or headers["operation"], message.get("key", "")))
    return found


def test_a_read_from_the_start_is_a_snapshot(service: Service) -> None:
    response = read(service, "path")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["Stream-Up-To-Date"] == "true"
    assert operations(response) == [
        ("reset", ""),
        ("snapshot-start", ""),
        ("insert", "[1,2]"),
        ("insert", "[1,3]"),
        ("insert", "[2,3]"),
        ("snapshot-end", ""),
    ]
    found = read_offset(next_offset(response))
    assert found is not None
    assert found.history == service.host.history
    assert found.version == service.host.version


def test_then_one_delta_for_each_commit_that_changes_the_view(service: Service) -> None:
    start = next_offset(read(service, "path"))
    service.apply(insert={"edge": [(3, 4)]})
    service.apply(insert={"price": [("hat", 5)]})
    service.apply(delete={"edge": [(1, 2)]})
    response = read(service, "path", start)
    assert operations(response) == [
        ("insert", "[1,4]"),
        ("insert", "[2,4]"),
        ("insert", "[3,4]"),
        ("delete", "[1,2]"),
        ("delete", "[1,3]"),
        ("delete", "[1,4]"),
    ]
    version = service.host.version
    txids = [message["headers"]["txid"] for message in response.json()]
    assert txids == [str(version - 2)] * 3 + [str(version)] * 3
    first = response.json()[0]
    assert first["type"] == "path"
    assert first["value"] == {"x": 1, "y": 4}
    gone = response.json()[3]
    assert gone["value"] is None
    assert list(gone["old_value"].values()) == [1, 2]
    assert next_offset(response) == service.host.offset()


def test_any_offset_between_commits_is_valid(service: Service) -> None:
    read(service, "path")
    service.apply(insert={"price": [("hat", 5)]})
    between = service.host.offset()
    service.apply(insert={"edge": [(3, 4)]})
    assert len(read(service, "path", between).json()) == 3
    tail = read(service, "path", service.host.offset())
    assert tail.json() == []
    assert tail.headers["Stream-Up-To-Date"] == "true"


def test_views_with_a_key_report_updates(service: Service) -> None:
    start = next_offset(read(service, "dear"))
    service.apply(insert={"price": [("hat", 20), ("cap", 30)]})
    service.apply(set={"price": [("hat", 25)]}, delete={"price": [("cap", 30)]})
    response = read(service, "dear", start)
    assert operations(response) == [
        ("insert", '["cap"]'),
        ("insert", '["hat"]'),
        ("delete", '["cap"]'),
        ("update", '["hat"]'),
    ]
    update = response.json()[3]
    assert update["value"] == {"item": "hat", "amount": 25}
    assert update["old_value"] == {"item": "hat", "amount": 20}


@pytest.mark.parametrize("view", ["path", "back", "edge"])
def test_bindings_select(service: Service, view: str) -> None:
    column = service.host.relations[view].columns[0].name
    binding = {f"{view}.{column}": "2"}
    response = read(service, view, **binding)
    state = applied({}, response.json())
    service.apply(insert={"edge": [(2, 5), (7, 8), (9, 2)]})
    response = read(service, view, next_offset(response), **binding)
    expected = service.call(lambda db: {row for row in db.facts(view) if row[0] == 2})
    assert rows_of(applied(state, response.json())) == expected


def test_what_is_malformed_is_400(service: Service) -> None:
    good = service.host.offset()
    for offset in (
        "",
        "17",
        "abc",
        good + "0",
        good.upper() if good != good.upper() else "x",
        "../x",
    ):
        response = read(service, "path", offset)
        assert response.status_code == 400, offset
        assert response.json()["code"] == "E1701"
    for text in ("live=long-poll", "live=sse", "live=often&offset=-1", "offset=-1&offset=-1"):
        response = httpx.get(f"{service.address}/v1/views/path/stream?{text}", timeout=HANG_SECONDS)
        assert response.status_code == 400, text
        assert response.json()["code"] == "E1703"
    assert read(service, "path", **{"edge.src": "1"}).status_code == 400
    assert read(service, "path", **{"path.nothing": "1"}).status_code == 400
    assert read(service, "nothing").status_code == 404


def test_an_offset_of_another_history_is_410_and_the_start_still_works(service: Service) -> None:
    offset = service.host.offset()
    foreign = "0" * 16 + offset[16:]
    ahead = service.host.offset(service.host.version + 1)
    for text in (foreign, ahead):
        response = read(service, "path", text)
        assert response.status_code == 410
        assert response.json()["code"] == "E1702"
    assert read(service, "path").status_code == 200


def test_a_part_of_a_long_log_is_not_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reading, "COMMITS_EACH", 5)
    database = deltalog.connect(
        tmp_path / "long.db", program="base e(a: int).\nv(X) :- e(X).", engine="reference"
    )
    with database.group():
        for number in range(10):
            database.apply(insert={"e": [(number,)]})
    with serving(database) as service:
        offset, keys = service.host.offset(1), []
        for _ in range(2):
            found = httpx.get(service.stream("v", offset=offset), timeout=HANG_SECONDS)
            offset = found.headers["Stream-Next-Offset"]
            keys += [each["key"] for each in found.json()]
            is_all = len(keys) == 9
            assert ("Stream-Up-To-Date" in found.headers) is is_all
        assert is_all


def test_now_skips_what_there_is(service: Service) -> None:
    response = read(service, "path", "now")
    assert response.json() == []
    assert response.headers["Cache-Control"] == "no-store"
    assert "ETag" not in response.headers
    assert next_offset(response) == service.host.offset()


def test_a_long_poll_waits_and_ends_quietly(service: Service) -> None:
    start = next_offset(read(service, "path"))
    quiet = read(service, "path", start, live="long-poll")
    assert quiet.status_code == 204
    assert quiet.content == b""
    assert quiet.headers["Stream-Up-To-Date"] == "true"
    assert quiet.headers["Stream-Cursor"].isdigit()
    found: list[httpx.Response] = []
    for offset in (start, "now"):
        thread = threading.Thread(
            target=lambda o=offset: found.append(read(service, "path", o, live="long-poll"))
        )
        thread.start()
        wait_until(lambda: len(service.streams.open) == 1, "it waits")
        service.apply(insert={"edge": [(len(found) + 10, len(found) + 20)]})
        thread.join()
    assert [response.status_code for response in found] == [200, 200]


def test_silent_commits_advance_the_offset(service: Service) -> None:
    start = next_offset(read(service, "path"))
    service.apply(insert={"price": [("hat", 5)]})
    quiet = read(service, "path", start, live="long-poll")
    assert quiet.status_code == 204
    assert next_offset(quiet) == service.host.offset() > start


def test_entity_tags(service: Service) -> None:
    response = read(service, "path")
    tag = {"If-None-Match": response.headers["ETag"]}
    again = httpx.get(service.stream("path", offset="-1"), headers=tag, timeout=HANG_SECONDS)
    assert again.status_code == 304
    assert again.content == b""
    service.apply(insert={"edge": [(3, 4)]})
    assert (
        httpx.get(
            service.stream("path", offset="-1"), headers=tag, timeout=HANG_SECONDS
        ).status_code
        == 200
    )


def test_head_has_the_end(service: Service) -> None:
    response = httpx.head(service.stream("path"), timeout=HANG_SECONDS)
    assert response.status_code == 200
    assert next_offset(response) == service.host.offset()
    assert response.headers["Cache-Control"] == "no-store"


Event = tuple[str, Any, str]


def events(lines: Iterator[str]) -> Iterator[Event]:
    """Events as a plain EventSource sees them: type, data, last id."""
    kind, data, id_ = "message", [], ""
    for line in lines:
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data:"):
            data.append(line[5:])
        elif line.startswith("id: "):
            id_ = line[4:]
        elif line == "" and data:
            yield kind, json.loads("\n".join(data)), id_
            kind, data = "message", []


def test_events(service: Service) -> None:
    with httpx.stream(
        "GET", service.stream("path", offset="-1", live="sse"), timeout=HANG_SECONDS
    ) as body:
        assert body.headers["content-type"].startswith("text/event-stream")
        found = events(body.iter_lines())
        kind, messages, _ = next(found)
        assert kind == "data"
        assert len(messages) == 6
        kind, control, id_ = next(found)
        assert kind == "control"
        assert control["upToDate"] is True
        assert control["streamCursor"].isdigit()
        assert control["streamNextOffset"] == id_ == service.host.offset()
        service.apply(insert={"edge": [(3, 4)]})
        assert [next(found)[0] for _ in range(2)] == ["data", "control"]
        service.apply(insert={"price": [("hat", 5)]})
        kind, control, id_ = next(found)  # with the heartbeat
        assert kind == "control"
        assert id_ == service.host.offset()
    headers = {"Last-Event-ID": id_}
    service.apply(delete={"edge": [(3, 4)]})
    url = service.stream("path", offset="-1", live="sse")
    with httpx.stream("GET", url, headers=headers, timeout=HANG_SECONDS) as body:
        kind, messages, _ = next(events(body.iter_lines()))
        assert [each["headers"]["operation"] for each in messages] == ["delete"] * 3


def test_a_large_snapshot_comes_in_chunks(service: Service) -> None:
    service.streams.snapshots.rows_each = 10
    service.apply(insert={"edge": [(number, number + 100) for number in range(10, 55)]})
    expected = service.call(lambda db: db.facts("path"))
    offset, sizes = "-1", []
    state: dict[str, Any] = {}
    while True:
        response = read(service, "path", offset)
        assert response.status_code == 200
        applied(state, response.json())
        sizes.append(len(response.json()))
        assert next_offset(response) > offset
        offset = next_offset(response)
        if response.headers.get("Stream-Up-To-Date"):
            break
        if len(sizes) == 2:  # what is committed meanwhile comes behind the snapshot
            service.apply(delete={"edge": [(1, 2)]})
    assert max(sizes) <= 12
    assert len(sizes) > 4
    expected -= {(1, 2), (1, 3)}
    assert rows_of(state) == expected == service.call(lambda db: db.facts("path"))


def test_a_reader_of_its_own_writes_waits(service: Service) -> None:
    service.apply(insert={"edge": [(3, 4)]})
    response = read(service, "path", wait_for=service.host.offset())
    assert response.status_code == 200
    ahead = service.host.offset(service.host.version + 1)
    late = httpx.get(
        service.stream("path", offset="-1", wait_for=ahead),
        headers={"Prefer": "wait=0"},
        timeout=HANG_SECONDS,
    )
    assert late.status_code == 503
    assert late.json()["code"] == "E1704"


def test_a_socket_carries_the_same_messages(service: Service) -> None:
    address = service.stream("path", offset="-1").replace("http:", "ws:")
    with connect(address) as socket:
        data, control = (json.loads(socket.recv()) for _ in range(2))
        assert data["event"] == "data"
        assert data["data"] == read(service, "path").json()
        assert control["event"] == "control"
        assert control["data"]["streamNextOffset"] == service.host.offset()
        assert control["data"]["upToDate"] is True
        service.apply(insert={"edge": [(3, 4)]})
        while (data := json.loads(socket.recv()))["event"] == "heartbeat":
            pass
        assert [each["key"] for each in data["data"]] == ["[1,4]", "[2,4]", "[3,4]"]
    with connect(service.stream("path", offset="17").replace("http:", "ws:")) as socket:
        with pytest.raises(ConnectionClosed):
            socket.recv()
        assert socket.close_reason == "E1701"


@pytest.mark.parametrize("live", ["sse", "long-poll"])
def test_a_stop_tells_clients_to_resume(tmp_path: Path, live: str) -> None:
    path = tmp_path / "graph.db"
    found: list[Any] = []

    def follow(address: str) -> None:
        with httpx.stream("GET", address, timeout=HANG_SECONDS) as body:
            found.append(body.headers.get("Stream-Next-Offset"))
            found.extend(events(body.iter_lines()))

    with serving(deltalog.connect(path, program=CLOSURE), StreamTimes()) as running:
        offset = running.host.offset()
        thread = threading.Thread(
            target=follow, args=[running.stream("path", offset=offset, live=live)]
        )
        thread.start()
        wait_until(lambda: len(running.streams.open) == 1, "it reads")
    thread.join()
    last = found[0] or found[-1][2]
    if live == "sse":
        assert found[-1][1]["resume"] is True
    assert last == offset
    with serving(deltalog.connect(path)) as running:
        assert read(running, "path", last).status_code == 200
