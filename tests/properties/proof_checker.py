"""A proof checker that knows only the rules.

A step holds if its rule, run alone over its premises and nothing else, derives its conclusion. The
rule is taken from the text of the proof, and must be one of the program. Negated atoms are checked
against all facts there are. So nothing of the search for proofs is trusted.

`least_heights` computes the height of every fact by brute force: what is derivable from facts of
height h has height h + 1. A group of an aggregate is derivable once all its rows are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import deltalog
from deltalog.analysis.binding import bound_variables
from deltalog.analysis.columns import Relation
from deltalog.language.ast import (
    Atom,
    Column,
    Declaration,
    Disjunction,
    Literal,
    Negation,
    Program,
    Row,
    Rule,
    Variable,
)
from deltalog.language.parser import parse_program
from deltalog.language.printer import print_program
from deltalog.language.walk import substitute_literal, variable_names
from deltalog.runtime.why.proof import Proof
from deltalog.source import Source

State = Mapping[str, set[Row]]
Relations = Mapping[str, Relation]


def check_proof(proof: Proof, program: Program, relations: Relations, state: State) -> None:
    """Raise unless every step of the proof is right; `state` has all facts of the database."""
    for step in proof.steps():
        if step.kind == "base":
            assert relations[str(step.relation)].kind == "base", step
            assert step.row in state[str(step.relation)], f"{step} is not there"
        elif step.rule is not None:
            _check_step(step, program, relations, state)
        else:
            assert step.kind in ("absent", "comparison"), step
            assert not step.premises, step
        assert step.height == 1 + max((p.height for p in step.premises), default=0) or (
            step.rule is None and step.height == 0
        ), f"the height of {step!r}"


def _check_step(step: Proof, program: Program, relations: Relations, state: State) -> None:
    rule = _read_rule(str(step.rule))
    rules = {replace(each, message=None) for each in program.definitions}
    facts = {Rule(fact) for fact in program.facts}
    assert rule in rules | facts, f"no rule of the program: {step.rule}"
    if not rule.body:
        return
    used: dict[str, set[Row]] = {}
    for premise in step.premises:
        if premise.kind in ("absent", "comparison"):
            continue
        assert premise.relation is not None
        assert premise.row is not None
        used.setdefault(premise.relation, set()).add(premise.row)
    derived = derived_by(rule, relations, used, state)
    assert step.row in derived, f"{step.rule} does not derive {step.conclusion} from {used}"


@cache
def _read_rule(text: str) -> Rule:
    read = parse_program(Source("<rule>", text))
    return read.rules[0] if read.rules else Rule(read.facts[0])


def derived_by(rule: Rule, relations: Relations, used: State, negated: State) -> set[Row]:
    """What a rule derives from facts for its positive atoms, and others for its negated ones."""
    body = tuple(map(_apart, rule.body))
    head = replace(rule.head, predicate="conclusion")
    read = {atom.predicate for atom in _atoms(body)}
    declared = [_declared(name, relations) for name in sorted(read)]
    columns = tuple(
        replace(column, key=False, span=None) for column in relations[rule.head.predicate].columns
    )
    declared.append(Declaration("view", "conclusion", columns))
    program = Program(tuple(declared), (Rule(head, body),))
    facts = {
        name: (used if name.startswith("has_") else negated).get(name[4:], set()) for name in read
    }
    return _evaluated(print_program(program), facts)


def _evaluated(program: str, facts: State) -> set[Row]:
    return deltalog.connect(program=program, engine="reference", facts=facts).facts("conclusion")


def _apart(literal: Literal) -> Literal:
    """Positive atoms read `has_p`, negated ones `not_p`."""
    match literal:
        case Atom():
            return replace(literal, predicate=f"has_{literal.predicate}")
        case Negation(atom=atom):
            return Negation(replace(atom, predicate=f"not_{atom.predicate}"))
        case Disjunction(branches=branches):
            return Disjunction(tuple(tuple(map(_apart, branch)) for branch in branches))
        case _:
            return literal


def _atoms(body: tuple[Literal, ...]) -> list[Atom]:
    found: list[Atom] = []
    for literal in body:
        match literal:
            case Atom():
                found.append(literal)
            case Negation(atom=atom):
                found.append(atom)
            case Disjunction(branches=branches):
                found += [atom for branch in branches for atom in _atoms(branch)]
    return found


def _declared(name: str, relations: Relations) -> Declaration:
    columns = relations[name[4:]].columns
    return Declaration("base", name, tuple(replace(c, key=False, span=None) for c in columns))


def least_heights(
    program: Program, relations: Relations, state: State
) -> dict[tuple[str, Row], int]:
    """The least height of every fact, from below."""
    heights = {
        (name, row): 0
        for name, relation in relations.items()
        if relation.kind == "base"
        for row in state[name]
    }
    for fact in program.facts:
        if relations[fact.predicate].kind == "view":
            row = tuple(term.value for term in fact.arguments)  # type: ignore[union-attr]
            heights[fact.predicate, row] = 1
    height, is_growing = 0, True
    while is_growing or height < 2:
        height += 1
        known: dict[str, set[Row]] = {}
        for (name, row), least in heights.items():
            if least < height:
                known.setdefault(name, set()).add(row)
        new = {
            (rule.head.predicate, row)
            for rule in program.definitions
            for row in _complete(rule, relations, known, state)
        }
        fresh = {fact for fact in new if fact not in heights}
        heights.update(dict.fromkeys(fresh, height))
        is_growing = bool(fresh)
    return heights


def _complete(rule: Rule, relations: Relations, known: State, state: State) -> set[Row]:
    """What a rule derives from facts known so far; of aggregates the groups that are complete."""
    derived = derived_by(rule, relations, known, state)
    if not rule.is_aggregate:
        return derived
    groups = [i for i, term in enumerate(rule.head.arguments) if isinstance(term, Variable)]
    terms = [rule.head.arguments[i] for i in groups]
    bound = bound_variables(rule.body)

    def named(variable: Variable) -> Variable:
        is_renamed = variable.is_wildcard and variable.name in bound
        return Variable(f"W{variable.name}") if is_renamed else variable

    body = tuple(substitute_literal(literal, named) for literal in rule.body)
    extra = [name for name in variable_names(*body) if name in bound_variables(body)]
    bindings = Rule(Atom("b", tuple(map(Variable, extra))), body)
    columns = tuple(Column(f"c{i}", "int", True) for i in range(len(extra)))
    declared = {**relations, "b": Relation("b", "view", columns)}
    all_of = derived_by(bindings, declared, state, state)
    missing = all_of - derived_by(bindings, declared, known, state)
    places = [extra.index(term.name) for term in terms if isinstance(term, Variable)]
    open_groups = {tuple(row[i] for i in places) for row in missing}
    return {row for row in derived if tuple(row[i] for i in groups) not in open_groups}
