"""The demands of a request for a stream: which facts, from where on, how, and how precisely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection

from deltalog.analysis.relation import Relation
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Value
from deltalog.service.grants import Caller
from deltalog.service.host import Host
from deltalog.service.offsets import Offset
from deltalog.service.problems import Problem, http_problem
from deltalog.service.quality import PRECISIONS, Quality
from deltalog.service.selections import Selection
from deltalog.service.stored_queries import StoredQuery
from deltalog.service.stream_reading import NOW, START, checked_offset
from deltalog.service.values import bindings_of

Live = Literal["long-poll", "sse"]
LIVE: tuple[Live, ...] = ("long-poll", "sse")
WAIT_SECONDS_MAX = 60.0
WAIT_SECONDS_DEFAULT = 10.0
_ONCE = ("offset", "live", "cursor", "precision", "every_seconds", "every_commits", "wait_for")


@dataclass(frozen=True)
class StreamRequest:
    """A checked request; `offset` is None from the start on."""

    selection: Selection
    offset: Offset | None
    is_now: bool
    live: Live | None
    cursor: str | None
    quality: Quality

    @property
    def start(self) -> str:
        """Where it begins, as the client said it."""
        return NOW if self.is_now else START if self.offset is None else str(self.offset)


def stream_request(
    connection: HTTPConnection, host: Host, caller: Caller, view: str, live: str | None = None
) -> StreamRequest:
    """Check all that a request says; `live` is what its route is for."""
    parameters = connection.query_params
    for name in _ONCE:
        if len(parameters.getlist(name)) > 1:
            raise bad_read(f"`{name}` is there twice")
    live = live_of(parameters.get("live") if live is None else live)
    selection = selection_of(host, caller, view, parameters)
    text = parameters.get("offset")
    resumed = connection.headers.get("last-event-id") if live == "sse" else None
    text = resumed or text
    if text is None and live is not None:
        raise bad_read("`offset` is missing")
    is_start = text is None or text == START
    offset = None if is_start or text == NOW else checked_offset(host, text or "")
    if text == NOW:
        offset = Offset(host.history, host.version)
    quality = quality_of(parameters)
    return StreamRequest(
        selection,
        offset,
        text == NOW,
        live,
        parameters.get("cursor"),
        quality,
    )


def live_of(text: str | None) -> Live | None:
    """The mode of reading that a request asks for."""
    for mode in LIVE:
        if text == mode:
            return mode
    if text is not None:
        raise bad_read(f"`live={text[:20]}` is neither `long-poll` nor `sse`")
    return None


def selection_of(host: Host, caller: Caller, view: str, parameters: QueryParams) -> Selection:
    """The facts that a caller asks for, which it may read; `view` may be a stored query."""
    stored = None if view in host.relations else host.queries.get(view)
    if stored is not None:
        return _stored_selection(host, caller, stored, parameters)
    relation = readable_relation(host, caller, view)
    _check_bindings(relation, parameters)
    bindings = bindings_of(parameters.multi_items(), relation)
    return checked_selection(caller, relation, bindings)


def _stored_selection(
    host: Host, caller: Caller, stored: StoredQuery, parameters: QueryParams
) -> Selection:
    """The facts of a stored query; further columns of its view may be bound."""
    values = stored.values(host)
    if values is None or not caller.may_read(stored.view, values):
        caller.check_read(stored.name)  # who may not read it does not learn that it is there
        raise http_problem(404, service_catalogue.NOT_FOUND, what="view", name=stored.view)
    relation = host.relations[stored.view]
    _check_bindings(relation, parameters)
    more = bindings_of(parameters.multi_items(), relation)
    for name in more.keys() & values.keys():
        raise bad_read(f"`{stored.name}` has a value for `{name}` already")
    return Selection.of(relation, {**values, **more})


def checked_selection(
    caller: Caller, relation: Relation, bindings: Mapping[str, Value]
) -> Selection:
    caller.check_read(relation.name, bindings)
    return Selection.of(relation, bindings)


def readable_relation(host: Host, caller: Caller, view: str) -> Relation:
    """The relation of a name; who may not read all of it does not learn which names there are."""
    relation = host.relations.get(view)
    if relation is None:
        caller.check_read(view)
        hint = did_you_mean(view, host.relations)
        raise http_problem(404, service_catalogue.NOT_FOUND, what="view", name=view, hint=hint)
    return relation


def _check_bindings(relation: Relation, parameters: QueryParams) -> None:
    """Refuse a binding of something else: to ignore it would show more than was asked for."""
    columns = {column.name for column in relation.columns} - set(_ONCE)
    for name in parameters:
        if name in columns or ("." in name and name.partition(".")[0] != relation.name):
            hint = f"`{relation.name}.COLUMN=VALUE` selects the facts that have a value"
            raise bad_read(f"`{name}` does not bind a column of `{relation.name}`", hint)


def quality_of(parameters: Mapping[str, str]) -> Quality:
    precision = parameters.get("precision", "exact")
    if precision not in PRECISIONS:
        raise bad_read(f"`precision={precision[:20]}` is none of {', '.join(PRECISIONS)}")
    seconds = _positive_number(parameters, "every_seconds")
    commits = _positive_number(parameters, "every_commits")
    if seconds is not None and commits is not None:
        raise bad_read("`every_seconds` and `every_commits` exclude each other")
    if commits is not None and (commits != int(commits) or commits < 1):
        raise bad_read("`every_commits` is a whole number, 1 or more")
    return Quality(precision, seconds, None if commits is None else int(commits))


def _positive_number(parameters: Mapping[str, str], name: str) -> float | None:
    text = parameters.get(name)
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < 10**9:
        raise bad_read(f"`{name}={text[:20]}` is not a number above 0")
    return found


def bad_read(reason: str, hint: str | None = None) -> Problem:
    return http_problem(400, service_catalogue.BAD_READ, reason=reason, hint=hint)


def wait_seconds(connection: HTTPConnection) -> float:
    """How long a request may wait for an offset, as its header `Prefer: wait=N` says."""
    for each in connection.headers.get("prefer", "").split(","):
        name, _, text = each.strip().partition("=")
        if name == "wait" and text.isascii() and text.isdigit():
            return min(float(text), WAIT_SECONDS_MAX)
    return WAIT_SECONDS_DEFAULT
