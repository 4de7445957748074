"""Durable subscriptions: acknowledged, resumed, fenced, leased, and kept up to a bound."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from streaming import Service, serving

import deltalog
from deltalog.service.subscriptions import Reservation, Subscriptions
from waiting import HANG_SECONDS

CLOSURE = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
BILLING = "/v1/subscriptions/billing"


def call(service: Service, method: str, path: str, **more: Any) -> Any:
    response = httpx.request(method, service.address + path, timeout=HANG_SECONDS, **more)
    return response.status_code, response.json() if response.content else None


def test_it_goes_on_behind_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with serving(deltalog.connect(path, program=CLOSURE, facts={"edge": [(1, 2)]})) as service:
        body = {"view": "path", "bindings": {"x": 1}}
        status, made = call(service, "PUT", BILLING, json=body)
        assert (status, made["offset"], made["generation"], made["state"]) == (
            201,
            "-1",
            0,
            "reserved",
        )
        assert call(service, "PUT", BILLING, json=body)[0] == 200
        assert call(service, "PUT", BILLING, json={"view": "edge"})[1]["code"] == "E1707"
        _, made = call(service, "POST", f"{BILLING}/claim", json={})
        assert made["generation"] == 1
        response = httpx.get(
            f"{service.address}{BILLING}/stream?generation=1", timeout=HANG_SECONDS
        )
        assert [m.get("key") for m in response.json()] == [None, None, "[1,2]", None]
        offset = response.headers["Stream-Next-Offset"]
        acknowledged = {"generation": 1, "offset": offset}
        assert call(service, "POST", f"{BILLING}/ack", json=acknowledged)[0] == 200
        service.apply(insert={"edge": [(2, 3)]})
        service.apply(insert={"edge": [(3, 4)]})
        later = service.host.offset()
    with serving(deltalog.connect(path)) as service:
        _, found = call(service, "GET", BILLING)
        assert (found["offset"], found["versions_behind"]) == (offset, 2)
        assert found["bytes_behind"] > 0
        response = httpx.get(
            f"{service.address}{BILLING}/stream?generation=1", timeout=HANG_SECONDS
        )
        assert [m["key"] for m in response.json()] == ["[1,3]", "[1,4]"]
        acknowledged = {"generation": 1, "offset": later}
        assert call(service, "POST", f"{BILLING}/ack", json=acknowledged)[1]["offset"] == later
        earlier = {"generation": 1, "offset": offset}
        assert call(service, "POST", f"{BILLING}/ack", json=earlier)[1]["offset"] == later
        assert call(service, "DELETE", BILLING)[0] == 204
        assert call(service, "GET", BILLING)[1]["code"] == "E1706"
        assert service.call(lambda db: dict(db.readers)) == {}


def test_a_stale_generation_is_fenced() -> None:
    with serving(deltalog.connect(program=CLOSURE)) as service:
        call(service, "PUT", BILLING, json={"view": "path"})
        call(service, "POST", f"{BILLING}/claim", json={"lease_seconds": 1_000})
        status, refused = call(service, "POST", f"{BILLING}/claim", json={})
        assert (status, refused["code"], refused["error"]) == (409, "E1708", "FENCED")
        _, made = call(service, "POST", f"{BILLING}/claim", json={"takeover": True})
        assert made["generation"] == 2
        body = {"generation": 1, "offset": service.host.offset()}
        status, refused = call(service, "POST", f"{BILLING}/ack", json=body)
        assert (status, refused["error"]) == (409, "FENCED")
        assert (
            httpx.get(
                f"{service.address}{BILLING}/stream?generation=1", timeout=HANG_SECONDS
            ).status_code
            == 409
        )


@pytest.mark.parametrize("is_dropped", [False, True])
def test_what_others_do_to_its_reader_does_not_end_it(tmp_path: Path, is_dropped: bool) -> None:
    path = tmp_path / "graph.db"
    with serving(deltalog.connect(path, program=CLOSURE, engine="reference")) as service:
        call(service, "PUT", BILLING, json={"view": "path"})
        generation = call(service, "POST", f"{BILLING}/claim", json={})[1]["generation"]
        service.apply(insert={"edge": [(1, 2)]})
        offset = service.host.offset()
        body = {"generation": generation, "offset": offset}
        assert call(service, "POST", f"{BILLING}/ack", json=body)[0] == 200
    with deltalog.connect(path, engine="reference") as database:
        database.unregister(*database.readers)
        database.apply(insert={"edge": [(2, 3)]})
        if is_dropped:
            database.apply(insert={"edge": [(3, 4)]})
            database.compact(deltalog.Retention(versions=1))
    with serving(deltalog.connect(path, engine="reference")) as service:
        status, claimed = call(service, "POST", f"{BILLING}/claim", json={})
        assert (status, claimed["generation"]) == (200, generation + 1)
        assert claimed["state"] == ("lost" if is_dropped else "reserved")
        address = f"{service.address}{BILLING}/stream?generation={generation + 1}"
        assert httpx.get(address, timeout=HANG_SECONDS).status_code == (410 if is_dropped else 200)
        assert call(service, "POST", f"{BILLING}/claim", json={})[0] == 200


@pytest.mark.parametrize("limit", ["bytes", "idle"])
def test_the_log_is_kept_up_to_a_bound(tmp_path: Path, limit: str) -> None:
    few = deltalog.Retention(versions=2)
    database = deltalog.connect(tmp_path / "graph.db", program=CLOSURE, retention=few)
    with serving(database) as service:
        subscriptions: Subscriptions = service.server.app.state.subscriptions

        def run(main: Any) -> Any:
            assert service.server._loop is not None
            return asyncio.run_coroutine_threadsafe(main, service.server._loop).result(HANG_SECONDS)

        call(service, "PUT", BILLING, json={"view": "path"})
        call(service, "POST", f"{BILLING}/claim", json={})
        body = {"generation": 1, "offset": service.host.offset()}
        call(service, "POST", f"{BILLING}/ack", json=body)
        for number in range(6):
            service.apply(insert={"edge": [(number, number + 1)]})
        service.call(lambda db: db.compact())
        assert call(service, "GET", BILLING)[1]["state"] == "extended"
        bounds = Reservation(bytes_max=1) if limit == "bytes" else Reservation(idle_seconds_max=-1)
        assert run(subscriptions.enforce()) == []
        subscriptions.reservation = bounds
        assert run(subscriptions.enforce()) == ["billing"]
        assert call(service, "GET", BILLING)[1]["state"] == "unreserved"
        assert (
            httpx.get(
                f"{service.address}{BILLING}/stream?generation=1", timeout=HANG_SECONDS
            ).status_code
            == 200
        )
        service.call(lambda db: db.compact())
        assert call(service, "GET", BILLING)[1]["state"] == "lost"
        service.streams.feeds.host.journal.commits_max = 1
        service.apply(insert={"edge": [(8, 9)]})
        assert (
            httpx.get(
                f"{service.address}{BILLING}/stream?generation=1", timeout=HANG_SECONDS
            ).status_code
            == 410
        )
