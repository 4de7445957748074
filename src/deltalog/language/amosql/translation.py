"""A schema of AMOSQL as a program of rules: readable ones, which anybody could have written.

    create type item;                          base item_direct(object: str).
                                               item(O) :- item_direct(O).
    create function quantity(item)             base quantity(item: str key, value: int).
      -> integer;
    create function low(item i) -> boolean     low(I, true) :- quantity(I, Quantity),
      as select true where quantity(i) < 10;       Quantity < 10.

Objects are texts. A stored function has its arguments as a key, unless it is a bag; a derived one
is a view. A derived function whose arguments are not bound by its definition, `double(integer x)`,
has no relation: its definition takes the place of each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics.report import ProgramError
from deltalog.language.amosql.bodies import Body
from deltalog.language.amosql.conditions import bound_names
from deltalog.language.amosql.context import ObjectFinder, Translation, Typed, only_value
from deltalog.language.amosql.foreign import (
    is_tabulated,
    is_wanted,
    tabulation_rules,
    undefined_name,
)
from deltalog.language.amosql.naming import VariableNames
from deltalog.language.amosql.resolution import (
    late_bound_groups,
    late_bound_predicate,
    predicate_of,
)
from deltalog.language.amosql.rules import translate_rule
from deltalog.language.amosql.schema import LITERAL_TYPES, Function, Schema, column_type, name_taken
from deltalog.language.amosql.steps import check_one_state, check_steps
from deltalog.language.amosql.tree import ObjectName, Procedure, Select
from deltalog.language.ast import (
    ActiveRule,
    Atom,
    Column,
    Declaration,
    Disjunction,
    Literal,
    Negation,
    Program,
    Rule,
    Variable,
)
from deltalog.language.narrowing import numbered_rule
from deltalog.language.walk import variable_names
from deltalog.source import Origin, Span

OBJECT = "object"
VALUE = "value"


def direct_instances(type_: str) -> str:
    """The base relation of the objects that were created as, or added to, a type."""
    return f"{type_}_direct"


@dataclass
class SchemaTranslator:
    """Translates what a schema has; remembers which functions have no relation."""

    schema: Schema
    _inlined: dict[Function, bool] = field(default_factory=dict)

    def program(self) -> Program:
        """Declarations and rules of all types and functions."""
        declarations: list[Declaration] = []
        rules: list[Rule] = []
        for name in self.schema.types:
            declarations.append(self._type_declaration(name))
            rules += self._type_rules(name)
        for group in self.schema.functions.values():
            for function in group:
                if function.body is None:
                    declarations.append(self._stored_declaration(function))
                elif is_tabulated(function):
                    declarations += self._tabulated_declarations(function)
                elif isinstance(function.body, Select) and not self.is_inlined(function):
                    rules += self._rules_of_function(function)
                elif isinstance(function.body, Procedure):
                    self._check_procedure(function, function.body)
        for name in self.schema.functions:
            for members in late_bound_groups(self.schema, name):
                rules += self._late_bound(members)
        translated = [translate_rule(self, each) for each in self.schema.rules.values()]
        for each in translated:
            declarations += each.declarations
            rules += each.views
        for each in translated:
            check_one_state(each.effects, rules)
        views, computing = self._tabulation_rules(rules)
        rules += views
        self._check_names(declarations, rules)
        return Program(
            tuple(declarations),
            tuple(map(numbered_rule, rules)),
            active_rules=(*computing, *(each.rule for each in translated)),
        )

    def tabulated(self) -> Iterator[tuple[str, Function]]:
        """The functions of Python whose values are kept, each with its relation."""
        for group in self.schema.functions.values():
            for function in filter(is_tabulated, group):
                yield predicate_of(self.schema, function), function

    def schema_translation(self, owner: str) -> Translation:
        """The start of a body that is part of the schema, and cannot name objects."""
        return replace(self.translation(owner, _no_object), is_schema=True)

    def translation(self, owner: str, find_object: ObjectFinder) -> Translation:
        """The start of a body that is not part of the schema: a query, an update."""
        return Translation(self.schema, owner, find_object, self.is_inlined)

    # --- types

    def _type_declaration(self, name: str) -> Declaration:
        span = self.schema.types[name].span
        column = Column(OBJECT, "str", span=span)
        return Declaration("base", direct_instances(name), (column,), None, span)

    def _type_rules(self, name: str) -> Iterator[Rule]:
        span, object_ = self.schema.types[name].span, Variable("O")
        for source in (direct_instances(name), *self.schema.direct_subtypes(name)):
            yield Rule(Atom(name, (object_,)), (Atom(source, (object_,)),), Origin(span))

    # --- functions

    def _stored_declaration(self, function: Function) -> Declaration:
        columns: list[Column] = []
        for parameter in function.parameters:
            name = _column_name(parameter.name or parameter.type, columns)
            is_key = not function.is_bag
            columns.append(
                Column(name, column_type(parameter.type), key=is_key, span=function.span)
            )
        name = _column_name(VALUE, columns)
        columns.append(Column(name, column_type(function.result), span=function.span))
        predicate = predicate_of(self.schema, function)
        return Declaration("base", predicate, tuple(columns), None, function.span)

    def _tabulated_declarations(self, function: Function) -> Iterator[Declaration]:
        if function.result not in LITERAL_TYPES:
            raise ProgramError([errors.FOREIGN_OBJECT.at(function.span, name=function.name)])
        kept = self._stored_declaration(function)
        assert kept.columns is not None
        arguments = tuple(replace(column, key=False) for column in kept.columns[:-1])
        yield kept
        yield replace(kept, predicate=undefined_name(kept.predicate), columns=arguments)

    def _tabulation_rules(self, rules: list[Rule]) -> tuple[list[Rule], list[ActiveRule]]:
        """Views and rules for the values of functions of Python that something wants."""
        found = [
            tabulation_rules(predicate, function)
            for predicate, function in self.tabulated()
            if is_wanted(predicate, rules)
        ]
        return [view for view, _ in found], [rule for _, rule in found]

    def is_inlined(self, function: Function) -> bool:
        """Whether a derived function has no relation, since arguments must come from its calls."""
        if function not in self._inlined:
            self._inlined[function] = False  # if it is recursive
            if isinstance(function.body, Select):
                rule = self._rules_of_function(function)[0]
                bound, arguments = bound_names(rule.body), rule.head.arguments[:-1]
                self._inlined[function] = any(
                    set(variable_names(each)) - bound for each in arguments
                )
        return self._inlined[function]

    def _rules_of_function(self, function: Function) -> tuple[Rule, ...]:
        assert isinstance(function.body, Select)
        predicate = predicate_of(self.schema, function)
        translation = self.schema_translation(predicate)
        body = Body(translation)
        arguments = body.declare(function.parameters)
        body.declare(function.body.variables)
        body.require(function.body.condition)
        value = body.result(only_value(function.body), function.result)
        head = Atom(predicate, (*arguments, value), function.span)
        return (Rule(head, body.complete(), Origin(function.span)), *translation.helpers)

    def _check_procedure(self, function: Function, procedure: Procedure) -> None:
        body = Body(self.schema_translation(function.name))
        for parameter in function.parameters:
            name = parameter.name or parameter.type
            body.bind(name, Typed(body.translation.fresh(name, parameter.span), parameter.type))
        check_steps(body, procedure)

    def _late_bound(self, members: tuple[Function, ...]) -> Iterator[Rule]:
        """One rule for each definition, for objects that no more specific one is defined for."""
        predicate = late_bound_predicate(self.schema, members)
        for function in members:
            if self.is_inlined(function) or is_tabulated(function):
                raise ProgramError([errors.LATE_BINDING.at(function.span, name=function.signature)])
            fresh = VariableNames().fresh
            variables = tuple(Variable(fresh(p.name or p.type)) for p in function.parameters)
            value = Variable(fresh(VALUE))
            own = Atom(predicate_of(self.schema, function), (*variables, value))
            special = (g for g in members if g is not function and self.schema.covers(function, g))
            exceptions = (self._literal_excluding(function, each, variables) for each in special)
            head = Atom(predicate, (*variables, value))
            yield Rule(head, (own, *dict.fromkeys(exceptions)), Origin(function.span))

    def _literal_excluding(
        self, general: Function, special: Function, variables: tuple[Variable, ...]
    ) -> Literal:
        """The arguments do not fit a more specific definition."""
        tests = tuple(
            Negation(Atom(below, (variable,)))
            for above, below, variable in zip(general.types, special.types, variables, strict=True)
            if above != below
        )
        return tests[0] if len(tests) == 1 else Disjunction(tuple((each,) for each in tests))

    # --- names

    def _check_names(self, declarations: list[Declaration], rules: list[Rule]) -> None:
        """No two things may have a relation of the same name."""
        owners: dict[str, Span | None] = {}
        for each in declarations:
            if each.kind == "base":
                self._check_name(owners, each.predicate, each.span)
        views: dict[str, Span | None] = {}
        for rule in rules:
            views.setdefault(rule.head.predicate, rule.span)
        for predicate, span in views.items():
            self._check_name(owners, predicate, span)

    def _check_name(self, owners: dict[str, Span | None], name: str, span: Span | None) -> None:
        if name in owners:
            assert span is not None
            raise name_taken(name, "a relation", span)
        owners[name] = span


def _column_name(wanted: str, columns: list[Column]) -> str:
    """
    >>> _column_name("item", [Column("item")])
    'item_2'
    """
    taken = {column.name for column in columns}
    name, number = wanted, 1
    while name in taken or name in LITERAL_TYPES:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _no_object(name: ObjectName) -> Typed:
    raise ProgramError([errors.OBJECT_IN_SCHEMA.at(name.span, name=name.name)])
