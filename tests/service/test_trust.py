"""Trust: whatever a limited caller sends to whatever route, it sees no fact that it may not read.

The routes are those of the OpenAPI description, so a new one is probed as soon as it is there. A
secret value is in base facts, in a keyed fact, in the program, in violations, in messages of rules
and in proofs. An administrator sees it by the same probes, or they would show nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Service, serving

import deltalog
from deltalog.service.tokens import create_token

SECRET = "s3cr3t"
PROGRAM = """
    base account(owner: str key, code: str).
    base note(who: str, text: str).
    base key_of(id: int key, code: str).
    base wish(code: str).
    shown(W, T) :- note(W, T).
    known(W) :- account(W, "s3cr3t-in-rule").
    codes(C) :- account(_, C).
    deny warn weak(W, C) :- account(W, C), wish(C) say "{W} has {C}".
    deny twice(C) :- key_of(I, C), wish(C), account(_, C) say "the code {C}".
    rule leak for C when codes(C) do emit spoken(C).
    rule guard on insert note(W, T) when account(W, C), T = "reject" do reject "{C} says no".
"""
FACTS = {
    "account": [("ann", "s3cr3t-a"), ("bob", "s3cr3t-b")],
    "note": [("ann", "mine"), ("bob", "s3cr3t-note")],
    "key_of": [(1, "s3cr3t-a")],
}
CALLERS = {
    "reader of notes of ann": (["read"], ["note?who=ann", "shown?w=ann"]),
    "reader of names": (["read"], ["known"]),
    "writer": (["write"], []),
    "writer of notes": (["write"], ["note?who=ann", "write:wish"]),
    "reader and writer of its notes": (["read", "write"], ["note?who=ann", "write:wish"]),
    "reader of nothing": (["read"], ["write:note"]),
}
QUERIES = [
    "account(X, Y)",
    'account("bob", Y)',
    "note(X, Y)",
    'note("ann", Y)',
    'note("ann", Y), account(Z, C)',
    'note("ann", Y), not account(Y, Y)',
    "shown(X, Y)",
    "known(X)",
    "codes(C)",
    "weak(W, C)",
    "sys_column(R, P, C, T, N, K)",
    "sys_rule(N, P, A)",
    "rules__messages(A, B, C, D, E)",
    "acount(X, Y)",
    "account(X, 3)",
    "known(X), account(X",
]
CHANGES: list[dict[str, Any]] = [
    {"insert": {"account": [["cid", "x"]]}},
    {"insert": {"account": [["ann", "other"]]}},
    {"set": {"account": [["ann", "s3"]]}},
    {"insert": {"key_of": [[1, "other"]]}},
    {"insert": {"wish": [["s3cr3t"[::-1]]]}},
    {"insert": {"note": [["ann", "more"]]}},
    {"insert": {"note": [["ann", "reject"]]}},
    {"insert": {"note": [["bob", "more"]]}},
    {"delete": {"note": [["bob", "x"]]}},
    {"insert": {"note": [[1, 2]]}},
    {"insert": {"nothing": [[1, 2]]}},
]
NAMES = ["account", "note", "shown", "known", "codes", "weak", "key_of", "leak", "nothing", "1"]
BODIES: dict[str, list[dict[str, Any]]] = {
    "/v1/query": [
        *({"query": text} for text in QUERIES),
        *({"query": text, "version": 0} for text in QUERIES),
        {"query": "account($w, C)", "parameters": {"w": "bob"}},
    ],
    "/v1/transactions": [{**each, "views": v} for each in CHANGES for v in (None, [], ["shown"])],
    "/v1/what-if": [{**each, "views": views} for each in CHANGES for views in (None, ["codes"])],
    "/v1/explain": [{}, {"query": "known(X)"}, {"propagation": True}],
    "/v1/realize": [{"requests": [f"+{f}"]} for f in ('known("zoe")', 'shown("ann", "x")')],
    "/v1/realize/apply": [{"requests": ['+known("zoe")'], "number": 1, "version": 0}],
    "/v1/program": [{"text": "base account(owner: str key, code: str).", "dry_run": True}],
    "/v1/audit": [{}],
    "/v1/why": [
        *({"fact": f} for f in ('shown("ann", "mine")', 'shown("bob", X)', 'known("ann")')),
        *({"fact": f, "version": 0} for f in ("codes(C)", 'shown("ann", "mine")')),
        {"fact": 'shown("ann", "mine")', "every": True},
    ],
    "/v1/why-not": [{"fact": 'known("ann")'}, {"fact": 'codes("x")'}],
    "/v1/why-changed": [{"fact": 'codes("x")'}],
}
PARAMETERS = {
    "": [""],
    "version": ["0", "1", "99"],
    "first": ["0"],
    "offset": ["-1", "now", "x"],
    "constraint": ["weak", "twice"],
    "after": ["0"],
    "relation": ["account"],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("trust")
    tokens = folder / "tokens"
    path = folder / "trust.db"
    database = deltalog.connect(path, program=PROGRAM, facts=FACTS, engine="reference")
    shown = {
        name: create_token(tokens, name, roles, grants, database.relations)
        for name, (roles, grants) in CALLERS.items()
    }
    shown["administrator"] = create_token(tokens, "root", ["admin"], [])
    with ExitStack() as stack:
        service = stack.enter_context(serving(database, tokens=tokens))
        admin = shown["administrator"]
        made = {"insert": {"account": [["dan", "s3cr3t-d"]], "wish": [["s3cr3t-b"]]}}
        assert service.post("/v1/transactions", made, admin).status_code == 200
        yield service, shown


def operations(service: Service, token: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    document = service.get("/v1/openapi.json", token).json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def probes(path: str, method: str, operation: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Addresses and bodies for a route: every name in its path, and some of its parameters."""
    filled = [path]
    while "{" in filled[0]:
        start, end = filled[0].index("{"), filled[0].index("}") + 1
        filled = [each[:start] + name + each[end:] for each in filled for name in NAMES]
    if method in ("POST", "PUT", "PATCH"):
        for address in filled:
            for body in (*BODIES.get(path, ()), {}, {"parameters": {"x": 1}}):
                yield address, body
        return
    declared = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    needed = "".join(
        f"&{each['name']}={PARAMETERS.get(each['name'], ['1'])[0]}"
        for each in operation.get("parameters", ())
        if each["in"] == "query" and each.get("required")
    )
    for address in filled:
        view = address.split("/")[3] if address.count("/") > 2 else ""
        for text in ("", f"{view}.who=ann", f"{view}.who=bob", f"{view}.owner=bob"):
            yield f"{address}?{text}{needed}", None
        for name in declared:
            for value in PARAMETERS.get(name, ()):
                yield f"{address}?{name}={value}{needed}", None


