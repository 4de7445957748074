"""Sentences of rules (`say "…"`): every placeholder has a value in each instance of the rule."""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.analysis.binding import bound_variables
from deltalog.checks.constraints import check_message
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.ast import Aggregate, Program, Rule, Variable


def check_sentences(program: Program) -> Iterator[Diagnostic]:
    for rule in program.rules:
        where = f"a rule for `{rule.head.predicate}`"
        yield from check_message(rule.message, allowed_placeholders(rule), where, rule.head.span)


def allowed_placeholders(rule: Rule) -> frozenset[str]:
    """The names that a sentence of a rule may use.

    These are its variables; of an aggregate rule those of the group, and the name of a function
    for what it returns, as in `{D} costs {sum}`.
    """
    if not rule.is_aggregate:
        return frozenset(name for name in bound_variables(rule.body) if not name.startswith("_"))
    terms = rule.head.arguments
    groups = {term.name for term in terms if isinstance(term, Variable)}
    return frozenset(groups | {term.function for term in terms if isinstance(term, Aggregate)})
