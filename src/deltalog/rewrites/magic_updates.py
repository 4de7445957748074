"""Magic Updates: true updates without materialised views, at the cost of what the update touches.

    path__plus(X, Y) :- edge__plus(X, Z), path__new(Z, Y), not path(X, Y).
    →  path__new__bf__magic(Z) :- edge__plus(X, Z).
       path__bb__magic(X, Y) :- edge__plus(X, Z), path__new__bf(Z, Y).
       path__plus(X, Y) :- edge__plus(X, Z), path__new__bf(Z, Y), not path__bb(X, Y).
       … and the rules of `path` and `path__new`, asked for just these bindings

Before: R ∪ ϕ(R) ∪ τ(R), the program with its propagation and transition rules. After: the
propagation rules with every state literal replaced by a question (Behrend & Manthey 2004, Def. 9).
The delta literals are the queries: what is being propagated binds the side literals and the
effectiveness test, so only facts next to the change are derived.

Questions depend on deltas and deltas on negated answers, so the result is in general not
stratifiable. It is softly stratifiable (Theorem 1); the partition is computed from a stratification
of the program before the rewriting by `analysis/stratification.soft_partition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType

from deltalog.language.ast import Rule
from deltalog.rewrites.magic_sets import asked_rules


def magic_updates(
    augmented: Iterable[Rule],
    deltas: Iterable[str],
    stored: Set[str],
    *,
    is_supplementary: bool = False,
    is_adorned: bool = True,
    asked_instead: Mapping[str, str] = MappingProxyType({}),
    silent: Set[str] = frozenset(),
) -> tuple[Rule, ...]:
    """Def. 9; `deltas` are the predicates to compute, `stored` whatever is read as it is.

    The paper's form repeats prefixes; the supplementary form computes them once. The other options
    are those of `asked_rules`.
    """
    deltas = tuple(deltas)
    return asked_rules(
        augmented,
        deltas,
        (set(stored) | set(deltas)) - set(asked_instead),
        is_supplementary=is_supplementary,
        is_adorned=is_adorned,
        asked_instead=asked_instead,
        silent=silent,
        rewrite="magic_updates",
    )
