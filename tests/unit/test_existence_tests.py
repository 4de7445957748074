"""Parts of bodies that only have to exist: by counts of what is derived, and after every change."""

from __future__ import annotations

import pytest

import deltalog
from deltalog.language.ast import Row
from deltalog.language.parser import parse_text
from deltalog.runtime.engine_choice import ENGINES
from treatments import UPKEEP, Upkeep, contents, helpers, naive

COUNTING = """
    base c(y: int). base d(y: int).
    b(0).
    b(X + 1) :- a(X), X < 2000.
    a(X) :- b(X), c(Y), d(Y).
"""
FACTS = {"c": [(n,) for n in range(100)], "d": [(n,) for n in range(50, 150)]}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_group_is_derived_once(engine: str) -> None:
    """2,001 facts of b meet 50 pairs of c and d, and only one of these is looked for."""
    db = deltalog.connect(program=COUNTING, facts=FACTS, engine=engine)
    assert db.statistics.generated == {"a": 2001, "b": 2001, "a__exists1": 1}
    assert db.apply(delete={"c": [(n,) for n in range(99)]}).relations == ("c",)
    gone = db.apply(delete={"d": [(99,)]})
    assert len(gone.deleted["a"]) == 2001
    assert gone.deleted["b"] == {(n,) for n in range(1, 2001)}
    assert len(db.apply(insert={"c": [(149,)]}).inserted["a"]) == 2001
    assert db.audit(engine="reference") == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_product_is_not_built(engine: str) -> None:
    """Twelve relations of a hundred rows: their product has 10^24 rows."""
    names = [f"r{number}" for number in range(12)]
    base = "".join(f"base {name}(x: int, y: int). " for name in names)
    body = ", ".join(f"{name}(_, _)" for name in names)
    facts = {name: [(n, n) for n in range(100)] for name in names}
    program = f"{base} base i(x: int). q(X) :- {body}, i(X)."
    db = deltalog.connect(program=program, facts={**facts, "i": [(1,), (2,)]}, engine=engine)
    assert db.facts("q") == {(1,), (2,)}
    assert db.query(f"{body}, i(X)") == [(1,), (2,)]
    assert db.query(f"{body}, not i(3)") == [()]
    last = {names[-1]: facts[names[-1]]}
    assert db.apply(delete=last).deleted["q"] == {(1,), (2,)}
    assert db.query(f"{body}, i(X)") == []


def test_helpers_are_not_seen_from_outside() -> None:
    db = deltalog.connect(program=COUNTING, facts=FACTS)
    assert helpers(db) == {"a__exists1": {()}}
    assert set(db.relations) == {"a", "b", "c", "d"}
    assert db.apply(insert={"c": [(777,)]}).relations == ("c",)


@pytest.mark.parametrize("materialize", [True, False])
def test_rules_change(materialize: bool) -> None:
    """A helper of the same name stands for something else in the next program."""
    base = "base b(x: int). base c(x: int). base d(x: int). b(1). c(1). "
    one, two = "a(X) :- b(X), c(_).", "a(X) :- b(X), d(_)."
    db = deltalog.connect(program=base + one, materialize=materialize, engine="reference")
    assert db.change_program(base + two).deleted["a"] == {(1,)}
    assert db.apply(delete={"c": [(1,)]}).relations == ("c",)
    assert db.apply(insert={"d": [(1,)]}).inserted["a"] == {(1,)}
    assert db.change_program(base + one).deleted["a"] == {(1,)}
    assert db.apply(insert={"c": [(2,)]}).inserted["a"] == {(1,)}
    assert db.change_program(base + two).relations == ()  # c and d have facts
    assert db.audit() == ()


@pytest.mark.parametrize("upkeep", UPKEEP.values(), ids=UPKEEP)
def test_rows_that_leave_and_return(upkeep: Upkeep) -> None:
    """Whether there is something is known by counts, with dead rows and changes beside them."""
    program = parse_text("""
        base a(x: int). base b(x: int, y: int).
        p(X) :- a(X), b(_, _).
        n(X) :- a(X), not b(_, _).
    """)
    db = upkeep.connect(program, {"a": {(0,)}})
    held: set[Row] = set()
    for number in (1, 2, 1, 2, 1, 3, 1, 3):
        row = (number, number)
        change = {"b": [row]}
        db.apply(delete=change) if row in held else db.apply(insert=change)
        held ^= {row}
        assert contents(db) == naive(program, {"a": {(0,)}, "b": held})
