"""Where the rewrites of whole programs apply: to which views, and what is stored afterwards.

The order in which these run is in `pipeline.py`.
"""

from __future__ import annotations

from dataclasses import replace

from deltalog.analysis.columns import Relations, generated_relations
from deltalog.analysis.rule_types import nullable_variables, term_is_nullable
from deltalog.language.ast import Aggregate, Rule
from deltalog.rewrites import names
from deltalog.rewrites.condition_rules import condition_rules
from deltalog.rewrites.constraint_rules import constraint_rules
from deltalog.rewrites.desugar import desugar, desugar_query
from deltalog.rewrites.existence_tests import existence_tests
from deltalog.rewrites.forms import ProgramForm, QueryForm, defined_by, read_by
from deltalog.rewrites.group_state import CONTINUED, group_state
from deltalog.rewrites.magic_sets import magic_sets
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.split_joins import split_joins
from deltalog.rewrites.states import rename_predicates
from deltalog.rewrites.strategies import Choice, choose_strategies
from deltalog.rewrites.transition_rules import direct_transition
from deltalog.rewrites.unfold import unfold


def define_constraints(form: ProgramForm) -> ProgramForm:
    program = constraint_rules(form.program, form.declared)
    return form if program is form.program else replace(form, program=program)


def define_conditions(form: ProgramForm) -> ProgramForm:
    program = condition_rules(form.program)
    return form if program is form.program else replace(form, program=program)


def desugar_program(form: ProgramForm) -> ProgramForm:
    return replace(form, program=desugar(form.program, form.declared))


def name_existence_tests(form: ProgramForm) -> ProgramForm:
    """Parts of bodies that only have to exist under names; stored where the view is.

    A migration does not trust helpers, so it asks for them.
    """
    rules = existence_tests(form.rules)
    if rules is form.rules:
        return form
    made = form.with_rules(rules)
    if form.is_migration:
        return made
    read = read_by(rule for rule in rules if rule.head.predicate in form.stored)
    return replace(made, stored=form.stored.union(filter(names.is_existence, read)))


def normalize_delta_views(form: ProgramForm) -> ProgramForm:
    """Algebra format for views kept by `delta`, the only strategy that needs it."""
    delta = [c for c in form.choices if c.strategy == "delta" and not c.is_aggregate]
    if not delta:
        return form
    made = normalize(rule for choice in delta for rule in choice.rules)
    replaced = {name for choice in delta for name in choice.predicates}
    changed = form.with_replaced(replaced, made)
    asked = {**form.per_view, **dict.fromkeys(defined_by(made), "delta")}
    choices = choose_strategies(changed.rules, changed.stored, form.strategy, asked)
    return replace(changed, choices=choices)


def split_recursive_joins(form: ProgramForm) -> ProgramForm:
    """Longer joins split where a stored component is evaluated as a whole.

    Strategies that ask questions instead would have to answer those of helpers, too.
    """
    if form.is_migration:
        return form
    split: list[Rule] = []
    choices = []
    for choice in form.choices:
        if choice.is_recursive and choice.strategy in ("rederive", "recompute"):
            rules = split_joins(choice.rules)
            if rules is not choice.rules:
                split += rules
                predicates = tuple(sorted(defined_by(rules)))
                choice = replace(choice, predicates=predicates, rules=rules)
        choices.append(choice)
    if not split:
        return form
    changed = form.with_replaced(set(defined_by(split)), tuple(split))
    return replace(changed, choices=tuple(choices))


def keep_group_state(form: ProgramForm) -> ProgramForm:
    """Counts and sums of stored views shown from group state, which is stored beside them."""
    known = {**form.declared, **generated_relations(form.rules, form.declared)}
    grouped = [c for c in form.choices if _keeps_groups(c, form.stored, known)]
    if form.is_migration or not grouped:
        return form
    replaced = {choice.predicates[0] for choice in grouped}
    made = tuple(rule for choice in grouped for rule in group_state(choice.rules[0]))
    changed = form.with_replaced(replaced, made)
    before = {name: choice for choice in form.choices for name in choice.predicates}
    asked = {name: choice.strategy for name, choice in before.items()}
    asked |= dict.fromkeys(defined_by(made), "magic")
    choices = tuple(
        replace(choice, reason="derived from its group state", is_auto=False)
        if choice.predicates[0] in replaced
        else before.get(choice.predicates[0], replace(choice, reason="derived from group state"))
        for choice in choose_strategies(changed.rules, changed.stored, form.strategy, asked)
    )
    return replace(changed, choices=choices)


def _keeps_groups(choice: Choice, stored: frozenset[str], relations: Relations) -> bool:
    """Whether counts or sums of a stored view can be continued from group state."""
    if not choice.is_aggregate or choice.strategy == "recompute":
        return False
    (rule,) = choice.rules
    totals = [term for term in rule.head.arguments if isinstance(term, Aggregate)]
    nullable = nullable_variables(rule.body, relations)
    return (
        rule.head.predicate in stored
        and any(term.function in CONTINUED for term in totals)
        and not any(
            t.argument is not None and term_is_nullable(t.argument, nullable) for t in totals
        )
    )


def unfold_views(form: ProgramForm) -> ProgramForm:
    """Views under `differencing` expanded into those that use them, for a flat network.

    Only their changes are computed from the expanded rules, so the program keeps its own.
    """
    if not form.is_flat:
        return form
    definitions: dict[str, tuple[Rule, ...]] = {}
    choices = []
    for choice in form.choices:
        if choice.strategy == "differencing" and not choice.is_aggregate:
            rules = unfold(choice.rules, definitions)
            (name,) = choice.predicates
            if not names.is_existence(name):  # expanded, it would be enumerated again
                definitions[name] = rules
            choice = replace(choice, rules=rules)
        choices.append(choice)
    return replace(form, choices=tuple(choices)) if definitions else form


# --- queries


def desugar_asked(form: QueryForm) -> QueryForm:
    return replace(form, asked=desugar_query(form.query, form.declared))


def name_existence_tests_of_query(form: QueryForm) -> QueryForm:
    return replace(form, asked=existence_tests(form.asked))


def read_new_states(form: QueryForm) -> QueryForm:
    """The new state of stored relations that changed, as the direct transition rules define it."""
    if not form.changed:
        return form
    new = {name: names.new_name(name) for name in form.changed}
    views = [rename_predicates(r, new) for r in form.views if r.head.predicate not in form.stored]
    for name in sorted(form.changed):
        views += direct_transition(name, form.declared[name].arity)
    sides = {side(name) for name in form.changed for side in (names.plus_name, names.minus_name)}
    return replace(
        form,
        views=tuple(views),
        asked=tuple(rename_predicates(rule, new) for rule in form.asked),
        stored=form.stored | sides,
    )


def ask_by_magic_sets(form: QueryForm) -> QueryForm:
    return replace(form, rewritten=magic_sets(form.rules, names.ANSWER, form.stored))
