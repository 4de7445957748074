"""Proofs: what they show of every kind of premise, and how they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import deltalog
from deltalog.language.parser import parse_program
from deltalog.language.printer import print_program
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.proof import Proof, json_text
from deltalog.runtime.why.sets import SetProof
from deltalog.source import Source

PROGRAM = """
base edge(src: int, dst: int).
base closed(node: int, why: str?).
base price(item: str key, cents: int?).
path(X, Y) :- edge(X, Y) say "{X} leads to {Y}".
path(X, Y) :- edge(X, Z), path(Z, Y), not closed(Z, _).
virtual view far.
far(X, Y - X) :- path(X, Y), Y - X > 2.
degree(X, count(), sum(Y)) :- edge(X, Y).
degree(9, 0, 0).
open_price(I) :- price(I, null).
both(X) :- edge(X, _), (closed(X, _) ; path(X, X)).
deny loop(X) :- path(X, X) say "{X} leads back".
"""
EDGES = [(1, 2), (2, 3), (3, 4), (1, 3), (4, 6)]


def connected(**options: object) -> deltalog.MemoryDatabase:
    facts = {"edge": EDGES, "closed": [(8, None)], "price": [("nut", None), ("bolt", 5)]}
    made = deltalog.connect(program=PROGRAM, facts=facts, **options)  # type: ignore[call-overload]
    assert isinstance(made, deltalog.MemoryDatabase)
    return made


def proof_of(db: deltalog.Database, fact: str) -> Proof:
    found = db.why(fact)
    assert isinstance(found, Proof)
    return found


@pytest.mark.parametrize("engine", ["embedded", "reference"])
@pytest.mark.parametrize("materialize", [True, False])
def test_a_proof_shows_every_kind_of_premise(engine: str, materialize: bool) -> None:
    db = connected(engine=engine, materialize=materialize)
    assert str(proof_of(db, "far(1, 3)")).splitlines() == [
        "far(1, 3)   by line 8   far(X, Y - X) :- path(X, Y), Y - X > 2.",
        "├─ path(1, 4)   by line 6   path(X, Y) :- edge(X, Z), path(Z, Y), not closed(Z, _).",
        "│  ├─ edge(1, 3)",
        "│  ├─ path(3, 4)   by line 5   path(X, Y) :- edge(X, Y).",
        "│  │  └─ edge(3, 4)",
        "│  └─ not closed(3, _)   no such fact",
        "├─ 4 - 1 > 2",
        "└─ 3 = 4 - 1",
    ]


def test_an_aggregate_counts_its_rows() -> None:
    proof = proof_of(connected(), "degree(1, 2, 5)")
    assert (proof.kind, proof.contributors) == ("aggregate", 2)
    assert [each.conclusion for each in proof.premises] == ["edge(1, 2)", "edge(1, 3)"]


def test_rows_of_a_large_group_are_counted_and_not_all_shown() -> None:
    db = deltalog.connect(
        program="base b(x: int, y: int). n(X, count()) :- b(X, Y).",
        facts={"b": [(1, i) for i in range(500)]},
    )
    proof = proof_of(db, "n(1, 500)")
    assert (proof.contributors, len(proof.premises)) == (500, 20)


def test_a_fact_of_a_view_is_a_rule_without_premises() -> None:
    proof = proof_of(connected(), "degree(9, 0, 0)")
    assert (proof.rule, proof.premises, proof.height) == ("degree(9, 0, 0).", (), 1)


def test_null_is_a_value() -> None:
    db = connected()
    assert [p.conclusion for p in proof_of(db, 'open_price("nut")').premises] == [
        'price("nut", null)'
    ]
    assert proof_of(db, "closed(8, null)").kind == "base"
    with pytest.raises(deltalog.DataError, match="E1502"):
        db.why('open_price("bolt")')


def test_sentences_begin_with_the_conclusion() -> None:
    assert proof_of(connected(), "path(1, 4)").sentences() == ["path(1, 4)", "3 leads to 4"]


def test_a_denial_says_its_message() -> None:
    db = deltalog.connect(
        program=PROGRAM.replace("deny loop", "deny view loop"), facts={"edge": [(1, 1)]}
    )
    assert proof_of(db, "loop(1)").sentences() == ["1 leads back", "1 leads to 1"]


def test_what_is_repeated_is_named_once_in_text_and_whole_in_json() -> None:
    program = "base b(x: int). v(X, 1) :- b(X). v(X, N + 1) :- v(X, N), v(X, N), N < 20."
    proof = proof_of(deltalog.connect(program=program, facts={"b": [(1,)]}), "v(1, 5)")
    assert str(proof).count("(as above)") == 4
    assert json_text(proof.to_json()).count('"b(1)"') == 16


def test_repeated_subproofs_of_a_huge_tree_are_cut_off() -> None:
    program = "base b(x: int). v(X, 1) :- b(X). v(X, N + 1) :- v(X, N), v(X, N), N < 40."
    proof = proof_of(deltalog.connect(program=program, facts={"b": [(1,)]}), "v(1, 40)")
    made = json.loads(json_text(proof.to_json()))
    assert made["premises"][1]["repeated"] is True


def test_a_proof_may_be_high() -> None:
    db = deltalog.connect(
        program="base e(x: int, y: int). p(X, Y) :- e(X, Y). p(X, Y) :- e(X, Z), p(Z, Y).",
        facts={"e": [(i, i + 1) for i in range(1200)]},
        materialize=False,
    )
    proof = proof_of(db, "p(0, 1200)")
    assert proof.height == 1200
    assert str(proof).count("\n") == 1000
    assert json_text(proof.to_json()).count('"e(') == 1200


def test_all_derivations_are_a_graph_that_may_have_cycles() -> None:
    db = deltalog.connect(
        program="base e(x: int, y: int). p(X, Y) :- e(X, Y). p(X, Y) :- p(X, Z), p(Z, Y).",
        facts={"e": [(1, 2), (2, 1)]},
    )
    found = db.why("p(1, 1)", every=True)
    assert isinstance(found, Derivations)
    assert len(found.steps) == 10
    assert "by line 1   p(1, 1), p(1, 1)" in str(found)
    assert not db.why("p(1, 1)", every=True, facts_max=1).to_json()["is_complete"]


def test_a_thousand_proofs_read_as_one() -> None:
    db = deltalog.connect(
        program="base e(x: int, y: int). p(X, Y) :- e(X, Y). p(X, Y) :- e(X, Z), p(Z, Y).",
        facts={"e": [(i, i + 1) for i in range(50)]},
    )
    found = db.why("p(0, X)")
    assert isinstance(found, SetProof)
    assert (found.count, found.height) == (50, 50)
    assert {rule.count for rule in found.rules} == {50, 1225}
    assert [table.count for table in found.tables] == [1275, 50]
    assert str(found).count("\n") == 4
    loops = deltalog.connect(program="base e(x: int, y: int).", facts={"e": [(1, 1), (1, 2)]})
    assert loops.why("e(X, X)").to_json()["count"] == 1


@pytest.mark.parametrize(("form", "words"), [("mermaid", "flowchart"), ("dot", "digraph")])
def test_everything_can_be_drawn(form: str, words: str) -> None:
    db = connected()
    for answer in (db.why("far(1, 3)"), db.why("path(1, X)"), db.why("path(1, 4)", every=True)):
        assert words in deltalog.picture(answer, form)  # type: ignore[arg-type]
    assert "<!doctype html>" in deltalog.picture(answer, "html")


def test_rules_and_negated_literals_of_a_disjunction_are_the_written_ones() -> None:
    db = deltalog.connect(
        program="base a(x: int). base b(x: int). v(X) :- a(X), (b(X) ; not b(_)).",
        facts={"a": [(1,)]},
    )
    proof = proof_of(db, "v(1)")
    assert proof.rule == "v(X) :- a(X), (b(X) ; not b(_))."
    assert [each.conclusion for each in proof.premises] == ["a(1)", "not b(_)"]


def test_versions_of_a_file_are_asked(tmp_path: Path) -> None:
    with deltalog.connect(tmp_path / "g.db", program=PROGRAM, facts={"edge": EDGES}) as db:
        db.apply(delete={"edge": [(1, 3)]})
        db.apply(delete={"edge": [(1, 2)]})
        assert proof_of(db, "path(2, 4)").height == 2
        old = db.why("path(1, 4)", version=1)
        assert isinstance(old, Proof)
        assert old.height == 3
        assert (
            db.why("path(1, 4)", version=0).to_json()["premises"][0]["conclusion"] == "edge(1, 3)"
        )
        with pytest.raises(deltalog.DataError, match=r"E1502.*does not hold in version 2|E1502"):
            db.why("path(1, 4)")
        db.change_program(PROGRAM.replace("edge(X, Z), path(Z, Y)", "path(X, Z), edge(Z, Y)"))
        assert proof_of(db, "path(2, 4)").premises[0].conclusion == "path(2, 3)"
        past = db.why("path(1, 4)", version=0)
        assert past.to_json()["premises"][0]["conclusion"] == "edge(1, 3)"


def test_a_sentence_is_part_of_the_program_and_not_of_its_meaning() -> None:
    program = parse_program(Source("<text>", PROGRAM))
    assert parse_program(Source("<text>", print_program(program))) == program
    db = connected()
    changed = db.change_program(PROGRAM.replace("leads to", "goes to"))
    assert not changed
    assert proof_of(db, "path(3, 4)").sentences() == ["3 goes to 4"]


def test_branches_of_an_aggregate_have_expressions_of_their_own() -> None:
    """`X + 1` and `X mod X` are variables of the same name in rules that are flat."""
    rule = "v(X, sum(X + 1)) :- a(X) ; b(X), not a(X mod X)."
    db = deltalog.connect(
        program=f"base a(x: int). base b(x: int). {rule} b(1).", engine="reference"
    )
    assert db.facts("v") == {(1, 2)}
    assert "b(1)" in str(db.why("v(1, 2)"))


def test_all_derivations_are_those_of_one_fact() -> None:
    with pytest.raises(deltalog.DataError, match="all derivations are those of one fact"):
        connected().why("path(1, X)", every=True)


@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_change_is_loaded_once_for_all_levels(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
    base start(node: int).
    base edge(src: int, dst: int).
    reach(X) :- start(X).
    reach(Y) :- reach(X), edge(X, Y).
    """
    count = 300
    edges = [(i, i + 1) for i in range(count)]
    location = None if place == "memory" else tmp_path / "chain.db"
    with deltalog.connect(location, program=program, facts={"edge": edges}) as db:
        db.apply(insert={"start": [(0,)]})
        if place == "file":
            db.apply(delete={"start": [(0,)]})
        assert isinstance(db, deltalog.MemoryDatabase)
        sizes: list[int] = []
        relations = set(db.engine.relations)  # type: ignore[attr-defined]
        insert = db.engine.insert

        def counted(relation: str, rows: object) -> int:
            sizes.append(len(rows))  # type: ignore[arg-type]
            return insert(relation, rows)  # type: ignore[arg-type]

        monkeypatch.setattr(db.engine, "insert", counted)
        found = db.why_changed(f"reach({count})", None if place == "memory" else db.version - 1)
        assert (found.op, len(found.steps)) == ("+", count + 1)
        assert sum(size > 1 for size in sizes) <= 2, "once in each state that has another"
        assert set(db.engine.relations) == relations  # type: ignore[attr-defined]
