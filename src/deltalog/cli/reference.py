"""The command-line reference, generated from the commands themselves: `docs/cli.md`.

    python -m deltalog.cli.reference > docs/cli.md

A test compares the two, so an option cannot change without its documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from typer.main import get_command

from deltalog.cli import main
from deltalog.cli.commands import COMMANDS, STATEMENTS
from deltalog.cli.exit_codes import MEANINGS

INTRODUCTION = """\
# The `deltalog` command

*Generated from the commands' help by `python -m deltalog.cli.reference`; do not edit.*

Results go to standard output; errors, notes, progress and statistics go to standard error.
Progress is shown only on a terminal, and only when something takes longer than a second. Terminals
get colour unless `NO_COLOR=1` is set. Every command has `--help`;
`deltalog --install-completion` installs shell completion.

Files of facts are CSV or TSV (with or without a header that names the columns), JSON Lines or
Parquet, recognised by suffix. Several files are loaded together: all of them or none.

Results are tables; with `--format json`, one line per row, always of the form
`{"query": "? path(1, Y).", "row": {"Y": 2}}` (`"relation"` instead of `"query"` for whole
relations); with `--format csv`, a header and rows, with a blank line between results. A query
without variables is `true` or `false`; in JSON it has one empty row or none, in CSV a column
`holds`. In JSON, dates, timestamps and decimals are strings."""

CHANGES = """\
A file of changes contains a sequence of transactions. In JSON Lines (`.jsonl`, no suffix, or
standard input) every line is a transaction: deletions are applied first, then insertions, then
sets, each of which replaces the fact with the same key; the sets of a line have no order, so that
two different rows with one key are an error. All three are optional, and a row is an
array, or an object by column names:

```json
{"delete": {"edge": [[3, 4]]}, "insert": {"edge": [[1, 2]]}, "set": {"salary": [["ann", 5]]}}
```

A `.csv`, `.tsv` or `.parquet` file changes one relation, in the order of its rows. Its columns are
those of the relation and `op`, which is `+`, `-`, `insert`, `delete` or `set`. All rows are one
transaction, unless a column `transaction` groups consecutive rows. Values are parsed as in files
of facts.

The result of a transaction is the exact change of every relation and view: a table, or with
`--format json` exactly one line, with relations and rows sorted and unchanged relations omitted:

```json
{"version": 1, "inserted": {"edge": [[1, 2]], "path": [[1, 2]]}, "deleted": {}}
```

The version counts transactions that changed something. CSV, TSV and Parquet have one row per fact,
with the columns `transaction` (its number), `version`, `op` (`+` or `-`), `relation` and `row`,
which is the fact as a JSON array.

With `--what-if` nothing is committed: every transaction is evaluated against the same state. A
transaction that fails is reported with its file and line; those before it have been applied, and
with `--keep-going` those after it are applied too (a table still ends at the first unreadable
row)."""

PROPAGATION = """\
With `--propagation`, an arc `edge -> path` carries the rules that a change of `edge` triggers:
`Δ+path/Δ-edge` are insertions into `path` caused by deletions from `edge`, and `±` means that a
group is recomputed. After `--changes`, `+3 −1` is the number of facts inserted and deleted over the
arc in all transactions together. `--after` with a pass of update propagation shows the whole
program after that rewrite alone; rules it does not apply to are unchanged."""

PROMPT = """\
Queries in FILE are ignored. A statement with an error changes nothing. A script continues with its
next line and exits with the code of its first error. Changes, including those caused by a new rule,
are printed in the syntax of the prompt."""


MORE = {"apply": CHANGES, "explain": PROPAGATION, "repl": PROMPT}


def reference_page() -> str:
    """The whole page."""
    group: Any = get_command(main.app)
    sections = [INTRODUCTION, _exit_codes(), _command_section("deltalog", group, main.EXAMPLE)]
    for name, command in group.commands.items():
        sections += _command_sections(f"deltalog {name}", command)
        if name in MORE:
            sections.append(MORE[name])
    sections.append(_markdown_table("at the prompt", _prompt_rows()))
    return "\n\n".join(sections) + "\n"


def _command_sections(title: str, command: Any) -> Iterator[str]:
    """A command, and those inside of it."""
    yield _command_section(title, command, command.epilog.removeprefix("Example: "))
    for name, inner in getattr(command, "commands", {}).items():
        yield from _command_sections(f"{title} {name}", inner)


def _prompt_rows() -> Iterator[tuple[str, str]]:
    for usage, text in STATEMENTS:
        yield f"`{usage}`", text
    for command in COMMANDS:
        yield f"`{command.usage}`", command.help


def _exit_codes() -> str:
    rows = [f"| {code.value} | {text} |" for code, text in MEANINGS.items()]
    return "\n".join(("## Exit codes", "", "| code | meaning |", "| --- | --- |", *rows))


def _command_section(title: str, command: Any, example: str) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and _is_ours(p)]
    is_group = hasattr(command, "commands")
    parts = [
        f"## {title}",
        f"```sh\n{example}\n```",
        command.help,
        _usage_line(title, arguments, is_group),
    ]
    if is_group:
        parts.append(
            _markdown_table(
                "command", ((f"`{n}`", _first_line(c)) for n, c in command.commands.items())
            )
        )
    if arguments:
        parts.append(_markdown_table("argument", ((f"`{p.metavar}`", p.help) for p in arguments)))
    if options:
        parts.append(_markdown_table("option", (_option_row(option) for option in options)))
    return "\n\n".join(parts)


def _is_ours(option: Any) -> bool:
    """Whether its help is written here; typer's own differs from version to version."""
    return not option.name.endswith("_completion")


def _first_line(command: Any) -> str:
    return str(command.help).split("\n", 1)[0]


def _usage_line(title: str, arguments: list[Any], is_group: bool) -> str:
    words = [title, "[OPTIONS]"]
    for argument in arguments:
        word = f"{argument.metavar}..." if argument.nargs == -1 else str(argument.metavar)
        words.append(word if argument.required else f"[{word}]")
    if is_group:
        words.append("COMMAND ...")
    return f"Usage: `{' '.join(words)}`"


def _option_row(option: Any) -> tuple[str, str]:
    value = "" if option.is_flag else f" {option.metavar}"
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    return names, f"{option.help}{_default_text(option)}"


def _default_text(option: Any) -> str:
    value = option.default
    if option.is_flag or value is None or value == [] or callable(value):
        return ""
    if isinstance(value, Enum | str):
        return f" Default: {value}."
    shown = f"{value:,}".removesuffix(".0")
    return f" Default: {shown}."


def _markdown_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    escaped = ((name.replace("|", r"\|"), text.replace("|", r"\|")) for name, text in rows)
    lines = [f"| {name} | {text} |" for name, text in escaped]
    return "\n".join((f"| {title} | |", "| --- | --- |", *lines))


if __name__ == "__main__":
    print(reference_page(), end="")
