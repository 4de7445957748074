"""How a rule of AMOSQL is monitored: its condition and action, and the arcs that trigger it.

    monitor_items
      condition
        cnd_monitor_items(I) :- quantity(I, Quantity), threshold(I, Threshold), …
      expanded condition
        cnd_monitor_items(I) :- quantity(I, Quantity), supplies(U3, U1), …
      action
        act_monitor_items(I): call order(I, MaxStock - Quantity) where …
      arcs
        quantity -> cnd_monitor_items
          Δ+cnd_monitor_items/Δ+quantity  …

The condition is expanded down to stored functions, and each of these is an influent: the flat
network of Risch & Sköld 1999, with the partial differentials of each arc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from deltalog.checks.program import check_program
from deltalog.diagnostics.report import DataError
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.amosql.rules import (
    TranslatedRule,
    action_name,
    condition_name,
    translate_rule,
)
from deltalog.language.amosql.schema import Schema
from deltalog.language.amosql.translation import SchemaTranslator
from deltalog.language.ast import ActiveRule, Atom, Program, Rule
from deltalog.language.printer import print_action, print_atom, print_rule
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.explain import rules_after
from deltalog.runtime.explanation_text import text_section
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options, make_model
from deltalog.runtime.network import NetworkArc, network_of
from deltalog.runtime.network_text import arc_text


@dataclass(frozen=True)
class RuleExplanation:
    """A rule with the rules of its condition, as written and expanded, and the arcs to it."""

    rule: ActiveRule
    head: Atom
    condition: tuple[Rule, ...]
    expanded: tuple[Rule, ...]
    arcs: tuple[NetworkArc, ...]


def explain_rules(schema: Schema) -> Iterator[RuleExplanation]:
    """Yield the explanation of each rule of a schema."""
    translator = SchemaTranslator(schema)
    program = replace(translator.program(), active_rules=())
    for statement in schema.rules.values():
        yield _explain_rule(translate_rule(translator, statement), program)


def _explain_rule(translated: TranslatedRule, program: Program) -> RuleExplanation:
    rule, name = translated.rule, condition_name(translated.rule.name)
    own = (*rule.parameters, *(rule.instance or ()))
    head = rule.condition[0] if translated.declarations else Atom(name, tuple(dict.fromkeys(own)))
    assert isinstance(head, Atom)
    if not translated.declarations:
        written = Rule(head, rule.condition, rule.origin)
        return RuleExplanation(rule, head, (written,) if rule.condition else (), (), ())
    database = _flat_database(program)
    return RuleExplanation(
        rule,
        head,
        _rules_for(program.rules, name),
        _rules_for(_unfolded_rules(database), name),
        tuple(arc for arc in network_of(database).arcs if arc.affected == name),
    )


def _rules_for(rules: Iterable[Rule], name: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.head.predicate == name)


def _unfolded_rules(database: MemoryDatabase) -> tuple[Rule, ...]:
    """The rules with views expanded; where there is nothing to expand, the rules as they are."""
    try:
        return tuple(rule for part in rules_after(database, "unfold") for rule in part)
    except DataError:  # the pass does not run
        return database.model.rules


def _flat_database(program: Program) -> MemoryDatabase:
    """The program without facts, with virtual views only, expanded into those that use them."""
    options = Options.of("differencing", materialize=False, network="flat")
    model = make_model(check_program(program), options)
    return MemoryDatabase(model, ReferenceEngine(), Limits())


def rule_explanation_text(explanation: RuleExplanation) -> str:
    rule = explanation.rule
    parts = []
    if rule.event is not None:
        event = f"{rule.event.kind} {print_atom(rule.event.atom)}"
        parts.append(text_section("event", [event]))
    if explanation.condition:
        parts.append(text_section("condition", map(print_rule, explanation.condition)))
    if explanation.expanded:
        parts.append(text_section("expanded condition", map(print_rule, explanation.expanded)))
    parts.append(text_section("action", _action_lines(explanation)))
    if explanation.arcs:
        parts.append(text_section("arcs", map(arc_text, explanation.arcs)))
    return text_section(rule.name, parts)


def _action_lines(explanation: RuleExplanation) -> Iterator[str]:
    rule, head = explanation.rule, explanation.head
    name = print_atom(replace(head, predicate=action_name(rule.name)))
    return (f"{name}: {print_action(action, rule.condition)}" for action in rule.actions)
