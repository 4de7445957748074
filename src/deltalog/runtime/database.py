"""The database a person talks to: a program, its facts, transactions and queries.

    db = deltalog.connect(program="graph.dl")
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
    db.facts("path")
    db.query("path(1, Y)")

Views are materialised unless declared `virtual` (or the database was opened with
`materialize=False`): a materialised view is read, a virtual one is computed on demand by Magic
Sets, and only the part that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from deltalog.analysis.columns import Relation, Relations, generated_relations, variable_types
from deltalog.analysis.relevance import needed_rules
from deltalog.analysis.stratification import (
    Partition,
    component_partition,
    soft_partition,
    stratification,
)
from deltalog.checks.program import CheckedProgram, check_program, check_query
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.engines.base import Engine
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.ast import Atom, Column, Constant, Program, Query, Row, Rule, Variable
from deltalog.language.parser import parse, parse_query
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar, desugar_query
from deltalog.rewrites.magic_sets import magic_sets
from deltalog.rewrites.normalize import normalize
from deltalog.rewrites.states import renamed
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.fixpoint import Installed, Statistics, Watch, install, run
from deltalog.runtime.limits import Limits
from deltalog.runtime.propagation import Propagation
from deltalog.runtime.rows import Rows
from deltalog.runtime.strategies import Choice, choose, known_strategy
from deltalog.runtime.transaction import Transaction
from deltalog.source import Source

ENGINES = {"reference": ReferenceEngine}
Facts = Mapping[str, Iterable[Sequence[Any]]]


def connect(
    *,
    program: str | Path | Program,
    engine: str = "reference",
    strategy: str | Mapping[str, str] = "auto",
    materialize: bool = True,
    facts: Facts | None = None,
    limits: Limits | None = None,
    watch: Watch | None = None,
) -> Database:
    """Open a database in memory for a program: a path to a `.dl` file, or its text.

    `strategy` says how changes of views are computed: one of `runtime.strategies.STRATEGIES`, or a
    mapping from views to them (`"*"` stands for all others). `materialize=False` keeps views
    virtual unless they are declared `materialized`. `facts` are loaded before views are computed
    for the first time. `watch` is called with the rounds and facts so far while something is being
    computed.
    """
    if engine not in ENGINES:
        raise DataError(
            [catalogue.UNKNOWN_OPTION.at(None, what="engine", name=engine,
                                         hint=f"the engines are {', '.join(sorted(ENGINES))}")]
        )  # fmt: skip
    parsed = program if isinstance(program, Program) else parse(read_program(program))
    checked = check_program(parsed)
    per_view = {} if isinstance(strategy, str) else dict(strategy)
    default = known_strategy(strategy if isinstance(strategy, str) else per_view.pop("*", "auto"))
    for view in per_view:
        if view not in checked.relations or checked.relations[view].kind != "view":
            hint = did_you_mean(view, checked.relations)
            raise DataError([catalogue.UNKNOWN_OPTION.at(None, what="view", name=view, hint=hint)])
    return Database(
        checked,
        ENGINES[engine](),
        materialize,
        limits or Limits(),
        default,
        per_view,
        watch,
        facts or {},
    )


def read_program(program: str | Path) -> Source:
    """A program given as a path, or as text: a single line that ends in `.dl` is a path."""
    is_path = isinstance(program, Path) or ("\n" not in program and program.strip().endswith(".dl"))
    if not is_path:
        return Source("<text>", str(program))
    name = str(program).strip()
    try:
        return Source(name, Path(name).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else reason
        raise DataError(
            [catalogue.PROGRAM_NOT_FOUND.at(None, name=name, reason=reason.lower())]
        ) from None


@dataclass(frozen=True)
class PreparedQuery:
    """A query rewritten to rules: what it asks, the rules in parts, and the columns it answers."""

    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]
    partition: Partition


class Database:
    """Made by `connect`."""

    def __init__(
        self,
        checked: CheckedProgram,
        engine: Engine,
        materialize: bool,
        limits: Limits,
        strategy: str = "auto",
        per_view: Mapping[str, str] = MappingProxyType({}),
        watch: Watch | None = None,
        facts: Facts = MappingProxyType({}),
    ) -> None:
        self.checked = checked
        self.engine = engine
        self.limits = limits
        self.watch = watch
        self.core = desugar(checked.program, checked.relations)
        self.stored = self._stored(materialize)
        self.choices = self._choose(strategy, per_view)
        helpers = generated_relations(self.core.rules, checked.relations)
        self._typed: Relations = {**checked.relations, **helpers}
        self._installed = self._install()
        self.statistics = self._load(facts)
        self.propagation = Propagation(engine, self.choices, self._typed, self.stored)

    # --- reading

    @property
    def relations(self) -> Mapping[str, Relation]:
        """Every base relation and view with its columns."""
        return self.checked.relations

    def facts(self, relation: str) -> set[Row]:
        """All facts of a base relation or view."""
        known = self._relation(relation)
        if relation in self.stored:
            return set(self.engine.rows(relation))
        arguments = tuple(Variable(f"V{i}") for i in range(known.arity))
        return set(self._answer(Query((Atom(relation, arguments),))))

    def query(self, text: str | Query) -> Rows:
        """The bindings of the query's variables, in the order in which they first occur.

        `db.query("path(1, Y), not edge(1, Y)")`; the leading `?` and the final stop are optional.
        """
        return self._answer(parse_query(text) if isinstance(text, str) else text)

    def _relation(self, name: str) -> Relation:
        if name not in self.relations:
            hint = did_you_mean(name, self.relations)
            raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=name, hint=hint)])
        return self.relations[name]

    def prepare_query(self, query: Query, magic: bool = True) -> PreparedQuery:
        """The query as rules; with `magic` they derive only what it needs."""
        check_query(query, self.relations)
        asked = desugar_query(query, self.relations)
        rules = (*self.core.rules, *asked)
        if magic:
            rewritten = magic_sets(rules, names.ANSWER, self.stored)
            partition = soft_partition(rewritten, names.source, stratification(rules))
        else:
            rewritten = needed_rules(rules, {names.ANSWER}, self.stored)
            partition = component_partition(rewritten)
        types = variable_types(query.body, self.relations)
        columns = tuple(
            Column(term.name, types.get(term.name), True)
            for term in asked[0].head.arguments
            if isinstance(term, Variable)
        )
        return PreparedQuery(columns, rewritten, partition)

    def _answer(self, query: Query) -> Rows:
        prepared = self.prepare_query(query)
        scratch = generated_relations(prepared.rules, self._typed)
        apart = {name: names.apart(name) for name in scratch}
        stages = [tuple(renamed(rule, apart) for rule in part) for part in prepared.partition]
        try:
            self._create({apart[name]: relation for name, relation in scratch.items()})
            statistics = run(
                self.engine, install(self.engine, stages), self.limits, watch=self.watch
            )
            rows = set(self.engine.rows(apart[names.ANSWER]))
        finally:
            for name in apart.values():
                self.engine.drop(name)
        originals = {made: name for name, made in apart.items()}
        generated = {originals[name]: count for name, count in statistics.generated.items()}
        return Rows(prepared.columns, rows, Statistics(statistics.rounds, Counter(generated)))

    # --- changing

    def transaction(self) -> Transaction:
        """A transaction for a `with` block; it commits at the end, or not at all."""
        return Transaction(self.relations, self.engine.contains, self.engine.lookup, self._commit)

    def apply(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
    ) -> ChangeSet:
        """Delete and insert facts in one transaction; answers the exact change of everything."""
        with self.transaction() as transaction:
            for relation, rows in (delete or {}).items():
                transaction.delete(relation, rows)
            for relation, rows in (insert or {}).items():
                transaction.insert(relation, rows)
        return transaction.delta

    def what_if(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
    ) -> ChangeSet:
        """The exact change that a transaction would make, without making it."""
        transaction = Transaction(
            self.relations, self.engine.contains, self.engine.lookup, self._propagate
        )
        with transaction:
            for relation, rows in (delete or {}).items():
                transaction.delete(relation, rows)
            for relation, rows in (insert or {}).items():
                transaction.insert(relation, rows)
        return transaction.delta

    def _commit(self, transaction: Transaction) -> ChangeSet:
        return self._propagate(transaction, is_committed=True)

    def _propagate(self, transaction: Transaction, is_committed: bool = False) -> ChangeSet:
        """The change of everything; applied only if it is complete and `is_committed`."""
        base = transaction.net()
        if not base:
            return base
        try:
            self.statistics = self.propagation.run(base, self.limits, self.watch)
            inserted, deleted = dict(base.inserted), dict(base.deleted)
            for name, relation in self.relations.items():
                if relation.kind == "view":
                    plus, minus = self.propagation.change(name)
                    inserted[name], deleted[name] = frozenset(plus), frozenset(minus)
            if is_committed:
                self.propagation.apply()
                self._apply_base(base)
        finally:
            self.propagation.reset()
        return ChangeSet(inserted, deleted)

    def _apply_base(self, change: ChangeSet) -> None:
        for name, rows in change.deleted.items():
            self.engine.delete(name, rows)
        for name, rows in change.inserted.items():
            self.engine.insert(name, rows)

    # --- installing and evaluating

    def _choose(self, strategy: str, per_view: Mapping[str, str]) -> tuple[Choice, ...]:
        """Strategies for all views; delta rules need rules in algebra format, all of it stored."""
        choices = choose(self.core.rules, self.stored, strategy, per_view)
        delta = [c for c in choices if c.strategy == "delta" and not c.is_aggregate]
        if not delta:
            return choices
        replaced = {name for choice in delta for name in choice.predicates}
        made = normalize(rule for choice in delta for rule in choice.rules)
        kept = (rule for rule in self.core.rules if rule.head.predicate not in replaced)
        self.core = replace(self.core, rules=(*kept, *made))
        self.stored |= {rule.head.predicate for rule in made}
        asked = dict(per_view) | {rule.head.predicate: "delta" for rule in made}
        return choose(self.core.rules, self.stored, strategy, asked)

    def _stored(self, materialize: bool) -> frozenset[str]:
        """Base relations and materialised views; helpers of rules are stored with their views."""
        declared = {
            declaration.predicate
            for declaration in self.checked.program.declarations
            if declaration.storage == "materialized"
        }
        stored = {
            name
            for name, relation in self.relations.items()
            if relation.kind == "base"
            or (relation.storage == "materialized" and (materialize or name in declared))
        }
        return frozenset(stored)

    def _install(self) -> Installed:
        self._create({name: self._typed[name] for name in self.stored})
        needed = needed_rules(self.core.rules, self.stored)
        self._transient = {
            rule.head.predicate for rule in needed if rule.head.predicate not in self.stored
        }
        return install(self.engine, component_partition(needed))

    def _create(self, relations: Mapping[str, Relation]) -> None:
        for name, relation in relations.items():
            types = tuple(type_ or "int" for type_ in relation.types)
            self.engine.create(name, types)

    def _load(self, facts: Facts) -> Statistics:
        """The facts of the program, those given, and everything they imply."""
        loading = self.transaction()
        for fact in self.core.facts:
            row = tuple(term.value for term in fact.arguments if isinstance(term, Constant))
            loading.insert(fact.predicate, [row])
        for relation, rows in facts.items():
            loading.insert(relation, rows)
        self._apply_base(loading.net())
        return self._evaluate()

    def _evaluate(self) -> Statistics:
        """Compute every materialised view from the base relations."""
        self._create({name: self._typed[name] for name in self._transient})
        for name in self.stored:
            if self._typed[name].kind == "view":
                self.engine.clear(name)
        self._installed.rewind()
        try:
            return run(self.engine, self._installed, self.limits, watch=self.watch)
        finally:
            for name in self._transient:
                self.engine.drop(name)
