"""Messages of a state in tables are delivered without a session of Spark, beside its writer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from receiver import Receiver

import deltalog
from deltalog.analysis.active_rules import MESSAGES
from deltalog.pipeline.log import Record
from deltalog.pipeline.log_rows import DELETE, INSERT, Changes
from deltalog.pipeline.state import State
from deltalog.pipeline.state_journal import StateJournal, journal_book
from deltalog.runtime.deliveries import Target, dispatch_to
from deltalog.runtime.messages import Message

PROGRAM = f"""\
base stock(item: str key, amount: int).
rule low for I when stock(I, N), N < 10 do emit low(I).
% kept: stock {MESSAGES}
"""
TYPES = ("int", "str", "str", "str", "str")
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


def commit(state: State, *numbers: int, change: str = INSERT) -> None:
    """A commit that has these messages in it, as the writer of a state makes it."""
    rows = [(n, f"msg_{n}", "low", "low", _payload(n)) for n in numbers]
    changes = [Changes(MESSAGES, change, TYPES, rows)]
    counts = {MESSAGES: (len(rows), 0) if change == INSERT else (0, len(rows))}
    record = Record(version=state.last.version + 1, program=PROGRAM, counts=counts)
    state.commit(record, changes, [TYPES])


def _payload(number: int) -> str:
    time = "2026-11-18T12:00:00.000000Z"
    return json.dumps({"rule": "low", "name": "low", "time": time, "arguments": [number]})


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(None, str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    made.open()
    commit(made, 1, 2)
    commit(made, 3)
    return made


def test_messages_are_those_of_table_and_log(state: State) -> None:
    found: list[Message] = []
    with closing(StateJournal(state.location.name)) as journal:
        assert dispatch_to(journal, Target("shop"), found.append).delivered == 3
        commit(state, 4)
        commit(state, 1, change=DELETE)
        assert [each.sequence for each in journal.stored(-1)] == [2, 3, 4]
        assert dispatch_to(journal, Target("shop"), found.append).delivered == 1
        with pytest.raises(deltalog.DataError, match="E1602"):
            StateJournal(state.location.name)
    assert [message.id for message in found] == ["msg_1", "msg_2", "msg_3", "msg_4"]
    assert journal_book(state.location.name).settled == {"low": 4}
    with closing(StateJournal(state.location.name)) as journal:
        assert dispatch_to(journal, Target("shop"), found.append).delivered == 0


def test_the_command_takes_the_folder_of_a_state(state: State) -> None:
    command = Path(sys.executable).with_name("deltalog")
    words = [str(command), "dispatch", state.location.name]
    environment = {**os.environ, "DELTALOG_WEBHOOK_SECRET": SECRET}
    with Receiver() as receiver:
        to = ["--to", receiver.url, "--allow-network", "127.0.0.0/8", "--once"]
        subprocess.run([*words, *to], check=True, env=environment, capture_output=True)
        assert receiver.ids == ["msg_1", "msg_2", "msg_3"]
    done = subprocess.run([*words, "--status"], check=True, capture_output=True, text=True)
    assert "default  low         0     0" in done.stdout


def test_where_there_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(deltalog.DataError, match="E1608"):
        StateJournal("s3://bucket/state")
    with pytest.raises(deltalog.DataError, match="there is no state"):
        StateJournal(str(tmp_path))
    assert journal_book(str(tmp_path)).records == []
