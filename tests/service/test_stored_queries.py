"""Stored queries: names for parts of views, under the grants of these parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import GRAPH, serving

import deltalog
from deltalog.service import stored_queries
from deltalog.service.tokens import create_token

FACTS = {"edge": [(1, 2), (2, 3)]}


def test_a_stored_query_is_followed_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with serving(deltalog.connect(path, program=GRAPH, facts=FACTS)) as service:
        made = service.call("PUT", "/v1/queries/two", json={"view": "path", "bindings": {"x": 2}})
        assert made.status_code == 200, made.text
        assert service.get("/v1/queries").json()["queries"] == [
            {"name": "two", "view": "path", "bindings": {"x": "2"}}
        ]
    with serving(deltalog.connect(path)) as service:  # it outlives the process
        read = service.get("/v1/views/two/stream")
        rows = [m["value"] for m in read.json() if "operation" in m["headers"]]
        assert rows == [{"x": 2, "y": 3}]
        offset = read.headers["Stream-Next-Offset"]
        service.post("/v1/transactions", {"insert": {"edge": [[3, 4], [7, 8]]}})
        delta = service.get(f"/v1/views/two/stream?offset={offset}").json()
        assert [m["value"] for m in delta] == [{"x": 2, "y": 4}]
        narrow = service.get("/v1/views/two/stream?path.y=4").json()
        assert [m["value"]["y"] for m in narrow if "operation" in m["headers"]] == [4]
        assert service.get("/v1/views/two/stream?path.x=1").status_code == 400
        assert service.call("DELETE", "/v1/queries/two").status_code == 204
        assert service.get("/v1/views/two/stream").status_code == 404
        assert service.call("DELETE", "/v1/queries/two").status_code == 404


def test_what_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(deltalog.connect(program=GRAPH, facts=FACTS)) as service:
        for name, body, status in (
            ("path", {"view": "edge"}, 409),
            ("q", {"view": "pth"}, 404),
            ("q", {"view": "path", "bindings": {"z": 1}}, 400),
            ("q", {"view": "path", "bindings": {"x": "one"}}, 400),
        ):
            answer = service.call("PUT", f"/v1/queries/{name}", json=body)
            assert answer.status_code == status, answer.text
        monkeypatch.setattr(stored_queries, "QUERIES_MAX", 0)
        assert service.call("PUT", "/v1/queries/q", json={"view": "path"}).status_code == 409


def test_another_program_may_leave_it_without_its_view() -> None:
    with serving(deltalog.connect(program=GRAPH, facts=FACTS)) as service:
        service.call("PUT", "/v1/queries/two", json={"view": "path", "bindings": {"x": 2}})
        program = "base edge(src: int, dst: int).\ntwo(X) :- edge(X, 2)."
        assert service.call("PUT", "/v1/program", json={"text": program}).status_code == 200
        assert service.get("/v1/queries").json()["queries"] == []
        read = service.get("/v1/views/two/stream").json()  # the relation of that name counts
        assert [m["value"] for m in read if "operation" in m["headers"]] == [{"x": 1}]


def test_grants_apply(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    admin = create_token(tokens, "root", ["admin"], [])
    one = create_token(tokens, "one", ["read"], ["path?x=1"])
    two = create_token(tokens, "two", ["read"], ["path?x=2"])
    with serving(deltalog.connect(program=GRAPH, facts=FACTS), tokens=tokens) as service:
        body = {"view": "path", "bindings": {"x": 2}}
        assert service.call("PUT", "/v1/queries/q", one, json=body).status_code == 403
        assert service.call("PUT", "/v1/queries/q", admin, json=body).status_code == 200
        assert service.get("/v1/views/q/stream", two).status_code == 200
        refused = service.get("/v1/views/q/stream", one)
        assert refused.status_code == 403
        assert "path" not in refused.text
        assert service.get("/v1/views/none/stream", one).status_code == 403
        assert service.get("/v1/queries", one).json()["queries"] == []
        assert len(service.get("/v1/queries", two).json()["queries"]) == 1
        assert service.call("DELETE", "/v1/queries/q", two).status_code == 403
