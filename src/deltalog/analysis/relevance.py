"""Which rules matter for which predicates."""

from __future__ import annotations

from collections.abc import Iterable, Set

from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of


def needed_rules(
    rules: Iterable[Rule], roots: Set[str], stored: Set[str] = frozenset()
) -> tuple[Rule, ...]:
    """The rules the roots depend on, directly or through others; `stored` needs no rules."""
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    needed: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in needed or (name in stored and name not in roots):
            continue
        needed.add(name)
        waiting += [a.predicate for rule in by_head.get(name, ()) for a, _ in atoms_of(rule.body)]
    return tuple(rule for name in by_head for rule in by_head[name] if name in needed)
