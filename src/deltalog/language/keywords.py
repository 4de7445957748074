"""Words of constraints, active rules, sentences and choices: keywords only in their places.

    deny warn immediate negative(I) :- quantity(I, Q), Q < 0 say "{I} is negative".
    ^^^^ ^^^^ ^^^^^^^^^                                      ^^^

`deny`, `on` or `do` may be names of relations. A statement of this kind begins with two names,
which no other statement but a declaration does; in it the tokens that are keywords by their place
are marked before it is parsed. In a rule only the `say` before its last text is one, which stands
where nothing else could. All other statements are left as they are.
"""

from __future__ import annotations

from itertools import pairwise

from deltalog.language.narrowing import PlacedToken

VERBS = ("insert", "delete", "set", "call", "emit", "reject")


def mark_keywords(tokens: list[PlacedToken]) -> None:
    """Mark the keywords of such a statement; `tokens` end with the stop."""
    if len(tokens) < 2 or tokens[0].type != "NAME":
        return
    if tokens[1].type != "NAME":
        if any(token.type == "IF" for token in tokens):
            _mark_say(tokens)
        return
    if tokens[0] in ("deny", "require"):
        _mark_as_keyword(tokens[0])
        _mark_constraint(tokens)
    elif tokens[0] == "rule":
        _mark_as_keyword(tokens[0])
        _mark_rule(tokens)
    elif tokens[0] == "to" and tokens[1] in ("insert", "delete") and _has_actions(tokens):
        _mark_as_keyword(tokens[0])
        _mark_as_keyword(tokens[1])
        _mark_actions(tokens, 1)


def _has_actions(tokens: list[PlacedToken]) -> bool:
    """Whether `do` and a verb come behind the first atom."""
    pairs = pairwise(tokens[2:])
    return any(_begins_actions(token, after) for token, after in pairs)


def _mark_as_keyword(token: PlacedToken) -> None:
    token.type = token.upper()


def _mark_say(tokens: list[PlacedToken]) -> None:
    is_said = len(tokens) > 4 and tokens[-2].type == "TEXT" and tokens[-4].type not in _OPEN
    if is_said and tokens[-3].type == "NAME" and tokens[-3] == "say":
        _mark_as_keyword(tokens[-3])


_OPEN = (
    "IF",
    "COMMA",
    "LPAR",
    "COMPARISON",
    "NOT",
    "SEMICOLON",
    "PLUS",
    "MINUS",
    "TIMES",
    "DIVIDE",
    "MOD",
)
"""Tokens that something must come after: a `say` there is a name."""


def _mark_constraint(tokens: list[PlacedToken]) -> None:
    _mark_say(tokens)
    place = 1
    for words in (("warn", "view"), ("immediate",)):
        if tokens[place] in words and tokens[place + 1].type == "NAME":
            _mark_as_keyword(tokens[place])
            place += 1


def _mark_rule(tokens: list[PlacedToken]) -> None:
    _mark_actions(tokens, _mark_header(tokens))


def _mark_actions(tokens: list[PlacedToken], place: int) -> None:
    """Mark the words that begin actions behind a place."""
    depth, is_acting = 0, False
    for before, token, after in zip(
        tokens[place:], tokens[place + 1 :], tokens[place + 2 :], strict=False
    ):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth or token.type != "NAME":
            continue
        if _begins_actions(token, after):
            _mark_as_keyword(token)
            is_acting = True
        elif is_acting and _begins_action(before, token, after):
            _mark_as_keyword(token)
            if before.type == "COMMA":
                before.type = "NEXT"
        elif is_acting and token == "where" and before.type in ("NAME", "RPAR"):
            _mark_as_keyword(token)


def _begins_actions(token: PlacedToken, after: PlacedToken) -> bool:
    return token in ("do", "else") and after in VERBS and after.type == "NAME"


def _begins_action(before: PlacedToken, token: PlacedToken, after: PlacedToken) -> bool:
    """Whether a verb begins an action: a name or a text comes after it."""
    is_next = before.type == "COMMA" and after.type in ("NAME", "TEXT")
    return token in VERBS and (is_next or before.type in ("DO", "ELSE"))


def _mark_header(tokens: list[PlacedToken]) -> int:
    """Mark the words before the condition; return the place of the last of them."""
    place = _after_arguments(tokens, 2)
    while place < len(tokens) - 1:
        word = tokens[place]
        if word in ("immediate", "nervous"):
            _mark_as_keyword(word)
            place += 1
        elif word == "priority":
            _mark_as_keyword(word)
            place += 2 + (tokens[place + 1].type == "MINUS")
        elif word == "for":
            _mark_as_keyword(word)
            place += 2
            while place < len(tokens) - 1 and tokens[place].type == "COMMA":
                place += 2
        elif word == "on":
            _mark_as_keyword(word)
            place = _after_arguments(tokens, place + 3)
        else:
            if word == "when":
                _mark_as_keyword(word)
                return place
            return place - 1
    return place


def _after_arguments(tokens: list[PlacedToken], place: int) -> int:
    """The place behind a parenthesis that begins here, or this place."""
    depth = 0
    while place < len(tokens) - 1:
        depth += (tokens[place].type == "LPAR") - (tokens[place].type == "RPAR")
        if depth == 0:
            return place + (tokens[place].type == "RPAR")
        place += 1
    return place
