"""Default choices translate a request for a view into changes of base facts, by its values."""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.analysis.columns import Relations
from deltalog.checks.declarations import check_atoms
from deltalog.checks.types import check_body_types
from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.language.ast import Action, Atom, Constant, Program, UpdateChoice, Variable
from deltalog.language.walk import variable_names


def check_update_choices(program: Program, known: Relations) -> Iterator[Diagnostic]:
    seen: dict[tuple[str, str], UpdateChoice] = {}
    for choice in program.update_choices:
        yield from _check_choice(choice, known)
        key = choice.kind, choice.head.predicate
        first = seen.setdefault(key, choice)
        if first is not choice and first.head.span is not None:
            other = Label(first.head.span, "the first one")
            kind, name = key
            yield view_catalogue.CHOICE_TWICE.at(choice.head.span, other, kind=kind, name=name)


def _check_choice(choice: UpdateChoice, known: Relations) -> Iterator[Diagnostic]:
    all_atoms = (choice.head, *(a.atom for a in choice.actions if a.atom is not None))
    problems = list(check_atoms(all_atoms, known))
    yield from problems
    if problems:
        return
    head = choice.head
    variables = [term for term in head.arguments if isinstance(term, Variable)]
    is_plain = len(variables) == len(head.arguments) and not any(v.name == "_" for v in variables)
    if known[head.predicate].kind != "view":
        yield _bad_choice(head, f"`{head.predicate}` is a base relation, which is changed directly")
    elif not is_plain or len(set(variable_names(head))) < len(variables):
        yield _bad_choice(head, f"the arguments of `{head.predicate}` are not different variables")
    for action in choice.actions:
        yield from _check_action(action, set(variable_names(head)), known)
    yield from check_body_types(all_atoms, known)


def _check_action(action: Action, bound: set[str], known: Relations) -> Iterator[Diagnostic]:
    if action.atom is None or action.verb not in ("insert", "delete") or action.where:
        reason = f"`{action.verb}` is not an action of a choice"
        if action.where:
            reason = "an action of a choice has no `where`"
        yield view_catalogue.BAD_CHOICE.at(action.span, reason=reason)
        return
    atom = action.atom
    if known[atom.predicate].kind != "base":
        yield _bad_choice(atom, f"`{atom.predicate}` is a view")
    if not all(isinstance(term, Constant | Variable) for term in atom.arguments):
        yield _bad_choice(atom, "an argument is neither a variable nor a value")
    for name in dict.fromkeys(variable_names(atom)):
        if name not in bound:
            yield _bad_choice(atom, f"variable `{name}` is not one of the view")


def _bad_choice(atom: Atom, reason: str) -> Diagnostic:
    return view_catalogue.BAD_CHOICE.at(atom.span, reason=reason)
