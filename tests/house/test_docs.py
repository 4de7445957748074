"""What the pages say is true: every example in them is run, and nothing is left out of them."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from documents import DOCS, PAGES, ROOT, Block, blocks, check_block, table_rows
from shown_rules import shown_rules

import deltalog
from deltalog.language.ast import AGGREGATES, TYPES, Operation, Program
from deltalog.language.functions import FUNCTIONS, NUMERIC, ORDERED, Signature
from deltalog.language.parser import parse_program, parse_query
from deltalog.language.printer import print_query
from deltalog.language.values import print_value
from deltalog.rewrites.pipeline import EVERY_PASS
from deltalog.source import Source
from waiting import HANG_SECONDS

OUTCOMES = ("answers", "error", "rules")


# --- examples in the rule language --------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A program on a page, and the block below it that says what comes out, if there is one."""

    program: Block
    before: str
    expected: Block | None


def examples() -> Iterator[Example]:
    for path in PAGES:
        text = ""
        found = blocks(path)
        for block, following in zip(found, [*found[1:], None], strict=False):
            if block.language == "deltalog":
                before = text if "more" in block.words else ""
                text = before + block.text
                answered = following is not None and following.language in OUTCOMES
                yield Example(block, before, following if answered else None)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.program.place)
def test_example(example: Example) -> None:
    expected = example.expected
    if expected is not None and expected.language == "rules":
        actual = shown_rules(_program(example), expected.words)
    elif expected is not None and expected.language == "error":
        with pytest.raises(deltalog.ProgramError) as caught:
            deltalog.connect(program=_program(example))
        actual = f"{caught.value}\n"
    else:
        actual = _answers(_program(example), len(_program_before(example).queries))
        assert expected is not None or not actual, "a query without its answers"
    if expected is not None:
        check_block(expected, actual)


def _program(example: Example) -> Program:
    return parse_program(Source("example.dl", example.before + example.program.text))


def _program_before(example: Example) -> Program:
    return parse_program(Source("example.dl", example.before))


def _answers(program: Program, skipped: int) -> str:
    """What the queries answer: each with its text if there are several."""
    database = deltalog.connect(program=program)
    queries = program.queries[skipped:]
    groups = []
    for query in queries:
        lines = _lines(database.query(query))
        groups.append("\n".join([print_query(query), *lines] if len(queries) > 1 else lines))
    return "\n\n".join(groups) + ("\n" if groups else "")


def _lines(rows: deltalog.Rows) -> list[str]:
    if not rows.names:
        return ["true" if len(rows) else "false"]
    return [
        ", ".join(
            f"{name} = {print_value(value)}" for name, value in zip(rows.names, row, strict=True)
        )
        for row in rows
    ] or ["none"]


def test_answers_follow_a_program() -> None:
    for path in PAGES:
        found = blocks(path)
        for before, block in zip([None, *found], found, strict=False):
            if block.language in OUTCOMES and not block.words:
                assert before is not None, block.place
                assert before.language == "deltalog", block.place


def later_rules() -> list[tuple[str, Block]]:
    """Blocks of rules further down, each with the program it is made of."""
    found = []
    for path in PAGES:
        program, before = "", None
        for block in blocks(path):
            if block.language == "deltalog":
                program = (program if "more" in block.words else "") + block.text
            elif block.language == "rules" and before != "deltalog":
                found.append((program, block))
            before = block.language
    return found


@pytest.mark.parametrize(("program", "block"), later_rules(), ids=lambda one: _place(one))
def test_rules_further_down(program: str, block: Block) -> None:
    check_block(block, shown_rules(parse_program(Source("example.dl", program)), block.words))


def _place(one: str | Block) -> str:
    return one.place if isinstance(one, Block) else ""


# --- examples in Python and on the command line -------------------------------------------------


def python_blocks() -> list[Block]:
    return [block for path in PAGES for block in blocks(path) if block.language == "python"]


