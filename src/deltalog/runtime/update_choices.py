"""Default choices for view updates: `to insert path(X, Y) do insert edge(X, Y).`

A choice translates a request for a view into changes of base relations, by values alone. Whether it
does what it says is a question about all databases. Where the actions of a choice make the body of
a rule true (or take a literal of every rule away), it is proved. Otherwise small databases are
tried, the smallest first: the first request that is not realized is a counterexample, and the first
one that changes other facts of the view shows its side effects.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations, product
from typing import TYPE_CHECKING

from deltalog.analysis.domains import ColumnClasses
from deltalog.diagnostics.report import DataError
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.language.ast import (
    Atom,
    Constant,
    Literal,
    Negation,
    Row,
    Rule,
    UpdateChoice,
    Value,
    Variable,
)
from deltalog.language.printer import print_update_choice
from deltalog.language.values import canonical_value
from deltalog.language.walk import atoms_of, substitute_literal, variable_names
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.constraints import callers_level
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Model, Options
from deltalog.runtime.realization import Wish

if TYPE_CHECKING:
    from deltalog.analysis.columns import Relations
    from deltalog.runtime.database import MemoryDatabase

TRIES_MAX = 2_000
"""Requests that are tried; the check says up to which size of databases that led."""
TRIES_WHEN_DEFINED = 200
"""Requests that are tried when a program is new, to warn of a choice."""
FACTS_MAX = 3
VALUES: Mapping[str, tuple[Value, ...]] = {
    "int": (1, 2, 3),
    "float": (1.0, 2.0, 3.0),
    "str": ("a", "b", "c"),
    "bool": (False, True),
    "decimal": (Decimal(1), Decimal(2), Decimal(3)),
    "date": (date(2000, 1, 1), date(2000, 1, 2), date(2000, 1, 3)),
    "timestamp": (datetime(2000, 1, 1), datetime(2000, 1, 2), datetime(2000, 1, 3)),
}
UNFOLDED_MAX = 5


class ChoiceWarning(UserWarning):
    """A declared choice does not realize some request: it will be refused then (E1410)."""


@dataclass(frozen=True)
class ChoiceExample:
    """A request over a small database: its base facts, the request, and the change that is made."""

    facts: tuple[str, ...]
    request: str
    change: ChangeSet

    def __str__(self) -> str:
        return f"{self.request} with {', '.join(self.facts) or 'no facts'}"


@dataclass(frozen=True)
class ChoiceCheck:
    """Whether a declared choice realizes every request, and the smallest that show otherwise.

    It is proved, or was tried on all databases of up to `facts_max` facts, or is refuted by the
    example `unrealized`; `side_effect` has a request that changes other facts of the view.
    """

    choice: str
    is_proved: bool
    facts_max: int
    unrealized: ChoiceExample | None
    side_effect: ChoiceExample | None

    def __str__(self) -> str:
        lines = [self.choice]
        if self.is_proved:
            lines.append("  realizes every request")
        elif self.unrealized is not None:
            lines.append(f"  does not realize {self.unrealized}")
        else:
            lines.append(f"  realizes all requests over databases of up to {self.facts_max} facts")
        if self.side_effect is not None:
            lines.append(f"  has side effects for {self.side_effect}: {self.side_effect.change}")
        return "\n".join(lines)


def choice_of(choices: Iterable[UpdateChoice], holds: bool, view: str) -> UpdateChoice | None:
    """The choice that is declared for insertions into a view, or deletions from it."""
    kind = "insert" if holds else "delete"
    return next((c for c in choices if c.kind == kind and c.head.predicate == view), None)


def translate_request(choice: UpdateChoice, row: Row, relations: Relations) -> list[Wish]:
    """The base changes that a choice makes for a request."""
    given = {
        term.name: value
        for term, value in zip(choice.head.arguments, row, strict=True)
        if isinstance(term, Variable)
    }
    found = []
    for action in choice.actions:
        assert action.atom is not None
        types = relations[action.atom.predicate].types
        values = (
            term.value if isinstance(term, Constant) else given[term.name]
            for term in action.atom.arguments
            if isinstance(term, Constant | Variable)
        )
        pairs = zip(values, types, strict=True)
        typed = tuple(None if v is None else canonical_value(v, str(type_)) for v, type_ in pairs)
        found.append(Wish(action.verb == "insert", action.atom.predicate, typed))
    return found


# --- proofs


def is_proved(choice: UpdateChoice, rules: Mapping[str, tuple[Rule, ...]]) -> bool:
    """Whether the form of the rules shows that every request is realized."""
    made = {_change_of(a.atom, a.verb == "insert") for a in choice.actions if a.atom is not None}
    if any((not sign, *rest) in made for sign, *rest in made):
        return False
    test = _holds_after if choice.kind == "insert" else _fails_after
    return test(choice.head, rules, made, UNFOLDED_MAX)


Made = set[tuple[bool, str, tuple[object, ...]]]


def _change_of(atom: Atom, holds: bool) -> tuple[bool, str, tuple[object, ...]]:
    return holds, atom.predicate, atom.arguments


def _holds_after(atom: Atom, rules: Mapping[str, tuple[Rule, ...]], made: Made, depth: int) -> bool:
    """Whether an atom holds after the actions, in every database."""
    if atom.predicate not in rules:
        return _change_of(atom, True) in made
    if not depth:
        return False
    return any(
        all(_is_made(each, rules, made, depth) for each in body)
        for body in _bodies_for(atom, rules[atom.predicate])
        if body is not None
    )


def _is_made(
    literal: Literal, rules: Mapping[str, tuple[Rule, ...]], made: Made, depth: int
) -> bool:
    if isinstance(literal, Atom):
        return _holds_after(literal, rules, made, depth - 1)
    if isinstance(literal, Negation):
        return _fails_after(literal.atom, rules, made, depth - 1)
    return False


def _fails_after(atom: Atom, rules: Mapping[str, tuple[Rule, ...]], made: Made, depth: int) -> bool:
    """Whether an atom does not hold after the actions, in any database."""
    if atom.predicate not in rules:
        return _change_of(atom, False) in made
    if not depth:
        return False
    return all(
        body is not None and any(_is_broken(each, rules, made, depth) for each in body)
        for body in _bodies_for(atom, rules[atom.predicate])
    )


def _is_broken(
    literal: Literal, rules: Mapping[str, tuple[Rule, ...]], made: Made, depth: int
) -> bool:
    if isinstance(literal, Atom):
        return _fails_after(literal, rules, made, depth - 1)
    if isinstance(literal, Negation):
        return _holds_after(literal.atom, rules, made, depth - 1)
    return False


def _bodies_for(atom: Atom, rules: Iterable[Rule]) -> Iterator[tuple[Literal, ...] | None]:
    """The bodies of the rules for an atom, in its variables; None where a head is not general."""
    for number, rule in enumerate(rules):
        terms = rule.head.arguments
        is_general = len(set(variable_names(rule.head))) == len(terms)
        if rule.is_aggregate or not is_general or not all(isinstance(t, Variable) for t in terms):
            yield None
            continue
        given = {
            t.name: value
            for t, value in zip(terms, atom.arguments, strict=True)
            if isinstance(t, Variable)
        }

        def change(
            variable: Variable, given: Mapping[str, object] = given, number: int = number
        ) -> object:
            return given.get(variable.name, Variable(f"{variable.name}'{number}"))

        yield tuple(substitute_literal(literal, change) for literal in rule.body)  # type: ignore[arg-type]


# --- small databases


def check_choices(database: MemoryDatabase) -> tuple[ChoiceCheck, ...]:
    """The checks of all choices that a program declares."""
    model = database.model
    return tuple(_Tries(model, choice).check() for choice in model.checked.program.update_choices)


def warn_of_choices(model: Model) -> None:
    """Warn of the choices of a program that is new, where a few tries find what they do not do."""
    for choice in model.checked.program.update_choices:
        tries = _Tries(model, choice)
        if not tries.proved:
            found = tries.check(TRIES_WHEN_DEFINED, is_refuting=True)
            if found.unrealized is not None:
                message = f"`{found.choice}` does not realize {found.unrealized}"
                warnings.warn(message, ChoiceWarning, stacklevel=callers_level())


class _Tries:
    """Requests for one view over small databases, until both examples are found."""

    def __init__(self, model: Model, choice: UpdateChoice) -> None:
        self.choice = choice
        self.view = choice.head.predicate
        self.written = model.as_written.rules
        self.relations = model.checked.relations
        self.classes = ColumnClasses(self.written)
        self.program = replace(
            model.checked.program,
            facts=(), queries=(), constraints=(), active_rules=(), update_choices=(),
            rules=model.checked.program.definitions,
        )  # fmt: skip
        self.proved = is_proved(choice, self._rules_by_head())
        self.unrealized: ChoiceExample | None = None
        self.side_effect: ChoiceExample | None = None

    def _rules_by_head(self) -> Mapping[str, tuple[Rule, ...]]:
        found: dict[str, list[Rule]] = {}
        for rule in self.written:
            found.setdefault(rule.head.predicate, []).append(rule)
        return {name: tuple(own) for name, own in found.items()}

    def check(self, tries_max: int = TRIES_MAX, is_refuting: bool = False) -> ChoiceCheck:
        """Try requests until there are examples; if it `is_refuting`, of one that fails only."""
        from deltalog.runtime.open_memory import open_in_memory  # which imports the database

        self.is_refuting = is_refuting
        self.tried = open_in_memory(self.program, ReferenceEngine, Options(), Limits(), None, {})
        tries, size = 0, -1
        for size in range(FACTS_MAX + 1):
            states = combinations(self._reached_facts(), size)
            for state in states:
                tries += self._try_state(state)
                if self.is_done or tries > tries_max:
                    break
            if self.is_done or tries > tries_max:
                size -= 1
                break
        text = print_update_choice(self.choice)
        return ChoiceCheck(text, self.proved, size, self.unrealized, self.side_effect)

    @property
    def is_done(self) -> bool:
        if self.is_refuting:
            return self.unrealized is not None
        return self.side_effect is not None and (self.proved or self.unrealized is not None)

    def _reached_facts(self) -> list[tuple[str, Row]]:
        """The facts of base relations that the view or the choice reaches."""
        reached, waiting = set(), [self.view]
        rules = self._rules_by_head()
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                bodies = (rule.body for rule in rules.get(name, ()))
                waiting += [atom.predicate for body in bodies for atom, _ in atoms_of(body)]
        reached |= {a.atom.predicate for a in self.choice.actions if a.atom is not None}
        base = sorted(
            n for n in reached if n in self.relations and self.relations[n].kind == "base"
        )
        return [(name, row) for name in base for row in self._possible_rows(name)]

    def _possible_rows(self, relation: str) -> Iterator[Row]:
        types = self.relations[relation].types
        return product(
            *(self._column_values(relation, i, str(type_)) for i, type_ in enumerate(types))
        )

    def _column_values(self, relation: str, position: int, type_: str) -> tuple[Value, ...]:
        """A few values of a column, first those that rules name."""
        named = sorted(self.classes.constants((relation, position)), key=repr)
        return tuple(dict.fromkeys((*named, *VALUES[type_])))[:3]

    def _try_state(self, state: tuple[tuple[str, Row], ...]) -> int:
        """All requests over one database; returns how many there were."""
        facts: dict[str, list[Row]] = {}
        for name, row in state:
            facts.setdefault(name, []).append(row)
        before = {
            n: self.tried.facts(n) for n, each in self.relations.items() if each.kind == "base"
        }
        try:
            self.tried.apply(facts, {n: list(rows) for n, rows in before.items() if rows})
        except DataError:
            return 1  # two facts with one key
        holding = self.tried.facts(self.view)
        tries = 0
        for row in self._possible_rows(self.view):
            if (row in holding) == (self.choice.kind == "delete"):
                tries += 1
                self._try_request(state, row)
        return tries

    def _try_request(self, state: tuple[tuple[str, Row], ...], row: Row) -> None:
        wishes = translate_request(self.choice, row, self.relations)
        sides: tuple[dict[str, list[Row]], dict[str, list[Row]]] = {}, {}
        for wish in wishes:
            sides[not wish.holds].setdefault(wish.relation, []).append(wish.row)
        try:
            delta = self.tried.what_if(*sides)
        except DataError:
            delta = ChangeSet()
        is_insertion = self.choice.kind == "insert"
        same, other = delta.inserted[self.view], delta.deleted[self.view]
        if not is_insertion:
            same, other = other, same
        wish = Wish(is_insertion, self.view, row)
        texts = tuple(str(Wish(True, *fact))[1:] for fact in state)
        example = ChoiceExample(
            texts, str(wish), delta.only(self.view) if self.view in delta.relations else ChangeSet()
        )
        if row not in same and not self.proved:
            self.unrealized = self.unrealized or example
        if row in same and (len(same) > 1 or other):
            self.side_effect = self.side_effect or example
