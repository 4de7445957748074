"""Names: every predicate is known, declared once, and used with as many arguments as it has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from deltalog.analysis.columns import Relation, Relations
from deltalog.analysis.system_relations import SYSTEM_PREFIX, SYSTEM_RELATIONS
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Atom, Column, Declaration, Literal, Program
from deltalog.language.functions import FUNCTIONS
from deltalog.language.walk import atoms_of
from deltalog.source import Span

NAMES_SHOWN = 10


def check_declarations(program: Program, relations: Relations) -> Iterator[Diagnostic]:
    yield from _declared_once(program)
    yield from _check_reserved_names(program)
    defined = {rule.head.predicate for rule in program.rules}
    defined |= {fact.predicate for fact in program.facts}
    for declaration in program.declarations:
        yield from _check_columns(declaration)
        if declaration.predicate in FUNCTIONS:
            yield catalogue.FUNCTION_AS_PREDICATE.at(declaration.span, name=declaration.predicate)
        if declaration.kind == "view" and declaration.predicate not in defined:
            yield catalogue.VIEW_WITHOUT_RULES.at(
                declaration.span,
                name=declaration.predicate,
                hint=f"for a relation of facts, declare `base {declaration.predicate}(…)`",
            )
    for rule in program.rules:
        yield from _check_head(rule.head, bool(rule.body), relations)
    for atom in program.facts:
        yield from _check_arity(atom, relations)
    for rule in program.rules:
        yield from check_atoms(rule.body, relations)
    for query in program.queries:
        yield from check_atoms(query.body, {**relations, **SYSTEM_RELATIONS})


def check_atoms(
    body: tuple[Literal, ...], relations: Relations, is_query: bool = False
) -> Iterator[Diagnostic]:
    """The atoms of a body name known predicates with the right number of arguments."""
    for atom, _ in atoms_of(body):
        if atom.predicate in relations:
            yield from _check_arity(atom, relations)
        elif atom.predicate in FUNCTIONS:
            yield catalogue.FUNCTION_AS_PREDICATE.at(
                atom.span,
                name=atom.predicate,
                hint="compare its result with something, as in `length(S) > 3`",
            )
        else:
            hint = did_you_mean(atom.predicate, relations)
            if hint is None and atom.predicate.startswith(SYSTEM_PREFIX):
                hint = "only queries read relations that describe the program"
            elif hint is None and is_query:
                hint = f"the relations are {', '.join(islice(sorted(relations), NAMES_SHOWN))}"
                hint += ", …" if len(relations) > NAMES_SHOWN else ""
            yield catalogue.UNKNOWN_PREDICATE.at(
                atom.span,
                name=atom.predicate,
                hint=hint or f"declare it, as in `base {atom.predicate}({_sketch_columns(atom)}).`",
            )


def _sketch_columns(atom: Atom) -> str:
    return ", ".join(f"c{i + 1}: int" for i in range(len(atom.arguments)))


def _declared_once(program: Program) -> Iterator[Diagnostic]:
    first: dict[str, Declaration] = {}
    for declaration in program.declarations:
        earlier = first.setdefault(declaration.predicate, declaration)
        if earlier is not declaration:
            yield catalogue.DECLARED_TWICE.at(
                declaration.span,
                *_labels_at(earlier.span, "first declared here"),
                name=declaration.predicate,
            )


def check_system_facts(facts: tuple[Atom, ...], hidden: Relations) -> Iterator[Diagnostic]:
    """Facts of hidden relations, as a dump has them, fit those that the program has."""
    for fact in facts:
        if fact.predicate not in hidden:
            yield catalogue.RESERVED_NAME.at(fact.span, name=fact.predicate)
        else:
            yield from _check_arity(fact, hidden)


def _check_reserved_names(program: Program) -> Iterator[Diagnostic]:
    """Relations of the system are defined by nobody else."""
    named = [(each.predicate, each.span) for each in program.declarations]
    named += [(rule.head.predicate, rule.head.span) for rule in program.rules]
    named += [(fact.predicate, fact.span) for fact in program.facts]
    for name, span in named:
        if name.startswith(SYSTEM_PREFIX):
            yield catalogue.SYSTEM_NAME.at(span, name=name)


def _check_columns(declaration: Declaration) -> Iterator[Diagnostic]:
    seen: dict[str, Column] = {}
    for column in declaration.columns or ():
        if column.name in seen:
            yield catalogue.COLUMN_TWICE.at(
                column.span,
                *_labels_at(seen[column.name].span, "first here"),
                name=column.name,
                predicate=declaration.predicate,
            )
        seen.setdefault(column.name, column)
        if declaration.kind == "base" and column.type is None:
            yield catalogue.TYPE_MISSING.at(
                column.span,
                name=column.name,
                predicate=declaration.predicate,
                hint=f"as in `{column.name}: int`",
            )
        if column.key and column.nullable:
            yield catalogue.BAD_KEY.at(
                column.span, name=column.name, reason="a key column cannot be null"
            )
    if declaration.kind == "base" and declaration.columns is None:
        yield catalogue.TYPE_MISSING.at(
            declaration.span,
            name="…",
            predicate=declaration.predicate,
            hint=f"write `base {declaration.predicate}(column: type, …).`",
        )


def _check_head(head: Atom, has_body: bool, relations: Relations) -> Iterator[Diagnostic]:
    relation = relations[head.predicate]
    if relation.kind == "base" and has_body:
        yield catalogue.RULE_FOR_BASE.at(
            head.span, *_labels_at(relation.span, "declared as base here"), name=head.predicate
        )
    elif head.predicate in FUNCTIONS:
        yield catalogue.FUNCTION_AS_PREDICATE.at(head.span, name=head.predicate)
    yield from _check_arity(head, relations)


def _check_arity(atom: Atom, relations: Relations) -> Iterator[Diagnostic]:
    relation: Relation = relations[atom.predicate]
    if len(atom.arguments) != relation.arity:
        first = "declared here" if relation.is_declared else "first used here"
        yield catalogue.WRONG_ARITY.at(
            atom.span,
            *_labels_at(relation.span, first),
            name=atom.predicate,
            wanted=counted_arguments(relation.arity),
            given=len(atom.arguments),
        )


def counted_arguments(number: int) -> str:
    """`no arguments`, `1 argument`, `3 arguments`."""
    return f"{number or 'no'} argument{'' if number == 1 else 's'}"


def _labels_at(span: Span | None, text: str) -> tuple[Label, ...]:
    return (Label(span, text),) if span is not None else ()
