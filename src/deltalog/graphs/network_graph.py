"""A propagation network as a graph.

A view shows its strategy. An arc shows its differentials, as in `Δ+/Δ−` where rows inserted into
the view come from rows deleted from the influent; after a transaction also the facts that flowed
over it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from deltalog.checks.program import CheckedProgram
from deltalog.graphs.graph import Arc, Graph, Listing, Node, rule_listing
from deltalog.language.ast import Rule
from deltalog.rewrites.names import is_generated
from deltalog.runtime.network import Network, NetworkArc, NetworkNode
from deltalog.runtime.network_text import differential_name, flow_text


def network_graph(network: Network, checked: CheckedProgram, title: str) -> Graph:
    views = {name: node for node in network.nodes for name in node.predicates}
    influents = dict.fromkeys(arc.influent for arc in network.arcs if arc.influent not in views)
    written = rules_by_head(checked.program.definitions)
    return Graph(
        title,
        (
            *(base_node(name, checked) for name in influents),
            *(_node_of_view(name, node, written[name]) for name, node in views.items()),
        ),
        tuple(map(_arc_of_influence, network.arcs)),
    )


def rules_by_head(rules: tuple[Rule, ...]) -> defaultdict[str, list[Rule]]:
    found: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        found[rule.head.predicate].append(rule)
    return found


def base_node(name: str, checked: CheckedProgram) -> Node:
    columns = column_names(name, checked)
    return Node(name, "base", note=columns, facts=(("columns", columns),))


def column_names(name: str, checked: CheckedProgram) -> str:
    return ", ".join(column.name for column in checked.relations[name].columns)


def _node_of_view(name: str, node: NetworkNode, written: list[Rule]) -> Node:
    together = [each for each in node.predicates if each != name]
    facts = {
        "strategy": f"{node.strategy}: {node.reason}",
        "last run": ": ".join(node.ran or ()),
        "recursive": "yes" if node.is_recursive else "",
        "computed with": ", ".join(together),
    }
    return Node(
        name,
        "generated" if is_generated(name) else "view",
        node.is_stored,
        node.strategy,
        tuple((label, text) for label, text in facts.items() if text),
        tuple(_listings_of_view(node, written)),
    )


def _listings_of_view(node: NetworkNode, written: list[Rule]) -> Iterator[Listing]:
    if written:
        yield rule_listing("as written", written)
    for number, stage in enumerate(node.stages, start=1):
        title = f"on a change, part {number}"
        if stage.ranked:
            yield Listing(f"{title}: deletion from {', '.join(stage.ranked)} by rank")
        else:
            yield rule_listing(title, stage.rules)


def _arc_of_influence(arc: NetworkArc) -> Arc:
    signs = dict.fromkeys(f"Δ{each.effect}/Δ{each.influence}" for each in arc.differentials)
    differentials = " ".join(sorted(signs)).replace("-", "−")
    flow = flow_text(*arc.flow) if arc.flow else ""
    driven = defaultdict(list)
    for each in arc.differentials:
        driven[differential_name(arc, each)].append(each.rule)
    return Arc(
        arc.influent,
        arc.affected,
        arc.kind,
        ": ".join(text for text in (differentials, flow) if text),
        (("flow", flow),) if flow else (),
        tuple(rule_listing(name, rules) for name, rules in driven.items()),
    )
