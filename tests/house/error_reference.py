"""`docs/errors.md`: every error code with its meaning and an example, made from the case files."""

from __future__ import annotations

from pathlib import Path

from casefiles import find, read_case
from deltalog.diagnostics.catalogue import ENTRIES, Entry

CHAPTERS = {
    "E01": ("Syntax", "The text does not read as a program."),
    "E02": ("Declarations", "Names, arities, keys: what is declared and what is used."),
    "E03": ("Safety", "A variable has no value."),
    "E04": ("Types", "Things meet that have different types, or null where it may not be."),
    "E05": ("Stratification", "A view depends on its own negation or aggregate."),
    "E06": ("Aggregates", "An aggregate stands in the wrong place or has the wrong argument."),
    "E07": ("Data", "Facts, files and options that do not fit the program. Nothing has changed."),
    "E08": ("Limits", "An evaluation was stopped. Everything is as it was before."),
    "E09": ("Database files", "A file cannot be opened, read or written. Nothing has changed."),
    "E10": ("Pipelines", "Project files, states and sources; `spark` is a session of Spark."),
    "E11": ("Constraints", "Constraints that say nothing, or that a change violates."),
    "E12": ("Active rules", "Rules that cannot act, or that have refused a change."),
    "E13": ("AMOSQL", "Statements of AMOSQL that do not fit the schema or the objects there are."),
    "E14": ("View updates", "Requests that cannot be searched for."),
    "E16": ("Dispatching messages", "Targets that messages of rules cannot be sent to."),
    "E15": ("Why", "Questions about facts that have no answer."),
    "E17": ("Service", "Requests that a service refuses; over HTTP each has a status."),
    "E18": ("Sources", "Base relations whose facts are in tables elsewhere."),
}

INTRODUCTION = """\
# Errors

Every message has a code that never changes its meaning. All problems of a program are reported at
once, sorted by place. In Python they arrive as `deltalog.ProgramError` (E01 to E06),
`deltalog.DataError` (E07, E09, E10, E12 to E18), `deltalog.LimitError` (E08) and
`deltalog.ConstraintError` (E1101, E1204), all of them a `deltalog.DeltalogError` with `.codes` and
`.diagnostics`. In the examples `db` is a database with the program above it.

This page is made from the catalogue and the case files by `make update-cases`.
"""


def error_reference() -> str:
    parts = [INTRODUCTION]
    chapter = ""
    for code, entry in sorted(ENTRIES.items()):
        if code[:3] != chapter:
            chapter = code[:3]
            title, meaning = CHAPTERS[chapter]
            parts.append(f"## {title}\n\n{meaning}\n")
        parts.append(_entry(entry))
    return "\n".join(parts)


def cases_of(code: str) -> list[Path]:
    """The case files that show an error; each is named after its code."""
    name = f"{code.lower()}_*"
    found = (("errors", "dl"), ("errors", "amosql"), ("run_time", "case"))
    return [path for folder, suffix in found for path in find(folder, f"{name}.{suffix}")]


def _entry(entry: Entry) -> str:
    text = f"### {entry.code}\n\n{_plain(entry.message)}\n"
    shown = cases_of(entry.code)
    return text + ("\n" + _example(shown[0]) if shown else "")


def _plain(message: str) -> str:
    """The message with `…` for what differs from case to case.

    >>> _plain("column `{name}` appears twice")
    'column `…` appears twice'
    """
    pieces = message.replace("{{", "\0").split("{")
    return "…".join([pieces[0], *(piece.split("}", 1)[1] for piece in pieces[1:])])


def _example(path: Path) -> str:
    """A program with what is wrong in it, or what was run and what it said."""
    if path.suffix != ".case":
        said = path.with_suffix(".err").read_text(encoding="utf-8")
        return f"```text\n{_first(said)}\n```\n"
    case = read_case(path)
    return "\n".join(
        f"```{'py' if section.name == 'python' else 'text'}\n{section.text.strip()}\n```\n"
        for section in case.sections
        if section.text.strip()
    )


def _first(text: str) -> str:
    """The first of several messages."""
    messages = text.strip().split("\nerror[")
    return messages[0].rstrip()