def sent(service: Service, token: str) -> Iterator[tuple[str, str, Any, httpx.Response]]:
    for path, method, operation in operations(service, token):
        for address, body in probes(path, method, operation):
            more = {} if body is None else {"json": body}
            yield path, f"{method} {address}", body, service.call(method, address, token, **more)


def told(answer: httpx.Response) -> str:
    return answer.text + repr(answer.headers)


@pytest.mark.parametrize("name", CALLERS)
def test_a_limited_caller_sees_no_secret(served: tuple[Service, dict[str, str]], name: str) -> None:
    service, tokens = served
    statuses = set()
    for _, request, body, answer in sent(service, tokens[name]):
        own = repr(body) + request
        assert answer.status_code < 500, (request, body, answer.text)
        assert SECRET not in told(answer), (request, body, answer.text)
        assert "s3cr3t" not in own
        statuses.add(answer.status_code)
    assert 403 in statuses


def test_the_probes_show_the_secret_to_an_administrator(
    served: tuple[Service, dict[str, str]],
) -> None:
    service, tokens = served
    leaking = {
        path
        for path, _, _, answer in sent(service, tokens["administrator"])
        if SECRET in told(answer)
    }
    assert leaking >= {
        "/v1/query",
        "/v1/views/{view}/rows",
        "/v1/what-if",
        "/v1/transactions",
        "/v1/explain",
        "/v1/realize",
        "/v1/violations",
        "/v1/messages",
        "/v1/deltas",
        "/v1/program",
        "/v1/programs",
        "/v1/network",
        "/v1/why",
        "/v1/why-not",
    }


