"""The propagation network as data: what is computed where, and what flows along which arc.

    edge -> path     Δ+path/Δ+edge   path__ins(X, Y) :- edge__plus(X, Y), not path__kept(X, Y).
                     Δ-path/Δ-edge   path__suspect(X, Y) :- edge__minus(X, Y).

A node is a component of views with the strategy chosen for it and the rules this strategy made. An
arc leads from an *influent* to a view *affected* by it. On it lie the *differentials*: the made
rules that a change of the influent drives, because it is the first thing they read. Under
`differencing` these are the partial differentials of Risch & Sköld 1999. After a transaction an arc
also knows how many facts flowed over it.

`after_pass` shows a rewrite of update propagation alone, applied to the whole program as far as it
applies; there the states of stored relations are rules too, and not read through overlays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from deltalog.analysis.dependencies import Kind, dependencies
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification,
)
from deltalog.checks.program import CheckedProgram
from deltalog.language.ast import Atom, Rule
from deltalog.language.walk import atoms
from deltalog.plan.ranked_deletion import RankedComponent
from deltalog.rewrites import names
from deltalog.rewrites.aggregate_changes import aggregate_changes
from deltalog.rewrites.delta_rules import delta_rules
from deltalog.rewrites.desugar import desugar
from deltalog.rewrites.look_once import look_once
from deltalog.rewrites.magic_updates import magic_updates
from deltalog.rewrites.maintenance_rules import maintenance_rules
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.partial_differentials import partial_differentials
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.recomputation import recomputation
from deltalog.rewrites.split_joins import split_joins
from deltalog.rewrites.states import unchanged
from deltalog.rewrites.transition_rules import transition_rules
from deltalog.rewrites.unfold import unfold
from deltalog.runtime.database import Database
from deltalog.runtime.fixpoint import Stage
from deltalog.runtime.model import Options, make_model
from deltalog.runtime.propagation import Building, Node, stages
from deltalog.runtime.strategies import Choice

Rules = tuple[Rule, ...]
Sign = OneOf["+", "-", "±"]
Flows = Mapping[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True)
class NetworkStage:
    """Rules that run together; or, without rules, a deletion by rank (`plan/ranked_deletion`)."""

    rules: tuple[Rule, ...]
    ranked: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkNode:
    """A component of views: the strategy chosen for it, why, and the rules it runs, in order.

    `ran` is what `auto` took instead in the last transaction, and why, where that was different.
    """

    predicates: tuple[str, ...]
    strategy: str
    reason: str
    is_recursive: bool
    is_stored: bool
    influents: tuple[str, ...]
    stages: tuple[NetworkStage, ...]
    ran: tuple[str, str] | None = None


@dataclass(frozen=True)
class ArcDifferential:
    """A rule driven by one side of the influent's change; `±` looks at a group again."""

    influence: Sign
    effect: Sign
    rule: Rule

    @property
    def name(self) -> str:
        return self.rule.head.predicate


@dataclass(frozen=True)
class NetworkArc:
    """What a change of `influent` does to `affected`, and how much of it there was."""

    influent: str
    affected: str
    kind: Kind
    differentials: tuple[ArcDifferential, ...]
    flow: tuple[int, int] | None = None


@dataclass(frozen=True)
class Network:
    nodes: tuple[NetworkNode, ...]
    arcs: tuple[NetworkArc, ...]


def network(database: Database, flows: Flows | None = None) -> Network:
    """The network of a database; `flows` are those of its last transaction unless given."""
    propagation = database.propagation
    flowed = (propagation.flows or None) if flows is None else flows
    ran = {node.choice.predicates: node.choice for node in propagation.ran}
    return Network(
        tuple(_node(node, propagation.stored, ran) for node in propagation.nodes),
        tuple(arc for node in propagation.nodes for arc in _arcs(node, flowed)),
    )


def _node(node: Node, stored: frozenset[str], ran: Mapping[tuple[str, ...], Choice]) -> NetworkNode:
    choice = node.choice
    last = ran.get(choice.predicates, choice)
    return NetworkNode(
        choice.predicates,
        choice.strategy,
        choice.reason,
        choice.is_recursive,
        choice.members <= stored,
        node.influents,
        tuple(map(_stage, node.stages)),
        (last.strategy, last.reason) if last.strategy != choice.strategy else None,
    )


def _stage(stage: Stage) -> NetworkStage:
    if isinstance(stage, RankedComponent):
        return NetworkStage((), stage.predicates)
    return NetworkStage(stage)


# --- arcs


_EFFECTS: Mapping[str, Sign] = {
    names.plus(""): "+",
    names.inserted(""): "+",
    names.returned(""): "+",
    names.minus(""): "-",
    names.deleted(""): "-",
    names.suspect(""): "-",
    names.touched(""): "±",
    names.gained(""): "±",
    names.lost(""): "±",
}
_OWN_CHANGES: tuple[tuple[Sign, Callable[[str], str]], ...] = (
    ("+", names.plus),
    ("-", names.minus),
    ("+", names.inserted),
    ("+", names.returned),
    ("-", names.deleted),
)
_CHANGES = _OWN_CHANGES[:2]


def _arcs(node: Node, flows: Flows | None) -> Iterator[NetworkArc]:
    """An arc for every view and what its rules read, the component's own views last.

    What flows inside a component goes round and round and is not counted.
    """
    members = node.choice.members
    kinds: dict[tuple[str, str], Kind] = {}
    for arc in dependencies(node.choice.rules).arcs:
        pair = arc.body, arc.head
        kinds[pair] = kinds.get(pair, arc.kind) if arc.kind == "positive" else arc.kind
    for pair in sorted(kinds, key=lambda pair: (pair[0] in members, pair)):
        is_inside = pair[0] in members
        flow = None if flows is None or is_inside else flows.get(pair, (0, 0))
        yield NetworkArc(*pair, kinds[pair], tuple(_differentials(node, *pair)), flow)


