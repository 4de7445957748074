"""Every route over a real socket: transactions, queries, view updates, rules, history, program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import GRAPH, Service, serving

import deltalog
from deltalog.service.tokens import create_token
from deltalog.store import history, logged

SHOP = """
    base item(id: int key, name: str, price: decimal, since: date?).
    base stock(id: int key, amount: int).
    base link(src: str, dst: str).
    dear(N) :- item(_, N, P, _), P > 100.
    low(I) :- stock(I, A), A < 10.
    reach(X, Y) :- link(X, Y).
    reach(X, Y) :- link(X, Z), reach(Z, Y).
    deny negative(I) :- stock(I, A), A < 0 say "item {I} has less than nothing".
    deny warn ring(X) :- reach(X, X).
    rule reorder for I when low(I) do emit wanted(I).
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Service]:
    path = tmp_path / "shop.db"
    with serving(deltalog.connect(path, program=SHOP, engine="reference")) as service:
        yield service


@pytest.fixture
def graph() -> Iterator[Service]:
    database = deltalog.connect(
        program=GRAPH, engine="reference", facts={"edge": [(1, 2), (2, 3), (4, 5)]}
    )
    with serving(database) as service:
        yield service


# --- transactions


def test_a_transaction_answers_with_version_offset_and_the_change_of_views(graph: Service) -> None:
    answer = graph.post(
        "/v1/transactions",
        {"insert": {"edge": [[3, 4]]}, "delete": {"edge": [[1, 2]]}, "views": ["path"]},
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["version"] == 1
    assert found["accepted"]
    assert not found["is_repeated"]
    assert answer.headers["stream-next-offset"] == found["offset"]
    assert found["delta"]["inserted"] == {
        "edge": [[3, 4]],
        "path": [[2, 4], [2, 5], [3, 4], [3, 5]],
    }
    assert found["delta"]["deleted"] == {"edge": [[1, 2]], "path": [[1, 2], [1, 3]]}
    assert graph.post("/v1/transactions", {"insert": {"edge": [[3, 4]]}}).json()["version"] == 1


def test_rows_are_objects_or_arrays_with_dates_and_decimals_as_text(shop: Service) -> None:
    changes = {
        "insert": {
            "item": [
                {"id": 1, "name": "bolt", "price": "120.10"},
                [2, "nut", 3, "2026-01-31"],
            ]
        },
        "set": {"stock": [[1, 40]]},
    }
    assert shop.post("/v1/transactions", changes).status_code == 200
    rows = shop.get("/v1/views/item/rows").json()
    assert rows["rows"] == [[1, "bolt", "120.1", None], [2, "nut", "3", "2026-01-31"]]
    assert [each["type"] for each in rows["columns"]] == ["int", "str", "decimal", "date"]
    assert shop.get("/v1/views/dear/rows").json()["rows"] == [["bolt"]]
    set_ = shop.post("/v1/transactions", {"set": {"stock": [[1, 5]]}, "views": ["low"]}).json()
    assert set_["delta"]["deleted"] == {"stock": [[1, 40]]}
    assert set_["delta"]["inserted"]["low"] == [[1]]


def test_what_does_not_fit_is_refused_with_its_place(shop: Service) -> None:
    answer = shop.post("/v1/transactions", {"insert": {"item": [[1, "bolt", "x", None]]}})
    assert answer.status_code == 422
    assert answer.json()["detail"] == 'item, row 1, column `price`: "x" is not a decimal'
    assert shop.post("/v1/transactions", {"insert": {"itm": []}}).status_code == 404
    assert shop.post("/v1/transactions", {"insert": {"dear": [["x"]]}}).json()["code"] == "E0702"
    assert shop.post("/v1/transactions", {"insrt": {}}).json()["code"] == "E1722"
    body, sent = (
        b'{"insert": {"stock": [[9, 9]]}}',
        {"content-type": "application/x-www-form-urlencoded"},
    )
    (wrong,) = shop.call("POST", "/v1/transactions", content=body, headers=sent).json()["problems"]
    assert wrong["hint"] == "send the body with the header `Content-Type: application/json`"
    assert shop.post("/v1/transactions", {"insert": {"item": ["x"]}}).status_code == 422
    assert shop.post("/v1/transactions", {"views": ["nothing"]}).status_code == 422
    assert shop.get("/v1/status").json()["version"] == 0


def test_a_violated_constraint_is_409_with_its_violations(shop: Service) -> None:
    answer = shop.post("/v1/transactions", {"insert": {"stock": [[1, -4]]}})
    assert answer.status_code == 409
    found = answer.json()
    assert found["code"] == "E1101"
    (violation,) = found["violations"]
    assert violation["constraint"] == "negative"
    assert violation["fact"] == [1]
    assert violation["causes"] == [["+", "stock", [1, -4]]]
    assert shop.get("/v1/status").json()["version"] == 0
    tried = shop.post("/v1/what-if", {"insert": {"stock": [[1, -4]]}}).json()
    assert [each["constraint"] for each in tried["violations"]] == ["negative"]
    assert tried["delta"]["inserted"]["low"] == [[1]]


def test_a_key_is_applied_once(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    changes = {"insert": {"edge": [[1, 2]]}}
    headers = {"Idempotency-Key": "one"}
    with serving(deltalog.connect(path, program=GRAPH, engine="reference")) as service:
        first = service.post("/v1/transactions", changes, headers=headers).json()
        assert (first["version"], first["is_repeated"]) == (1, False)
        undone = {"delete": {"edge": [[1, 2]]}}
        assert service.post("/v1/transactions", undone).json()["version"] == 2
        again = service.post("/v1/transactions", changes, headers=headers).json()
        assert (again["version"], again["is_repeated"]) == (1, True)
        assert again["offset"] == first["offset"]
        other = service.post("/v1/transactions", undone, headers=headers)
        assert other.status_code == 422
        assert other.json()["code"] == "E1724"
        refused = {"insert": {"edge": [["x", 2]]}}
        held = {"Idempotency-Key": "two"}
        assert service.post("/v1/transactions", refused, headers=held).status_code == 422
        assert service.post("/v1/transactions", changes, headers=held).json()["version"] == 3
        nothing = {"Idempotency-Key": "three"}
        assert service.post("/v1/transactions", changes, headers=nothing).json()["version"] == 3
    with serving(deltalog.connect(path, engine="reference")) as service:
        again = service.post("/v1/transactions", changes, headers=headers).json()
        assert (again["version"], again["is_repeated"]) == (1, True)
        service.post("/v1/transactions", undone)
        again = service.post("/v1/transactions", changes, headers={"Idempotency-Key": "three"})
        assert again.json()["is_repeated"]
        assert service.get("/v1/views/edge/rows").json()["rows"] == []
    assert deltalog.connect(path, engine="reference").verify()


def test_a_key_is_in_the_commit_or_nothing_is(tmp_path: Path) -> None:
    """A commit that fails while it is written leaves neither facts nor the key."""
    path = tmp_path / "graph.db"
    database = deltalog.connect(path, program=GRAPH, engine="reference")
    settings = database.settings
    settings.put("before", "1")

    with settings.with_next_commit("request:a", "{}"):
        inner = database._persistence.writer.beside
        assert inner is not None

        def failing() -> None:
            inner()
            raise RuntimeError("the disk is full")

        database._persistence.writer.beside = failing
        with pytest.raises(RuntimeError):
            database.apply(insert={"edge": [(1, 2)]})
    assert settings.list() == {"before": "1"}
    assert database.version == 0
    with settings.with_next_commit("request:a", "{}"):
        database.apply(insert={"edge": [(1, 2)]})
    assert settings.get("request:a") == "{}"
    database.close()


# --- reading


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": "edge(X, Y)", "query": "path(X, Y)"}',
        b'{"query": "edge($a, Y)", "parameters": {"a": 1, "a": 2}}',
    ],
)
def test_a_member_that_is_there_twice_is_refused(graph: Service, body: bytes) -> None:
    sent = {"Content-Type": "application/json"}
    refused = graph.call("POST", "/v1/query", content=body, headers=sent)
    assert (refused.status_code, refused.json()["code"]) == (400, "E1722")
    assert "twice" in refused.json()["detail"]


