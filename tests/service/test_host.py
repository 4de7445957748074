"""The host of a served database: one thread, a journal, waiters, an identity."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import deltalog
from deltalog.runtime.database import MemoryDatabase
from deltalog.service.host import Host
from deltalog.service.offsets import COMPLETE, Offset, read_offset

CLOSURE = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    virtual view back(dst: int, src: int).
    back(Y, X) :- path(X, Y).
"""
Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(main)


async def started(database: MemoryDatabase) -> Host:
    host = Host(database)
    await host.start()
    return host


def insert(*edges: tuple[int, int]) -> Any:
    return lambda db: db.apply(insert={"edge": edges}, views=())


def test_calls_run_in_one_thread_and_versions_are_there_when_they_return() -> None:
    async def main() -> None:
        host = await started(deltalog.connect(program=CLOSURE))
        threads = set()
        for number in range(5):
            await host.call(insert((number, number + 1)))
            assert host.version == number + 1
            threads.add(await host.call(lambda _: threading.current_thread()))
        assert len(threads) == 1
        assert threading.current_thread() not in threads
        await host.stop()

    run(main())


def test_waiters_are_woken_by_a_commit_and_end_after_their_time() -> None:
    async def main() -> None:
        host = await started(deltalog.connect(program=CLOSURE))
        assert await host.wait_beyond(0, 0.01) == 0
        waiters = [asyncio.create_task(host.wait_beyond(0, 60)) for _ in range(3)]
        await asyncio.sleep(0)
        await host.call(insert((1, 2)))
        assert await asyncio.gather(*waiters) == [1, 1, 1]
        late = asyncio.create_task(host.wait_beyond(1, 60))
        await asyncio.sleep(0)
        await host.stop()
        assert await late == 1

    run(main())


def test_the_journal_has_wanted_views_only_and_no_more_than_its_bounds() -> None:
    async def main() -> None:
        host = await started(deltalog.connect(program=CLOSURE))
        await host.call(insert((1, 2)))
        host.want("back")
        await host.call(insert((2, 3)))
        host.release("back")
        await host.call(insert((3, 4)))
        entries = list(host.journal.after(0) or ())
        assert [each.covers("back", is_base=False) for each in entries] == [False, True, False]
        assert all(each.covers("path", is_base=False) for each in entries)
        assert entries[1].change.inserted["back"] == {(3, 1), (3, 2)}
        host.journal.commits_max = 2
        await host.call(insert((4, 5)))
        assert host.journal.after(1) is None
        assert [each.version for each in host.journal.after(2) or ()] == [3, 4]
        await host.stop()

    run(main())


def test_a_program_change_is_published() -> None:
    async def main() -> None:
        host = await started(deltalog.connect(program=CLOSURE, facts={"edge": [(1, 2)]}))
        more = CLOSURE + "loop(X) :- path(X, X).\nnode(X) :- edge(X, _)."
        await host.call(lambda db: db.change_program(more))
        entry = next(iter(host.journal.after(0) or ()))
        assert entry.kind == "program"
        assert entry.change.inserted["node"] == {(1,)}
        assert "node" in host.relations
        assert "node" in host.followed
        await host.stop()

    run(main())


def test_a_file_has_an_identity_which_a_copy_does_not_share(tmp_path: Path) -> None:
    path, copy = tmp_path / "graph.db", tmp_path / "copy.db"

    async def history(of: Path) -> str:
        host = await started(deltalog.connect(of, program=CLOSURE))
        found = host.history
        await host.call(lambda db: db.backup(copy) if not copy.exists() else None)
        await host.stop()
        return found

    first = run(history(path))
    assert run(history(path)) == first
    assert run(history(copy)) != first
    with deltalog.connect(path) as db:
        assert db.settings.get("history") == first
        assert db.verify().is_clean


def test_a_reader_beside_a_writer_follows_its_log(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    writer = deltalog.connect(path, program=CLOSURE)

    async def main() -> None:
        host = Host(deltalog.connect(path, read_only=True), poll_seconds=0.01)
        await host.start()
        writer.apply(insert={"edge": [(1, 2)]})
        writer.apply(insert={"edge": [(2, 3)]})
        while host.version < 2:
            assert await host.wait_beyond(host.version, 60) > 0
        entries = list(host.journal.after(0) or ())
        assert [sorted(each.change.inserted["back"]) for each in entries] == [
            [(2, 1)],
            [(3, 1), (3, 2)],
        ]
        await host.stop()

    run(main())
    writer.close()


def test_offsets_are_of_fixed_width_and_sorted_like_positions() -> None:
    history = "6a1b2c3d9f00e1d2"
    positions = [
        Offset(history, version, part) for version in (0, 9, 10, 2**40) for part in (0, 7, COMPLETE)
    ]
    texts = [str(each) for each in positions]
    assert texts == sorted(texts)
    assert {len(text) for text in texts} == {len(texts[0])}
    assert [read_offset(text) for text in texts] == positions
    for wrong in ("", "-1", "now", "17", texts[0][:-1], texts[0] + "0", texts[0].upper(), "²" * 46):
        assert read_offset(wrong) is None
