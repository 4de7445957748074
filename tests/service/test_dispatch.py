"""Messages reach their targets: at least once, in order, signed, and nowhere they must not go."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from receiver import Answer, Receiver, Request
from standardwebhooks.webhooks import Webhook as StandardWebhook

import deltalog
from deltalog.runtime.deliveries import (
    PAUSE_SECONDS_MAX,
    Deliveries,
    Outcome,
    Recorded,
    Target,
    forget_deliveries,
    resume_deliveries,
    retry_dead_letters,
)
from deltalog.service.dispatch import Dispatcher, Summary
from deltalog.service.targets import HttpTarget
from deltalog.store.file_journal import FileJournal
from deltalog.store.sqlite import open_connection
from deltalog.store.sqlite_journal import JournalUse

SECRET = bytes(range(32))
LOOPBACK = (ip_network("127.0.0.0/8"),)
PROGRAM = """
    base stock(item: str key, amount: int).
    rule low for I when stock(I, N), N < 10 do emit low(I).
    rule high for I when stock(I, N), N > 100 do emit high(I).
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[deltalog.FileDatabase]:
    with deltalog.connect(tmp_path / "shop.db", program=PROGRAM) as database:
        yield database


def emit(database: Any, *items: str, amount: int = 1) -> None:
    for item in items:
        database.apply(insert={"stock": [(item, amount)]})


def http_target(url: str, name: str = "shop", **settings: Any) -> HttpTarget:
    about = {key: settings.pop(key) for key in ("messages", "rules") if key in settings}
    pauses = settings.pop("pauses_seconds", (3600.0,) * 3)
    target = Target(name, **about, pauses_seconds=pauses)
    return HttpTarget(target, url, (SECRET,), **({"networks": LOOPBACK} | settings))


def dispatch_once(
    path: Path, *targets: HttpTarget, **settings: Any
) -> tuple[Summary, list[Recorded]]:
    recorded: list[Recorded] = []

    async def run(journal: FileJournal) -> Summary:
        return await Dispatcher(journal, targets, recorded.append, **settings).run(is_once=True)

    with closing(FileJournal(path)) as journal:
        return asyncio.run(run(journal)), recorded


def items(receiver: Receiver, type_: str | None = None) -> list[str]:
    bodies = [json.loads(request.body) for request in receiver.requests]
    return [each["data"]["arguments"][0] for each in bodies if type_ in (None, each["type"])]


# --- what is sent -------------------------------------------------------------------------------


def test_a_delivery_verifies_by_standard_webhooks(shop: deltalog.FileDatabase) -> None:
    emit(shop, "nut")
    (message,) = shop.messages()
    with Receiver() as receiver:
        summary, _ = dispatch_once(shop.path, http_target(receiver.url))
    assert summary.is_complete
    (request,) = receiver.requests
    secret = "whsec_" + base64.b64encode(SECRET).decode()
    found = StandardWebhook(secret).verify(request.body, request.headers)
    assert found == {
        "type": "low",
        "timestamp": message.time.isoformat().replace("+00:00", "Z"),
        "data": {"rule": "low", "arguments": ["nut"]},
    }
    assert request.headers["webhook-id"] == message.id
    assert request.headers["content-type"] == "application/json"
    with pytest.raises(Exception, match="No matching signature"):
        StandardWebhook("whsec_" + base64.b64encode(b"x" * 32).decode()).verify(
            request.body, request.headers
        )


def test_every_secret_signs_while_one_is_replaced(shop: deltalog.FileDatabase) -> None:
    emit(shop, "nut")
    secrets = (b"n" * 32, SECRET)
    with Receiver() as receiver:
        target = http_target(receiver.url)
        dispatch_once(shop.path, HttpTarget(target.target, target.url, secrets, LOOPBACK))
    for secret in secrets:
        text = "whsec_" + base64.b64encode(secret).decode()
        StandardWebhook(text).verify(receiver.requests[0].body, receiver.requests[0].headers)


# --- order, failures, dead letters --------------------------------------------------------------


