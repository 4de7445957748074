"""The verbs of a database, tried on one of any kind: they have the same names and effects.

Used by `tests/conformance/test_databases.py`, and on Spark by `tests/pipeline/test_table_verbs.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import deltalog

PROGRAM = """
base edge(src: int, dst: int).
base weight(node: int key, grams: int).
path(X, Y) :- edge(X, Y).
path(X, Y) :- edge(X, Z), path(Z, Y).
edge(1, 2).
"""
PROGRAM_OF_VIEWS = """
base edge(src: int, dst: int).
virtual view link.
virtual view back.
virtual view both.
link(X, Y) :- edge(X, Y), X != Y.
back(Y, X) :- link(X, Y).
both(X, Y) :- link(X, Y), back(X, Y).
kept(X) :- link(X, _).
"""
OTHER_PROGRAM = PROGRAM.replace("path(X, Y) :- edge(X, Y).", "path(X, Y) :- edge(Y, X).")

HISTORY: dict[str, Callable[[Any], object]] = {
    "first_version": lambda db: db.first_version,
    "readers": lambda db: db.readers,
    "relations_at": lambda db: db.relations_at(0),
    "delta": lambda db: db.delta(0),
    "commits": lambda db: db.commits(),
    "programs": lambda db: db.programs(),
    "register": lambda db: db.register("r"),
    "acknowledge": lambda db: db.acknowledge("r", 0),
    "unregister": lambda db: db.unregister("r"),
}
UPKEEP: dict[str, Callable[[Any], object]] = {
    "backup": lambda db: db.backup("copy.db"),
    "compact": lambda db: db.compact(),
    "verify": lambda db: db.verify(),
}


def changes(change: Any) -> list[tuple[str, str, tuple[Any, ...]]]:
    """A change as rows, whatever form it has."""
    return list(getattr(change, "changes", change))


def check_why(db: deltalog.Database) -> None:
    """Proofs of facts, on a database of `PROGRAM` with the edges (1, 2) and (2, 3)."""
    proof = db.why("path(1, 3)")
    assert (proof.conclusion, proof.rule) == ("path(1, 3)", "path(X, Y) :- edge(X, Z), path(Z, Y).")
    assert [each.conclusion for each in proof.premises] == ["edge(1, 2)", "path(2, 3)"]
    assert proof.to_json()["premises"][1]["premises"][0]["conclusion"] == "edge(2, 3)"
    assert len(db.why("path(1, 3)", every=True).premises) == 2
    assert db.why("path(1, X)").to_json()["count"] == 2
    with pytest.raises(deltalog.DataError, match="E1502"):
        db.why("path(3, 1)")
    missing = db.why_not("path(3, 1)")
    assert [rule.literal for rule in missing.rules] == ["edge(3, 1)", "edge(3, _)"]
    assert missing.realization is not None
    assert changes(missing.realization.base) == [("+", "edge", (3, 1))]
    with pytest.raises(deltalog.DataError, match="E1503"):
        db.why_not("path(1, 3)")
    reason = db.why_changed("path(1, 3)")
    assert (reason.op, reason.causes) == ("+", (("+", "edge", (2, 3)),))
    assert [str(arc).split(" by ")[0] for arc in reason.arcs] == ["Δ+path/Δ+edge", "Δ+path/Δ+path"]
    with pytest.raises(deltalog.DataError, match="E1505"):
        db.why_changed("path(1, 2)")
    for answer in (proof, missing, reason):
        assert answer.sentences()
        for form in ("mermaid", "dot", "html"):
            assert "path(1, 3)" in deltalog.picture(answer, form) or answer is missing


def check_reasons(db: Any, has_history: bool) -> None:
    """Why facts changed with the program; on a database of `PROGRAM`, which is closed at the end.

    Where earlier versions are kept all three verbs are asked about them, too.
    """
    db.apply(insert={"edge": [(2, 3)]})
    first = db.version
    db.change_program(OTHER_PROGRAM)
    gained = db.why_changed("path(3, 2)")
    assert (gained.op, gained.causes, gained.version) == ("+", (), first + 1)
    assert [(each.op, each.kind, each.text) for each in gained.program] == [
        ("+", "rule", "path(X, Y) :- edge(Y, X).")
    ]
    assert [step.kept for step in gained.steps] == [("edge(2, 3)",)]
    lost = db.why_changed("path(1, 3)")
    assert (lost.op, lost.causes, lost.lost) == ("-", (), 1)
    assert [step.conclusion for step in lost.steps] == ["-path(1, 3)", "-path(2, 3)"]
    assert [(each.op, each.text) for each in lost.program] == [("-", "path(X, Y) :- edge(X, Y).")]
    assert "the rule is gone" in str(lost)
    with pytest.raises(deltalog.DataError, match="E1505"):
        db.why_changed("edge(1, 2)")
    if has_history:
        _check_past_reasons(db, first)
    db.apply(delete={"edge": [(2, 3)]})
    assert db.why_changed("path(3, 2)").causes == (("-", "edge", (2, 3)),)
    db.close()
    for ask in (db.why, db.why_not, db.why_changed):
        with pytest.raises(deltalog.DataError, match=r"E0911|E1006"):
            ask("path(1, 3)")


def _check_past_reasons(db: Any, first: int) -> None:
    """The version before the program changed, under which facts had other proofs."""
    assert db.why("path(1, 3)", version=first).height == 2
    assert db.why("path(1, X)", version=first).count == 2
    assert db.why_not("path(1, 3)").rules
    blocked = db.why_not("path(3, 1)", version=first)
    assert [rule.literal for rule in blocked.rules] == ["edge(3, 1)", "edge(3, _)"]
    assert blocked.realization is None
    earlier = db.why_changed("path(1, 3)", first)
    assert (earlier.op, earlier.causes) == ("+", (("+", "edge", (2, 3)),))
    with pytest.raises(deltalog.DataError, match="E1502"):
        db.why("path(1, 3)", version=first - 1)
    unknown: tuple[Callable[[], object], ...] = (
        lambda: db.why("path(1, 3)", version=99),
        lambda: db.why_not("path(3, 1)", version=-1),
        lambda: db.why_changed("path(1, 3)", 99),
    )
    for ask in unknown:
        with pytest.raises(deltalog.DataError, match="E0909"):
            ask()
    with pytest.raises(deltalog.DataError, match="E1508"):
        db.why_changed("path(1, 3)", db.first_version)


def check_realize(db: deltalog.Database) -> None:
    """View updates, on a database of `PROGRAM` with the edges (1, 2) and (2, 3)."""
    found = db.realize("-path(1, 3)", rank="side_effects")
    shown = {tuple(changes(each.base)): each.side_effect_count for each in found}
    assert shown == {(("-", "edge", (1, 2)),): 1, (("-", "edge", (2, 3)),): 1}
    assert found.is_complete
    added = db.realize("+path(3, 1)", domains={"edge.dst": [1]}, budget=deltalog.Budget(changes=1))
    (only,) = added
    assert changes(only.delta.only("edge")) == [("+", "edge", (3, 1))]
    assert db.check_choices() == ()
    assert all(check.is_guaranteed for check in db.check_requests())
    assert changes(only.apply()) == changes(only.delta)
    db.apply(delete={"edge": [(3, 1)]})


def check_verbs(db: deltalog.Database) -> None:
    """Every verb that all kinds have, on a database of `PROGRAM`; ends with it closed."""
    assert isinstance(db, deltalog.Database)
    assert set(db.relations) == {"edge", "weight", "path"}
    assert db.facts("path") == {(1, 2)}
    first = db.version

    grown = [("+", "edge", (2, 3)), ("+", "path", (1, 3)), ("+", "path", (2, 3))]
    assert changes(db.what_if(insert={"edge": [(2, 3)]})) == grown
    assert (db.version, db.facts("edge")) == (first, {(1, 2)})
    assert changes(db.apply(insert={"edge": [(2, 3)]})) == grown
    assert db.statistics.rounds > 0
    assert db.rows("path") == {(1, 2), (1, 3), (2, 3)}
    assert db.query("path($from, Y)", {"from": 1}) == {(2,), (3,)}
    assert changes(db.apply(insert={"edge": [(2, 3)]})) == []
    check_why(db)
    check_realize(db)
    begun = db.version

    db.apply(set={"weight": [(1, 10)]})
    replaced = [("-", "weight", (1, 10)), ("+", "weight", (1, 11))]
    assert changes(db.what_if(set={"weight": [(1, 11)]})) == replaced
    assert changes(db.apply(set={"weight": [(1, 11)]})) == replaced
    with pytest.raises(deltalog.DataError, match="E0705"):
        db.apply(insert={"weight": [(1, 12)]})
    with pytest.raises(deltalog.DataError, match="E0706"):
        db.apply(set={"edge": [(1, 2)]})
    with pytest.raises(deltalog.DataError, match="E0727"):
        db.apply(set={"weight": [(1, 12), (1, 13)]})
    with pytest.raises(deltalog.DataError, match="E0727"):
        db.what_if(set={"weight": [(1, 12), (1, 13)]})
    assert changes(db.what_if(set={"weight": [(1, 12), (1, 12)]})) == [
        ("-", "weight", (1, 11)),
        ("+", "weight", (1, 12)),
    ]
    assert db.version == begun + 2

    with db.transaction() as tx:
        tx.delete("edge", [(1, 2)])
        tx.set("weight", (1, 12))
        assert tx.facts("path") == {(2, 3)}
        assert tx.query("weight(1, G)") == {(12,)}
        assert db.facts("path") == {(1, 2), (1, 3), (2, 3)}
    assert ("-", "path", (1, 3)) in changes(tx.delta)
    tx = db.transaction()
    tx.insert("edge", [(7, 8)])
    tx.rollback()
    assert db.facts("edge") == {(2, 3)}
    assert db.version == begun + 3

    assert "path" in db.explain()
    assert not db.audit()
    with pytest.raises(deltalog.DataError, match="E0701"):
        db.facts("nobody")
    assert ("+", "path", (3, 2)) in changes(db.change_program(OTHER_PROGRAM, is_committed=False))
    assert db.facts("path") == {(2, 3)}
    with db:
        pass
    with pytest.raises(deltalog.DataError, match=r"E0911|E1006"):
        db.apply(insert={"edge": [(5, 6)]})


def check_wanted_views(db: deltalog.Database, is_recorded: bool) -> None:
    """`views` on a database of `PROGRAM_OF_VIEWS`: only these are returned, and propagated.

    If changes of all views are recorded, those that nobody wants are computed by a commit, too.
    """

    def generated() -> set[str]:
        counts = db.statistics.generated
        return {name.split("__")[0] for name, count in counts.items() if count}

    rows = [(1, 2), (2, 1)]
    db.apply(insert={"edge": [(8, 9)]})
    kept = [("+", "kept", (1,)), ("+", "kept", (2,))]
    edges = [("+", "edge", row) for row in rows]
    backs = [("+", "back", row) for row in rows]
    assert changes(db.what_if(insert={"edge": rows}, views=["kept"])) == edges + kept
    assert {"back", "both"}.isdisjoint(generated())
    assert changes(db.what_if(insert={"edge": rows}, views=["back"])) == backs + edges
    assert "back" in generated()
    assert "both" not in generated()
    with db.transaction(views=[]) as tx:
        tx.insert("edge", rows)
    assert changes(tx.delta) == edges
    assert ("both" in generated()) == is_recorded
    assert db.facts("kept") == {(1,), (2,), (8,)}
    gone = changes(db.apply(delete={"edge": [(1, 2)]}, views="both"))
    assert gone == [("-", "both", (1, 2)), ("-", "both", (2, 1)), ("-", "edge", (1, 2))]
    assert {name for _, name, _ in changes(db.apply(insert={"edge": [(1, 2)]}))} == {
        "back",
        "both",
        "edge",
        "kept",
        "link",
    }
    for call in (db.apply, db.what_if, db.transaction):
        with pytest.raises(deltalog.DataError, match="unknown view `edge`"):
            call(views=["edge"])
    assert not db.audit()


def check_refused(db: Any, kind: str) -> None:
    """A verb of `History` or `Upkeep` that is not available is one error, and names the kind."""
    for verb, call in {**HISTORY, **UPKEEP}.items():
        with pytest.raises(deltalog.DataError) as caught:
            call(db)
        assert caught.value.codes == ("E0725",)
        assert f"`{verb}` is not available in a database {kind}" in str(caught.value)
        assert "hint" in str(caught.value)
    with pytest.raises(deltalog.DataError, match="E0722"):
        db.facts("edge", 0)
    with pytest.raises(deltalog.DataError, match="E0722"):
        db.query("edge(X, Y)", version=0)


PROGRAM_OF_RULES = """
base quantity(item: str key, amount: int).
base reserve(item: str key, amount: int).
base scarce(item: str).
base part(whole: str, part: str).
threshold(I, R * 2) :- reserve(I, R).
contains(X, Y) :- part(X, Y).
contains(X, Y) :- part(X, Z), contains(Z, Y).
view supplier(item: str key, whole: str).
supplier(I, W) :- part(W, I), quantity(I, _).
deny cycle(X) :- contains(X, X) say "{X} contains itself".
deny view large(I) :- quantity(I, Q), Q > 1000.
require reserve("nut", 10).
rule reorder for I priority 5
  when quantity(I, Q), threshold(I, T), Q < T do call order(I, T - Q), emit order(I).
