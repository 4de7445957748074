"""Where the rewrites of view updating apply: to all rules of a program that have no aggregate.

The order in which these run is in `pipeline.py`.
"""

from __future__ import annotations

from dataclasses import replace

from deltalog.analysis.binding import written_order
from deltalog.language.ast import Atom, Rule, Variable
from deltalog.language.walk import fresh_names, rule_names, substitute_literal
from deltalog.rewrites.forms import RequestForm
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.view_update_rules import view_update_rules


def normalize_views(form: RequestForm) -> RequestForm:
    """Algebra format of bodies as they are written, in which every variable has a name."""
    made = normalize(map(_with_names, form.rules), written_order)
    return replace(form, rules=tuple(map(_with_names, made)))  # projections of negated atoms


def propagate_changes(form: RequestForm) -> RequestForm:
    return replace(form, changes=propagation_rules(form.rules))


def make_requests(form: RequestForm) -> RequestForm:
    requests, transitions = view_update_rules(form.rules, form.base, form.denied, form.required)
    return replace(form, requests=requests, transitions=transitions)


def _with_names(rule: Rule) -> Rule:
    """The rule with a name for every `_` of its positive atoms."""
    fresh = fresh_names(set(rule_names(rule)), "V")
    named: dict[str, Variable] = {}

    def name(variable: Variable) -> Variable:
        if not variable.is_wildcard:
            return variable
        return named.setdefault(variable.name, Variable(next(fresh)))

    body = (
        substitute_literal(each, name) if isinstance(each, Atom) else each for each in rule.body
    )
    return replace(rule, body=tuple(body))
