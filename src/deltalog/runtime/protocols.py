"""The verbs of a database, whatever keeps it: memory, a file, or tables.

    Database   read, change, ask what a change would do, change rules, trust
    History    earlier versions, what changed between them, and who has read how far
    Upkeep     backups, compaction of the change log, verification

Every database has the verbs of the first. Files and tables have all three. Memory has no `History`
and no `Upkeep`: each of those verbs is one error there, which says what has it
(`runtime/unavailable.py`).

A `Persistence` keeps what a database holds somewhere else. It is called at three moments: it
provides the initial state, it writes a change before that is applied, and it writes a new program.
The second moment is that of every `Participant`: constraints may stand before the persistence,
which is last. A `Synchronization` repairs what a failure at any other moment leaves between memory
and the place where things are kept. A `Follower` is called with every commit once it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from deltalog.language.ast import Program, Query, Row, Value

if TYPE_CHECKING:
    from deltalog.analysis.columns import Relation
    from deltalog.runtime.changes import ChangeSet
    from deltalog.runtime.database import MemoryDatabase
    from deltalog.runtime.deliveries import Dispatched
    from deltalog.runtime.delivery_records import DeadLetter
    from deltalog.runtime.evaluation import Difference
    from deltalog.runtime.fixpoint import Statistics
    from deltalog.runtime.messages import Message
    from deltalog.runtime.outcome import Propagated
    from deltalog.runtime.parameters import Parameters
    from deltalog.runtime.realization import Budget, Realizations
    from deltalog.runtime.request_termination import RequestCheck
    from deltalog.runtime.rows import Rows
    from deltalog.runtime.rule_verbs import RuleState
    from deltalog.runtime.transaction import Transaction
    from deltalog.runtime.update_choices import ChoiceCheck
    from deltalog.runtime.violations import Violation
    from deltalog.runtime.why.change_reason import WhyChanged
    from deltalog.runtime.why.derivations import Derivations
    from deltalog.runtime.why.proof import Proof
    from deltalog.runtime.why.sets import SetProof
    from deltalog.runtime.why.why_not import WhyNot

Facts = Mapping[str, Any]
"""Facts for base relations: rows, a table, a DataFrame, an array (`runtime.incoming.RowsLike`)."""


class Change(Protocol):
    """The exact change of base relations and views; each side maps relations to what it holds."""

    @property
    def inserted(self) -> Mapping[str, Any]: ...
    @property
    def deleted(self) -> Mapping[str, Any]: ...


@runtime_checkable
class Database(Protocol):
    """A program and its facts; `deltalog.connect` opens one."""

    @property
    def version(self) -> int: ...
    @property
    def relations(self) -> Mapping[str, Relation]: ...
    @property
    def statistics(self) -> Statistics: ...

    def facts(self, relation: str, version: int | None = None) -> set[Row]: ...
    def rows(self, relation: str) -> Rows: ...
    def query(
        self,
        text: str | Query,
        parameters: Parameters | None = None,
        *,
        version: int | None = None,
    ) -> Rows: ...
    def explain(
        self,
        query: str | Query | None = None,
        parameters: Parameters | None = None,
        *,
        show: Collection[str] | None = None,
        propagation: bool = False,
    ) -> str: ...
    def audit(self, *, engine: str | None = None) -> tuple[Difference, ...]: ...
    def violations(self, name: str | None = None) -> tuple[Violation, ...]: ...
    def realize(
        self,
        *requests: str,
        budget: Budget | None = None,
        fixed: Iterable[str] = (),
        costs: Mapping[str, float] | None = None,
        mode: str = "complete",
        trace: bool = False,
        rank: str = "cost",
        domains: Mapping[str, Iterable[Value]] | None = None,
    ) -> Realizations: ...
    def check_choices(self) -> tuple[ChoiceCheck, ...]: ...
    def check_requests(self) -> tuple[RequestCheck, ...]: ...
    def why(
        self,
        fact: str,
        *,
        version: int | None = None,
        every: bool = False,
        facts_max: int = ...,
    ) -> Proof | SetProof | Derivations: ...
    def why_not(self, fact: str, *, version: int | None = None) -> WhyNot: ...
    def why_changed(self, fact: str, version: int | None = None) -> WhyChanged: ...
    def rules(self) -> list[RuleState]: ...
    def activate(self, rule: str, **parameters: Value) -> None: ...
    def deactivate(self, rule: str, **parameters: Value) -> None: ...
    def action(self, name: str) -> Callable[[Any], Any]: ...
    def messages(self, after: int = 0) -> list[Message]: ...
    def dispatch(
        self,
        handler: Callable[[Message], object],
        *,
        target: str = "python",
        messages: Iterable[str] = (),
        rules: Iterable[str] = (),
        pauses_seconds: Iterable[float] = (),
    ) -> Dispatched: ...
    def dead_letters(self) -> Sequence[DeadLetter]: ...

    def transaction(self, *, views: Iterable[str] | None = None) -> Transaction: ...
    def apply(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
        set: Facts | None = None,
        *,
        views: Iterable[str] | None = None,
    ) -> Change: ...
    def what_if(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
        set: Facts | None = None,
        *,
        views: Iterable[str] | None = None,
    ) -> Change: ...
    def change_program(
        self,
        program: str | Path | Program,
        *,
        is_committed: bool = True,
        inactive: Iterable[str] = (),
    ) -> Change: ...

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class History(Protocol):
    """Earlier versions of a database, the changes between them, and the readers of these."""

    @property
    def first_version(self) -> int: ...
    @property
    def readers(self) -> Mapping[str, int]: ...

    def relations_at(self, version: int) -> Mapping[str, Relation]: ...
    def delta(
        self, first: int, last: int | None = None, views: Iterable[str] | None = None
    ) -> ChangeSet: ...
    def commits(
        self,
        after: int | None = None,
        until: int | None = None,
        views: Iterable[str] | None = None,
    ) -> Sequence[Any]: ...
    def programs(self) -> Sequence[tuple[int, str, str]]: ...
    def register(self, reader: str) -> int: ...
    def acknowledge(self, reader: str, version: int) -> None: ...
    def unregister(self, reader: str) -> None: ...


class Upkeep(Protocol):
    """The care of what a database keeps outside memory."""

    def backup(self, target: str | Path) -> None: ...
    def compact(self, retention: Any = None) -> Any: ...
    def verify(self, *, engine: str | None = None) -> Any: ...


class Participant(Protocol):
    """Takes part in every commit."""

    def before_change(
        self, database: MemoryDatabase, outcome: Propagated, change: ChangeSet
    ) -> None:
        """Called when a change is computed and not yet applied; raises to refuse it."""


class Follower(Protocol):
    """Is called after every commit, in the turn of its thread; it cannot refuse anything."""

    @property
    def views(self) -> frozenset[str]:
        """The views whose change it needs, also where a caller names fewer."""

    @property
    def potential(self) -> frozenset[str]:
        """Those of its views for which a superset of the change is enough."""

    def committed(
        self,
        version: int,
        kind: str,
        change: ChangeSet,
        views: frozenset[str],
        estimated: frozenset[str] = frozenset(),
    ) -> None:
        """A transaction or another program has made a version.

        The change of `views` is exact; that of views that were `estimated` is a superset.
        """


class Persistence(Participant, Protocol):
    """Keeps what a database holds; as a participant it is last, since its writing cannot be undone.

    If `before_change` raises, nothing is applied in memory either.
    """

    @property
    def is_omitting(self) -> bool:
        """Whether it does without the changes of virtual views that nobody wants.

        What a commit leaves out is in `Propagated.omitted`.
        """

    def initial_state(self, database: MemoryDatabase, facts: Facts) -> Statistics:
        """Bring the stored relations, which are empty, to their first state."""

    def program_changed(
        self, database: MemoryDatabase, touched: Set[str], change: ChangeSet
    ) -> None:
        """Called when a new program is in place, with the stored relations that it touched."""


class Synchronization(Protocol):
    """Keeps memory at the state that is kept elsewhere, also when a change fails half-way.

    Each method is called in the turn of one thread.
    """

    def before_reading(self, database: MemoryDatabase) -> None:
        """Bring memory to the kept state if it may be at another one."""

    def changing(
        self, database: MemoryDatabase, is_committed: bool
    ) -> AbstractContextManager[object]:
        """Stand around a change of facts, or one that is only tried; raises to refuse it."""

    def changing_program(
        self, database: MemoryDatabase, is_committed: bool
    ) -> AbstractContextManager[object]:
        """Stand around a change of the program, or one that is only tried; raises to refuse it."""
