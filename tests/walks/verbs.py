"""Every verb of a database: how a walk draws it, and how it is taken.

`draw` looks at the model only, never at the database, so a seed always gives the same walk; it
returns the arguments of a step, or None where the verb makes no sense. `take` makes the step. A
verb that changes something or asks something is also taken under a limit, and interrupted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count, product
from typing import Any

from expected import (
    Moment,
    Named,
    Operation,
    Part,
    Question,
    answers,
    in_domain,
    is_fit,
    known,
    variables,
)
from families import domain, drawn_rows
from forms import FORMS
from walker import VETO, Action, Manner, Walker, WrongError, check_fired, check_marks, drawn_manner

import deltalog
from deltalog.analysis.columns import Relation
from deltalog.cli.restore import _put_back
from deltalog.language.ast import Row
from deltalog.language.values import print_value, sort_key
from deltalog.runtime.messages import Message
from reference_rules import RefusedError
from treatments import LIMITS

Draw = Callable[["Drawing"], tuple[Any, ...] | None]
Take = Callable[..., None]
CHECK_REFUSED = "E1007"


class Stop(BaseException):
    """An interrupt, such as Ctrl-C: no `Exception`."""


class Drawing:
    """What steps are drawn from: the walk as it stands, and what was drawn before."""

    def __init__(self, rng: random.Random, walker: Walker) -> None:
        self.rng = rng
        self.walker = walker
        self.operations: list[tuple[Operation, ...]] = []
        self.questions: list[Question] = []

    @property
    def moment(self) -> Moment:
        return self.walker.now

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def rows(self, relation: Relation, at_most: int = 3) -> list[Row]:
        return drawn_rows(self.rng, relation, at_most)

    def held(self, relation: Relation) -> list[Row]:
        """Facts of a base relation, in an order that does not depend on their hashes."""
        return sorted(self.moment.base[relation.name], key=repr)

    def version(self) -> int:
        return self.rng.choice(list(self.walker.model.versions()))

    # --- changes

    def change(self, is_plain: bool) -> tuple[Operation, ...] | None:
        """A change: one of before, its opposite, or another one; `is_plain` has no toggles."""
        known_names = {relation.name for relation in self.moment.known.base}
        if not known_names:
            return None
        fitting = [o for o in self.operations[-4:] if {name for _, name, _ in o} <= known_names]
        plain = [o for o in fitting if not is_plain or _is_plain(o)]
        made: tuple[Operation, ...]
        if plain and self.chance(0.45):
            made = self.rng.choice(plain)
            if self.chance(0.6):
                made = _opposite(made)
        else:
            made = self._plain() if is_plain else self._toggles()
        self.operations.append(made)
        return made if all(self._fits(*operation) for operation in made) else None

    def _fits(self, kind: str, name: str, rows: tuple[Row, ...]) -> bool:
        return all(len(row) == self.moment.known.relations[name].arity for row in rows)

    def _plain(self) -> tuple[Operation, ...]:
        deleted, inserted = {}, {}
        for relation in self._some_base():
            gone = [row for row in self.held(relation) if self.chance(0.35)][:3]
            if gone or self.chance(0.3):
                deleted[relation.name] = tuple(gone or self.rows(relation, 1))
            if self.chance(0.7):
                inserted[relation.name] = tuple(self.rows(relation))
        return (
            *(("delete", name, rows) for name, rows in deleted.items()),
            *(("insert", name, rows) for name, rows in inserted.items()),
        )

    def _some_base(self) -> list[Relation]:
        base = list(self.moment.known.base)
        return self.rng.sample(base, self.rng.randint(1, min(2, len(base))))

    def _toggles(self) -> tuple[Operation, ...]:
        """Rows that come, go and come again inside one transaction."""
        made: list[Operation] = []
        for _ in range(self.rng.randint(1, 5)):
            relation = self.rng.choice(self.moment.known.base)
            kinds = ("insert", "delete", "set", "set") if relation.key else ("insert", "delete")
            kind = self.rng.choice(kinds)
            rows = self.rows(relation, 1 if kind == "set" else 2)
            if made and self.chance(0.4):  # the row of an operation before
                other = self.rng.choice(made)
                relation, rows = self.moment.known.relations[other[1]], list(other[2])
                kind = self.rng.choice(("insert", "delete"))
            elif kind == "delete" and self.held(relation):
                rows = [self.rng.choice(self.held(relation))]
            made.append((kind, relation.name, tuple(rows)))
        return tuple(made)

    # --- questions

    def question(self) -> Question:
        """One of before with other constants, or a new one."""
        fitting = [q for q in self.questions[-6:] if is_fit(q, self.moment.known.relations)]
        if fitting and self.chance(0.7):
            return tuple(self._other_constants(part) for part in self.rng.choice(fitting))
        made = self._new_question()
        self.questions.append(made)
        return made

    def _other_constants(self, part: Part) -> Part:
        columns = self.moment.known.relations[part.relation].columns
        terms = tuple(
            t if isinstance(t, Named) else self.rng.choice(domain(c.type, c.nullable))
            for t, c in zip(part.terms, columns, strict=True)
        )
        return Part(part.relation, terms, part.is_negated)

    def _new_question(self) -> Question:
        types: dict[str, str | None] = {}
        parts = [self._part(types, is_negated=False)]
        while self.chance(0.35) and len(parts) < 3:
            parts.append(self._part(types, is_negated=self.chance(0.4)))
        return tuple(parts)

    def _part(self, types: dict[str, str | None], is_negated: bool) -> Part:
        relation = self.moment.known.relations[self.rng.choice(sorted(self.moment.known.relations))]
        terms: list[object] = []
        own = dict(types) if is_negated else types
        for column in relation.columns:
            bound = [name for name, type_ in own.items() if type_ == column.type]
            if bound and self.chance(0.5):
                terms.append(Named(self.rng.choice(bound)))
            elif self.chance(0.4):
                terms.append(self.rng.choice(domain(column.type, column.nullable)))
            elif is_negated or self.chance(0.25):
                terms.append(Named("_"))
            else:
                name = f"V{len(own)}"
                own[name] = column.type
                terms.append(Named(name))
        return Part(relation.name, tuple(terms), is_negated)


def _is_plain(operations: tuple[Operation, ...]) -> bool:
    """Whether `apply` can make it: deletions, then insertions, one of each for a relation."""
    kinds = [(kind, name) for kind, name, _ in operations]
    return (
        sorted(k for k, _ in kinds) == [k for k, _ in kinds]
        and len(set(kinds)) == len(kinds)
        and "set" not in dict(kinds)
    )


def _opposite(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    other = {"insert": "delete", "delete": "insert", "set": "delete"}
    made = [(other[kind], name, rows) for kind, name, rows in operations]
    return tuple(sorted(made, key=lambda operation: operation[0]))


# --- verbs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verb:
    """A kind of step; `weight` is how often it is drawn."""

    draw: Draw
    take: Take
    weight: int
    store: str | None = None


VERBS: dict[str, Verb] = {}


def verb(draw: Draw, weight: int, store: str | None = None) -> Callable[[Take], Take]:
    def named(take: Take) -> Take:
        VERBS[take.__name__] = Verb(draw, take, weight, store)
        return take

    return named


def knows(walker: Walker, operations: tuple[Operation, ...]) -> bool:
    relations = walker.now.known.relations
    return all(
        name in relations
        and relations[name].kind == "base"
        and all(fits_row(relations[name], row) for row in rows)
        for _, name, rows in operations
    )


def fits_row(relation: Relation, row: Row) -> bool:
    return len(row) == relation.arity and all(map(in_domain, row, relation.columns))


def _drawn_change(how: str) -> Draw:
    def draw(drawing: Drawing) -> tuple[Any, ...] | None:
        operations = drawing.change(is_plain=how != "transaction")
        return None if not operations else (operations, drawing.chance(0.2))

    return draw


def _action(walker: Walker, how: str, *arguments: Any) -> Action | None:
    """What a change, a what-if, a question or a change of programs is, where it makes sense."""
    if how in ("apply", "transaction", "what_if"):
        operations, *is_late = arguments
        return (
            walker.changing(operations, how, bool(is_late and is_late[0]))
            if knows(walker, operations)
            else None
        )
    if how == "query":
        return _asking(walker, arguments[0])
    return walker.going_over(*arguments)


def _asking(walker: Walker, question: Question) -> Action | None:
    if not is_fit(question, walker.now.known.relations):
        return None
    text = ", ".join(map(str, question))
    expected = answers(question, walker.now.state)

    def check(rows: Any) -> None:
        if list(rows) != sorted(expected, key=sort_key):
            raise WrongError(f"answers {rows}, expected {sorted(expected, key=repr)}")
        if rows.names != tuple(variables(question)):
            raise WrongError(f"answers with columns {rows.names}")

    return Action(f"db.query({text!r})", lambda: walker.db.query(text), check)


def _taken(walker: Walker, how: str, *arguments: Any) -> None:
    action = _action(walker, how, *arguments)
    if action is not None:
        walker.run(action)


@verb(_drawn_change("apply"), 14)
def apply(walker: Walker, *arguments: Any) -> None:
    _taken(walker, "apply", *arguments)


@verb(_drawn_change("transaction"), 8)
def transaction(walker: Walker, *arguments: Any) -> None:
    _taken(walker, "transaction", *arguments)


@verb(_drawn_change("what_if"), 8)
def what_if(walker: Walker, *arguments: Any) -> None:
    _taken(walker, "what_if", *arguments)


@verb(_drawn_change("apply"), 4)
def what_if_and_then(walker: Walker, *arguments: Any) -> None:
    """A what-if, and then the same for real."""
    _taken(walker, "what_if", *arguments)
    _taken(walker, "apply", *arguments)


@verb(lambda d: (d.question(),), 12)
def query(walker: Walker, question: Question) -> None:
    _taken(walker, "query", question)


def drawn_program(drawing: Drawing) -> tuple[Any, ...] | None:
    """Another program of the family, and rules of it that shall be inactive."""
    text = drawing.rng.choice(drawing.walker.setting.family)
    plain = [rule.name for rule in known(text).program.active_rules if not rule.parameters]
    inactive = tuple(name for name in plain if drawing.chance(0.25))
    return text, drawing.chance(0.7), inactive


@verb(drawn_program, 5)
def change_program(walker: Walker, text: str, is_committed: bool, *inactive: Any) -> None:
    _taken(walker, "change_program", text, is_committed, *inactive)


@verb(lambda d: (), 2)
def violations(walker: Walker) -> None:
    """All constraints that are violated now, each with its facts."""
    expected = walker.now.violations()
    walker.line("db.violations()")
    found = {(each.constraint, each.fact) for each in walker.db.violations()}
    if found != expected:
        raise WrongError(f"violations {found}, expected {expected}")
    for name in {constraint for constraint, _ in expected}:
        own = {(each.constraint, each.fact) for each in walker.db.violations(name)}
        if own != {each for each in expected if each[0] == name}:
            raise WrongError(f"violations of {name}: {own}")


def _drawn_with_set(drawing: Drawing) -> tuple[Any, ...] | None:
    """A plain change, and then rows that are set by their keys."""
    operations = drawing.change(is_plain=True)
    keyed = [relation for relation in drawing.moment.known.base if relation.key]
    if not operations or not keyed:
        return None
    relation = drawing.rng.choice(keyed)
    put: Operation = ("set", relation.name, tuple(drawing.rows(relation, 2)))
    return drawing.rng.choice(("apply", "what_if")), (*operations, put)


@verb(_drawn_with_set, 2)
def with_set(walker: Walker, how: str, operations: tuple[Operation, ...]) -> None:
    _taken(walker, how, operations)


def _drawn_for_some_views(drawing: Drawing) -> tuple[Any, ...] | None:
    how = drawing.rng.choice(("apply", "what_if", "transaction"))
    operations = drawing.change(is_plain=how != "transaction")
    views = tuple(view for view in drawing.moment.known.views if drawing.chance(0.4))
    return None if not operations else (how, operations, views)


@verb(_drawn_for_some_views, 6)
def for_some_views(
    walker: Walker, how: str, operations: tuple[Operation, ...], views: tuple[str, ...]
) -> None:
    """A change of which the caller wants to know what it does to some views only."""
    if knows(walker, operations) and {*views} <= {*walker.now.known.views}:
        walker.run(walker.changing(operations, how, views=views))


def _drawn_with_tables(drawing: Drawing) -> tuple[Any, ...] | None:
    how = drawing.rng.choice(("apply", "what_if", "transaction"))
    operations = drawing.change(is_plain=how != "transaction")
    return None if not operations else (how, operations, drawing.rng.choice(sorted(FORMS)))


@verb(_drawn_with_tables, 4)
def with_tables(walker: Walker, how: str, operations: tuple[Operation, ...], form: str) -> None:
    """A change whose rows come as tables."""
    if knows(walker, operations):
        walker.run(walker.changing(operations, how, form=FORMS[form]))


def activated(now: Moment, is_activated: bool, name: str, values: Row) -> Moment | None:
    """The moment after an activation; None if there is no such rule."""
    rules = {rule.name: rule for rule in now.known.program.active_rules}
    if name not in rules or len(rules[name].parameters) != len(values):
        return None
    if values:
        own, active = {(name, values)}, now.marks.active
        marks = replace(now.marks, active=active | own if is_activated else active - own)
    else:
        idle = now.marks.inactive
        marks = replace(now.marks, inactive=idle - {name} if is_activated else idle | {name})
    return replace(now, marks=marks)


def drawn_activation(drawing: Drawing) -> tuple[Any, ...] | None:
    rules = drawing.moment.known.program.active_rules
    if not rules:
        return None
    rule = drawing.rng.choice(rules)
    values = tuple(drawing.rng.choice((1, 2, 3)) for _ in rule.parameters)
    return drawing.chance(0.6), rule.name, values


@verb(drawn_activation, 6)
def activation(walker: Walker, is_activated: bool, name: str, values: Row) -> None:
    """A rule is activated or deactivated, by which nothing fires."""
    after = activated(walker.now, is_activated, name, values)
    if after is None:
        return
    rules = {rule.name: rule for rule in walker.now.known.program.active_rules}
    given = {v.name: value for v, value in zip(rules[name].parameters, values, strict=True)}
    verb = "activate" if is_activated else "deactivate"

    def done() -> None:
        if after != walker.now:
            walker.model.commit(after, walker.model.version + 1)

    call = lambda: getattr(walker.db, verb)(name, **given)  # noqa: E731
    walker.run(Action(f"db.{verb}({name!r}, **{given})", call, after=done))


@verb(lambda d: (d.rng.randint(0, 5),), 2)
def messages(walker: Walker, number: int) -> None:
    """Messages behind one of them."""
    found = walker.db.messages()
    if len(found) > number:
        after = found[number].sequence
        walker.line(f"db.messages(after={after})")
        if walker.db.messages(after=after) != found[number + 1 :]:
            raise WrongError(f"messages behind {after}: {walker.db.messages(after=after)}")


@verb(lambda d: (d.rng.randint(0, 3),), 2)
def dead_letters(walker: Walker, failing: int) -> None:
    """What fails at once for another recipient is a dead letter there, until it is forgotten."""
    if walker.group is not None or not walker.db.messages():
        return
    tried, dead = count(), list[Message]()

    def receive(message: Message) -> None:
        if next(tried) >= failing:
            dead.append(message)
            raise OSError("nobody listens")

    walker.line(f"db.dispatch(receive, target='other', pauses_seconds=[])  # {failing} fail not")
    done = walker.db.dispatch(receive, target="other", pauses_seconds=[])
    letters = {each.id for each in walker.db.dead_letters() if each.recipient == "other"}
    if done.waiting or done.dead != len(dead) or not letters.issuperset(m.id for m in dead):
        raise WrongError(f"{done}, dead letters {letters}, expected {dead}")
    again: list[Message] = []
    if walker.db.dispatch(again.append, target="other").delivered or again:
        raise WrongError(f"delivered again: {again}")


@verb(lambda d: (d.rng.randint(0, 3),), 2)
def dispatch(walker: Walker, failing: int) -> None:
    """Messages that nobody has received are delivered, in order per rule, also after a failure."""
    if walker.group is not None:
        return
    waiting, tried, found = walker.unreceived("python"), count(), list[Message]()

    def receive(message: Message) -> None:
        if next(tried) == failing:
            raise OSError("not now")
        found.append(message)

    walker.line(f"db.dispatch(receive)  # {failing} fails first")
    done = walker.db.dispatch(receive, pauses_seconds=[0])
    rules = {message.rule for message in waiting}
    for rule in rules:
        if [m for m in found if m.rule == rule] != [m for m in waiting if m.rule == rule]:
            raise WrongError(f"delivered {found}, expected {waiting}")
    if done.delivered != len(waiting) or len(found) != len(waiting) or walker.unreceived("python"):
        raise WrongError(f"{done}, expected {len(waiting)} deliveries")


@verb(_drawn_change("apply"), 3)
def vetoed(walker: Walker, operations: tuple[Operation, ...], is_tried: bool) -> None:
    """A change that the check of the database refuses; a what-if is not checked."""
    if not walker.manner.is_checked or not knows(walker, operations):
        return
    action = walker.changing(operations, "what_if" if is_tried else "apply")
    try:
        is_refused = not is_tried and walker.now.made(operations).after != walker.now
    except RefusedError:
        is_refused = False

    def call() -> Any:
        VETO.reason = "it is late"
        try:
            return action.call()
        finally:
            VETO.reason = None

    walker.line("# with a check that refuses")
    error = action.error or (CHECK_REFUSED if is_refused else None)
    walker.run(Action(action.line, call, action.check, action.after, error))


def _drawn_own_writes(drawing: Drawing) -> tuple[Any, ...]:
    questions = tuple(drawing.question() for _ in range(2))
    return drawing.change(is_plain=False), questions, drawing.chance(0.5)


@verb(_drawn_own_writes, 6)
def own_writes(
    walker: Walker,
    operations: tuple[Operation, ...] | None,
    questions: tuple[Question, ...],
    is_committed: bool,
) -> None:
    """What a transaction reads after each operation is what a commit there would make."""
    if not operations or not knows(walker, operations):
        return
    before = walker.now
    try:
        made = before.made(operations)
    except RefusedError:
        return
    asked = [each for each in questions if is_fit(each, before.known.relations)]

    def call() -> Any:
        with walker.db.transaction() as tx:
            for (kind, name, rows), moment in zip(operations, made.during, strict=True):
                getattr(tx, kind)(name, rows[0] if kind == "set" else list(rows))
                _check_own(tx, moment, asked)
            if not is_committed:
                raise Stop
        return tx.delta

    def after() -> None:
        if made.after != before:
            walker.model.commit(made.after, walker.model.version + 1)

    def check(delta: Any) -> None:
        check_fired(delta, made, walker.calls)
        walker.check_delta(delta, before, made.after)

    walker.run(
        Action(
            f"{'commit' if is_committed else 'roll back'} {operations}, reading {asked}",
            call,
            check,
            after,
        ),
        Stop,
    )


def _check_own(tx: deltalog.Transaction, moment: Moment, asked: list[Question]) -> None:
    for question in asked:
        text, values = _with_parameters(question)
        found, expected = set(tx.query(text, values)), answers(question, moment.state)
        if found != expected:
            raise WrongError(f"tx.query({text!r}, {values}) is {found}, expected {expected}")
    for name, rows in moment.state.items():
        if (facts := tx.facts(name)) != rows:
            raise WrongError(f"tx.facts({name!r}) is {facts}, expected {rows}")


def _with_parameters(question: Question) -> tuple[str, dict[str, object]]:
    """The text of a question with a parameter for every constant, and their values."""
    values: dict[str, object] = {}
    parts = []
    for part in question:
        terms: list[object] = []
        for term in part.terms:
            if not isinstance(term, Named):
                name = f"p{len(values)}"
                values[name], term = term, Named(f"${name}")
            terms.append(term)
        parts.append(Part(part.relation, tuple(terms), part.is_negated))
    return ", ".join(map(str, parts)), values


@verb(lambda d: (d.question(),), 6)
def query_with_parameters(walker: Walker, question: Question) -> None:
    action = _asking(walker, question)
    if action is not None:
        text, values = _with_parameters(question)
        line = f"db.query({text!r}, {values})"
        walker.run(Action(line, lambda: walker.db.query(text, values), action.check))


@verb(lambda d: (d.question(),), 1)
def explain(walker: Walker, question: Question) -> None:
    """An explanation changes nothing."""
    if is_fit(question, walker.now.known.relations):
        text = ", ".join(map(str, question))
        walker.run(Action(f"db.explain({text!r})", lambda: walker.db.explain(text)))
        walker.run(Action("db.explain()", lambda: walker.db.explain(propagation=True)))


@verb(lambda d: (d.version(), d.question()), 4, "file")
def query_as_of(walker: Walker, version: int, question: Question) -> None:
    model = walker.model
    if not model.first <= version <= model.version:
        return
    moment = model.moments[version]
    if not is_fit(question, moment.known.relations):
        return
    text, values = _with_parameters(question)

    def check(rows: Any) -> None:
        if set(rows) != answers(question, moment.state):
            raise WrongError(f"answers {rows}, expected {answers(question, moment.state)}")

    line = f"db.query({text!r}, {values}, version={version})"
    walker.run(Action(line, lambda: walker.db.query(text, values, version=version), check))


@verb(lambda d: (d.change(is_plain=False),), 2)
def roll_back(walker: Walker, operations: tuple[Operation, ...] | None) -> None:
    """A transaction whose block raises."""
    if not operations or not knows(walker, operations):
        return
    try:
        walker.now.made(operations)
    except RefusedError:
        return

    def call() -> None:
        with walker.db.transaction() as tx:
            for kind, name, rows in operations:
                getattr(tx, kind)(name, rows[0] if kind == "set" else list(rows))
            tx.net()
            raise Stop

    walker.run(Action(f"roll back {operations}", call), Stop)


def _drawn_inner(drawing: Drawing) -> tuple[Any, ...] | None:
    how = drawing.rng.choice(("apply", "transaction", "what_if", "query", "change_program"))
    if how == "query":
        return how, drawing.question()
    if how == "change_program":
        return how, *(drawn_program(drawing) or ())
    operations = drawing.change(is_plain=how != "transaction")
    return None if not operations else (how, operations)


def _drawn_limited(drawing: Drawing) -> tuple[Any, ...] | None:
    inner = _drawn_inner(drawing)
    limit = drawing.rng.choice(("facts_max", "facts_max", "rounds_max"))
    return inner and (limit, drawing.rng.randint(0, 6), *inner)


@verb(_drawn_limited, 4)
def limited(walker: Walker, limit: str, most: int, how: str, *arguments: Any) -> None:
    """Something that may reach a limit, and then has changed nothing."""
    action = _action(walker, how, *arguments)
    if action is None:
        return
    walker.line(f"db.limits = Limits({limit}={most})")
    walker.db.limits = replace(LIMITS, **{limit: most})  # type: ignore[arg-type]

    def call() -> Any:
        try:
            return action.call()
        finally:
            walker.db.limits = LIMITS

    walker.run(
        Action(action.line, call, action.check, action.after, action.error), deltalog.LimitError
    )


def _drawn_interrupted(drawing: Drawing) -> tuple[Any, ...] | None:
    inner = _drawn_inner(drawing)
    return inner and (drawing.rng.randint(1, 5), *inner)


@verb(_drawn_interrupted, 4)
def interrupted(walker: Walker, number: int, how: str, *arguments: Any) -> None:
    """Something that is interrupted while it computes, and then has changed nothing."""
    action = _action(walker, how, *arguments)
    if action is None:
        return
    walker.line(f"# interrupted at call {number} of `watch`")
    left = number

    def watch(rounds: int, facts: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    def call() -> Any:
        walker.db.watch = watch
        try:
            return action.call()
        finally:
            walker.db.watch = None

    walker.run(
        Action(action.line, call, action.check, action.after, action.error), KeyboardInterrupt
    )


# --- what is refused


def _drawn_refused(drawing: Drawing) -> tuple[Any, ...]:
    return drawing.rng.choice(sorted(BAD)), drawing.rng.randint(0, 99)


def _first_base(walker: Walker) -> Relation:
    return walker.now.known.base[0]


BAD: dict[str, Callable[[Any, Walker], Any]] = {
    "unknown": lambda db, w: db.apply(insert={"nobody": [(1,)]}),
    "unknown facts": lambda db, w: db.facts("nobody"),
    "unknown query": lambda db, w: db.query("nobody(X)"),
    "bad query": lambda db, w: db.query("X <"),
    "unsafe query": lambda db, w: db.query("not edge(X, Y)"),
    "arity": lambda db, w: db.what_if(
        insert={_first_base(w).name: [(1,) * (_first_base(w).arity + 1)]}
    ),
    "type": lambda db, w: db.apply(insert={_first_base(w).name: [(b"x",) * _first_base(w).arity]}),
    "view": lambda db, w: db.apply(delete={(w.now.known.views or ("nobody",))[0]: []}),
    "program": lambda db, w: db.change_program("base b(x: int). v(X) :- b(Y)."),
    "unstratified": lambda db, w: db.change_program("base b(x: int). v(X) :- b(X), not v(X)."),
    "second half": lambda db, w: _half_bad(db, w),
    "unknown rule": lambda db, w: db.activate("nobody"),
    "bad parameter": lambda db, w: db.deactivate(_first_rule(w), Nobody=1),
}


def _first_rule(walker: Walker) -> str:
    return next((rule.name for rule in walker.now.known.program.active_rules), "nobody")


BAD_OF_FILES: dict[str, Callable[[Any, Walker], Any]] = {
    "version": lambda db, w: db.facts(_first_base(w).name, w.model.version + 1),
    "earlier": lambda db, w: db.delta(w.model.first - 1),
    "reader": lambda db, w: db.unregister("nobody"),
    "acknowledge": lambda db, w: db.acknowledge("nobody", w.model.version),
    "exists": lambda db, w: db.backup(w.path),
    "second writer": lambda db, w: deltalog.connect(w.path),
}


def _half_bad(db: Any, walker: Walker) -> None:
    """The first operation is all right, the second is not."""
    relation = _first_base(walker)
    with db.transaction() as tx:
        tx.delete(relation.name, sorted(walker.now.base[relation.name], key=repr))
        tx.insert(relation.name, [(b"x",) * (relation.arity or 1)])


@verb(_drawn_refused, 2)
def refused(walker: Walker, kind: str, number: int) -> None:
    """Bad input raises an error of ours and changes nothing."""
    kinds = {**BAD, **(BAD_OF_FILES if walker.is_file else {})}
    chosen = sorted(kinds)[number % len(kinds)]
    if not walker.now.known.base:
        return

    def call() -> None:
        kinds[chosen](walker.db, walker)
        raise WrongError(f"{chosen} was not refused")

    walker.run(Action(f"# refused: {chosen}", call), deltalog.DeltalogError)


# --- looking


@verb(lambda d: (), 1)
def audit(walker: Walker) -> None:
    def check(found: Any) -> None:
        if found != ():
            raise WrongError(f"audit: {found}")

    walker.run(Action("db.audit()", lambda: walker.db.audit(), check))


@verb(lambda d: (d.rng.randint(0, 99),), 2)
def rows(walker: Walker, number: int) -> None:
    """The facts of a relation, as rows and as a table."""
    names = sorted(walker.now.state)
    if not names:
        return
    name = names[number % len(names)]
    expected = walker.now.state[name]

    def check(found: Any) -> None:
        if set(found) != expected or len(found) != len(expected):
            raise WrongError(f"rows of {name}: {found}, expected {expected}")
        if walker.now.known.relations[name].arity:
            taken = found.to_arrow()
            listed = zip(*(column.to_pylist() for column in taken.columns), strict=True)
            if sorted(map(_comparable, listed)) != sorted(map(_comparable, expected)):
                raise WrongError(f"{name} as a table: {taken}, expected {expected}")

    walker.run(Action(f"db.rows({name!r})", lambda: walker.db.rows(name), check))


def _comparable(row: Row) -> str:
    """A row with decimals of any scale."""
    return repr([value.normalize() if isinstance(value, Decimal) else value for value in row])


def drawn_request(drawing: Drawing) -> tuple[Any, ...] | None:
    """A fact of a view, or one that it might have; it shall be otherwise."""
    state = drawing.moment.state
    views = [r for r in drawing.moment.known.relations.values() if r.kind == "view"]
    if not views:
        return None
    view = drawing.rng.choice(views)
    held = sorted(state[view.name], key=repr)
    mode = "first_level" if drawing.chance(0.3) else "complete"
    if held and drawing.chance(0.5):
        return view.name, drawing.rng.choice(held), mode
    drawn = drawing.rows(view, 1)
    return (view.name, drawn[0], mode) if drawn else None


@verb(drawn_request, 2)
def realize(walker: Walker, name: str, row: Row, mode: str, nodes: int = 20) -> None:
    """The cheapest change of base facts by which a derived fact turns, and what it induces."""
    relation = walker.now.known.relations.get(name)
    if relation is None or relation.kind != "view" or not fits_row(relation, row):
        return
    shall_hold = row not in walker.now.state[name]
    sign = "+" if shall_hold else "-"
    request = f"{sign}{name}({', '.join(map(print_value, row))})"
    budget = deltalog.Budget(nodes=nodes, answers=1, new_values=1)

    def check(found: Any) -> None:
        for each in found:
            inserted = (("insert", n, tuple(each.inserted[n])) for n in each.inserted)
            deleted = (("delete", n, tuple(each.deleted[n])) for n in each.deleted)
            later = walker.now.changed((*deleted, *inserted))
            if (row in later.state[name]) != shall_hold or later.is_violated:
                raise WrongError(f"{each} does not realize {request}")
            walker.check_delta(each.delta, walker.now, later)

    def ask() -> list[deltalog.Realization]:
        try:
            return list(walker.db.realize(request, budget=budget, mode=mode))
        except deltalog.DataError as error:
            if error.codes == ("E1404",):  # an aggregate
                return []
            raise

    walker.run(Action(f"db.realize({request!r}, mode={mode!r})", ask, check))


@verb(lambda d: (), 1)
def check_requests(walker: Walker) -> None:
    """The static check depends on the program alone, however the database got it."""
    expected = deltalog.connect(program=walker.now.text, engine="reference").check_requests()

    def check(found: Any) -> None:
        if found != expected:
            raise WrongError(f"{found}, expected {expected}")

    walker.run(Action("db.check_requests()", lambda: walker.db.check_requests(), check))


@verb(lambda d: (), 1)
def check_choices(walker: Walker) -> None:
    """What declared choices realize depends on the program alone."""
    expected = deltalog.connect(program=walker.now.text, engine="reference").check_choices()

    def check(found: Any) -> None:
        if found != expected:
            raise WrongError(f"{found}, expected {expected}")

    walker.run(Action("db.check_choices()", lambda: walker.db.check_choices(), check))


@verb(_drawn_change("apply"), 3)
def repair(walker: Walker, operations: tuple[Operation, ...], *_: Any) -> None:
    """A change that constraints refuse, with the least that repairs it."""
    if not knows(walker, operations) or not _is_plain(operations):
        return
    action = walker.changing(operations, "apply")
    if action.error != "E1101":
        return
    later = walker.now.changed(operations)
    budget = deltalog.Budget(nodes=20, answers=1, new_values=1)
    inserted, deleted = _sides(walker.now.to(later), walker)

    def ask() -> list[deltalog.Realization]:
        try:
            walker.db.apply(inserted, deleted)
        except deltalog.ConstraintError as refused:
            return list(refused.repairs(budget=budget))
        raise WrongError("a change that violates a constraint was not refused")

    def check(found: Any) -> None:
        for each in found:
            made = (("delete", n, tuple(each.deleted[n])) for n in each.deleted)
            added = (("insert", n, tuple(each.inserted[n])) for n in each.inserted)
            if walker.now.changed((*made, *added)).is_violated:
                raise WrongError(f"{each} does not repair {inserted} {deleted}")

    walker.run(Action(f"refused db.apply({inserted!r}, {deleted!r}).repairs()", ask, check))


def _sides(change: deltalog.ChangeSet, walker: Walker) -> tuple[Any, Any]:
    """The base facts that a change inserts and deletes."""
    names = {relation.name for relation in walker.now.known.base}
    return (
        {n: sorted(rows, key=repr) for n, rows in change.inserted.items() if n in names},
        {n: sorted(rows, key=repr) for n, rows in change.deleted.items() if n in names},
    )


@verb(lambda d: (), 2)
def read_late(walker: Walker) -> None:
    walker.read_late()


# --- opening again


def _drawn_manner(drawing: Drawing) -> tuple[Any, ...]:
    now = drawing.walker.manner
    engine = now.engine
    if drawing.chance(0.4):
        return (now,)
    return (drawn_manner(drawing.rng, drawing.moment.text, engine, now.nervous),)


@verb(_drawn_manner, 3)
def reopen(walker: Walker, manner: Manner) -> None:
    """Close and open, perhaps with other options; memory is filled with the facts it had."""
    if manner.refusal(walker.now.text) is not None:
        return
    if walker.is_file:
        walker.end_group()
        walker.line(f"db.close(); db = connect('walk.db', {manner})")
        walker.db.close()
        walker.manner = manner
        walker.db = walker.opened(walker.path, durability="normal")
    else:
        facts = walker.now.base
        for name, row in walker.now.known.written:
            facts[name].add(row)
        try:
            moment = Moment.of(walker.now.text, facts)
        except RefusedError:
            return
        if moment.is_violated:
            return
        given = {name: sorted(rows, key=repr) for name, rows in walker.now.base.items()}
        text = walker.now.text
        walker.line("db.close()")
        walker.db.close()
        _check_closed(walker)
        walker.line(f"db = connect(program={text!r}, facts={given}, {manner})")
        walker.manner = manner
        walker.db = walker.opened(program=text, facts=given)
        walker.model.moments, walker.model.version = {0: moment}, 0
    walker.read_late()
    walker.check_state()


def _check_closed(walker: Walker) -> None:
    try:
        walker.db.facts(_first_base(walker).name if walker.now.known.base else "nobody")
    except deltalog.DataError as error:
        if error.codes == ("E0911",):
            return
    raise WrongError("a closed database was read")


# --- files ----------------------------------------------------------------------------------------


def _drawn_reader(drawing: Drawing) -> tuple[Any, ...]:
    model = drawing.walker.model
    text = model.moments[model.visible].text
    engine = drawing.rng.choice(("reference", drawing.walker.manner.engine))
    return (drawn_manner(drawing.rng, text, engine, nervous=drawing.chance(0.2)),)


@verb(_drawn_reader, 2, "file")
def open_reader(walker: Walker, manner: Manner) -> None:
    walker.close_reader()
    moment = walker.model.moments[walker.model.visible]
    if manner.refusal(moment.text) is not None:
        return
    walker.line(f"reader = connect('walk.db', read_only=True, {manner})")
    walker.reader = deltalog.connect(walker.path, read_only=True, **manner.options)
    walker.reader_manner, walker.reader_version = manner, walker.model.visible
    walker.compare_state(walker.reader, moment)
    check_marks(walker.reader, moment)


@verb(lambda d: (), 5, "file")
def refresh(walker: Walker) -> None:
    """A reader beside catches up with what others see; its delta and its state are exact."""
    if walker.reader is None:
        return
    model = walker.model
    before, after = model.moments[walker.reader_version], model.moments[model.visible]
    manner = walker.reader_manner
    if before.text != after.text:
        manner = walker.reader_manner = manner.under(after.text)
    if manner.refusal(after.text) is not None:
        walker.close_reader()
        return
    walker.line("reader.refresh()")
    delta = walker.reader.refresh()
    if delta != before.to(after):
        raise WrongError(f"refreshed by {delta}, expected {before.to(after)}")
    walker.reader_version = model.visible
    walker.compare_state(walker.reader, after)
    check_marks(walker.reader, after)
    check_version(walker.reader.version, model.visible)


@verb(lambda d: (d.change(is_plain=True), d.question()), 2, "file")
def ask_reader(
    walker: Walker, operations: tuple[Operation, ...] | None, question: Question
) -> None:
    """A reader stays where it is, and asks what would be there."""
    if walker.reader is None or not operations:
        return
    moment = walker.model.moments[walker.reader_version]
    if moment.text != walker.now.text or not knows(walker, operations):
        return
    try:
        made = moment.made(operations, is_tried=True)
    except RefusedError:
        return
    delete = {name: list(rows) for kind, name, rows in operations if kind == "delete"}
    insert = {name: list(rows) for kind, name, rows in operations if kind == "insert"}
    walker.line(f"reader.what_if(insert={insert}, delete={delete})")
    delta = walker.reader.what_if(insert=insert, delete=delete)
    walker.calls.clear()
    check_fired(delta, made, walker.calls)
    walker.check_delta(delta, moment, made.after, walker.reader_manner)
    if is_fit(question, moment.known.relations):
        text = ", ".join(map(str, question))
        walker.line(f"reader.query({text!r})")
        rows = set(walker.reader.query(text))
        if rows != answers(question, moment.state):
            raise WrongError(f"the reader's answers {rows} to {text}")
    walker.compare_state(walker.reader, moment)


def check_version(found: int, expected: int) -> None:
    if found != expected:
        raise WrongError(f"version {found}, expected {expected}")


@verb(lambda d: (d.rng.choice((1, 2, 3, 100)),), 2, "file")
def group(walker: Walker, most: int) -> None:
    if walker.group is not None:
        return
    walker.line(f"group = db.group({most}); group.__enter__()")
    walker.group = ExitStack()
    walker.group.enter_context(walker.db.group(most))
    walker.model.group_max = most
    walker.model.due = walker.model.version + most
    walker.check_state()


@verb(lambda d: (), 3, "file")
def end_group(walker: Walker) -> None:
    if walker.group is not None:
        walker.line("group.__exit__(None, None, None)")
        walker.end_group()
        walker.check_state()


@verb(lambda d: (d.version(), d.version()), 4, "file")
def travel(walker: Walker, first: int, last: int) -> None:
    """The facts of a version, and the net change between two."""
    model = walker.model
    if not (model.first <= first <= model.version and model.first <= last <= model.version):
        return
    before, after = model.moments[first], model.moments[last]
    walker.line(f"db.delta({first}, {last})")
    delta = walker.db.delta(first, last)
    if delta != before.to(after):
        raise WrongError(f"delta {delta}, expected {before.to(after)}")
    walker.line(f"[db.facts(name, {first}) for name in …]")
    walker.compare_state(walker.db, before, first)


@verb(lambda d: (d.version(), d.rng.random() < 0.5), 2, "file")
def commits(walker: Walker, after: int, derives: bool) -> None:
    """The commits, with the views that the log omits or without them."""
    model = walker.model
    if not model.first <= after <= model.version:
        return
    walker.line(f"db.commits({after}, views={None if derives else ()})")
    listed = walker.db.commits(after, views=None if derives else ())
    found = [(c.version, c.kind, c.change) for c in listed]
    omitted = {c.version: c.omitted for c in listed}
    expected = []
    for version in range(after + 1, model.version + 1):
        before, now = model.moments[version - 1], model.moments[version]
        is_program = version in model.programs or before.text != now.text or before == now
        change = before.to(now).without(*omitted.get(version, ()))
        expected.append((version, "program" if is_program else "transaction", change))
    if found != expected:
        raise WrongError(f"commits {found}, expected {expected}")


NAMES = ("ann", "bob")


@verb(lambda d: (d.rng.choice(NAMES),), 1, "file")
def register(walker: Walker, name: str) -> None:
    model = walker.model
    expected = model.readers.setdefault(name, model.version)
    walker.line(f"db.register({name!r})")
    check_version(walker.db.register(name), expected)
    check_readers(walker)


@verb(lambda d: (d.rng.choice(NAMES), d.version()), 1, "file")
def acknowledge(walker: Walker, name: str, version: int) -> None:
    model = walker.model
    if name not in model.readers or not model.first <= version <= model.version:
        return
    walker.line(f"db.acknowledge({name!r}, {version})")
    walker.db.acknowledge(name, version)
    model.readers[name] = max(model.readers[name], version)
    check_readers(walker)


@verb(lambda d: (d.rng.choice(NAMES),), 1, "file")
def unregister(walker: Walker, name: str) -> None:
    if walker.model.readers.pop(name, None) is not None:
        walker.line(f"db.unregister({name!r})")
        walker.db.unregister(name)
        check_readers(walker)


def check_readers(walker: Walker) -> None:
    if dict(walker.db.readers) != walker.model.readers:
        raise WrongError(f"readers {walker.db.readers}, expected {walker.model.readers}")


@verb(lambda d: (d.rng.choice((0, 1, 2, 5, 10)),), 2, "file")
def compact(walker: Walker, versions: int) -> None:
    """Versions that nobody wants go, and all others stay what they were."""
    model = walker.model
    retention = deltalog.Retention(versions=versions)
    bound = min([model.version - versions, *model.readers.values()])
    expected = {max(model.first, bound)}
    if versions == 0:
        expected.add(max(model.first, min(bound, model.version - 1)))

    def after() -> None:
        found = walker.db.first_version
        if found not in expected:
            raise WrongError(f"the log begins at {found}, expected {expected}")
        model.first = found
        check_past(walker)

    error = "E0913" if walker.group is not None else None
    call = lambda: walker.db.compact(retention)  # noqa: E731
    walker.run(Action(f"db.compact({retention})", call, after=after, error=error))


@verb(lambda d: (), 2, "file")
def backup(walker: Walker) -> None:
    """A copy holds everything, and opens with any options."""
    target = walker.folder / f"copy{walker.steps}.db"

    def after() -> None:
        walker.copies.append((target, walker.model.copy()))

    error = "E0913" if walker.group is not None else None
    call = lambda: walker.db.backup(target)  # noqa: E731
    walker.run(Action(f"db.backup({target.name!r})", call, after=after, error=error))


@verb(lambda d: (d.rng.randint(0, 9), d.rng.random() < 0.5), 2, "file")
def restore(walker: Walker, number: int, is_in_place: bool) -> None:
    """Go on from a copy: opened where it is, or put back in the place of the database."""
    if not walker.copies:
        return
    target, model = walker.copies.pop(number % len(walker.copies))
    moment = model.moments[model.version]
    if walker.manner.refusal(moment.text) is not None:
        return
    walker.end_group()
    walker.close_reader()
    walker.db.close()
    if is_in_place:
        walker.line(f"db.close(); restore({target.name!r}, 'walk.db'); db = connect('walk.db')")
        _put_back(target, walker.path)
    else:
        walker.line(f"db.close(); db = connect({target.name!r}, {walker.manner})")
        walker.path = target
    walker.db = walker.opened(walker.path, durability="normal")
    walker.model = model
    walker.read_late()
    walker.check_state()
    check_past(walker)
    check_readers(walker)


@verb(lambda d: (), 1, "file")
def verify_file(walker: Walker) -> None:
    walker.line("verify(db)")
    found = walker.db.verify()
    if not found.is_clean:
        raise WrongError(f"verify: {found}")


def check_past(walker: Walker) -> None:
    """Every version that can be had, and some net changes between them."""
    model = walker.model
    check_version(walker.db.first_version, model.first)
    versions = list(model.versions())
    for version in versions:
        walker.compare_state(walker.db, model.moments[version], version)
    ends = sorted({versions[0], versions[len(versions) // 2], versions[-1]})
    for first, last in product(ends, ends):
        expected = model.moments[first].to(model.moments[last])
        if (found := walker.db.delta(first, last)) != expected:
            raise WrongError(f"delta({first}, {last}) is {found}, expected {expected}")


def finish(walker: Walker) -> None:
    """The end of a walk: everything is looked at once more, and so is what the file holds."""
    audit(walker)
    if walker.is_file:
        end_group(walker)
        walker.line("# the past")
        check_past(walker)
        commits(walker, walker.model.first, True)
        commits(walker, walker.model.first, False)
        check_readers(walker)
        refresh(walker)
        verify_file(walker)
        walker.close_reader()
        walker.db.close()
        text = known(walker.now.text).text
        walker.manner = Manner("reference")
        walker.line(f"db.close(); db = connect('walk.db', {walker.manner})")
        walker.db = walker.opened(walker.path, program=text, durability="normal")
        walker.check_state()
        check_past(walker)
    walker.read_late()