def test_queries_have_parameters_pages_and_carets(graph: Service) -> None:
    asked = {"query": "path($src, Y)", "parameters": {"src": 1}}
    found = graph.post("/v1/query", asked).json()
    assert found["rows"] == [[2], [3]]
    assert [each["name"] for each in found["columns"]] == ["Y"]
    page = graph.post("/v1/query", {"query": "path(X, Y)", "limit": 1, "start": 1}).json()
    assert (page["rows"], page["total"], page["next"]) == ([[1, 3]], 4, 2)
    wrong = graph.post("/v1/query", {"query": "pth(1, Y)"})
    assert wrong.status_code == 400
    (problem,) = wrong.json()["problems"]
    assert problem["code"] == "E0203"
    assert problem["place"] == {"source": "<query>", "line": 1, "column": 1, "length": 9}
    assert "^^^^" in problem["text"]
    assert problem["hint"] == "did you mean `path`?"


def test_rows_of_a_view_are_paged_and_bound(graph: Service) -> None:
    first = graph.get("/v1/views/path/rows?limit=3").json()
    assert first["rows"] == [[1, 2], [1, 3], [2, 3]]
    assert graph.get(f"/v1/views/path/rows?start={first['next']}").json()["rows"] == [[4, 5]]
    assert graph.get("/v1/views/path/rows?path.x=1").json()["rows"] == [[1, 2], [1, 3]]
    assert graph.get("/v1/views/path/rows?path.z=1").status_code == 400
    assert graph.get("/v1/views/path/rows?path.x=one").status_code == 400
    assert graph.get("/v1/views/pth/rows").status_code == 404


