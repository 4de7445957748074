"""`deltalog messages`: what rules have emitted, and what became of it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from deltalog.cli.opening import Settings, open_database
from deltalog.cli.options import DatabaseFile, Engine
from deltalog.cli.progress import Progress
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import visible_text, write_note, write_result
from deltalog.runtime.delivery_records import DeadLetter
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits
from deltalog.runtime.messages import Message

EXAMPLE = "deltalog messages shop.db --json"
ROWS_SHOWN = 100


def messages(
    database: DatabaseFile,
    after: Annotated[
        int,
        typer.Option(
            "--after", metavar="SEQUENCE", min=0, help="Only messages behind this sequence number."
        ),
    ] = 0,
    dead: Annotated[
        bool,
        typer.Option("--dead", help="Only dead letters: messages that could not be delivered."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object per message.")
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", metavar="ROWS", min=0, help="Show at most this many rows, 0 for all."
        ),
    ] = ROWS_SHOWN,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """List the messages that active rules have emitted, and whether they are delivered.

    A delivered message is deleted with the commit of a later one, so it may be missing here.
    """
    settings = Settings(Limits(), engine=engine)
    with open_database(database, settings, Progress(), read_only=True) as kept:
        stored = kept.messages(after)
        letters = [letter for letter in kept.dead_letters() if letter.sequence > after]
        settled = kept.settled_messages()
    if not dead:
        states = _delivery_states(stored, letters, settled)
        _write_messages([(each, states[each.sequence], "") for each in stored], as_json, limit)
        return
    failures = [(each.message, f"dead for {each.recipient}", each.error) for each in letters]
    _write_messages(failures, as_json, limit)


def _delivery_states(
    stored: list[Message], letters: list[DeadLetter], settled: dict[str, int]
) -> dict[int, str]:
    dead = {letter.sequence for letter in letters}
    return {
        each.sequence: "dead"
        if each.sequence in dead
        else "delivered"
        if each.sequence <= settled.get(each.rule, -1)
        else "undelivered"
        for each in stored
    }


def _write_messages(found: list[tuple[Message, str, str]], as_json: bool, limit: int) -> None:
    shown = found[:limit] if limit else found
    if as_json:
        for message, state, error in shown:
            record = {"sequence": message.sequence, "id": message.id, **json.loads(message.payload)}
            record |= {"state": state} | ({"error": error} if error else {})
            write_result(json.dumps(record, ensure_ascii=False))
    else:
        header = ("sequence", "id", "rule", "message", "state")
        cells = [
            (
                str(m.sequence),
                m.id,
                m.rule,
                _message_text(m),
                f"{state}{error and ': '}{visible_text(error)}",
            )
            for m, state, error in shown
        ]
        for line in table_lines(header, cells, (True, False, False, False, False)):
            write_result(line)
    if len(shown) < len(found):
        write_note(f"{len(found) - len(shown):,} more; `--limit 0` shows all")


def _message_text(message: Message) -> str:
    arguments = ", ".join(json.dumps(each, ensure_ascii=False) for each in message.arguments)
    return visible_text(f"{message.name}({arguments})")
