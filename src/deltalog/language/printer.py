"""Rule tree to text.

    Rule(Atom("far", (Variable("X"),)), (Atom("edge", (Variable("X"), Variable("_1"))), …))
    far(X) :- edge(X, _), X - 1 > 3.

Reading the text again gives an equal tree: parentheses stand exactly where precedence and
association from the left would otherwise regroup an expression, and `_` stands only for a wildcard
that occurs nowhere else. What is printed by itself (a literal, a term) counts as the whole of its
rule. The notes that type inference leaves on operations and comparisons are not part of the text.

Rules made by rewrites print too, although the parser refuses their reserved names. One tree has no
text of its own: a rule with a ground head and no body prints as the fact it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from deltalog.language.ast import (
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
    DisjunctiveRule,
    Expression,
    Literal,
    Negation,
    Operation,
    Program,
    Query,
    Rule,
    Term,
    UpdateChoice,
    Variable,
)
from deltalog.language.functions import INFIX
from deltalog.language.values import print_value
from deltalog.language.walk import (
    substitute_atom,
    substitute_literal,
    substitute_term,
    variables_of,
)

COLUMNS_MAX = 96
INDENT = "    "

_SUM, _PRODUCT, _UNARY, _PRIMARY = range(4)
_PRECEDENCE = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "mod": _PRODUCT}
assert set(_PRECEDENCE) == set(INFIX)


def print_program(program: Program) -> str:
    """Declarations, rules, constraints, active rules, facts and queries, in groups."""
    groups = (
        [print_declaration(declaration) for declaration in program.declarations],
        [print_rule(rule) for rule in program.rules],
        [print_disjunctive_rule(rule) for rule in program.disjunctive_rules],
        [print_constraint(constraint) for constraint in program.constraints],
        [print_active_rule(rule) for rule in program.active_rules],
        [print_update_choice(choice) for choice in program.update_choices],
        [f"{print_atom(fact)}." for fact in program.facts],
        [print_query(query) for query in program.queries],
    )
    return "\n".join("\n".join(group) + "\n" for group in groups if group)


def print_declaration(declaration: Declaration) -> str:
    words = [declaration.storage, declaration.kind, declaration.predicate]
    columns = ""
    if declaration.columns is not None:
        columns = f"({', '.join(_print_column(column) for column in declaration.columns)})"
    return " ".join(word for word in words if word) + columns + "."


def print_rule(rule: Rule) -> str:
    """
    >>> print_rule(Rule(Atom("lonely"), (Negation(Atom("edge", (Variable("_1"),))),)))
    'lonely :- not edge(_).'
    """
    anonymous = _anonymize_wildcards((rule.head, *rule.body))
    head = _print_atom(substitute_atom(rule.head, anonymous))
    if not rule.body:
        return f"{head}."
    body = [substitute_literal(literal, anonymous) for literal in rule.body]
    return _print_statement(f"{head} :-", body, _message_pieces(rule.message))


def _message_pieces(message: str | None) -> list[str]:
    return [] if message is None else [f"say {print_value(message, 'str')}"]


def print_disjunctive_rule(rule: DisjunctiveRule) -> str:
    """
    >>> print_disjunctive_rule(DisjunctiveRule((Atom("a"), Atom("b")), (Atom("c"),)))
    'a ; b :- c.'
    """
    anonymous = _anonymize_wildcards((*rule.heads, *rule.body))
    heads = (
        " ; ".join(_print_atom(substitute_atom(head, anonymous)) for head in rule.heads) or "false"
    )
    if not rule.body:
        return f"{heads}."
    return _print_statement(
        f"{heads} :-", [substitute_literal(literal, anonymous) for literal in rule.body]
    )


def print_query(query: Query) -> str:
    anonymous = _anonymize_wildcards(query.body)
    return _print_statement("?", [substitute_literal(literal, anonymous) for literal in query.body])


def print_constraint(constraint: Constraint) -> str:
    """
    >>> print_constraint(Constraint("require", Atom("ic", (Constant(2, "int"),)), mode="warn"))
    'require warn ic(2).'
    """
    anonymous = _anonymize_wildcards((constraint.head, *constraint.body))
    words = [constraint.kind, "" if constraint.mode == "enforce" else constraint.mode]
    words += ["immediate" if constraint.is_immediate else ""]
    head = _print_atom(substitute_atom(constraint.head, anonymous))
    opening = " ".join([word for word in words if word] + [head])
    ending = _message_pieces(constraint.message)
    if not constraint.body:
        return " ".join((opening, *ending)) + "."
    body = [substitute_literal(literal, anonymous) for literal in constraint.body]
    return _print_statement(f"{opening} :-", body, ending)


def print_active_rule(rule: ActiveRule) -> str:
    """The header in a line, then one for the condition and one for each list of actions."""
    event = () if rule.event is None else (rule.event.atom,)
    anonymous = _anonymize_wildcards((*event, *rule.condition))
    header = [f"rule {rule.name}" + (f"({_parameter_list(rule)})" if rule.parameters else "")]
    header += [f"for {_variable_list(rule.instance)}"] if rule.instance else []
    header += [f"priority {rule.priority}"] if rule.priority else []
    header += ["immediate"] if rule.is_immediate else []
    header += ["nervous"] if rule.is_nervous else []
    if rule.event is not None:
        atom = substitute_atom(rule.event.atom, anonymous)
        header.append(f"on {rule.event.kind} {_print_atom(atom)}")
    lines = [" ".join(header)]
    if rule.condition:
        body = [substitute_literal(literal, anonymous) for literal in rule.condition]
        when = _join_pieces([_literal_pieces(literal) for literal in body], ",")
        lines += _fill_lines([f"when {when[0]}", *when[1:]])
    for word, actions in (("do", rule.actions), ("else", rule.otherwise)):
        if actions:
            read = (*event, *rule.condition)
            pieces = _join_pieces([_action_pieces(action, read) for action in actions], ",")
            lines += _fill_lines([f"{word} {pieces[0]}", *pieces[1:]])
    return "\n".join(lines) + "."


def print_update_choice(choice: UpdateChoice) -> str:
    """
    >>> x = (Variable("X"),)
    >>> print_update_choice(UpdateChoice("insert", Atom("p", x), (Action("insert", Atom("q", x)),)))
    'to insert p(X) do insert q(X).'
    """
    pieces = _join_pieces([_action_pieces(action, ()) for action in choice.actions], ",")
    opening = f"to {choice.kind} {_print_atom(choice.head)} do"
    line = " ".join((opening, *pieces)) + "."
    if len(line) <= COLUMNS_MAX:
        return line
    return "\n".join((opening, *_fill_lines(pieces))) + "."


def _parameter_list(rule: ActiveRule) -> str:
    types = rule.parameter_types or (None,) * len(rule.parameters)
    pairs = zip(rule.parameters, types, strict=True)
    return ", ".join(f"{each.name}: {type_}" if type_ else each.name for each, type_ in pairs)


def _variable_list(variables: Iterable[Variable]) -> str:
    return ", ".join(variable.name for variable in variables)


def print_action(action: Action, before: tuple[Literal, ...] = ()) -> str:
    """An action as it stands in a rule whose event and condition are `before`."""
    return " ".join(_action_pieces(action, before))


def _action_pieces(action: Action, before: tuple[Literal, ...]) -> list[str]:
    """An action in pieces; `before` are the literals whose variables it shares."""
    if action.atom is None:
        return [f"{action.verb} {print_value(action.message, 'str')}"]
    change = f"{action.verb} {_print_atom(action.atom)}"
    if not action.where:
        return [change]
    anonymous = _anonymize_wildcards((*before, *action.where))
    first, *rest = _join_pieces(
        [_literal_pieces(substitute_literal(each, anonymous)) for each in action.where], ","
    )
    return [change, f"where {first}", *rest]


def print_literal(literal: Literal) -> str:
    return " ".join(_literal_pieces(substitute_literal(literal, _anonymize_wildcards((literal,)))))


def print_atom(atom: Atom) -> str:
    return _print_atom(substitute_atom(atom, _anonymize_wildcards((atom,))))


def print_term(term: Term) -> str:
    """
    >>> x = Variable("X")
    >>> print_term(Operation("-", (x, Operation("-", (x, Constant(-3, "int"))))))
    'X - (X - -3)'
    """
    return _print_term(substitute_term(term, _anonymize_wildcards((term,))))


# --- wildcards ----------------------------------------------------------------------------------


def _anonymize_wildcards(nodes: Iterable[Term | Literal]) -> Callable[[Variable], Variable]:
    """Turns a wildcard that occurs once in `nodes` back into `_`."""
    occurrences = Counter(variable.name for node in nodes for variable in variables_of(node))

    def change(variable: Variable) -> Variable:
        single = variable.is_wildcard and occurrences[variable.name] == 1
        return Variable("_") if single else variable

    return change


# --- statements and their lines -----------------------------------------------------------------


def _print_column(column: Column) -> str:
    if column.type is None:
        return column.name
    nullable = "?" if column.nullable else ""
    return f"{column.name}: {column.type}{nullable}{' key' if column.key else ''}"


def _print_statement(opening: str, body: Iterable[Literal], ending: Iterable[str] = ()) -> str:
    """One line if it fits, else the opening and below it the body in as few lines as possible."""
    pieces = [*_join_pieces([_literal_pieces(literal) for literal in body], ","), *ending]
    pieces[-1] += "."
    line = " ".join((opening, *pieces))
    return line if len(line) <= COLUMNS_MAX else "\n".join((opening, *_fill_lines(pieces)))


def _fill_lines(pieces: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + 1 + len(piece) <= COLUMNS_MAX:
            lines[-1] += f" {piece}"
        else:
            lines.append(f"{INDENT}{piece}")
    return lines


def _join_pieces(groups: list[list[str]], mark: str) -> list[str]:
    """The pieces of all groups, `mark` at the end of every group but the last."""
    marked = [[*group[:-1], group[-1] + mark] for group in groups[:-1]]
    return [piece for group in (*marked, *groups[-1:]) for piece in group]


def _literal_pieces(literal: Literal) -> list[str]:
    """The literal in pieces between which a line may break; joined by blanks they are its text."""
    match literal:
        case Atom():
            return [_print_atom(literal)]
        case Negation(atom=atom):
            return [f"not {_print_atom(atom)}"]
        case Comparison(operator=operator, left=left, right=right):
            return [f"{_print_term(left)} {operator} {_print_term(right)}"]
        case Disjunction(branches=branches):
            inner = [
                _join_pieces([_literal_pieces(part) for part in branch], ",") for branch in branches
            ]
            first, *rest = _join_pieces(inner, " ;")
            return _close_parenthesis([f"({first}", *rest])


def _close_parenthesis(pieces: list[str]) -> list[str]:
    return [*pieces[:-1], f"{pieces[-1]})"]


# --- atoms and terms ----------------------------------------------------------------------------


def _print_atom(atom: Atom) -> str:
    return _print_call(atom.predicate, atom.arguments) if atom.arguments else atom.predicate


def _print_call(name: str, arguments: Iterable[Term]) -> str:
    return f"{name}({', '.join(_print_term(argument) for argument in arguments)})"


def _print_term(term: Term) -> str:
    match term:
        case Variable(name=name):
            return name
        case Constant(value=value, type=type_):
            return print_value(value, type_)
        case Aggregate(function=function, argument=argument):
            return _print_call(function, () if argument is None else (argument,))
        case Operation(function="-", arguments=(operand,)):
            return f"-{_print_operand(operand, _is_loose_under_minus(operand))}"
        case Operation(function=function, arguments=(left, right)) if function in _PRECEDENCE:
            level = _PRECEDENCE[function]
            first = _print_operand(left, _precedence_of(left) < level)
            return f"{first} {function} {_print_operand(right, _precedence_of(right) <= level)}"
        case Operation(function=function, arguments=arguments):
            return _print_call(function, arguments)


def _print_operand(operand: Expression, in_parentheses: bool) -> str:
    return f"({_print_term(operand)})" if in_parentheses else _print_term(operand)


def _is_loose_under_minus(operand: Expression) -> bool:
    """A number too: the parser takes `-3` for one constant and `-(3)` for an operation on one."""
    is_number = isinstance(operand, Constant) and operand.type in ("int", "float")
    return is_number or _precedence_of(operand) < _PRIMARY


def _precedence_of(expression: Expression) -> int:
    match expression:
        case Operation(function="-", arguments=(_,)):
            return _UNARY
        case Operation(function=function, arguments=(_, _)):
            return _PRECEDENCE.get(function, _PRIMARY)
        case _:
            return _PRIMARY
