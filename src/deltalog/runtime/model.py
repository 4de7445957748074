"""A program made ready: checked, desugared, with what is stored and how each view is kept true.

A model knows no engine and holds no facts; it is made once per program and can be looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from typing import Literal as OneOf

from deltalog.analysis.columns import Relation, Relations, generated_relations
from deltalog.analysis.system_relations import SYSTEM_RELATIONS
from deltalog.checks.program import CheckedProgram
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.arguments import check_argument, check_flag
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Program, Rule
from deltalog.language.walk import atoms_of
from deltalog.rewrites.constraint_rules import keyed_views
from deltalog.rewrites.forms import ProgramForm
from deltalog.rewrites.names import is_generated
from deltalog.rewrites.pipeline import EVALUATE, PREPARE, apply_passes
from deltalog.rewrites.strategies import (
    Choice,
    choose_strategies,
    known_strategy,
    with_nervous_views,
)


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
        cls,
        strategy: str | Mapping[str, str] = "auto",
        materialize: bool = True,
        network: str = "bushy",
        nervous: bool = False,
    ) -> Options:
        """Options as a person gives them: `"*"` in a mapping stands for all other views."""
        hint = "give the name of a strategy, or a mapping from views to names"
        check_argument(isinstance(strategy, str | Mapping), "strategy", strategy, hint)
        check_flag("materialize", materialize)
        check_flag("nervous", nervous)
        per_view = {} if isinstance(strategy, str) else dict(strategy)
        default = strategy if isinstance(strategy, str) else per_view.pop("*", "auto")
        if network not in ("bushy", "flat"):
            hint = "a network is `bushy` or `flat`"
            raise DataError(
                [catalogue.UNKNOWN_OPTION.at(None, what="network", name=network, hint=hint)]
            )
        if nervous and default != "differencing":
            reason = "only differencing can be nervous"
            hint = '`nervous` belongs to `strategy="differencing"`'
            raise DataError(
                [
                    catalogue.STRATEGY_MISFIT.at(
                        None, strategy=default, name="*", reason=reason, hint=hint
                    )
                ]
            )
        return cls(materialize, known_strategy(default), per_view, network, nervous)  # type: ignore[arg-type]

    def of_views(self, relations: Relations) -> Options:
        """The same for another program: strategies of views that it does not have are dropped."""
        views = {name for name, relation in relations.items() if relation.kind == "view"}
        kept = {name: strategy for name, strategy in self.per_view.items() if name in views}
        return replace(self, per_view=kept)


def check_exact(options: Options, what: str) -> None:
    """Raise if no-op changes would be recorded."""
    if options.is_nervous:
        reason = f"{what} needs exact changes, and nervous ones are not exact"
        raise DataError(
            [catalogue.STRATEGY_MISFIT.at(None, strategy=options.strategy, name="*", reason=reason)]
        )


@dataclass(frozen=True)
class Model:
    """A program as it is evaluated and maintained: its rules, relations and strategies.

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

    @cached_property
    def visible(self) -> Relations:
        """The relations of the program, without those that active rules keep for themselves."""
        known = self.checked.relations
        if not self.checked.program.active_rules:
            return known
        return {name: each for name, each in known.items() if not is_generated(name)}

    @cached_property
    def readable(self) -> Relations:
        """The relations that queries may read: also those that describe the program."""
        return {**self.visible, **SYSTEM_RELATIONS}

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The base relations that active rules keep for themselves."""
        return frozenset(self.checked.relations.keys() - self.visible.keys())

    @property
    def is_in_place(self) -> bool:
        """Whether base relations are updated before changes are propagated."""
        return self.options.strategy == "differencing"

    @cached_property
    def as_written(self) -> Model:
        """The same database as it was written, without helpers, whose changes nobody reports."""
        return query_model(self.checked, self.stored.intersection(self.checked.relations))

    @cached_property
    def _rederiving_models(self) -> dict[tuple[str, ...], Model]:
        return {}

    def rederiving(self, changed: tuple[str, ...]) -> Model:
        """The same model with no view stored that depends on one of these relations."""
        if changed not in self._rederiving_models:
            reached = set(changed)
            while True:
                more = {
                    rule.head.predicate
                    for rule in self.rules
                    if any(atom.predicate in reached for atom, _ in atoms_of(rule.body))
                }
                if more <= reached:
                    break
                reached |= more
            stored = self.stored - reached | self.stored.intersection(changed)
            self._rederiving_models[changed] = replace(self, stored=stored)
        return self._rederiving_models[changed]

    @cached_property
    def query_plans(self) -> dict[Hashable, Any]:
        """Plans of queries that were asked before (`runtime/queries.py`)."""
        return {}

    def stored_views(self) -> tuple[str, ...]:
        return tuple(sorted(n for n in self.stored if self.relations[n].kind == "view"))


def make_model(checked: CheckedProgram, options: Options) -> Model:
    """Choose storage and strategies, and bring the rules into the form these need."""
    for view in options.per_view:
        if view not in checked.relations or checked.relations[view].kind != "view":
            hint = did_you_mean(view, checked.relations)
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="view", name=view, hint=hint)])
    if checked.program.active_rules:
        check_exact(options, "an active rule")
    if checked.program.constraints or any(keyed_views(checked.relations)):
        check_exact(options, "a constraint")
    form = apply_passes(PREPARE, chosen_form(checked, options))
    choices = with_nervous_views(form.choices) if options.is_nervous else form.choices
    if options.is_nervous and any(relations_kind(checked, name) == "view" for name in form.stored):
        reason = "a stored view needs exact changes"
        raise DataError(
            [catalogue.STRATEGY_MISFIT.at(None, strategy="nervous", name="*", reason=reason)]
        )
    helpers = generated_relations(form.rules, checked.relations)
    known = {**checked.relations, **helpers}
    return Model(checked, options, form.program, known, form.stored, choices)


def written_form(checked: CheckedProgram, options: Options) -> ProgramForm:
    """The program before any pass."""
    return ProgramForm(
        checked.program,
        checked.relations,
        _stored_relations(checked, options.materialize),
        options.strategy,
        options.per_view,
        options.network == "flat",
        options.is_migration,
    )


def chosen_form(checked: CheckedProgram, options: Options) -> ProgramForm:
    """The program as it is evaluated, with a strategy chosen for each component of views."""
    form = apply_passes(EVALUATE, written_form(checked, options))
    chosen = choose_strategies(form.rules, form.stored, options.strategy, options.per_view)
    return replace(form, choices=chosen)


def query_model(checked: CheckedProgram, stored: frozenset[str]) -> Model:
    """A model that is only queried: the rules as written, over what is stored, without helpers."""
    core = apply_passes(EVALUATE, written_form(checked, Options()), "desugar").program
    made = generated_relations(core.rules, checked.relations)
    return Model(checked, Options(), core, {**checked.relations, **made}, stored, ())


def relations_kind(checked: CheckedProgram, name: str) -> str:
    relation: Relation | None = checked.relations.get(name)
    return "view" if relation is None else relation.kind


def _stored_relations(checked: CheckedProgram, materialize: bool) -> frozenset[str]:
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
