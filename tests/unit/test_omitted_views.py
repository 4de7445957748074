"""A commit to a file propagates what is stored or wanted; history derives the rest exactly."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.language.ast import Row
from deltalog.runtime.database import MemoryDatabase
from deltalog.store import logged as logged_database
from deltalog.store.file_database import FileDatabase
from deltalog.store.log import Commit

PROGRAM = """
    base edge(src: int, dst: int).
    base color(node: int, name: str).
    virtual view path(a: int, b: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    view degree(a: int, n: int).
    degree(X, count()) :- edge(X, _).
    virtual view far(a: int, b: int).
    far(X, Y) :- path(X, Y), not edge(X, Y).
    virtual view shade(name: str).
    shade(N) :- color(_, N).
"""
OTHER = PROGRAM.replace("far(X, Y) :- path(X, Y)", "far(Y, X) :- path(X, Y)").replace(
    "virtual view shade(name: str).\n    shade(N) :- color(_, N).", ""
)
CHAIN = {"edge": [(n, n + 1) for n in range(20)]}
WANTED: tuple[list[str] | None, ...] = (None, [], ["path"], ["far"], ["degree"], ["shade"])
State = dict[str, set[Row]]
Open = Callable[..., FileDatabase]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "omitting.db"


def opened(path: Path, **options: Any) -> FileDatabase:
    database = deltalog.connect(path, **options)
    assert isinstance(database, FileDatabase)
    return database


def state_of(database: MemoryDatabase) -> State:
    return {name: database.facts(name) for name in database.relations}


def logged(database: FileDatabase, version: int) -> Commit:
    """A commit with nothing but what the log has of it."""
    (found,) = database.commits(version - 1, version, views=())
    return found


def random_changes(random_: random.Random) -> dict[str, Any]:
    def edges() -> list[Row]:
        return [(random_.randrange(5), random_.randrange(5)) for _ in range(2)]

    changes: dict[str, Any] = {"insert": {"edge": edges()}, "delete": {"edge": edges()}}
    if random_.random() < 0.3:
        changes["insert"]["color"] = [(random_.randrange(3), random_.choice("rgb"))]
    return changes


def made(path: Path, seed: int, count: int, **options: Any) -> list[State]:
    """Commit random changes with random wishes; returns the state of every version."""
    random_ = random.Random(seed)
    truth = deltalog.connect(program=PROGRAM, engine="reference")
    states = [state_of(truth)]
    with opened(path, program=PROGRAM, **options) as database:
        for number in range(count):
            if number == count // 2:
                database.change_program(OTHER)
                truth.change_program(OTHER)
                states.append(state_of(truth))
            changes, known = random_changes(random_), database.relations
            wanted = random_.choice(WANTED)
            views = None if wanted is None else [name for name in wanted if name in known]
            found, expected = database.apply(**changes, views=views), truth.apply(**changes)
            if not expected:
                continue
            shown = known if views is None else {"edge", "color", *views}
            assert found == expected.only(*(n for n in expected.relations if n in shown))
            states.append(state_of(truth))
    return states


@pytest.mark.parametrize(
    ("engine", "later"),
    [
        ("embedded", {}),
        ("reference", {"strategy": {"path": "demand", "far": "demand"}}),
        ("reference", {"materialize": False}),
    ],
    ids=["embedded", "demand", "nothing materialised"],
)
def test_every_version_has_the_facts_it_had(path: Path, engine: str, later: Any) -> None:
    states = made(path, 17, 24, engine=engine)
    with opened(path, engine=engine, **later) as database:
        assert database.version == len(states) - 1
        for version, state in enumerate(states):
            assert database.relations_at(version).keys() == state.keys()
            for name, facts in state.items():
                assert database.facts(name, version) == facts, (name, version)
        assert any(each.omitted for each in database.commits(views=()))
        commits = database.commits(0)
        assert [each.version for each in commits] == list(range(1, len(states)))
        for each in commits:
            check_change(each.change, states, each.version - 1, each.version)
            assert not each.omitted
        random_ = random.Random(5)
        for _ in range(20):
            first, last = (random_.randrange(len(states)) for _ in range(2))
            check_change(database.delta(first, last), states, first, last)
        assert database.verify().is_clean


def check_change(change: deltalog.ChangeSet, states: list[State], first: int, last: int) -> None:
    before, after = states[first], states[last]
    for name in {*before, *after}:
        had, has = before.get(name, set()), after.get(name, set())
        assert (change.inserted[name], change.deleted[name]) == (has - had, had - has)  # type: ignore[comparison-overlap]


def test_an_unwanted_view_costs_a_commit_nothing(path: Path) -> None:
    with opened(path, program=PROGRAM, facts=CHAIN, engine="reference") as database:
        cut = {"delete": {"edge": [(10, 11)]}}
        database.apply(**cut)
        assert database.statistics.generated.total() > 500
        database.apply(insert={"edge": [(10, 11)]}, views=[])
        assert {name.split("__")[0] for name in database.statistics.generated} == {"degree"}
        assert logged(database, 2).omitted == {"path", "far"}  # `shade` reads no edges
        database.apply(**cut, views=["path"])
        assert logged(database, 3).omitted == {"far"}
        assert database.commits(1, 2)[0].change.inserted["path"] == {
            (a, b) for a in range(11) for b in range(11, 21)
        }


def test_only_views_that_are_asked_for_are_derived(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path, program=PROGRAM, engine="reference") as database:
        for number in range(6):
            database.apply(insert={"edge": [(number, number + 1)]}, views=[])
        whole = database.commits(1)
        monkeypatch.setattr(logged_database, "FACTS_EACH", 2)  # each commit is a part of its own
        assert database.commits(1) == whole
        last, found = database.commits_of("far", 1, 6)
        assert (last, [each.version for each in found]) == (2, [2])
        for each, full in zip(database.commits(1, views=["far"]), whole, strict=True):
            assert each.omitted == {"path"}
            assert each.change == full.change.without("path")
        assert database.delta(1, 6, ["far"]) == database.delta(1, 6).without("path")
        assert database.delta(6, 1, ()) == database.delta(6, 1).without("path", "far")
        assert database.omitted(6, 1) == {"path", "far"}


def test_reasons_of_earlier_versions_do_not_need_what_is_omitted(path: Path) -> None:
    with opened(path, program=PROGRAM, facts={"edge": [(1, 2)]}, engine="reference") as database:
        database.apply(insert={"edge": [(2, 3)]}, views=[])
        database.apply(delete={"edge": [(1, 2)]}, views=[])
        assert list(database.query("path(1, X)", version=1)) == [(2,), (3,)]
        assert "edge(2, 3)" in str(database.why("path(1, 3)", version=1))
        changed = database.why_changed("path(1, 3)", 1)
        assert [cause[:2] for cause in changed.causes] == [("+", "edge")]
    with opened(path, engine="reference", materialize=False) as database:
        assert "edge(2, 3)" in str(database.why("far(1, 3)", version=1))


def test_a_view_that_is_stored_later_was_omitted_before(path: Path) -> None:
    text = "base e(a: int).\nvirtual view v(a: int).\nv(X) :- e(X), X > 1."
    with opened(path, program=text, engine="reference") as database:
        database.apply(insert={"e": [(1,), (2,)]}, views=[])
        database.change_program(text.replace("virtual ", "materialized "))
        database.apply(insert={"e": [(3,)]}, views=[])
        assert [database.facts("v", n) for n in range(4)] == [set(), {(2,)}, {(2,)}, {(2,), (3,)}]
        assert str(database.why("v(2)", version=1)) == str(database.why("v(2)"))
        assert database.verify().is_clean


def test_an_omitted_view_that_comes_and_goes_with_its_program(path: Path) -> None:
    plain = "base e(a: int)."
    with opened(path, program=plain, engine="reference") as database:
        database.change_program(plain + "\nvirtual view v(a: int).\nv(X) :- e(X).")
        database.apply(insert={"e": [(1,)]}, views=[])
        database.change_program(plain)
        assert database.delta(0).relations == ("e",)
        assert database.delta(3, 2).inserted["v"] == {(1,)}
        assert [each.change.relations for each in database.commits(1)] == [("e", "v"), ("v",)]


def test_a_base_relation_that_was_a_view_and_the_other_way_round(path: Path) -> None:
    base = "base e(a: int).\nbase v(a: int).\nw(X) :- v(X)."
    view = "base e(a: int).\nvirtual view v(a: int).\nv(X) :- e(X).\nw(X) :- e(X)."
    with opened(path, program=base, engine="reference") as database:
        database.apply(insert={"v": [(7,)], "e": [(1,)]})
        database.apply(delete={"v": [(7,)]})
        database.change_program(view)
        database.apply(insert={"e": [(2,)]}, views=[])
        expected = [set(), {(7,)}, set(), {(1,)}, {(1,), (2,)}]
        assert [database.facts("v", n) for n in range(5)] == expected


def test_a_reader_beside_the_writer_is_told_what_the_log_omits(path: Path) -> None:
    writer = opened(path, program=PROGRAM, engine="reference")
    with writer, opened(path, engine="reference", read_only=True) as reader:
        writer.apply(insert={"edge": [(1, 2)]}, views=[])
        writer.apply(insert={"edge": [(2, 3)]}, views=["far"])
        assert reader.refresh().inserted["path"] == {(1, 2), (2, 3), (1, 3)}
        writer.apply(insert={"edge": [(3, 4)]}, views=[])
        writer.apply(delete={"edge": [(1, 2)]}, views=[])
        first, second = reader.tail(frozenset({"path"}))
        assert first.commit.change.inserted["path"] == {(3, 4), (2, 4), (1, 4)}
        assert second.commit.change.deleted["path"] == {(1, 2), (1, 3), (1, 4)}
        assert set(second.known or ()) == {"edge", "color", "degree", "path", "shade"}
        writer.apply(insert={"edge": [(1, 2)]}, views=[])
        writer.change_program(OTHER)
        assert reader.refresh() == writer.delta(4)
        writer.apply(insert={"edge": [(9, 9)]}, views=[])
        writer.change_program(PROGRAM)
        writer.apply(insert={"edge": [(9, 8)]}, views=[])
        tailed = reader.tail(frozenset({"path"}))
        assert [each.commit.kind for each in tailed] == [
            "transaction",
            "program",
            "transaction",
        ]
        assert ["path" in (each.known or ()) for each in tailed] == [True, True, False]
        assert state_of(reader) == state_of(writer)


def test_a_check_of_the_user_sees_every_view(path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    def check(change: deltalog.ChangeSet) -> str | None:
        seen.append(change.relations)
        return None

    with opened(path, program=PROGRAM, engine="reference", check=check) as database:
        database.apply(insert={"edge": [(1, 2)]}, views=[])
        assert seen == [("degree", "edge", "path")]
        assert not logged(database, 1).omitted


def test_a_reader_that_the_log_no_longer_leads_from_learns_of_new_views(path: Path) -> None:
    """Behind a compaction states are compared, whatever relations the two programs have."""
    with (
        deltalog.connect(path, program=PROGRAM, facts={"edge": [(1, 2)]}) as writer,
        deltalog.connect(path, read_only=True) as reader,
    ):
        writer.apply(insert={"edge": [(2, 3)]})
        writer.change_program(f"{OTHER} twice(X) :- edge(X, Y), edge(Y, _).")
        writer.compact(deltalog.Retention(versions=1))
        change = reader.refresh()
        assert change.inserted["twice"] == {(1,)}
        assert change.inserted["path"] == {(2, 3), (1, 3)}
        assert reader.facts("twice") == {(1,)}


def test_a_nervous_reader_learns_the_exact_change_of_omitted_views(path: Path) -> None:
    program = "base d(x: int, y: int). virtual view loop. loop(X) :- d(X, _)."
    nervous: dict[str, Any] = {"strategy": "differencing", "nervous": True, "materialize": False}
    with (
        deltalog.connect(path, program=program, facts={"d": [(3, 1)]}) as writer,
        deltalog.connect(path, read_only=True, **nervous) as reader,
    ):
        writer.apply(insert={"d": [(3, 2)]}, views=[])
        assert reader.refresh() == deltalog.ChangeSet({"d": {(3, 2)}}, {})
