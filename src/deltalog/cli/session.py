"""The state behind the prompt: a program that grows and its database; nothing about terminals.

Facts of known base relations are inserted; everything else that is typed makes a longer program, to
which the database goes over, with the exact change of every view. A statement that is refused, for
whatever reason, changes nothing.

The types of an undeclared base relation are inferred from its facts, so these stay in the program,
also when they have been deleted from the database. Facts of declared ones are in the database only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from deltalog.analysis.columns import Relation, Relations
from deltalog.checks.program import check_program
from deltalog.cli.opening import (
    Assignment,
    FactRows,
    Settings,
    constant_values,
    load_files,
    open_program,
)
from deltalog.cli.parameters import bound_query
from deltalog.cli.progress import Progress
from deltalog.cli.statements import Statement, group_statements
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic, ProgramError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Atom, Constant, Program, Query, Row, Rule, Variable
from deltalog.language.parser import parse_program
from deltalog.language.printer import print_active_rule, print_constraint, print_rule
from deltalog.language.values import constant_of
from deltalog.runtime.amosql.session import AmosqlSession, Selected
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.parameters import query_parameters
from deltalog.runtime.rows import Rows
from deltalog.runtime.transaction import Transaction
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

    def __init__(self, program: Program, database: MemoryDatabase, progress: Progress) -> None:
        self.program = program
        self.database = database
        self.progress = progress
        self.parameters: dict[str, str] = {}
        self.amosql: AmosqlSession | None = None
        """Where statements are AMOSQL."""

    @classmethod
    def new(
        cls, program: Program, settings: Settings, progress: Progress, facts: FactRows
    ) -> Session:
        """One that begins with a program and facts, in memory."""
        begun, given = _without_base_facts(program)
        for name, rows in facts.items():
            given.setdefault(name, []).extend(rows)
        return cls(begun, open_program(begun, settings, progress, given), progress)

    @classmethod
    def of(cls, database: MemoryDatabase, progress: Progress) -> Session:
        """One with a database that is there, and its program."""
        program = replace(database.model.checked.program, queries=())
        return cls(program, database, progress)

    def use_amosql(self, is_used: bool) -> None:
        """Choose the language of the statements that follow."""
        if is_used and self.amosql is None:
            self.amosql = AmosqlSession(self.database)
        elif not is_used:
            self.amosql = None

    def execute(self, source: Source) -> Iterator[Answer | Selected | ChangeSet]:
        """Carry out the statements of a source, one after the other."""
        if self.amosql is not None:
            try:
                yield from self.amosql.outcomes(source)
            finally:
                self._take_program()
            return
        for kind, members in group_statements(source.text):
            if kind == "change":
                yield self.change(source, members)
            else:
                yield from self.extend(_parse_members(source, members))

    def _take_program(self) -> None:
        """Continue with the program that AMOSQL has made."""
        self.program = replace(self.database.model.checked.program, queries=())

    def try_out(self, source: Source) -> ChangeSet:
        """Return the effect of changes, or of an addition to the program, without applying it."""
        for kind, members in group_statements(source.text):
            with self.progress.phase("evaluating"):
                if kind == "change":
                    base = self._changing_transaction(source, members).net()
                    return self.database.what_if(base.inserted, base.deleted)
                longer = self._extended_program(_parse_members(source, members))
                return self.database.change_program(longer, is_committed=False)
        return ChangeSet()

    # --- asking

    def ask(self, query: Query) -> Answer:
        bound = self.bound(query)
        with self.progress.phase("querying"):
            return Answer(bound, self.database.query(bound))

    def bound(self, query: Query) -> Query:
        """The query with the values that its parameters have in this session."""
        used = query_parameters(query)
        given = {name: text for name, text in self.parameters.items() if name in used}
        return bound_query(query, given, self.database.model.readable)

    # --- changing

    def load(self, files: Iterable[Assignment]) -> ChangeSet:
        return load_files(self.database, files, self.progress)

    def change(self, source: Source, changes: Sequence[Statement]) -> ChangeSet:
        """`+edge(1, 2). -edge(2, 3).` as one transaction."""
        with self.progress.phase("evaluating"):
            return self._changing_transaction(source, changes).commit()

    def _changing_transaction(self, source: Source, changes: Sequence[Statement]) -> Transaction:
        operations = [(source.text[each.start], _parse_fact(source, each)) for each in changes]
        transaction = self.database.transaction()
        for sign, fact in operations:
            operate = transaction.insert if sign == "+" else transaction.delete
            operate(fact.predicate, [constant_values(fact)])
        return transaction

    # --- changing the program

    def extend(self, addition: Program) -> Iterator[Answer | ChangeSet]:
        """Add declarations, rules and facts; then answer the queries among them."""
        clauses = replace(addition, queries=())
        if clauses != Program():
            yield self._extend_database(clauses)
        for query in addition.queries:
            yield self.ask(query)

    def remove(self, source: Source) -> ChangeSet:
        """Take rules, facts of views, constraints or active rules out of the program."""
        given = parse_program(source)
        if given.constraints or given.active_rules:
            return self._go_over(_remove_from_program(self.program, given))
        removed = [*given.rules, *map(Rule, given.facts)]
        views = [fact for fact in self.program.facts if fact.predicate not in self._base_relations]
        known = [*self.program.rules, *map(Rule, views)]
        for rule in removed:
            if rule not in known:
                raise _no_rule(rule, known, self._base_relations)
        rules = tuple(rule for rule in self.program.rules if rule not in removed)
        facts = tuple(fact for fact in self.program.facts if Rule(fact) not in removed)
        return self._go_over(replace(self.program, rules=rules, facts=facts))

    def _extend_database(self, addition: Program) -> ChangeSet:
        """Facts that only need to be inserted, then the rest; if that is refused, they go again."""
        facts = self._insertable_facts(addition)
        rest = replace(addition, facts=tuple(f for f in addition.facts if f.predicate not in facts))
        inserted = self.database.apply(facts)
        if rest == Program():
            return inserted
        try:
            return inserted + self._go_over(self._extended_program(rest))
        except BaseException:
            base = inserted.only(*facts)
            self.database.apply(insert=base.deleted, delete=base.inserted)
            raise

    def _go_over(self, program: Program) -> ChangeSet:
        with self.progress.phase("evaluating"):
            change = self.database.change_program(program)
        self.program = program
        return change

    def _insertable_facts(self, addition: Program) -> dict[str, list[Row]]:
        """The facts of relations that are, and stay, base relations, if all of them fit."""
        rows = _rows_by_relation(addition.facts)
        staying = self._base_relations.keys() - _views_of_addition(addition)
        found = {name: each for name, each in rows.items() if name in staying}
        tried = self.database.transaction()
        try:
            for name, each in found.items():
                tried.insert(name, each)
        except DataError:
            return {}  # found again, with its place, when the program is checked as a whole
        return found

    def _extended_program(self, addition: Program) -> Program:
        """The program with an addition, and with all that holds in relations whose facts matter.

        These are the ones that get more facts, which must fit together, and those that become
        views, of which the facts become a part.
        """
        base = self._base_relations
        fully = (
            _views_of_addition(addition) | {fact.predicate for fact in addition.facts}
        ) & base.keys()
        fully |= {each.predicate for each in addition.declarations} & base.keys()
        kept = (fact for fact in self.program.facts if fact.predicate not in fully)
        holding = (
            atom for name in fully for atom in _atoms_of_rows(base[name], self.database.facts(name))
        )
        return Program(
            (*self.program.declarations, *addition.declarations),
            tuple(dict.fromkeys((*self.program.rules, *addition.rules))),
            (*kept, *holding, *addition.facts),
            (),
            tuple(dict.fromkeys((*self.program.constraints, *addition.constraints))),
            tuple(dict.fromkeys((*self.program.active_rules, *addition.active_rules))),
            addition.disjunctive_rules,
            tuple(dict.fromkeys((*self.program.update_choices, *addition.update_choices))),
        )

    @property
    def _base_relations(self) -> Relations:
        relations = self.database.relations
        return {name: each for name, each in relations.items() if each.kind == "base"}


def _without_base_facts(program: Program) -> tuple[Program, dict[str, list[Row]]]:
    """The program without the facts of declared base relations, and these."""
    relations = check_program(program).relations
    kept: list[Atom] = []
    stored: list[Atom] = []
    for fact in program.facts:
        relation = relations[fact.predicate]
        is_stored = relation.kind == "base" and relation.is_declared
        (stored if is_stored else kept).append(fact)
    return replace(program, facts=tuple(kept)), _rows_by_relation(stored)


def _remove_from_program(program: Program, given: Program) -> Program:
    """The program without some of its constraints and active rules, which it must have."""
    known = [*map(print_constraint, program.constraints)]
    known += map(print_active_rule, program.active_rules)
    removed = [*map(print_constraint, given.constraints)]
    removed += map(print_active_rule, given.active_rules)
    for text in removed:
        if text not in known:
            hint = did_you_mean(text, known)
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="rule", name=text, hint=hint)])
    kept = (each for each in program.constraints if each not in given.constraints)
    rules = (each for each in program.active_rules if each not in given.active_rules)
    return replace(program, constraints=tuple(kept), active_rules=tuple(rules))


def _no_rule(rule: Rule, known: Iterable[Rule], base: Relations) -> DataError:
    text = print_rule(rule)
    hint = did_you_mean(text, [print_rule(each) for each in known])
    if rule.head.predicate in base:
        hint = f"`-{text}` deletes a fact"
    return DataError([catalogue.UNKNOWN_OPTION.at(None, what="rule", name=text, hint=hint)])


def _views_of_addition(addition: Program) -> set[str]:
    """Predicates that an addition makes views."""
    declared = {each.predicate for each in addition.declarations if each.kind == "view"}
    return declared | {rule.head.predicate for rule in addition.definitions}


def _atoms_of_rows(relation: Relation, rows: Iterable[Row]) -> Iterator[Atom]:
    types = [str(type_) for type_ in relation.types]
    for row in rows:
        yield Atom(relation.name, tuple(map(constant_of, row, types)))


def _parse_members(source: Source, members: Sequence[Statement]) -> Program:
    return parse_program(
        _source_piece(source, members[0].start, members[-1].end), has_parameters=True
    )


def _source_piece(source: Source, start: int, end: int) -> Source:
    """The source with all but a piece blanked out, so that places stay what they are."""
    return replace(source, text=re.sub(r"[^\n]", " ", source.text[:start]) + source.text[start:end])


def _rows_by_relation(facts: Iterable[Atom]) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for fact in facts:
        rows.setdefault(fact.predicate, []).append(constant_values(fact))
    return rows


def _parse_fact(source: Source, change: Statement) -> Atom:
    """The fact behind a `+` or `-`; anything else is an error."""
    piece = _source_piece(source, change.start + 1, change.end)
    try:
        program = parse_program(piece)
        if len(program.facts) == 1:
            return program.facts[0]
        span = Span(source, change.start, change.end)
        raise ProgramError(
            [_not_a_fact(program.rules[0], span) if program.rules else _fact_expected(span)]
        )
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
        return _fact_expected(span, "a rule")
    for term in rule.head.arguments:
        if isinstance(term, Variable):
            return catalogue.FACT_WITH_VARIABLE.at(term.span, name=term.name)
        if not isinstance(term, Constant):
            found = "an expression"
            return catalogue.UNEXPECTED_TOKEN.at(term.span, expected="a value", found=found)
    return _fact_expected(span)


def _fact_expected(span: Span, found: str = "something else") -> Diagnostic:
    return catalogue.UNEXPECTED_TOKEN.at(
        span, expected="a fact", found=found, hint="as in `+edge(1, 2).` or `-edge(1, 2).`"
    )
