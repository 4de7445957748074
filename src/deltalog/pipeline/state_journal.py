"""The messages of a state in tables, read without a session of Spark, and their journal.

    messages   the table of their relation, and the log after the version it stands for
    records    state/deliveries.db, which only dispatchers write

A state is read beside its writer, as any reader does; the log of Delta is not written for each
delivery, since every write there would make the writer try again. The journal needs a folder of
this machine, and so does the lock that keeps a second dispatcher away.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltalog.analysis.active_rules import MESSAGES
from deltalog.diagnostics import catalogue, service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Row
from deltalog.pipeline.folds import net_fold
from deltalog.pipeline.state import State
from deltalog.pipeline.state_tables import table_at
from deltalog.runtime.delivery_records import Book, StoredMessage
from deltalog.runtime.messages import Message
from deltalog.store.sqlite_journal import JournalUse, SqliteJournal

JOURNAL = "deliveries.db"


class StateJournal(SqliteJournal):
    """The journal of one state."""

    def __init__(self, state: str, use: JournalUse = JournalUse.DISPATCH) -> None:
        self._state = State(None, state)
        folder = self._state.location.folder
        if folder is None:
            raise _unreadable_state(state, "it is not in a folder of this machine")
        if not (folder / "log").is_dir():
            reason = "there is no state"
            raise DataError([catalogue.CANNOT_OPEN.at(None, name=state, reason=reason)])
        self._name = state
        self._state.open(is_writer=False)
        self._seen = -1
        self._messages: dict[int, Message] = {}
        super().__init__(folder / JOURNAL, use, is_created=True)
        self._read_messages()

    def _read_messages(self) -> None:
        """Read what the state holds now."""
        state = self._state
        state.refresh()
        last = state.last.version
        if last == self._seen:
            return
        table = table_at(state, MESSAGES) if state.program else None
        facts: set[Row] = set()
        if table is not None:
            after = table.version if table.exists else -1
            if any(True for _ in state.files_of(MESSAGES, after, last)):
                raise _unreadable_state(self._name, "many messages of one commit are in files")
            fold = net_fold(state.log.changes(MESSAGES, after, last), table.types)
            facts = {row for row, _ in table.ranked_rows()} - fold.lost
            facts |= {row for row, _ in (*fold.inserted, *fold.updated)}
        self._messages = {m.sequence: m for m in (Message(*row) for row in sorted(facts))}  # type: ignore[arg-type]
        self._seen = last

    def stored(self, after: int) -> list[StoredMessage]:
        self._read_messages()
        found = self._messages.values()
        return [StoredMessage(m.sequence, m.rule, m.name, 0) for m in found if m.sequence > after]

    def message(self, stored: StoredMessage) -> Message | None:
        return self._messages.get(stored.sequence)

    def is_changed(self) -> bool:
        return True


@dataclass(frozen=True)
class JournalOfState:
    """Where the deliveries of a database in tables are written down."""

    state: str

    def open(self) -> StateJournal:
        return StateJournal(self.state)

    def book(self) -> Book:
        return journal_book(self.state)


def journal_book(state: str) -> Book:
    """The records of a state; none if nobody has delivered anything from it here."""
    folder = State(None, state).location.folder
    if folder is None or not (folder / JOURNAL).exists():
        return Book()
    journal = SqliteJournal(folder / JOURNAL, JournalUse.READ)
    try:
        return journal.read()
    finally:
        journal.close()


def _unreadable_state(state: str, reason: str) -> DataError:
    hint = "`db.messages(after=…)` reads them in a session of Spark"
    entry = service_catalogue.STATE_NOT_DISPATCHED
    return DataError([entry.at(None, name=state, reason=reason, hint=hint)])
