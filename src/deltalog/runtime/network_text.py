"""A propagation network as text and as JSON.

node 1: path
  strategy   rederive: it is stored
  influents  edge
  part 1
    path__suspect(X, Y) :- edge__minus(X, Y).     % maintenance_rules ← graph.dl:2:1
    …

arcs
  edge -> path  +1 −0
    Δ+path/Δ+edge  path__ins(X, Y) :- edge__plus(X, Y), not path__kept(X, Y).
    Δ-path/Δ-edge  path__suspect(X, Y) :- edge__minus(X, Y).
"""

from __future__ import annotations

import json
from typing import Any

from deltalog.language.printer import print_rule
from deltalog.runtime.explanation_text import INDENT, rule_lines, rule_records, text_section
from deltalog.runtime.network import (
    ArcDifferential,
    Network,
    NetworkArc,
    NetworkNode,
    NetworkStage,
)


def network_text(network: Network) -> str:
    nodes = [_node_text(number, node) for number, node in enumerate(network.nodes, start=1)]
    arcs = text_section("arcs", [arc_text(arc) for arc in network.arcs] or ["none"])
    return "\n\n".join((*nodes, arcs))


def _node_text(number: int, node: NetworkNode) -> str:
    kind = "" if node.is_stored else ", virtual"
    kind += ", recursive" if node.is_recursive else ""
    lines = [
        f"strategy   {node.strategy}: {node.reason}",
        *([f"last run   {node.ran[0]}: {node.ran[1]}"] if node.ran else []),
        f"influents  {', '.join(node.influents) or '-'}",
    ]
    parts = [_stage_text(number, stage) for number, stage in enumerate(node.stages, start=1)]
    return text_section(f"node {number}: {', '.join(node.predicates)}{kind}", (*lines, *parts))


def _stage_text(number: int, stage: NetworkStage) -> str:
    if stage.ranked:
        return f"part {number}\n{INDENT}deletion from {', '.join(stage.ranked)} by rank"
    return text_section(f"part {number}", rule_lines(stage.rules))


def arc_text(arc: NetworkArc) -> str:
    """An arc with its differentials, a line for each."""
    flow = f"  {flow_text(*arc.flow)}" if arc.flow else ""
    title = f"{arc.influent} -> {arc.affected}{flow}"
    names = [differential_name(arc, each) for each in arc.differentials]
    width = max(map(len, names), default=0)
    rules = [
        print_rule(each.rule).replace("\n", f"\n{' ' * width}  ") for each in arc.differentials
    ]
    lines = [f"{name:<{width}}  {rule}" for name, rule in zip(names, rules, strict=True)]
    return text_section(title, lines or ["no differential: the new state is recomputed"])


def flow_text(inserted: int, deleted: int) -> str:
    """
    >>> flow_text(1200, 0)
    '+1,200 −0'
    """
    return f"+{inserted:,} −{deleted:,}"


def differential_name(arc: NetworkArc, differential: ArcDifferential) -> str:
    """Name a differential: `Δ-one_way/Δ+path` deletes from `one_way` for insertions into `path`."""
    return f"Δ{differential.effect}{arc.affected}/Δ{differential.influence}{arc.influent}"


# --- JSON


def network_json(network: Network) -> str:
    document = {
        "nodes": [_node_record(node) for node in network.nodes],
        "arcs": [_arc_record(arc) for arc in network.arcs],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _node_record(node: NetworkNode) -> dict[str, Any]:
    ran = {"strategy": node.ran[0], "reason": node.ran[1]} if node.ran else None
    return {
        "predicates": node.predicates,
        "strategy": node.strategy,
        "reason": node.reason,
        **({"ran": ran} if ran else {}),
        "recursive": node.is_recursive,
        "stored": node.is_stored,
        "influents": node.influents,
        "parts": [
            {"ranked_deletion": stage.ranked}
            if stage.ranked
            else {"rules": rule_records(stage.rules)}
            for stage in node.stages
        ],
    }


def _arc_record(arc: NetworkArc) -> dict[str, Any]:
    record: dict[str, Any] = {
        "influent": arc.influent,
        "affected": arc.affected,
        "kind": arc.kind,
        "differentials": [
            {
                "name": each.name,
                "influence": each.influence,
                "effect": each.effect,
                "rule": print_rule(each.rule),
            }
            for each in arc.differentials
        ],
    }
    if arc.flow is not None:
        record |= {"inserted": arc.flow[0], "deleted": arc.flow[1]}
    return record
