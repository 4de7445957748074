"""`deltalog token`: grants are checked against the database that they are for."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Call, write

import deltalog
from deltalog.service.tokens import create_token, misfits_of, read_tokens, revoke_token

PROGRAM = "base note(who: str, text: str).\nshown(W, T) :- note(W, T).\n"
MISFITS = [
    ("note?wo=ann", "`note` has no column `wo`", "did you mean `who`?"),
    ("read:shwn", "there is no relation `shwn`", "did you mean `shown`?"),
    ("*?tenant=7", "there is no column `tenant`", None),
]


@pytest.fixture(params=["notes.dl", "notes.db"])
def notes(request: pytest.FixtureRequest, invoke: Call) -> str:
    name = str(request.param)
    if name == "notes.dl":
        return write(name, PROGRAM)
    deltalog.connect(name, program=PROGRAM, engine="reference").close()
    return name


@pytest.mark.parametrize(("grant", "reason", "hint"), MISFITS)
def test_a_grant_for_nothing_is_refused(
    invoke: Call, notes: str, grant: str, reason: str, hint: str | None
) -> None:
    made = invoke("token", "create", "n.tokens", "ann", "--grant", grant, "--for", notes)
    assert made.exit_code == 1
    assert f"`{grant}` is not a grant: {reason}" in made.stderr
    assert hint is None or hint in made.stderr
    assert read_tokens(Path("n.tokens")) == []


def test_grants_for_what_is_there(invoke: Call, notes: str) -> None:
    for grant in ("note?who=ann", "write:note", "*", "*?w=ann", "sys_rule"):
        made = invoke("token", "create", "n.tokens", "ann", "--grant", grant, "--for", notes)
        assert made.exit_code == 0


def test_misfits_of_tokens_that_are_valid(tmp_path: Path) -> None:
    tokens = tmp_path / "n.tokens"
    relations = deltalog.connect(program=PROGRAM, engine="reference").relations
    for name, grants in (("ann", ["note?wo=ann", "note"]), ("bob", ["nte"]), ("eve", ["shown"])):
        create_token(tokens, name, ["read"], grants)
    revoke_token(tokens, "bob")
    found = [(token.name, str(misfit)) for token, misfit in misfits_of(tokens, relations)]
    assert [name for name, _ in found] == ["ann"]
    assert "`note?wo=ann` is not a grant" in found[0][1]
