"""Evaluation: semi-naive = naive = an independent solver, and a query = everything, filtered."""

from __future__ import annotations

from effort import effort
from hypothesis import given, note
from hypothesis import strategies as st
from oracle import clingo_model
from programs import Facts, Features, base_relations, programs
from programs import facts as random_facts

import deltalog
from deltalog.language.ast import Atom, Constant, Program, Query, Term, Variable
from deltalog.language.printer import print_program, print_query
from treatments import EVALUATIONS, LIMITS, naive


@st.composite
def loaded(draw: st.DrawFn, features: Features = Features()) -> tuple[Program, Facts]:  # noqa: B008
    bases = draw(base_relations())
    rows = draw(random_facts(bases))
    return draw(programs(features, bases)), rows


@effort(quick=40, fuzz=2500)
@given(loaded())
def test_every_evaluation_agrees_with_clingo(example: tuple[Program, Facts]) -> None:
    agree(*example)


@effort(quick=20, fuzz=1000)
@given(loaded(Features(longer_joins=True)))
def test_longer_joins_agree_with_clingo(example: tuple[Program, Facts]) -> None:
    agree(*example)


def agree(program: Program, facts: Facts) -> None:
    note(print_program(program))
    expected = clingo_model(program, facts)
    for name, treatment in EVALUATIONS.items():
        results = treatment(program, facts)
        for relation in results:
            assert results[relation] == expected.get(relation, set()), f"{name}: {relation}"


@st.composite
def asked(draw: st.DrawFn) -> tuple[Program, Facts, Query]:
    """A program, facts, and a conjunctive query with constants and repeated variables."""
    program, facts = draw(loaded())
    arity = {rule.head.predicate: len(rule.head.arguments) for rule in program.rules}
    averages = {
        rule.head.predicate
        for rule in program.rules
        if any(getattr(term, "function", "") == "avg" for term in rule.head.arguments)
    }
    usable = sorted(set(arity) - averages)
    terms: st.SearchStrategy[Term] = st.one_of(
        st.sampled_from([Variable("P"), Variable("Q"), Variable("R")]),
        st.integers(0, 4).map(lambda value: Constant(value, "int")),
    )
    atoms = [
        Atom(name, tuple(draw(st.lists(terms, min_size=arity[name], max_size=arity[name]))))
        for name in draw(st.lists(st.sampled_from(usable), min_size=1, max_size=2))
    ] if usable else [Atom("b0", ())]  # fmt: skip
    return program, facts, Query(tuple(atoms))


@effort(quick=40, fuzz=2500)
@given(asked())
def test_magic_sets_answer_what_full_evaluation_filtered_answers(
    example: tuple[Program, Facts, Query],
) -> None:
    program, facts, query = example
    if query.body == (Atom("b0", ()),):
        return
    note(print_program(program) + print_query(query))
    database = deltalog.connect(program=program, materialize=False, limits=LIMITS)
    database.apply(insert={name: sorted(rows) for name, rows in facts.items()})
    everything = naive(program, facts)
    bindings: list[dict[str, object]] = [{}]
    for atom in query.body:
        assert isinstance(atom, Atom)
        bindings = [
            extended
            for binding in bindings
            for row in everything[atom.predicate]
            if (extended := _unified(binding, atom, row)) is not None
        ]
    rows = database.query(query)
    assert set(rows) == {tuple(b[name] for name in rows.names) for b in bindings}


def _unified(
    binding: dict[str, object], atom: Atom, row: tuple[object, ...]
) -> dict[str, object] | None:
    extended = dict(binding)
    for term, value in zip(atom.arguments, row, strict=True):
        known = term.value if isinstance(term, Constant) else extended.get(term.name, value)
        if known != value:
            return None
        if isinstance(term, Variable):
            extended[term.name] = value
    return extended


@st.composite
def growing(draw: st.DrawFn) -> tuple[str, Facts]:
    """A view that pairs of its own facts extend, over few keys with many rows each.

    Each derived row has a value of its own, so one that an engine misses is made in no other way.
    """
    rules = ["p(X, Y) :- pair(X, Y)."]
    for number in range(draw(st.integers(1, 3))):
        guide = draw(st.sampled_from(["p(K, A)", "p(A, K)", "pair(K, A)"]))
        key = draw(st.sampled_from("KA"))
        more = (number + 1) * 10_000
        rules.append(f"p({key}, Y) :- {guide}, p({key}, X), Y = X + {more}, X < 10000.")
    keys, rows = draw(st.integers(1, 5)), draw(st.integers(20, 160))
    facts = {(n % keys, keys + n) for n in range(rows)} | {(n, (n + 1) % keys) for n in range(keys)}
    return "base pair(x: int, y: int).\n" + "\n".join(rules), {"pair": facts}


@effort(quick=25, fuzz=1000)
@given(growing())
def test_relations_may_grow_while_rules_walk_them(example: tuple[str, Facts]) -> None:
    program, facts = example
    note(program)
    found, expected = (
        deltalog.connect(program=program, facts=facts, engine=engine).facts("p")
        for engine in ("embedded", "reference")
    )
    assert found == expected
