"""The papers' worked examples in numbers: how many facts are generated, and which on the way.

The numbering of examples is that of the papers page; what must come out of examples 1 to 6 and 8 is
in `tests/cases/programs/papers`.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import deltalog
from casefiles import CASES, read_case
from deltalog import ChangeSet
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification_of,
)
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.engines.relation import Relation
from deltalog.language.ast import Row, Rule
from deltalog.language.parser import parse_text
from deltalog.language.walk import atoms_of
from deltalog.rewrites import names
from deltalog.rewrites.magic_updates import magic_updates
from deltalog.rewrites.partial_differentials import differentials_of, partial_differentials
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.transition_rules import transition_rules
from deltalog.runtime.fixpoint import Statistics, install_stages, run_fixpoint
from deltalog.runtime.limits import Limits
from deltalog.runtime.outcome import Propagated
from treatments import UPKEEP, Facts

CLOSURE = """
    base e(x: int, y: int).
    p(X, Y) :- e(X, Y).
    p(X, Y) :- e(X, Z), p(Z, Y).
"""


def paper(name: str) -> str:
    return read_case(CASES / "programs" / "papers" / f"{name}.case").text("program")


def evaluated(partition: Partition, facts: Facts) -> tuple[Statistics, Facts]:
    """The rules run part by part under the soft consequence operator."""
    engine = ReferenceEngine()
    rules = [rule for part in partition for rule in part]
    read = {atom.predicate for rule in rules for atom, _ in atoms_of(rule.body)}
    for name in {*facts, *read, *(rule.head.predicate for rule in rules)}:
        engine.create(name, ())
    for name, rows in facts.items():
        engine.insert(name, sorted(rows))
    statistics = run_fixpoint(engine, install_stages(engine, partition), Limits())
    return statistics, {name: set(engine.rows(name)) for name in engine.relations}


def total(database: deltalog.MemoryDatabase) -> int:
    """How many facts the last transaction generated."""
    return database.statistics.total


# --- example 1: the auxiliary facts of delta rules ------------------------------------------------


def test_links_over_auxiliary_predicates() -> None:
    """link2-(2, 4, 3) and link1-(2, 4) of the paper; ours has the columns in another order."""
    database = deltalog.connect(program=paper("1994_links"), strategy="delta")
    base = ChangeSet({"edge": {(4, 3)}}, {"edge": {(3, 4)}})
    changed, engine = ("link", "link__a1", "link__a2"), database.engine
    with Propagated(database.propagation, base, database.limits, None):
        found = ChangeSet(
            {name: set(engine.rows(names.plus_name(name))) for name in changed},
            {name: set(engine.rows(names.minus_name(name))) for name in changed},
        )
    assert found == ChangeSet(
        {"link": {(4, 3)}},
        {"link": {(3, 4), (2, 4)}, "link__a1": {(2, 4)}, "link__a2": {(2, 3, 4)}},
    )


# --- example 4: rederivation on demand ------------------------------------------------------------


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """Every row that is added to any relation, under whatever name."""
    rows: list[Row] = []
    add = Relation.add

    def recording(relation: Relation, row: Row) -> bool:
        is_new = add(relation, row)
        if is_new:
            rows.append(row)
        return is_new

    monkeypatch.setattr(Relation, "add", recording)
    return rows


def untouched(shape: str, nodes: int) -> set[Row]:
    """The graph G': its edges lead into g and to each other, and none leads out of g."""
    names_in = [f"x{n}" for n in range(nodes)]
    if shape == "star":
        return {(name, "g") for name in names_in}
    following = [*names_in[1:], names_in[0] if shape == "ring" else "g"]
    return {*zip(names_in, following, strict=True), (names_in[-1], "g")}


SHAPES = ("star", "chain", "ring")
PROGRAM_4 = """
    base edge(src: str, dst: str).
    closure(X, Y) :- edge(X, Y).
    closure(X, Y) :- edge(X, Z), closure(Z, Y).
"""
EDGES_4 = {tuple(pair) for pair in ("fe", "ed", "ea", "ab", "dc", "bc", "cg")}


def changed_closure(
    shape: str, nodes: int, strategy: str, added: list[Row]
) -> tuple[int, set[str]]:
    """How many facts the update of example 4 generates, and the nodes that occur in them."""
    facts = {"edge": sorted(EDGES_4 | untouched(shape, nodes))}
    database = deltalog.connect(
        program=PROGRAM_4, strategy=strategy, materialize=False, facts=facts
    )
    added.clear()
    delta = database.apply(insert={"edge": [("h", "d")]}, delete={"edge": [("b", "c")]})
    assert delta.only("closure") == ChangeSet(
        {"closure": {("h", "d"), ("h", "c"), ("h", "g")}},
        {"closure": {("a", "c"), ("a", "g"), ("b", "c"), ("b", "g")}},
    )
    return total(database), {str(value) for row in added for value in row}


