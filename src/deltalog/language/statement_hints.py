"""Hints for statements that do not parse: the word that was meant, or the form of the statement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import COMPARISONS
from deltalog.language.keywords import VERBS
from deltalog.language.narrowing import PlacedToken

_BEGINNINGS = ("base", "view", "materialized", "virtual", "deny", "require", "rule", "to")
_HEADER = ("for", "priority", "immediate", "nervous", "on", "when", "do")
_FORMS = {
    "DENY": 'the form is `deny [warn | view] [immediate] name(X) :- … [say "…"]`',
    "REQUIRE": 'the form is `require [warn] [immediate] fact [:- …] [say "…"]`',
    "RULE": "the form is `rule name[(Parameter, …)] [for X, …] [priority N] [immediate] [nervous] "
    "[on event] [when …] do …`",
}
_ACTIONS = f"an action begins with {', '.join(f'`{verb}`' for verb in VERBS[:-1])} or `{VERBS[-1]}`"


def hint_for(tokens: Sequence[PlacedToken], wrong: PlacedToken) -> str | None:
    """A hint for a statement with a token that does not fit, if there is one."""
    first, second = tokens[:2]
    if first.type == "NAME" and second.type == "NAME":
        return did_you_mean(first, _BEGINNINGS)
    if first.type not in _FORMS:
        return None
    before = {token.type for token in tokens[: _place_of(tokens, wrong)]}
    if first.type != "RULE":
        return None if "IF" in before else _FORMS[first.type]
    if "WHEN" not in before and "DO" not in before:
        return (wrong.type == "NAME" and did_you_mean(wrong, _HEADER)) or _FORMS["RULE"]
    if "DO" not in before:
        verbs = (after for word, after in pairwise(tokens) if word == "do" and after.type == "NAME")
        return next((hint for each in verbs if (hint := did_you_mean(each, VERBS))), _ACTIONS)
    return None


def hint_for_operator(word: str) -> str | None:
    """A hint for a word between two expressions that compares nothing."""
    if word in VERBS:
        return "the actions of a rule begin with `do`"
    if word in ("do", "else"):
        return _ACTIONS
    return did_you_mean(word, [each for each in COMPARISONS if each[0].isalpha()])


def _place_of(tokens: Sequence[PlacedToken], wrong: PlacedToken) -> int:
    return next((i for i, token in enumerate(tokens) if token is wrong), len(tokens))
