"""The project file: what a pipeline reads, keeps and gives, in TOML.

    program = "catalogue.dl"
    state = "state"
    bad_rows = "refuse"

    [sources.price_changes]
    relation = "price"
    kind = "changes"
    format = "csv"
    path = "incoming/price"

    [sinks.cost]
    relation = "cost"
    kind = "snapshot"
    path = "out/cost"

Paths are relative to the file. Everything that is wrong is reported at once, with its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.pipeline.freshness import MINUTE, Freshness, check_freshness
from deltalog.pipeline.project_places import span_in
from deltalog.source import Source as Text
from deltalog.source import Span

FORMATS = ("csv", "delta", "jdbc", "json", "parquet", "table")
SOURCE_KINDS = ("changes", "feed", "load", "snapshot", "stream")
SINK_KINDS = ("append", "function", "merge", "snapshot")
BAD_ROWS = ("fail", "quarantine", "refuse")
REFRESH = ("AUTO", "FULL", "INCREMENTAL")


@dataclass(frozen=True)
class Source:
    """Where facts, or changes of facts, come from."""

    name: str
    relation: str
    kind: str
    format: str
    path: str = ""
    table: str = ""
    op: str = "op"
    options: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    schema: str = ""


@dataclass(frozen=True)
class Sink:
    """Where changes, or what a view is now, go to."""

    name: str
    relation: str
    kind: str
    path: str = ""
    table: str = ""
    key: tuple[str, ...] = ()
    function: str = ""


@dataclass(frozen=True)
class Project:
    """A project file that has been read; all paths are complete."""

    name: str
    program: str
    state: str
    bad_rows: str = "fail"
    strategy: str = "auto"
    freshness: Freshness = MINUTE
    spark: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    sinks: tuple[Sink, ...] = ()
    refresh: str = "AUTO"
    views: Mapping[str, str] = field(default_factory=dict)
    text: Text = field(default=Text("", ""), repr=False)


_STRINGS = {"options": dict, "columns": dict, "ignore": list, "key": list, "spark": dict}
_FORMS = {
    dict: ("table", 'write `{key} = {{ name = "text" }}`'),
    list: ("list", 'write `{key} = ["text", "text"]`'),
}
_KNOWN = {
    "project": (
        "program",
        "state",
        "bad_rows",
        "strategy",
        "freshness",
        "spark",
        "sources",
        "sinks",
        "refresh",
        "views",
    ),
    "view": ("refresh",),
    "source": tuple(Source.__dataclass_fields__)[1:],
    "sink": tuple(Sink.__dataclass_fields__)[1:],
}


def read_project(path: str | Path) -> Project:
    """The project in a file, or a `DataError` with everything that is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DataError(
            [catalogue.CANNOT_READ.at(None, name=path, reason=reason.lower())]
        ) from None
    return _Reader(Text(str(path), text), Path(path).absolute().parent).project()


