"""Quality of service: potential changes are a superset for less work; `touched` names the view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from streaming import Service, serving

import deltalog
from waiting import HANG_SECONDS

PATHS = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
"""
EDGES = [(1, 2), (2, 3), (1, 3), *((n, n + 1) for n in range(10, 30))]


def read(service: Service, offset: str, **more: str) -> tuple[str, list[tuple[Any, ...]]]:
    """The next offset, and of each message operation, key, and precision if it has one."""
    found = httpx.get(service.stream("path", offset=offset, **more), timeout=HANG_SECONDS)
    assert found.status_code == 200, found.text
    messages = [
        (each["headers"]["operation"], each["key"], each["headers"].get("precision"))
        for each in found.json()
        if "operation" in each["headers"]
    ]
    return found.headers["Stream-Next-Offset"], messages


def commit(service: Service, **sides: Any) -> int:
    """Commit; returns how many facts were generated."""
    service.apply(**sides)
    return int(service.call(lambda db: db.statistics.total))


@pytest.mark.parametrize("is_file", [False, True], ids=["memory", "file"])
def test_potential_changes_cost_less_until_somebody_wants_exact_ones(
    is_file: bool, tmp_path: Path
) -> None:
    counts = {}
    for precision in ("exact", "potential"):
        path = tmp_path / f"{precision}.db" if is_file else None
        database = deltalog.connect(path, program=PATHS, facts={"edge": EDGES}, materialize=False)
        with serving(database) as service:
            offset, _ = read(service, "now", precision=precision)
            counts[precision] = commit(service, delete={"edge": [(20, 21)]})
            offset, found = read(service, offset, precision=precision)
            assert len(found) == 110
            marked = None if precision == "exact" else "potential"
            assert {each[2] for each in found} == {marked}
            commit(service, delete={"edge": [(1, 3)]})
            offset, found = read(service, offset, precision=precision)
            still_derivable = [("delete", "[1,3]", "potential")]
            assert found == ([] if precision == "exact" else still_derivable)
            begun, _ = read(service, "now", precision="exact")  # from now on exact ones are known
            commit(service, insert={"edge": [(1, 3), (3, 4)]})
            inserted = [("insert", f"[{n},4]", None) for n in (1, 2, 3)]
            assert read(service, offset, precision=precision)[1] == inserted
            assert read(service, begun)[1] == inserted
    assert counts["potential"] * 1.3 < counts["exact"]


def test_an_external_view_of_a_file_costs_nothing_until_somebody_follows_it(
    tmp_path: Path,
) -> None:
    options: dict[str, Any] = {"materialize": False, "strategy": "demand"}
    database = deltalog.connect(
        tmp_path / "external.db", program=PATHS, facts={"edge": EDGES}, **options
    )
    with serving(database) as service:
        assert commit(service, delete={"edge": [(20, 21)]}) == 0
        begun = service.on_loop(service.host.offset)
        commit(service, delete={"edge": [(1, 3)]})
        assert commit(service, insert={"edge": [(3, 4), (1, 3)]}) == 0
        offset, found = read(service, begun)  # derived from what the log has of the edges
        assert found == [("insert", f"[{n},4]", None) for n in (1, 2, 3)]
        assert commit(service, delete={"edge": [(3, 4)]}) > 0
        assert read(service, offset)[1] == [("delete", f"[{n},4]", None) for n in (1, 2, 3)]


def test_a_durable_subscriber_of_a_file_is_followed_while_it_is_away(tmp_path: Path) -> None:
    path = tmp_path / "durable.db"
    made: dict[str, Any] = {"program": PATHS, "facts": {"edge": EDGES}, "materialize": False}
    with serving(deltalog.connect(path, **made)) as service:
        wanted = {"view": "path", "bindings": {"x": 1}}
        address = f"{service.address}/v1/subscriptions/away"
        assert httpx.put(address, json=wanted).status_code == 201
        claimed = httpx.post(f"{address}/claim", json={}).json()
        commit(service, insert={"edge": [(50, 51)]})
        begun = service.on_loop(service.host.offset)
        known = {"generation": claimed["generation"], "offset": begun}
        assert httpx.post(f"{address}/ack", json=known).status_code == 200
    with serving(deltalog.connect(path, materialize=False)) as service:
        assert commit(service, insert={"edge": [(3, 4)]}) > 0
        address = f"{service.address}/v1/subscriptions/away"
        generation = httpx.post(f"{address}/claim", json={}).json()["generation"]
        found = httpx.get(f"{address}/stream?generation={generation}").json()
        assert [each["key"] for each in found] == ["[1,4]"]


def test_potential_changes_do_not_cancel() -> None:
    database = deltalog.connect(program=PATHS, facts={"edge": EDGES}, materialize=False)
    with serving(database) as service:
        options = {"precision": "potential", "every_commits": "3"}
        offset, _ = read(service, "now", **options)
        commit(service, delete={"edge": [(1, 3)]})
        commit(service, insert={"edge": [(1, 3)]})
        commit(service, insert={"edge": [(40, 41)]})
        assert read(service, offset, **options)[1] == [
            ("delete", "[1,3]", "potential"),
            ("insert", "[1,3]", "potential"),
            ("insert", "[40,41]", "potential"),
        ]


def test_touched_names_the_view() -> None:
    database = deltalog.connect(program=PATHS, facts={"edge": EDGES}, materialize=False)
    with serving(database) as service:
        offset, first = read(service, "-1", precision="touched")
        assert first == []
        commit(service, delete={"edge": [(1, 3)]})
        offset, found = read(service, offset, precision="touched")
        assert found == []
        commit(service, delete={"edge": [(2, 3)]})
        assert read(service, offset, precision="touched")[1] == [("update", "path", None)]
