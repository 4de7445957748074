"""From a component of views to the stages that compute its change.

The passes of its strategy (`rewrites/pipeline.py`) make the rules. Here these get the states that
they read: stored relations through overlays, virtual views by rules that answer questions. Then
they are ordered into stages, softly where questions make that necessary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from deltalog.analysis.stratification import Stratification, stratification_of
from deltalog.language.ast import Atom, Negation, Rule
from deltalog.plan.lower import Overlays
from deltalog.plan.nodes import Overlay
from deltalog.plan.ranked_deletion import RankedComponent
from deltalog.rewrites import names
from deltalog.rewrites.forms import ComponentForm, VirtualStates, read_by
from deltalog.rewrites.pipeline import apply_passes, maintenance_passes
from deltalog.rewrites.states import Rename, unchanged_name
from deltalog.rewrites.strategies import Choice
from deltalog.rewrites.virtual_states import virtual_states
from deltalog.runtime.fanout import Samples
from deltalog.runtime.fixpoint import Stage
from deltalog.runtime.model import Model

_STATES: tuple[Rename, ...] = (unchanged_name, names.new_name, names.kept_name)


@dataclass(frozen=True, eq=False)
class Compiler:
    """Compiles the components of one model; each reads only states that those below it offer."""

    model: Model

    def instead(self, choice: Choice) -> Compiler:
        """A compiler for which the component of a choice is computed as the choice says."""
        choices = self.model.choices
        others = (choice if each.predicates == choice.predicates else each for each in choices)
        return Compiler(replace(self.model, choices=tuple(others)))

    @cached_property
    def virtual(self) -> VirtualStates:
        return virtual_states(self.model.choices, self.model.stored)

    @cached_property
    def overlays(self) -> Mapping[str, Overlay | str]:
        """The states of stored relations that are not what is stored, once a change is complete."""
        relations, stored = self.model.relations, self.model.stored
        made: dict[str, Overlay | str] = {}
        for name in stored:
            if relations[name].kind == "base" and self.model.is_in_place:
                # the stored state is the new one, the old one a logical rollback
                made[name] = Overlay(name, names.plus_name(name), names.minus_name(name))
                made[names.new_name(name)] = name
        whole = (choice.predicates for choice in self.model.choices if self.is_stored(choice))
        base = (name for name in stored if relations[name].kind == "base" and name not in made)
        for name in (*base, *(name for predicates in whole for name in predicates)):
            inserted, deleted = names.plus_name(name), names.minus_name(name)
            made[names.new_name(name)] = Overlay(name, deleted, inserted)
        return made

    def is_stored(self, choice: Choice) -> bool:
        return self.model.stored.issuperset(choice.predicates)

    def form(
        self, choice: Choice, samples: Samples | None = None, last: str | None = None
    ) -> ComponentForm:
        """The component after its passes, or after the one named `last`."""
        component = ComponentForm(
            choice,
            choice.rules,
            self.is_stored(choice),
            self._is_ranked(choice),
            self.virtual,
            samples.fanout(self.overlays) if samples else None,
        )
        return apply_passes(maintenance_passes(choice), component, last)

    def _is_ranked(self, choice: Choice) -> bool:
        """Ranks help recursion, and need everything that the component reads to be stored."""
        return (
            choice.is_recursive
            and choice.strategy == "rederive"
            and not self.model.options.is_migration
            and all(names.new_name(name) in self.overlays for name in read_by(choice.rules))
        )

    def compile(self, choice: Choice, samples: Samples | None = None) -> CompiledComponent:
        form = self.form(choice, samples)
        used = read_by(form.augmented)
        if form.is_ranked:  # the deletion reads the states of what lies below, and its own
            used |= {state(name) for name in read_by(choice.rules) for state in _STATES}
        offered = {**self.overlays, **_growing_states(form)}
        overlays = {name: offered[name] for name in used if name in offered}
        ranked = _ranked_component(choice) if form.is_ranked else None
        return CompiledComponent(form, overlays, ranked, _rule_stages(form, overlays, ranked))


@dataclass(frozen=True)
class CompiledComponent:
    """The rules of a component's change in stages, and the states that these read."""

    form: ComponentForm
    overlays: Overlays
    ranked: RankedComponent | None
    stages: tuple[Stage, ...]


def _growing_states(form: ComponentForm) -> dict[str, Overlay]:
    """The states that a maintained component sees while they grow."""
    made: dict[str, Overlay] = {}
    if form.is_stored and form.choice.is_maintained:
        for name in form.choice.predicates:
            overdeleted, returned = names.overdeleted_name(name), names.returned_name(name)
            made[names.new_name(name)] = Overlay(name, overdeleted, returned)
            made[names.kept_name(name)] = Overlay(name, overdeleted)
    return made


def _ranked_component(choice: Choice) -> RankedComponent:
    return RankedComponent(
        choice.rules,
        choice.predicates,
        names.suspect_name,
        names.overdeleted_name,
        names.doubtful_name,
        names.kept_name,
        names.new_name,
    )


def _rule_stages(
    form: ComponentForm, overlays: Overlays, ranked: RankedComponent | None
) -> tuple[Stage, ...]:
    """The rules by the strata of those that they were made from, lowest first."""
    strata = _stratify_rules(form.augmented, overlays, ranked)
    by_stratum: dict[int, list[Stage]] = {}
    if ranked is not None:
        by_stratum[strata.stratum_of[names.overdeleted_name(ranked.predicates[0])]] = [ranked]
    rules: dict[int, list[Rule]] = {}
    for rule in form.rules:
        stratum = strata.stratum_of[names.source_predicate(rule.head.predicate)]
        rules.setdefault(stratum, []).append(rule)
    for stratum, part in rules.items():
        by_stratum.setdefault(stratum, []).append(tuple(part))
    return tuple(stage for number in sorted(by_stratum) for stage in by_stratum[number])


def _stratify_rules(
    rules: Iterable[Rule], overlays: Overlays, ranked: RankedComponent | None
) -> Stratification:
    """A stratification of the rules before questions are rewritten, overlays seen as rules."""
    made: list[Rule] = []
    for name, overlay in overlays.items():
        if isinstance(overlay, str):
            continue  # another name for what is stored
        made.append(Rule(Atom(name), (Negation(Atom(overlay.minus)),)))
        if overlay.plus is not None:
            made.append(Rule(Atom(name), (Atom(overlay.plus),)))
    if ranked is not None:
        made += _deletion_as_rules(ranked)
    found = stratification_of((*rules, *made))
    assert found.is_stratified, f"not stratified: {found.cycles}"
    return found


def _deletion_as_rules(component: RankedComponent) -> list[Rule]:
    """Rules that say what must be complete before a ranked deletion runs."""
    made = (component.deleted, component.doubtful)
    heads = [Atom(each(name)) for each in made for name in component.predicates]
    needed = {component.suspect(name) for name in component.predicates}
    below = read_by(component.rules) - set(component.predicates)
    needed |= {component.new(name) for name in below}
    body = tuple(Negation(Atom(name)) for name in sorted(needed))
    return [Rule(head, (*body, *heads)) for head in heads]
