"""The service as such: health, one shape of errors, the gate, tokens and limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from serving import GRAPH, serving

import deltalog
from deltalog.service.grant_texts import parse_grant
from deltalog.service.grants import Caller
from deltalog.service.metrics import Metrics
from deltalog.service.tokens import TokenFile, create_token, read_tokens, revoke_token
from waiting import HANG_SECONDS


def graph() -> deltalog.MemoryDatabase:
    return deltalog.connect(program=GRAPH, engine="reference")


def test_health_ready_status_and_metrics() -> None:
    with serving(graph()) as service:
        assert service.get("/health").json() == {"status": "alive"}
        assert service.get("/ready").json() == {"status": "ready"}
        status = service.get("/v1/status").json()
        assert status["version"] == 0
        assert status["offset"]
        text = service.get("/metrics").text
        assert 'deltalog_http_requests_total{method="GET",route="/health",status="200"} 1' in text
        assert "# TYPE deltalog_http_request_seconds histogram" in text
        assert "deltalog_version 0" in text


def test_metrics_have_all_their_digits() -> None:
    metrics = Metrics()
    metrics.count("many", 1_234_567)
    metrics.gauge("part", lambda: 0.25, "a part")
    assert "many 1234567\n" in metrics.text()
    assert "part 0.25\n" in metrics.text()


@pytest.mark.parametrize(
    ("path", "detail", "hint"),
    [
        ("/v1/views/path/rows?x=1", "no parameter `x`", "`path.COLUMN=VALUE` selects"),
        ("/v1/views/path/rows?edge.src=1", "no parameter `edge.src`", "`path.COLUMN=VALUE`"),
        ("/v1/views/path/rows?limt=1", "no parameter `limt`", "did you mean `limit`?"),
        ("/v1/views/path/rows?limit=1&limit=2", "`limit` is there twice", None),
        ("/v1/deltas?fisrt=1", "no parameter `fisrt`", "did you mean `first`?"),
        ("/v1/status?verbose=1", "no parameter `verbose`", None),
        ("/v1/views/path/stream?x=1", "`x` does not bind a column", "`path.COLUMN=VALUE`"),
        ("/v1/views/path/stream?edge.src=1", "`edge.src` does not bind", "`path.COLUMN=VALUE`"),
    ],
)
def test_parameters_that_would_be_ignored_are_refused(
    path: str, detail: str, hint: str | None
) -> None:
    with serving(graph()) as service:
        answer = service.get(path)
        assert answer.status_code == 400
        assert detail in answer.json()["detail"]
        found = answer.json()["problems"][0]["hint"]
        assert found is None if hint is None else hint in found
        assert service.get("/v1/views/path/rows?path.x=1&limit=1").status_code == 200
        assert service.get("/v1/views/path/stream?offset=-1&another=1").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "code"),
    [
        ("GET", "/v2", {}, 404, "E1723"),
        ("DELETE", "/health", {}, 405, "E1734"),
        ("GET", "/health", {"Host": "example.com"}, 421, "E1728"),
        ("GET", "/health", {"Host": "example.com:80"}, 421, "E1728"),
        ("GET", "/health", {"Origin": "https://example.com"}, 403, "E1727"),
        ("GET", "/health", {"Origin": "null"}, 403, "E1727"),
        ("GET", "/health", {"Origin": "http://[bad"}, 403, "E1727"),
        ("POST", "/v1/transactions", {"Idempotency-Key": ""}, 422, "E1722"),
    ],
)
def test_errors_have_one_shape(
    method: str, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    with serving(graph()) as service:
        answer = service.call(method, path, headers=headers)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        document = answer.json()
        assert document["code"] == code
        assert document["status"] == status
        assert document["type"] == f"urn:deltalog:error:{code}"
        assert document["problems"][0]["text"].startswith(f"error[{code}]")


def test_origins_that_are_allowed_get_cors_headers() -> None:
    with serving(graph(), origins=("https://example.com",)) as service:
        headers = {"Origin": "https://example.com"}
        answer = service.get("/health", headers=headers)
        assert answer.headers["access-control-allow-origin"] == "https://example.com"
        asked = {**headers, "Access-Control-Request-Method": "POST"}
        assert service.call("OPTIONS", "/v1/status", headers=asked).status_code == 200
        own = {"Origin": service.address}
        assert service.get("/health", headers=own).status_code == 200


def test_a_body_that_is_too_large_is_refused_whatever_it_declares() -> None:
    with serving(graph(), body_bytes_max=100) as service:
        assert service.call("POST", "/health", content=b"x" * 101).json()["code"] == "E1725"
        chunks = (b"x" * 60 for _ in range(2))
        assert service.call("POST", "/health", content=chunks).json()["code"] == "E1725"
        assert service.call("POST", "/health", content=b"x" * 100).json()["code"] == "E1734"


def test_too_many_requests_are_told_to_come_again() -> None:
    with serving(graph(), requests_per_second=0.001) as service:
        assert service.get("/v1/status").status_code == 200
        answer = service.get("/v1/status")
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert service.get("/health").status_code == 200


# --- tokens


def test_tokens_are_needed_and_revoked_while_the_service_runs(tmp_path: Path) -> None:
    tokens = tmp_path / "shop.tokens"
    shown = create_token(tokens, "ann", ["read"], [])
    with serving(graph(), tokens=tokens) as service:
        assert service.get("/health").status_code == 200
        answer = service.get("/v1/status")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert service.get("/v1/status", token="wrong").status_code == 401
        assert service.get("/v1/status", token=shown[:-1]).status_code == 401
        assert service.get("/v1/status", token=shown).status_code == 200
        later = create_token(tokens, "bob", ["read"], ["path"])
        assert service.get("/v1/status", token=later).json()["code"] == "E1721"
        revoke_token(tokens, "ann")
        assert service.get("/v1/status", token=shown).status_code == 401


def test_secrets_are_in_no_file(tmp_path: Path) -> None:
    tokens = tmp_path / "shop.tokens"
    shown = create_token(tokens, "ann", ["read", "write"], ["path?src=1"])
    secret = shown.split("_", 2)[2]
    text = tokens.read_text()
    assert secret not in text
    assert os.stat(tokens).st_mode & 0o077 == 0
    (found,) = read_tokens(tokens)
    assert (found.name, found.roles) == ("ann", ("read", "write"))
    known = TokenFile(tokens).find(shown)
    assert known is not None
    assert known.grants == (parse_grant("path?src=1"),)
    assert TokenFile(tokens).find(shown.replace("dlt_", "abc_")) is None


def test_grants_limit_roles() -> None:
    relations = deltalog.connect(program=GRAPH, engine="reference").relations
    grants = tuple(map(parse_grant, ("path?src=1", "write:edge?src=1")))
    caller = Caller("ann", frozenset({"read", "write"}), grants)
    assert caller.may_read("path", {"src": 1})
    assert caller.may_read("path", {"src": 1, "dst": 3})
    assert not caller.may_read("path", {"src": 2})
    assert not caller.may_read("path")
    assert not caller.may_read("path", {"dst": 1})
    assert not caller.may_read("edge", {"src": 1})
    assert caller.may_write("edge")
    assert not caller.may_write("path2")
    assert caller.may_write_row(relations["edge"], (1, 9))
    assert not caller.may_write_row(relations["edge"], (2, 9))
    assert not caller.may_administrate()
    assert Caller("x", frozenset({"write"})).may_write()
    assert not Caller("x", frozenset({"write"})).may_read("path")
    assert Caller("x", frozenset({"admin"}), grants).reads_all


# --- the process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_command_and_keeps_what_was_acknowledged(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = tmp_path / "graph.dl"
    program.write_text(GRAPH)
    path = tmp_path / "graph.db"
    deltalog.connect(path, program=program, engine="reference").close()
    command = [sys.executable, "-m", "deltalog.cli.main", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--engine", "reference"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if '"listening"' in line:
            break
    process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait(HANG_SECONDS) == 0, "".join(lines) + rest
    events = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert events[-1]["event"] == "stopped"
    assert not [each for each in events if each["level"] == "error"]


def test_other_machines_need_tokens() -> None:
    command = [sys.executable, "-m", "deltalog.cli.main", "serve", "x.dl", "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error[E1729]" in done.stderr


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    program = tmp_path / "graph.dl"
    program.write_text(GRAPH)
    hiding = "import sys; sys.modules['fastapi'] = None; from deltalog.cli.main import main; main()"
    command = [sys.executable, "-c", hiding, "serve", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error[E0718]: `deltalog serve` needs the package fastapi" in done.stderr
    assert "deltalog[service]" in done.stderr
