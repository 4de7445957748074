"""A service in front of a state in tables: its log is the streams, and no Spark is started for it.

The writer is real Spark; the service opens the state beside it, as another process would, and the
clients are the published ones of Durable Streams.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import durable_streams
import httpx
import pytest
from pyspark.sql import SparkSession

import deltalog
from deltalog.cli.opening import Settings
from deltalog.cli.progress import Progress
from deltalog.cli.served import Served, open_served
from deltalog.pipeline import state_database, state_writes
from deltalog.pipeline.open_state import is_state, open_state
from deltalog.pipeline.state_database import StateDatabase
from deltalog.pipeline.table_database import TableDatabase
from deltalog.service.background import background_service
from deltalog.service.offsets import read_offset
from served_command import ServedFile
from waiting import HANG_SECONDS, wait_until

PROGRAM = """
base edge(src: int, dst: int).
base weight(node: int key, grams: int).
view path(src: int, dst: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
view load(node: int, total: int).
load(X, sum(G)) :- path(X, Y), weight(Y, G).
virtual view back(src: int, dst: int).
back(X, Y) :- path(Y, X).
view cyclic().
cyclic() :- path(X, X).
"""
VIEWS = ("edge", "path", "load", "back", "cyclic")
FACTS: dict[str, list[tuple[int, ...]]] = {"edge": [(1, 2), (2, 3)], "weight": [(2, 10), (3, 20)]}
NODES, COMMITS = 5, 12
Rows = frozenset[tuple[Any, ...]]


@dataclass
class Written:
    """A state with its writer, and what each view held at each version, by the reference engine."""

    state: Path
    writer: TableDatabase
    oracle: deltalog.MemoryDatabase
    random: random.Random = field(default_factory=lambda: random.Random(7))
    held: dict[int, dict[str, Rows]] = field(default_factory=dict)

    def note(self) -> None:
        self.held[self.writer.version] = {v: frozenset(self.oracle.facts(v)) for v in VIEWS}

    def apply(self, **sides: Any) -> None:
        self.oracle.apply(**sides)
        self.writer.apply(**sides)
        self.note()

    def commit(self) -> None:
        """A random transaction."""
        row = (self.random.randrange(NODES), self.random.randrange(NODES))
        side = "delete" if row in self.oracle.facts("edge") else "insert"
        self.apply(**{side: {"edge": [row]}, "set": {"weight": [(row[0], row[1] + 1)]}})


@contextmanager
def written(spark: SparkSession, state: Path, program: str = PROGRAM) -> Iterator[Written]:
    writer = deltalog.connect(spark=spark, program=program, state=state, freshness="demand")
    oracle = deltalog.connect(program=program, engine="reference")
    made = Written(state, writer, oracle)
    with writer:
        made.apply(insert=FACTS)
        yield made


@contextmanager
def served(state: Path) -> Iterator[httpx.Client]:
    with (
        background_service(open_state(str(state))) as address,
        httpx.Client(base_url=address, timeout=HANG_SECONDS, trust_env=False) as client,
    ):
        yield client


class Copy(threading.Thread):
    """A copy held by the client of PyPI; it notes what it held at every version it was told of."""

    def __init__(self, view: str) -> None:
        super().__init__(daemon=True)
        self.view = view
        self.address: str | None = None
        self.state: dict[str, tuple[Any, ...]] = {}
        self.held: dict[int, Rows] = {}
        self.offset = "-1"
        self.is_over = False
        self.expired = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            self._run()
        except BaseException as problem:
            self.problem = problem

    def is_at(self, version: int) -> bool:
        assert self.problem is None, self.problem
        return self.version >= version

    def _run(self) -> None:
        while not self.is_over:
            time.sleep(0.02)  # others work, too
            if self.address is None:
                continue
            try:
                self._follow(f"{self.address}/v1/views/{self.view}/stream")
            except durable_streams.RetentionGoneError:
                self.offset, self.expired = "-1", self.expired + 1
            except (httpx.HTTPError, durable_streams.DurableStreamError):
                continue

    def _follow(self, address: str) -> None:
        with durable_streams.stream(
            address, offset=self.offset, live="long-poll", timeout=5.0
        ) as response:
            for event in response.iter_events(mode="json"):
                for message in event.data:
                    self._apply(message)
                self.offset = event.next_offset
                place = read_offset(self.offset)
                assert place is not None
                self.held[place.version] = frozenset(self.state.values())
                if self.is_over or self.address is None:
                    return

    def _apply(self, message: dict[str, Any]) -> None:
        headers = message["headers"]
        if headers.get("control") == "reset":
            self.state = {}
        elif headers.get("operation") == "delete":
            del self.state[message["key"]]
        elif "operation" in headers:
            self.state[message["key"]] = tuple(message["value"].values())

    @property
    def version(self) -> int:
        found = read_offset(self.offset)
        return -1 if found is None else found.version


def test_copies_equal_the_views_at_every_version(spark: SparkSession, tmp_path: Path) -> None:
    """While Spark commits and folds, the service is stopped and started, and the log compacted."""
    with written(spark, tmp_path / "state") as made:
        copies = [Copy(view) for view in VIEWS]
        for number in range(3):
            with served(made.state) as client:
                for copy in copies:
                    copy.address = str(client.base_url).rstrip("/")
                    if number == 0:
                        copy.start()
                for step in range(COMMITS // 3):
                    made.commit()
                    if step == 1:
                        made.writer.fold()
                cycle = {"edge": [(50, 60), (60, 50)], "weight": [(60, number)]}
                for row in made.oracle.facts("cyclic") and made.oracle.facts("edge"):
                    made.apply(delete={"edge": [row]})  # so that every view changes below
                made.apply(insert=cycle)
                last = made.writer.version
                wait_until(lambda last=last: all(c.is_at(last) for c in copies), "caught up")  # type: ignore[misc]
                made.apply(delete=cycle)
                for copy in copies:
                    copy.address = None
        for copy in copies:
            copy.is_over = True
            copy.join(HANG_SECONDS)
            assert len(copy.held) > 3
            for version, rows in copy.held.items():
                assert rows == made.held[version][copy.view], (copy.view, version)
            assert copy.expired == 0


def test_queries_reasons_and_what_ifs_need_no_spark(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state") as made, served(made.state) as client:
        answer = client.post("/v1/query", json={"query": "path(1, X), load(X, Y)"}).json()
        assert answer["rows"] == [[2, 20]]
        assert client.get("/v1/views/path/rows?path.src=2").json()["rows"] == [[2, 3]]
        assert client.get("/v1/views/back/rows?back.dst=1").json()["rows"] == [[2, 1], [3, 1]]
        assert "edge(1, 2)" in client.post("/v1/why", json={"fact": "path(1, 3)"}).json()["text"]
        assert client.post("/v1/why-not", json={"fact": "path(3, 1)"}).status_code == 200
        tried = client.post("/v1/what-if", json={"delete": {"edge": [[1, 2]]}, "views": ["path"]})
        assert tried.json()["delta"]["deleted"]["path"] == [[1, 2], [1, 3]]
        found = client.post("/v1/realize", json={"requests": ["+path(3, 1)"]}).json()
        assert found["answers"], found
        assert client.post("/v1/audit", json={}).json()["differences"] == []
        made.apply(delete={"edge": [(2, 3)]})
        wait_until(lambda: client.get("/v1/status").json()["version"] == 2, "it is noticed")
        answer = client.post("/v1/query", json={"query": "path(1, X), load(X, Y)"}).json()
        assert answer["rows"] == []  # what was loaded has followed the log
        tried = client.post("/v1/what-if", json={"delete": {"edge": [[1, 2]]}, "views": ["path"]})
        assert tried.json()["delta"]["deleted"]["path"] == [[1, 2]]
        old = client.post("/v1/query", json={"query": "path(1, X)", "version": 1}).json()
        assert old["rows"] == [[2], [3]]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("transactions", {"insert": {"edge": [[8, 9]]}}),
        ("realize/apply", {"requests": ["+path(3, 1)"], "number": 1, "version": 1}),
        ("program", {"text": "base edge(src: int, dst: int)."}),
    ],
)
def test_what_would_change_the_state_is_refused(
    only_read: httpx.Client, route: str, body: dict[str, Any]
) -> None:
    method = "PUT" if route == "program" else "POST"
    answer = only_read.request(method, f"/v1/{route}", json=body)
    assert answer.status_code == 409, answer.text
    document = answer.json()
    assert document["code"] == "E1760"
    assert "--spark" in str(document)


@pytest.fixture(scope="module")
def only_read(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    state = tmp_path_factory.mktemp("served") / "state"
    with written(spark, state), served(state) as client:
        yield client


def test_offsets_below_the_retention_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state") as made:
        for _ in range(3):
            made.commit()
        with served(made.state) as client:
            snapshot = client.get("/v1/views/path/stream?offset=-1")
            last = snapshot.headers["Stream-Next-Offset"]
            old = last.replace(f"{4:020}", f"{1:020}")
            assert client.get(f"/v1/views/path/stream?offset={old}").status_code == 200
            made.writer.fold()
            made.writer.compact(deltalog.Retention(versions=1))
            made.commit()
            wait_until(lambda: client.get("/v1/status").json()["version"] == 5, "it is noticed")
            assert client.get(f"/v1/views/path/stream?offset={old}").status_code == 410
            assert client.get("/v1/views/path/stream?offset=-1").status_code == 200
            assert client.get(f"/v1/views/path/stream?offset={last}").status_code == 200


def test_a_durable_subscription_holds_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_writes, "NOTED_SECONDS", 0.0)
    with written(spark, tmp_path / "state") as made:
        with served(made.state) as client:
            subscribed = client.put("/v1/subscriptions/billing", json={"view": "path"})
            assert subscribed.status_code == 201, subscribed.text
            claimed = client.post("/v1/subscriptions/billing/claim", json={}).json()
        made.commit()
        made.commit()
        made.writer.fold()
        made.writer.compact(deltalog.Retention(versions=0))
        assert made.writer.first_version == 1  # the subscription needs what follows
        with served(made.state) as client:  # started again, it knows the subscription
            shown = client.get("/v1/subscriptions/billing").json()
            assert (shown["state"], shown["versions_behind"]) == ("reserved", 2)
            assert shown["bytes_behind"] > 0
            read = client.get(
                f"/v1/subscriptions/billing/stream?generation={claimed['generation']}"
            )
            acknowledged = {"generation": 1, "offset": read.headers["Stream-Next-Offset"]}
            client.post("/v1/subscriptions/billing/ack", json=acknowledged).raise_for_status()
            made.writer.compact(deltalog.Retention(versions=0))
            assert made.writer.first_version == 3
            assert client.delete("/v1/subscriptions/billing").status_code == 204
        assert made.writer.readers == {}


def test_a_backup_has_a_history_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state") as made:
        made.writer.backup(tmp_path / "copy")
    with served(tmp_path / "state") as client:
        offset = client.get("/v1/views/path/stream").headers["Stream-Next-Offset"]
    with served(tmp_path / "state") as client:  # another process knows it
        assert client.get(f"/v1/views/path/stream?offset={offset}").status_code == 200
    with served(tmp_path / "copy") as client:
        assert client.get(f"/v1/views/path/stream?offset={offset}").status_code == 410


def test_another_program_ends_the_streams_it_alters(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state") as made, served(made.state) as client:
        before = {
            view: client.get(f"/v1/views/{view}/stream").headers["Stream-Next-Offset"]
            for view in ("path", "edge")
        }
        made.writer.change_program(
            PROGRAM.replace("view path(src: int, dst: int)", "view path(start: int, dst: int)")
        )
        wait_until(lambda: client.get("/v1/status").json()["version"] == 2, "it is noticed")
        assert client.get(f"/v1/views/path/stream?offset={before['path']}").status_code == 410
        assert client.get(f"/v1/views/edge/stream?offset={before['edge']}").status_code == 200
        assert client.get("/v1/views/path/rows?path.start=1").json()["rows"] == [[1, 2], [1, 3]]


def test_with_spark_the_service_is_the_writer(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state"):
        pass
    database = open_state(str(tmp_path / "state"), spark=spark, is_writable=True)
    with (
        background_service(database) as address,
        httpx.Client(base_url=address, timeout=HANG_SECONDS, trust_env=False) as client,
    ):
        assert open_elsewhere(spark, tmp_path / "state") == "E1001"
        body = {"insert": {"edge": [[3, 4]]}, "views": ["path"]}
        keyed = {"Idempotency-Key": "once"}
        made = client.post("/v1/transactions", json=body, headers=keyed).json()
        assert sorted(made["delta"]["inserted"]["path"]) == [[1, 4], [2, 4], [3, 4]]
        again = client.post("/v1/transactions", json=body, headers=keyed).json()
        assert (again["version"], again["is_repeated"]) == (made["version"], True)
        read = client.get("/v1/views/path/stream", params={"wait_for": made["offset"]})
        assert len(read.json()) == 6 + 3  # a reset, and the bounds of the snapshot
        found = client.post("/v1/realize", json={"requests": ["+path(4, 9)"]}).json()
        chosen = {"requests": ["+path(4, 9)"], "number": 1, "version": found["version"]}
        assert client.post("/v1/realize/apply", json=chosen).status_code == 200
        assert client.get("/v1/views/path/rows?path.src=4").json()["rows"] == [[4, 9]]
    with open_state(str(tmp_path / "state")) as reopened:  # the key is in the log, too
        (kept,) = reopened.settings.list("request:")
        (tmp_path / "state" / "service.db").unlink()
        assert StateDatabase(str(tmp_path / "state")).settings.get(kept) is not None


def open_elsewhere(spark: SparkSession, state: Path) -> str:
    with pytest.raises(deltalog.DataError) as refused:
        deltalog.connect(spark=spark, program=PROGRAM, state=state)
    return refused.value.codes[0]


def test_a_huge_commit_makes_readers_begin_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_database, "TAILED_ROWS_MAX", 10)
    with written(spark, tmp_path / "state") as made, served(made.state) as client:
        offset = client.get("/v1/views/edge/stream").headers["Stream-Next-Offset"]
        client.post("/v1/query", json={"query": "edge(X, Y)"})
        made.apply(insert={"edge": [(100 + i, 0) for i in range(20)]})
        wait_until(lambda: client.get("/v1/status").json()["version"] == 2, "it is noticed")
        assert client.get(f"/v1/views/edge/stream?offset={offset}").status_code == 410
        assert len(client.get("/v1/views/edge/rows").json()["rows"]) == 22


def test_many_commits_are_sent_a_part_at_a_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is for what is read at once, and not for how far a reader is behind."""
    monkeypatch.setattr(state_database, "TAILED_ROWS_MAX", 5)
    with written(spark, tmp_path / "state") as made, served(made.state) as client:
        offset = client.get("/v1/views/edge/stream").headers["Stream-Next-Offset"]
        for commit in range(3):
            made.apply(insert={"edge": [(100 + 10 * commit + i, 0) for i in range(4)]})
        wait_until(lambda: client.get("/v1/status").json()["version"] == 4, "it is noticed")
        found: list[tuple[int, ...]] = []
        for part in range(1, 4):
            answer = client.get(f"/v1/views/edge/stream?offset={offset}")
            offset = answer.headers["Stream-Next-Offset"]
            found += [(each["value"]["src"], each["value"]["dst"]) for each in answer.json()]
            assert len(found) == 4 * part
            assert ("Stream-Up-To-Date" in answer.headers) is (part == 3)
        with StateDatabase(str(made.state)) as beside:
            assert [len(each.commit.change) for each in beside.tail(frozenset({"edge"}))] == []
            made.apply(insert={"edge": [(7, 8), (8, 9), (9, 7)]})
            made.apply(insert={"edge": [(70, 80), (80, 90), (90, 70)]})
            known = [set(each.known or ()) for each in beside.tail(frozenset({"edge", "weight"}))]
            assert known == [{"edge", "weight"}, {"weight"}]


def test_a_relation_that_is_too_large_is_looked_up(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state"):
        pass
    with StateDatabase(str(tmp_path / "state"), loaded_rows_max=1) as database:
        assert list(database.query("edge(1, X)")) == [(2,)]
        with pytest.raises(deltalog.DataError, match="E1761"):
            database.query("edge(1, X), path(X, Y)")


def test_the_command_serves_a_state_through_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    """A process and sockets: offsets outlive it, and it is no writer."""
    with written(spark, tmp_path / "state") as made:
        service = ServedFile(made.state)
        service.start()
        try:
            first = httpx.get(service.stream("path"), trust_env=False, timeout=HANG_SECONDS)
            offset, version = first.headers["Stream-Next-Offset"], made.writer.version
            service.kill()
            made.apply(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})
            service.start()
            behind = {"offset": offset, "live": "long-poll"}
            then = httpx.get(
                service.stream("path"), params=behind, trust_env=False, timeout=HANG_SECONDS
            )
            rows = {
                side: {
                    tuple((each.get("value") or each["old_value"]).values())
                    for each in then.json()
                    if each["headers"].get("operation") == side
                }
                for side in ("insert", "delete")
            }
            before, after = (made.held[each]["path"] for each in (version, version + 1))
            assert rows == {"insert": after - before, "delete": before - after}
            refused = httpx.post(
                f"{service.address}/v1/transactions",
                json={"insert": {"edge": [[1, 1]]}},
                trust_env=False,
                timeout=HANG_SECONDS,
            )
            assert refused.json()["code"] == "E1760"
        finally:
            service.kill()


def test_the_command_opens_a_state_by_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    with written(spark, tmp_path / "state") as made:
        assert is_state(made.state)
        assert not is_state(tmp_path)
        opened = open_served(Served(made.state), Settings(deltalog.Limits()), Progress())
        with opened:
            assert isinstance(opened, StateDatabase)
            assert opened.facts("path") == made.oracle.facts("path")
