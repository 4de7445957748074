"""The propagation network as data: what is computed where, and what flows along which arc.

    edge -> path     Δ+path/Δ+edge   path__ins(X, Y) :- edge__plus(X, Y), not path__kept(X, Y).
                     Δ-path/Δ-edge   path__suspect(X, Y) :- edge__minus(X, Y).

A node is a component of views with the strategy chosen for it and the rules this strategy made. An
arc leads from an *influent* to a view *affected* by it. On it lie the *differentials*: the made
rules that a change of the influent drives, because it is the first thing they read. Under
`differencing` these are the partial differentials of Risch & Sköld 1999. After a transaction an arc
also knows how many facts flowed over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from deltalog.analysis.dependencies import Kind, dependencies_of
from deltalog.language.ast import Atom, Rule
from deltalog.plan.ranked_deletion import RankedComponent
from deltalog.rewrites import names
from deltalog.rewrites.strategies import Choice
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import Stage
from deltalog.runtime.nodes import Node

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
    """The rules from changes of `influent` to changes of `affected`, and how many facts flowed."""

    influent: str
    affected: str
    kind: Kind
    differentials: tuple[ArcDifferential, ...]
    flow: tuple[int, int] | None = None


@dataclass(frozen=True)
class Network:
    nodes: tuple[NetworkNode, ...]
    arcs: tuple[NetworkArc, ...]


def network_of(database: MemoryDatabase, flows: Flows | None = None) -> Network:
    """The network of a database; `flows` are those of its last transaction unless given."""
    propagation = database.propagation
    flowed = (propagation.flows or None) if flows is None else flows
    ran = {node.choice.predicates: node.choice for node in propagation.ran}
    return Network(
        tuple(_network_node(node, propagation.stored, ran) for node in propagation.nodes),
        tuple(arc for node in propagation.nodes for arc in _node_arcs(node, flowed)),
    )


def _network_node(
    node: Node, stored: frozenset[str], ran: Mapping[tuple[str, ...], Choice]
) -> NetworkNode:
    choice = node.choice
    last = ran.get(choice.predicates, choice)
    return NetworkNode(
        choice.predicates,
        choice.strategy,
        choice.reason,
        choice.is_recursive,
        choice.members <= stored,
        node.influents,
        tuple(map(_network_stage, node.stages)),
        (last.strategy, last.reason) if last.strategy != choice.strategy else None,
    )


def _network_stage(stage: Stage) -> NetworkStage:
    if isinstance(stage, RankedComponent):
        return NetworkStage((), stage.predicates)
    return NetworkStage(stage)


# --- arcs


_EFFECTS: Mapping[str, Sign] = {
    names.plus_name(""): "+",
    names.inserted_name(""): "+",
    names.returned_name(""): "+",
    names.minus_name(""): "-",
    names.overdeleted_name(""): "-",
    names.suspect_name(""): "-",
    names.touched_name(""): "±",
    names.inserted_bindings_name(""): "±",
    names.deleted_bindings_name(""): "±",
}
_OWN_CHANGES: tuple[tuple[Sign, Callable[[str], str]], ...] = (
    ("+", names.plus_name),
    ("-", names.minus_name),
    ("+", names.inserted_name),
    ("+", names.returned_name),
    ("-", names.overdeleted_name),
)
_CHANGES = _OWN_CHANGES[:2]


def _node_arcs(node: Node, flows: Flows | None) -> Iterator[NetworkArc]:
    """An arc for every view and what its rules read, the component's own views last.

    What flows inside a component goes round and round and is not counted.
    """
    members = node.choice.members
    kinds: dict[tuple[str, str], Kind] = {}
    for arc in dependencies_of(node.choice.rules).arcs:
        pair = arc.body, arc.head
        kinds[pair] = kinds.get(pair, arc.kind) if arc.kind == "positive" else arc.kind
    for pair in sorted(kinds, key=lambda pair: (pair[0] in members, pair)):
        is_inside = pair[0] in members
        flow = None if flows is None or is_inside else flows.get(pair, (0, 0))
        yield NetworkArc(*pair, kinds[pair], tuple(_arc_differentials(node, *pair)), flow)


def _arc_differentials(node: Node, influent: str, affected: str) -> Iterator[ArcDifferential]:
    is_own = influent in node.choice.members
    driving = {change(influent): sign for sign, change in (_OWN_CHANGES if is_own else _CHANGES)}
    for rule in node.compiled.form.augmented:
        first = rule.body[0] if rule.body else None
        if not isinstance(first, Atom) or first.predicate not in driving:
            continue
        effect = _rule_effect(rule)
        is_net = _is_net(rule, first, affected)
        if effect is None or is_net or _affected_view(rule, node.choice) != affected:
            continue
        yield ArcDifferential(driving[first.predicate], effect, rule)


def _affected_view(rule: Rule, choice: Choice) -> str | None:
    """The view that a made rule belongs to: `p` for `p__by1_2__plus`."""
    fitting = [name for name in choice.predicates if rule.head.predicate.startswith(f"{name}__")]
    return max(fitting, key=len, default=None)


def _rule_effect(rule: Rule) -> Sign | None:
    made = rule.head.predicate
    return next((sign for ending, sign in _EFFECTS.items() if made.endswith(ending)), None)


def _is_net(rule: Rule, first: Atom, view: str) -> bool:
    """Whether it only turns an estimate into the exact change of the same view."""
    return (rule.head.predicate, first.predicate) in (
        (names.plus_name(view), names.inserted_name(view)),
        (names.plus_name(view), names.returned_name(view)),
        (names.returned_name(view), names.inserted_name(view)),
        (names.minus_name(view), names.overdeleted_name(view)),
    )
