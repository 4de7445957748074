"""A walk under way: a live database beside its model, and how one step is taken and checked.

A step is plain data, a verb and its arguments. Taking it writes a line of Python, makes the call,
and compares what came back and every relation with the model. A step that means nothing where the
walk has come to (its relation is gone, say) is passed over, so a walk of which steps were left out
is a walk, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from expected import VIOLATED, Made, Model, Moment, Operation, known

import deltalog
from deltalog.checks.program import check_program
from deltalog.diagnostics.report import DeltalogError
from deltalog.language.ast import Row
from deltalog.rewrites.strategies import STRATEGIES
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.delivery_records import Book
from deltalog.runtime.messages import Message
from deltalog.runtime.model import Options, make_model
from reference_rules import RefusedError, register
from treatments import LIMITS, check_ranks

Step = tuple[Any, ...]
Form = Callable[..., Any]
"""Makes a table out of the names of columns and rows; `list` leaves rows as they are."""


class WrongError(AssertionError):
    """A database did something else than the model says."""


class Veto:
    """The check of a database that has one; it refuses everything while it has a reason."""

    reason: str | None = None

    def __call__(self, change: ChangeSet) -> str | None:
        return self.reason


VETO = Veto()


@dataclass(frozen=True)
class Manner:
    """The options of a database."""

    engine: str
    strategy: str | Mapping[str, str] = "auto"
    materialize: bool = True
    network: str = "bushy"
    nervous: bool = False
    is_checked: bool = False

    def __str__(self) -> str:
        names = ("engine", "strategy", "materialize", "network", "nervous", "is_checked")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    @property
    def options(self) -> dict[str, Any]:
        shown = {"engine": self.engine, "strategy": self.strategy, "network": self.network}
        check = {"check": VETO} if self.is_checked else {}
        kept = {"materialize": self.materialize, "nervous": self.nervous, "limits": LIMITS}
        return {**shown, **kept, **check}

    def under(self, text: str) -> Manner:
        """What is left of it under another program: strategies only of views that this has."""
        if isinstance(self.strategy, str):
            return self
        views = {"*", *known(text).views}
        kept = {name: chosen for name, chosen in self.strategy.items() if name in views}
        return replace(self, strategy=kept)

    def refusal(self, text: str) -> str | None:
        """The code of the error with which a program is refused; None if it fits."""
        try:
            options = Options.of(self.strategy, self.materialize, self.network, self.nervous)
            make_model(check_program(known(text).program), options)
        except DeltalogError as error:
            return error.codes[0]
        return None


def drawn_manner(rng: random.Random, text: str, engine: str, nervous: bool = False) -> Manner:
    """A strategy for all views, or one for each, that fits the program."""
    network = rng.choice(("bushy", "flat"))
    if nervous:
        made = Manner(engine, "differencing", False, network, True)
        if made.refusal(text) is None:
            return made
    strategy = rng.choice(list(STRATEGIES))
    made = Manner(engine, strategy, rng.random() < 0.6, network, is_checked=rng.random() < 0.3)
    views = known(text).views
    if views and rng.random() < 0.35:
        chosen = {name: rng.choice(list(STRATEGIES)) for name in views if rng.random() < 0.6}
        mixed = replace(made, strategy={"*": strategy, **chosen})
        return made if mixed.refusal(text) else mixed
    return made


@dataclass(frozen=True)
class Setting:
    """Where a walk begins: everything but its steps."""

    store: str
    family: tuple[str, ...]
    manner: Manner
    facts: tuple[tuple[str, tuple[Row, ...]], ...]

    @property
    def moment(self) -> Moment:
        text = self.family[0]
        facts = {name: set(rows) for name, rows in self.facts}
        for name, row in known(text).written:
            facts.setdefault(name, set()).add(row)
        return Moment.of(text, facts)


def check_marks(database: Any, moment: Moment) -> None:
    """Rules are active for what they were activated for, and have fired and emitted what is due."""
    marks, rules = moment.marks, moment.known.program.active_rules
    counts = dict(marks.fired)
    expected = [
        (r.name, marks.is_active(r), counts.get(r.name, 0), marks.parameters(r)) for r in rules
    ]
    found = [(s.name, s.is_active, s.firings, set(s.parameters)) for s in database.rules()]
    if found != expected:
        raise WrongError(f"rules {found}, expected {expected}")
    messages = database.messages()
    if tuple((m.rule, m.name, tuple(m.arguments)) for m in messages) != marks.messages:
        raise WrongError(f"messages {messages}, expected {marks.messages}")
    numbers = [message.sequence for message in messages]
    if numbers != sorted(set(numbers)) or len({m.id for m in messages}) < len(messages):
        raise WrongError(f"messages have numbers {numbers}")


def check_fired(delta: Any, made: Made, called: list[tuple[str, list[Row]]]) -> None:
    """What fired, in order, which functions were called, and whether a what-if was rejected."""
    fired = tuple((firing.rule, firing.instance) for firing in delta.firings)
    if fired != made.firings:
        raise WrongError(f"fired {fired}, expected {made.firings}")
    calls = tuple((name, tuple(rows)) for name, rows in called)
    if calls != made.calls:
        raise WrongError(f"called {calls}, expected {made.calls}")
    if bool(delta.rejections) != made.is_rejected:
        raise WrongError(f"rejections {delta.rejections}")


@dataclass(frozen=True)
class Action:
    """A call, what it must come back with, and what follows if it succeeds."""

    line: str
    call: Callable[[], Any]
    check: Callable[[Any], None] = lambda _: None
    after: Callable[[], None] = lambda: None
    error: str | None = None


def messages_left(messages: list[Message], book: Book, recipient: str) -> list[Message]:
    """The messages that have not come to a recipient, who gets all."""
    if (recipient,) not in book.recipients:
        return messages
    return [m for m in messages if m.sequence > book.queue(recipient, m.rule).settled]


class Walker:
    """A database, what it must be, and who is beside it."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting = setting
        self.folder = folder
        self.manner = setting.manner
        self.model = Model({0: setting.moment})
        self.lines: list[str] = []
        self.calls: list[tuple[str, list[Row]]] = []  # of functions, by the step under way
        self.steps = 0
        self.late: list[tuple[ChangeSet, Moment, Moment, str]] = []  # deltas that are read later
        self.reader: deltalog.FileDatabase | None = None
        self.reader_manner = setting.manner
        self.reader_version = 0
        self.group: ExitStack | None = None
        self.copies: list[tuple[Path, Model]] = []
        self.path = folder / "walk.db"
        text, facts = setting.family[0], {name: list(rows) for name, rows in setting.facts}
        if self.is_file:
            self.line(f"db = connect('walk.db', program={text!r}, facts={facts}, {self.manner})")
            self.db: Any = self.opened(self.path, program=text, facts=facts, durability="normal")
        else:
            self.line(f"db = connect(program={text!r}, facts={facts}, {self.manner})")
            self.db = self.opened(program=text, facts=facts)
        self.check_state()

    @property
    def is_file(self) -> bool:
        return self.setting.store == "file"

    @property
    def now(self) -> Moment:
        return self.model.now

    def line(self, text: str) -> None:
        self.lines.append(text)

    # --- taking a step

    def run(self, action: Action, *stops: type[BaseException]) -> None:
        """Take it; one of `stops` may end it, and then nothing has changed."""
        self.line(action.line)
        self.calls.clear()
        try:
            answer = action.call()
        except stops as error:
            self.line(f"# {type(error).__name__}")
        except DeltalogError as error:
            if action.error is None or action.error not in error.codes:
                raise
            self.line(f"# {action.error}")
        else:
            if action.error is not None:
                raise WrongError(f"no {action.error}, but {answer!r}")
            action.check(answer)
            action.after()
        self.check_state()

    def changing(
        self,
        operations: tuple[Operation, ...],
        how: str,
        is_late: bool = False,
        views: tuple[str, ...] | None = None,
        form: Form = list,
    ) -> Action:
        """A transaction, or a what-if: of some views, with rows in some form."""
        before = self.now
        try:
            made, error = before.made(operations, how == "what_if"), None
        except RefusedError as refusal:
            made, error = Made(before, ()), str(refusal)
        after = made.after
        line, call = self._call(operations, how, views, form)

        def check(delta: Any) -> None:
            check_fired(delta, made, self.calls)
            if is_late:
                self.late.append((delta, before, after, line))
            else:
                self.check_delta(delta, before, after, views=views)

        def done() -> None:
            if how != "what_if" and after != before:
                self.model.commit(after, self.model.version + 1)

        return Action(line, call, check, done, error)

    def _call(
        self,
        operations: tuple[Operation, ...],
        how: str,
        views: tuple[str, ...] | None,
        form: Form,
    ) -> tuple[str, Callable[[], Any]]:
        wanted = {} if views is None else {"views": views}
        made = "" if form is list else f"  # rows as {form.__name__}"
        if how == "transaction":
            shown = "; ".join(
                f"tx.{kind}({name!r}, {rows[0] if kind == 'set' else list(rows)!r})"
                for kind, name, rows in operations
            )
            text = ", ".join(f"{name}={each}" for name, each in wanted.items())
            line = f"with db.transaction({text}) as tx: {shown}{made}"
            return line, lambda: self._transaction(operations, form, **wanted)
        kinds = [k for k in ("insert", "delete", "set") if any(k == o[0] for o in operations)]
        rows_of = {k: {name: rows for kind, name, rows in operations if kind == k} for k in kinds}
        shown = ", ".join(f"{name}={value}" for name, value in {**rows_of, **wanted}.items())

        def call() -> Any:
            formed = {
                kind: {name: self._formed(form, name, rows) for name, rows in each.items()}
                for kind, each in rows_of.items()
            }
            return getattr(self.db, how)(**formed, **wanted)

        return f"db.{how}({shown}){made}", call

    def _formed(self, form: Form, name: str, rows: tuple[Row, ...]) -> Any:
        columns = self.now.known.relations[name].columns
        if form is list or not columns:  # a table without columns has no size
            return list(rows)
        return form([column.name for column in columns], rows)

    def _transaction(
        self, operations: tuple[Operation, ...], form: Form, **wanted: Any
    ) -> ChangeSet:
        with self.db.transaction(**wanted) as tx:
            for kind, name, rows in operations:
                is_one = kind == "set" and form is list
                getattr(tx, kind)(name, rows[0] if is_one else self._formed(form, name, rows))
        delta: ChangeSet = tx.delta
        return delta

    def going_over(self, text: str, is_committed: bool, inactive: tuple[str, ...] = ()) -> Action:
        """A change of programs, after which some rules without parameters are not active."""
        before, error = self.now, self.manner.under(text).refusal(text)
        if error is None and is_committed and "emit" not in text and self.has_undelivered():
            error = "E1607"
        try:
            after = before.under(text)
            idle = after.marks.inactive.union(inactive)
            after = replace(after, marks=replace(after.marks, inactive=idle))
        except RefusedError as refusal:
            after, error = before, error or str(refusal)
        if error is None and is_committed and after.is_violated:
            error = VIOLATED
        if self.group is not None and is_committed:
            error = "E0913"

        def done() -> None:
            if is_committed:
                version = self.model.version
                self.manner = self.manner.under(text)
                if known(text).program != before.known.program or after != before:
                    self.model.commit(after, version + 1)
                    self.model.programs.add(version + 1)

        return Action(
            f"db.change_program({text!r}, is_committed={is_committed}, inactive={inactive})",
            lambda: self.db.change_program(text, is_committed=is_committed, inactive=inactive),
            lambda delta: self.check_delta(delta, before, after),
            done,
            error,
        )

    def unreceived(self, recipient: str) -> list[Message]:
        """The messages that have not come to a recipient, who gets all."""
        return messages_left(self.db.messages(), self.db.delivery_book(), recipient)

    def has_undelivered(self) -> bool:
        """Whether a message has not come to everybody who is known, or nobody is."""
        names = [each.name for each in self.db.delivery_book().recipients.values()]
        return any(self.unreceived(name) for name in names or ["python"])

    # --- comparing

    def check_delta(
        self,
        delta: ChangeSet,
        before: Moment,
        after: Moment,
        manner: Manner | None = None,
        views: tuple[str, ...] | None = None,
    ) -> None:
        """A delta is exact; a nervous one may say too much about views, and never too little."""
        expected = before.to(after)
        if views is not None:
            expected = expected.without(*{*before.known.views} - {*views})
        if not (manner or self.manner).nervous:
            if delta != expected:
                raise WrongError(f"delta {delta}, expected {expected}")
            return
        for found, true in ((delta.inserted, expected.inserted), (delta.deleted, expected.deleted)):
            for name in {*found, *true}:
                known = before.known if name in before.known.relations else after.known
                is_view = known.relations[name].kind == "view"
                if not (found[name] >= true[name] if is_view else found[name] == true[name]):
                    raise WrongError(f"nervous delta {delta}, expected {expected} at least")

    def check_state(self) -> None:
        self.compare_state(self.db, self.now)
        check_marks(self.db, self.now)
        if self.db.version != self.model.version:
            raise WrongError(f"version {self.db.version}, expected {self.model.version}")
        if self.is_file:
            check_ranks(self.db)

    def compare_state(self, database: Any, moment: Moment, version: int | None = None) -> None:
        past = () if version is None else (version,)
        if version is None and database.relations.keys() != moment.state.keys():
            raise WrongError(f"relations {sorted(database.relations)}")
        for name, rows in moment.state.items():
            found = database.facts(name, *past)
            if found != rows:
                when = "" if version is None else f" at version {version}"
                more, less = sorted(found - rows, key=repr), sorted(rows - found, key=repr)
                raise WrongError(f"facts of {name}{when}: too many {more}, missing {less}")

    def opened(self, *place: Path, **options: Any) -> Any:
        """A database with the functions that rules call."""
        connect: Any = deltalog.connect
        db = connect(*place, **options, **self.manner.options)
        register(db, self.calls)
        return db

    def read_late(self) -> None:
        """Deltas that were not read at once are the same later."""
        late, self.late = self.late, []
        for delta, before, after, line in late:
            try:
                self.check_delta(delta, before, after)
            except WrongError as error:
                raise WrongError(f"read later, of {line}: {error}") from None

    # --- those beside

    def close_reader(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def end_group(self) -> None:
        if self.group is not None:
            group, self.group = self.group, None
            group.close()
            self.model.due = None
            self.model.visible = self.model.version

    def close(self) -> None:
        with suppress(Exception):
            self.end_group()
        with suppress(Exception):
            self.close_reader()
        with suppress(Exception):
            if self.is_file:
                self.db.close()
