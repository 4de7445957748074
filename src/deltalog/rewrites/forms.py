"""The three things that passes work on: a whole program, one query, one component of views.

Each is a frozen record. A pass returns a new one, or the same object where it does not apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from deltalog.analysis.binding import Fanout
from deltalog.analysis.columns import Relations
from deltalog.language.ast import DisjunctiveRule, Program, Query, Row, Rule
from deltalog.language.walk import atoms_of
from deltalog.rewrites.strategies import Choice


def read_by(rules: Iterable[Rule]) -> set[str]:
    """The predicates that the bodies of the rules read."""
    return {atom.predicate for rule in rules for atom, _ in atoms_of(rule.body)}


def defined_by(rules: Iterable[Rule]) -> tuple[str, ...]:
    """The predicates that the rules define, in the order in which they first occur."""
    return tuple(dict.fromkeys(rule.head.predicate for rule in rules))


@dataclass(frozen=True)
class ProgramForm:
    """A program on its way to rules that run, with what is stored.

    `declared` are the relations of the program as written; `choices` are empty before strategies
    are chosen. A migration (`is_migration`) runs old and new rules at once and trusts no helper.
    """

    program: Program
    declared: Relations
    stored: frozenset[str]
    strategy: str = "auto"
    per_view: Mapping[str, str] = field(default_factory=dict)
    is_flat: bool = False
    is_migration: bool = False
    choices: tuple[Choice, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.program.rules

    def with_rules(self, rules: Iterable[Rule]) -> ProgramForm:
        return replace(self, program=replace(self.program, rules=tuple(rules)))

    def with_replaced(self, replaced: Set[str], made: tuple[Rule, ...]) -> ProgramForm:
        """The program with other rules for some predicates; what these define is stored."""
        kept = (rule for rule in self.rules if rule.head.predicate not in replaced)
        changed = self.with_rules((*kept, *made))
        return replace(changed, stored=self.stored.union(defined_by(made)))


@dataclass(frozen=True)
class QueryForm:
    """A query on its way to rules: its own, in `asked`, and those of the `views` it may read.

    `rewritten`, once there, takes the place of both. Of stored relations that have `changed` it
    reads the new state.
    """

    query: Query
    declared: Relations
    stored: frozenset[str]
    views: tuple[Rule, ...]
    changed: frozenset[str] = frozenset()
    asked: tuple[Rule, ...] = ()
    rewritten: tuple[Rule, ...] | None = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        return (*self.views, *self.asked)


@dataclass(frozen=True)
class RequestForm:
    """Rules on their way to those by which requests go down to base relations.

    `rules` begin as those of the program without aggregates, and end in algebra format. `base` has
    the arity of each base relation, `denied` views that must stay empty, `required` facts that must
    hold. `changes` propagate what is requested back up.
    """

    rules: tuple[Rule, ...]
    base: Mapping[str, int]
    denied: Mapping[str, int] = field(default_factory=dict)
    required: tuple[tuple[str, Row], ...] = ()
    changes: tuple[Rule, ...] = ()
    requests: tuple[DisjunctiveRule, ...] = ()
    transitions: tuple[DisjunctiveRule, ...] = ()


@dataclass(frozen=True)
class OnDemand:
    """Rules whose questions are still to be rewritten, and how (`magic_sets.asked_rules`).

    States made of answers (`path__new` of a view rederived on demand) are in `asked_instead` with
    what must be asked (`path`); `silent` are the predicates whose rules turn answers into them.
    """

    rules: tuple[Rule, ...]
    silent: frozenset[str]
    asked_instead: Mapping[str, str]


@dataclass(frozen=True)
class VirtualStates:
    """How both states of views that are not stored are computed when rules ask for them.

    `rules` has those of every state predicate (`path`, `path__new`). The new state of a view that
    is rederived on demand is in `on_demand` instead.
    """

    rules: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    on_demand: Mapping[str, OnDemand] = field(default_factory=dict)

    def reached_from(self, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """The rules that questions of these rules can lead to, in the order of the program."""
        found: set[str] = set()
        waiting = list(read_by(rules))
        while waiting:
            name = waiting.pop()
            if name in self.on_demand:
                name = self.on_demand[name].asked_instead[name]
            if name not in found and name in self.rules:
                found.add(name)
                waiting += read_by(self.rules[name])
        return tuple(rule for name, own in self.rules.items() if name in found for rule in own)


@dataclass(frozen=True)
class ComponentForm:
    """A component of views on its way to the rules of its change.

    `rules` begin as its definition. `askable` define states that these may ask for; when questions
    have been rewritten, `augmented` are both as they were before. If it `is_ranked`, deletions are
    left to the engine (`plan/ranked_deletion.py`).
    """

    choice: Choice
    rules: tuple[Rule, ...]
    is_stored: bool
    is_ranked: bool = False
    virtual: VirtualStates = field(default_factory=VirtualStates)
    fanout: Fanout | None = None
    askable: tuple[Rule, ...] = ()
    augmented: tuple[Rule, ...] = ()
    asked_instead: Mapping[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
