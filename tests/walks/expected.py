"""The model of a walk: base facts and a program as plain values, and what follows from them.

A version is a `Moment`: the text of a program and its base facts. Its views are computed by naive
evaluation on the reference engine, once for each moment, since few facts make few moments.
Questions are answered by nested loops over those views. Nothing here knows how a database works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from families import domain

from deltalog.analysis.columns import Relation
from deltalog.checks.program import CheckedProgram, check_program
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Column, Constant, Program, Row
from deltalog.language.parser import parse_text
from deltalog.language.values import print_value
from deltalog.rewrites.names import is_generated
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.checked_rows import checked_rows
from reference_rules import (
    FUNCTIONS,
    KEY_TAKEN,
    NO_MARKS,
    Marks,
    Phase,
    RefusedError,
    kept_marks,
    operated,
)
from treatments import difference, naive

VIOLATED = "E1101"
State = Mapping[str, frozenset[Row]]
Operation = tuple[str, str, tuple[Row, ...]]
"""`insert`, `delete` or `set`, a relation, and rows."""


@dataclass(frozen=True)
class Known:
    """A program, as far as the model looks into it."""

    text: str
    program: Program
    checked: CheckedProgram

    @cached_property
    def relations(self) -> Mapping[str, Relation]:
        """All that a user sees."""
        return {n: each for n, each in self.checked.relations.items() if not is_generated(n)}

    @cached_property
    def base(self) -> tuple[Relation, ...]:
        return tuple(self.relations[n] for n in sorted(self.relations) if self._is_base(n))

    @cached_property
    def views(self) -> tuple[str, ...]:
        return tuple(name for name in sorted(self.relations) if not self._is_base(name))

    def _is_base(self, name: str) -> bool:
        return self.relations[name].kind == "base"

    @cached_property
    def written(self) -> frozenset[tuple[str, Row]]:
        """The base facts in the text; those of views are rules."""
        found = {
            (fact.predicate, tuple(t.value for t in fact.arguments if isinstance(t, Constant)))
            for fact in self.program.facts
            if self._is_base(fact.predicate)
        }
        return frozenset(
            (name, row)
            for name, each in found
            for row in checked_rows(self.relations[name], [each])
        )

    @cached_property
    def without_facts(self) -> Program:
        kept = tuple(f for f in self.program.facts if not self._is_base(f.predicate))
        return replace(self.program, facts=kept, active_rules=())


@lru_cache(maxsize=4_000)
def known(text: str) -> Known:
    program = parse_text(text)
    return Known(text, program, check_program(program))


@dataclass(frozen=True)
class Moment:
    """A program and its base facts, all that a state follows from; and what rules keep beside."""

    text: str
    facts: tuple[tuple[str, frozenset[Row]], ...]
    marks: Marks = NO_MARKS

    @classmethod
    def of(cls, text: str, facts: Mapping[str, Iterable[Row]], marks: Marks = NO_MARKS) -> Moment:
        rows = {r.name: frozenset(facts.get(r.name, ())) for r in known(text).base}
        for relation in known(text).base:
            keys = {tuple(row[i] for i in relation.key) for row in rows[relation.name]}
            if relation.key and len(keys) < len(rows[relation.name]):
                raise RefusedError(KEY_TAKEN)
        return cls(text, tuple(rows.items()), marks)

    @property
    def is_violated(self) -> bool:
        """Whether an enforced constraint, or the key of a view, is violated."""
        return _is_violated(self.unmarked)

    def violations(self) -> set[tuple[str, Row]]:
        """The constraints that are violated, with their facts: of any mode."""
        found: set[tuple[str, Row]] = set()
        for constraint in self.known.program.constraints:
            rows = self.state[constraint.name]
            if constraint.kind == "deny":
                found |= {(constraint.name, row) for row in rows}
                continue
            terms = constraint.head.arguments
            fact = tuple(term.value for term in terms if isinstance(term, Constant))
            if fact not in rows:
                shown = f"({', '.join(map(print_value, fact))})" if fact else ""
                found.add((f"{constraint.name}{shown}", fact))
        return found

    @property
    def unmarked(self) -> Moment:
        return replace(self, marks=NO_MARKS)

    @property
    def known(self) -> Known:
        return known(self.text)

    @property
    def base(self) -> dict[str, set[Row]]:
        return {name: set(rows) for name, rows in self.facts}

    @property
    def state(self) -> State:
        """Every relation and view."""
        return _state(self.unmarked)

    def to(self, later: Moment) -> ChangeSet:
        """The exact change from here to another moment."""
        return _difference(self.unmarked, later.unmarked)

    def changed(self, operations: Iterable[Operation]) -> Moment:
        """The moment after a transaction that fires nothing, or the error that refuses it."""
        facts = self.base
        for kind, name, rows in operations:
            operated(facts, self.known.relations[name], kind, rows)
        return Moment.of(self.text, facts, self.marks)

    def made(
        self, operations: Iterable[Operation], is_tried: bool = False, is_one: bool = False
    ) -> Made:
        """What a transaction makes, with all that it fires; or the error that refuses it.

        With `is_one` nothing is checked before the last operation.
        """
        return _made(self, tuple(operations), is_tried, is_one)

    def under(self, text: str) -> Moment:
        """The moment after a change of programs, or the error that refuses it.

        Facts written in one of the two programs come or go; others stay where the relation does.
        """
        before, after = self.known.written, known(text).written
        facts: dict[str, set[Row]] = {}
        for relation in known(text).base:
            held = self.base.get(relation.name, set())
            held -= {row for name, row in before - after if name == relation.name}
            try:
                facts[relation.name] = set(checked_rows(relation, held))
            except DataError as error:
                raise RefusedError(error.codes[0]) from None
        for name, row in after - before:
            facts[name].add(row)
        marks = kept_marks(self.marks, self.known.program, known(text).program)
        return Moment.of(text, facts, marks)

    def deactivated(self, rules: Iterable[str]) -> Moment:
        """The moment after these rules have been deactivated."""
        return replace(self, marks=replace(self.marks, inactive=self.marks.inactive | set(rules)))


@dataclass(frozen=True)
class Made:
    """The moment that a transaction makes, those after each of its operations, and what fired."""

    after: Moment
    during: tuple[Moment, ...]
    firings: tuple[tuple[str, Row], ...] = ()
    calls: tuple[tuple[str, tuple[Row, ...]], ...] = ()
    is_rejected: bool = False


@lru_cache(maxsize=3_000)
def _made(before: Moment, operations: tuple[Operation, ...], is_tried: bool, is_one: bool) -> Made:
    known, during = before.known, []
    phase = Phase(known.program, before.base, before.marks, FUNCTIONS, is_tried)

    def now() -> Moment:
        return Moment.of(before.text, phase.facts, phase.marks)

    for operation in operations:
        phase.operate(*operation, is_checked=not is_one)
        during.append(now())
        is_free = is_tried or is_one
        if not is_free and _is_violated(during[-1].unmarked, only_immediate=True):
            raise RefusedError(VIOLATED)
    phase.end()
    if not is_tried and now().is_violated:
        raise RefusedError(VIOLATED)
    calls = tuple((name, tuple(rows)) for name, rows in phase.calls)
    return Made(now(), tuple(during), tuple(phase.firings), calls, phase.is_rejected)


@lru_cache(maxsize=30_000)
def _state(moment: Moment) -> State:
    found = naive(moment.known.without_facts, moment.base)
    return {name: frozenset(rows) for name, rows in found.items()}


@lru_cache(maxsize=30_000)
def _is_violated(moment: Moment, only_immediate: bool = False) -> bool:
    found = moment.known
    for constraint in found.program.constraints:
        if only_immediate and not constraint.is_immediate:
            continue
        rows = moment.state[constraint.name]
        fact = tuple(t.value for t in constraint.head.arguments if isinstance(t, Constant))
        is_bad = bool(rows) if constraint.kind == "deny" else fact not in rows
        if constraint.mode == "enforce" and is_bad:
            return True
    for name in () if only_immediate else found.views:
        key = found.relations[name].key
        keys = {tuple(row[i] for i in key) for row in moment.state[name]}
        if key and len(keys) < len(moment.state[name]):
            return True
    return False


@lru_cache(maxsize=30_000)
def _difference(before: Moment, after: Moment) -> ChangeSet:
    return difference(
        {name: set(rows) for name, rows in before.state.items()},
        {name: set(rows) for name, rows in after.state.items()},
    )


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A variable of a question; `_` is a wildcard."""

    name: str