@pytest.mark.parametrize("block", python_blocks(), ids=lambda block: block.place)
def test_python_example(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments beside `print(…)`, and comments after the last line of code, are what it prints."""
    monkeypatch.chdir(tmp_path)
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(block.text, block.place, "exec", dont_inherit=True), {"__name__": "example"})
    assert output.getvalue().splitlines() == _expected_output(block.text)


def _expected_output(code: str) -> list[str]:
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.DEDENT)
    last = max(token.start[0] for token in tokens if token.type not in layout)
    return [
        token.string[1:].removeprefix(" ")
        for token in tokens
        if token.type == tokenize.COMMENT
        and ("print(" in token.line.split("#")[0] or token.start[0] > last)
    ]


def shell_blocks() -> list[Block]:
    """Those that use the command; `make` has tests of its own."""
    found = [block for path in PAGES for block in blocks(path) if block.language == "sh"]
    return [b for b in found if "deltalog " in b.text and b.path.name != "cli.md"]


@pytest.mark.parametrize("block", shell_blocks(), ids=lambda block: block.place)
def test_shell_example(block: Block, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", block.text],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr


# --- tables that must be complete ---------------------------------------------------------------


def _signatures(text: str) -> set[Signature]:
    """`N, N → N` stands for one signature per numeric type."""
    operands, result = text.split(" → ")
    types: tuple[str, ...] = NUMERIC if "N" in text else ORDERED if "O" in text else ("",)
    return {
        Signature(
            tuple(type_ if word in "NO" else word for word in operands.split(", ")),
            type_ if result in "NO" else result,
        )
        for type_ in types
    }


def test_the_table_of_functions_is_complete_and_right() -> None:
    documented: dict[str, set[Signature]] = {}
    database = deltalog.connect(program="nothing.\n")
    for _, signatures, example, value in table_rows(DOCS / "language.md", "Functions"):
        query = parse_query(f"X = {example.strip('`')}")
        operation = query.body[0].right
        assert isinstance(operation, Operation)
        documented.setdefault(operation.function, set()).update(_signatures(signatures))
        (row,) = database.query(query)
        assert print_value(row[0]) == value.strip("`"), example
    assert documented == {name: set(found) for name, found in FUNCTIONS.items()}


def test_the_table_of_types_is_complete_and_right() -> None:
    rows = list(table_rows(DOCS / "language.md", "Types"))
    assert [cells[0].strip("`") for cells in rows] == [*TYPES[:2], "decimal", *TYPES[2:-1]]
    database = deltalog.connect(program="nothing.\n")
    for name, *_, written in rows:
        for literal in re.findall(r"`([^`…]+)`", written):
            query = parse_query(f"X = {literal}")
            rows_ = database.query(query)
            assert rows_.columns[0].type == name.strip("`"), literal


UNSET = "as many as fit into half of the memory"


def test_the_table_of_limits_is_right() -> None:
    limits = deltalog.Limits()
    for name, default, _ in table_rows(DOCS / "language.md", "Limits"):
        value = getattr(limits, name.strip("`"))
        assert default == (UNSET if value is None else f"{value:,.0f}")


def test_aggregates_are_documented() -> None:
    section = (DOCS / "language.md").read_text(encoding="utf-8").split("\n## Aggregates\n")[1]
    for name in AGGREGATES:
        assert f"{name}(" in section.split("\n\n")[0]


# --- passes, links, files -------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_PASS)
def test_a_pass_has_its_places(name: str) -> None:
    """File, case file, a section among the rewrites, an entry in the glossary."""
    assert (ROOT / "src/deltalog/rewrites" / f"{name}.py").exists()
    assert (ROOT / "tests/cases/rewrites" / f"{name}.case").exists()
    assert f"\n## {name}\n" in (DOCS / "rewrites.md").read_text(encoding="utf-8")
    assert f"`{name}`" in (DOCS / "glossary.md").read_text(encoding="utf-8")


_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), f"{path.name}: {link}"
        if anchor:
            assert anchor in _anchors(target), f"{path.name}: {link}"


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


_FILE = re.compile(r"`((?:src|tests|docs|examples)/[\w./]+|[a-z_]+/[a-z_]+\.(?:py|lark))`")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_files_that_are_named_exist(path: Path) -> None:
    for name in _FILE.findall(path.read_text(encoding="utf-8")):
        found = (ROOT / name).exists() or (ROOT / "src/deltalog" / name).exists()
        assert found or "NAME" in name, f"{path.name} names {name}"
