"""Runs every case file; see tests/casefiles.py for the form and CONTRIBUTING.md for recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from casefiles import CASES, UPDATE, compare, find, identify, read_case
from deltalog.analysis.columns import relations
from deltalog.checks.program import check_program
from deltalog.diagnostics.report import ProgramError
from deltalog.language.ast import Program
from deltalog.language.parser import parse, parse_text
from deltalog.language.printer import print_program, print_rule
from deltalog.plan.lower import lower_all
from deltalog.plan.text import plan_text
from deltalog.rewrites import names
from deltalog.rewrites.desugar import desugar, desugar_query
from deltalog.rewrites.magic_sets import magic_sets
from deltalog.source import Source


@pytest.mark.parametrize("path", find("syntax", "*.dl"), ids=identify)
def test_syntax(path: Path) -> None:
    program = parse_text(path.read_text(encoding="utf-8"))
    printed = print_program(program)
    expected = path.with_suffix(".printed")
    if UPDATE:
        expected.write_text(printed, encoding="utf-8")
    assert printed == expected.read_text(encoding="utf-8")
    assert parse_text(printed) == program


@pytest.mark.parametrize("path", find("errors", "*.dl"), ids=identify)
def test_errors(path: Path) -> None:
    """Exactly these diagnostics, to the letter."""
    source = Source(path.name, path.read_text(encoding="utf-8"))

    def read(name: str, including: Source) -> Source:
        return Source(name, (path.parent / name).read_text(encoding="utf-8"))

    with pytest.raises(ProgramError) as caught:
        check_program(parse(source, read))
    expected = path.with_suffix(".err")
    if UPDATE:
        expected.write_text(f"{caught.value}\n", encoding="utf-8")
    assert f"{caught.value}\n" == expected.read_text(encoding="utf-8")


def _desugared(program: Program) -> str:
    rules = desugar(program, check_program(program).relations).rules
    return "\n".join(print_rule(rule) for rule in rules)


def _magic(program: Program) -> str:
    (query,) = program.queries
    checked = check_program(program)
    core = desugar(program, checked.relations)
    stored = {name for name, relation in checked.relations.items() if relation.kind == "base"}
    asked = desugar_query(query, checked.relations)
    rules = magic_sets((*core.rules, *asked), names.ANSWER, stored)
    return "\n".join(print_rule(rule) for rule in rules)


REWRITES = {"desugar": _desugared, "magic_sets": _magic}


@pytest.mark.parametrize("path", find("rewrites"), ids=identify)
def test_rewrites(path: Path) -> None:
    """Titled pairs: `before TITLE` is a program, `after` the rules it becomes."""
    case = read_case(path)
    pairs = list(zip(case.sections[::2], case.sections[1::2], strict=True))
    for before, after in pairs:
        assert before.words[0] == "before"
        assert after.name == "after"
        compare(case, after, REWRITES[path.stem](parse_text(before.text)))


@pytest.mark.parametrize("path", find("plans"), ids=identify)
def test_plans(path: Path) -> None:
    case = read_case(path)
    program = parse_text(case.text("program"))
    core = desugar(program, relations(program))
    growing = {rule.head.predicate for rule in core.rules}
    section = next(s for s in case.sections if s.name == "plan")
    compare(case, section, plan_text(lower_all(core.rules, growing)))


def test_no_orphans() -> None:
    """Every expectation belongs to a case."""
    for path in CASES.rglob("*"):
        if path.suffix == ".err":
            assert path.with_suffix(".dl").exists(), f"{path} expects nothing"
        if path.suffix == ".printed":
            assert path.with_suffix(".dl").exists(), f"{path} expects nothing"
