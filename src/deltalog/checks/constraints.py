"""Constraints: each has one name, says something that can be checked, and can word its message."""

from __future__ import annotations

import string
from collections.abc import Collection, Iterator

from deltalog.analysis.columns import Relations
from deltalog.checks.declarations import check_atoms
from deltalog.checks.types import check_types
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.language.ast import Constant, Constraint, Program
from deltalog.language.walk import variable_names
from deltalog.source import Span

_DENIAL = "as in `deny negative(I) :- quantity(I, Q), Q < 0.`"
_REQUIREMENT = "as in `require ic(2).` or `require ic :- not path(3, 3).`"


def check_constraints(program: Program, relations: Relations) -> Iterator[Diagnostic]:
    first: dict[object, Constraint] = {}
    for constraint in program.constraints:
        earlier = first.setdefault(_constraint_identity(constraint), constraint)
        if earlier is not constraint:
            span = earlier.head.span
            labels = () if span is None else (Label(span, "the other one"),)
            yield catalogue.CONSTRAINT_TWICE.at(constraint.head.span, *labels, name=constraint.name)
        if constraint.kind == "deny":
            yield from _check_denial(constraint)
        else:
            yield from _check_requirement(constraint, relations)
        where = f"`{constraint.name}`"
        yield from check_message(
            constraint.message, variable_names(constraint.head), where, constraint.head.span
        )


def _constraint_identity(constraint: Constraint) -> object:
    """Denials are distinguished by their views, requirements by their facts."""
    return constraint.name if constraint.kind == "deny" else constraint.head


def _check_denial(constraint: Constraint) -> Iterator[Diagnostic]:
    if not constraint.body:
        reason = f"the denial `{constraint.name}` has no body"
        yield catalogue.BAD_CONSTRAINT.at(constraint.head.span, reason=reason, form=_DENIAL)


def _check_requirement(constraint: Constraint, relations: Relations) -> Iterator[Diagnostic]:
    head = constraint.head
    if not all(isinstance(term, Constant) for term in head.arguments):
        reason = f"the required fact `{constraint.name}` has arguments that are not constants"
        yield catalogue.BAD_CONSTRAINT.at(head.span, reason=reason, form=_REQUIREMENT)
    if constraint.mode == "view":
        reason = "a required fact cannot be a `view`: there is nothing to list"
        yield catalogue.BAD_CONSTRAINT.at(head.span, reason=reason, form=_REQUIREMENT)
    if not constraint.body:
        yield from check_atoms((head,), relations)
        if head.predicate in relations:
            yield from check_types(Program(facts=(head,)), relations)


def check_message(
    message: str | None, known: Collection[str], where: str, span: Span | None
) -> Iterator[Diagnostic]:
    """The placeholders of a template are among the names that have a value."""
    if message is None:
        return
    try:
        pieces = [piece for piece in string.Formatter().parse(message) if piece[1] is not None]
        found = [f"{name}{extra or ''}{sort or ''}" for _, name, extra, sort in pieces]
    except ValueError:
        found = ["{"]
    for name in found:
        if name not in known:
            shown = "{" if name == "{" else f"{{{name}}}"
            note = "a message has values in braces, as in `{X}`; `{{` and `}}` are plain braces"
            yield catalogue.UNKNOWN_PLACEHOLDER.at(span, placeholder=shown, where=where, note=note)
