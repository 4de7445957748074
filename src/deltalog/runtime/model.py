"""A program made ready: checked, desugared, with what is stored and how each view is kept true.

A model knows no engine and holds no facts; it is made once per program and can be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from deltalog.analysis.columns import (
    Relation,
    Relations,
    generated_relations,
    nullable_variables,
    term_is_nullable,
)
from deltalog.checks.program import CheckedProgram
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Aggregate, Program, Rule
from deltalog.language.walk import atoms
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar
from deltalog.rewrites.existence_tests import existence_tests
from deltalog.rewrites.group_state import CONTINUED, group_state
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.split_joins import split_joins
from deltalog.rewrites.unfold import unfold
from deltalog.runtime.strategies import Choice, choose, known_strategy, with_nervous_views


@dataclass(frozen=True)
class Options:
    """How views are kept.

    `network` is the form of the propagation network under `differencing`: `bushy` keeps views that
    others use as nodes, `flat` expands them. With `is_nervous` differentials are not tested against
    the other state: cheaper, and a change may be reported that is none.
    """

    materialize: bool = True
    strategy: str = "auto"
    per_view: Mapping[str, str] = field(default_factory=dict)
    network: OneOf["bushy", "flat"] = "bushy"
    is_nervous: bool = False
    is_migration: bool = False  # old and new rules at once: no ranks and no helpers to trust

    @classmethod
    def of(
        cls, strategy: str | Mapping[str, str], materialize: bool, network: str, nervous: bool
    ) -> Options:
        """Options as a person gives them: `"*"` in a mapping stands for all other views."""
        per_view = {} if isinstance(strategy, str) else dict(strategy)
        default = strategy if isinstance(strategy, str) else per_view.pop("*", "auto")
        if network not in ("bushy", "flat"):
            hint = "a network is `bushy` or `flat`"
            raise DataError(
                [catalogue.UNKNOWN_OPTION.at(None, what="network", name=network, hint=hint)]
            )
        if nervous and default != "differencing":
            reason = "only `differencing` has a nervous form"
            raise DataError(
                [catalogue.STRATEGY_MISFIT.at(None, strategy=default, name="*", reason=reason)]
            )
        return cls(materialize, known_strategy(default), per_view, network, nervous)  # type: ignore[arg-type]

    def of_views(self, relations: Relations) -> Options:
        """The same for another program: strategies of views that it does not have are dropped."""
        views = {name for name, relation in relations.items() if relation.kind == "view"}
        kept = {name: strategy for name, strategy in self.per_view.items() if name in views}
        return replace(self, per_view=kept)


@dataclass(frozen=True)
class Model:
    """What an engine needs to know about a program.

    `rules` are in desugared form (algebra format for views kept by `delta`), `relations` include
    the helpers these rules define, `stored` are the relations that hold facts.
    """

    checked: CheckedProgram
    options: Options
    core: Program
    relations: Relations
    stored: frozenset[str]
    choices: tuple[Choice, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.core.rules

    @property
    def views(self) -> tuple[str, ...]:
        """The views a person has written, sorted."""
        return tuple(sorted(n for n, r in self.checked.relations.items() if r.kind == "view"))

    @property
    def is_in_place(self) -> bool:
        """Whether base relations are updated before changes are propagated."""
        return self.options.strategy == "differencing"

    def stored_views(self) -> tuple[str, ...]:
        return tuple(sorted(n for n in self.stored if self.relations[n].kind == "view"))


def make_model(checked: CheckedProgram, options: Options) -> Model:
    """Choose storage and strategies, and bring the rules into the form these need."""
    for view in options.per_view:
        if view not in checked.relations or checked.relations[view].kind != "view":
            hint = did_you_mean(view, checked.relations)
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="view", name=view, hint=hint)])
    core = desugar(checked.program, checked.relations)
    stored = _stored(checked, options.materialize)
    core, stored = _with_existence_tests(core, stored, options)
    known = {**checked.relations, **generated_relations(core.rules, checked.relations)}
    core, stored, choices = _chosen(core, stored, options, known)
    helpers = generated_relations(core.rules, checked.relations)
    if options.is_nervous and any(relations_kind(checked, name) == "view" for name in stored):
        reason = "a stored view needs exact changes"
        raise DataError(
            [catalogue.STRATEGY_MISFIT.at(None, strategy="nervous", name="*", reason=reason)]
        )
    return Model(checked, options, core, {**checked.relations, **helpers}, stored, choices)


def query_model(checked: CheckedProgram, stored: frozenset[str]) -> Model:
    """A model that is only queried: the rules as written, over what is stored, without helpers."""
    core = desugar(checked.program, checked.relations)
    made = generated_relations(core.rules, checked.relations)
    return Model(checked, Options(), core, {**checked.relations, **made}, stored, ())


def relations_kind(checked: CheckedProgram, name: str) -> str:
    relation: Relation | None = checked.relations.get(name)
    return "view" if relation is None else relation.kind


def _stored(checked: CheckedProgram, materialize: bool) -> frozenset[str]:
    """Base relations and materialised views."""
    declared = {
        declaration.predicate
        for declaration in checked.program.declarations
        if declaration.storage == "materialized"
    }
    return frozenset(
        name
        for name, relation in checked.relations.items()
        if relation.kind == "base"
        or (relation.storage == "materialized" and (materialize or name in declared))
    )


def _with_existence_tests(
    core: Program, stored: frozenset[str], options: Options
) -> tuple[Program, frozenset[str]]:
    """Parts of bodies that only have to exist under names; stored where the view is.

    A migration does not trust helpers, so it asks for them.
    """
    rules = existence_tests(core.rules)
    if rules is core.rules:
        return core, stored
    if not options.is_migration:
        kept = [rule for rule in rules if rule.head.predicate in stored]
        read = {atom.predicate for rule in kept for atom, _ in atoms(rule.body)}
        stored |= {name for name in read if names.is_existence(name)}
    return replace(core, rules=rules), stored


def _chosen(
    core: Program, stored: frozenset[str], options: Options, known: Relations
) -> tuple[Program, frozenset[str], tuple[Choice, ...]]:
    choices = choose(core.rules, stored, options.strategy, options.per_view)
    delta = [c for c in choices if c.strategy == "delta" and not c.is_aggregate]
    if delta:
        replaced = {name for choice in delta for name in choice.predicates}
        made = normalize(rule for choice in delta for rule in choice.rules)
        kept = (rule for rule in core.rules if rule.head.predicate not in replaced)
        core = replace(core, rules=(*kept, *made))
        stored |= {rule.head.predicate for rule in made}
        asked = dict(options.per_view) | {rule.head.predicate: "delta" for rule in made}
        choices = choose(core.rules, stored, options.strategy, asked)
    if not options.is_migration:
        core, stored, choices = _with_split_joins(core, stored, choices)
    grouped = [c for c in choices if _keeps_groups(c, stored, known)]
    if grouped and not options.is_migration:
        core, stored, choices = _with_group_state(core, stored, options, grouped, choices)
    if options.network == "flat":
        choices = _flattened(choices)
    if options.is_nervous:
        choices = with_nervous_views(choices)
    return core, stored, choices


def _with_split_joins(
    core: Program, stored: frozenset[str], choices: tuple[Choice, ...]
) -> tuple[Program, frozenset[str], tuple[Choice, ...]]:
    """Longer joins split where a stored component is evaluated as a whole.

    Strategies that ask questions instead would have to answer those of helpers, too.
    """
    rules: list[Rule] = []
    made = []
    for choice in choices:
        if choice.is_recursive and choice.strategy in ("rederive", "recompute"):
            split = split_joins(choice.rules)
            if split is not choice.rules:
                predicates = {rule.head.predicate for rule in split}
                choice = replace(choice, predicates=tuple(sorted(predicates)), rules=split)
                stored |= predicates
                rules += split
        made.append(choice)
    if not rules:
        return core, stored, choices
    replaced = {rule.head.predicate for rule in rules}
    others = (rule for rule in core.rules if rule.head.predicate not in replaced)
    return replace(core, rules=(*others, *rules)), stored, tuple(made)


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


def _with_group_state(
    core: Program,
    stored: frozenset[str],
    options: Options,
    kept: list[Choice],
    choices: tuple[Choice, ...],
) -> tuple[Program, frozenset[str], tuple[Choice, ...]]:
    replaced = {choice.predicates[0] for choice in kept}
    made = [rule for choice in kept for rule in group_state(choice.rules[0])]
    others = (rule for rule in core.rules if rule.head.predicate not in replaced)
    core = replace(core, rules=(*others, *made))
    stored |= {rule.head.predicate for rule in made}
    asked = {name: choice.strategy for choice in choices for name in choice.predicates}
    asked |= {rule.head.predicate: "magic" for rule in made}
    before = {name: choice for choice in choices for name in choice.predicates}
    return (
        core,
        stored,
        tuple(
            replace(choice, reason="it is read off its group state", is_auto=False)
            if choice.predicates[0] in replaced
            else before.get(choice.predicates[0], replace(choice, reason="from group state"))
            for choice in choose(core.rules, stored, options.strategy, asked)
        ),
    )


def _flattened(choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Views under differencing expanded into those that use them."""
    definitions: dict[str, tuple[Rule, ...]] = {}
    flat = []
    for choice in choices:
        if choice.strategy == "differencing" and not choice.is_aggregate:
            rules = unfold(choice.rules, definitions)
            (name,) = choice.predicates
            if not names.is_existence(name):  # expanded, it would be enumerated again
                definitions[name] = rules
            choice = replace(choice, rules=rules)
        flat.append(choice)
    return tuple(flat)
