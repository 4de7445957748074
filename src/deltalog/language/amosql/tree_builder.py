"""Grammar callbacks: parse events to nodes of the syntax tree (`tree.py`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Transformer

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.tree import (
    Activation,
    Arithmetic,
    Assignment,
    Boundary,
    Call,
    ChangeTypes,
    Compared,
    Connected,
    CreateFunction,
    CreateInstances,
    CreateRule,
    CreateType,
    DeleteObjects,
    Expression,
    Foreign,
    Invocation,
    Name,
    ObjectName,
    Procedure,
    RuleEvent,
    Select,
    Statement,
    Step,
    TypedName,
    Update,
)
from deltalog.language.ast import Constant
from deltalog.language.narrowing import PlacedToken, syntax_problem, unescape_string
from deltalog.language.tree_builder import LITERAL_HINTS
from deltalog.language.values import VALUE_ERRORS, canonical_value, parse_value
from deltalog.source import Span

EVENTS = ("insert", "delete", "update")


def fold_case(token: PlacedToken) -> str:
    """A name as it counts: letters do not differ by case, and what is generated is reserved."""
    name = token.lower()
    if "__" in name or name.startswith("_"):
        raise syntax_problem(catalogue.RESERVED_NAME, token.span, name=str(token))
    return name


def _span_of(node: Any) -> Span:
    span = node.span
    assert isinstance(span, Span)
    return span


def _span_around(children: list[Any]) -> Span:
    """From the first to the last child that has a place."""
    first, last = (_first_span(children), _first_span(children[::-1]))
    return first.to(last)


def _first_span(children: list[Any]) -> Span:
    for child in children:
        if isinstance(child, tuple | list):
            if child:
                return _span_of(child[-1])
        elif child is not None:
            return _span_of(child)
    raise AssertionError("a statement begins with a keyword")


class TreeBuilder(Transformer[Any, Any]):
    """Called by lark as it reduces, bottom-up."""

    def statement(self, children: list[Any]) -> Statement:
        return children[0]  # type: ignore[no-any-return]

    # --- schema

    def create_type(self, children: list[Any]) -> CreateType:
        create, _, name, _, supertypes = children
        supers = tuple(fold_case(each) for each in supertypes or ())
        return CreateType(fold_case(name), supers, create.span.to(name.span))

    def create_function(self, children: list[Any]) -> CreateFunction:
        create, _, name, _, parameters, _, _, (is_bag, result), _, body = children
        span = create.span.to(name.span)
        return CreateFunction(fold_case(name), parameters or (), result, is_bag, body, span)

    def create_rule(self, children: list[Any]) -> CreateRule:
        create, _, name, _, parameters, _, _, _, _, variables, event, _, condition, _, action = (
            children
        )
        span = create.span.to(name.span)
        return CreateRule(
            fold_case(name), parameters or (), variables or (), event, condition, action, span
        )

    def function_body(self, children: list[Any]) -> Select | Procedure | Foreign:
        match children[0]:
            case Procedure(steps=(Select() as only,)):
                return only
            case body:
                return body  # type: ignore[no-any-return]

    def foreign(self, children: list[Any]) -> Foreign:
        word, text, deterministic = children
        name = None if text is None else unescape_string(text).rpartition(":")[2]
        if name is not None and not (name.isidentifier() and name[0].islower()):
            raise syntax_problem(errors.BAD_FOREIGN, text.span, text=str(text))
        return Foreign(name, deterministic is not None, word.span)

    def single(self, children: list[Any]) -> Procedure:
        return Procedure(tuple(children))

    def block(self, children: list[Any]) -> Procedure:
        _, steps, _ = children
        return Procedure(steps)

    def actions(self, children: list[Any]) -> tuple[Step, ...]:
        return tuple(c for c in children if c is not None and not isinstance(c, PlacedToken))

    def event(self, children: list[Any]) -> RuleEvent:
        word, kind, call = children
        if fold_case(kind) not in EVENTS:
            expected, hint = "`insert`, `delete` or `update`", did_you_mean(kind.lower(), EVENTS)
            raise syntax_problem(
                catalogue.UNEXPECTED_TOKEN,
                kind.span,
                expected=expected,
                found=f"`{kind}`",
                hint=hint,
            )
        known: Any = fold_case(kind)
        return RuleEvent(known, call, word.span.to(call.span))

    def names(self, children: list[Any]) -> tuple[PlacedToken, ...]:
        return tuple(children)

    def objects(self, children: list[Any]) -> tuple[ObjectName, ...]:
        return tuple(ObjectName(token[1:].lower(), token.span) for token in children)

    def parameters(self, children: list[Any]) -> tuple[TypedName, ...]:
        return tuple(children)

    def parameter(self, children: list[Any]) -> TypedName:
        type_, name = children
        return TypedName(fold_case(type_), None if name is None else fold_case(name), type_.span)

    def variables(self, children: list[Any]) -> tuple[TypedName, ...]:
        return tuple(children)

    def variable(self, children: list[Any]) -> TypedName:
        type_, name = children
        return TypedName(fold_case(type_), fold_case(name), type_.span.to(name.span))

    def result(self, children: list[Any]) -> tuple[bool, TypedName]:
        bag, _, type_, name = children
        known = None if name is None else fold_case(name)
        return bag is not None, TypedName(fold_case(type_), known, type_.span)

    # --- objects, rules and transactions

    def create_instances(self, children: list[Any]) -> CreateInstances:
        create, type_, _, objects = children
        return CreateInstances(fold_case(type_), objects, create.span.to(type_.span))

    def add_type(self, children: list[Any]) -> ChangeTypes:
        word, _, type_, _, objects = children
        return ChangeTypes("add", fold_case(type_), objects, word.span.to(type_.span))

    def remove_type(self, children: list[Any]) -> ChangeTypes:
        word, _, type_, _, objects = children
        return ChangeTypes("remove", fold_case(type_), objects, word.span.to(type_.span))

    def delete(self, children: list[Any]) -> DeleteObjects:
        word, objects = children
        return DeleteObjects(objects, word.span.to(objects[-1].span))

    def activation(self, children: list[Any]) -> Activation:
        word, name, _, arguments, closing = children
        verb: Any = word.lower()
        return Activation(verb, fold_case(name), arguments or (), word.span.to(closing.span))

    def transaction(self, children: list[Any]) -> Boundary:
        (word,) = children
        verb: Any = word.lower()
        return Boundary(verb, word.span)

    # --- steps

    def update(self, children: list[Any]) -> Update:
        word, call, _, value, _, _, variables, _, condition = children
        verb: Any = word.lower()
        if value is None and verb != "remove":
            raise syntax_problem(
                catalogue.UNEXPECTED_TOKEN, call.span, expected="`=` and a value", found="the end"
            )
        return Update(verb, call, value, variables or (), condition, _span_around(children))

    def assignment(self, children: list[Any]) -> Assignment:
        word, name, _, value = children
        return Assignment(_object_name(name), value, word.span.to(_span_of(value)))

    def invocation(self, children: list[Any]) -> Invocation:
        (call,) = children
        return Invocation(call, call.span)

    def select(self, children: list[Any]) -> Select:
        word, values, _, into, variables, _, condition = children
        return Select(
            values, variables or (), condition, _span_around([word, *children]), into or ()
        )

    def sources(self, children: list[Any]) -> tuple[TypedName, ...]:
        return children[-1]  # type: ignore[no-any-return]

    # --- expressions

    def values(self, children: list[Any]) -> tuple[Expression, ...]:
        return tuple(children)

    def arguments(self, children: list[Any]) -> tuple[Expression, ...]:
        return tuple(children)

    def either(self, children: list[Any]) -> Connected:
        left, _, right = children
        return Connected("or", (left, right), _span_of(left).to(_span_of(right)))

    def both(self, children: list[Any]) -> Connected:
        left, _, right = children
        return Connected("and", (left, right), _span_of(left).to(_span_of(right)))

    def negation(self, children: list[Any]) -> Connected:
        word, operand = children
        return Connected("not", (operand,), word.span.to(_span_of(operand)))

    def comparison(self, children: list[Any]) -> Compared:
        left, operator, right = children
        sign = "!=" if operator == "<>" else str(operator)
        return Compared(sign, left, right, _span_of(left).to(_span_of(right)))

    def infix(self, children: list[Any]) -> Arithmetic:
        left, operator, right = children
        span = _span_of(left).to(_span_of(right))
        return Arithmetic(operator.lower(), (left, right), span)

    def negative(self, children: list[Any]) -> Expression:
        minus, node = children
        span = minus.span.to(_span_of(node))
        if isinstance(node, Constant) and node.type in ("int", "float"):
            return replace(node, value=-node.value, span=span)  # type: ignore[operator]
        return Arithmetic("-", (node,), span)

    def parenthesis(self, children: list[Any]) -> Expression:
        _, node, _ = children
        return node  # type: ignore[no-any-return]

    def integer(self, children: list[Any]) -> Constant:
        (token,) = children
        return _number_constant(token, int(token) if len(token) <= 30 else 10**30, "int")

    def floating(self, children: list[Any]) -> Constant:
        (token,) = children
        return _number_constant(token, float(token), "float")

    def text(self, children: list[Any]) -> Constant:
        (token,) = children
        return Constant(unescape_string(token), "str", token.span)

    def typed(self, children: list[Any]) -> Constant:
        name, token = children
        type_, span = name.lower(), name.span.to(token.span)
        if type_ not in LITERAL_HINTS:
            raise syntax_problem(
                catalogue.UNEXPECTED_TOKEN,
                token.span,
                expected="`(`",
                found=f"`{token}`",
                hint=did_you_mean(type_, LITERAL_HINTS),
            )
        text = unescape_string(token)
        try:
            return Constant(parse_value(text, type_), type_, span)
        except VALUE_ERRORS:
            raise syntax_problem(
                catalogue.BAD_LITERAL, span, text=text, type=type_, hint=LITERAL_HINTS[type_]
            ) from None

    def truth(self, children: list[Any]) -> Constant:
        (token,) = children
        return Constant(token.lower() == "true", "bool", token.span)

    def name(self, children: list[Any]) -> Name:
        (token,) = children
        return Name(fold_case(token), token.span)

    def object(self, children: list[Any]) -> ObjectName:
        (token,) = children
        return _object_name(token)

    def call(self, children: list[Any]) -> Call:
        name, _, arguments, closing = children
        return Call(fold_case(name), arguments or (), name.span.to(closing.span), name.span)


def _object_name(token: PlacedToken) -> ObjectName:
    return ObjectName(token[1:].lower(), token.span)


def _number_constant(token: PlacedToken, value: int | float, type_: str) -> Constant:
    try:
        return Constant(canonical_value(value, type_), type_, token.span)
    except VALUE_ERRORS:
        raise syntax_problem(catalogue.NUMBER_OUT_OF_RANGE, token.span, number=token[:30]) from None
