"""Active rules fire what a small interpreter of the check phase says, in the same order.

The interpreter knows nothing of changes: it evaluates every condition from scratch in every state,
as plain views on the reference engine, and compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from effort import effort
from hypothesis import given
from hypothesis import strategies as st

import deltalog
from deltalog.language.ast import Row
from deltalog.runtime.engine_choice import ENGINES

VIEWS = """
base a(x: int). base b(x: int). base c(x: int, y: int).
path(X, Y) :- c(X, Y).
path(X, Y) :- c(X, Z), path(Z, Y).
only_a(X) :- a(X), not b(X).
number(count()) :- c(X, Y).
most(X, max(Y)) :- c(X, Y).
"""
BASE = {"a": 1, "b": 1, "c": 2}
FIRINGS_MAX = 12
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
]
ACTIONS = [
    "insert b(X)",
    "delete a(X)",
    "insert c(X, X)",
    "delete c(X, _)",
    "insert a((X + 1) mod 4)",
]
EVENTS = [("insert", "a"), ("delete", "a"), ("insert", "only_a"), ("delete", "only_a")]

State = dict[str, set[Row]]


@dataclass(frozen=True)
class Ruled:
    """A rule as text, and the plain views that say when it holds and what it does."""

    name: str
    condition: str
    instance: str
    actions: tuple[str, ...]
    otherwise: tuple[str, ...]
    priority: int
    event: tuple[str, str] | None

    @property
    def text(self) -> str:
        event = f" on {self.event[0]} {self.event[1]}(X)" if self.event else ""
        other = f" else {', '.join(self.otherwise)}" if self.otherwise else ""
        return (
            f"rule {self.name} for {self.instance} priority {self.priority}{event} "
            f"when {self.condition} do {', '.join(self.actions)}{other}.\n"
        )

    @property
    def view(self) -> str:
        return f"holds_{self.name}({self.instance}) :- {self.condition}.\n"


@st.composite
def rules(draw: st.DrawFn, number: int) -> Ruled:
    condition, instance = draw(st.sampled_from(CONDITIONS))
    event = draw(st.none() | st.sampled_from(EVENTS))
    return Ruled(
        f"r{number}",
        condition,
        instance,
        tuple(draw(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=2))),
        tuple(draw(st.lists(st.sampled_from(ACTIONS), max_size=1))),
        draw(st.integers(-1, 1)),
        event,
    )


rule_sets = st.integers(1, 3).flatmap(lambda n: st.tuples(*(rules(i) for i in range(n))))
values = st.integers(0, 3)
rows = {1: st.tuples(values), 2: st.tuples(values, values)}
facts = st.fixed_dictionaries({n: st.sets(rows[k], max_size=4) for n, k in BASE.items()})
operations = st.lists(
    st.tuples(st.booleans(), st.sampled_from(sorted(BASE))).flatmap(
        lambda each: rows[BASE[each[1]]].map(lambda row: (*each, row))
    ),
    min_size=1,
    max_size=4,
)
transactions = st.lists(operations, min_size=1, max_size=3)


class EndlessError(Exception):
    """The interpreter has executed as many rules as are allowed."""


def interpret(rule_set: tuple[Ruled, ...], state: State, changed: State) -> list[tuple[str, Row]]:
    """The check phase by recomputation; `changed` is the state after the operations."""
    firings: list[tuple[str, Row]] = []
    last = {rule.name: watched(rule, rule_set, state) for rule in rule_set}
    order = sorted(rule_set, key=lambda rule: -rule.priority)
    for _ in range(FIRINGS_MAX):
        for rule in order:
            now = watched(rule, rule_set, changed)
            rose, fell = now - last[rule.name], last[rule.name] - now
            if rule.event is None and (rose or (fell and rule.otherwise)):
                fired, failed = rose, fell
            elif rule.event is not None and (events := rose if rule.event[0] == "insert" else fell):
                holding = evaluated(rule_set, changed)[f"holds_{rule.name}"]
                fired = {row for row in holding if row[:1] in events}
                failed = events - {row[:1] for row in fired}
            else:
                continue
            last[rule.name] = now
            firings += [(rule.name, row) for row in sorted(fired)]
            before = {name: set(found) for name, found in changed.items()}
            for action in rule.actions:
                act(action, fired, before, changed)
            for action in rule.otherwise:
                act(action, failed, before, changed)
            break
        else:
            return firings
    raise EndlessError


def watched(rule: Ruled, rule_set: tuple[Ruled, ...], state: State) -> set[Row]:
    return evaluated(rule_set, state)[rule.event[1] if rule.event else f"holds_{rule.name}"]


def evaluated(rule_set: tuple[Ruled, ...], state: State) -> State:
    program = VIEWS + "".join(rule.view for rule in rule_set)
    db = deltalog.connect(program=program, facts=state, engine="reference")
    return {name: db.facts(name) for name in db.relations}


def act(action: str, instances: set[Row], before: State, state: State) -> None:
    for x, *_ in instances:
        match action:
            case "insert b(X)":
                state["b"].add((x,))
            case "delete a(X)":
                state["a"].discard((x,))
            case "insert c(X, X)":
                state["c"].add((x, x))
            case "delete c(X, _)":
                state["c"] -= {row for row in before["c"] if row[0] == x}
            case _:
                state["a"].add(((int(str(x)) + 1) % 4,))


def applied(state: State, change: list[tuple[bool, str, Row]]) -> State:
    made = {name: set(found) for name, found in state.items()}
    for is_inserted, name, row in change:
        (made[name].add if is_inserted else made[name].discard)(row)
    return made


@effort(quick=60, fuzz=3_000)
@given(rule_sets, facts, transactions, st.booleans())
def test_rules_fire_what_the_interpreter_says(
    rule_set: tuple[Ruled, ...],
    begun: State,
    history: list[list[tuple[bool, str, Row]]],
    materialize: bool,
) -> None:
    program = VIEWS + "".join(rule.text for rule in rule_set)
    limits = deltalog.Limits(firings_max=FIRINGS_MAX)
    databases = [
        deltalog.connect(
            program=program, facts=begun, engine=engine, materialize=materialize, limits=limits
        )
        for engine in ENGINES
    ]
    state = {name: set(found) for name, found in begun.items()}
    for change in history:
        changed = applied(state, change)
        try:
            expected: list[tuple[str, Row]] | None = interpret(rule_set, state, changed)
        except EndlessError:
            expected = None
        for db in databases:
            assert fired(db, change) == expected
            if expected is not None:
                assert {name: db.facts(name) for name in BASE} == changed
            assert not db.audit()
        if expected is not None:
            state = changed
        for db in databases:
            assert {name: db.facts(name) for name in BASE} == state


def fired(
    db: deltalog.MemoryDatabase, change: list[tuple[bool, str, Row]]
) -> list[tuple[str, Row]] | None:
    """What a transaction fires, by a what-if and by a commit; None if it is stopped."""
    try:
        with db.transaction() as tx:
            for is_inserted, name, row in change:
                (tx.insert if is_inserted else tx.delete)(name, [row])
    except deltalog.LimitError:
        return None
    return [(rule, instance) for rule, instance in tx.delta.firings]