rule low(L) for I when quantity(I, Q), Q < L do insert scarce(I) else delete scarce(I).
rule stop on delete reserve(I, R) when R > 500 do reject "{I} is reserved".
reserve("nut", 10). reserve("bolt", 600). quantity("nut", 100). part("nut", "thread").
"""


def check_rules(db: Any) -> None:
    """Constraints and active rules on a database of `PROGRAM_OF_RULES`."""
    with pytest.raises(deltalog.DataError, match="E1205"):
        db.apply(set={"quantity": [("nut", 5)]})
    orders: list[Any] = []
    db.action("order")(orders.append)
    db.activate("low", L=5)
    delta = db.apply(set={"quantity": [("nut", 3), ("bolt", 5000)]})
    assert delta.firings == [("reorder", ("nut",)), ("low", (5, "nut"))]
    assert orders == [[("nut", 17)]]
    assert ("+", "scarce", ("nut",)) in changes(delta)
    assert {name for _, name, _ in changes(delta)} == {"quantity", "scarce", "large"}
    assert [message.arguments for message in db.messages()] == [["nut"]]
    _check_deliveries(db)
    assert db.facts("scarce") == {("nut",)}
    assert [violation.fact for violation in db.violations()] == [("bolt",)]
    _check_refusals(db)
    assert db.what_if(set={"quantity": [("bolt", 7)]}).firings == [("reorder", ("bolt",))]
    assert orders == [[("nut", 17)]]
    assert db.apply(set={"quantity": [("nut", 50)]}).firings == []
    assert db.facts("scarce") == set()
    db.deactivate("low", L=5)
    db.deactivate("reorder")
    assert db.apply(set={"quantity": [("nut", 1)]}).firings == []
    states = {rule.name: (rule.is_active, rule.firings) for rule in db.rules()}
    assert states == {"reorder": (False, 1), "low": (False, 1), "stop": (True, 0)}
    assert set(db.query("sys_rule(N, P, true)")) == {("stop", 0)}
    assert "rules__inactive" not in db.relations
    more = "rule more on insert quantity(I, Q) when Q > 8000 do insert scarce(I).\n"
    db.change_program(PROGRAM_OF_RULES + more, inactive=["more"])
    assert db.apply(set={"quantity": [("many", 9000)]}).firings == []
    db.activate("more")
    assert db.apply(set={"quantity": [("more", 9000)]}).firings == [("more", ("more", 9000))]
    db.change_program(PROGRAM_OF_RULES)
    assert not db.audit()


def _check_deliveries(db: Any) -> None:
    """The one message fails, is a dead letter for one target, and reaches another."""

    def fail(message: Any) -> None:
        raise OSError("nobody listens")

    (message,) = db.messages()
    counts = {rule.name: rule.undelivered for rule in db.rules()}
    assert counts == dict.fromkeys(counts, 0) | {message.rule: 1}
    done = db.dispatch(fail, target="first", pauses_seconds=[3600])
    assert (done.delivered, done.failed, done.dead, done.waiting) == (0, 1, 0, 1)
    assert db.dispatch(fail, target="second", pauses_seconds=[]).dead == 1
    (letter,) = db.dead_letters()
    assert (letter.recipient, letter.id, letter.error) == (
        "second",
        message.id,
        "OSError: nobody listens",
    )
    found = db.query("sys_dead_letter(T, _, _, R, _, _, 1, _, _)")
    assert set(found) == {("second", message.rule)}
    received: list[Any] = []
    assert db.dispatch(received.append, target="third").delivered == 1
    assert db.dispatch(received.append, target="third").delivered == 0
    assert received == db.messages()
    (left,) = [rule for rule in db.rules() if rule.undelivered]
    assert (left.name, left.undelivered, left.dead) == (message.rule, 1, 1)


def _check_refusals(db: Any) -> None:
    """Each change is refused, and leaves no trace."""
    before = db.version, db.facts("part"), db.messages(), db.rules()
    for change, constraint, causes in (
        ({"insert": {"part": [("thread", "nut")]}}, "cycle", [("+", "part", ("thread", "nut"))]),
        (
            {"delete": {"reserve": [("nut", 10)]}},
            'reserve("nut", 10)',
            [("-", "reserve", ("nut", 10))],
        ),
        ({"delete": {"reserve": [("bolt", 600)]}}, "stop", []),
        (
            {"insert": {"part": [("box", "nut"), ("bag", "nut")]}},
            "key of supplier",
            [("+", "part", ("bag", "nut")), ("+", "part", ("box", "nut"))],
        ),
    ):
        with pytest.raises(deltalog.ConstraintError) as caught:
            db.apply(**change)
        assert caught.value.violations[0].constraint == constraint
        assert sorted(caught.value.violations[0].causes) == causes
    assert (db.version, db.facts("part"), db.messages(), db.rules()) == before
