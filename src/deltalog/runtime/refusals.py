"""Why a change was refused: for each violation the base changes that led to it, and a derivation.

The refused change has been rolled back when this is asked, so both states are readable: the current
one, and the one that the change would make.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.runtime.causes import Cause, Causes
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.derivation import Derivation, DerivationSearch
from deltalog.runtime.readable_state import ChangedState, CurrentState
from deltalog.runtime.realization import Budget, Realizations
from deltalog.runtime.violations import ConstraintError, Violation

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase

CHANGES_MAX = 10_000
"""Changes of a transaction among which causes are looked for; of more, nobody reads them."""
EXPLAINED_MAX = 20
"""Violations of one refused change whose causes are looked for."""


def with_causes(
    database: MemoryDatabase, wanted: ChangeSet, refused: ConstraintError
) -> ConstraintError:
    """The same refusal of a change, with causes and derivations of its first violations."""
    made = wanted if refused.base is None else refused.base
    if refused.violations[0].is_rejection:
        return refused
    refused.searcher = partial(_find_repairs, database, wanted, database.version)
    if len(made) > CHANGES_MAX:
        return refused
    base = database.net(made)
    current = CurrentState(database)
    after = ChangedState(current, database.propagate_net(base, False))
    search = DerivationSearch(database.model.as_written.rules)
    causes = Causes(search, base, current, after)
    explained = (_explain_violation(each, causes) for each in refused.violations[:EXPLAINED_MAX])
    rest = refused.violations[EXPLAINED_MAX:]
    found = ConstraintError((*explained, *rest), refused.total)
    found.searcher = refused.searcher
    return found


def _find_repairs(
    database: MemoryDatabase,
    wanted: ChangeSet,
    version: int,
    budget: Budget | None,
    fixed: Iterable[str],
    costs: Mapping[str, float] | None,
) -> Realizations:
    from deltalog.runtime.repairs import minimal_repairs  # which imports constraints

    with database.turn():
        if database.version != version:
            raise DataError([view_catalogue.REQUEST_OUTDATED.at(None, version=version)])
        return minimal_repairs(database, wanted, database.commit_realized, budget, fixed, costs)


def _explain_violation(violation: Violation, causes: Causes) -> Violation:
    name, row = violation.relation, violation.fact
    if violation.is_required:
        lost = causes.search.derive(causes.before, name, row)
        found = () if lost is None else causes.of_lost(lost)
        return replace(violation, derivation=lost, causes=found)
    derivation = causes.search.derive(causes.after, name, row)
    found = _causes_of(causes, derivation, violation)
    return replace(violation, derivation=derivation, causes=found)


def _causes_of(
    causes: Causes, derivation: Derivation | None, violation: Violation
) -> tuple[Cause, ...]:
    """The causes of a new fact; of a shared key, those of all facts that share it."""
    if not violation.key:
        return () if derivation is None else causes.of_new(derivation)
    key = {i: violation.fact[i] for i in violation.key}
    rows = causes.after.matching(violation.relation, key)
    return _unite_causes(
        causes, (causes.search.derive(causes.after, violation.relation, r) for r in rows)
    )


def _unite_causes(causes: Causes, found: Iterable[Derivation | None]) -> tuple[Cause, ...]:
    united: dict[Cause, None] = {}
    for derivation in found:
        if derivation is not None:
            united.update(dict.fromkeys(causes.of_new(derivation)))
    return tuple(united)
