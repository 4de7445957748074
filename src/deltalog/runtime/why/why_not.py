"""`db.why_not("path(3, 1)")`: for every rule the nearest instance that fails, and what blocks it.

    path(3, 1) does not hold
      graph.dl:3   path(X, Y) :- edge(X, Y).               blocked by edge(3, 1): no such fact
      graph.dl:4   path(X, Y) :- edge(X, Z), path(Z, Y).   blocked by path(4, 1): no such fact

The nearest instance is one that all literals but one would hold for; if there is none, all but two;
else the longest part of the body, in the order of evaluation, that has an instance. Of equals it is
the one that fails last in that order. Literals that share no variable but those of the head are
asked for by themselves, so leaving one out never makes a product of all with all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from deltalog.analysis.binding import bound_variables, evaluation_order
from deltalog.language.ast import Aggregate, Atom, Comparison, Literal, Negation, Row, Variable
from deltalog.language.printer import print_term
from deltalog.language.values import print_value
from deltalog.language.walk import variable_names, variables_of
from deltalog.runtime.derivation import Fact, fact_text
from deltalog.runtime.why.clauses import Clause, clauses_of
from deltalog.runtime.why.instances import aggregated_values, groups_of, literal_text
from deltalog.runtime.why.state import AskedState, Binding, pattern_of

if TYPE_CHECKING:
    from deltalog.runtime.realization import Realization

LEFT_OUT_MAX = 2
"""Literals that are left out at once before the longest part of a body is taken."""
EXCLUDING_MAX = 10
"""Facts that a negated literal excludes, and that are shown."""

BlockKind = OneOf["fact", "negation", "comparison", "aggregate", "head"]


@dataclass(frozen=True)
class BlockedRule:
    """A rule, the literal that its nearest instance fails by, and the literals that hold for it.

    `literal` has the values of the instance; a variable without one is `_`, or has its name if it
    occurs twice. `reason` says why it is false. `others` are literals that do not hold either, or
    could not be looked at. `change` is the change of a base relation that makes the literal true,
    where that is one fact. `sentence` is what the rule would `say` if it were not blocked.
    """

    rule: str
    place: str
    kind: BlockKind
    literal: str
    reason: str
    holding: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    relation: str | None = None
    excluding: tuple[Row, ...] = ()
    change: str | None = None
    sentence: str | None = None

    @property
    def claim(self) -> str:
        """The reason in one clause: `there is no edge(3, 1)`."""
        if self.kind == "fact":
            return f"there is no {self.literal}"
        if self.kind == "negation":
            return self.reason
        return f"{self.literal}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has."""
        return {
            "rule": self.rule,
            "place": self.place,
            "kind": self.kind,
            "blocked_by": self.literal,
            "reason": self.reason,
            "holding": list(self.holding),
            "others": list(self.others),
            "change": self.change,
            **({} if self.sentence is None else {"sentence": self.sentence}),
        }

    def __str__(self) -> str:
        place = f"{self.place}   " if self.place else ""
        lines = [f"{place}{self.rule}", f"  blocked by {self.literal}: {self.reason}"]
        if self.holding:
            lines.append(f"  while {', '.join(self.holding)}")
        if self.others:
            lines.append(f"  and there remains {', '.join(self.others)}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class WhyNot:
    """For every rule that could derive a fact, what blocks it.

    `realization` is a change of base facts that would make the fact true, if one was found; it is
    not applied.
    """

    conclusion: str
    rules: tuple[BlockedRule, ...]
    is_base: bool = False
    realization: Realization | None = field(default=None, repr=False)

    @property
    def changes(self) -> list[str]:
        """The realization as changes that are written: `+edge(3, 1)`."""
        if self.realization is None:
            return []
        return [f"{op}{fact_text(name, row)}" for op, name, row in self.realization.base]

    def sentences(self) -> list[str]:
        """The sentences of the rules, why they are not so, and what would make them so."""
        found = [
            f"not so: {rule.sentence or self.conclusion}, since {rule.claim}" for rule in self.rules
        ]
        if not found:
            found = [f"not so: {self.conclusion}, since {self._without_rules}"]
        if self.changes:
            found.append(f"{', '.join(self.changes)} would make it true")
        return list(dict.fromkeys(found))

    @property
    def _without_rules(self) -> str:
        if self.is_base:
            return "it is a fact of a base relation, which has no rules"
        return "no rule derives it"

    def to_json(self) -> dict[str, Any]:
        """Return it as values that JSON has."""
        made = None if self.realization is None else self.changes
        rules = [each.to_json() for each in self.rules]
        return {"conclusion": self.conclusion, "rules": rules, "realization": made}

    def __str__(self) -> str:
        lines = [f"{self.conclusion} does not hold"]
        if not self.rules:
            lines.append(f"  {self._without_rules}")
        for rule in self.rules:
            lines += [f"  {line}" for line in str(rule).splitlines()]
        if self.realization is not None:
            lines.append(f"  {', '.join(self.changes)} would make it true")
        return "\n".join(lines)


def why_not_fact(state: AskedState, fact: Fact) -> tuple[BlockedRule, ...]:
    """The rules for a fact that does not hold, as they are written, each with what blocks it."""
    clauses = clauses_of(state.model.checked)
    return tuple(_blocked_rule(state, clause, fact[1]) for clause in clauses.get(fact[0], ()))


def _blocked_rule(state: AskedState, clause: Clause, row: Row) -> BlockedRule:
    group = clause.group_of(row)
    if group is None:
        head = literal_text(clause.head, {})
        reason = f"it does not fit {fact_text(clause.head.predicate, row)}"
        return BlockedRule(clause.text, clause.place, "head", head, reason)
    if clause.is_aggregate:
        key = tuple(group[name] for name in clause.group)
        found = groups_of(state, clause, [key]).get(key)
        if found is not None:
            return _other_value(clause, row, found[1], len(found[0]))
    failures = [_Body(state, clause, body, group).nearest() for body in clause.bodies]
    return min(failures, key=lambda each: len(each.others))


def _other_value(clause: Clause, row: Row, values: Row, count: int) -> BlockedRule:
    """A group that is there, and has other values."""
    terms = [term for term in clause.head.arguments if isinstance(term, Aggregate)]
    pairs = zip(terms, aggregated_values(clause, row), values, strict=True)
    wrong = [(term, wanted, real) for term, wanted, real in pairs if wanted != real]
    literal = ", ".join(f"{print_term(t)} = {print_value(wanted)}" for t, wanted, _ in wrong)
    rows = f"{count:,} row{'' if count == 1 else 's'}"
    reason = ", ".join(f"it is {print_value(real)}" for _, _, real in wrong) + f", of {rows}"
    values_of = {t.function: v for t, v in zip(terms, aggregated_values(clause, row), strict=True)}
    said = clause.said({**values_of, **(clause.group_of(row) or {})})
    return BlockedRule(clause.text, clause.place, "aggregate", literal, reason, sentence=said)


@dataclass(frozen=True)
class _Body:
    """A body whose head has values, in a state in which it has no instance."""

    state: AskedState
    clause: Clause
    body: tuple[Literal, ...]
    group: Binding

    def nearest(self) -> BlockedRule:
        order = evaluation_order(self.body, frozenset(self.group))
        for left_out in self._left_out_choices(order):
            kept, unknown = self._split_evaluable([x for x in order if not _is_in(x, left_out)])
            if unknown and len(left_out) + len(unknown) > LEFT_OUT_MAX:
                continue
            binding = self._first_solution(kept)
            if binding is None:
                continue
            for literal in left_out:
                if self._is_false(literal, binding):
                    others = [x for x in (*left_out, *unknown) if x is not literal]
                    return self._blocked_by(literal, kept, others, binding)
        return self._first_failure(order)

    def _left_out_choices(self, order: Sequence[Literal]) -> Iterator[tuple[Literal, ...]]:
        for count in range(1, min(LEFT_OUT_MAX, len(order)) + 1):
            yield from reversed(list(combinations(order, count)))

    def _split_evaluable(self, literals: list[Literal]) -> tuple[list[Literal], list[Literal]]:
        """The literals that can be evaluated by themselves, and the others."""
        bound = bound_variables(literals, frozenset(self.group))
        unknown = [x for x in literals if not _needed_variables(x, self.body) <= bound]
        return [x for x in literals if not _is_in(x, unknown)], unknown

    def _first_solution(self, literals: Sequence[Literal]) -> Binding | None:
        """The first binding for which all these literals hold, each connected part by itself."""
        found: Binding = dict(self.group)
        for part in _connected_parts(literals, frozenset(self.group)):
            given = tuple(self.group)
            rows = [tuple(self.group.values())]
            first = next(self.state.bindings(part, given, rows, self._typing_literals), None)
            if first is None:
                return None
            found.update(first)
        return found

    @property
    def _typing_literals(self) -> tuple[Literal, ...]:
        """Literals that the types of all variables are known from; the head, too."""
        if self.clause.is_aggregate:
            return self.body
        return (*self.body, self.clause.head)

    def _is_false(self, literal: Literal, binding: Binding) -> bool:
        known = {n: binding[n] for n in variable_names(literal) if n in binding}
        found = self.state.bindings(
            (literal,), tuple(known), [tuple(known.values())], self._typing_literals
        )
        if not _needed_variables(literal, self.body) <= known.keys() | _equated_variables(literal):
            return False  # it cannot be looked at
        return next(found, None) is None

    def _first_failure(self, order: tuple[Literal, ...]) -> BlockedRule:
        """The failure of the first literal that no instance of those before it satisfies."""
        binding: Binding = dict(self.group)
        for i, literal in enumerate(order):
            longer = self._first_solution(order[: i + 1])
            if longer is None:
                return self._blocked_by(literal, order[:i], order[i + 1 :], binding)
            binding = longer
        raise AssertionError("a body that holds does not fail")

    def _blocked_by(
        self,
        literal: Literal,
        holding: Sequence[Literal],
        others: Sequence[Literal],
        binding: Binding,
    ) -> BlockedRule:
        kind, reason, relation, excluding, change = self._failure_reason(literal, binding)
        written = [x for x in self.body if _is_in(x, holding)]
        return BlockedRule(
            self.clause.text,
            self.clause.place,
            kind,
            shown_literal(literal, binding),
            reason,
            tuple(shown_literal(x, binding) for x in written),
            tuple(shown_literal(x, binding) for x in self.body if _is_in(x, others)),
            relation,
            excluding,
            change,
            self.clause.said(binding),
        )

    def _failure_reason(
        self, literal: Literal, binding: Binding
    ) -> tuple[BlockKind, str, str | None, tuple[Row, ...], str | None]:
        relations = self.state.model.relations
        match literal:
            case Atom(predicate=name):
                known = pattern_of(literal, binding)
                is_one = len(known) == len(literal.arguments) and relations[name].kind == "base"
                row = tuple(known[i] for i in sorted(known))
                change = f"+{fact_text(name, row)}" if is_one else None
                return "fact", "no such fact", name, (), change
            case Negation(atom=atom):
                known = pattern_of(atom, binding)
                name = atom.predicate
                rows = self.state.matching(name, list(known), [tuple(known.values())])
                shown = ", ".join(fact_text(name, row) for row in rows[:EXCLUDING_MAX])
                more = f" and {len(rows) - EXCLUDING_MAX:,} more" * (len(rows) > EXCLUDING_MAX)
                holds = "holds" if len(rows) == 1 else "hold"
                is_one = len(rows) == 1 and relations[name].kind == "base"
                change = f"-{fact_text(name, rows[0])}" if is_one else None
                return "negation", f"{shown}{more} {holds}", name, tuple(rows), change
            case _:
                return "comparison", "it is false", None, (), None


def shown_literal(literal: Literal, binding: Binding) -> str:
    """A literal with the values of an instance; a variable that has none is `_`.

    One that occurs twice keeps its name: `b(Y, Y)` is not `b(_, _)`.
    """
    occurring = Counter(each.name for each in variables_of(literal))
    unknown = [name for name in occurring if name not in binding]
    if not unknown or isinstance(literal, Comparison):
        return literal_text(literal, binding)
    atom = literal.atom if isinstance(literal, Negation) else literal
    assert isinstance(atom, Atom)
    known = pattern_of(atom, binding)
    values = [
        print_value(known[i])
        if i in known
        else (print_term(term) if isinstance(term, Variable) and occurring[term.name] > 1 else "_")
        for i, term in enumerate(atom.arguments)
    ]
    text = f"{atom.predicate}({', '.join(values)})"
    return f"not {text}" if isinstance(literal, Negation) else text


def _needed_variables(literal: Literal, body: tuple[Literal, ...]) -> set[str]:
    """The variables that must have a value before a literal can be evaluated."""
    match literal:
        case Negation(atom=atom):
            return {name for name in variable_names(atom) if not Variable(name).is_wildcard}
        case Comparison():
            return set(variable_names(literal))
        case _:
            return set()


def _equated_variables(literal: Literal) -> set[str]:
    """A variable that an equation may give its value to."""
    if isinstance(literal, Comparison) and literal.operator == "=":
        sides = (literal.left, literal.right)
        return {side.name for side in sides if isinstance(side, Variable)}
    return set()


def _is_in(literal: Literal, literals: Sequence[Literal]) -> bool:
    """Whether it is one of them, and not only equal to one."""
    return any(each is literal for each in literals)


def _connected_parts(
    literals: Sequence[Literal], given: frozenset[str]
) -> list[tuple[Literal, ...]]:
    """The literals in parts that share no variable but those given."""
    parts: list[tuple[set[str], list[Literal]]] = []
    for literal in literals:
        own = set(variable_names(literal)) - given
        joined = [part for part in parts if part[0] & own]
        parts = [part for part in parts if not part[0] & own]
        own = own.union(*(variables for variables, _ in joined))
        merged = [x for _, members in joined for x in members] + [literal]
        parts.append((own, merged))
    return [tuple(members) for _, members in parts]
