"""Graphs of what blocks a fact, and of what changed one.

    why not       edge(3, 4)   ─▶  line 4 #2  ─▶  path(3, 1)     literals that hold, and the one
                  path(4, 1)   ─▶                                that blocks the rule, dashed
    why changed   -edge(2, 3)  ─▶  line 3 #1  ─▶  -path(2, 3)    from changes of base facts and of
                                                                 rules to the change of the fact

Between facts stand the rules, one node for each instance. What does not hold is dashed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from deltalog.analysis.dependencies import Kind
from deltalog.graphs.graph import Arc, Graph, Listing, Node, NodeKind, RuleText
from deltalog.runtime.why.change_reason import ChangeStep, WhyChanged
from deltalog.runtime.why.why_not import BlockedRule, WhyNot

NODES_MAX = 500
"""Nodes that are drawn; of more nobody could see anything."""
ABSENT = "not "


@dataclass
class _Drawing:
    """Nodes and arcs so far; a node that is drawn already stays as it is."""

    nodes: dict[str, Node] = field(default_factory=dict)
    arcs: dict[tuple[str, str], Arc] = field(default_factory=dict)

    def node(
        self, name: str, kind: NodeKind, holds: bool = True, note: str = "", said: str | None = None
    ) -> None:
        facts = (("sentence", said),) if said else ()
        self.nodes.setdefault(name, Node(name, kind, holds, note, facts))

    def rule(self, place: str, rule: str, conclusion: str) -> str:
        """A node for an instance of a rule, with an arc to what it derives."""
        name = f"{place or 'rule'} #{len(self.nodes)}"
        listing = Listing("rule", (RuleText(rule, place),))
        self.nodes[name] = Node(name, "generated", listings=(listing,))
        self.arc(name, conclusion)
        return name

    def arc(self, source: str, target: str, label: str = "", kind: Kind = "positive") -> None:
        if source in self.nodes and target in self.nodes:
            self.arcs[source, target] = Arc(source, target, kind, label)

    @property
    def is_full(self) -> bool:
        return len(self.nodes) >= NODES_MAX

    def graph(self, title: str) -> Graph:
        return Graph(title, tuple(self.nodes.values()), tuple(self.arcs.values()))


def _literal_kind(literal: str) -> Kind:
    return "negative" if literal.startswith(ABSENT) else "positive"


def why_not_graph(answer: WhyNot, title: str = "") -> Graph:
    """Every rule that could derive a fact, with the literal that blocks it."""
    drawing = _Drawing()
    kind: NodeKind = "base" if answer.is_base else "view"
    drawing.node(answer.conclusion, kind, False, "does not hold")
    for rule in answer.rules:
        if not drawing.is_full:
            _draw_blocked(drawing, rule, answer.conclusion)
    if answer.realization is not None:
        for text in answer.changes:
            drawing.node(text, "base", note="would make it true")
            drawing.arc(text, answer.conclusion, "would make it true")
    return drawing.graph(title or f"{answer.conclusion} does not hold")


def _draw_blocked(drawing: _Drawing, rule: BlockedRule, conclusion: str) -> None:
    between = drawing.rule(rule.place, rule.rule, conclusion)
    drawing.node(rule.literal, "view", False, rule.reason, rule.sentence)
    drawing.arc(rule.literal, between, "blocked", _literal_kind(rule.literal))
    for text in rule.holding:
        drawing.node(text, "generated", note="holds")
        drawing.arc(text, between, kind=_literal_kind(text))
    for text in rule.others:
        drawing.node(text, "view", False, "remains")
        drawing.arc(text, between, kind=_literal_kind(text))


def why_changed_graph(answer: WhyChanged, title: str = "") -> Graph:
    """From the changes of base facts and rules to the change of the fact, step by step."""
    drawing = _Drawing()
    causes = set(answer.cause_texts)
    heads = {step.conclusion for step in answer.steps}
    for text in (f"{answer.op}{answer.conclusion}", *answer.cause_texts[:NODES_MAX]):
        drawing.node(text, "base" if text in causes else "view", text.startswith("+"))
    for step in answer.steps:
        if not drawing.is_full:
            _draw_step(drawing, step, causes | heads)
    return drawing.graph(title or f"{answer.op}{answer.conclusion}, version {answer.version}")


def _draw_step(drawing: _Drawing, step: ChangeStep, followed: set[str]) -> None:
    drawing.node(step.conclusion, "view", step.conclusion.startswith("+"), said=step.sentence)
    between = drawing.rule(step.place, step.rule, step.conclusion)
    for text in step.changed:
        note = "" if text in followed else "not followed"
        drawing.node(text, "view", text.startswith("+"), note)
        drawing.arc(text, between)
    for text in step.kept:
        drawing.node(text, "generated", note="did not change")
        drawing.arc(text, between, kind=_literal_kind(text))
    for change in step.program:
        name = f"{change.op} {change.text}"
        drawing.node(name, "base", change.op == "+", change.claim)
        drawing.arc(name, between)
