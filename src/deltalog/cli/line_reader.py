"""Where the lines of a session come from: a person at a terminal, or a script through a pipe.

A person gets a prompt, editing, completion and a history that is kept in
`$XDG_STATE_HOME/deltalog/history` (`~/.local/state` when that is not set); a script gets none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Protocol

from deltalog.cli.commands import COMMANDS
from deltalog.cli.opening import not_text
from deltalog.cli.terminal import is_terminal
from deltalog.language.ast import AGGREGATES, COMPARISONS, TYPES
from deltalog.language.functions import FUNCTIONS

PROMPT, CONTINUATION = "deltalog> ", "      ... "
HISTORY_LINES_MAX = 10_000
KEYWORDS = sorted(
    {"base", "view", "materialized", "virtual", "key", "include", "not", "true", "false", "null"}
    | {word for word in (*TYPES, *AGGREGATES, *COMPARISONS, *FUNCTIONS) if word[0].isalpha()}
)

_COMMAND_WORDS = [
    f"{command.name} " if " " in command.usage else command.name for command in COMMANDS
]

Words = Callable[[], Iterable[str]]


class LineReader(Protocol):
    name: str
    is_interactive: bool

    def read(self, is_continued: bool) -> str | None:
        """The next line without its end, or None when there is none."""

    def remember(self, text: str) -> None:
        """Keep what was carried out in the history: a statement of several lines as one entry."""

    def close(self) -> None: ...


def line_reader(words: Words) -> LineReader:
    """The reader for what standard input is; `words` are the predicates there are."""
    return TerminalReader(words) if is_terminal(sys.stdin) else ScriptReader()


class ScriptReader:
    name = "<stdin>"
    is_interactive = False

    def read(self, is_continued: bool) -> str | None:
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            raise not_text("standard input") from None
        return line.removesuffix("\n") if line else None

    def remember(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class TerminalReader:
    name = "<prompt>"
    is_interactive = True

    def __init__(self, words: Words) -> None:
        self._words = words
        self._matches: list[str] = []
        self._readline = _import_readline()
        if self._readline is not None:
            self._set_up(self._readline)

    def read(self, is_continued: bool) -> str | None:
        prompt = CONTINUATION if is_continued else PROMPT
        if not is_terminal(sys.stdout):  # then `input` would put the prompt among the results
            sys.stderr.write(prompt)
            sys.stderr.flush()
            prompt = ""
        try:
            return input(prompt)
        except EOFError:
            sys.stderr.write("\n")
            return None
        except UnicodeDecodeError:
            raise not_text("standard input") from None

    def remember(self, text: str) -> None:
        readline = self._readline
        if readline is not None and text:
            last = readline.get_history_item(readline.get_current_history_length())
            if text != last:
                readline.add_history(text)

    def close(self) -> None:
        """Keep the history; one that cannot be kept is no reason to complain."""
        if self._readline is None:
            return
        path = history_path()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._readline.set_history_length(HISTORY_LINES_MAX)
            self._readline.write_history_file(str(path))

    def _set_up(self, readline: ModuleType) -> None:
        with suppress(OSError):
            readline.read_history_file(str(history_path()))
        readline.set_auto_history(False)  # which would keep every line of a statement
        readline.set_completer_delims(" \t\n(),;.?+-*/=<>!\"'")
        readline.set_completer(self._complete_word)
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def _complete_word(self, text: str, number: int) -> str | None:
        if number == 0:
            assert self._readline is not None
            before = self._readline.get_line_buffer()[: self._readline.get_begidx()]
            self._matches = completions_of(before, text, self._words())
        return self._matches[number] if number < len(self._matches) else None


def completions_of(before: str, text: str, predicates: Iterable[str]) -> list[str]:
    """Completions of `text`, which follows `before` on its line.

    >>> completions_of("", ":q", []), completions_of(":facts ", "pa", ["path", "edge"])
    ([':quit'], ['path'])
    """
    if not before.strip() and text.startswith(":"):
        candidates: Iterable[str] = _COMMAND_WORDS
    elif before.lstrip().startswith((":schema", ":facts", ":load")):
        candidates = predicates
    else:
        candidates = {*predicates, *KEYWORDS}
    return sorted(word for word in candidates if word.startswith(text))


def history_path() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "deltalog" / "history"


def _import_readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # not on every system
        return None
    return readline
