"""Every error of the service as one JSON shape (RFC 9457), built by one function.

    {"type": "urn:deltalog:error:E0701", "title": "the data does not fit", "status": 404,
     "detail": "there is no relation `pth`", "code": "E0701",
     "problems": [{"code": …, "message": …, "place": …, "note": …, "hint": …, "text": …}],
     "violations": […]}

A route raises a `Problem`, or lets a `DeltalogError` through. Whoever may not read everything gets
no more than what the request itself has said: messages may quote facts, places may lie in the
program, and hints may name relations. Codes in `QUOTING_REQUEST` quote the request only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

import orjson
from starlette.responses import Response

from deltalog.analysis.relation import Relation
from deltalog.diagnostics import catalogue, service_catalogue, why_catalogue
from deltalog.diagnostics.entry import Entry
from deltalog.diagnostics.render import render_diagnostic
from deltalog.diagnostics.report import DeltalogError, Diagnostic, LimitError, ProgramError
from deltalog.language.ast import Row
from deltalog.runtime.violations import ConstraintError, Violation

MEDIA_TYPE = "application/problem+json"
OWN_TEXTS = ("<query>", "<request>")
"""Sources that are texts of the request."""

_STATUS: dict[str, int] = {
    catalogue.NO_SUCH_RELATION.code: 404,
    catalogue.NO_HISTORY.code: 404,
    catalogue.NO_SUCH_VERSION.code: 404,
    catalogue.VERB_UNAVAILABLE.code: 404,
    catalogue.UNKNOWN_RULE.code: 404,
    catalogue.NO_SUCH_READER.code: 404,
    catalogue.KEY_TAKEN.code: 409,
    catalogue.OPENED_READ_ONLY.code: 409,
    catalogue.REQUEST_OUTDATED.code: 409,
    catalogue.CHECK_REFUSED.code: 409,
    catalogue.GROUP_OPEN.code: 409,
    service_catalogue.STATE_ONLY_READ.code: 409,
    service_catalogue.STATE_NOT_KEPT.code: 409,
    catalogue.SECONDS_LIMIT.code: 503,
    catalogue.COMMIT_FAILED.code: 503,
    catalogue.FILE_MOVED.code: 503,
    catalogue.FILE_DAMAGED.code: 503,
    catalogue.DATABASE_CLOSED.code: 503,
}
QUOTING_REQUEST = frozenset(
    entry.code
    for entry in (
        catalogue.NO_SUCH_RELATION,
        catalogue.NOT_BASE,
        catalogue.ROW_ARITY,
        catalogue.VALUE_MISFIT,
        catalogue.NO_KEY,
        catalogue.BAD_RECORD,
        catalogue.COLUMNS_DIFFER,
        catalogue.PARAMETER_MISSING,
        catalogue.UNKNOWN_PARAMETER,
        catalogue.PARAMETER_MISFIT,
        catalogue.KEY_SET_TWICE,
        catalogue.NO_HISTORY,
        catalogue.SECONDS_LIMIT,
        catalogue.UNKNOWN_OPTION,
        why_catalogue.DOES_NOT_HOLD,
        catalogue.FACTS_LIMIT,
        catalogue.ROUNDS_LIMIT,
    )
)
"""Errors whose messages consist of what the caller has sent, and of limits."""


class Reader(Protocol):
    """Who gets the answer, as far as that matters for what an error may show."""

    @property
    def reads_all(self) -> bool: ...
    def may_read_row(self, relation: Relation, row: Row) -> bool: ...


class Problem(DeltalogError):  # noqa: N818 - the word of RFC 9457
    """An error of the service with its status; `more` are further members of the JSON object."""

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str,
        *,
        hint: str | None = None,
        note: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__([Diagnostic(code, detail, note=note, hint=hint)])
        self.status = status
        self.title = title
        self.headers = dict(headers or {})
        self.more = more


def http_problem(
    status: int,
    entry: Entry,
    *,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
    **words: Any,
) -> Problem:
    """A problem that the catalogue of errors has."""
    made = entry.at(None, hint=hint, **words)
    title = HTTPStatus(status).phrase.lower()
    return Problem(
        status, made.code, title, made.message, hint=hint, note=made.note, headers=headers
    )


def status_of(error: DeltalogError) -> int:
    """The status of an error that was not raised as a `Problem`, by its kind and code."""
    if isinstance(error, Problem):
        return error.status
    if isinstance(error, ConstraintError):
        return 409
    known = [_STATUS[code] for code in error.codes if code in _STATUS]
    if known:
        return max(known)
    return 400 if isinstance(error, ProgramError) else 422


def _title_of(error: DeltalogError) -> str:
    if isinstance(error, Problem):
        return error.title
    if isinstance(error, ConstraintError):
        return "the change was refused"
    if isinstance(error, LimitError):
        return "a limit was reached"
    return "the text is wrong" if isinstance(error, ProgramError) else "the data does not fit"


def problem_document(
    error: DeltalogError, reader: Reader | None, relations: Mapping[str, Relation]
) -> dict[str, Any]:
    """The JSON object of an error, with no more than its reader may see."""
    sees_all = reader is not None and reader.reads_all
    shown = (
        error.diagnostics
        if sees_all
        else [_cautious_diagnostic(error, d) for d in error.diagnostics]
    )
    if isinstance(error, Problem):
        shown = error.diagnostics
    document: dict[str, Any] = {
        "type": f"urn:deltalog:error:{error.codes[0]}",
        "title": _title_of(error),
        "status": status_of(error),
        "detail": shown[0].message,
        "code": error.codes[0],
        "problems": [_problem_json(each) for each in shown],
    }
    if isinstance(error, ConstraintError):
        document["violations"] = [
            violation_json(each, sees_all)
            for each in error.violations
            if sees_all or (reader is not None and _may_see(each, reader, relations))
        ]
    if isinstance(error, Problem):
        document |= error.more
    return document


def _may_see(violation: Violation, reader: Reader, relations: Mapping[str, Relation]) -> bool:
    relation = relations.get(violation.relation)
    return relation is not None and reader.may_read_row(relation, violation.fact)


def violation_json(violation: Violation, sees_all: bool) -> dict[str, Any]:
    """A violation; its message and causes may have facts besides its own."""
    found = violation.to_json()
    if not sees_all:
        found["message"] = f"`{violation.constraint}` is violated"
        found["causes"] = []
    return found


def _cautious_diagnostic(error: DeltalogError, diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic without what may quote facts, the program, or names of other relations."""
    labels = tuple(each for each in diagnostic.labels if each.span.source.name in OWN_TEXTS)
    if isinstance(error, ProgramError) or diagnostic.code in QUOTING_REQUEST:
        return Diagnostic(diagnostic.code, diagnostic.message, labels)
    refused = isinstance(error, ConstraintError)
    return Diagnostic(diagnostic.code, "the change was refused" if refused else "it was refused")


