"""An explanation as text and as JSON.

strata
  0  edge
  1  path

dependencies
  path <- edge, path

rules, part 1
  path(X, Y) :- edge(X, Y).                     % graph.dl:2:1
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any

from deltalog.language.ast import DisjunctiveRule, Rule
from deltalog.language.printer import print_disjunctive_rule, print_rule
from deltalog.plan.text import plan_text
from deltalog.runtime.explain import Arc, Explanation

SECTIONS = ("dependencies", "strata", "rules", "plan")
INDENT = "  "
_PREFIX = {"positive": "", "negative": "not ", "aggregate": "aggregate of "}


def explanation_text(explanation: Explanation, sections: Iterable[str] = SECTIONS) -> str:
    """The sections asked for, in the order asked for."""
    texts = {
        "dependencies": lambda: _dependencies_text(explanation.arcs),
        "strata": lambda: strata_text(explanation.strata),
        "rules": lambda: _rules_text(explanation),
        "plan": lambda: _plans_text(explanation),
    }
    return "\n\n".join(text for section in sections if (text := texts[section]()))


def strata_text(strata: Sequence[Sequence[str]]) -> str:
    lines = [f"{number:>3}  {', '.join(names) or '-'}" for number, names in enumerate(strata)]
    return "\n".join(("strata", *lines))


def _dependencies_text(arcs: Sequence[Arc]) -> str:
    below: dict[str, list[str]] = {}
    for arc in arcs:
        below.setdefault(arc.head, []).append(f"{_PREFIX[arc.kind]}{arc.body}")
    lines = [f"{head} <- {', '.join(bodies)}" for head, bodies in below.items()]
    return text_section("dependencies", lines or ["none"])


def _rules_text(explanation: Explanation) -> str:
    parts = [
        text_section(f"rules, part {number}", rule_lines(part))
        for number, part in enumerate(explanation.partition, start=1)
    ]
    return "\n\n".join(parts) or text_section("rules", ["none"])


def rule_lines(rules: Sequence[Rule | DisjunctiveRule]) -> list[str]:
    """Each rule with where it comes from, as a comment to its right."""
    texts = [rule_text(rule) for rule in rules]
    lengths = [len(text) - text.rfind("\n") - 1 for text in texts]
    blanks = [" " * (max(lengths) - length) for length in lengths]
    return [
        f"{text}{blank}  % {origin_text(rule)}"
        for text, blank, rule in zip(texts, blanks, rules, strict=True)
    ]


def rule_text(rule: Rule | DisjunctiveRule) -> str:
    return print_rule(rule) if isinstance(rule, Rule) else print_disjunctive_rule(rule)


def origin_text(rule: Rule | DisjunctiveRule) -> str:
    """The rewrites that made a rule and the place it was written at, or nothing."""
    return rule.origin.chain() if rule.origin.written or rule.origin.rewrite else ""


def _plans_text(explanation: Explanation) -> str:
    parts = [
        text_section(f"plan, part {number}", [plan_text(plans)])
        for number, plans in enumerate(explanation.plans, start=1)
    ]
    return "\n\n".join(parts)


def text_section(title: str, lines: Iterable[str]) -> str:
    return "\n".join((title, *(indent(line, INDENT) for line in lines)))


# --- JSON


def explanation_json(explanation: Explanation, sections: Iterable[str] = SECTIONS) -> str:
    chosen = set(sections)
    document: dict[str, Any] = {}
    if "strata" in chosen:
        document["strata"] = explanation.strata
    if "dependencies" in chosen:
        document["dependencies"] = [
            {"head": arc.head, "body": arc.body, "kind": arc.kind} for arc in explanation.arcs
        ]
    if chosen & {"rules", "plan"}:
        document["parts"] = [
            _part_record(explanation, number, chosen)
            for number in range(len(explanation.partition))
        ]
    return json.dumps(document, indent=2, ensure_ascii=False)


def _part_record(explanation: Explanation, number: int, chosen: set[str]) -> dict[str, Any]:
    part: dict[str, Any] = {}
    if "rules" in chosen:
        part["rules"] = rule_records(explanation.partition[number])
    if "plan" in chosen and explanation.plans:
        part["plan"] = plan_text(explanation.plans[number]).split("\n")
    return part


def rule_records(rules: Iterable[Rule | DisjunctiveRule]) -> list[dict[str, str]]:
    return [
        {"text": rule_text(rule), "head": _head_text(rule), "origin": origin_text(rule)}
        for rule in rules
    ]


def _head_text(rule: Rule | DisjunctiveRule) -> str:
    heads = (rule.head,) if isinstance(rule, Rule) else rule.heads
    return " ; ".join(head.predicate for head in heads) or "false"