Term = Named | object


@dataclass(frozen=True)
class Part:
    """A literal of a question."""

    relation: str
    terms: tuple[Term, ...]
    is_negated: bool = False

    def __str__(self) -> str:
        shown = ", ".join(
            term.name if isinstance(term, Named) else print_value(term)  # type: ignore[arg-type]
            for term in self.terms
        )
        return f"{'not ' if self.is_negated else ''}{self.relation}({shown})"

    def matches(self, row: Row, bound: Mapping[str, object]) -> dict[str, object] | None:
        """The variables with the values of a row, if it fits."""
        found = dict(bound)
        for term, value in zip(self.terms, row, strict=True):
            if not isinstance(term, Named):
                if term != value:
                    return None
            elif term.name != "_" and found.setdefault(term.name, value) != value:
                return None
        return found


Question = tuple[Part, ...]


def answers(question: Question, state: State) -> set[Row]:
    """The bindings of the variables, in the order in which they first occur."""
    bindings: list[dict[str, object]] = [{}]
    for part in question:
        rows = state[part.relation]
        if part.is_negated:
            bindings = [b for b in bindings if all(part.matches(r, b) is None for r in rows)]
        else:
            bindings = [
                found for b in bindings for r in rows if (found := part.matches(r, b)) is not None
            ]
    return {tuple(b[name] for name in variables(question)) for b in bindings}  # type: ignore[misc]


