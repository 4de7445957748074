"""Active rules fire what a small interpreter of the check phase says, in the same order.

The interpreter (`tests/reference_rules.py`) knows nothing of changes: it evaluates every condition
from scratch in every state, and compares. Rules have every word they can have: parameters,
instances, priorities, `immediate`, `nervous`, events, `else`, and every kind of action.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from effort import effort
from hypothesis import given
from hypothesis import strategies as st

import deltalog
from deltalog.language.ast import Row
from deltalog.language.parser import parse_text
from deltalog.runtime.engine_choice import ENGINES
from deltalog.runtime.rehearsal import WHOLE_MAX
from reference_rules import FIRINGS_MAX, FUNCTIONS, Marks, Phase, RefusedError, State, register
from treatments import naive

VIEWS = """
base a(x: int). base b(x: int). base c(x: int, y: int). base k(x: int key, y: int).
base log(x: int, y: int).
path(X, Y) :- c(X, Y).
path(X, Y) :- c(X, Z), path(Z, Y).
only_a(X) :- a(X), not b(X).
number(count()) :- c(X, Y).
most(X, max(Y)) :- c(X, Y).
"""
BASE = {"a": 1, "b": 1, "c": 2, "k": 2, "log": 2}
LIMITS = deltalog.Limits(firings_max=FIRINGS_MAX)
CONDITIONS = [
    ("a(X)", "X"),
    ("c(X, Y), a(Y)", "X"),
    ("c(X, Y), a(Y)", "X, Y"),
    ("only_a(X), not c(X, X)", "X"),
    ("path(X, Y), Y > X", "X"),
    ("path(X, X)", "X"),
    ("number(N), N > 2, a(X)", "X"),
    ("most(X, M), M > 1, not b(X)", "X"),
    ("(a(X) ; b(X)), not path(X, 1)", "X"),
    ("k(X, Y), Y > 1", "X"),
    ("c(X, Y), k(Y, Z)", ""),
]
ON_PARAMETERS = [
    ("c(X, Y), Y > P", "X"),
    ("k(X, P)", "X"),
    ("path(P, X), not b(P)", "X"),
    ("most(X, M), M <= P", "X"),
]
ACTIONS = [
    "insert b(X)",
    "delete a(X)",
    "insert c(X, X)",
    "delete c(X, _)",
    "insert a((X + 1) mod 4)",
    "insert a(Z) where c(X, Z), not b(Z)",
    "set k(X, 3)",
    "insert k(X, 2)",
    "emit seen(X, X + 1)",
    "call noted(X, X)",
    "call heard(X)",
]
REJECT = 'reject "no {X}"'
EVENTS = [
    "insert a(X)",
    "delete a(X)",
    "insert only_a(X)",
    "delete only_a(X)",
    "insert c(X, 2)",
    "delete path(X, X)",
    "set k(X, Y)",
    "insert k(X, _)",
    "delete k(X, Y)",
]


@dataclass(frozen=True)
class Drawn:
    """A rule as text, and the parameters for which it is activated."""

    name: str
    text: str
    activations: frozenset[int]
    is_off: bool


@st.composite
def rules(draw: st.DrawFn, number: int) -> Drawn:
    has_parameter = draw(st.integers(0, 3)) == 0
    condition, instance = draw(st.sampled_from(ON_PARAMETERS if has_parameter else CONDITIONS))
    name = f"{'r' if has_parameter else 'q'}{number}"
    event = draw(st.none() | st.sampled_from(EVENTS))
    actions = st.sampled_from([*ACTIONS, *([REJECT] if draw(st.integers(0, 4)) == 0 else [])])
    otherwise = draw(st.lists(actions, max_size=1))
    # without `for`, all variables; `else` may use those of the instance or of the event
    words = f" for {instance}" if instance and not draw(st.booleans()) else ""
    words += f" priority {draw(st.integers(-1, 1))}"
    words += " immediate" if draw(st.integers(0, 2)) == 0 else ""
    words += " nervous" if draw(st.integers(0, 3)) == 0 else ""
    words += f" on {event}" if event else ""
    other = f" else {', '.join(otherwise)}" if otherwise else ""
    done = ", ".join(draw(st.lists(actions, min_size=1, max_size=2)))
    head = name + draw(st.sampled_from(["(P)", "(P: int)"])) if has_parameter else name
    text = f"rule {head}{words} when {condition} do {done}{other}.\n"
    activations = draw(st.frozensets(st.integers(0, 3), max_size=2 if has_parameter else 0))
    return Drawn(name, text, activations, not has_parameter and draw(st.integers(0, 7)) == 0)


Operations = list[tuple[str, str, list[Row]]]
rule_sets = st.integers(1, 3).flatmap(lambda n: st.tuples(*(rules(i) for i in range(n))))
values = st.integers(0, 3)
rows = {1: st.tuples(values), 2: st.tuples(values, values)}


def without_shared_keys(found: dict[str, set[tuple[int, ...]]]) -> State:
    single = {row[0]: row for row in sorted(found["k"])}
    return {name: set(single.values()) if name == "k" else {*rows} for name, rows in found.items()}


facts = st.fixed_dictionaries({n: st.sets(rows[k], max_size=4) for n, k in BASE.items()}).map(
    without_shared_keys
)


@st.composite
def operation(draw: st.DrawFn) -> tuple[str, str, list[Row]]:
    name = draw(st.sampled_from(sorted(BASE)))
    verb = draw(
        st.sampled_from(("insert", "delete", "set") if name == "k" else ("insert", "delete"))
    )
    return verb, name, draw(st.lists(rows[BASE[name]], min_size=1, max_size=2, unique=True))


operations = st.lists(operation(), min_size=1, max_size=4)
transactions = st.lists(operations, min_size=1, max_size=3)
Result = tuple[list[tuple[str, Row]], State, Marks, list[tuple[str, list[Row]]]] | str


def expected(
    text: str, state: State, marks: Marks, change: Operations, is_tried: bool = False
) -> Result:
    """What the interpreter makes of a transaction, or the code of the error."""
    phase = Phase(parse_text(text), state, marks, FUNCTIONS, is_tried)
    try:
        for operation in change:
            phase.operate(*operation)
        phase.end()
    except RefusedError as refused:
        return str(refused)
    return phase.firings, phase.facts, phase.marks, phase.calls


def opened(text: str, begun: State, calls: list[Any], path: Path | None, **options: Any) -> Any:
    db = deltalog.connect(path, program=text, facts=begun, limits=LIMITS, **options)
    register(db, calls)
    return db


def found(db: Any, calls: list[Any], change: Operations) -> Result:
    """The same of a database."""
    calls.clear()
    try:
        with db.transaction() as tx:
            for verb, name, rows in change:
                getattr(tx, verb)(name, rows)
    except deltalog.DeltalogError as error:
        return error.codes[0]
    return fired(tx.delta), held(db), marks_of(db), list(calls)


def fired(delta: Any) -> list[tuple[str, Row]]:
    return [(firing.rule, firing.instance) for firing in delta.firings]


def held(db: Any) -> State:
    return {name: db.facts(name) for name in BASE}


def marks_of(db: Any) -> Marks:
    """The marks that a database has, by its public verbs."""
    states = db.rules()
    return Marks(
        frozenset(s.name for s in states if not s.is_active and s.name.startswith("q")),
        frozenset((s.name, row) for s in states for row in s.parameters),
        frozenset((s.name, s.firings) for s in states if s.firings),
        tuple((m.rule, m.name, tuple(m.arguments)) for m in db.messages()),
    )


def activate(db: Any, rule_set: tuple[Drawn, ...]) -> None:
    for rule in rule_set:
        if rule.is_off:
            db.deactivate(rule.name)
        for value in sorted(rule.activations):
            db.activate(rule.name, P=value)


def first_marks(rule_set: tuple[Drawn, ...]) -> Marks:
    return Marks(
        frozenset(rule.name for rule in rule_set if rule.is_off),
        frozenset((rule.name, (value,)) for rule in rule_set for value in rule.activations),
    )


@effort(quick=30, fuzz=3_000)
@given(rule_sets, facts, transactions, st.booleans(), st.sampled_from((0, 1, WHOLE_MAX)))
def test_rules_fire_what_the_interpreter_says(
    rule_set: tuple[Drawn, ...],
    begun: State,
    history: list[Operations],
    materialize: bool,
    whole_max: int,
) -> None:
    """Rehearsed as a whole, and step by step, from the first execution or the second on."""
    text = VIEWS + "".join(rule.text for rule in rule_set)
    stepping = mock.patch("deltalog.runtime.rehearsal.WHOLE_MAX", whole_max)
    with stepping, tempfile.TemporaryDirectory() as folder:
        check_histories(text, rule_set, begun, history, materialize, Path(folder) / "rules.db")


def check_histories(
    text: str,
    rule_set: tuple[Drawn, ...],
    begun: State,
    history: list[Operations],
    materialize: bool,
    path: Path,
) -> None:
    """In memory on every engine, and in a file, which is opened again."""
    calls: list[Any] = []
    places = [(None, engine) for engine in ENGINES] + [(path, "embedded")]
    databases = [
        opened(text, begun, calls, p, engine=e, materialize=materialize) for p, e in places
    ]
    state, marks = check_history(databases, calls, text, rule_set, begun, history)
    databases[-1].close()
    with opened(text, {}, calls, path) as db:
        assert (held(db), marks_of(db)) == (state, marks)


def check_history(
    databases: list[Any],
    calls: list[Any],
    text: str,
    rule_set: tuple[Drawn, ...],
    begun: State,
    history: list[Operations],
) -> tuple[State, Marks]:
    """After each transaction the databases are what the interpreter says; returns that."""
    for db in databases:
        activate(db, rule_set)
    state, marks = {name: set(rows) for name, rows in begun.items()}, first_marks(rule_set)
    for change in history:
        wanted = expected(text, state, marks, change)
        for db in databases:
            version = db.version
            assert found(db, calls, change) == wanted
            assert not db.audit()
            if isinstance(wanted, str):
                assert (held(db), marks_of(db), db.version) == (state, marks, version)
        if not isinstance(wanted, str):
            state, marks = wanted[1], wanted[2]
    return state, marks


@effort(quick=30, fuzz=3_000)
@given(rule_sets, facts, operations, st.booleans(), st.sampled_from((0, WHOLE_MAX)))
def test_a_what_if_fires_what_the_interpreter_says(
    rule_set: tuple[Drawn, ...],
    begun: State,
    change: Operations,
    materialize: bool,
    whole_max: int,
) -> None:
    """It ends where a function would be called or a rule rejects, and changes nothing."""
    with mock.patch("deltalog.runtime.rehearsal.WHOLE_MAX", whole_max):
        check_what_if(rule_set, begun, change, materialize)


def check_what_if(
    rule_set: tuple[Drawn, ...], begun: State, change: Operations, materialize: bool
) -> None:
    text = VIEWS + "".join(rule.text for rule in rule_set)
    change = applied_order(change)
    marks = first_marks(rule_set)
    calls: list[Any] = []
    wanted = expected(text, begun, marks, change, is_tried=True)
    for engine in ENGINES:
        db = opened(text, begun, calls, None, engine=engine, materialize=materialize)
        activate(db, rule_set)
        sides: dict[str, dict[str, list[Row]]] = {"delete": {}, "insert": {}, "set": {}}
        for verb, name, rows in change:
            sides[verb][name] = rows
        if isinstance(wanted, str):
            with pytest.raises(deltalog.DeltalogError, match=wanted):
                db.what_if(**sides)
        else:
            delta = db.what_if(**sides)
            assert fired(delta) == wanted[0]
            after = {n: (begun[n] - delta.deleted[n]) | delta.inserted[n] for n in BASE}
            assert after == wanted[1]
        assert (held(db), marks_of(db), calls) == (begun, marks, [])


def applied_order(change: Operations) -> Operations:
    """One operation of each kind on a relation, in the order of `what_if`."""
    single = {(verb, name): (verb, name, rows) for verb, name, rows in change}
    return [single[key] for key in sorted(single, key=lambda key: key[0])]


@effort(quick=30, fuzz=3_000)
@given(st.sampled_from(CONDITIONS[:-1]), facts, transactions, st.sampled_from(sorted(ENGINES)))
def test_without_cascades_strict_is_the_condition_after_minus_before(
    condition: tuple[str, str], begun: State, history: list[Operations], engine: str
) -> None:
    """Stated without any interpreter; `else` has those before minus after."""
    body, instance = condition
    rule = f"rule r for {instance} when {body} do emit up(X) else emit down(X).\n"
    db = opened(VIEWS + rule, begun, [], None, engine=engine)
    program = parse_text(f"{VIEWS}holds({instance}) :- {body}.")
    before = naive(program, begun)["holds"]
    for change in history:
        sent = len(db.messages())
        result = found(db, [], change)
        after = naive(program, held(db))["holds"]
        if isinstance(result, str):
            assert after == before
            continue
        assert result[0] == [("r", row) for row in sorted(after - before)]
        messages = [(m.name, m.arguments[0]) for m in db.messages()[sent:]]
        ups = sorted({row[0] for row in after - before}, key=repr)
        downs = sorted({row[0] for row in before - after}, key=repr)
        assert messages == [*(("up", x) for x in ups), *(("down", x) for x in downs)]
        before = after


DENIED = ["path(X, X)", "a(X), b(X)", "number(N), N > 3, X = N", "k(X, Y), not a(Y)", "most(X, 3)"]


@effort(quick=20, fuzz=2_000)
@given(rule_sets, st.sampled_from(DENIED), st.booleans(), transactions)
def test_enforced_constraints_have_no_violations_after_any_step(
    rule_set: tuple[Drawn, ...], denied: str, is_immediate: bool, history: list[Operations]
) -> None:
    """Recomputed from base facts; what is refused leaves no trace, in memory, file, log, outbox."""
    words = " immediate" if is_immediate else ""
    text = f"{VIEWS}{''.join(rule.text for rule in rule_set)}deny{words} bad(X) :- {denied}.\n"
    violating = parse_text(f"{VIEWS}bad(X) :- {denied}.")
    stepping = mock.patch("deltalog.runtime.rehearsal.WHOLE_MAX", 1)
    with stepping, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.db"
        databases = [opened(text, {}, [], None), opened(text, {}, [], path, engine="reference")]
        for db in databases:
            activate(db, rule_set)
        for change in history:
            results = []
            for db in databases:
                before = trace(db)
                results.append(found(db, [], change))
                if isinstance(results[-1], str):
                    assert trace(db) == before
                assert naive(violating, held(db))["bad"] == set()
                assert db.violations() == ()
            assert results[0] == results[1]
        databases[-1].close()


def trace(db: Any) -> tuple[Any, ...]:
    """All that a transaction could leave behind."""
    log = db.commits() if isinstance(db, deltalog.FileDatabase) else ()
    return db.version, held(db), db.rules(), db.messages(), log
