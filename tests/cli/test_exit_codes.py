"""Codes and streams of the real command, above all where it ends early."""

from __future__ import annotations

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import COMMAND, Call, write

import deltalog
from deltalog.cli.exit_codes import MEANINGS, ExitCode
from deltalog.cli.reference import reference_page
from waiting import HANG_SECONDS

COUNTING = "n(0).\nn(X + 1) :- n(X), X < 20000.\n? n(X).\n"
GROWING = "n(0).\nn(X + 1) :- n(X).\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "graph.dl"], ExitCode.FINE),
        (["query", "graph.dl", "pth(X)"], ExitCode.WRONG),
        (["query"], ExitCode.USAGE),
        (["frobnicate"], ExitCode.USAGE),
        (["run", "grow.dl", "--rounds-max", "9"], ExitCode.LIMIT),
        (["run", "missing.dl"], ExitCode.FILE),
    ],
)
def test_every_code(command: Call, arguments: list[str], code: ExitCode) -> None:
    write("grow.dl", GROWING)
    result = command(*arguments)
    assert result.returncode == code
    assert bool(result.stderr) == (code != ExitCode.FINE)
    assert bool(result.stdout) == (code == ExitCode.FINE)


def test_interrupted() -> None:
    arguments = [COMMAND, "repl", "--rounds-max", "100000000"]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(":strata\n" + GROWING.replace("\n", " ") + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "strata\n"  # it has started
        while process.poll() is None:  # it may not have begun to count when the first one comes
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
        _, errors = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert set(errors.splitlines()) == {"interrupted"}


def test_a_reader_that_goes_away_is_no_problem() -> None:
    write("count.dl", COUNTING)
    arguments = [COMMAND, "run", "count.dl"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"? n(X).\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_reader_of_messages_that_goes_away() -> None:
    write("wrong.dl", "".join(f"p(X) :- q{number}(X).\n" for number in range(3000)))
    process = subprocess.run(
        f"'{COMMAND}' check wrong.dl 2>&1 >/dev/null | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, timeout=HANG_SECONDS,
    )  # fmt: skip
    assert process.stdout.startswith(b"error[E0203]")
    assert process.returncode == ExitCode.WRONG


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk() -> None:
    write("count.dl", COUNTING)
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [COMMAND, "run", "count.dl"], stdout=full, stderr=subprocess.PIPE, timeout=HANG_SECONDS
        )
    assert process.returncode == ExitCode.FILE
    assert b"cannot write `standard output`: no space left on device" in process.stderr


def test_closed_streams() -> None:
    script = f"'{COMMAND}' check graph.dl >&- && '{COMMAND}' repl <&-"
    process = subprocess.run(script, shell=True, capture_output=True, timeout=HANG_SECONDS)
    assert (process.returncode, process.stderr) == (0, b"")


def test_an_encoding_that_cannot_show_it_all(
    command: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = command("run", "-", given='p("日"). q(X) :- p(X).')
    assert result.returncode == 0
    assert "\\u65e5" in result.stdout


def test_huge_output_is_whole(command: Call) -> None:
    result = command("run", write("count.dl", COUNTING), "--format", "csv")
    assert len(result.stdout.splitlines()) == 20_002


def test_version(command: Call) -> None:
    assert command("--version").stdout == f"deltalog {deltalog.__version__}\n"


def test_no_arguments_show_help(invoke: Call) -> None:
    result = invoke()
    assert "Usage: deltalog" in result.output
    for name in ("check", "run", "query", "apply", "audit", "explain", "repl"):
        assert name in result.output
        assert invoke(name, "--help").exit_code == 0


def test_the_reference_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    assert page.read_text(encoding="utf-8") == reference_page(), (
        "python -m deltalog.cli.reference > docs/cli.md"
    )


def test_the_reference_has_every_option_and_code(invoke: Call) -> None:
    page = reference_page()
    for code in MEANINGS:
        assert f"| {code.value} |" in page
    for option in ("--json", "--facts-dir", "--stats", "--without", "--limit", "--seconds-max"):
        assert option in page
