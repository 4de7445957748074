"""Long cascades: step by step, undone before the commit, and nobody sees the steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.rehearsal import WHOLE_MAX, Rehearsal
from deltalog.runtime.route import Route
from deltalog.store.verify import verify_file

LENGTH = 3 * WHOLE_MAX
COUNTING = """
base n(x: int). base edge(x: int, y: int). base last(k: int key, x: int).
reach(X, Y) :- edge(X, Y).
reach(X, Y) :- reach(X, Z), edge(Z, Y).
size(count()) :- reach(X, Y).
rule next on insert n(X) when X < 24
  do insert n(X + 1), insert edge(X, X + 1), set last(0, X), delete edge(X - 4, _), emit at(X).
"""


def counting(path: Path | None = None, more: str = "", **options: Any) -> deltalog.MemoryDatabase:
    facts = {"edge": [(-1, 0), (-2, -1), (-4, 7)], "last": [(0, -1)]}
    return deltalog.connect(path, program=COUNTING + more, facts=facts, **options)


def relations(db: deltalog.MemoryDatabase) -> dict[str, set[tuple[Any, ...]]]:
    return {name: db.facts(name) for name in db.relations}


@pytest.mark.parametrize("strategy", ["auto", "differencing", "recompute"])
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_steps_make_what_whole_rehearsals_make(
    engine: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: Any = {"engine": engine, "strategy": strategy}
    advanced = counting(**options)
    delta = advanced.apply(insert={"n": [(0,)]})
    monkeypatch.setattr("deltalog.runtime.rehearsal.WHOLE_MAX", 1000)
    whole = counting(**options)
    assert delta == whole.apply(insert={"n": [(0,)]})
    assert delta.firings == [("next", (x,)) for x in range(LENGTH)]
    assert relations(advanced) == relations(whole)
    assert [m.arguments for m in advanced.messages()] == [[x] for x in range(LENGTH)]
    assert not advanced.audit()
    assert advanced.apply(delete={"edge": [(23, 24)]}) == whole.apply(delete={"edge": [(23, 24)]})


def test_an_execution_propagates_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts that are bound grow with the length of a cascade, and not with its square."""
    bound: list[int] = []
    run = Route.run

    def counted(route: Route, base: Any, *arguments: Any) -> Any:
        bound.append(len(base))
        return run(route, base, *arguments)

    monkeypatch.setattr(Route, "run", counted)
    program = "base n(x: int). rule next on insert n(X) when X < {} do insert n(X + 1)."
    totals = []
    for length in (50, 100):
        db = deltalog.connect(program=program.format(length), engine="reference")
        bound.clear()
        assert len(db.apply(insert={"n": [(0,)]}).firings) == length
        totals.append(sum(bound))
    assert totals[1] < 2.2 * totals[0]


@pytest.mark.parametrize("end", ["deny", "reject", "raise", "limit", "interrupt"])
def test_a_refused_cascade_leaves_no_trace(end: str, tmp_path: Path) -> None:
    more = {
        "deny": "deny bad(X) :- n(X), X > 20.",
        "reject": 'rule no on insert n(X) when X > 20 do reject "no".',
        "limit": "rule more on insert n(X) do insert n(X + 1).",
    }.get(end, "rule no on insert n(X) when X > 20 do call fail(X).")
    limits = deltalog.Limits(firings_max=2 * LENGTH)

    def fail(_: Any) -> None:
        raise KeyboardInterrupt if end == "interrupt" else ValueError

    files: list[Any] = [counting(tmp_path / "n.db", more, engine="embedded", limits=limits)]
    for db in [*files, counting(None, more, limits=limits)]:
        db.action("fail")(fail)
        before = relations(db), db.version, db.rules(), db.messages()
        expected = (deltalog.DeltalogError, ValueError, KeyboardInterrupt)
        with pytest.raises(expected):
            db.apply(insert={"n": [(0,)]})
        assert before == (relations(db), db.version, db.rules(), db.messages())
        assert not db.audit()
        db.apply(delete={"edge": [(-1, 0)]})
        assert db.facts("reach") == {(-2, -1), (-4, 7)}
    assert verify_file(files[0]).is_clean
    files[0].close()


def test_a_function_reads_the_state_before_in_every_step(tmp_path: Path) -> None:
    more = "rule look priority 1 on insert n(X) do call look(X)."
    for db in (counting(None, more), counting(tmp_path / "n.db", more)):
        seen: list[Any] = []

        def look(rows: Any, db: Any = db, seen: list[Any] = seen) -> Any:
            if rows[0][0] % 5 == 0:
                tried = db.what_if(insert={"edge": [(0, 5)]})
                size = db.query("size(N)")
                seen.append((db.facts("n"), set(size), tried.inserted["reach"], db.messages()))
            return {"insert": {"edge": [(100, rows[0][0])]}}

        db.action("look")(look)
        engine = db.engine
        db.apply(insert={"edge": [(24, 25)]})
        delta = db.apply(insert={"n": [(0,)]})
        assert len(delta.firings) == 2 * LENGTH + 1
        assert {(100, x) for x in range(LENGTH + 1)} <= db.facts("edge")
        assert all(
            (n, messages, len(new)) == (set(), [], 3) and size == {(5,)}
            for n, size, new, messages in seen
        ), seen
        assert len(seen) == 5
        assert db.engine is engine, "a file must not be loaded again for a function that reads"
        assert not db.audit()
        db.close()


@pytest.mark.parametrize("is_file", [True, False])
def test_an_interrupted_end_is_finished_by_the_next_verb(
    is_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = 'rule no on insert n(X) when X > 20 do reject "no".'
    db = counting(tmp_path / "n.db" if is_file else None, more)
    before = relations(db)
    rewind = Rehearsal.rewind

    def interrupted(rehearsal: Rehearsal) -> None:
        monkeypatch.setattr(Rehearsal, "rewind", rewind)
        raise KeyboardInterrupt

    monkeypatch.setattr(Rehearsal, "rewind", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.apply(insert={"n": [(0,)]})
    assert relations(db) == before
    assert not db.audit()
    db.close()


def test_rules_that_undo_all_that_was_done() -> None:
    """The whole is no change, and no version is made, however long the way was."""
    db = deltalog.connect(
        program="""
        base n(x: int).
        rule up priority 2 on insert n(X) when X < 30 do insert n(X + 1).
        rule down on insert n(X) do delete n(X).
    """
    )
    delta = db.apply(insert={"n": [(0,)]})
    assert len(delta.firings) > 30
    assert not delta
    assert db.facts("n") == set()
