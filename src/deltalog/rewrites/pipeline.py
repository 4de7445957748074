"""Which rewrites run, in which order, and why: the order is data.

`deltalog explain --after NAME` shows the program after a pass; an optional pass is left out with
`--without NAME`, which changes what is computed on the way but never an answer.

One tuple per purpose. EVALUATE: every view from the base relations. QUERY: the answer to one query.
MAINTAIN: the change of a view from the changes of what it reads, a tuple for each strategy; a pass
there works on one component of views at a time. AGGREGATES: the same for views with aggregates,
which change in one way under all strategies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Pass:
    """A rewrite by name, with what it is for and why it stands where it stands."""

    name: str
    purpose: str
    reason: str
    is_optional: bool = False


DESUGAR = Pass(
    "desugar",
    "name expressions, distribute disjunctions, write out types",
    "first: every later pass expects arguments to be variables or constants",
)
EXISTENCE_TESTS = Pass(
    "existence_tests",
    "name the parts of a body that only have to exist",
    "after desugar, which connects literals by naming values; before everything that reads bodies",
)
MAGIC_SETS = Pass(
    "magic_sets",
    "derive only what the query needs",
    "after desugar: adornments follow the evaluation order of flat bodies",
    is_optional=True,
)

EVALUATE = (DESUGAR, EXISTENCE_TESTS)
QUERY = (DESUGAR, EXISTENCE_TESTS, MAGIC_SETS)

PASSES = {each.name: each for each in (*EVALUATE, *QUERY)}


# --- update propagation -------------------------------------------------------------------------

NORMALIZE = Pass(
    "normalize",
    "one relational operator per rule, intermediate results named",
    "before changes are taken: the intermediate results are stored views, too",
)
UNFOLD = Pass(
    "unfold",
    "expand views into the views that use them, for a flat network",
    "before changes are taken: what is expanded is no influent any more",
)
SPLIT_JOINS = Pass(
    "split_joins",
    "name joins of two inside the longer joins of a recursive view",
    "before changes are taken: what is named is a stored view, too",
)
GROUP_STATE = Pass(
    "group_state",
    "keep counts and exact sums per group, and show the view from them",
    "before changes are taken: the state of a group is a stored view, too",
)
RECOMPUTATION = Pass(
    "recomputation",
    "derive the new state and compare it with the old",
    "after desugar: it only renames flat rules",
)
DELTA_RULES = Pass(
    "delta_rules",
    "the algebra of change, operator by operator",
    "after normalize: it knows the change of single operators",
)
PARTIAL_DIFFERENTIALS = Pass(
    "partial_differentials",
    "a rule per influent and direction, and nodes that accumulate what these find",
    "after unfold: the influents are what bodies read then",
)
PROPAGATION_RULES = Pass(
    "propagation_rules",
    "a rule per body literal and direction, tested for effect",
    "after desugar: a literal of a flat body either changes or only tests",
)
MAINTENANCE_RULES = Pass(
    "maintenance_rules",
    "estimate deletions, rederive, insert, net out",
    "after desugar: a literal of a flat body either changes or only tests",
)
LOOK_ONCE = Pass(
    "look_once",
    "do the beginning of a rederivation once for all facts that share it",
    "after maintenance_rules: it knows the form of rederivations",
)
REDERIVE_ON_DEMAND = Pass(
    "rederive_on_demand",
    "maintenance rules for a view that is not stored",
    "after maintenance_rules: it adds the new state as rules, and what they ask",
)
AGGREGATE_CHANGES = Pass(
    "aggregate_changes",
    "look again at the groups that a change touches",
    "after group_state: what can be continued from there is no longer an aggregate",
)
TRANSITION_RULES = Pass(
    "transition_rules",
    "the new state as rules",
    "after the rules that read new states: it serves those of virtual views",
)
MAGIC_UPDATES = Pass(
    "magic_updates",
    "derive only what the change needs",
    "last: it turns what all the other rules read of virtual views into questions",
)

_STATES = (TRANSITION_RULES, MAGIC_UPDATES)

MAINTAIN: Mapping[str, tuple[Pass, ...]] = {
    "recompute": (*EVALUATE, SPLIT_JOINS, RECOMPUTATION, *_STATES),
    "delta": (*EVALUATE, NORMALIZE, DELTA_RULES, *_STATES),
    "differencing": (*EVALUATE, UNFOLD, PARTIAL_DIFFERENTIALS, *_STATES),
    "rederive": (*EVALUATE, SPLIT_JOINS, MAINTENANCE_RULES, LOOK_ONCE, *_STATES),
    "magic": (*EVALUATE, PROPAGATION_RULES, *_STATES),
    "demand": (*EVALUATE, MAINTENANCE_RULES, REDERIVE_ON_DEMAND, *_STATES),
}
"""By strategy (`runtime/strategies.py`); `auto` takes one of these for each component."""

AGGREGATES = (*EVALUATE, GROUP_STATE, AGGREGATE_CHANGES, PROPAGATION_RULES, *_STATES)
"""Under every strategy but `recompute`, which needs nothing special."""

EVERY_PASS = {
    each.name: each
    for purpose in (EVALUATE, QUERY, *MAINTAIN.values(), AGGREGATES)
    for each in purpose
}
