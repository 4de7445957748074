"""What is printed reads back as the same tree."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from programs import Features, numbered_wildcards, programs

from deltalog.language.ast import (
    AGGREGATES,
    COMPARISONS,
    TYPES,
    Action,
    ActiveRule,
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Constraint,
    Declaration,
    Disjunction,
    Event,
    Expression,
    Literal,
    Negation,
    Operation,
    Program,
    Query,
    Rule,
    Variable,
)
from deltalog.language.functions import INFIX
from deltalog.language.parser import parse_text
from deltalog.language.printer import COLUMNS_MAX, print_program
from deltalog.language.values import INT_MAX, INT_MIN, canonical_value

checked = settings(derandomize=True, max_examples=100, deadline=None)

WORDS = "deny require warn view immediate say rule for priority nervous on when do else"
VERBS = "insert delete set call emit reject"
NAMES = st.sampled_from(
    ("p", "edge", "notes", "mod_2", "x1Y", "contains", "base", "date", *f"{WORDS} {VERBS}".split())
)


def _constants(type_: str, values: SearchStrategy[object]) -> SearchStrategy[Constant]:
    return values.map(lambda value: Constant(canonical_value(value, type_), type_))


constants: SearchStrategy[Constant] = st.one_of(
    _constants("int", st.integers(-10, 10) | st.sampled_from((INT_MIN, INT_MAX))),
    _constants("float", st.floats(allow_nan=False, allow_infinity=False)),
    _constants("float", st.sampled_from((-0.0, 1e22, -1.5e-300, 5e-324, 1.7976931348623157e308))),
    _constants("decimal", st.decimals(-(10**19), 10**19, places=18)),
    _constants("decimal", st.decimals(-100, 100, places=2)),
    _constants("str", st.text() | st.text('ab"\\\n\r\t%{}u\x00\x85\u2028é😀')),
    _constants("bool", st.booleans()),
    _constants("date", st.dates()),
    _constants("timestamp", st.datetimes()),
    st.just(Constant(None, "null")),
)
variables = st.sampled_from(("X", "Long_name", "_", "_private")).map(Variable)


def _operations(operands: SearchStrategy[Expression]) -> SearchStrategy[Expression]:
    return st.one_of(
        st.builds(Operation, st.sampled_from(INFIX), st.tuples(operands, operands)),
        st.builds(Operation, st.just("-"), st.tuples(operands)),
        st.builds(Operation, NAMES, st.lists(operands, max_size=3).map(tuple)),
    )


expressions: SearchStrategy[Expression] = st.recursive(
    variables | constants, _operations, max_leaves=5
)
atoms = st.builds(Atom, NAMES, st.lists(expressions, max_size=3).map(tuple))
plain_literals: SearchStrategy[Literal] = st.one_of(
    atoms,
    st.builds(Negation, atoms),
    st.builds(Comparison, st.sampled_from(COMPARISONS), expressions, expressions),
)


def _disjunctions(literals: SearchStrategy[Literal]) -> SearchStrategy[Literal]:
    branch = st.lists(literals, min_size=1, max_size=2).map(tuple)
    return st.builds(Disjunction, st.lists(branch, min_size=2, max_size=3).map(tuple))


literals = plain_literals | _disjunctions(plain_literals | _disjunctions(plain_literals))
bodies = st.lists(literals, min_size=1, max_size=3).map(tuple)
aggregates = st.builds(Aggregate, st.sampled_from(AGGREGATES), st.none() | expressions)
heads = st.builds(Atom, NAMES, st.lists(aggregates | expressions, max_size=3).map(tuple))
rules = st.builds(Rule, heads, bodies).map(numbered_wildcards)
queries = bodies.map(lambda body: Query(numbered_wildcards(Rule(Atom("q"), body)).body))
facts = st.builds(Atom, NAMES, st.lists(constants, max_size=3).map(tuple))

texts = st.text() | st.text('ab"\\\\\n{}')


def _numbered_constraint(constraint: Constraint) -> Constraint:
    rule = numbered_wildcards(Rule(constraint.head, constraint.body))
    return replace(constraint, head=rule.head, body=rule.body)


constraints = st.builds(
    Constraint,
    st.sampled_from(("deny", "require")),
    heads,
    st.just(()) | bodies,
    st.sampled_from(("enforce", "warn", "view")),
    st.booleans(),
    st.none() | texts,
).map(_numbered_constraint)

changed = st.sampled_from(("insert", "delete", "set", "call", "emit"))
actions = st.builds(Action, changed, atoms) | st.builds(Action, st.just("reject"), st.none(), texts)
lists_of_variables = st.lists(
    st.sampled_from(("X", "Long_name", "_private")).map(Variable), min_size=1, max_size=2
).map(tuple)
events = st.builds(Event, st.sampled_from(("insert", "delete", "set")), atoms)


def _numbered_rule(rule: ActiveRule) -> ActiveRule:
    event = () if rule.event is None else (rule.event.atom,)
    body = numbered_wildcards(Rule(Atom("rule"), (*event, *rule.condition))).body
    if rule.event is None:
        return replace(rule, condition=body)
    assert isinstance(body[0], Atom)
    return replace(rule, event=replace(rule.event, atom=body[0]), condition=body[1:])


active_rules = st.builds(
    ActiveRule,
    NAMES,
    bodies,
    st.lists(actions, min_size=1, max_size=3).map(tuple),
    st.lists(actions, max_size=2).map(tuple),
    st.just(()) | lists_of_variables,
    st.none() | lists_of_variables,
    st.integers(-100, 100),
    st.booleans(),
    st.booleans(),
    st.none() | events,
).map(_numbered_rule)

typed_columns = st.builds(
    Column, NAMES, st.sampled_from(TYPES), nullable=st.booleans(), key=st.booleans()
)
columns = st.lists(typed_columns | st.builds(Column, NAMES), max_size=3).map(tuple)
declarations = st.one_of(
    st.builds(Declaration, st.just("base"), NAMES, columns),
    st.builds(
        Declaration,
        st.just("view"),
        NAMES,
        st.none() | columns,
        st.sampled_from((None, "materialized", "virtual")),
    ),
)


def _reads_back(program: Program) -> str:
    text = print_program(program)
    assert parse_text(text) == program, text
    return text


@checked
@given(programs(Features(view_declarations=True)))
def test_a_valid_program_reads_back(program: Program) -> None:
    text = _reads_back(program)
    assert max(map(len, text.splitlines())) <= COLUMNS_MAX


@checked
@given(rules | queries)
def test_a_rule_or_query_of_any_types_reads_back(statement: Rule | Query) -> None:
    if isinstance(statement, Rule):
        _reads_back(Program(rules=(statement,)))
    else:
        _reads_back(Program(queries=(statement,)))


@checked
@given(constraints)
def test_a_constraint_reads_back(constraint: Constraint) -> None:
    _reads_back(Program(constraints=(constraint,)))


@checked
@given(active_rules)
def test_an_active_rule_reads_back(rule: ActiveRule) -> None:
    _reads_back(Program(active_rules=(rule,)))


@checked
@given(facts)
def test_a_fact_reads_back(fact: Atom) -> None:
    _reads_back(Program(facts=(fact,)))


@checked
@given(declarations)
def test_a_declaration_reads_back(declaration: Declaration) -> None:
    _reads_back(Program(declarations=(declaration,)))


def test_parentheses_stand_only_where_they_are_needed() -> None:
    bodies = [
        "X - (Y - Z) = X - Y - Z",
        "X / (Y * Z) = X / Y * Z mod 2",
        "-(X + Y) * -X < -(-X) - -3",
        "-(3) > -(-3)",
        "-3 * X <= X mod -3",
        "-abs(X) = (X + 1) * (X - 1)",
        "not p(_, _private, X + 1)",
        "(p ; not q, X = 1), (r ; (s ; t))",
    ]
    for body in bodies:
        text = f"p(X, count()) :- {body}.\n"
        assert print_program(parse_text(text)) == text


def test_a_long_body_goes_on_below() -> None:
    text = (
        "reachable_within_budget(Origin, Destination) :-\n"
        "    connection(Origin, Stop, Price), (reachable_within_budget(Stop, Destination) ;\n"
        "    Stop = Destination), Price < 1000.\n"
    )
    written = parse_text(text.replace("\n    ", " "))
    assert print_program(written) == text
