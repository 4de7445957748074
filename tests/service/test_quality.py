"""Quality of service: potential changes are a superset for less work; `touched` names the view."""

from __future__ import annotations

from typing import Any

import httpx
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


def test_potential_changes_cost_less_until_somebody_wants_exact_ones() -> None:
    counts = {}
    for precision in ("exact", "potential"):
        database = deltalog.connect(program=PATHS, facts={"edge": EDGES}, materialize=False)
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
