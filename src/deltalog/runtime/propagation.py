"""Update propagation: a strategy per component, one program for all of them, run per transaction.

Installed once: every component's rules are rewritten by its strategy, what they ask of virtual
views is answered by Magic Sets rules, everything is partitioned (softly, where questions make that
necessary) and prepared on the engine. A transaction only binds the changes of the base relations:
`edge__plus` and `edge__minus` are filled, the parts run, and `path__plus` and `path__minus` are the
exact change of `path`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from deltalog.analysis.columns import Relations, generated_relations
from deltalog.analysis.stratification import Stratification, stratification
from deltalog.engines.base import Engine
from deltalog.language.ast import Atom, Negation, Row, Rule
from deltalog.language.walk import atoms
from deltalog.plan.nodes import Overlay
from deltalog.plan.ranked_deletion import RankedComponent
from deltalog.rewrites import names
from deltalog.rewrites.aggregate_changes import aggregate_changes
from deltalog.rewrites.magic_sets import asked_rules
from deltalog.rewrites.maintenance_rules import (
    deletion_rules,
    insertion_rules,
    net_rules,
    new_state_rules,
    rederivation_rules,
    suspect_rules,
)
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.recomputation import recomputation
from deltalog.rewrites.states import Rename, renamed, rule_in_state, unchanged
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fixpoint import Stage, Statistics, Watch, install, run
from deltalog.runtime.limits import Limits
from deltalog.runtime.strategies import Choice


@dataclass(frozen=True)
class PropagationProgram:
    """The rules of all components together, before questions are rewritten, and how to read states.

    `asked_instead` maps states that are made of answers (`path__new` of a view rederived on demand)
    to what must be asked (`path`); `silent` are the rules that turn answers into them.
    """

    rules: tuple[Rule, ...]
    deltas: tuple[str, ...]
    overlays: Mapping[str, Overlay]
    ranked: tuple[RankedComponent, ...]
    asked_instead: Mapping[str, str]
    silent: frozenset[str]


def propagation_program(
    choices: Iterable[Choice], relations: Relations, stored: Set[str]
) -> PropagationProgram:
    """Every component rewritten by its strategy."""
    building = _Building(relations, stored)
    for name in stored:
        if relations[name].kind == "base":
            building.overlay_new(name)
    for choice in choices:
        building.add(choice)
    return building.program()


class _Building:
    def __init__(self, relations: Relations, stored: Set[str]) -> None:
        self.relations = relations
        self.stored = stored
        self.rules: list[Rule] = []
        self.deltas: list[str] = []
        self.overlays: dict[str, Overlay] = {}
        self.ranked: list[RankedComponent] = []
        self.asked_instead: dict[str, str] = {}
        self.silent: set[str] = set()

    def program(self) -> PropagationProgram:
        return PropagationProgram(
            tuple(self.rules),
            tuple(dict.fromkeys(self.deltas)),
            self.overlays,
            tuple(self.ranked),
            self.asked_instead,
            frozenset(self.silent),
        )

    def overlay_new(self, name: str) -> None:
        """The new state of a stored relation whose change will be complete."""
        self.overlays[names.new(name)] = Overlay(name, names.minus(name), names.plus(name))

    def add(self, choice: Choice) -> None:
        if not self._is_stored(choice):
            self.rules += choice.rules  # the old state is asked for
        if choice.strategy == "recompute":
            self._dynamic(recomputation(choice.rules))
        elif choice.is_aggregate:
            self._add_aggregate(choice)
        elif choice.strategy in ("rederive", "demand"):
            self._add_maintained(choice)
        else:
            self._add_propagated(choice)

    def _is_stored(self, choice: Choice) -> bool:
        return all(name in self.stored for name in choice.predicates)

    def _dynamic(self, rules: Iterable[Rule]) -> None:
        """Rules that are driven by changes and never asked for."""
        rules = tuple(rules)
        self.rules += rules
        self.deltas += [rule.head.predicate for rule in rules]

    def _offer_new(self, choice: Choice) -> None:
        """The new state for the components above: an overlay, or asked by transition rules."""
        if self._is_stored(choice):
            for name in choice.predicates:
                self.overlay_new(name)
        else:
            self.rules += _transitions(choice.rules)

    def _add_aggregate(self, choice: Choice) -> None:
        (rule,) = choice.rules
        self._dynamic(aggregate_changes(rule, unchanged, names.new))
        self._offer_new(choice)

    def _add_propagated(self, choice: Choice) -> None:
        """Propagation rules; a stored component still asks for its own new state, not reads it."""
        propagated = propagation_rules(choice.rules)
        if self._is_stored(choice):
            own = {names.new(name): names.derivable(name) for name in choice.predicates}
            self._dynamic(renamed(rule, own) for rule in propagated)
            self.rules += (renamed(rule, own) for rule in _transitions(choice.rules))
        else:
            self._dynamic(propagated)
        self._offer_new(choice)

    def _add_maintained(self, choice: Choice) -> None:
        """Maintenance rules; the new state is the kept facts and those that came back or in."""
        rules, members = choice.rules, choice.members
        if self._is_ranked(choice):
            self._dynamic(made for rule in rules for made in suspect_rules(rule, members))
            self.ranked.append(_ranked(choice))
        else:
            self._dynamic(made for rule in rules for made in deletion_rules(rule, members))
        self._dynamic(made for rule in rules for made in rederivation_rules(rule))
        self._dynamic(made for rule in rules for made in insertion_rules(rule, members))
        self._dynamic(net_rules(rules))
        for name in choice.predicates:
            gone, back = names.deleted(name), names.returned(name)
            if self._is_stored(choice):
                self.overlays[names.new(name)] = Overlay(name, gone, back)
                self.overlays[names.kept(name)] = Overlay(name, gone)
            else:
                self.asked_instead[names.new(name)] = name
                self.asked_instead[names.kept(name)] = name
        if not self._is_stored(choice):
            answered = tuple(new_state_rules(rules))
            self._dynamic(answered)
            self.silent |= {rule.head.predicate for rule in answered}

    def _is_ranked(self, choice: Choice) -> bool:
        """Ranks help recursion, and need everything the component reads to be at hand."""
        below = {atom.predicate for rule in choice.rules for atom, _ in atoms(rule.body)}
        return (
            choice.is_recursive
            and choice.strategy == "rederive"
            and self._is_stored(choice)
            and below <= self.stored
        )


def _transitions(rules: Iterable[Rule]) -> list[Rule]:
    return [rule_in_state(rule, names.new, "transition_rules") for rule in rules]


def _ranked(choice: Choice) -> RankedComponent:
    return RankedComponent(
        choice.rules, choice.predicates, names.suspect, names.deleted, names.kept, names.new
    )


# --- from a program to stages -------------------------------------------------------------------


def stages(program: PropagationProgram, stored: Set[str]) -> tuple[Stage, ...]:
    """The rules with their questions rewritten, in the order in which they run."""
    strata = _strata(program)
    read = {*stored, *program.overlays, *program.deltas, *_undefined(program)}
    rewritten = asked_rules(
        program.rules,
        program.deltas,
        read - set(program.asked_instead),
        is_adorned=not program.asked_instead,
        asked_instead=program.asked_instead,
        silent=program.silent,
        rewrite="magic_updates",
    )
    by_stratum: dict[int, list[Stage]] = {}
    for component in program.ranked:
        stratum = strata.stratum_of[names.deleted(component.predicates[0])]
        by_stratum.setdefault(stratum, []).append(component)
    rules: dict[int, list[Rule]] = {}
    for rule in rewritten:
        stratum = strata.stratum_of[names.source(rule.head.predicate)]
        rules.setdefault(stratum, []).append(rule)
    for stratum, part in rules.items():
        by_stratum.setdefault(stratum, []).append(tuple(part))
    return tuple(stage for number in sorted(by_stratum) for stage in by_stratum[number])


def _undefined(program: PropagationProgram) -> set[str]:
    """What no rule derives: changes of base relations, and whatever can only be empty."""
    defined = {rule.head.predicate for rule in program.rules}
    return {a.predicate for rule in program.rules for a, _ in atoms(rule.body)} - defined


def _strata(program: PropagationProgram) -> Stratification:
    """A stratification of the program before questions are rewritten, overlays seen as rules."""
    made: list[Rule] = []
    for name, overlay in program.overlays.items():
        gone = Negation(Atom(overlay.minus))
        made.append(Rule(Atom(name), (Atom(overlay.stored), gone)))
        if overlay.plus is not None:
            made.append(Rule(Atom(name), (Atom(overlay.plus),)))
    for component in program.ranked:
        made += _as_rules(component)
    found = stratification((*program.rules, *made))
    assert found.is_stratified, f"not stratified: {found.cycles}"
    return found


def _as_rules(component: RankedComponent) -> list[Rule]:
    """What a ranked deletion needs to be complete, written as rules."""
    heads = [Atom(component.deleted(name)) for name in component.predicates]
    needed = {component.suspect(name) for name in component.predicates}
    needed |= {
        component.new(atom.predicate)
        for rule in component.rules
        for atom, _ in atoms(rule.body)
        if atom.predicate not in component.predicates
    }
    body = tuple(Negation(Atom(name)) for name in sorted(needed))
    return [Rule(head, (*body, *heads)) for head in heads]


# --- installed and run --------------------------------------------------------------------------


class Propagation:
    """The propagation program of a database, installed on its engine."""

    def __init__(
        self, engine: Engine, choices: tuple[Choice, ...], relations: Relations, stored: Set[str]
    ) -> None:
        self.engine = engine
        self.choices = choices
        self.stored = stored
        self.program = propagation_program(choices, relations, stored)
        self.stages = stages(self.program, stored)
        self._scratch = self._create(relations)
        self._installed = install(engine, self.stages, self.program.overlays)

    def _create(self, relations: Relations) -> frozenset[str]:
        changes = {
            change(name): replace(relation, name=change(name))
            for name, relation in relations.items()
            for change in (names.plus, names.minus, names.deleted, names.suspect)
        }
        rules = tuple(rule for stage in self.stages if isinstance(stage, tuple) for rule in stage)
        overlays = {name: relations[o.stored] for name, o in self.program.overlays.items()}
        known = {name: relations[name] for name in self.stored} | changes | overlays
        made = generated_relations(rules, known)
        scratch = {**changes, **made}
        for name, relation in scratch.items():
            self.engine.create(name, tuple(type_ or "int" for type_ in relation.types))
        empty = {a.predicate: len(a.arguments) for rule in rules for a, _ in atoms(rule.body)}
        for name in empty.keys() - scratch.keys() - known.keys():
            self.engine.create(name, ("int",) * empty[name])
        return frozenset(scratch | empty.keys()) - known.keys() | changes.keys()

    def run(self, base: ChangeSet, limits: Limits, watch: Watch | None = None) -> Statistics:
        """Bind the changes of base relations and derive those of views."""
        for name, rows in base.inserted.items():
            self.engine.insert(names.plus(name), rows)
        for name, rows in base.deleted.items():
            self.engine.insert(names.minus(name), rows)
        return run(self.engine, self._installed, limits, watch=watch)

    def change(self, view: str) -> tuple[set[Row], set[Row]]:
        """What the last run found: the rows really new and really gone."""
        return set(self.engine.rows(names.plus(view))), set(self.engine.rows(names.minus(view)))

    def apply(self) -> None:
        """Bring the stored views to their new state."""
        for choice in self.choices:
            predicates = [name for name in choice.predicates if name in self.stored]
            if not predicates:
                continue
            if choice.strategy == "recompute":
                self._replace(predicates)
            elif choice.strategy in ("rederive", "demand") and not choice.is_aggregate:
                self._move(predicates, names.deleted, names.returned)
            else:
                self._move(predicates, names.minus, names.plus)

    def _move(self, predicates: list[str], gone: Rename, come: Rename) -> None:
        """Take away, then append in the order of derivation, which keeps ranks well-founded."""
        for name in predicates:
            self.engine.delete(name, list(self.engine.rows(gone(name))))
        owner = {come(name): name for name in predicates}
        for made, row in list(self.engine.history(list(owner))):
            self.engine.insert(owner[made], [row])

    def _replace(self, predicates: list[str]) -> None:
        owner = {names.new(name): name for name in predicates}
        for name in predicates:
            self.engine.clear(name)
        for made, row in list(self.engine.history(list(owner))):
            self.engine.insert(owner[made], [row])

    def reset(self) -> None:
        """Forget the last run."""
        for name in self._scratch:
            self.engine.clear(name)
        self._installed.rewind()

    def drop(self) -> None:
        for name in self._scratch:
            self.engine.drop(name)
