"""The Python client over real sockets: verbs, copies in files, processes that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from serving import GRAPH, Service, serving

import deltalog
from deltalog.client import AsyncClient, Client, Graph, ServiceError, ViewCopy, ViewDelta, calls
from waiting import HANG_SECONDS, wait_until

CLOSURE = (
    GRAPH
    + """
    base price(item: str key, amount: decimal, since: date).
    virtual view back(dst: int, src: int).
    back(Y, X) :- path(X, Y).
    view dear(item: str key, amount: decimal, since: date).
    dear(I, A, S) :- price(I, A, S), A > 10.
"""
)


def opened(path: Path | None = None) -> deltalog.MemoryDatabase:
    facts = {"edge": [(1, 2), (2, 3)]}
    if path is None:
        return deltalog.connect(program=CLOSURE, facts=facts, engine="reference")
    if path.exists():
        return deltalog.connect(path, engine="reference")
    return deltalog.connect(path, program=CLOSURE, facts=facts, engine="reference")


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(opened()) as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.address) as made:
        yield made


def test_dates_and_decimals_are_parameters_of_queries(client: Client) -> None:
    since, amount = date(2026, 1, 31), Decimal("10.50")
    client.apply(insert={"price": [("bolt", amount, since)]})
    assert client.query("price(I, A, $since)", since=since) == [("bolt", amount)]
    assert client.query("price(I, $amount, _)", amount=amount) == [("bolt",)]
    assert client.query("price(I, A, S), S > $since", since=date(2026, 1, 30))
    with pytest.raises(ServiceError, match="does not fit the parameter `\\$since`, which is date"):
        client.query("price(I, A, $since)", since="tomorrow")


@pytest.mark.parametrize(
    "changes",
    [
        {"insert": {"edge": [{1, 2}]}},
        {"insert": {"edge": ["ab"]}},
        {"insert": {"edge": (1, 2)}},
        {"insert": [(1, 2)]},
        {"views": "path"},
    ],
    ids=str,
)
def test_what_is_no_fact_is_refused_before_it_is_sent(
    client: Client, changes: dict[str, Any]
) -> None:
    with pytest.raises(deltalog.DataError, match="E0726"):
        client.apply(**changes)
    assert client.status()["version"] == 0


@pytest.mark.parametrize("key", ["größe", "two\nlines", 7])
def test_a_key_that_no_header_can_have_is_refused(client: Client, key: Any) -> None:
    with pytest.raises(deltalog.DataError, match=r"E0726[^$]*a key is a text of ASCII"):
        client.apply(insert={"edge": [(7, 8)]}, key=key)
    assert client.status()["version"] == 0


def test_empty_names_and_closed_copies_are_errors(client: Client) -> None:
    with pytest.raises(ServiceError):
        client.apply(insert={"edge": [(7, 8)]}, key="")
    with client.view("path", subscription="") as view, pytest.raises(ServiceError):
        view.refresh()
    with pytest.raises(deltalog.DataError, match="the copy of `path` has been closed"):
        view.refresh()


@contextmanager
def following(service: Service, file: Path) -> Iterator[ViewCopy]:
    with Client(service.address) as client, client.view("path", file=file) as view:
        yield view


def test_transactions_queries_and_what_ifs(client: Client) -> None:
    assert client.query("path($a, Y)", a=1) == [(2,), (3,)]
    tried = client.what_if(insert={"edge": [(3, 4)]}, views=["path"])
    assert sorted(tried.inserted["path"]) == [(1, 4), (2, 4), (3, 4)]
    assert tried.violations == []
    made = client.apply(insert={"edge": [(3, 4)]}, views=["path"], key="first")
    assert sorted(made.inserted["path"]) == [(1, 4), (2, 4), (3, 4)]
    again = client.apply(insert={"edge": [(3, 4)]}, views=["path"], key="first")
    assert again.is_repeated
    assert again.version == made.version
    assert client.status()["version"] == made.version
    assert {each["name"] for each in client.relations()["relations"]} >= {"edge", "path"}


def test_an_answer_of_many_pages_is_one_list() -> None:
    rows = [(number, number + 1) for number in range(0, 100, 2)]
    database = deltalog.connect(program=CLOSURE, facts={"edge": rows}, engine="reference")
    with serving(database, rows_max=7) as service, Client(service.address) as client:
        assert client.query("edge(X, Y)") == rows


def test_errors_have_the_codes_of_the_service(client: Client) -> None:
    with pytest.raises(ServiceError) as caught:
        client.query("nothing(X)")
    assert caught.value.status == 400
    assert caught.value.codes == ("E0203",)
    with pytest.raises(ServiceError) as caught:
        client.view("nothing").refresh()
    assert caught.value.status == 404


def test_a_service_that_is_not_there() -> None:
    with Client("http://127.0.0.1:9", attempts_max=2) as client:
        with pytest.raises(ServiceError) as caught:
            client.status()
        assert caught.value.codes == ("E1740",)
        assert caught.value.is_temporary


def test_a_copy_reports_exact_deltas(client: Client) -> None:
    with client.view("path") as view:
        (first,) = view.refresh()
        assert first.is_snapshot
        assert set(first.inserted) == view.rows == {(1, 2), (1, 3), (2, 3)}
        client.apply(insert={"edge": [(3, 4)]})
        client.apply(insert={"price": [("hat", 5, "2026-01-31")]})
        made = client.apply(delete={"edge": [(1, 2)]})
        deltas = view.refresh(wait_for=made.offset)
        assert [(set(each.inserted), set(each.deleted)) for each in deltas] == [
            ({(1, 4), (2, 4), (3, 4)}, set()),
            (set(), {(1, 2), (1, 3), (1, 4)}),
        ]
        assert view.rows == {(2, 3), (2, 4), (3, 4)}
        assert view.version == made.version
        assert view.refresh() == []


@dataclass(frozen=True)
class Dear:
    item: str
    amount: object


def test_rows_become_dataclasses_and_dataclasses_rows(client: Client) -> None:
    @dataclass(frozen=True)
    class Price:
        item: str
        amount: object
        since: str

    client.apply(insert={"price": [Price("hat", 20, "2026-01-31"), Price("cap", 5, "2026-02-01")]})
    with client.view("dear", into=Dear) as view:
        view.refresh()
        ((hat,),) = [view.rows]
        assert (hat.item, str(hat.amount)) == ("hat", "20")
        client.apply(set={"price": [Price("hat", 30, "2026-01-31")]})
        (delta,) = view.refresh()
        assert [str(each.amount) for each in delta.inserted] == ["30"]
        assert [str(each.amount) for each in delta.deleted] == ["20"]
    with client.view("dear") as view:
        view.refresh()
        ((_, _, since),) = view.rows
        assert str(since) == "2026-01-31"


def test_a_dataclass_that_does_not_fit(client: Client) -> None:
    @dataclass(frozen=True)
    class Other:
        item: str
        colour: str

    with pytest.raises(deltalog.DataError, match="E1744"):
        client.view("dear", into=Other).refresh()


def test_a_graph_is_one_object(client: Client) -> None:
    with client.view("edge") as view:
        view.refresh()
        graph = view.graph()
        assert graph.nodes == {1, 2, 3}
        assert graph.reachable(1) == {2, 3}
        edited = graph.copy()
        edited.add(3, 4)
        edited.remove(1, 2)
        client.apply(**edited.changes("edge", graph))
        for delta in view.refresh():
            graph.apply(delta.inserted, delta.deleted)
        assert graph == edited == Graph(view.rows)
        assert graph.predecessors(4) == {3}
    with client.view("dear") as view:
        view.refresh()
        with pytest.raises(deltalog.DataError, match="E1744"):
            view.graph()


def test_bindings_select(client: Client) -> None:
    with client.view("back", bindings={"dst": 3}) as view:
        view.refresh()
        assert view.rows == {(3, 1), (3, 2)}
        client.apply(insert={"edge": [(0, 1), (7, 8)]})
        (delta,) = view.refresh()
        assert delta.inserted == ((3, 0),)


def test_a_copy_in_a_file_goes_on_where_it_ended(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "path.copy"
    with client.view("path", file=file) as view:
        view.refresh()
        with pytest.raises(deltalog.DataError, match="E1743"):
            client.view("path", file=file)
    client.apply(insert={"edge": [(3, 4)]})
    with client.view("path", file=file) as view:
        assert view.rows == {(1, 2), (1, 3), (2, 3)}
        (delta,) = view.refresh()
        assert not delta.is_snapshot
        assert set(delta.inserted) == {(1, 4), (2, 4), (3, 4)}
    with pytest.raises(deltalog.DataError, match="E1742"):
        client.view("edge", file=file)
    file.write_bytes(b"something else")
    with pytest.raises(deltalog.DataError, match="E1743"):
        client.view("path", file=file)


def test_another_history_is_reported_as_the_difference(tmp_path: Path) -> None:
    file = tmp_path / "path.copy"
    with serving(opened()) as service, following(service, file) as view:
        view.refresh()
    facts = {"edge": [(2, 3), (3, 4)]}
    other = deltalog.connect(program=CLOSURE, facts=facts, engine="reference")
    with serving(other) as service, following(service, file) as view:
        (delta,) = view.refresh()
        assert delta.is_snapshot
        assert set(delta.inserted) == {(2, 4), (3, 4)}
        assert set(delta.deleted) == {(1, 2), (1, 3)}
        assert view.rows == {(2, 3), (2, 4), (3, 4)}


def test_callbacks_come_from_a_thread(client: Client) -> None:
    found: list[ViewDelta] = []
    with client.view("path") as view:
        view.start(found.append)
        wait_until(lambda: len(found) == 1, "the snapshot")
        client.apply(insert={"edge": [(3, 4)]})
        wait_until(lambda: len(found) == 2, "the delta")
        assert len(found[1]) == 3
        assert view.error is None


def test_the_client_for_asyncio(service: Service) -> None:
    async def main() -> None:
        async with AsyncClient(service.address) as client, client.view("path") as view:
            found = []

            async def follow() -> None:
                async for delta in view.follow():
                    found.append(delta)
                    if len(found) == 3:
                        return

            following = asyncio.create_task(follow())
            while not found:
                await asyncio.sleep(0.01)
            await client.apply(insert={"edge": [(3, 4)]})
            await client.apply(delete={"edge": [(2, 3)]})
            await asyncio.wait_for(following, HANG_SECONDS)
            assert view.rows == {(1, 2), (3, 4)}
            assert await client.query("edge(X, Y)") == [(1, 2), (3, 4)]
            assert (await client.what_if(insert={"edge": [(4, 5)]})).violations == []

    asyncio.run(main())


def test_a_subscription_keeps_what_the_copy_has_not_stored(tmp_path: Path) -> None:
    file = tmp_path / "path.copy"
    options: dict[str, Any] = {"file": file, "subscription": "auditor", "bindings": {"x": 1}}
    with serving(opened(tmp_path / "graph.db")) as service, Client(service.address) as client:
        with client.view("path", **options) as view:
            view.refresh()
        for number in range(3, 6):
            client.apply(insert={"edge": [(number, number + 1)]})
        (known,) = client.send(calls.get_call("/v1/subscriptions"))["subscriptions"]
        assert (known["view"], known["bindings"]) == ("path", {"x": "1"})
        assert known["versions_behind"] == 3
        with client.view("path", **options) as view:
            assert [each.is_snapshot for each in view.refresh()] == [False] * 3
            assert view.rows == {(1, number) for number in range(2, 7)}
            (known,) = client.send(calls.get_call("/v1/subscriptions"))["subscriptions"]
            assert known["versions_behind"] == 0
            with client.view("path", subscription="auditor", bindings={"x": 1}) as second:
                second.refresh()
            client.apply(insert={"edge": [(6, 7)]})
            with pytest.raises(ServiceError) as caught:  # the second client took it over
                view.refresh()
            assert caught.value.status == 409


# --- processes that are killed


class Served:
    """`deltalog serve` as a process of its own, on one port."""

    def __init__(self, path: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "deltalog.cli.main", "serve", str(path)]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "--engine", "reference"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if '"listening"' in line:
                self.address = str(json.loads(line)["address"])
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1].rstrip("/"))

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(HANG_SECONDS)


def test_a_client_outlives_a_killed_server(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    opened(path).close()
    served = Served(path)
    found: list[ViewDelta] = []
    with Client(served.address, attempts_max=1_000) as client, client.view("path") as view:
        view.start(found.append)
        port = served.port
        for number in range(3):
            client.apply(insert={"edge": [(10 * number + 100, 10 * number + 101)]})
            served.kill()
            served = Served(path, port)
        made = client.apply(insert={"edge": [(3, 4)]})
        wait_until(lambda: view.version == made.version, "the copy is as of the last commit")
        assert view.error is None
        assert view.rows == set(client.query("path(X, Y)"))
    state: set[object] = set()
    for delta in found:
        assert not state & set(delta.inserted)
        assert state >= set(delta.deleted)
        state = (state - set(delta.deleted)) | set(delta.inserted)
    assert state == view.rows
    served.kill()


FOLLOWING = """
import sys
from deltalog.client import Client
view = Client(sys.argv[1]).view("path", file=sys.argv[2])
for delta in view.follow():
    print(delta.version, flush=True)
"""


def test_a_killed_client_has_its_copy_and_its_offset_together(tmp_path: Path) -> None:
    file = tmp_path / "path.copy"
    with serving(opened()) as service, Client(service.address) as client:
        expected = {client.status()["version"]: set(client.query("path(X, Y)"))}
        for round_ in range(4):
            command = [sys.executable, "-c", FOLLOWING, service.address, str(file)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                if round_ == 0:
                    process.stdout.readline()
                for number in range(5):
                    edge = (3 + 5 * round_ + number, 4 + 5 * round_ + number)
                    made = client.apply(insert={"edge": [edge]})
                    assert made.version is not None
                    expected[made.version] = set(client.query("path(X, Y)"))
                    if number == round_:
                        process.kill()
            with client.view("path", file=file) as view:
                assert view.version is not None
                assert view.rows == expected[view.version]
        with client.view("path", file=file) as view:
            deltas = view.refresh()
            assert not any(each.is_snapshot for each in deltas)
            assert view.rows == expected[client.status()["version"]]
