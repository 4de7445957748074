"""Proofs as graphs: an arc leads from each premise to what it proves.

Facts are nodes; a base fact is drawn as a base relation is. What is absent, or compared, is a node
of its own kind. In the proof of a set the nodes are tables, and in between stand the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from deltalog.analysis.dependencies import Kind
from deltalog.graphs.graph import Arc, Graph, Listing, Node, NodeKind, RuleText
from deltalog.graphs.reason_graph import why_changed_graph, why_not_graph
from deltalog.runtime.why.change_reason import WhyChanged
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.sets import ProofRule, ProofTable, SetProof
from deltalog.runtime.why.why_not import WhyNot

NODES_MAX = 500
"""Steps that are drawn; of more nobody could see anything."""
_KINDS: dict[str, NodeKind] = {"base": "base", "absent": "generated", "comparison": "generated"}


def proof_graph(proof: Proof, title: str = "") -> Graph:
    """A proof; subproofs that are shared are drawn once."""
    return _graph_of_steps(proof.steps(), title or proof.conclusion)


def derivations_graph(derivations: Derivations, title: str = "") -> Graph:
    """All derivations: a fact with several has a node for each instance in between."""
    seen: dict[str, Node] = {}
    arcs: dict[tuple[str, str, str], Arc] = {}
    for number, step in enumerate(derivations.steps[:NODES_MAX], start=1):
        seen[step.conclusion] = _node_of_step(step, with_rule=False)
        between = f"{step.place or 'rule'} #{number}"
        seen[between] = Node(between, "generated", listings=_listings_of_step(step))
        arcs[between, step.conclusion, ""] = Arc(between, step.conclusion)
        for premise in step.premises:
            seen.setdefault(premise.conclusion, _node_of_step(premise, with_rule=False))
            arc = Arc(premise.conclusion, between, _arc_kind(step, premise))
            arcs[arc.source, arc.target, arc.kind] = arc
    return Graph(title or derivations.conclusion, tuple(seen.values()), tuple(arcs.values()))


def set_proof_graph(proof: SetProof, title: str = "") -> Graph:
    """The tables of a proof over sets, and the rules between them."""
    nodes = {table.relation: _table_node(table) for table in proof.tables}
    arcs: list[Arc] = []
    for number, rule in enumerate(proof.rules, start=1):
        between = f"{rule.place or 'rule'} #{number}"
        nodes[between] = _rule_node(between, rule)
        arcs.append(Arc(between, rule.conclusion, label=f"{rule.count:,}"))
        kind: Kind = "aggregate" if rule.is_aggregate else "positive"
        arcs += [Arc(name, between, kind) for name in rule.premises]
        for name in rule.absent:
            nodes.setdefault(name, Node(name, "generated", note="no such facts"))
            arcs.append(Arc(name, between, "negative"))
    return Graph(title or proof.conclusion, tuple(nodes.values()), tuple(arcs))


def _graph_of_steps(steps: Iterable[Proof], title: str) -> Graph:
    nodes: dict[str, Node] = {}
    arcs: dict[tuple[str, str], Arc] = {}
    for step in steps:
        if len(nodes) >= NODES_MAX:
            break
        nodes[step.conclusion] = _node_of_step(step)
        for premise in step.premises:
            arc = Arc(premise.conclusion, step.conclusion, _arc_kind(step, premise))
            arcs[arc.source, arc.target] = arc
    drawn = [arc for arc in arcs.values() if arc.source in nodes]
    return Graph(title, tuple(nodes.values()), tuple(drawn))


def _node_of_step(step: Proof, with_rule: bool = True) -> Node:
    note = {"absent": "no such fact", "comparison": ""}.get(step.kind, "")
    if step.contributors is not None:
        note = f"{step.contributors:,} rows"
    elif with_rule and step.place:
        note = step.place
    said = (("sentence", step.sentence),) if step.sentence else ()
    listings = _listings_of_step(step) if with_rule else ()
    return Node(step.conclusion, _KINDS.get(step.kind, "view"), True, note, said, listings)


def _listings_of_step(step: Proof) -> tuple[Listing, ...]:
    if step.rule is None:
        return ()
    return (Listing("rule", (RuleText(step.rule, step.place or ""),)),)


def _arc_kind(step: Proof, premise: Proof) -> Kind:
    if premise.kind == "absent":
        return "negative"
    return "aggregate" if step.kind == "aggregate" else "positive"


def _table_node(table: ProofTable) -> Node:
    note = f"{table.count:,} fact{'' if table.count == 1 else 's'}"
    return Node(table.relation, "base" if table.is_base else "view", True, note)


def _rule_node(name: str, rule: ProofRule) -> Node:
    listings = (Listing("rule", (RuleText(rule.rule, rule.place),)),)
    said = (("sentence", rule.sentence),) if rule.sentence else ()
    return Node(name, "generated", facts=said, listings=listings)


Drawable: TypeAlias = Proof | SetProof | Derivations | WhyNot | WhyChanged


def answer_graph(answer: Drawable, title: str = "") -> Graph:
    """An answer of `why`, `why_not` or `why_changed` as a graph."""
    match answer:
        case Proof():
            return proof_graph(answer, title)
        case SetProof():
            return set_proof_graph(answer, title)
        case Derivations():
            return derivations_graph(answer, title)
        case WhyNot():
            return why_not_graph(answer, title)
        case WhyChanged():
            return why_changed_graph(answer, title)
