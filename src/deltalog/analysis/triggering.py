"""Which active rules may trigger which, and the cycles by which they may never end.

    rule a when p(X) do insert q(X).          a → b: an insertion into q may make q(X) true
    rule b when q(X) do delete p(X).          b does not trigger a: that takes an insertion into p

An arc is drawn if an action of the one changes a base relation in a direction that can make the
condition of the other true, or, where it has an `else`, false. What functions do that are called is
not known, and values are not looked at: a cycle may end all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.analysis.dependencies import strong_components
from deltalog.language.ast import Action, ActiveRule, Program, Rule
from deltalog.language.walk import atoms_of

Change = tuple[str, str]
"""A direction, `+` or `-`, and a relation."""


def triggering_cycles(program: Program) -> Iterator[tuple[ActiveRule, ...]]:
    """Yield the sets of rules that may trigger each other for ever, in the order of the program."""
    influences = _Influences(program.definitions)
    triggers = {rule.name: _triggering_changes(rule, influences) for rule in program.active_rules}
    graph = {
        rule.name: [
            other.name
            for other in program.active_rules
            if _changes_by_actions(rule) & triggers[other.name]
        ]
        for rule in program.active_rules
    }
    for component in strong_components(graph):
        if len(component) > 1 or any(name in graph[name] for name in component):
            yield tuple(rule for rule in program.active_rules if rule.name in component)


def _changes_by_actions(rule: ActiveRule) -> set[Change]:
    found: set[Change] = set()
    for action in (*rule.actions, *rule.otherwise):
        found |= _changed_by(action)
    return found


def _changed_by(action: Action) -> set[Change]:
    signs = {"insert": "+", "delete": "-", "set": "+-"}.get(action.verb, "")
    return set() if action.atom is None else {(sign, action.atom.predicate) for sign in signs}


def _triggering_changes(rule: ActiveRule, influences: _Influences) -> set[Change]:
    """Changes of base relations that may trigger a rule."""
    if rule.event is not None:
        signs = {"insert": "+", "delete": "-", "set": "+"}[rule.event.kind]
        return influences.of(rule.event.atom.predicate, signs)
    found: set[Change] = set()
    for sign in "+-" if rule.otherwise else "+":
        for atom, is_positive in atoms_of(rule.condition):
            found |= influences.of(atom.predicate, sign if is_positive else _opposite_sign(sign))
    return found


def _opposite_sign(sign: str) -> str:
    return "-" if sign == "+" else "+"


class _Influences:
    """Changes of base relations that lead to changes of views."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.head.predicate, []).append(rule)

    def of(self, relation: str, sign: str) -> set[Change]:
        """Changes of base relations that may insert into (`+`) or delete from (`-`) a relation."""
        seen, pending = {(sign, relation)}, [(sign, relation)]
        while pending:
            for each in self._changes_below(*pending.pop()):
                if each not in seen:
                    seen.add(each)
                    pending.append(each)
        return {(sign, name) for sign, name in seen if name not in self._rules}

    def _changes_below(self, sign: str, relation: str) -> Iterator[Change]:
        for rule in self._rules.get(relation, ()):
            for atom, is_positive in atoms_of(rule.body):
                if rule.is_aggregate or is_positive:
                    yield sign, atom.predicate
                if rule.is_aggregate or not is_positive:
                    yield _opposite_sign(sign), atom.predicate
