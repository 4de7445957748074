"""Which predicate depends on which, and how.

    one_way(X) :- path(X, Y), not path(Y, X).    one_way → path, positive and negative

An aggregate head depends on its body as strictly as a negation does: the body must be complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of
from deltalog.source import Span

Kind = OneOf["positive", "negative", "aggregate"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """`head` is derived from `body` by a literal written at `span`."""

    head: str
    body: str
    kind: Kind
    span: Span | None = None

    @property
    def is_strict(self) -> bool:
        """Whether the body predicate must be complete before the head is derived."""
        return self.kind != "positive"


@dataclass(frozen=True)
class Dependencies:
    """All dependencies of a rule set, and its strongly connected components, lowest first."""

    arcs: tuple[Dependency, ...]
    components: tuple[frozenset[str], ...]

    def component_of(self) -> Mapping[str, int]:
        return {name: i for i, component in enumerate(self.components) for name in component}


def dependencies_of(rules: Iterable[Rule]) -> Dependencies:
    arcs = tuple(arc for rule in rules for arc in _arcs_of_rule(rule))
    graph: dict[str, list[str]] = {}
    for arc in arcs:
        graph.setdefault(arc.head, []).append(arc.body)
        graph.setdefault(arc.body, [])
    for rule in rules:
        graph.setdefault(rule.head.predicate, [])
    return Dependencies(arcs, tuple(strong_components(graph)))


def _arcs_of_rule(rule: Rule) -> Iterator[Dependency]:
    head = rule.head.predicate
    kind: Kind = "aggregate" if rule.is_aggregate else "positive"
    for atom, positive in atoms_of(rule.body):
        yield Dependency(head, atom.predicate, kind if positive else "negative", atom.span)


def strong_components(graph: Mapping[str, Iterable[str]]) -> Iterator[frozenset[str]]:
    """Strongly connected components, a component after all it points to (Tarjan, iterative)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in graph:
        if root in index:
            continue
        work: list[tuple[str, Iterator[str]]] = []
        _enter_node(root, graph, index, low, stack, on_stack, work)
        while work:
            node, successors = work[-1]
            successor = next(successors, None)
            if successor is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    yield _pop_component(node, stack, on_stack)
            elif successor not in index:
                _enter_node(successor, graph, index, low, stack, on_stack, work)
            elif successor in on_stack:
                low[node] = min(low[node], index[successor])


def _enter_node(
    node: str,
    graph: Mapping[str, Iterable[str]],
    index: dict[str, int],
    low: dict[str, int],
    stack: list[str],
    on_stack: set[str],
    work: list[tuple[str, Iterator[str]]],
) -> None:
    index[node] = low[node] = len(index)
    stack.append(node)
    on_stack.add(node)
    work.append((node, iter(graph.get(node, ()))))


def _pop_component(node: str, stack: list[str], on_stack: set[str]) -> frozenset[str]:
    component: set[str] = set()
    while node not in component:
        member = stack.pop()
        on_stack.discard(member)
        component.add(member)
    return frozenset(component)
