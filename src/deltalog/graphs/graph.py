"""A directed graph to be shown: relations and views as nodes, an arc from each to what reads it.

    Arc("edge", "path", "positive"), Arc("path", "path", "positive")

A propagation network and a dependency graph are both brought to this form, and every output format
starts from it. Nothing here says where anything is drawn: layout is left to the tool that renders
Mermaid or DOT, and on the page to a library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf

from deltalog.analysis.dependencies import Kind
from deltalog.language.ast import Rule
from deltalog.language.printer import print_rule
from deltalog.runtime.explanation_text import origin_text

NodeKind = OneOf["base", "view", "generated"]


@dataclass(frozen=True)
class RuleText:
    """A rule as it is printed, and where it comes from."""

    text: str
    origin: str = ""


@dataclass(frozen=True)
class Listing:
    """Rules under a title."""

    title: str
    rules: tuple[RuleText, ...] = ()


@dataclass(frozen=True)
class Node:
    """A relation or view; `note` is its second line, `facts` and `listings` are its details."""

    name: str
    kind: NodeKind
    is_stored: bool = True
    note: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    listings: tuple[Listing, ...] = ()


@dataclass(frozen=True)
class Arc:
    """From a relation to a view that reads it, by the names of the nodes."""

    source: str
    target: str
    kind: Kind = "positive"
    label: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    listings: tuple[Listing, ...] = ()


@dataclass(frozen=True)
class Graph:
    title: str
    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]

    def __post_init__(self) -> None:
        names = {node.name for node in self.nodes}
        assert len(names) == len(self.nodes), "two nodes have one name"
        assert all({arc.source, arc.target} <= names for arc in self.arcs), "an arc has no end"


def rule_listing(title: str, rules: Iterable[Rule]) -> Listing:
    return Listing(title, tuple(RuleText(print_rule(rule), origin_text(rule)) for rule in rules))


def arc_text(arc: Arc) -> str:
    """The label of an arc, with its kind unless that is positive.

    >>> arc_text(Arc("low", "fine", "negative", "+1 −0"))
    'not: +1 −0'
    """
    kind = {"positive": "", "negative": "not", "aggregate": "aggregate"}[arc.kind]
    return ": ".join(text for text in (kind, arc.label) if text)


def replace_unprintable(text: str) -> str:
    """The text with what no output format can hold replaced: control and lone surrogate characters.

    >>> replace_unprintable("a\\x00b\\nc")
    'a\ufffdb\\nc'
    """
    return "".join(each if _is_printable(each) else "\ufffd" for each in text)


def _is_printable(character: str) -> bool:
    number = ord(character)
    is_control = number < 32 or 127 <= number < 160
    is_lone = 0xD800 <= number < 0xE000 or number & 0xFFFE == 0xFFFE
    return character in "\n\t" or not (is_control or is_lone)
