"""What stands behind the prompt: a program that grows, its database, and nothing about terminals.

Adding a rule makes a new database of the longer program and the base facts that hold now; only when
that has worked does it take the place of the old one. So a statement that is refused, for whatever
reason, changes nothing.

The types of an undeclared base relation are inferred from its facts. When all of them have been
deleted, the new database is made with those it had last, and they are deleted from it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from deltalog.analysis.columns import Relations
from deltalog.cli.opening import Assignment, fact_atoms, load, open_program
from deltalog.cli.progress import Progress
from deltalog.cli.statements import Statement, groups
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic, ProgramError
from deltalog.language.ast import Atom, Constant, Program, Query, Row, Rule, Value, Variable
from deltalog.language.parser import parse
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import Database
from deltalog.runtime.limits import Limits
from deltalog.runtime.rows import Rows
from deltalog.source import Source, Span


@dataclass(frozen=True)
class Answer:
    query: Query
    rows: Rows


@dataclass(frozen=True)
class Excerpt(Source):
    """Lines out of a longer text that know which line of it they begin at."""

    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        line, column = super().position(offset)
        return line + self.first_line - 1, column

    def line(self, number: int) -> str:
        return super().line(number - self.first_line + 1)


class Session:
    """A database that can be asked, changed and extended."""

    def __init__(self, program: Program, limits: Limits, progress: Progress) -> None:
        self.limits = limits
        self.progress = progress
        self.database = self._opened(program)
        self.program = _without_base_facts(program, self.database)

    def _opened(self, program: Program) -> Database:
        return open_program(program, self.limits, self.progress)

    def execute(self, source: Source) -> Iterator[Answer | ChangeSet]:
        """Carry out the statements of a source, one after the other."""
        for kind, members in groups(source.text):
            if kind == "change":
                yield self.change(source, members)
            else:
                yield from self.extend(parse(_piece(source, members[0].start, members[-1].end)))

    # --- asking

    def ask(self, query: Query) -> Answer:
        with self.progress.phase("answering"):
            return Answer(query, self.database.query(query))

    # --- changing

    def load(self, files: Iterable[Assignment]) -> ChangeSet:
        return load(self.database, files, self.progress)

    def change(self, source: Source, changes: Sequence[Statement]) -> ChangeSet:
        """`+edge(1, 2). -edge(2, 3).` as one transaction."""
        operations = [(source.text[each.start], _fact(source, each)) for each in changes]
        with self.progress.phase("evaluating"):
            transaction = self.database.transaction()
            for sign, fact in operations:
                operate = transaction.insert if sign == "+" else transaction.delete
                operate(fact.predicate, [_values(fact)])
            return transaction.commit()

    # --- extending

    def extend(self, addition: Program) -> Iterator[Answer]:
        """Add declarations, rules and facts; then answer the queries among them."""
        clauses = Program(addition.declarations, addition.rules, addition.facts)
        if clauses != Program() and not self._is_inserted(clauses):
            self._rebuild(clauses)
        for query in addition.queries:
            yield self.ask(query)

    def _is_inserted(self, addition: Program) -> bool:
        """Whether it was nothing but facts of known base relations: those need no new database."""
        known = self.database.relations
        if addition.rules or addition.declarations:
            return False
        names = {fact.predicate for fact in addition.facts}
        if any(name not in known or known[name].kind == "view" for name in names):
            return False
        try:
            self.database.apply({name: list(rows) for name, rows in _rows(addition.facts).items()})
        except DataError:
            return False  # found again, with its place, when the program is checked as a whole
        return True

    def _rebuild(self, addition: Program) -> None:
        longer = Program(
            (*self.program.declarations, *addition.declarations),
            tuple(dict.fromkeys((*self.program.rules, *addition.rules))),
            (*self._facts(addition), *addition.facts),
        )
        database = self._opened(longer)
        database.apply(delete=self._withdrawn(database, _rows(addition.facts)))
        self.program, self.database = _without_base_facts(longer, database), database

    def _facts(self, addition: Program) -> Iterator[Atom]:
        """What holds now, and what is only there to tell the types of an empty relation."""
        becoming_views = {rule.head.predicate for rule in addition.rules}
        becoming_views |= {each.predicate for each in addition.declarations if each.kind == "view"}
        rows = {name: self.database.facts(name) for name in self._base}
        for name, relation in self._base.items():
            yield from fact_atoms(relation, rows[name])
        for fact in self.program.facts:
            is_example = fact.predicate in rows and fact.predicate not in becoming_views
            if fact.predicate not in rows or (is_example and not rows[fact.predicate]):
                yield fact

    def _withdrawn(
        self, database: Database, stated: Mapping[str, Set[Row]]
    ) -> dict[str, list[Row]]:
        """The facts that were only there to tell types, to be taken out again."""
        return {
            name: list(database.facts(name) - stated.get(name, set()))
            for name in self._base
            if database.relations[name].kind == "base" and not self.database.facts(name)
        }

    @property
    def _base(self) -> Relations:
        relations = self.database.relations
        return {name: each for name, each in relations.items() if each.kind == "base"}


def _without_base_facts(program: Program, database: Database) -> Program:
    """The facts of declared base relations are in the database; the others tell types."""
    relations = database.relations
    kept = (
        fact
        for fact in program.facts
        if relations[fact.predicate].kind == "view" or not relations[fact.predicate].is_declared
    )
    return replace(program, facts=tuple(kept))


def _piece(source: Source, start: int, end: int) -> Source:
    """The source with all but a piece blanked out, so that places stay what they are."""
    return replace(source, text=re.sub(r"[^\n]", " ", source.text[:start]) + source.text[start:end])


def _values(fact: Atom) -> tuple[Value, ...]:
    return tuple(term.value for term in fact.arguments if isinstance(term, Constant))


def _rows(facts: Iterable[Atom]) -> dict[str, set[Row]]:
    rows: dict[str, set[Row]] = {}
    for fact in facts:
        rows.setdefault(fact.predicate, set()).add(_values(fact))
    return rows


def _fact(source: Source, change: Statement) -> Atom:
    """The fact behind a `+` or `-`; anything else is an error."""
    piece = _piece(source, change.start + 1, change.end)
    try:
        program = parse(piece)
        if len(program.facts) == 1:
            return program.facts[0]
        span = Span(source, change.start, change.end)
        raise ProgramError([_not_a_fact(program.rules[0], span) if program.rules else _wrong(span)])
    except ProgramError as error:
        raise ProgramError(_with_sign(each, piece, source) for each in error.diagnostics) from None


def _with_sign(diagnostic: Diagnostic, piece: Source, source: Source) -> Diagnostic:
    """The diagnostic of what was parsed without its sign, shown in what was written."""
    labels = tuple(
        replace(label, span=replace(label.span, source=source))
        if label.span.source is piece
        else label
        for label in diagnostic.labels
    )
    return replace(diagnostic, labels=labels)


def _not_a_fact(rule: Rule, span: Span) -> Diagnostic:
    if rule.body:
        return _wrong(span, "a rule")
    for term in rule.head.arguments:
        if isinstance(term, Variable):
            return catalogue.FACT_WITH_VARIABLE.at(term.span, name=term.name)
        if not isinstance(term, Constant):
            found = "an expression"
            return catalogue.UNEXPECTED_TOKEN.at(term.span, expected="a value", found=found)
    return _wrong(span)


def _wrong(span: Span, found: str = "something else") -> Diagnostic:
    return catalogue.UNEXPECTED_TOKEN.at(
        span, expected="a fact", found=found, hint="as in `+edge(1, 2).` or `-edge(1, 2).`"
    )