def _differentials(node: Node, influent: str, affected: str) -> Iterator[ArcDifferential]:
    is_own = influent in node.choice.members
    driving = {change(influent): sign for sign, change in (_OWN_CHANGES if is_own else _CHANGES)}
    for rule in node.program.rules:
        first = rule.body[0] if rule.body else None
        if not isinstance(first, Atom) or first.predicate not in driving:
            continue
        effect = _effect(rule)
        is_net = _is_net(rule, first, affected)
        if effect is None or is_net or _affected(rule, node.choice) != affected:
            continue
        yield ArcDifferential(driving[first.predicate], effect, rule)


def _affected(rule: Rule, choice: Choice) -> str | None:
    """The view that a made rule belongs to: `p` for `p__by1_2__plus`."""
    fitting = [name for name in choice.predicates if rule.head.predicate.startswith(f"{name}__")]
    return max(fitting, key=len, default=None)


def _effect(rule: Rule) -> Sign | None:
    made = rule.head.predicate
    return next((sign for ending, sign in _EFFECTS.items() if made.endswith(ending)), None)


def _is_net(rule: Rule, first: Atom, view: str) -> bool:
    """Whether it only turns an estimate into the exact change of the same view."""
    return (rule.head.predicate, first.predicate) in (
        (names.plus(view), names.inserted(view)),
        (names.plus(view), names.returned(view)),
        (names.returned(view), names.inserted(view)),
        (names.minus(view), names.deleted(view)),
    )


# --- the program after one rewrite


def after_pass(database: Database, name: str) -> Partition:
    """The desugared program after this rewrite of update propagation alone, in parts, lowest first.

    A component of views that the rewrite does not apply to keeps its rules as they are.
    """
    checked = database.model.checked
    if name == "group_state":
        return component_partition(make_model(checked, Options()).rules)
    if name == "rederive_on_demand":
        return _on_demand(checked)
    core = desugar(checked.program, checked.relations)
    parts = component_partition(core.rules)
    if name == "unfold":
        return _unfolded(parts)
    base = {n: each.arity for n, each in checked.relations.items() if each.kind == "base"}
    if name == "magic_updates":
        return _magic(core.rules, base)
    direct = transition_rules((), base) if name == "transition_rules" else ()
    return tuple(part for part in (direct, *map(_REWRITES[name], parts)) if part)


def _is_recursive(part: Rules) -> bool:
    heads = {rule.head.predicate for rule in part}
    return any(atom.predicate in heads for rule in part for atom, _ in atoms(rule.body))


def _unless_aggregate(rewrite: Callable[[Rules], Rules]) -> Callable[[Rules], Rules]:
    """The rewrite for rules without aggregates; these have one way to change for all."""

    def rewritten(part: Rules) -> Rules:
        totals = [rule for rule in part if rule.is_aggregate]
        if not totals:
            return rewrite(part)
        return tuple(x for rule in totals for x in aggregate_changes(rule, unchanged, names.new))

    return rewritten


def _normalized(part: Rules) -> Rules:
    return part if any(rule.is_aggregate for rule in part) else normalize(part)


def _maintained(part: Rules) -> Rules:
    return maintenance_rules(part, {rule.head.predicate for rule in part})


def _looked_once(part: Rules) -> Rules:
    maintained = _maintained(part)
    if _is_recursive(part):
        return maintained
    return look_once(maintained, {rule.head.predicate for rule in part})


def _differentiated(part: Rules) -> Rules:
    return part if _is_recursive(part) else partial_differentials(part)


_REWRITES: Mapping[str, Callable[[Rules], Rules]] = {
    "normalize": _normalized,
    "split_joins": split_joins,
    "delta_rules": _unless_aggregate(lambda part: delta_rules(normalize(part))),
    "transition_rules": lambda part: transition_rules(part, {}),
    "propagation_rules": propagation_rules,
    "maintenance_rules": _unless_aggregate(_maintained),
    "look_once": _unless_aggregate(_looked_once),
    "partial_differentials": _unless_aggregate(_differentiated),
    "recomputation": recomputation,
    "aggregate_changes": _unless_aggregate(lambda part: part),
}


def _unfolded(parts: Partition) -> Partition:
    """Views that are neither recursive nor aggregates, expanded into those that use them."""
    definitions: dict[str, Rules] = {}
    made = []
    for part in parts:
        is_aggregate = any(rule.is_aggregate for rule in part)
        rules = part if is_aggregate else unfold(part, definitions)
        if not _is_recursive(part) and not is_aggregate:
            definitions[part[0].head.predicate] = rules
        made.append(rules)
    return tuple(made)


def _magic(rules: Rules, base: Mapping[str, int]) -> Partition:
    propagated = propagation_rules(rules)
    augmented = (*rules, *propagated, *transition_rules(rules, base))
    read = {state(name) for name in base for state in (unchanged, names.plus, names.minus)}
    deltas = dict.fromkeys(rule.head.predicate for rule in propagated)
    return soft_partition(
        magic_updates(augmented, deltas, read), names.source, stratification(augmented)
    )


def _on_demand(checked: CheckedProgram) -> Partition:
    """As it runs for virtual views: what is asked of views below is part of the rewriting."""
    model = make_model(checked, Options(materialize=False, strategy="demand"))
    building = Building(model.relations, model.stored)
    for choice in model.choices:
        building.add(choice)
    programs = map(building.program, model.choices)
    return tuple(
        tuple(rule for stage in map(_stage, stages(each, model.stored)) for rule in stage.rules)
        for each in programs
    )