def test_relations_are_listed_with_columns_and_keys(shop: Service) -> None:
    found = {each["name"]: each for each in shop.get("/v1/relations").json()["relations"]}
    assert found["item"]["key"] == ["id"]
    assert found["item"]["columns"][3] == {
        "name": "since",
        "type": "date",
        "nullable": True,
        "key": False,
    }
    assert found["reach"]["kind"] == "view"
    assert shop.get("/v1/relations/low").json()["columns"][0]["type"] == "int"
    assert shop.get("/v1/relations/lw").status_code == 404


def test_explanations(graph: Service) -> None:
    text = graph.post("/v1/explain", {"query": "path(1, Y)"}).json()["text"]
    assert "plan" in text
    assert "node 1: path" in graph.post("/v1/explain", {"propagation": True}).json()["text"]
    assert graph.post("/v1/explain", {"show": ["nothing"]}).status_code == 422


# --- view updates


def test_realizations_are_found_and_applied(graph: Service) -> None:
    asked = {"requests": ["-path(1, 3)"]}
    found = graph.post("/v1/realize", asked).json()
    assert found["is_complete"]
    assert [each["deleted"] for each in found["answers"]] == [
        {"edge": [[1, 2]]},
        {"edge": [[2, 3]]},
    ]
    chosen = {**asked, "number": 2, "version": found["version"]}
    applied = graph.post("/v1/realize/apply", chosen).json()
    assert applied["version"] == 1
    assert applied["delta"]["deleted"]["edge"] == [[2, 3]]
    assert graph.post("/v1/realize/apply", chosen).json()["code"] == "E1402"
    missing = {**chosen, "version": 1, "requests": ["+path(1, 2)"]}
    assert graph.post("/v1/realize/apply", missing).status_code == 404
    assert graph.post("/v1/realize", {"requests": ["path(1"]}).status_code == 400


