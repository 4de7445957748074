"""Grants: what a token may read or write, as text.

path                 all facts of a relation or view, for the roles that the token has
read:path?src=1      those whose column src is 1, and only for reading
write:edge           what is inserted and deleted, and nothing to read
*?tenant=7           of every relation that has a column tenant
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import parse_qsl

from deltalog.analysis.relation import Relations
from deltalog.analysis.system_relations import SYSTEM_RELATIONS
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Value
from deltalog.language.values import VALUE_ERRORS, parse_value

ANY_RELATION = "*"
FORMS = "as in `path`, `read:path?src=1` or `write:edge`"
_ACTS = ("read", "write")
_NAME = re.compile(r"\*|[^\W\d]\w*")


@dataclass(frozen=True)
class Grant:
    """A relation and values of some of its columns, as text; `act` limits it to one role."""

    relation: str
    bindings: tuple[tuple[str, str], ...] = ()
    act: str | None = None
    text: str = ""

    @property
    def is_unlimited(self) -> bool:
        return self.relation == ANY_RELATION and not self.bindings

    def covers(self, act: str, relation: str, values: Mapping[str, Value]) -> bool:
        """Whether all facts of a relation that have these values are among its facts."""
        if self.act not in (None, act) or self.relation not in (ANY_RELATION, relation):
            return False
        return all(name in values and _is_same(values[name], text) for name, text in self.bindings)


def parse_grant(text: str) -> Grant:
    """A grant as it is written on the command line and in the file of tokens."""
    act, colon, rest = text.partition(":") if text.startswith(("read:", "write:")) else ("", "", "")
    name, mark, query = (rest if colon else text).partition("?")
    if not _NAME.fullmatch(name):
        raise _bad_grant(text, f"`{name}` is not the name of a relation")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        pairs = []
    if mark and not pairs:
        raise _bad_grant(text, "after `?` come values of columns, as in `path?src=1`")
    return Grant(name, tuple(pairs), act or None, text)


def misfit_of(grant: Grant, relations: Relations) -> DataError | None:
    """The error for a grant that is for no fact, since its relation or a column is not there."""
    known = {**SYSTEM_RELATIONS, **relations}
    if grant.relation not in (ANY_RELATION, *known):
        reason = f"there is no relation `{grant.relation}`"
        return _bad_grant(grant.text, reason, did_you_mean(grant.relation, known))
    meant = [each for each in known.values() if grant.relation in (ANY_RELATION, each.name)]
    columns = {column.name for each in meant for column in each.columns}
    for name, _ in grant.bindings:
        if name not in columns:
            reason = f"there is no column `{name}`"
            if grant.relation != ANY_RELATION:
                reason = f"`{grant.relation}` has no column `{name}`"
            return _bad_grant(grant.text, reason, did_you_mean(name, columns))
    return None


def _bad_grant(text: str, reason: str, hint: str | None = FORMS) -> DataError:
    return DataError([service_catalogue.BAD_GRANT.at(None, text=text, reason=reason, hint=hint)])


_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (Decimal, "decimal"),
    (datetime, "timestamp"),
    (date, "date"),
    (str, "str"),
)


def _is_same(value: Value, text: str) -> bool:
    """Whether a value is the one that a text means; null is none."""
    for class_, type_ in _TYPES:
        if isinstance(value, class_):
            try:
                return parse_value(text, type_) == value
            except VALUE_ERRORS:
                return False
    return False
