"""Where the rewrites of update propagation apply, each to one component of views.

The order in which these run, for each strategy, is in `pipeline.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from deltalog.language.ast import Rule
from deltalog.rewrites import names
from deltalog.rewrites.aggregate_changes import aggregate_changes
from deltalog.rewrites.delta_rules import delta_rules
from deltalog.rewrites.factor_rederivation import factor_rederivation
from deltalog.rewrites.fold_changes import fold_changes, is_foldable
from deltalog.rewrites.forms import ComponentForm, OnDemand, defined_by, read_by
from deltalog.rewrites.magic_updates import magic_updates
from deltalog.rewrites.maintenance_rules import maintenance_rules
from deltalog.rewrites.partial_differentials import partial_differentials
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.recomputation import recomputation
from deltalog.rewrites.rederive_on_demand import rederive_on_demand
from deltalog.rewrites.states import rename_predicates, unchanged_name
from deltalog.rewrites.transition_rules import transition_rules


def recompute_component(form: ComponentForm) -> ComponentForm:
    return replace(form, rules=recomputation(form.rules))


def take_deltas(form: ComponentForm) -> ComponentForm:
    return replace(form, rules=delta_rules(form.rules))


def differentiate_rules(form: ComponentForm) -> ComponentForm:
    return replace(form, rules=partial_differentials(form.rules, form.choice.is_strict))


def propagate_changes(form: ComponentForm) -> ComponentForm:
    return replace(form, rules=propagation_rules(form.rules, form.choice.is_strict))


def maintain_component(form: ComponentForm) -> ComponentForm:
    return replace(form, rules=maintenance_rules(form.rules, form.choice.members, form.is_ranked))


def factor_rederivations(form: ComponentForm) -> ComponentForm:
    """Only where a lookup is cheap enough to know what it finds, and not in recursive views."""
    if form.fanout is None or form.choice.is_recursive:
        return form
    return replace(form, rules=factor_rederivation(form.rules, form.choice.predicates, form.fanout))


def rederive_virtual_views(form: ComponentForm) -> ComponentForm:
    """A stored view has its old state, and asks for nothing."""
    if form.is_stored:
        return form
    made = rederive_on_demand(form.rules, form.choice.rules, form.choice.members)
    return replace(form, rules=made.rules, asked_instead=made.asked_instead, silent=made.silent)


def fold_group_state(form: ComponentForm) -> ComponentForm:
    """Group state is continued; it is stored, or there is nothing to continue."""
    (rule,) = form.rules
    if not form.is_stored or not is_foldable(rule):
        return form
    return replace(form, rules=tuple(fold_changes(rule, unchanged_name, names.new_name)))


def aggregate_again(form: ComponentForm) -> ComponentForm:
    if form.rules is not form.choice.rules:  # it is continued
        return form
    (rule,) = form.rules
    return replace(form, rules=tuple(aggregate_changes(rule, unchanged_name, names.new_name)))


def add_transitions(form: ComponentForm) -> ComponentForm:
    """Define the states that the rules read of virtual views, and of the component itself."""
    form = _with_own_new_state(form)
    rules, askable = list(form.rules), list(form.askable)
    askable += form.virtual.reached_from((*rules, *askable))
    used = read_by((*rules, *askable))
    answered: list[OnDemand] = []
    for name, each in form.virtual.on_demand.items():
        if name in used and name not in form.asked_instead:
            answered.append(each)
            askable += [r for r in form.virtual.reached_from(each.rules) if r not in askable]
            rules += each.rules
    if len(askable) == len(form.askable) and not answered:
        return form
    instead = {k: v for each in answered for k, v in each.asked_instead.items()}
    return replace(
        form,
        rules=tuple(rules),
        askable=tuple(askable),
        asked_instead={**form.asked_instead, **instead},
        silent=form.silent.union(*(each.silent for each in answered)),
    )


def _with_own_new_state(form: ComponentForm) -> ComponentForm:
    """A stored component asks for its own new state by a name of its own.

    The plain name means the stored state with the change, which is only being computed. One that
    is maintained reads its new state as it grows.
    """
    apart = {names.new_name(name): names.derivable_name(name) for name in form.choice.predicates}
    if not form.is_stored or form.choice.is_maintained or not read_by(form.rules) & apart.keys():
        return form
    return replace(
        form,
        rules=_rename_predicates(form.rules, apart),
        askable=_rename_predicates(transition_rules(form.choice.rules, {}), apart),
    )


def _rename_predicates(rules: Iterable[Rule], new_names: dict[str, str]) -> tuple[Rule, ...]:
    return tuple(rename_predicates(rule, new_names) for rule in rules)


def ask_for_states(form: ComponentForm) -> ComponentForm:
    """Turn what the rules read of `askable` states into questions; all else is just read."""
    augmented = (*form.rules, *form.askable)
    deltas = defined_by(form.rules)
    asked = {*defined_by(form.askable), *form.asked_instead}
    read = (read_by(augmented) | set(deltas)) - asked
    rules = magic_updates(
        augmented,
        deltas,
        read,
        is_supplementary=True,
        is_adorned=not form.asked_instead,
        asked_instead=form.asked_instead,
        silent=form.silent,
    )
    return replace(form, rules=rules, askable=(), augmented=augmented)
