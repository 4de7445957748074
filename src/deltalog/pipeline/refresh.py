"""Refresh words of a project, as strategies: how each view is brought up to date.

| word          | a change is                                    | strategy                       |
|---------------|------------------------------------------------|--------------------------------|
| `AUTO`        | propagated, unless it changes much             | `auto`                         |
| `INCREMENTAL` | always propagated                              | `rederive`, virtual: `magic`   |
| `FULL`        | computed anew, and compared                    | `recompute`                    |

`explain_refresh` says for each view how it is maintained, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltalog.analysis.columns import Relations
from deltalog.checks.program import CheckedProgram
from deltalog.pipeline.project import Project
from deltalog.rewrites.strategies import STRATEGIES, Choice
from deltalog.runtime.model import Model, Options, make_model
from deltalog.runtime.nodes import LOST_MIN, LOST_SHARE, MUCH_MIN, MUCH_SHARE

_STRATEGIES = {"AUTO": "auto", "INCREMENTAL": "rederive", "FULL": "recompute"}


def refreshed_model(project: Project, checked: CheckedProgram) -> Model:
    """The model of a program whose views are refreshed as the project says."""
    if project.strategy != "auto":
        return make_model(checked, Options.of(project.strategy))
    named = {
        view: _strategy_of_word(word, view, checked.relations)
        for view, word in project.views.items()
    }
    return make_model(checked, Options.of({"*": _STRATEGIES[project.refresh], **named}))


def _strategy_of_word(word: str, view: str, relations: Relations) -> str:
    relation = relations.get(view)
    is_virtual = relation is not None and relation.storage == "virtual"
    return "magic" if is_virtual and word == "INCREMENTAL" else _STRATEGIES[word]


class Refresh(NamedTuple):
    """How a view is maintained, and why; `recomputed` says when it is computed anew."""

    view: str
    refresh: str
    is_stored: bool
    strategy: str
    meaning: str
    reason: str
    recomputed: str


def explain_refresh(project: Project, model: Model) -> Iterator[Refresh]:
    """Explain every view, in the order in which changes reach them."""
    for choice in model.choices:
        for view in choice.predicates:
            if view in model.checked.relations:
                yield _explain_refresh(project, model, choice, view)


def _explain_refresh(project: Project, model: Model, choice: Choice, view: str) -> Refresh:
    word = project.views.get(view, project.refresh)
    reasons = [choice.reason]
    reasons += ["it is recursive"] if choice.is_recursive else []
    reasons += ["it aggregates"] if choice.is_aggregate else []
    return Refresh(
        view,
        word,
        view in model.stored,
        choice.strategy,
        STRATEGIES[choice.strategy],
        ", ".join(reasons),
        _when_recomputed(choice, view in model.stored),
    )


def _when_recomputed(choice: Choice, is_stored: bool) -> str:
    if choice.strategy == "recompute":
        return "with every change of what it reads"
    if not is_stored:
        return "when it is asked for, as far as it is asked for"
    if not choice.is_auto or choice.is_aggregate:
        return "never"
    much = f"if a transaction changes {MUCH_SHARE:.0%} of what it reads, and {MUCH_MIN} rows"
    lost = f", or {LOST_SHARE:.0%} and {LOST_MIN} rows that take derivations away"
    return much + lost * choice.is_recursive
