"""Tables and figures on the pages are what the code does: each claim is tried."""

from __future__ import annotations

import inspect

import pytest
from documents import DOCS, blocks, table_rows

import deltalog
from deltalog.language.printer import print_rule
from deltalog.plan.text import plan_text
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.rewrites.unfold import RULES_MAX
from deltalog.runtime.fixpoint import lower_stages
from deltalog.runtime.nodes import LOST_MIN, LOST_SHARE, MUCH_MIN, MUCH_SHARE
from deltalog.runtime.rule_changes import guarded_program
from deltalog.store.logged import Logged

PROPAGATION = DOCS / "propagation.md"
PYTHON = DOCS / "python.md"

FEATURES = {
    "recursion": "v(X, Y) :- edge(X, Y). v(X, Y) :- edge(X, Z), v(Z, Y).",
    "negation": "v(X) :- edge(X, _), not edge(_, X).",
    "aggregates": "v(X, count()) :- edge(X, _).",
}


def _is_taken(strategy: str, rules: str, is_stored: bool) -> bool:
    """Whether the view can be asked to be kept by the strategy; and then its changes are right."""
    program = f"base edge(src: int, dst: int). {rules}"
    try:
        database = deltalog.connect(
            program=program, strategy={"v": strategy}, materialize=is_stored
        )
    except deltalog.DataError:
        return False
    before = database.facts("v")
    delta = database.apply(insert={"edge": [(1, 2), (2, 3), (3, 1), (4, 1)]})
    delta += database.apply(delete={"edge": [(2, 3)]})
    assert delta.inserted["v"] == database.facts("v") - before
    assert not database.audit()
    return True


def test_the_table_of_strategies_is_complete_and_right() -> None:
    rows = list(table_rows(PROPAGATION, "Which one?"))
    assert [cells[0].strip("`") for cells in rows] == [s for s in STRATEGIES if s != "auto"]
    for name, *cells, needs_stored in rows:
        strategy = name.strip("`")
        for cell, rules in zip(cells, FEATURES.values(), strict=True):
            assert _is_taken(strategy, rules, is_stored=True) == (cell == "yes"), (strategy, rules)
        is_free = _is_taken(strategy, FEATURES["negation"], is_stored=False)
        assert is_free == (needs_stored == "no"), strategy


def test_figures_are_those_of_the_code() -> None:
    page = " ".join(PROPAGATION.read_text(encoding="utf-8").split())
    assert (MUCH_SHARE, LOST_SHARE) == (0.5, 0.1)
    assert f"at least {MUCH_MIN} facts and at least half" in page
    assert f"at least {LOST_MIN} deletions from its influents" in page
    assert "when they are a tenth of what was held" in page
    assert f"`unfold` stops at {RULES_MAX:,} rules" in page


def test_every_strategy_has_a_section() -> None:
    page = PROPAGATION.read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in page for name in STRATEGIES)


def _text_block(start: str) -> str:
    return next(b.text for b in blocks(PROPAGATION) if b.language == "text" and start in b.text)


def test_overlays_look_like_that() -> None:
    links = next(b.text for b in blocks(PROPAGATION) if b.language == "deltalog")
    (node,) = deltalog.connect(program=links).propagation.nodes
    plans, _ = lower_stages(node.stages, node.compiled.overlays)
    shown = "".join(plan_text(part) for part in plans if isinstance(part, tuple))
    assert _text_block("match [edge").strip() in shown


def test_guarded_rules_look_like_that() -> None:
    base = "base edge(src: int, dst: int). base road(src: int, dst: int). "
    old, new = (
        deltalog.connect(program=base + rule).model
        for rule in ("path(X, Y) :- edge(X, Y).", "path(X, Y) :- road(X, Y).")
    )
    both = guarded_program(old, new)
    assert both is not None
    shown = "".join(f"{print_rule(rule)}\n" for rule in both.program.rules)
    assert shown == _text_block("rules__old")


def test_the_table_of_arguments_is_complete_and_right() -> None:
    known = inspect.signature(deltalog.connect).parameters
    rows = {cells[0].strip("`"): cells[1] for cells in table_rows(PYTHON, "Open")}
    assert rows.keys() == known.keys()
    for name, default in rows.items():
        if default.startswith("`"):
            assert eval(default.strip("`")) == known[name].default, name
        else:
            assert known[name].default in (None, inspect.Parameter.empty), name


PUBLIC = [deltalog.Database, deltalog.Transaction, deltalog.ChangeSet, deltalog.DeltalogError]
OF_FILES = ("FileDatabase", "Retention", "RetentionWarning")
OF_TABLES = ("register_format", "register_tables")
OF_RULES = (
    *("ConstraintError", "ConstraintWarning", "Violation", "violations", "rules", "activate"),
    *("deactivate", "action", "messages", "firings", "rejections"),
    *("dispatch", "dead_letters"),
)
OF_VIEW_UPDATES = (
    *("Budget", "Realization", "Realizations", "RequestCheck", "check_requests", "realize"),
    *("ChoiceCheck", "ChoiceWarning", "check_choices"),
)
OF_LANGUAGE = ("Limits", "Models", "models")
OF_WHY = (
    *("Proof", "SetProof", "Derivations", "picture", "why"),
    *("WhyNot", "why_not", "WhyChanged", "why_changed"),
)
PAGE_OF = {
    **dict.fromkeys(OF_LANGUAGE, "language.md"),
    "AmosqlSession": "amosql.md",
    **dict.fromkeys(OF_FILES, "durability.md"),
    **dict.fromkeys(OF_RULES, "rules.md"),
    **dict.fromkeys(OF_WHY, "why.md"),
    **dict.fromkeys(OF_VIEW_UPDATES, "view_updates.md"),
    **dict.fromkeys(OF_TABLES, "pipeline.md"),
}


def _members(owner: type) -> list[str]:
    return [name for name in vars(owner) if not name.startswith("_")]


NAMES = [*deltalog.__all__, *(name for owner in PUBLIC for name in _members(owner))]


@pytest.mark.parametrize("name", _members(deltalog.FileDatabase))
def test_everything_about_files_is_documented(name: str) -> None:
    page = (DOCS / "durability.md").read_text(encoding="utf-8")
    known = (*_members(deltalog.Database), *_members(Logged))  # the latter is for the service
    assert f"db.{name}" in page or name in known


@pytest.mark.parametrize("name", NAMES)
def test_everything_public_is_documented(name: str) -> None:
    page = (DOCS / PAGE_OF.get(name, "python.md")).read_text(encoding="utf-8")
    assert any(words in page for words in (f".{name}", f"`{name}`", f"tx.{name}("))