def variables(question: Question) -> list[str]:
    names = (t.name for part in question for t in part.terms if isinstance(t, Named))
    return list(dict.fromkeys(name for name in names if name != "_"))


def is_fit(question: Question, relations: Mapping[str, Relation]) -> bool:
    """Whether it is a question to these relations: arities, and one type for each variable."""
    types: dict[str, str | None] = {}
    for part in question:
        relation = relations.get(part.relation)
        if relation is None or relation.arity != len(part.terms):
            return False
        for term, column in zip(part.terms, relation.columns, strict=True):
            if not isinstance(term, Named):
                if not in_domain(term, column):
                    return False
            elif term.name != "_" and types.setdefault(term.name, column.type) != column.type:
                return False
    return True


def in_domain(value: object, column: Column) -> bool:
    """Whether a column takes the value; 2.0 is no int."""
    values = domain(column.type, column.nullable)
    return (type(value), value) in [(type(each), each) for each in values]


# --- what a database remembers --------------------------------------------------------------------


@dataclass
class Model:
    """What a database must be: its moments by version, and what belongs to a file."""

    moments: dict[int, Moment]
    version: int = 0
    first: int = 0
    visible: int = 0  # the version that others see: inside a group an earlier one
    due: int | None = None  # the version at which an open group is written
    group_max: int = 0
    readers: dict[str, int] = field(default_factory=dict)
    programs: set[int] = field(default_factory=set)  # versions made by a change of programs

    @property
    def now(self) -> Moment:
        return self.moments[self.version]

    def commit(self, moment: Moment, version: int) -> None:
        """Go to a moment; in a group others see it when enough transactions are in it."""
        self.version = version
        self.moments[version] = moment
        if self.due is None:
            self.visible = version
        elif version >= self.due:
            self.visible = version
            self.due = version + self.group_max

    def copy(self) -> Model:
        held = dict(self.moments), dict(self.readers), set(self.programs)
        return replace(self, moments=held[0], readers=held[1], programs=held[2])

    def versions(self) -> Iterator[int]:
        return iter(range(self.first, self.version + 1))
