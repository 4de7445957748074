"""`docs/service.md` says what the service does: its limits, its routes, its statuses."""

from __future__ import annotations

import inspect
import re

from documents import DOCS, table_rows
from http_reference import described

from deltalog.cli.serve import serve
from deltalog.service.open_api import ERRORS
from deltalog.service.settings import ServiceSettings

PAGE = DOCS / "service.md"


def test_the_table_of_limits_is_right() -> None:
    defaults = {}
    for name, hint in inspect.get_annotations(serve, eval_str=True).items():
        for option in getattr(hint, "__metadata__", ()):
            declared = (
                getattr(option, "default", None),
                *(getattr(option, "param_decls", ()) or ()),
            )
            default = inspect.signature(serve).parameters[name].default
            defaults.update({each: default for each in declared if isinstance(each, str)})
    rows = list(table_rows(PAGE, "Limits"))
    assert len(rows) == 7
    for option, default, _ in rows:
        assert float(default.replace(",", "")) == float(defaults[option.strip("`")]), option


def test_routes_that_are_named_exist() -> None:
    paths = described()["paths"]
    text = PAGE.read_text(encoding="utf-8")
    for method, address in re.findall(r"`(GET|POST|PUT|DELETE) (/[^`?]*)", text):
        assert method.lower() in paths[address], address


def test_statuses_are_those_of_the_description() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.split("\n## Errors\n")[1].split("\n## ")[0]
    assert set(re.findall(r"\b[45]\d\d\b", section)) <= ERRORS.keys()


def test_keys_are_remembered_for_a_week() -> None:
    assert ServiceSettings().request_keys_seconds == 7 * 24 * 3600
