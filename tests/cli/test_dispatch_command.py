"""`deltalog dispatch` and `deltalog messages`, as a user calls them; a receiver is on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import COMMAND, Call

import deltalog
from waiting import HANG_SECONDS, wait_until

sys.path.append(str(Path(__file__).parents[1] / "service"))
from receiver import Answer, Receiver

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
PROGRAM = """
base stock(item: str key, amount: int).
rule low for I when stock(I, N), N < 10 do emit low(I).
rule high for I when stock(I, N), N > 100 do emit high(I).
"""
LOOPBACK = ("--allow-network", "127.0.0.0/8")


@pytest.fixture(autouse=True)
def _shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTALOG_WEBHOOK_SECRET", SECRET)
    with deltalog.connect("shop.db", program=PROGRAM, engine="reference") as database:
        database.apply(insert={"stock": [("nut", 5)]})
        database.apply(insert={"stock": [("bolt", 500)]})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def test_once(invoke: Call, receiver: Receiver) -> None:
    done = invoke("dispatch", "shop.db", "--to", receiver.url, *LOOPBACK, "--once")
    assert done.exit_code == 0
    assert len(receiver.requests) == 2
    assert sorted(line.split()[:2] for line in done.stdout.splitlines()) == [
        ["delivered", "high"],
        ["delivered", "low"],
    ]
    assert "2 delivered; 0 undelivered" in done.stderr
    again = invoke("dispatch", "shop.db", "--to", receiver.url, *LOOPBACK, "--once")
    assert "nothing was due; 0 undelivered" in again.stderr
    assert len(receiver.requests) == 2


def test_one_message_to_one_address(invoke: Call, receiver: Receiver) -> None:
    to = ("--to", f"low={receiver.url}")
    done = invoke("dispatch", "shop.db", *to, *LOOPBACK, "--once", "--json")
    assert done.exit_code == 0
    (record,) = map(json.loads, done.stdout.splitlines())
    assert record["state"] == "delivered"
    assert record["target"] == record["name"] == "low"
    assert "no target takes `high`: these messages are kept until one does" in done.stderr
    status = json.loads(invoke("dispatch", "shop.db", "--status", "--json").stdout)
    assert status["unclaimed"] == {"high": 1}


def test_failures_status_and_retries(invoke: Call, receiver: Receiver) -> None:
    text = f'[targets.office]\nurl = "{receiver.url}"\npauses_seconds = []\n'
    Path("targets.toml").write_text(text + 'allow_networks = ["127.0.0.0/8"]\n', encoding="utf-8")
    receiver.decide = lambda request: Answer(500, body=b"out of \x1b[31mpaper")
    run = ("dispatch", "shop.db", "--targets", "targets.toml", "--once")
    failed = invoke(*run)
    assert failed.exit_code == 1
    assert "2 dead; 0 undelivered" in failed.stderr
    assert "→ office after attempt 1: status 500: out of  [31mpaper" in failed.stderr
    status = invoke("dispatch", "shop.db", "--status").stdout
    assert "office  high        0     1" in status
    assert "dead letter low msg_" in status
    listed = invoke("messages", "shop.db", "--dead", "--json", "--engine", "reference").stdout
    records = [json.loads(line) for line in listed.splitlines()]
    assert [(each["name"], each["arguments"]) for each in records] == [
        ("low", ["nut"]),
        ("high", ["bolt"]),
    ]
    rules = invoke("rules", "shop.db", "--format", "json", "--engine", "reference").stdout
    assert [(each["undelivered"], each["dead"]) for each in json.loads(rules)] == [(0, 1), (0, 1)]
    receiver.decide = lambda request: Answer()
    retried = invoke(*run, "--retry-dead")
    assert "2 dead letters to be delivered" in retried.stderr
    assert retried.exit_code == 0
    assert "dead" not in invoke("dispatch", "shop.db", "--status").stdout.split("\n", 1)[1]


def test_a_stopped_target(invoke: Call, receiver: Receiver) -> None:
    receiver.decide = lambda request: Answer(410)
    run = ("dispatch", "shop.db", "--to", receiver.url, *LOOPBACK, "--once")
    stopped = invoke(*run)
    assert stopped.exit_code == 1
    assert "status 410; stopped" in stopped.stderr
    assert "default is stopped: status 410" in invoke("dispatch", "shop.db", "--status").stdout
    resumed = invoke("dispatch", "shop.db", "--resume", "default")
    assert "`default` gets messages again" in resumed.stderr
    receiver.decide = lambda request: Answer()
    assert invoke(*run).exit_code == 0
    assert "nothing is held" in invoke("dispatch", "shop.db", "--forget", "default").stderr
    assert "E1606" in invoke("dispatch", "shop.db", "--forget", "default").stderr


def test_what_is_refused(invoke: Call, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = invoke("dispatch", "shop.db", "--to", receiver.url, "--once")
    assert (refused.exit_code, len(receiver.requests)) == (1, 0)
    assert "127.0.0.1 is not a public address" in refused.stderr
    assert "--allow-network 127.0.0.1" in refused.stderr
    assert invoke("dispatch", "shop.db").exit_code == 2
    assert invoke("dispatch", "shop.db", "--allow-network", "here").exit_code == 2
    assert invoke("dispatch", "none.db", "--to", "https://example.com").exit_code == 4
    nameless = invoke("dispatch", "shop.db", "--to", "=https://example.com", "--once")
    assert "the name of a target is empty" in nameless.stderr
    monkeypatch.delenv("DELTALOG_WEBHOOK_SECRET")
    assert "E1604" in invoke("dispatch", "shop.db", "--to", "https://example.com").stderr


def test_states_in_buckets_are_refused(invoke: Call) -> None:
    """A path has lost a slash of such a name; the message has it."""
    result = invoke("dispatch", "s3://bucket/state", "--status")
    assert result.exit_code == 1
    assert "E1608" in result.stderr
    assert "`s3://bucket/state`" in result.stderr


def test_messages_are_listed(invoke: Call) -> None:
    listed = invoke("messages", "shop.db", "--engine", "reference")
    assert listed.exit_code == 0
    rows = listed.stdout.splitlines()[2:]
    assert [row.split()[2:] for row in rows] == [
        ["low", 'low("nut")', "undelivered"],
        ["high", 'high("bolt")', "undelivered"],
    ]
    sequence = rows[0].split()[0]
    after = invoke("messages", "shop.db", "--after", sequence, "--json", "--engine", "reference")
    (record,) = map(json.loads, after.stdout.splitlines())
    assert (record["rule"], record["arguments"], record["state"]) == (
        "high",
        ["bolt"],
        "undelivered",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_beside_a_writer_until_it_is_stopped(
    receiver: Receiver, number: signal.Signals
) -> None:
    words = [str(COMMAND), "dispatch", "shop.db", "--to", receiver.url, *LOOPBACK]
    running = subprocess.Popen(
        [*words, "--poll-seconds", "0.02"], stderr=subprocess.PIPE, env=os.environ
    )
    try:
        wait_until(lambda: len(receiver.requests) == 2, "2 deliveries")
        with deltalog.connect("shop.db", engine="reference") as database:
            database.apply(insert={"stock": [("screw", 5)]})
            wait_until(lambda: len(receiver.requests) == 3, "3 deliveries")
            database.apply(insert={"stock": [("nail", 5)]})
            wait_until(lambda: len(receiver.requests) == 4, "4 deliveries")
            running.send_signal(number)
            _, said = running.communicate(timeout=HANG_SECONDS)
            assert running.returncode == 0
            assert b"4 delivered; 0 undelivered" in said
            assert database.verify().is_clean
    finally:
        running.kill()
        running.wait()


def test_a_migration_that_would_lose_messages_shows_no_change(invoke: Call) -> None:
    Path("less.dl").write_text("base stock(item: str key, amount: int).", encoding="utf-8")
    migration = ("migrate", "shop.db", "less.dl", "--engine", "reference")
    refused = invoke(*migration, "--yes")
    assert refused.exit_code == 1
    assert "E1607" in refused.stderr
    assert refused.stdout == ""
    assert invoke(*migration, "--what-if").exit_code == 0


def test_a_message_that_no_rule_emits_is_named(invoke: Call, receiver: Receiver) -> None:
    for name, hint in (("lwo", "; did you mean `low`?"), ("low", None)):
        done = invoke("dispatch", "shop.db", "--to", f"{name}={receiver.url}", *LOOPBACK, "--once")
        text = f"no rule emits `{name}`, for which `{name}` waits{hint}"
        assert (text in done.stderr) == (hint is not None)
