"""Disjunctive programs: their minimal models and model states, compared with clingo's."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import clingo
import pytest

import deltalog
from deltalog import DataError, ProgramError
from deltalog.language.parser import parse_text

EXAMPLE = """
    base q(x: str). base b(x: str, y: str). base r(x: str).
    s(X) ; t(X) :- r(X), not p(X).
    p(X) :- b(X, Y), p(Y).
    p(X) :- q(X).
    q("2").
    b("1", "2").
    r("a") ; r("b") ; r("c") ; r("1").
"""
Model = frozenset[tuple[str, tuple[object, ...]]]


def ours(program: str) -> set[Model]:
    return {
        frozenset((name, row) for name, rows in model.items() for row in rows)
        for model in deltalog.models(program).minimal
    }


def clingo_models(program: str) -> set[Model]:
    """The answer sets: perfect models, since negation is stratified."""
    control = clingo.Control(["0", "--warn=none"])
    control.add("base", [], program)
    control.ground([("base", [])])
    found: set[Model] = set()

    def add(model: clingo.Model) -> None:
        found.add(
            frozenset(
                (each.name, tuple(_value(x) for x in each.arguments))
                for each in model.symbols(atoms=True)
            )
        )

    control.solve(on_model=add)
    return found


def _value(symbol: clingo.Symbol) -> object:
    return symbol.number if symbol.type == clingo.SymbolType.Number else symbol.string


def as_clingo(program: str) -> str:
    lines = (line.strip() for line in program.splitlines())
    return "\n".join(line.replace(" ; ", " | ") for line in lines if not line.startswith("base"))


def test_the_example_of_section_2_3_corrected() -> None:
    found = deltalog.models(EXAMPLE)
    shared = {("q", ("2",)), ("b", ("1", "2")), ("p", ("1",)), ("p", ("2",))}
    own = {each - shared for each in ours(EXAMPLE)}
    ways = [("s", "a"), ("t", "a"), ("s", "b"), ("t", "b"), ("s", "c"), ("t", "c")]
    expected = {frozenset({("r", (k,)), (name, (k,))}) for name, k in ways}
    assert own == {frozenset({("r", ("1",))}), *expected}
    definite = {clause[0] for clause in found.state if len(clause) == 1}
    assert definite == shared
    disjunctions = {frozenset(clause) for clause in found.state if len(clause) > 1}
    choices = [({("r", (k,))}, {("s", (k,)), ("t", (k,))}) for k in "abc"]
    assert disjunctions == {
        frozenset({("r", ("1",))}.union(*choice)) for choice in product(*choices)
    }
    assert len(disjunctions) == 8
    assert ours(EXAMPLE) == clingo_models(as_clingo(EXAMPLE))


def test_the_state_can_be_read_again() -> None:
    found = deltalog.models(EXAMPLE)
    again = parse_text(str(found))
    assert len(again.disjunctive_rules) == 8
    assert len(again.facts) == 4


def random_program(rng: random.Random) -> str:
    lines = ["base a(x: int).", "base e(x: int, y: int)."]
    lines += [f"a({x})." for x in (1, 2, 3) if rng.random() < 0.4]
    pairs = [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]
    lines += [f"e({x}, {y})." for x, y in pairs if rng.random() < 0.25]
    if rng.random() < 0.6:
        lines.append(f"a({rng.randint(1, 3)}) ; a({rng.randint(1, 3)}).")
    lines += ["e(1, 1).", "a(3).", "low(X) :- a(X).", "mid(X) :- low(X).", "top(X) :- mid(X)."]
    below = ["a(X)", "e(X, Y)"]
    for names in (("low", "few"), ("mid", "some"), ("top", "rest")):
        lines.append(f"{names[1]}(X) :- {names[0]}(X), e(X, X).")
        for _ in range(rng.randint(1, 2)):
            heads = [f"{name}(X)" for name in rng.sample(names, rng.randint(1, 2))]
            own = f"{rng.choice(names)}(Y), e(Y, X)"
            body = own if rng.random() < 0.4 else rng.choice(below)
            test = rng.choice(below).replace("X", "X").replace("Y", "X")
            negated = f", not {test}" if rng.random() < 0.5 else ""
            lines.append(f"{' ; '.join(heads)} :- {body}{negated}.")
        below += [f"{name}(X)" for name in names]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
def test_minimal_models_are_the_answer_sets_of_clingo(seed: int) -> None:
    program = random_program(random.Random(seed))
    expected = clingo_models(as_clingo(program))
    assert ours(program) == expected, program
    found = deltalog.models(program)
    for clause in found.state:
        assert all(not model.isdisjoint(clause) for model in expected)
        for fact in clause:
            rest = {*clause} - {fact}
            assert any(model.isdisjoint(rest) for model in expected), "a part would do"


def test_values_have_the_types_of_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "typed.dl"
    path.write_text("base c(x: float).\nc(1) ; c(2.5).\nd(X, 1) ; d(X, 2) :- c(X), X < 2.\n")
    (first, second, third) = deltalog.models(path).minimal
    assert first == {"c": {(2.5,)}}
    assert {frozenset(each["d"]) for each in (second, third)} == {
        frozenset({(1.0, 1)}),
        frozenset({(1.0, 2)}),
    }
    assert all(isinstance(row[0], float) for each in (first, second, third) for row in each["c"])


def test_a_database_refuses_them_whoever_adds_them() -> None:
    with pytest.raises(ProgramError, match="E1403"):
        deltalog.connect(program=EXAMPLE)
    db = deltalog.connect(program="base c(x: int). d(X) :- c(X).")
    with pytest.raises(ProgramError, match="E1403"):
        db.change_program("base c(x: int). d(X) ; f(X) :- c(X).")


def test_too_many_models_are_refused() -> None:
    program = "\n".join(f"a({i}) ; b({i})." for i in range(8))
    with pytest.raises(DataError, match="more than 100 models"):
        deltalog.models(program, models_max=100)