def test_a_failure_holds_its_own_rule_only(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a", "b")
    emit(shop, "x", "y", amount=500)
    with Receiver(lambda request: Answer(500 if b'"low"' in request.body else 200)) as receiver:
        summary, recorded = dispatch_once(shop.path, http_target(receiver.url))
        assert items(receiver, "low") == ["a"]
        assert items(receiver, "high") == ["x", "y"]
        assert (summary.undelivered, summary.is_complete) == (2, False)
        failed = [each for each in recorded if not each.outcome.is_delivered]
        assert [(each.state, each.outcome.reason) for each in failed] == [("waiting", "status 500")]
        before = len(receiver.requests)
        dispatch_once(shop.path, http_target(receiver.url))  # not due yet
        assert len(receiver.requests) == before
        states = {rule.name: (rule.undelivered, rule.dead) for rule in shop.rules()}
        assert states == {"low": (2, 0), "high": (0, 0)}


def test_retries_keep_the_id_and_the_order(shop: deltalog.FileDatabase) -> None:
    emit(shop, *"abcdef")
    ids = [message.id for message in shop.messages()]
    seen: dict[str, int] = {}

    def third_time(request: Request) -> Answer:
        id_ = request.headers["webhook-id"]
        seen[id_] = seen.get(id_, 0) + 1
        return Answer(200 if seen[id_] == 3 else 503)

    with Receiver(third_time) as receiver:
        target = http_target(receiver.url, pauses_seconds=(0.0, 0.0))
        summary, _ = dispatch_once(shop.path, target)
    assert summary.is_complete
    assert receiver.ids == [id_ for id_ in ids for _ in range(3)]
    assert len({(r.headers["webhook-id"], r.body) for r in receiver.requests}) == len(ids)


def test_dead_letters_are_a_relation_and_can_be_retried(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a", "b")
    first, second = shop.messages()
    with Receiver(lambda request: Answer(400, body=b"no\n\x1b[2J")) as receiver:
        target = http_target(receiver.url, pauses_seconds=(0.0,))
        summary, _ = dispatch_once(shop.path, target)
        assert summary.states == {"waiting": 2, "dead": 2}
        found = shop.query("sys_dead_letter(T, S, I, R, N, P, A, E, W)")
        assert [row[:7] for row in sorted(found)] == [
            ("shop", m.sequence, m.id, "low", "low", m.payload, 2) for m in (first, second)
        ]
        assert {row[7] for row in found} == {"status 400: no  [2J"}
        assert [(r.undelivered, r.dead) for r in shop.rules()] == [(0, 2), (0, 0)]
        receiver.decide = lambda request: Answer(204)
        assert dispatch_once(shop.path, target)[0].states == {}
        with closing(FileJournal(shop.path, JournalUse.CHANGE)) as journal:
            assert retry_dead_letters(journal) == 2
        emit(shop, "c")
        dispatch_once(shop.path, target)
    assert items(receiver)[-3:] == ["a", "b", "c"]
    assert receiver.ids[-3:-1] == [first.id, second.id]
    assert not list(shop.query("sys_dead_letter(T, S, I, R, N, P, A, E, W)"))


def test_a_dead_letter_that_fails_again_stays_one(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a", "b")
    with Receiver(lambda request: Answer(400)) as receiver:
        target = http_target(receiver.url, pauses_seconds=())
        dispatch_once(shop.path, target)
        with closing(FileJournal(shop.path, JournalUse.CHANGE)) as journal:
            retry_dead_letters(journal)
        dispatch_once(shop.path, target)
        assert items(receiver) == ["a", "b", "a", "b"]
    assert [letter.attempts for letter in shop.dead_letters()] == [2, 2]


def test_410_stops_a_target_until_it_is_resumed(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a", "b")
    with Receiver(lambda request: Answer(410)) as receiver:
        target = http_target(receiver.url)
        summary, _ = dispatch_once(shop.path, target)
        assert (len(receiver.requests), summary.undelivered) == (1, 2)
        receiver.decide = lambda request: Answer()
        dispatch_once(shop.path, target)
        assert len(receiver.requests) == 1
        with closing(FileJournal(shop.path, JournalUse.CHANGE)) as journal:
            assert resume_deliveries(journal, "shop")
            assert not resume_deliveries(journal, "shop")
        assert dispatch_once(shop.path, target)[0].is_complete
    assert items(receiver) == ["a", "a", "b"]


@pytest.mark.parametrize("form", ["seconds", "date", "nonsense", "forever"])
def test_retry_after_is_respected(shop: deltalog.FileDatabase, form: str) -> None:
    emit(shop, "a")
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 5000))
    text = {"seconds": "5000", "date": later, "nonsense": "soon", "forever": "9" * 40}[form]
    least = {"nonsense": 0, "forever": PAUSE_SECONDS_MAX}.get(form, 4900)
    with Receiver(lambda request: Answer(429, {"retry-after": text})) as receiver:
        before = time.time()
        target = http_target(receiver.url, pauses_seconds=(1000.0,))
        _, (recorded,) = dispatch_once(shop.path, target)
    most = {"nonsense": 1300, "forever": PAUSE_SECONDS_MAX}.get(form, 5100)
    assert before + max(least, 800) <= recorded.due <= time.time() + most


def test_pauses_vary_a_little() -> None:
    database = deltalog.connect(program=PROGRAM)
    emit(database, "a")
    dues = []
    for chance in (0.0, 1.0):
        with database.journal() as journal:
            target = Target(f"t{chance}", pauses_seconds=(100.0,))
            made = Deliveries(journal, [target], iter([chance]).__next__)
            (begun,) = made.due(0.0)
            dues += [each.due for each in made.record([(begun, Outcome("no"))], now=0.0)]
    assert dues == [80.0, 120.0]


# --- where nothing is sent ----------------------------------------------------------------------


def test_redirects_are_not_followed(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")
    with Receiver() as other:
        answer = Answer(302, {"location": other.url})
        with Receiver(lambda request: answer) as receiver:
            summary, _ = dispatch_once(shop.path, http_target(receiver.url))
        assert (len(receiver.requests), len(other.requests)) == (1, 0)
    assert not summary.is_complete


@pytest.mark.parametrize(
    "addresses",
    [
        *("127.0.0.1", "10.0.0.7", "169.254.169.254", "0.0.0.0", "224.0.0.1", "8.8.8.8 10.0.0.1"),
        *("::1", "::ffff:192.168.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1%eth0"),
    ],
)
def test_private_networks_are_refused(shop: deltalog.FileDatabase, addresses: str) -> None:
    emit(shop, "a")

    async def resolve(host: str, port: int) -> list[str]:
        return addresses.split()

    target = http_target("https://hooks.example.com/", networks=())
    _, (recorded,) = dispatch_once(shop.path, target, resolve=resolve)
    assert "is not a public address, and its network not allowed" in recorded.outcome.reason


def test_plain_http_is_for_allowed_networks_only(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")

    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.215.14"]

    target = http_target("http://hooks.example.com/")
    _, (recorded,) = dispatch_once(shop.path, target, resolve=resolve)
    assert recorded.outcome.reason.startswith("plain http is only for networks that are allowed")


def test_the_checked_address_is_the_one_connected_to(shop: deltalog.FileDatabase) -> None:
    """A name that leads elsewhere the second time it is resolved."""
    emit(shop, "a")
    asked: list[str] = []
    with Receiver() as receiver:

        async def resolve(host: str, port: int) -> list[str]:
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

        url = f"http://hooks.example.com:{receiver.port}/hook?x=1"
        summary, _ = dispatch_once(shop.path, http_target(url), resolve=resolve)
    assert summary.is_complete
    assert asked == ["hooks.example.com"]
    (request,) = receiver.requests
    assert request.path == "/hook?x=1"
    assert request.headers["host"] == f"hooks.example.com:{receiver.port}"


def test_the_next_address_is_tried_if_nobody_listens(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")
    with Receiver() as receiver:

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.2", "127.0.0.1"]

        url = f"http://hooks.example.com:{receiver.port}/hook"
        summary, _ = dispatch_once(shop.path, http_target(url), resolve=resolve)
    assert summary.is_complete


@contextmanager
def dripping() -> Iterator[int]:
    """A server that begins an answer and never ends it."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b"x-more: 1\r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            stop.set()
            thread.join()


def test_an_answer_that_never_ends_is_a_failure(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")
    with dripping() as port:
        target = http_target(f"http://127.0.0.1:{port}/", timeout_seconds=0.3)
        _, (recorded,) = dispatch_once(shop.path, target)
    assert recorded.outcome.reason == "no answer within 0.3 seconds"


def test_little_is_read_of_a_long_answer(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a", "b")
    with Receiver(lambda request: Answer(500, body=b"x" * 5_000_000)) as receiver:
        _, (recorded,) = dispatch_once(shop.path, http_target(receiver.url))
    assert recorded.outcome.reason == "status 500: " + "x" * 200


def test_nobody_listens(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    _, (recorded,) = dispatch_once(shop.path, http_target(f"http://127.0.0.1:{port}/"))
    assert recorded.outcome.reason.startswith("ConnectError")


def _certificate(folder: Path, name: str) -> Path:
    """A certificate for a name, with its key, signed by itself."""
    made = folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", str(folder / "key.pem"), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    made.write_text(made.read_text() + (folder / "key.pem").read_text())
    return made


@pytest.mark.parametrize("name", ["hooks.example.com", "other.example.com"])
def test_tls_checks_the_name_and_not_the_address(
    shop: deltalog.FileDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    emit(shop, "a")
    certificate = _certificate(tmp_path, "hooks.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    receiver = Receiver()
    server = receiver._server
    server.socket = context.wrap_socket(server.socket, server_side=True)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with receiver:
        target = http_target(f"https://{name}:{receiver.port}/")
        summary, _ = dispatch_once(shop.path, target, resolve=resolve)
    assert summary.is_complete == (name == "hooks.example.com")
    assert len(receiver.requests) == int(name == "hooks.example.com")


# --- who gets what ------------------------------------------------------------------------------


def test_targets_by_name_and_by_rule(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")
    emit(shop, "x", amount=500)
    with Receiver() as receiver:
        targets = [
            http_target(f"{receiver.url}/{name}", name, **wants)
            for name, wants in (
                ("everything", {}),
                ("names", {"messages": ("low",)}),
                ("rules", {"rules": ("high",)}),
                ("none", {"messages": ("low",), "rules": ("high",)}),
            )
        ]
        dispatch_once(shop.path, *targets)
    found = {(r.path.rpartition("/")[2], json.loads(r.body)["type"]) for r in receiver.requests}
    wanted = {("everything", "low"), ("everything", "high"), ("names", "low"), ("rules", "high")}
    assert found == wanted


def test_messages_are_kept_for_every_target_that_is_known(shop: deltalog.FileDatabase) -> None:
    emit(shop, *(f"i{number}" for number in range(150)))
    slow = http_target("http://127.0.0.1:9/", "slow", rules=("low",))
    with Receiver() as receiver:
        dispatch_once(shop.path, http_target(receiver.url), slow)
        assert len(receiver.requests) == 150
        emit(shop, "more")
        assert len(shop.messages()) == 151
        dispatch_once(shop.path, http_target(receiver.url))  # `slow` is still known
        emit(shop, *(f"j{number}" for number in range(152)))
        assert len(shop.messages()) == 303
        with closing(FileJournal(shop.path)) as journal:
            assert forget_deliveries(journal, "slow")
            assert not forget_deliveries(journal, "slow")
        dispatch_once(shop.path, http_target(receiver.url))
        emit(shop, *(f"k{number}" for number in range(310)))
    assert len(shop.messages()) < 350
    assert not shop.verify().differences


def test_messages_that_nobody_takes_are_kept(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a")
    emit(shop, "x", amount=500)
    with Receiver() as receiver, closing(FileJournal(shop.path)) as journal:
        target = http_target(receiver.url, messages=("low",))
        dispatcher = Dispatcher(journal, [target])
        assert dispatcher.deliveries.unclaimed == {"high"}
        asyncio.run(dispatcher.run(is_once=True))
    assert shop.settled_messages().keys() == {"low"}
    discarding = HttpTarget(Target("none", messages=("high",)))
    assert dispatch_once(shop.path, discarding)[0].is_complete
    assert shop.settled_messages().keys() == {"low", "high"}


def test_a_target_may_begin_now(shop: deltalog.FileDatabase) -> None:
    emit(shop, "a", "b")
    with Receiver() as receiver:
        made = http_target(receiver.url)
        target = HttpTarget(Target("late", is_from_now=True), made.url, made.secrets, made.networks)
        dispatch_once(shop.path, target)
        emit(shop, "c")
        dispatch_once(shop.path, target)
    assert items(receiver) == ["c"]


# --- beside a writer ----------------------------------------------------------------------------


def test_a_dispatcher_runs_beside_the_writer(shop: deltalog.FileDatabase) -> None:
    with Receiver() as receiver, closing(FileJournal(shop.path)) as journal:

        async def run() -> Summary:
            dispatcher = Dispatcher(journal, [http_target(receiver.url)])
            running = asyncio.create_task(dispatcher.run(is_once=False, poll_seconds=0.01))
            for number in range(30):
                await asyncio.to_thread(emit, shop, f"item{number}")
                await asyncio.sleep(0)
            while len(receiver.requests) < 30:
                await asyncio.sleep(0.01)
            dispatcher.stop()
            return await running

        summary = asyncio.run(run())
    assert summary.states == {"delivered": 30}
    assert items(receiver) == [f"item{number}" for number in range(30)]
    assert shop.verify().is_clean


def test_one_dispatcher_at_a_time(shop: deltalog.FileDatabase) -> None:
    with closing(FileJournal(shop.path)):
        with pytest.raises(deltalog.DataError, match="E1602"):
            FileJournal(shop.path)
        with pytest.raises(deltalog.DataError, match="E1602"):
            shop.dispatch(print)
        FileJournal(shop.path, JournalUse.READ).close()
    FileJournal(shop.path).close()


def test_a_writer_of_another_program_is_still_noticed(tmp_path: Path) -> None:
    database = deltalog.connect(tmp_path / "shop.db", program=PROGRAM)
    emit(database, "a")
    database.dispatch(lambda message: None)
    emit(database, "b")
    connection = open_connection(database.path, is_writable=True)
    connection.execute("DELETE FROM stock")
    connection.close()
    with pytest.raises(deltalog.DataError, match="a program other than Deltalog"):
        emit(database, "c")


def test_outcomes_wait_while_a_group_has_the_file(
    shop: deltalog.FileDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.store.sqlite.BUSY_MILLISECONDS", 10)
    emit(shop, "a", "b")
    with Receiver() as receiver, closing(FileJournal(shop.path)) as journal:

        async def run() -> Summary:
            dispatcher = Dispatcher(journal, [http_target(receiver.url)])
            with shop.group():
                emit(shop, "x", amount=500)
                running = asyncio.create_task(dispatcher.run(is_once=True, poll_seconds=0.01))
                while not receiver.requests or not dispatcher._ended:
                    await asyncio.sleep(0.01)
            return await running

        summary = asyncio.run(run())
    assert summary.states == {"delivered": 2}
    assert items(receiver) == ["a", "b"]


def test_a_file_that_is_taken_away_ends_the_dispatcher(
    shop: deltalog.FileDatabase, tmp_path: Path
) -> None:
    shop.close()
    with closing(FileJournal(shop.path)) as journal:
        assert journal.is_changed()
        shop.path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(deltalog.DataError, match="E0914"):
            journal.is_changed()


KILLED = """
import asyncio, os, signal, sys
sys.path[:0] = {path!r}
import test_dispatch as tests
from deltalog.service.webhooks import Webhook
from deltalog.runtime.deliveries import Outcome
from pathlib import Path

deliver = Webhook.deliver
async def killed(self, message):
    if {when!r} == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    outcome = await deliver(self, message)
    os.kill(os.getpid(), signal.SIGKILL)
Webhook.deliver = killed
tests.dispatch_once(Path({file!r}), tests.http_target({url!r}))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_message_survives_a_kill(shop: deltalog.FileDatabase, when: str) -> None:
    emit(shop, "a")
    (message,) = shop.messages()
    with Receiver() as receiver:
        words = {"path": sys.path, "when": when, "file": str(shop.path), "url": receiver.url}
        done = subprocess.run([sys.executable, "-c", KILLED.format(**words)], check=False)
        assert done.returncode == -9
        assert len(receiver.requests) == int(when == "after")
        assert dispatch_once(shop.path, http_target(receiver.url))[0].is_complete
    assert set(receiver.ids) == {message.id}
    assert len(receiver.ids) == (2 if when == "after" else 1)


def test_environment_has_no_say_about_proxies(
    shop: deltalog.FileDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit(shop, "a")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:9")
    with Receiver() as receiver:
        assert dispatch_once(shop.path, http_target(receiver.url))[0].is_complete
