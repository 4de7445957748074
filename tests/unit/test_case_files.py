"""Runs every case file; see tests/casefiles.py for the form and CONTRIBUTING.md for recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import deltalog
from casefiles import CASES, UPDATE, compare, find, identify, read_case
from deltalog.analysis.columns import relations_of
from deltalog.analysis.dependencies import dependencies_of
from deltalog.analysis.stratification import soft_partition, stratification_of
from deltalog.checks.program import check_program
from deltalog.diagnostics.report import ProgramError
from deltalog.language.ast import Program, Rule
from deltalog.language.parser import parse_program, parse_text
from deltalog.language.printer import print_program, print_rule
from deltalog.language.walk import atoms_of
from deltalog.plan.lower import lower_all
from deltalog.plan.text import plan_text
from deltalog.rewrites import names
from deltalog.rewrites.aggregate_changes import aggregate_changes
from deltalog.rewrites.condition_rules import condition_rules
from deltalog.rewrites.constraint_rules import constraint_rules
from deltalog.rewrites.delta_rules import delta_rules, unstratified_cycle
from deltalog.rewrites.desugar import desugar, desugar_query
from deltalog.rewrites.existence_tests import existence_tests
from deltalog.rewrites.factor_rederivation import factor_rederivation
from deltalog.rewrites.fold_changes import fold_changes, is_foldable
from deltalog.rewrites.group_state import group_state
from deltalog.rewrites.magic_sets import asked_rules, magic_sets
from deltalog.rewrites.magic_updates import magic_updates
from deltalog.rewrites.maintenance_rules import maintenance_rules
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.partial_differentials import partial_differentials
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.recomputation import recomputation
from deltalog.rewrites.rederive_on_demand import rederive_on_demand
from deltalog.rewrites.split_joins import split_joins
from deltalog.rewrites.states import unchanged_name
from deltalog.rewrites.transition_rules import transition_rules
from deltalog.rewrites.unfold import unfold
from deltalog.runtime.explain import explain
from deltalog.runtime.explanation_text import rule_text
from deltalog.source import Source


@pytest.mark.parametrize("path", find("syntax", "*.dl"), ids=identify)
def test_syntax(path: Path) -> None:
    program = parse_text(path.read_text(encoding="utf-8"))
    printed = print_program(program)
    expected = path.with_suffix(".printed")
    if UPDATE:
        expected.write_text(printed, encoding="utf-8")
    assert printed == expected.read_text(encoding="utf-8")
    assert parse_text(printed) == program


@pytest.mark.parametrize("path", find("errors", "*.dl"), ids=identify)
def test_errors(path: Path) -> None:
    """Exactly these diagnostics, to the letter."""
    source = Source(path.name, path.read_text(encoding="utf-8"))

    def read(name: str, including: Source) -> Source:
        return Source(name, (path.parent / name).read_text(encoding="utf-8"))

    with pytest.raises(ProgramError) as caught:
        check_program(parse_program(source, read))
    expected = path.with_suffix(".err")
    if UPDATE:
        expected.write_text(f"{caught.value}\n", encoding="utf-8")
    assert f"{caught.value}\n" == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", find("errors", "*.amosql"), ids=identify)
def test_amosql_errors(path: Path) -> None:
    """Exactly these diagnostics, of the last statement."""
    database = deltalog.connect(program=Program(), engine="reference")
    session = deltalog.AmosqlSession(database)
    with pytest.raises(deltalog.DeltalogError) as caught:
        session.execute(Source(path.name, path.read_text(encoding="utf-8")))
    expected = path.with_suffix(".err")
    if UPDATE:
        expected.write_text(f"{caught.value}\n", encoding="utf-8")
    assert f"{caught.value}\n" == expected.read_text(encoding="utf-8")


# --- rewrites -------------------------------------------------------------------------------------


def _core(program: Program) -> Program:
    return desugar(program, check_program(program).relations)


def _base(program: Program) -> dict[str, int]:
    """The arity of every base relation."""
    known = check_program(program).relations
    return {name: known[name].arity for name in sorted(known) if known[name].kind == "base"}


def _text(rules: Iterable[Rule]) -> str:
    return "\n".join(print_rule(rule) for rule in rules)


def _components(rules: tuple[Rule, ...]) -> Iterator[tuple[frozenset[str], tuple[Rule, ...]]]:
    """The rules of every component of views, lowest first."""
    for component in dependencies_of(rules).components:
        own = tuple(rule for rule in rules if rule.head.predicate in component)
        if own:
            yield component, own


def _is_recursive(rules: Iterable[Rule], component: frozenset[str]) -> bool:
    return any(atom.predicate in component for rule in rules for atom, _ in atoms_of(rule.body))


def _conditions(program: Program) -> str:
    check_program(program)
    return _text(condition_rules(program).rules)


def _constrained(program: Program) -> str:
    return _text(constraint_rules(program, check_program(program).relations).rules)


def _desugared(program: Program) -> str:
    return _text(_core(program).rules)


def _tested_for_existence(program: Program) -> str:
    return _text(existence_tests(_core(program).rules))


def _magic(program: Program) -> str:
    (query,) = program.queries
    asked = desugar_query(query, check_program(program).relations)
    rules = (*_core(program).rules, *asked)
    return _text(magic_sets(rules, names.ANSWER, set(_base(program))))


def _transition(program: Program) -> str:
    return _text(transition_rules(_core(program).rules, _base(program)))


def _propagation(program: Program) -> str:
    return _text(propagation_rules(_core(program).rules))


def _magic_updates(program: Program) -> str:
    """Both changes of every view, in the parts of the soft stratification."""
    rules, base = _core(program).rules, _base(program)
    augmented = (*rules, *propagation_rules(rules), *transition_rules(rules, base))
    views = dict.fromkeys(rule.head.predicate for rule in rules)
    deltas = [change(view) for view in views for change in (names.plus_name, names.minus_name)]
    given = {
        state(name)
        for name in base
        for state in (unchanged_name, names.plus_name, names.minus_name)
    }
    rewritten = magic_updates(augmented, deltas, given)
    parts = soft_partition(rewritten, names.source_predicate, stratification_of(augmented))
    return "\n\n".join(f"% part {n}\n{_text(part)}" for n, part in enumerate(parts, start=1))


def _maintenance(program: Program) -> str:
    """Component by component; with ranks, only what the deletion by rank leaves to rules."""
    shown = []
    for component, rules in _components(_core(program).rules):
        shown.append(_text(maintenance_rules(rules, component)))
        if _is_recursive(rules, component):
            shown.append(f"% with ranks\n{_text(maintenance_rules(rules, component, True))}")
    return "\n\n".join(shown)


def _looked_once(program: Program) -> str:
    """The rederivations of views that do not use themselves, their atoms as written."""
    made = (
        factor_rederivation(maintenance_rules(rules, component), sorted(component))
        for component, rules in _components(_core(program).rules)
        if not _is_recursive(rules, component)
    )
    found = ("__prefix_keys", "__prefix", "__red")
    rules = (rule for part in made for rule in part)
    return _text(rule for rule in rules if any(x in rule.head.predicate for x in found))


def _on_demand(program: Program) -> str:
    """Component by component, what is below taken as given; the questions are written out."""
    shown = []
    for component, rules in _components(_core(program).rules):
        made = rederive_on_demand(maintenance_rules(rules, component), rules, component)
        own = tuple(dict.fromkeys(rule.head.predicate for rule in made.rules))
        read = {atom.predicate for rule in (*rules, *made.rules) for atom, _ in atoms_of(rule.body)}
        stored = (read | set(own)) - component - set(made.asked_instead)
        asked = asked_rules(
            (*made.rules, *rules),
            own,
            stored,
            is_adorned=False,
            asked_instead=made.asked_instead,
            silent=made.silent,
        )
        shown.append(_text(asked))
    return "\n\n".join(shown)


def _normalized(program: Program) -> str:
    return _text(normalize(_core(program).rules))


def _split(program: Program) -> str:
    parts = (split_joins(rules) for _, rules in _components(_core(program).rules))
    return _text(rule for part in parts for rule in part)


def _delta(program: Program) -> str:
    rules = _core(program).rules
    cycle = unstratified_cycle(rules) or ()
    arcs = [f"% cycle: {arc.head} needs {arc.body} ({arc.kind})" for arc in cycle]
    return "\n".join([*arcs, _text(delta_rules(normalize(rules)))])


def _differentials(program: Program) -> str:
    """The strict form, and what is different in the nervous one."""
    rules = _core(program).rules
    strict = partial_differentials(rules)
    nervous = [rule for rule in partial_differentials(rules, is_strict=False) if rule not in strict]
    return f"{_text(strict)}\n\n% nervous\n{_text(nervous)}"


def _unfolded(program: Program) -> str:
    """Views that are neither recursive nor aggregates are expanded into each other."""
    definitions: dict[str, tuple[Rule, ...]] = {}
    shown: list[Rule] = []
    for component, rules in _components(_core(program).rules):
        is_aggregate = any(rule.is_aggregate for rule in rules)
        if not is_aggregate and not _is_recursive(rules, component):
            rules = unfold(rules, definitions)
            definitions |= dict.fromkeys(component, rules)
        shown += rules
    return _text(shown)


def _aggregates(program: Program) -> str:
    rules = (rule for rule in _core(program).rules if rule.is_aggregate)
    return _text(
        made for rule in rules for made in aggregate_changes(rule, unchanged_name, names.new_name)
    )


def _group_states(program: Program) -> Iterator[tuple[Rule, ...]]:
    return (group_state(rule) for rule in _core(program).rules if rule.is_aggregate)


def _group_state(program: Program) -> str:
    return "\n\n".join(map(_text, _group_states(program)))


def _folded(program: Program) -> str:
    """How the group state of every aggregate changes."""
    states = (rule for made in _group_states(program) for rule in made if is_foldable(rule))
    return "\n\n".join(
        _text(fold_changes(state, unchanged_name, names.new_name)) for state in states
    )


def _recomputed(program: Program) -> str:
    made = (recomputation(rules) for _, rules in _components(_core(program).rules))
    return "\n\n".join(map(_text, made))


def _view_updates(program: Program) -> str:
    """R∇, then Rτ∇, as a database has them."""
    explanation = explain(deltalog.connect(program=program), after="view_update_rules")
    parts = ("".join(f"{rule_text(rule)}\n" for rule in part) for part in explanation.partition)
    return "\n".join(parts)


REWRITES = {
    "aggregate_changes": _aggregates,
    "condition_rules": _conditions,
    "constraint_rules": _constrained,
    "delta_rules": _delta,
    "desugar": _desugared,
    "existence_tests": _tested_for_existence,
    "fold_changes": _folded,
    "group_state": _group_state,
    "factor_rederivation": _looked_once,
    "magic_sets": _magic,
    "magic_updates": _magic_updates,
    "maintenance_rules": _maintenance,
    "normalize": _normalized,
    "partial_differentials": _differentials,
    "propagation_rules": _propagation,
    "recomputation": _recomputed,
    "rederive_on_demand": _on_demand,
    "split_joins": _split,
    "transition_rules": _transition,
    "unfold": _unfolded,
    "view_update_rules": _view_updates,
}


@pytest.mark.parametrize("path", find("rewrites"), ids=identify)
def test_rewrites(path: Path) -> None:
    """Titled pairs: `before TITLE` is a program, `after` the rules it becomes."""
    case = read_case(path)
    pairs = list(zip(case.sections[::2], case.sections[1::2], strict=True))
    for before, after in pairs:
        assert before.words[0] == "before"
        assert after.name == "after"
        compare(case, after, REWRITES[path.stem](parse_text(before.text)))


@pytest.mark.parametrize("path", find("plans"), ids=identify)
def test_plans(path: Path) -> None:
    case = read_case(path)
    program = parse_text(case.text("program"))
    core = desugar(program, relations_of(program))
    growing = {rule.head.predicate for rule in core.rules}
    section = next(s for s in case.sections if s.name == "plan")
    compare(case, section, plan_text(lower_all(core.rules, growing)))


def test_no_orphans() -> None:
    """Every expectation belongs to a case."""
    for path in CASES.rglob("*"):
        if path.suffix == ".err":
            is_expected = (path.with_suffix(each).exists() for each in (".dl", ".amosql"))
            assert any(is_expected), f"{path} expects nothing"
        if path.suffix == ".printed":
            assert path.with_suffix(".dl").exists(), f"{path} expects nothing"