def test_a_limited_caller_reads_and_writes_what_it_was_granted(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    ann = create_token(tokens, "ann", ["read", "write"], ["note?who=ann"])
    database = deltalog.connect(program=PROGRAM, facts=FACTS, engine="reference")
    with serving(database, tokens=tokens) as service:
        assert service.get("/v1/views/note/rows?note.who=ann", ann).json()["rows"] == [
            ["ann", "mine"]
        ]
        assert service.get("/v1/views/note/rows", ann).status_code == 403
        asked = {"query": "note($who, T)", "parameters": {"who": "ann"}}
        assert service.post("/v1/query", asked, ann).json()["rows"] == [["mine"]]
        change = {"insert": {"note": [["ann", "new"]]}, "views": []}
        done = service.post("/v1/transactions", change, ann).json()
        assert done["delta"]["inserted"] == {"note": [["ann", "new"]]}
        other = {"insert": {"note": [["bob", "new"]]}}
        assert service.post("/v1/transactions", other, ann).status_code == 403
        listed = service.get("/v1/relations", ann).json()["relations"]
        assert [each["name"] for each in listed] == ["note"]


def test_a_writer_that_may_not_read_learns_accepted_or_refused(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    writer = create_token(tokens, "w", ["write"], [])
    database = deltalog.connect(program=PROGRAM, facts=FACTS, engine="reference")
    with serving(database, tokens=tokens) as service:

        def offered(changes: dict[str, Any]) -> httpx.Response:
            return service.post("/v1/transactions", {**changes, "views": ["codes"]}, writer)

        new = offered({"insert": {"note": [["bob", "new"]]}})
        known = offered({"insert": {"note": [["bob", "s3cr3t-note"]]}})
        assert new.status_code == known.status_code == 200
        assert new.json() == known.json()
        assert "stream-next-offset" not in new.headers
        taken = offered({"insert": {"key_of": [[1, "x"]]}})
        assert taken.status_code == 409
        assert SECRET not in taken.text


def test_a_writer_that_may_not_read_learns_no_version_anywhere(tmp_path: Path) -> None:
    """From the version before and after a transaction it would learn whether its fact was new."""
    tokens = tmp_path / "tokens"
    writer = create_token(tokens, "w", ["write"], [])
    database = deltalog.connect(tmp_path / "w.db", program=PROGRAM, engine="reference")
    with serving(database, tokens=tokens) as service:
        for path in ("/v1/commits", "/v1/deltas?first=0", "/v1/violations"):
            assert service.get(path, writer).status_code == 403, path
        assert service.get("/v1/relations", writer).json()["version"] is None
        tried = {"insert": {"note": [["bob", "new"]]}, "views": ["nothing"]}
        answer = service.post("/v1/what-if", tried, writer)
        assert (answer.status_code, answer.json()["version"]) == (200, None)


def test_a_limited_caller_does_not_learn_which_views_there_are(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    ann = create_token(tokens, "ann", ["read", "write"], ["note?who=ann", "shown?w=ann"])
    database = deltalog.connect(program=PROGRAM, facts=FACTS, engine="reference")
    with serving(database, tokens=tokens) as service:
        change = {"insert": {"note": [["ann", "new"]]}}
        for path in ("/v1/what-if", "/v1/transactions"):
            for name in ("codes", "nothing"):
                hidden = service.post(path, {**change, "views": [name]}, ann)
                assert hidden.status_code == 404
                assert hidden.json()["detail"] == f"there is no relation `{name}`"
            done = service.post(path, {**change, "views": ["shown"]}, ann).json()
            assert done["delta"]["inserted"]["shown"] == [["ann", "new"]]
        absent = service.post("/v1/why", {"fact": 'note("ann", "other")'}, ann)
        assert absent.json()["detail"] == '`note("ann", "other")` does not hold'


def test_a_limited_caller_reads_changes_across_other_columns(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    ann = create_token(tokens, "ann", ["read"], ["v?a=1"])
    program = "base e(a: int). view v(a: int). v(A) :- e(A)."
    other = "base e(a: int). view v(b: int, a: int). v(2, A) :- e(A)."
    facts = {"e": [(1,), (2,)]}
    with deltalog.connect(tmp_path / "c.db", program=program, facts=facts) as database:
        database.change_program(other)
    with serving(deltalog.connect(tmp_path / "c.db"), tokens=tokens) as service:
        delta = service.get("/v1/deltas?first=0", ann).json()["delta"]
        assert delta == {"inserted": {"v": [[2, 1]]}, "deleted": {"v": [[1]]}}


def test_a_set_replaces_no_fact_that_may_not_be_written(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    mine = create_token(tokens, "w", ["write"], ["account?code=mine"])
    database = deltalog.connect(program=PROGRAM, facts=FACTS, engine="reference")
    with serving(database, tokens=tokens) as service:
        replaced = {"set": {"account": [["ann", "mine"]]}}
        assert service.post("/v1/transactions", replaced, mine).status_code == 403
        added = {"set": {"account": [["eve", "mine"]]}}
        assert service.post("/v1/transactions", added, mine).status_code == 200
