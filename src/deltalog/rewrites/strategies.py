"""Strategies: how the change of each view is computed. One exact answer, different costs.

A strategy belongs to a strongly connected component of views. Whatever it is, it offers the same to
the components above: the exact change in `__plus` and `__minus`, and both states, stored, read
through an overlay, or asked for. That is why strategies can be mixed view by view.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from deltalog.analysis.dependencies import dependencies_of
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of
from deltalog.rewrites.delta_rules import unstratified_cycle

STRATEGIES: Mapping[str, str] = {
    "auto": "chosen per view: `rederive` where it is stored, `magic` where it is virtual; "
    "`recompute` for a transaction that changes much",
    "recompute": "evaluate the new state and compare",
    "delta": "delta rules over rules in algebra format (Manthey 1994)",
    "differencing": "partial differentials on a propagation network (Risch & Sköld 1999)",
    "rederive": "maintenance rules: estimate, rederive, insert (Staudt & Jarke 1996)",
    "magic": "propagation rules evaluated on demand (Behrend & Manthey 2004)",
    "demand": "maintenance rules with rederivation on demand (Staudt & Jarke 1996)",
}


@dataclass(frozen=True)
class Choice:
    """The strategy chosen for a component of views, and why.

    Under `differencing` and `magic`, one that is not `is_strict` may report a change that is none.
    """

    predicates: tuple[str, ...]
    rules: tuple[Rule, ...]
    strategy: str
    reason: str
    is_recursive: bool
    is_aggregate: bool
    is_auto: bool = False
    is_strict: bool = True

    @property
    def members(self) -> frozenset[str]:
        return frozenset(self.predicates)

    @property
    def potential(self) -> Choice | None:
        """The same without effectiveness tests: a superset of the change; None if it is exact."""
        if self.is_aggregate:
            return None
        reason = "a superset of the change is enough"
        return replace(self, strategy="magic", reason=reason, is_auto=False, is_strict=False)

    @property
    def is_maintained(self) -> bool:
        """Whether its new state is what was kept and what returned, and grows while it runs."""
        return self.strategy in ("rederive", "demand") and self.is_recursive

    @property
    def is_unordered(self) -> bool:
        """Whether the ranks of its facts may not be in the order of a derivation.

        Other strategies find the exact change, and leave a fact its rank that has lost the
        derivation by which it got it and has another one.
        """
        return self.is_recursive and not self.is_maintained


def known_strategy(name: str) -> str:
    if name not in STRATEGIES:
        hint = did_you_mean(name, STRATEGIES) or f"the strategies are {', '.join(STRATEGIES)}"
        raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="strategy", name=name, hint=hint)])
    return name


def choose_strategies(
    rules: tuple[Rule, ...], stored: Set[str], default: str, per_view: Mapping[str, str]
) -> tuple[Choice, ...]:
    """A strategy for every component of views, lowest component first."""
    by_head: dict[str, list[Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    choices = []
    for component in dependencies_of(rules).components:
        predicates = tuple(sorted(name for name in component if name in by_head))
        if predicates:
            own = tuple(rule for name in predicates for rule in by_head[name])
            choices.append(_choose_for_component(predicates, own, stored, default, per_view))
    return tuple(choices)


def _choose_for_component(
    predicates: tuple[str, ...],
    rules: tuple[Rule, ...],
    stored: Set[str],
    default: str,
    per_view: Mapping[str, str],
) -> Choice:
    asked = {per_view[name] for name in predicates if name in per_view}
    if len(asked) > 1:
        names = ", ".join(f"`{name}`" for name in predicates)
        raise DataError([catalogue.STRATEGY_CONFLICT.at(None, names=names)])
    is_recursive = any(
        atom.predicate in predicates for rule in rules for atom, _ in atoms_of(rule.body)
    )
    is_aggregate = any(rule.is_aggregate for rule in rules)
    is_stored = all(name in stored for name in predicates)
    wanted = known_strategy(asked.pop() if asked else default)
    obstacle = _obstacle_to_strategy(wanted, rules, is_recursive, is_stored)
    if obstacle and any(name in per_view for name in predicates):
        raise DataError(
            [
                catalogue.STRATEGY_MISFIT.at(
                    None, strategy=wanted, name=predicates[0], reason=obstacle
                )
            ]
        )
    if wanted == "auto" or obstacle:
        chosen = "rederive" if is_stored else "magic"
        reason = "it is stored" if is_stored else "it is virtual"
        reason = f"{reason}, and {obstacle}" if obstacle else reason
    else:
        chosen, reason = wanted, "requested"
    is_auto = wanted == "auto"
    return Choice(predicates, rules, chosen, reason, is_recursive, is_aggregate, is_auto)


def with_nervous_views(choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The same choices, nervous where that loses no change.

    A nervous view reports only insertions that hold in the new state and deletions that held in the
    old one, if the same is true of what it reads. So an insertion that is real never meets a
    deletion of the same fact, which would cancel it. A negated influent must be exact for that: a
    deletion of it that is none would make an insertion that does not hold. Aggregates and other
    strategies rely on exact changes, too. A union is tested as Table 1 of the 1999 paper has it:
    what another rule derived before is no insertion.
    """
    tested = {
        atom.predicate
        for choice in choices
        for rule in choice.rules
        for atom, is_positive in atoms_of(rule.body)
        if not is_positive or choice.is_aggregate or choice.strategy != "differencing"
    }
    return tuple(
        replace(choice, is_strict=False)
        if choice.strategy == "differencing"
        and not choice.is_aggregate
        and len(choice.rules) == 1
        and not tested.intersection(choice.predicates)
        else choice
        for choice in choices
    )


def _obstacle_to_strategy(
    strategy: str, rules: tuple[Rule, ...], is_recursive: bool, is_stored: bool
) -> str | None:
    if strategy in ("delta", "rederive", "recompute") and not is_stored:
        return f"`{strategy}` needs it materialised"
    if strategy == "delta" and is_recursive:
        return f"its delta rules are not stratifiable: {_negative_cycle_text(rules)}"
    if strategy == "differencing" and is_recursive:
        return "it is recursive, and a propagation network has no cycles"
    return None


def _negative_cycle_text(rules: tuple[Rule, ...]) -> str:
    """The negative cycle in the delta rules of a recursive view."""
    cycle = unstratified_cycle(rules) or ()
    return " → ".join([arc.head for arc in cycle] + [arc.body for arc in cycle[-1:]])
