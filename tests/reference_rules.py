"""Active rules by recomputation: an interpreter of the check phase that knows nothing of changes.

It evaluates every condition from scratch in every state, as a view on the reference engine, and
compares: a rule is triggered for what holds now and did not when the rule was last checked. What an
action does is asked by a view, too, over the instances that are triggered.

    phase = Phase(program, facts, Marks(), FUNCTIONS)
    phase.operate("insert", "quantity", [("nut", 5)])     # immediate rules follow
    phase.end()                                           # all rules follow
    phase.facts, phase.firings, phase.marks
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from deltalog.analysis.active_rules import event_variables, instance_variables
from deltalog.analysis.columns import Relation
from deltalog.checks.program import CheckedProgram, check_program
from deltalog.language.ast import (
    Action,
    ActiveRule,
    Atom,
    Column,
    Comparison,
    Declaration,
    Literal,
    Operation,
    Program,
    Row,
    Rule,
    Term,
    Variable,
)
from deltalog.language.values import sort_key
from deltalog.language.walk import variable_names
from treatments import LIMITS, naive

KEY_TAKEN, NO_KEY, KEY_SET_TWICE = "E0705", "E0706", "E0727"
REJECTED, ENDLESS = "E1204", "E0804"
FIRINGS_MAX = LIMITS.firings_max
State = dict[str, set[Row]]
Function = Callable[[list[Row]], Mapping[str, Mapping[str, Sequence[Row]]] | None]
Message = tuple[str, str, Row]
"""A rule, a name and arguments."""


class RefusedError(Exception):
    """The error that a database must raise, by its code."""


@dataclass(frozen=True)
class Marks:
    """What rules keep beside facts: who is active for what, how often it fired, what it emitted."""

    inactive: frozenset[str] = frozenset()
    active: frozenset[tuple[str, Row]] = frozenset()
    fired: frozenset[tuple[str, int]] = frozenset()
    messages: tuple[Message, ...] = ()

    def parameters(self, rule: ActiveRule) -> set[Row]:
        return {row for name, row in self.active if name == rule.name}

    def is_active(self, rule: ActiveRule) -> bool:
        is_given = bool(self.parameters(rule)) if rule.parameters else True
        return is_given and rule.name not in self.inactive


NO_MARKS = Marks()


def kept_marks(marks: Marks, old: Program, new: Program) -> Marks:
    """What is left of them under another program: that of rules that it has, too.

    A rule with other parameters is another rule to its activations. Messages stay while there are
    rules that emit.
    """
    before, after = ({rule.name: rule for rule in p.active_rules} for p in (old, new))
    types = [
        {n: r.types for n, r in check_program(program).relations.items() if "__" in n}
        for program in (old, new)
    ]
    fitting = {n for n in after if n in before and _same(types, f"{n}__active")}
    return Marks(
        frozenset(name for name in marks.inactive if name in after and not after[name].parameters),
        frozenset(each for each in marks.active if each[0] in fitting),
        frozenset(each for each in marks.fired if each[0] in after),
        marks.messages if "rules__messages" in types[1] else (),
    )


def _same(types: Sequence[Mapping[str, object]], name: str) -> bool:
    return types[0].get(name) == types[1].get(name)


def operated(facts: State, relation: Relation, verb: str, rows: Sequence[Row]) -> None:
    """Insert, delete or set rows; keys are kept."""
    held = facts[relation.name]
    if verb == "delete":
        held -= set(rows)
        return
    if verb == "set" and not relation.key:
        raise RefusedError(NO_KEY)
    keys = {tuple(row[i] for i in relation.key) for row in rows}
    if relation.key and len(keys) < len(set(rows)):
        raise RefusedError(KEY_SET_TWICE if verb == "set" else KEY_TAKEN)
    for row in rows:
        key = [row[i] for i in relation.key]
        others = {r for r in held if relation.key and [r[i] for i in relation.key] == key}
        if verb == "set":
            held -= others
        elif others - {row}:
            raise RefusedError(KEY_TAKEN)
        held.add(row)


@dataclass
class Phase:
    """A transaction under way; with `is_tried` nothing is called, emitted or rejected."""

    program: Program
    facts: State
    marks: Marks
    functions: Mapping[str, Function] = field(default_factory=dict)
    is_tried: bool = False
    firings: list[tuple[str, Row]] = field(default_factory=list)
    calls: list[tuple[str, list[Row]]] = field(default_factory=list)
    is_over: bool = False
    is_rejected: bool = False
    executions: int = 0

    def __post_init__(self) -> None:
        self.facts = {name: set(rows) for name, rows in self.facts.items()}
        self.rules = sorted(self.program.active_rules, key=lambda rule: -rule.priority)
        self.last = {rule.name: self.watched(rule) for rule in self.rules}

    # --- the check phase, as the paper has it

    def operate(self, verb: str, name: str, rows: Sequence[Row], is_checked: bool = True) -> None:
        operated(self.facts, self.relations[name], verb, rows)
        if is_checked:
            self.check([rule for rule in self.rules if rule.is_immediate])

    def end(self) -> None:
        self.check(self.rules)

    def check(self, rules: Sequence[ActiveRule]) -> None:
        """Execute the first of these rules that is triggered, until none is."""
        while not self.is_over and (found := self.triggered(rules)) is not None:
            self.executions += 1
            rule, rose, fell = found
            self.last[rule.name] = self.watched(rule)
            self.execute(rule, rose, fell)
            if self.executions >= FIRINGS_MAX:
                raise RefusedError(ENDLESS)
        self.last |= {rule.name: self.watched(rule) for rule in rules}

    def triggered(
        self, rules: Sequence[ActiveRule]
    ) -> tuple[ActiveRule, set[Row], set[Row]] | None:
        for rule in filter(self.marks.is_active, rules):
            now, last = self.watched(rule), self.last[rule.name]
            rose, fell = now - last, last - now
            if rule.event is not None:
                rose, fell = self.events(rule, rose, fell), set()
            width = len(self.driven(rule))
            rose, fell = {row[:width] for row in rose}, {row[:width] for row in fell}
            if rose or (fell and rule.otherwise):
                return rule, rose, fell
        return None

    def events(self, rule: ActiveRule, rose: set[Row], fell: set[Row]) -> set[Row]:
        """What facts bind the variables of the event to, for each activation."""
        assert rule.event is not None
        facts = fell if rule.event.kind == "delete" else rose
        if rule.event.kind == "set":
            key = self.relations[rule.event.atom.predicate].key
            keys = {tuple(row[i] for i in key) for row in fell}
            facts = {row for row in rose if tuple(row[i] for i in key) in keys}
        head = Atom("bound", self.driven(rule))
        event = replace(rule.event.atom, predicate="event_of")
        columns = self.relations[rule.event.atom.predicate].columns
        return self.asked(Rule(head, (*self.active(rule), event)), "event_of", columns, facts)

    def execute(self, rule: ActiveRule, rose: set[Row], fell: set[Row]) -> None:
        """All that is done is asked first, so that it belongs to one state."""
        holding = (self.driving(rule), *rule.condition)
        instance = (*rule.parameters, *instance_variables(rule))
        if rule.event is not None:
            fired = self.of(rule, Rule(Atom("fired", instance), holding), rose)
            held = self.of(rule, Rule(Atom("held", self.driven(rule)), holding), rose)
            rose, fell = held, rose - held
        else:
            fired = rose
            fell -= self.of(rule, Rule(Atom("held", self.driven(rule)), holding), fell)
        steps = [(a, self.arguments(rule, a, holding, rose)) for a in rule.actions]
        steps += [(a, self.arguments(rule, a, (self.driving(rule),), fell)) for a in rule.otherwise]
        self.firings += [(rule.name, row) for row in sorted(fired, key=sort_key)]
        for action, rows in steps:
            if rows and not self.is_over:
                self.act(rule, action, sorted(rows, key=sort_key))
        if fired and not self.is_tried:
            counts = dict(self.marks.fired)
            counts[rule.name] = counts.get(rule.name, 0) + len(fired)
            self.marks = replace(self.marks, fired=frozenset(counts.items()))

    def act(self, rule: ActiveRule, action: Action, rows: list[Row]) -> None:
        name = "" if action.atom is None else action.atom.predicate
        if action.verb in ("call", "reject") and self.is_tried:
            self.is_over, self.is_rejected = True, action.verb == "reject"
        elif action.verb == "reject":
            raise RefusedError(REJECTED)
        elif action.verb == "call":
            self.calls.append((name, rows))
            made = self.functions[name](rows) or {}
            for verb in ("delete", "insert", "set"):
                for relation, changed in made.get(verb, {}).items():
                    operated(self.facts, self.relations[relation], verb, changed)
        elif action.verb == "emit" and not self.is_tried:
            sent = tuple((rule.name, name, row) for row in rows)
            self.marks = replace(self.marks, messages=(*self.marks.messages, *sent))
        elif action.verb != "emit":
            operated(self.facts, self.relations[name], action.verb, rows)

    # --- asking

    @cached_property
    def checked(self) -> CheckedProgram:
        return check_program(self.program)

    @property
    def relations(self) -> Mapping[str, Relation]:
        return self.checked.relations

    def driven(self, rule: ActiveRule) -> tuple[Variable, ...]:
        """The variables that have a value when a rule is executed."""
        own = instance_variables(rule) if rule.event is None else event_variables(rule)
        return tuple(dict.fromkeys((*rule.parameters, *own)))

    def driving(self, rule: ActiveRule) -> Atom:
        return Atom("triggered", self.driven(rule))

    def active(self, rule: ActiveRule) -> tuple[Atom, ...]:
        return (Atom(f"active_{rule.name}", rule.parameters),) if rule.parameters else ()

    def watched(self, rule: ActiveRule) -> set[Row]:
        """The facts of its event's relation, or the instances for which its condition holds."""
        if rule.event is not None:
            name = rule.event.atom.predicate
            return set(self.facts[name] if name in self.facts else self.evaluated(())[name])
        variables = self.driven(rule)
        if rule.is_nervous:  # all that has a value in the condition
            every = replace(rule, instance=None)
            variables = tuple(dict.fromkeys((*variables, *instance_variables(every))))
        body = (*self.active(rule), *rule.condition)
        return self.evaluated((Rule(Atom("watched", variables), body),))["watched"]

    def of(self, rule: ActiveRule, asked: Rule, triggered: set[Row]) -> set[Row]:
        return self.asked(asked, "triggered", self.columns(rule), triggered)

    def columns(self, rule: ActiveRule) -> tuple[Column, ...]:
        event = () if rule.event is None else (rule.event.atom,)
        body = (*self.active(rule), *event, *rule.condition)
        typed = Rule(Atom("typed", self.driven(rule)), body)
        found = check_program(self.with_rules((typed,))).relations["typed"].columns
        return tuple(Column(f"c{i}", each.type, True) for i, each in enumerate(found))

    def asked(self, rule: Rule, name: str, columns: tuple[Column, ...], rows: set[Row]) -> set[Row]:
        """The rows of a rule over a relation that has these rows."""
        if not rows:
            return set()
        plain = tuple(replace(column, key=False) for column in columns)
        declared = (Declaration("base", name, plain),)
        return self.evaluated((rule,), declared, {name: rows})[rule.head.predicate]

    def arguments(
        self, rule: ActiveRule, action: Action, body: tuple[Literal, ...], triggered: set[Row]
    ) -> set[Row]:
        """The distinct argument tuples of an action; of `reject` the instances."""
        body = (*body, *action.where)
        if action.atom is None:
            return self.of(rule, Rule(Atom("arguments", self.driven(rule)), body), triggered)
        terms: list[Term] = []
        for place, term in enumerate(action.atom.arguments):
            if isinstance(term, Variable) and term.name == "_":
                terms.append(Variable(f"Any{place}"))
            elif isinstance(term, Operation):
                made = Variable(f"Made{place}")
                terms.append(made)
                body = (*body, Comparison("=", made, term))
            else:
                terms.append(term)
        if "_" in set(variable_names(action.atom)):
            body = (*body, Atom(action.atom.predicate, tuple(terms)))
        return self.of(rule, Rule(Atom("arguments", tuple(terms)), body), triggered)

    def evaluated(
        self,
        rules: tuple[Rule, ...],
        declared: tuple[Declaration, ...] = (),
        rows: Mapping[str, set[Row]] = {},
    ) -> State:
        """All relations and views, and those of these rules, in the state of this moment."""
        program = self.with_rules(rules, declared)
        given = {f"active_{r.name}": self.marks.parameters(r) for r in self.rules if r.parameters}
        return naive(program, {**self.facts, **given, **rows})

    def with_rules(
        self, rules: tuple[Rule, ...], declared: tuple[Declaration, ...] = ()
    ) -> Program:
        """The program without facts of base relations and without active rules, and more."""
        given = [
            Declaration(
                "base", f"active_{rule.name}", self.relations[f"{rule.name}__active"].columns
            )
            for rule in self.rules
            if rule.parameters
        ]
        kept = tuple(
            fact for fact in self.program.facts if self.relations[fact.predicate].kind == "view"
        )
        return replace(
            self.program,
            declarations=(*self.program.declarations, *given, *declared),
            rules=(*self.program.rules, *rules),
            facts=kept,
            active_rules=(),
        )


def noted(rows: list[Row]) -> dict[str, Any]:
    """A function that rules call: what it returns is inserted."""
    return {"insert": {"log": [(row[0], row[-1]) for row in rows]}}


FUNCTIONS: dict[str, Function] = {"noted": noted, "heard": lambda rows: None}


def register(db: Any, calls: list[tuple[str, list[Row]]]) -> None:
    """Register the functions; every call is appended to a list."""
    for name, function in FUNCTIONS.items():

        def recorded(rows: list[Row], name: str = name, function: Function = function) -> Any:
            calls.append((name, rows))
            return function(rows)

        db.action(name)(recorded)
