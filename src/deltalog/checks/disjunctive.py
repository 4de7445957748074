"""A database has one state, so its rules have one head."""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import Diagnostic
from deltalog.language.ast import Program


def check_disjunctive(program: Program) -> Iterator[Diagnostic]:
    for rule in program.disjunctive_rules:
        hint = "`deltalog models` shows the models of such a program"
        yield view_catalogue.DISJUNCTIVE_HEAD.at(rule.span, hint=hint)
