"""`deltalog check`: all problems of a program at once, or a one-line summary."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from deltalog.checks.active_rules import endless_rules
from deltalog.checks.program import CheckedProgram, check_program
from deltalog.cli.exit_codes import ExitCode, exit_code_of
from deltalog.cli.messages import report_error
from deltalog.cli.opening import STANDARD_INPUT, Settings, open_program, read_and_parse
from deltalog.cli.progress import Progress
from deltalog.cli.terminal import counted_noun, visible_text, write_message, write_result
from deltalog.diagnostics.render import render_diagnostic
from deltalog.diagnostics.report import DeltalogError, Diagnostic
from deltalog.language.ast import Program
from deltalog.rewrites.names import is_generated
from deltalog.runtime.limits import Limits
from deltalog.runtime.update_choices import ChoiceCheck, check_choices
from deltalog.source import Span

EXAMPLE = "deltalog check graph.dl"


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Programs, each checked separately; `-` reads standard input."
        ),
    ],
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write the problems as a JSON array to standard output."),
    ] = False,
) -> None:
    """Check programs and report every problem found."""
    code = ExitCode.FINE
    records: list[dict[str, Any]] = []
    for file in files:
        try:
            checked = check_program(read_and_parse(file, Progress()))
        except DeltalogError as error:
            code = max(code, exit_code_of(error))
            records += [_diagnostic_record(diagnostic, file) for diagnostic in error.diagnostics]
            if not as_json:
                report_error(error)
                write_message(
                    f"{_display_name(file)}: {counted_noun(len(error.diagnostics), 'problem')}"
                )
        else:
            if not as_json:
                for warning in endless_rules(checked.program):
                    write_message(render_diagnostic(warning))
                write_result(f"{_display_name(file)}: {_program_summary(checked)}")
                for choice in _checked_choices(checked):
                    write_result(visible_lines(str(choice)))
    if as_json:
        write_result(json.dumps(records, indent=2, ensure_ascii=False))
    raise typer.Exit(code)


def _checked_choices(checked: CheckedProgram) -> tuple[ChoiceCheck, ...]:
    """The default choices of view updates, as far as they do what they say."""
    if not checked.program.update_choices:
        return ()
    program = replace(checked.program, facts=(), queries=(), constraints=(), active_rules=())
    bare = replace(program, rules=checked.program.definitions)
    return check_choices(open_program(bare, Settings(Limits(), engine="reference"), Progress()))


def visible_lines(text: str) -> str:
    return "\n".join(map(visible_text, text.split("\n")))


def _display_name(file: Path) -> str:
    return "<stdin>" if file == STANDARD_INPUT else str(file)


def _program_summary(checked: CheckedProgram) -> str:
    kinds = [each.kind for name, each in checked.relations.items() if not is_generated(name)]
    base, views = kinds.count("base"), kinds.count("view")
    strata = max(checked.stratification.stratum_of.values(), default=0)
    return (
        f"{counted_noun(len(kinds), 'relation')} ({base} base, {counted_noun(views, 'view')}), "
        f"{counted_noun(len(checked.program.rules), 'rule')}{_guard_counts(checked.program)}, "
        f"{strata} {'stratum' if strata == 1 else 'strata'}"
    )


def _guard_counts(program: Program) -> str:
    """Constraints and active rules, if there are some."""
    found = (len(program.constraints), "constraint"), (len(program.active_rules), "active rule")
    return "".join(f", {counted_noun(count, noun)}" for count, noun in found if count)


# --- JSON


def _diagnostic_record(diagnostic: Diagnostic, file: Path) -> dict[str, Any]:
    labels = [_place_record(label.span) | {"text": label.text} for label in diagnostic.labels]
    nowhere = {"file": _display_name(file), "line": None, "column": None, "end": None}
    place = _place_record(diagnostic.labels[0].span) if diagnostic.labels else nowhere
    return {
        "code": diagnostic.code,
        "message": diagnostic.message,
        **place,
        "labels": labels,
        "note": diagnostic.note,
        "hint": diagnostic.hint,
    }


def _place_record(span: Span) -> dict[str, Any]:
    """Lines and columns count from one; `end` is the first place behind."""
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.name,
        "line": line,
        "column": column,
        "end": {"line": end_line, "column": end_column},
    }
