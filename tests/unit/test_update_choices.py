"""Default choices for view updates: declared, checked, applied, and offered first."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import deltalog
from deltalog import Budget, DataError

GRAPH = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    to insert path(X, Y) do insert edge(X, Y).
    to delete path(X, Y) do delete edge(X, Y).
"""
PERMISSIONS = """
    base grant(person: str, document: str).
    base denial(person: str, document: str, reason: str).
    denied(P, D) :- denial(P, D, _).
    sees(P, D) :- grant(P, D), not denied(P, D).
    to insert sees(P, D) do insert grant(P, D).
    to delete sees(P, D) do insert denial(P, D, "by request").
"""


def test_the_smallest_examples() -> None:
    insertion, deletion = deltalog.connect(program=GRAPH).check_choices()
    assert insertion.is_proved
    assert insertion.unrealized is None
    assert str(insertion) == (
        "to insert path(X, Y) do insert edge(X, Y).\n  realizes every request\n"
        "  has side effects for +path(2, 1) with edge(1, 2): "
        "ChangeSet(+path(1, 1), +path(2, 1), +path(2, 2))"
    )
    assert not deletion.is_proved
    assert str(deletion.unrealized) == "-path(1, 1) with edge(1, 2), edge(2, 1)"
    assert str(deletion.side_effect) == "-path(1, 2) with edge(1, 2), edge(2, 1)"


def test_a_deletion_can_be_proved_and_an_insertion_refuted() -> None:
    insertion, deletion = deltalog.connect(program=PERMISSIONS).check_choices()
    assert deletion.is_proved is False  # a wildcard is in the way of the proof
    assert deletion.unrealized is None
    assert deletion.facts_max >= 1
    assert insertion.unrealized is not None
    assert insertion.unrealized.request == '+sees("a", "a")'
    plain = deltalog.connect(
        program="""
            base a(x: int). base b(x: int).
            v(X) :- a(X), not b(X).
            w(X) :- v(X).
            to insert w(X) do insert a(X), delete b(X).
            to delete w(X) do insert b(X).
        """
    )
    assert [each.is_proved for each in plain.check_choices()] == [True, True]
    assert [each.side_effect for each in plain.check_choices()] == [None, None]


@pytest.mark.parametrize("form", ["memory", "reference", "virtual", "file"])
def test_a_view_is_changed_by_its_choice(form: str, tmp_path: Path) -> None:
    facts = {"edge": [(0, 1)]}
    if form == "file":
        db: deltalog.Database = deltalog.connect(tmp_path / "g.db", program=GRAPH, facts=facts)
    else:
        engine = "reference" if form == "reference" else "embedded"
        db = deltalog.connect(
            program=GRAPH, facts=facts, engine=engine, materialize=form != "virtual"
        )
    with db.transaction() as tx:
        tx.insert("path", [(1, 9), (0, 9)])
    assert db.facts("edge") == {(0, 1), (1, 9)}  # the second request holds by then
    tried = db.what_if(delete={"path": [(1, 9)]})
    assert tried.deleted["edge"] == {(1, 9)}
    with pytest.raises(DataError, match="E1410"):
        db.apply(delete={"path": [(0, 9)]})
    assert db.facts("edge") == {(0, 1), (1, 9)}
    assert not db.apply(insert={"path": [(0, 9)]})
    db.apply(delete={"path": {"src": [1], "dst": [9]}})
    assert db.facts("path") == {(0, 1)}
    db.close()


def test_constraints_hold_for_choices_too() -> None:
    db = deltalog.connect(program=f"{GRAPH} deny cycle(X) :- path(X, X).", facts={"edge": [(1, 2)]})
    with pytest.raises(deltalog.ConstraintError):
        db.apply(insert={"path": [(2, 1)]})
    others = db.realize("+path(2, 1)", budget=Budget(changes=2, new_values=0))
    assert [each.is_default for each in others] == [False]


def test_realize_offers_the_choice_first() -> None:
    db = deltalog.connect(program=GRAPH, facts={"edge": [(1, 2), (4, 5)]})
    found = list(db.realize("+path(1, 5)", budget=Budget(changes=1)))
    assert str(found[0]) == "Realization(+edge(1, 5))"
    assert [each.is_default for each in found] == [True, False, False, False]
    assert len({str(each) for each in found}) == 4


def test_without_a_choice_a_view_is_not_changed() -> None:
    db = deltalog.connect(program="base a(x: int). v(X) :- a(X). to insert v(X) do insert a(X).")
    with pytest.raises(DataError, match="E0702"):
        db.apply(delete={"v": [(1,)]})
    with pytest.raises(DataError, match="E07"):
        db.apply(insert={"v": [("text",)]})
    db.change_program("base a(x: int). v(X) :- a(X).")
    with pytest.raises(DataError, match="E0702"):
        db.apply(insert={"v": [(1,)]})


def test_a_file_keeps_its_choices(tmp_path: Path) -> None:
    with deltalog.connect(tmp_path / "g.db", program=GRAPH) as db:
        db.apply(insert={"path": [(1, 2)]})
    with deltalog.connect(tmp_path / "g.db") as db:
        db.apply(insert={"path": [(2, 3)]})
        assert db.facts("edge") == {(1, 2), (2, 3)}


def test_a_new_program_is_warned_of_what_its_choices_do_not_realize(tmp_path: Path) -> None:
    refuted = GRAPH
    proved = GRAPH.replace("to delete path(X, Y) do delete edge(X, Y).", "")
    with pytest.warns(deltalog.ChoiceWarning, match=r"does not realize -path\(1, 1\)"):
        deltalog.connect(program=refuted, engine="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db = deltalog.connect(tmp_path / "g.db", program=proved, engine="reference")
    with pytest.warns(deltalog.ChoiceWarning) as issued:
        db.change_program(refuted)
    assert issued[0].filename == __file__
    db.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deltalog.connect(tmp_path / "g.db", engine="reference").close()