class _Reader:
    """Collects what is wrong while it reads."""

    def __init__(self, text: Text, folder: Path) -> None:
        self.text = text
        self.folder = folder
        self.problems: list[Diagnostic] = []

    def project(self) -> Project:
        try:
            found = tomllib.loads(self.text.text)
        except tomllib.TOMLDecodeError as error:
            raise DataError([self._not_toml(str(error))]) from None
        self._check_keys((), found, "project")
        program = self._read_text((), found, "program", is_needed=True)
        state = self._read_text((), found, "state", is_needed=True)
        made = Project(
            self.text.name,
            str(self.folder / program),
            self._path_from_folder(state),
            self._one_of((), found, "bad_rows", BAD_ROWS, "fail"),
            self._read_text((), found, "strategy") or "auto",
            self._read_freshness(found),
            self._read_strings((), found, "spark"),
            tuple(
                self._read_source(name, each)
                for name, each in self._tables_of_key(found, "sources")
            ),
            tuple(
                self._read_sink(name, each) for name, each in self._tables_of_key(found, "sinks")
            ),
            self._one_of((), found, "refresh", REFRESH, "AUTO"),
            dict(self._read_view(name, each) for name, each in self._tables_of_key(found, "views")),
            self.text,
        )
        if made.strategy != "auto" and (made.views or "refresh" in found):
            hint = "leave out one of the two"
            self._add_problem((), "strategy", "`strategy` and `refresh` exclude each other", hint)
        if self.problems:
            raise DataError(self.problems)
        return made

    def _read_source(self, name: str, found: dict[str, Any]) -> Source:
        place = ("sources", name)
        self._check_keys(place, found, "source")
        made = Source(
            name,
            self._read_text(place, found, "relation") or name,
            self._one_of(place, found, "kind", SOURCE_KINDS, None),
            self._one_of(place, found, "format", FORMATS, None),
            self._path_from_folder(self._read_text(place, found, "path")),
            self._read_text(place, found, "table"),
            self._read_text(place, found, "op") or "op",
            self._read_strings(place, found, "options"),
            self._read_strings(place, found, "columns"),
            tuple(self._read_strings(place, found, "ignore")),
            self._read_text(place, found, "schema"),
        )
        needs = "table" if made.format == "table" else "path"
        if made.format != "jdbc" and made.format in FORMATS and not getattr(made, needs):
            self._add_problem(place, None, f"source `{name}` needs `{needs}`")
        if made.kind == "feed" and made.format not in ("delta", "table"):
            self._add_problem(place, "format", "only a Delta table has a feed of changes")
        if made.kind == "stream" and not made.schema and made.format != "delta":
            self._add_problem(
                place,
                None,
                f"source `{name}` needs `schema`: the schema of a stream is not inferred",
            )
        return made

    def _read_sink(self, name: str, found: dict[str, Any]) -> Sink:
        place = ("sinks", name)
        self._check_keys(place, found, "sink")
        made = Sink(
            name,
            self._read_text(place, found, "relation") or name,
            self._one_of(place, found, "kind", SINK_KINDS, None),
            self._path_from_folder(self._read_text(place, found, "path")),
            self._read_text(place, found, "table"),
            tuple(self._read_strings(place, found, "key")),
            self._read_text(place, found, "function"),
        )
        if made.kind == "function" and ":" not in made.function:
            self._add_problem(
                place, "function", f'sink `{name}` needs `function = "module:function"`'
            )
        elif made.kind in ("append", "merge", "snapshot") and not (made.path or made.table):
            self._add_problem(place, None, f"sink `{name}` needs `path` or `table`")
        return made

    def _read_view(self, name: str, found: dict[str, Any]) -> tuple[str, str]:
        place = ("views", name)
        self._check_keys(place, found, "view")
        return name, self._one_of(place, found, "refresh", REFRESH, "AUTO")

    # --- values

    def _read_freshness(self, found: dict[str, Any]) -> Freshness:
        value = found.get("freshness", MINUTE)
        try:
            check_freshness(value)
        except DataError:
            hint = 'write a number of seconds, "commit" or "demand"'
            self._add_problem((), "freshness", f"`{value}` is not a freshness", hint)
            return MINUTE
        return value  # type: ignore[no-any-return]

    def _path_from_folder(self, path: str) -> str:
        """A path, from the folder of the project."""
        return path if not path or "://" in path else str(self.folder / path)

    def _tables_of_key(
        self, found: dict[str, Any], key: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        given = found.get(key, {})
        hint = f"write `[{key}.NAME]`, followed by one `key = value` per line"
        if not isinstance(given, dict):
            self._add_problem((), key, f"`{key}` is not a table", hint)
            return
        for name, each in given.items():
            if isinstance(each, dict):
                yield name, each
            else:
                self._add_problem((), key, f"`{key}.{name}` is not a table", hint)

    def _read_text(
        self, place: tuple[str, ...], found: dict[str, Any], key: str, is_needed: bool = False
    ) -> str:
        value: object = found.get(key, "")
        if not isinstance(value, str):
            self._add_problem(place, key, f"`{key}` is not text", f'write `{key} = "…"`')
            return ""
        if is_needed and not value:
            self._add_problem(place, None, f"`{key}` is missing")
        return value

    def _one_of(
        self,
        place: tuple[str, ...],
        found: dict[str, Any],
        key: str,
        known: tuple[str, ...],
        default: str | None,
    ) -> str:
        value: str | None = self._read_text(place, found, key) or default
        if value is None:
            self._add_problem(place, None, f"`{key}` is missing", f"use one of {', '.join(known)}")
            return ""
        if value not in known:
            hint = did_you_mean(value, known) or f"use one of {', '.join(known)}"
            self._add_problem(place, key, f"`{value}` is not a {key.replace('_', ' ')}", hint)
        return value

    def _read_strings(
        self, place: tuple[str, ...], found: dict[str, Any], key: str
    ) -> dict[str, str]:
        """A table of texts, or a list of them, which become its keys."""
        value = found.get(key, {})
        if not isinstance(value, _STRINGS[key]) and value != {}:
            what, hint = _FORMS[_STRINGS[key]]
            self._add_problem(place, key, f"`{key}` is not a {what}", hint.format(key=key))
            return {}
        if isinstance(value, list):
            return {str(each): "" for each in value}
        return {name: _format_setting(each) for name, each in value.items()}

    # --- problems

    def _check_keys(self, place: tuple[str, ...], found: dict[str, Any], what: str) -> None:
        for key in found:
            if key not in _KNOWN[what]:
                known = f"its keys are {', '.join(_KNOWN[what])}"
                hint = did_you_mean(key, _KNOWN[what]) or known
                self._add_problem(place, key, f"`{key}` is not a key of a {what}", hint)

    def _not_toml(self, error: str) -> Diagnostic:
        """Where the parser stopped, which it reports in words only."""
        text = self.text.text
        start = end = len(text.rstrip())
        at = re.search(r"at line (\d+), column (\d+)", error)
        if at is not None:
            lines = text.splitlines(keepends=True)
            start = min(sum(map(len, lines[: int(at[1]) - 1])) + int(at[2]) - 1, end)
        hint = 'a key is written `key = "text"`, a table begins with `[sources.name]`'
        span = Span(self.text, start, start)
        return catalogue.BAD_PROJECT.at(span, reason="this is not TOML", hint=hint)

    def _add_problem(
        self, place: tuple[str, ...], key: str | None, reason: str, hint: str | None = None
    ) -> None:
        span = span_in(self.text, place, key)
        self.problems.append(catalogue.BAD_PROJECT.at(span, reason=reason, hint=hint))


def _format_setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