def test_new_values_are_chosen(shop: Service) -> None:
    asked = {"requests": ['+reach("a", "b")'], "answers": 50, "changes": 2}
    answers = shop.post("/v1/realize", asked).json()["answers"]
    number, new = next(
        (each["number"], each["new_values"]) for each in answers if each["new_values"]
    )
    chosen = {**asked, "number": number, "version": 0, "values": {new[0]: "middle"}}
    applied = shop.post("/v1/realize/apply", chosen).json()
    assert sorted(applied["delta"]["inserted"]["link"]) == [["a", "middle"], ["middle", "b"]]
    wrong = {**chosen, "version": 1, "requests": ['+reach("a", "c")'], "values": {"x": "y"}}
    assert shop.post("/v1/realize/apply", wrong).status_code in (404, 422)


# --- constraints and rules


def test_constraints_rules_messages_and_firings(shop: Service) -> None:
    names = [each["name"] for each in shop.get("/v1/constraints").json()["constraints"]]
    assert names == ["negative", "ring"]
    shop.post("/v1/transactions", {"insert": {"link": [["a", "a"]], "stock": [[7, 3]]}})
    found = shop.get("/v1/violations").json()
    assert [(each["constraint"], each["fact"]) for each in found["violations"]] == [("ring", ["a"])]
    assert shop.get("/v1/violations?constraint=nothing").status_code in (404, 422)
    (rule,) = shop.get("/v1/rules").json()["rules"]
    assert (rule["name"], rule["is_active"], rule["firings"]) == ("reorder", True, 1)
    (message,) = shop.get("/v1/messages").json()["messages"]
    assert (message["name"], message["arguments"]) == ("wanted", [7])
    assert shop.get(f"/v1/messages?after={message['sequence']}").json()["messages"] == []
    (firing,) = shop.get("/v1/rules/firings").json()["firings"]
    assert (firing["rule"], firing["instances"], firing["version"]) == ("reorder", [[7]], 1)
    assert shop.post("/v1/rules/reorder/deactivate", {}).json()["is_active"] is False
    shop.post("/v1/transactions", {"insert": {"stock": [[8, 3]]}})
    assert len(shop.get("/v1/messages").json()["messages"]) == 1
    assert shop.post("/v1/rules/reorder/activate", {}).json()["is_active"] is True
    assert shop.post("/v1/rules/nothing/activate", {}).status_code == 404
    assert shop.post("/v1/rules/reorder/activate", {"parameters": {"L": 1}}).status_code == 422


# --- history


def test_time_travel_and_deltas(shop: Service) -> None:
    for number in (1, 2, 3):
        shop.post("/v1/transactions", {"insert": {"stock": [[number, number * 10]]}})
    asked = {"query": "stock(I, A)", "version": 1}
    assert shop.post("/v1/query", asked).json()["rows"] == [[1, 10]]
    assert shop.get("/v1/views/stock/rows?version=2").json()["total"] == 2
    delta = shop.get("/v1/deltas?first=1&last=3&relation=stock").json()["delta"]
    assert delta == {"inserted": {"stock": [[2, 20], [3, 30]]}, "deleted": {}}
    back = shop.get("/v1/deltas?first=3&last=1&relation=stock").json()["delta"]
    assert back == {"inserted": {}, "deleted": {"stock": [[2, 20], [3, 30]]}}
    commits = shop.get("/v1/commits?after=1").json()
    assert [each["version"] for each in commits["commits"]] == [2, 3]
    assert commits["commits"][0]["facts"] == 1
    assert commits["next"] is None
    first = shop.get("/v1/commits?limit=2").json()
    assert [each["version"] for each in first["commits"]] == [1, 2]
    assert first["next"] == 2
    assert shop.get("/v1/deltas?first=1&relation=stokc").json()["problems"][0]["hint"]
    assert shop.get("/v1/deltas?first=9").status_code == 404
    assert shop.get("/v1/views/stock/rows?version=9").status_code == 404
    assert shop.get("/v1/deltas?first=-1").status_code == 422


