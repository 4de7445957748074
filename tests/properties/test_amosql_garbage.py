"""Whatever statement of AMOSQL is typed, it is carried out or refused, and views stay true."""

from __future__ import annotations

import random
import re
from pathlib import Path

from effort import IS_FUZZ

import deltalog
from deltalog.language.amosql.parser import statement_pieces
from deltalog.language.ast import Program
from deltalog.runtime.limits import Limits
from deltalog.source import Source

PAGE = Path(__file__).parents[2] / "docs" / "amosql.md"
STATEMENTS = [
    piece.span.text
    for block in re.findall(r"```amosql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for piece in statement_pieces(Source("<page>", block))
]
TOKENS = [token for text in STATEMENTS for token in re.findall(r"\s+|:?\w+|[^\w\s]", text)]
TOKENS += ["not", "(", ")", "count", "1.5", "or", "''", "\x00", "é", "null", "begin", "end", ";"]
ROUNDS = 60 if IS_FUZZ else 3


def _mutated(text: str, chance: random.Random) -> str:
    tokens = re.findall(r"\s+|:?\w+|[^\w\s]", text)
    for _ in range(chance.randrange(1, 4)):
        start = chance.randrange(len(tokens) + 1)
        end = start + chance.choice((0, 1, 1, 1, 2))
        tokens[start:end] = [chance.choice(TOKENS)] if chance.random() < 0.8 else []
    return "".join(tokens)


def test_statements_are_carried_out_or_refused() -> None:
    chance = random.Random(None if IS_FUZZ else 15)
    refused = carried_out = 0
    for _ in range(ROUNDS):
        database = deltalog.connect(
            program=Program(), engine="reference", limits=Limits(firings_max=20)
        )
        database.action("order")(lambda rows: None)
        session = deltalog.AmosqlSession(database)
        for statement in STATEMENTS:
            for text in (_mutated(statement, chance), _mutated(statement, chance), statement):
                try:
                    session.execute(text)
                    carried_out += 1
                except deltalog.DeltalogError as error:
                    refused += bool(error.diagnostics and str(error))
                except Exception as error:
                    raise AssertionError(f"{type(error).__name__} for {text!r}") from error
        session.execute("rollback;" if session.is_in_transaction else "")
        assert database.audit() == ()
        assert deltalog.AmosqlSession(database).stored == session.stored
    assert min(refused, carried_out) > 20 * ROUNDS
