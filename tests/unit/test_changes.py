"""Change sets: a small algebra, checked on random sequences of states."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog import ChangeSet
from deltalog.language.ast import Row

State = dict[str, frozenset[Row]]

checked = settings(derandomize=True, deadline=None, max_examples=200)
rows = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 1)))
states = st.fixed_dictionaries(
    {"a": st.frozensets(rows, max_size=4), "b": st.frozensets(rows, max_size=4)}
)


def difference(before: State, after: State) -> ChangeSet:
    """The change between two states; what both have is named on both sides and must cancel out."""
    return ChangeSet(after, before)


def applied(state: State, change: ChangeSet) -> State:
    return {
        name: (facts - change.deleted[name]) | change.inserted[name]
        for name, facts in state.items()
    }


@checked
@given(states, states)
def test_a_change_leads_from_one_state_to_the_other(before: State, after: State) -> None:
    change = difference(before, after)
    assert applied(before, change) == after
    assert applied(after, -change) == before
    assert bool(change) == (before != after)


@checked
@given(states, states, states)
def test_a_sum_is_the_change_from_the_first_state_to_the_last(
    one: State, two: State, three: State
) -> None:
    assert difference(one, two) + difference(two, three) == difference(one, three)


@checked
@given(states, states, states, states)
def test_composition_is_associative(one: State, two: State, three: State, four: State) -> None:
    a, b, c = difference(one, two), difference(two, three), difference(three, four)
    assert (a + b) + c == a + (b + c)


@checked
@given(states, states)
def test_a_change_and_its_inverse_are_nothing(before: State, after: State) -> None:
    change = difference(before, after)
    assert change + -change == ChangeSet()
    assert -change + change == ChangeSet()
    undo = -change
    assert -undo == change
    assert change + ChangeSet() == ChangeSet() + change == change


@checked
@given(states, states)
def test_the_two_sides_are_disjoint_and_net(before: State, after: State) -> None:
    change = difference(before, after)
    for name in ("a", "b"):
        assert not change.inserted[name] & change.deleted[name]
        assert change.inserted[name] == after[name] - before[name]
    assert len(change) == len(list(change))


@checked
@given(states, states)
def test_iteration_is_ordered_by_relation_then_deletions_then_rows(
    before: State, after: State
) -> None:
    listed = list(difference(before, after))
    keys = [
        (name, op == "+", tuple((value is not None, value or 0) for value in row))
        for op, name, row in listed
    ]
    assert keys == sorted(keys)
    assert len(set(listed)) == len(listed)


@checked
@given(states, states)
def test_equal_changes_have_equal_hashes(before: State, after: State) -> None:
    change, same = difference(before, after), -difference(after, before)
    assert change == same
    assert hash(change) == hash(same)
    assert len({change, same}) == 1


def test_empty_relations_do_not_show() -> None:
    change = ChangeSet({"edge": {(1, 2)}, "path": set()}, {"salary": frozenset()})
    assert change.relations == ("edge",)
    assert dict(change.inserted) == {"edge": frozenset({(1, 2)})}
    assert dict(change.deleted) == {}
    assert change.deleted["no such relation"] == frozenset()
    assert "path" not in change.inserted


def test_only_keeps_the_relations_asked_for() -> None:
    change = ChangeSet({"a": {(1,)}, "b": {(2,)}}, {"a": {(3,)}})
    assert change.only("a") == ChangeSet({"a": {(1,)}}, {"a": {(3,)}})
    assert change.only("c") == ChangeSet()
    assert change.only("a", "b", "c") == change


def test_a_change_is_not_equal_to_something_else() -> None:
    assert ChangeSet() != set()
    assert ChangeSet({"a": {(1,)}}) != ChangeSet({}, {"a": {(1,)}})
    assert ChangeSet({"a": {(1,)}}) != ChangeSet({"b": {(1,)}})


def test_a_long_change_is_shown_in_part() -> None:
    change = ChangeSet({"a": {(n,) for n in range(12)}}, {"a": {(-1,)}})
    shown = repr(change)
    assert shown.startswith("ChangeSet(-a(-1,), +a(0,), +a(1,)")
    assert shown.endswith("… 3 more)")
    assert repr(ChangeSet()) == "ChangeSet()"


def test_what_was_given_is_copied() -> None:
    given_rows = {(1,)}
    change = ChangeSet({"a": given_rows})
    given_rows.add((2,))
    assert change.inserted["a"] == {(1,)}
