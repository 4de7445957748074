"""Which rewrites run, in which order, and why: the order is data, and stated only here.

A pass is a rewrite with its place. Evaluation, queries, update propagation and `explain` run these
tuples, one per purpose:

- `EVALUATE`: every program; then strategies are chosen (`strategies.py`);
- `PREPARE`: the same program for the strategies of its views;
- `QUERY`: one query, beside the rules of the program;
- `MAINTAIN`: the change of one component of views, by its strategy; `AGGREGATES` instead for one
  with an aggregate, which changes in one way under all strategies but `recompute`;
- `UPDATE_VIEWS`: the rules of a program, for requests that go down from views to base relations.

`deltalog explain --after NAME` shows the rules after a pass; an optional pass is left out with
`--without NAME`, which changes what is computed on the way but never a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from deltalog.rewrites import component_passes, program_passes, request_passes
from deltalog.rewrites.forms import ComponentForm, ProgramForm, QueryForm, RequestForm
from deltalog.rewrites.strategies import Choice

Form = TypeVar("Form")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Pass(Generic[Form]):
    """A rewrite: its name, its purpose, the reason for its place, where it runs, and its function.

    The function returns the same object where it changes nothing.
    """

    name: str
    purpose: str
    reason: str
    runs_for: str
    apply: Callable[[Form], Form]
    is_optional: bool = False

    def on(self, apply: Callable[[Other], Other]) -> Pass[Other]:
        """The same pass for another form."""
        kept = self.name, self.purpose, self.reason, self.runs_for
        return Pass(*kept, apply, self.is_optional)


def apply_passes(passes: Iterable[Pass[Form]], form: Form, last: str | None = None) -> Form:
    """The form after these passes, in their order; `last` is the name of one to stop behind."""
    for each in passes:
        form = each.apply(form)
        if each.name == last:
            break
    return form


CONSTRAINT_RULES = Pass(
    "constraint_rules",
    "make views of constraints",
    "first: what a constraint defines is a view like any other",
    "constraints, and views with a key",
    program_passes.define_constraints,
)
CONDITION_RULES = Pass(
    "condition_rules",
    "make views of the conditions of active rules",
    "after constraint_rules, before all that reads rules: a condition is a view like any other",
    "active rules",
    program_passes.define_conditions,
)
DESUGAR = Pass(
    "desugar",
    "name expressions, distribute disjunctions, write out types",
    "before all that reads rules: arguments are expected to be variables or constants",
    "always",
    program_passes.desugar_program,
)
EXISTENCE_TESTS = Pass(
    "existence_tests",
    "name the parts of a body that only have to exist",
    "after desugar, which connects literals by naming values; before everything that reads bodies",
    "always",
    program_passes.name_existence_tests,
)
MAGIC_SETS = Pass(
    "magic_sets",
    "derive only what the query needs",
    "after desugar: adornments follow the evaluation order of flat bodies",
    "queries (optional)",
    program_passes.ask_by_magic_sets,
    is_optional=True,
)

EVALUATE: tuple[Pass[ProgramForm], ...] = (
    *(CONSTRAINT_RULES, CONDITION_RULES),
    *(DESUGAR, EXISTENCE_TESTS),
)


# --- programs, for the strategies of their views ------------------------------------------------

NORMALIZE = Pass(
    "normalize",
    "one relational operator per rule, intermediate results named",
    "before changes are taken: the intermediate results are stored views, too",
    "`--strategy delta`",
    program_passes.normalize_delta_views,
)
SPLIT_JOINS = Pass(
    "split_joins",
    "name joins of two inside the longer joins of a recursive view",
    "before changes are taken: what is named is a stored view, too",
    "`--strategy rederive` or `recompute`; stored recursive views with joins of three or more",
    program_passes.split_recursive_joins,
)
GROUP_STATE = Pass(
    "group_state",
    "keep counts and exact sums per group, and show the view from them",
    "before changes are taken: the state of a group is a stored view, too",
    "stored views with a count, sum or average",
    program_passes.keep_group_state,
)
UNFOLD = Pass(
    "unfold",
    "expand views into the views that use them, for a flat network",
    "last: only the changes of a view are computed from what is expanded, not the view",
    "`--strategy differencing --network flat`",
    program_passes.unfold_views,
)

PREPARE: tuple[Pass[ProgramForm], ...] = (NORMALIZE, SPLIT_JOINS, GROUP_STATE, UNFOLD)


# --- update propagation, one component at a time ------------------------------------------------

RECOMPUTATION = Pass(
    "recomputation",
    "derive the new state and compare it with the old",
    "first: it renames the rules of the component",
    "`--strategy recompute`",
    component_passes.recompute_component,
)
DELTA_RULES = Pass(
    "delta_rules",
    "the algebra of change, operator by operator",
    "first: it knows the change of single operators, which normalize has named",
    "`--strategy delta`; views that are not recursive",
    component_passes.take_deltas,
)
PARTIAL_DIFFERENTIALS = Pass(
    "partial_differentials",
    "a rule per influent and direction, and nodes that accumulate what these find",
    "first: the influents are what the bodies of the component read",
    "`--strategy differencing`; views that are not recursive",
    component_passes.differentiate_rules,
)
PROPAGATION_RULES = Pass(
    "propagation_rules",
    "a rule per body literal and direction, tested for effect",
    "first: a literal of a flat body either changes or only tests",
    "`--strategy magic`",
    component_passes.propagate_changes,
)
MAINTENANCE_RULES = Pass(
    "maintenance_rules",
    "estimate deletions, rederive, insert, net out",
    "first: a literal of a flat body either changes or only tests",
    "`--strategy rederive` or `demand`",
    component_passes.maintain_component,
)
FACTOR_REDERIVATION = Pass(
    "factor_rederivation",
    "evaluate the prefix that rederivations share once for all of them",
    "after maintenance_rules: it knows the form of rederivations",
    "`--strategy rederive`",
    component_passes.factor_rederivations,
)
REDERIVE_ON_DEMAND = Pass(
    "rederive_on_demand",
    "maintenance rules for a view that is not stored",
    "after maintenance_rules: it adds the new state as rules, and what they ask",
    "`--strategy demand --virtual`",
    component_passes.rederive_virtual_views,
)
FOLD_CHANGES = Pass(
    "fold_changes",
    "continue counts and exact sums from the bindings that were inserted and deleted",
    "before aggregate_changes, which does what it cannot do",
    "stored views with a count, sum or average, except under `recompute`",
    component_passes.fold_group_state,
)
AGGREGATE_CHANGES = Pass(
    "aggregate_changes",
    "look again at the groups that a change touches",
    "after fold_changes: what can be continued is not looked at again",
    "views with an aggregate, except under `recompute`",
    component_passes.aggregate_again,
)
TRANSITION_RULES = Pass(
    "transition_rules",
    "the new state as rules",
    "after the rules that read new states: it serves those of virtual views",
    "every strategy",
    component_passes.add_transitions,
)
MAGIC_UPDATES = Pass(
    "magic_updates",
    "derive only what the change needs",
    "last: it turns what all the other rules read of virtual views into questions",
    "every strategy",
    component_passes.ask_for_states,
)

_STATES = (TRANSITION_RULES, MAGIC_UPDATES)

MAINTAIN: Mapping[str, tuple[Pass[ComponentForm], ...]] = {
    "recompute": (RECOMPUTATION, *_STATES),
    "delta": (DELTA_RULES, *_STATES),
    "differencing": (PARTIAL_DIFFERENTIALS, *_STATES),
    "rederive": (MAINTENANCE_RULES, FACTOR_REDERIVATION, *_STATES),
    "magic": (PROPAGATION_RULES, *_STATES),
    "demand": (MAINTENANCE_RULES, REDERIVE_ON_DEMAND, *_STATES),
}
"""By strategy (`strategies.py`); `auto` takes one of these for each component."""

AGGREGATES: tuple[Pass[ComponentForm], ...] = (FOLD_CHANGES, AGGREGATE_CHANGES, *_STATES)


# --- queries ------------------------------------------------------------------------------------

QUERY: tuple[Pass[QueryForm], ...] = (
    DESUGAR.on(program_passes.desugar_asked),
    EXISTENCE_TESTS.on(program_passes.name_existence_tests_of_query),
    TRANSITION_RULES.on(program_passes.read_new_states),
    MAGIC_SETS,
)


# --- view updates -------------------------------------------------------------------------------

VIEW_UPDATE_RULES = Pass(
    "view_update_rules",
    "rules by which a request for a view becomes requests for what it reads",
    "last: it requests operator by operator, and reacts to the changes that propagation_rules find",
    '`realize` with `mode="first_level"`',
    request_passes.make_requests,
)

UPDATE_VIEWS: tuple[Pass[RequestForm], ...] = (
    NORMALIZE.on(request_passes.normalize_views),
    PROPAGATION_RULES.on(request_passes.propagate_changes),
    VIEW_UPDATE_RULES,
)


def maintenance_passes(choice: Choice) -> tuple[Pass[ComponentForm], ...]:
    """The passes that a component of views goes through."""
    is_special = choice.is_aggregate and choice.strategy != "recompute"
    return AGGREGATES if is_special else MAINTAIN[choice.strategy]


_PURPOSES: tuple[tuple[Pass[Any], ...], ...] = (
    *(EVALUATE, (MAGIC_SETS,), PREPARE),
    *(passes[: -len(_STATES)] for passes in (*MAINTAIN.values(), AGGREGATES)),
    _STATES,
)
EVERY_PASS: Mapping[str, Pass[Any]] = {
    each.name: each for purpose in (*_PURPOSES, UPDATE_VIEWS[-1:]) for each in purpose
}
UPDATE_PASSES = frozenset(each.name for purpose in _PURPOSES[2:] for each in purpose)
"""The names of the passes that serve update propagation."""