@pytest.mark.parametrize("strategy", ["demand", "magic"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_inside_the_untouched_graph_is_derived(
    shape: str, strategy: str, added: list[Row]
) -> None:
    small, nodes = changed_closure(shape, 10, strategy, added)
    assert nodes <= set("abcdefgh")
    large, nodes = changed_closure(shape, 10_000, strategy, added)
    assert nodes <= set("abcdefgh")
    assert 0 < small == large


@pytest.mark.parametrize("strategy", ["demand", "magic"])
def test_what_the_untouched_graph_reaches_from_g_is_needed(strategy: str, added: list[Row]) -> None:
    """If edges lead out of g, what h, a and b reach beyond it belongs to the delta."""
    facts = {"edge": sorted(EDGES_4 | untouched("chain", 5) | {("g", "x3")})}
    database = deltalog.connect(
        program=PROGRAM_4, strategy=strategy, materialize=False, facts=facts
    )
    added.clear()
    delta = database.apply(insert={"edge": [("h", "d")]}, delete={"edge": [("b", "c")]})
    beyond = {"c", "g", "x3", "x4"}
    assert delta.inserted["closure"] == {("h", name) for name in {"d", *beyond}}
    assert delta.deleted["closure"] == {(start, name) for start in "ab" for name in beyond}
    assert not {"x0", "x1", "x2"} & {value for row in added for value in row}


# --- example 5: strict conditions -----------------------------------------------------------------


@pytest.mark.parametrize("upkeep", UPKEEP)
def test_a_quantity_set_there_and_back_propagates_nothing(upkeep: str) -> None:
    database = UPKEEP[upkeep].connect(parse_text(paper("1999_inventory")))
    version = database.version
    with database.transaction() as tx:
        tx.set("min_stock", ("shoelaces", 150))
        tx.set("min_stock", ("shoelaces", 100))
    assert tx.delta == ChangeSet()
    assert database.statistics.rounds == 0
    assert database.version == version


@pytest.mark.parametrize("upkeep", UPKEEP)
def test_a_condition_is_reported_once_and_not_while_it_stays_true(upkeep: str) -> None:
    database = UPKEEP[upkeep].connect(parse_text(paper("1999_inventory")))
    fired: list[set[Row]] = []
    for amount in (140, 139, 120, 0, 200, 100):
        with database.transaction() as tx:
            tx.set("quantity", ("shoelaces", amount))
        fired.append(set(tx.delta.inserted["low"]))
    low: set[Row] = {("shoelaces",)}
    assert fired == [set(), low, set(), set(), set(), low]


def test_a_nervous_condition_fires_again_where_another_derivation_is_added() -> None:
    """Under set semantics a second derivation is no news; only the strict form knows that."""
    program = "base q(x: int, y: int). p(X) :- q(X, _)."
    inserted = {}
    for nervous in (False, True):
        database = deltalog.connect(
            program=program,
            strategy="differencing",
            materialize=False,
            nervous=nervous,
            facts={"q": [(1, 1)]},
        )
        inserted[nervous] = set(database.apply(insert={"q": [(1, 2)]}).inserted["p"])
    assert inserted == {False: set(), True: {(1,)}}


# --- example 6: positive differentials ------------------------------------------------------------


def test_each_influent_has_its_own_differential() -> None:
    rules = parse_text(paper("1999_differentials")).rules
    states = transition_rules(rules, {"q": 2, "r": 2})
    facts: Facts = {
        "q": {(1, 1)}, "r": {(1, 2), (2, 3)}, "q__plus": {(1, 2)}, "r__plus": {(1, 4)},
    }  # fmt: skip
    both = (*rules, *states, *partial_differentials(rules))
    _, found = evaluated(component_partition(both), facts)
    by_influent = {(arc.influent, arc.sign): found[arc.name] for arc in differentials_of(rules)}
    assert by_influent == {
        ("q", "+"): {(1, 3)}, ("q", "-"): set(), ("r", "+"): {(1, 4)}, ("r", "-"): set(),
    }  # fmt: skip
    assert (found["p__plus"], found["p__minus"]) == ({(1, 3), (1, 4)}, set())


def test_the_arcs_of_the_network_say_what_flowed_over_them() -> None:
    database = deltalog.connect(program=paper("1999_differentials"), strategy="differencing")
    database.apply(insert={"q": [(1, 2)], "r": [(1, 4)]})
    assert database.propagation.flows == {("q", "p"): (1, 0), ("r", "p"): (1, 0)}


# --- example 7: soft update propagation -----------------------------------------------------------

RULES_7 = parse_text(CLOSURE).rules
AUGMENTED_7 = (*RULES_7, *propagation_rules(RULES_7), *transition_rules(RULES_7, {"e": 2}))
FACTS_7: Facts = {
    "e": {(1, 2), (1, 4), (3, 4), *((n, n + 1) for n in range(10, 100))},
    "e__plus": {(2, 3)},
    "e__minus": set(),
}
INDUCED_7: set[Row] = {(1, 3), (2, 3), (2, 4)}


def test_the_augmented_rules_generate_8296_facts() -> None:
    statistics, found = evaluated(component_partition(AUGMENTED_7), FACTS_7)
    assert statistics.generated == {"p": 4098, "p__new": 4101, "e__new": 94, "p__plus": 3}
    assert statistics.total == 8296
    assert found["p__plus"] == INDUCED_7
    assert found["p__minus"] == set()


@pytest.mark.parametrize("deltas", [["p__plus"], ["p__plus", "p__minus"]], ids="/".join)
def test_magic_updates_generate_19_facts(deltas: list[str]) -> None:
    statistics, found = evaluated(soft_updates(deltas), FACTS_7)
    assert statistics.generated == {
        "p__plus": 3,
        "p__new__bf": 1,
        "p__bb": 1,
        "e__new__fb": 1,
        "e__new__bf": 1,
        "p__new__bf__magic": 2,
        "e__new__fb__magic": 2,
        "e__new__bf__magic": 2,
        "p__bb__magic": 6,
    }
    assert statistics.total == 19
    assert found["p__plus"] == INDUCED_7


def soft_updates(deltas: Iterable[str]) -> Partition:
    rewritten = magic_updates(AUGMENTED_7, deltas, {"e", "e__plus", "e__minus"})
    assert not stratification_of(rewritten).is_stratified
    return soft_partition(rewritten, names.source_predicate, stratification_of(AUGMENTED_7))


def test_the_soft_stratification_of_the_paper_is_computed() -> None:
    """`not p_bb` is read above every rule for p_bb and every rule that asks for it."""
    partition = soft_updates(["p__plus"])
    level = {rule: number for number, part in enumerate(partition) for rule in part}
    below = {level[rule] for rule in level if names.source_predicate(rule.head.predicate) == "p"}
    above = {level[rule] for rule in level if reads_negated(rule, "p__bb")}
    assert max(below) < min(above)


def reads_negated(rule: Rule, predicate: str) -> bool:
    return any(
        atom.predicate == predicate and not positive for atom, positive in atoms_of(rule.body)
    )


# --- the cost of a change follows the change ------------------------------------------------------


def graph(components: int) -> set[Row]:
    """Chains of ten nodes with a short cut in the middle, apart from each other."""
    edges: set[Row] = set()
    for start in range(0, 100 * components, 100):
        edges |= {(start + n, start + n + 1) for n in range(9)}
        edges |= {(start + 3, start + 6)}
    return edges


SINGLE_CHANGES: dict[str, ChangeSet] = {
    "insert at the end": ChangeSet({"e": {(9, 10)}}),
    "insert at the beginning": ChangeSet({"e": {(-1, 0)}}),
    "insert a way back": ChangeSet({"e": {(5, 2)}}),
    "insert a short cut": ChangeSet({"e": {(1, 8)}}),
    "delete in the middle": ChangeSet({}, {"e": {(6, 7)}}),
    "delete what has another way": ChangeSet({}, {"e": {(4, 5)}}),
    "delete the short cut": ChangeSet({}, {"e": {(3, 6)}}),
    "delete the first": ChangeSet({}, {"e": {(0, 1)}}),
}


def generated(strategy: str, program: str, components: int, change: ChangeSet) -> int:
    database = deltalog.connect(
        program=program,
        strategy=strategy,
        materialize=False,
        facts={"e": sorted(graph(components))},
    )
    database.apply(
        insert={name: list(rows) for name, rows in change.inserted.items()},
        delete={name: list(rows) for name, rows in change.deleted.items()},
    )
    return total(database)


LAYERED = f"""{CLOSURE}
    one_way(X, Y) :- p(X, Y), not p(Y, X).
    reach(X, count()) :- p(X, Y).
"""


@pytest.mark.parametrize("strategy", ["magic", "demand"])
@pytest.mark.parametrize("program", [CLOSURE, LAYERED], ids=["closure", "layered"])
@pytest.mark.parametrize("change", SINGLE_CHANGES)
def test_ten_times_the_unrelated_data_cost_nothing(
    change: str, program: str, strategy: str
) -> None:
    counts = [generated(strategy, program, n, SINGLE_CHANGES[change]) for n in (1, 10, 100)]
    assert counts[0] > 0
    assert counts[0] == counts[1] == counts[2]