def _problem_json(diagnostic: Diagnostic) -> dict[str, Any]:
    place = None
    if diagnostic.labels:
        span = diagnostic.labels[0].span
        line, column = span.source.position(span.start)
        place = {
            "source": span.source.name,
            "line": line,
            "column": column,
            "length": span.end - span.start,
        }
    return {
        "code": diagnostic.code,
        "message": diagnostic.message,
        "place": place,
        "note": diagnostic.note,
        "hint": diagnostic.hint,
        "text": render_diagnostic(diagnostic),
    }


def problem_response(
    error: DeltalogError,
    reader: Reader | None = None,
    relations: Mapping[str, Relation] | None = None,
) -> Response:
    """The one place where an error becomes an answer."""
    document = problem_document(error, reader, relations or {})
    headers = error.headers if isinstance(error, Problem) else {}
    if document["status"] == 503:
        headers = {"Retry-After": "1", **headers}
    content = json_bytes(document)
    return Response(content, document["status"], headers, MEDIA_TYPE)


def internal_problem(request_id: str) -> Response:
    """A bug: nothing about it but where the log has more."""
    document = {
        "type": "about:blank",
        "title": "internal server error",
        "status": 500,
        "detail": "this is a bug in Deltalog; the log of the service has more",
        "code": "internal",
        "problems": [],
        "request_id": request_id,
    }
    return Response(orjson.dumps(document), 500, {}, MEDIA_TYPE)


def json_bytes(data: Any) -> bytes:
    try:
        return orjson.dumps(data, default=str)
    except TypeError:  # it quotes half of a surrogate pair, which only an escape can write
        return json.dumps(data, default=str).encode()