def test_the_list_of_commits_derives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Omitted views are named, and a long list of commits is cut by its facts, too."""
    program = "base e(a: int). virtual view v(a: int). v(X) :- e(X)."
    database = deltalog.connect(tmp_path / "v.db", program=program, engine="reference")
    for number in range(3):
        database.apply(insert={"e": [(2 * number,), (2 * number + 1,)]}, views=[])
    monkeypatch.setattr(logged, "FACTS_EACH", 5)
    monkeypatch.setattr(history, "Replay", None)
    monkeypatch.setattr(history, "derived_facts", None)
    with serving(database) as service:
        found = service.get("/v1/commits").json()
        listed = [(each["version"], each["facts"], each["omitted"]) for each in found["commits"]]
        assert listed == [(1, 2, ["v"]), (2, 2, ["v"])]
        assert found["next"] == 2
        (last,) = service.get("/v1/commits?after=2").json()["commits"]
        assert last["version"] == 3
        assert service.get("/v1/commits?after=9").status_code == 404
        base = service.get("/v1/deltas?first=1&relation=e").json()["delta"]
        assert base["inserted"] == {"e": [[2], [3], [4], [5]]}
        monkeypatch.undo()
        view = service.get("/v1/deltas?first=2&relation=v").json()["delta"]
        assert view["inserted"] == {"v": [[4], [5]]}


def test_a_database_in_memory_has_no_history(graph: Service) -> None:
    for path in (
        "/v1/deltas?first=0",
        "/v1/commits",
        "/v1/programs",
        "/v1/views/edge/rows?version=7",
    ):
        assert graph.get(path).status_code == 404, path


# --- the program


def test_the_program_is_changed_and_tried(shop: Service) -> None:
    text = shop.get("/v1/program").json()["text"]
    assert text == SHOP
    shop.post("/v1/transactions", {"insert": {"stock": [[1, 20]]}})
    other = SHOP.replace("A < 10", "A < 30")
    tried = shop.call("PUT", "/v1/program", json={"text": other, "dry_run": True}).json()
    assert tried["delta"] == {"inserted": {"low": [[1]]}, "deleted": {}}
    assert shop.get("/v1/program").json()["text"] == SHOP
    outdated = {"text": other, "version": 0}
    assert shop.call("PUT", "/v1/program", json=outdated).status_code == 409
    done = shop.call("PUT", "/v1/program", json={"text": other, "version": 1}).json()
    assert done["version"] == 2
    assert shop.get("/v1/views/low/rows").json()["rows"] == [[1]]
    assert len(shop.get("/v1/programs").json()["programs"]) == 2
    wrong = shop.call("PUT", "/v1/program", json={"text": "p(X) :- q(X)."})
    assert wrong.status_code == 400


def test_a_program_that_is_sent_reads_no_files(shop: Service, tmp_path: Path) -> None:
    secret = tmp_path / "secret.dl"
    secret.write_text('secret("hidden").')
    included = shop.call("PUT", "/v1/program", json={"text": f'include "{secret}".'})
    assert included.status_code == 400
    path = shop.call("PUT", "/v1/program", json={"text": str(secret)})
    assert path.status_code == 400
    assert "hidden" not in included.text + path.text


def test_audit_and_network(graph: Service) -> None:
    assert graph.post("/v1/audit", {"engine": "reference"}).json()["differences"] == []
    assert graph.post("/v1/audit", {"engine": "nothing"}).status_code == 422
    graph.post("/v1/transactions", {"insert": {"edge": [[5, 6]]}})
    found = graph.get("/v1/network").json()
    assert {node["name"] for node in found["nodes"]} == {"edge", "path"}
    assert {(arc["source"], arc["target"]) for arc in found["arcs"]} == {
        ("edge", "path"),
        ("path", "path"),
    }
    (flow,) = found["flows"]
    assert flow["version"] == 1
    assert {"source": "edge", "target": "path", "inserted": 1, "deleted": 0} in flow["arcs"]


# --- reasons


def test_why_why_not_and_why_changed(graph: Service) -> None:
    found = graph.post("/v1/why", {"fact": "path(1, 3)"}).json()
    assert found["text"].startswith("path(1, 3)")
    assert [each["conclusion"] for each in found["reason"]["premises"]] == [
        "edge(1, 2)",
        "path(2, 3)",
    ]
    assert graph.post("/v1/why", {"fact": "path(1, X)"}).status_code == 200
    assert graph.post("/v1/why", {"fact": "path(1, 3)", "every": True}).status_code == 200
    assert graph.post("/v1/why", {"fact": "path(3, 1)"}).status_code == 422
    assert "does not hold" in graph.post("/v1/why-not", {"fact": "path(3, 1)"}).json()["text"]
    graph.post("/v1/transactions", {"insert": {"edge": [[3, 4]]}})
    changed = graph.post("/v1/why-changed", {"fact": "path(1, 5)"}).json()
    assert changed["reason"]["causes"] == [["+", "edge", [3, 4]]]


def test_a_proof_has_only_premises_that_may_be_read(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    reader = create_token(tokens, "ann", ["read"], ["path", "edge?src=1"])
    facts = {"edge": [(1, 2), (2, 3)]}
    database = deltalog.connect(program=GRAPH, engine="reference", facts=facts)
    with serving(database, tokens=tokens) as service:
        found = service.post("/v1/why", {"fact": "path(1, 3)"}, reader).json()
        first, second = found["reason"]["premises"]
        assert first["conclusion"] == "edge(1, 2)"
        assert second["conclusion"] == "path(2, 3)"
        assert second["premises"] == [{"conclusion": "(not shown)", "kind": "hidden"}]
        assert "edge(2, 3)" not in found["text"]
        for body in ({"fact": "edge(2, 3)"}, {"fact": "path(1, 3)", "every": True}):
            assert service.post("/v1/why", body, reader).status_code == 403
        assert service.post("/v1/why-not", {"fact": "path(3, 1)"}, reader).status_code == 403


# --- delivery


def test_recipients_queues_and_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    database = deltalog.connect(path, program=SHOP, engine="reference")
    database.apply(insert={"stock": [(7, 3), (8, 2)]})

    def fail(message: object) -> None:
        raise RuntimeError("nobody is there")

    database.dispatch(fail, target="warehouse", pauses_seconds=())
    with serving(database) as shop:
        found = shop.get("/v1/outbox").json()
        assert [each["name"] for each in found["recipients"]] == ["warehouse"]
        assert found["deliveries"][0]["rule"] == "reorder"
        letters = shop.get("/v1/dead-letters").json()
        assert letters["total"] == len(letters["dead_letters"]) > 0
        assert "nobody is there" in letters["dead_letters"][0]["error"]
        retried = shop.post("/v1/dead-letters/retry?recipient=warehouse", {}).json()
        assert retried["count"] == letters["total"]
        assert shop.get("/v1/dead-letters").json()["dead_letters"][0]["is_retried"]
        assert shop.post("/v1/recipients/warehouse/resume", {}).json() == {"count": 0}
        assert shop.call("DELETE", "/v1/recipients/warehouse").json() == {"count": 1}
        assert shop.call("DELETE", "/v1/recipients/warehouse").status_code == 404
        assert shop.get("/v1/outbox").json()["recipients"] == []


def test_a_read_waits_for_an_offset(graph: Service) -> None:
    done = graph.post("/v1/transactions", {"insert": {"edge": [[7, 8]]}}).json()
    asked = f"/v1/views/edge/rows?edge.src=7&wait_for={done['offset']}"
    assert graph.get(asked).json()["rows"] == [[7, 8]]
    query = f"/v1/query?wait_for={done['offset']}"
    assert graph.post(query, {"query": "edge(7, X)"}).json()["rows"] == [[8]]
    assert graph.get("/v1/views/edge/rows?wait_for=x").status_code == 400
