"""Conditions and values of AMOSQL as literals and terms of rules.

    quantity(i) < threshold(i)   →   quantity(I, Quantity), threshold(I, Threshold),
                                     Quantity < Threshold

A call becomes a literal, and its value a variable: where there is no value, the literal does not
hold, and so neither does the condition. `supplies(s) = i` needs no variable: `supplies(S, I)`. A
call of a stored function that occurs twice is one literal.

A variable's type becomes a literal, `item(I)`, only if no other literal implies it: the relations
of functions contain objects of the declared types only. So the condition of a rule has arcs from
the functions that it reads, and from nothing else.

What a rule cannot say inside its body becomes a view beside it: a negated condition of several
literals, and an aggregate over a `select`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltalog.diagnostics import amosql_catalogue as errors
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.amosql.conditions import (
    called_names,
    conjuncts_of,
    false_comparison,
    operands_of,
    true_comparison,
)
from deltalog.language.amosql.context import (
    Translation,
    Typed,
    only_value,
    problem_at,
    widened_term,
)
from deltalog.language.amosql.foreign import is_tabulated
from deltalog.language.amosql.helper_views import aggregate_value, negate_literals
from deltalog.language.amosql.resolution import Target, resolve_call
from deltalog.language.amosql.schema import LITERAL_TYPES, check_different_names, column_type
from deltalog.language.amosql.tree import (
    Arithmetic,
    Call,
    Compared,
    Connected,
    Expression,
    Name,
    ObjectName,
    Select,
    TypedName,
)
from deltalog.language.ast import (
    AGGREGATES,
    Atom,
    Comparison,
    Constant,
    Disjunction,
    Literal,
    Operation,
    Rule,
    Variable,
)
from deltalog.language.ast import Expression as Term
from deltalog.language.functions import FUNCTIONS, INFIX, find_signature, widened_type
from deltalog.source import Origin, Span

TYPE_NAMES = {column: name for name, column in LITERAL_TYPES.items()}
INLINED_MAX = 50
"""How deep calls of functions without a relation of their own may nest."""


class Body:
    """A conjunction that grows, with the variables that are declared in it."""

    def __init__(self, translation: Translation, outer: Body | None = None) -> None:
        self.translation = translation
        self.schema = translation.schema
        self.outer = outer
        self.literals: list[Literal] = []
        self.scope: dict[str, Typed] = {} if outer is None else dict(outer.scope)
        self.known: dict[Atom, Variable] = {} if outer is None else dict(outer.known)
        self.given: tuple[Literal, ...] = ()
        """Literals that hold wherever this body is read, and are no part of it."""
        self._declared: list[tuple[Variable, str]] = []
        self._guaranteed: dict[str, set[str]] = {}

    # --- variables

    def declare(self, variables: Sequence[TypedName]) -> tuple[Variable, ...]:
        """Variables with their types; what has no name gets one."""
        made = []
        check_different_names(variables)
        for each in variables:
            if not self.schema.is_type(each.type):
                known = [*self.schema.types, *LITERAL_TYPES]
                hint = did_you_mean(each.type, known)
                raise problem_at(catalogue.UNKNOWN_TYPE, each.span, name=each.type, hint=hint)
            variable = self.translation.fresh(each.name or each.type, each.span)
            if each.name is not None:
                self.scope[each.name] = Typed(variable, each.type)
            self._declared.append((variable, each.type))
            made.append(variable)
        return tuple(made)

    def bind(self, name: str, value: Typed) -> None:
        """Let a name stand for a value from outside, whose type is known to hold."""
        self.scope[name] = value
        if isinstance(value.term, Variable) and value.type is not None:
            self._guarantee_types(value.term, self.schema.supertypes(value.type))

    def complete(self) -> tuple[Literal, ...]:
        """All literals, with those for types that no other literal implies."""
        types = dict.fromkeys(
            Atom(type_, (variable,), variable.span)
            for variable, type_ in self._declared
            if type_ not in LITERAL_TYPES and type_ not in self._guaranteed.get(variable.name, ())
        )
        return (*types, *self.literals)

    def _guarantee_types(self, term: Term, types: Iterable[str]) -> None:
        if isinstance(term, Variable):
            self._guaranteed.setdefault(term.name, set()).update(types)

    # --- conditions

    def require(self, condition: Expression | None) -> None:
        """Add a condition; negations and aggregates last, when other literals bind variables."""
        for part in sorted(conjuncts_of(condition), key=self._calls_foreign):
            self._require_conjunct(part)

    def _calls_foreign(self, condition: Expression) -> bool:
        """Whether a call wants values, which come from the other parts of a condition."""
        called = (self.schema.resolvents(name) for name in called_names(condition))
        return any(is_tabulated(function) for group in called for function in group)

    def _require_conjunct(self, condition: Expression) -> None:
        match condition:
            case Connected(connective="and"):
                self.require(condition)
            case Connected(connective="or", operands=operands):
                self._require_one(operands, condition.span)
            case Connected(connective="not", operands=(operand,)):
                self._refuse_condition(operand, condition.span)
            case Compared():
                self._require_comparison(condition)
            case Constant(value=bool(value)):
                if not value:
                    self.literals.append(false_comparison(_span_of(condition)))
            case Call() | Name():
                self._require_truth(condition)
            case _:
                raise problem_at(errors.NOT_A_CONDITION, _span_of(condition))

    def _require_truth(self, condition: Call | Name) -> None:
        """A value that must be true."""
        true = Typed(Constant(True, "bool", condition.span), "boolean")
        value = self._require_equal(condition, true, condition.span)
        if value.type != "boolean":
            hint = "compare its value with something"
            raise problem_at(errors.NOT_A_CONDITION, condition.span, hint=hint)

    def _require_one(self, operands: tuple[Expression, ...], span: Span) -> None:
        branches = []
        for operand in operands_of("or", operands):
            branch = self.inner()
            branch.require(operand)
            branches.append(branch)
        literals = tuple(branch.complete() or (true_comparison(span),) for branch in branches)
        self.literals.append(Disjunction(literals, span))
        for name in set.intersection(*(set(branch._guaranteed) for branch in branches)):
            types = set.intersection(*(branch._guaranteed[name] for branch in branches))
            self._guaranteed.setdefault(name, set()).update(types)

    def _refuse_condition(self, condition: Expression, span: Span) -> None:
        """No values may make the condition true."""
        match condition:
            case Connected(connective="or", operands=operands):
                for operand in operands_of("or", operands):
                    self._refuse_condition(operand, span)
            case Connected(connective="not", operands=(operand,)):
                self.require(operand)
            case _:
                inner = self.inner()
                inner.require(condition)
                self.literals.append(negate_literals(self, inner.complete(), span))

    # --- inner bodies

    def inner(self) -> Body:
        """A body that sees the variables of this one, and whose literals are its own."""
        return Body(self.translation, self)

    def continued(self) -> Body:
        """A body that begins with all of this one, and goes on by itself."""
        made = Body(self.translation, self.outer)
        made.literals, made.scope, made.known = [*self.literals], {**self.scope}, {**self.known}
        made.given, made._declared = self.given, [*self._declared]
        made._guaranteed = {name: {*types} for name, types in self._guaranteed.items()}
        return made

    def visible(self) -> list[Literal]:
        """The literals of this body and of those that it is a part of."""
        return [*(self.outer.visible() if self.outer else ()), *self.literals]

    def enclosing(self) -> tuple[Literal, ...]:
        """The same, with all literals for types."""
        outside = self.outer.enclosing() if self.outer else self.given
        return (*outside, *self.complete())

    def declared_types(self) -> dict[str, str]:
        """The types of the variables that are declared in this body or around it."""
        found = self.outer.declared_types() if self.outer else {}
        found |= {variable.name: type_ for variable, type_ in self._declared}
        for each in self.scope.values():
            if isinstance(each.term, Variable) and each.type is not None:
                found[each.term.name] = each.type
        return found

    # --- values

    def value(self, expression: Expression) -> Typed:
        """The term for a value; literals that it needs are added."""
        match expression:
            case Constant(type=type_):
                return Typed(expression, TYPE_NAMES[type_])
            case Name():
                return self._value_of_name(expression)
            case ObjectName():
                return self.translation.find_object(expression)
            case Arithmetic(operator=operator, operands=operands, span=span):
                return self._apply_function(operator, [self.value(each) for each in operands], span)
            case Call(function=function) if function in AGGREGATES:
                return aggregate_value(self, expression)
            case Call(function=function) if function in FUNCTIONS and function not in INFIX:
                given = [self.value(each) for each in expression.arguments]
                return self._apply_function(function, given, expression.span)
            case Call():
                return self._value_of_call(expression, *self._resolve_call(expression), None)
            case Compared() | Connected():
                self.require(expression)
                return Typed(Constant(True, "bool", expression.span), "boolean")
            case Select():
                hint = "aggregate it, as in `count(select …)`"
                raise problem_at(errors.NOT_A_VALUE, expression.span, hint=hint)

    def result(self, expression: Expression, type_: str) -> Term:
        """The value of an expression in a column for values of a type, which it must have."""
        found = self.value(expression)
        self.check_type(found, type_, _span_of(expression))
        return widened_term(found, column_type(type_))

    def check_type(self, value: Typed, type_: str, span: Span) -> None:
        if value.type is None and type_ not in LITERAL_TYPES:
            return
        given = value.type or "object"
        is_fit = self.schema.is_subtype(given, type_) or (
            {given, type_} <= LITERAL_TYPES.keys()
            and widened_type(column_type(given), column_type(type_)) == column_type(type_)
        )
        if not is_fit:
            raise problem_at(errors.RESULT_MISFIT, span, given=given, type=type_)

    def _value_of_name(self, name: Name) -> Typed:
        if name.name not in self.scope:
            hint = did_you_mean(name.name, self.scope) or "variables are declared by `for each`"
            raise problem_at(errors.UNKNOWN_VARIABLE, name.span, name=name.name, hint=hint)
        found = self.scope[name.name]
        if isinstance(found.term, Variable):
            return Typed(Variable(found.term.name, name.span), found.type)
        return found

    def _apply_function(self, function: str, operands: list[Typed], span: Span) -> Typed:
        types = tuple(column_type(each.type or "object") for each in operands)
        has_objects = any(each.type not in LITERAL_TYPES for each in operands)
        found = None if has_objects else find_signature(function, types)
        if found is None:
            shown = " and ".join(each.type or "object" for each in operands)
            raise problem_at(catalogue.NO_SIGNATURE, span, function=function, operands=shown)
        terms = tuple(each.term for each in operands)
        return Typed(Operation(function, terms, None, span), TYPE_NAMES[found.result])

    # --- calls

    def _resolve_call(self, call: Call) -> tuple[list[Typed], Target]:
        given = [self.value(each) for each in call.arguments]
        return given, resolve_call(self.schema, call, [each.type for each in given])

    def _value_of_call(
        self, call: Call, given: list[Typed], target: Target, result: Term | None
    ) -> Typed:
        """The literal of a call; its value is `result`, or else a variable."""
        if self._is_inlined(target):
            return self._inline_call(call, target, given)
        terms = tuple(
            widened_term(each, column) for each, column in zip(given, target.columns, strict=True)
        )
        key = Atom(target.predicate, terms)
        if result is None and target.is_single and key in self.known:
            return Typed(self.known[key], target.result)
        if target.function is not None and is_tabulated(target.function):
            self._request_values(target.predicate, terms, call.span)
        value = result
        if value is None:
            value = self.known[key] = self.translation.fresh(call.function, call.span)
        self.literals.append(Atom(target.predicate, (*terms, value), call.span))
        self._guarantee_arguments((*terms, value), target)
        return Typed(value, target.result)

    def _request_values(self, predicate: str, terms: tuple[Term, ...], span: Span) -> None:
        """Let the values of a foreign function be computed for what is bound so far."""
        head = Atom(self.translation.wanted_name(predicate), terms, span)
        body = self.enclosing() or (true_comparison(span),)
        self.translation.helpers.append(Rule(head, body, Origin(span)))

    def event(self, call: Call) -> Atom:
        """The fact that an event of a call is about, whatever its value; it is no literal."""
        given, target = self._resolve_call(call)
        if self._is_inlined(target):
            raise problem_at(errors.NOT_STORED, call.span, name=call.function, kind="computed")
        value = Variable("_")
        self._guarantee_arguments((*(each.term for each in given), value), target)
        return Atom(target.predicate, (*(each.term for each in given), value), call.span)

    def _is_inlined(self, target: Target) -> bool:
        return target.function is not None and self.translation.is_inlined(target.function)

    def _guarantee_arguments(self, terms: tuple[Term, ...], target: Target) -> None:
        for term, types in zip(terms, target.guaranteed, strict=True):
            self._guarantee_types(term, types)

    def _inline_call(self, call: Call, target: Target, given: list[Typed]) -> Typed:
        """The value of a function that has no relation: its definition, with these arguments."""
        function = target.function
        assert function is not None
        assert isinstance(function.body, Select)
        if self.translation.depth > INLINED_MAX:
            raise problem_at(errors.RECURSIVE_COMPUTATION, call.span, name=call.function)
        outside, self.scope = self.scope, {}
        self.translation.depth += 1
        try:
            for parameter, value in zip(function.parameters, given, strict=True):
                term = widened_term(value, column_type(parameter.type))
                if parameter.name is not None:
                    self.scope[parameter.name] = Typed(term, parameter.type)
                if parameter.type not in LITERAL_TYPES and isinstance(term, Variable):
                    self._declared.append((term, parameter.type))
            self.declare(function.body.variables)
            self.require(function.body.condition)
            found = self.value(only_value(function.body))
        finally:
            self.translation.depth -= 1
            self.scope = outside
        return Typed(widened_term(found, column_type(function.result)), function.result)

    # --- comparisons

    def _require_comparison(self, condition: Compared) -> None:
        left, right = condition.left, condition.right
        if condition.operator == "=" and self._is_relation(right) and not self._is_relation(left):
            left, right = right, left
        if condition.operator == "=" and self._is_relation(left):
            value = self.value(right)
            found = self._require_equal(left, value, condition.span)
        else:
            found, value = self.value(left), self.value(right)
            self.literals.append(
                Comparison(condition.operator, found.term, value.term, None, condition.span)
            )
        self._check_comparable(condition, found, value)

    def _require_equal(self, expression: Expression, value: Typed, span: Span) -> Typed:
        """Make an expression equal to a value: a call has it as its value, where that fits."""
        found = None
        if isinstance(expression, Call) and self._is_relation(expression):
            given, target = self._resolve_call(expression)
            is_plain = isinstance(value.term, Variable | Constant)
            is_same = column_type(target.result) == column_type(value.type or "object")
            if is_plain and is_same and not self._is_inlined(target):
                return self._value_of_call(expression, given, target, value.term)
            found = self._value_of_call(expression, given, target, None)
        found = found or self.value(expression)
        if found.term != value.term:
            self.literals.append(Comparison("=", found.term, value.term, None, span))
        return found

    def _is_relation(self, expression: Expression) -> bool:
        return isinstance(expression, Call) and expression.function in self.schema.functions

    def _check_comparable(self, condition: Compared, left: Typed, right: Typed) -> None:
        if (left.type in LITERAL_TYPES) != (right.type in LITERAL_TYPES):
            types = {"left": left.type or "object", "right": right.type or "object"}
            operator = condition.operator
            raise problem_at(catalogue.NOT_COMPARABLE, condition.span, operator=operator, **types)


def _span_of(expression: Expression) -> Span:
    assert expression.span is not None
    return expression.span
