"""Errors of the client: the service's own, with their codes, and those of the way to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError, Diagnostic


class ServiceError(DataError):
    """A request that was refused or never arrived.

    `status` is that of HTTP, or None if no answer arrived; `document` is the body of the answer.
    """

    def __init__(
        self,
        diagnostics: list[Diagnostic],
        status: int | None = None,
        document: Mapping[str, Any] | None = None,
        retry_seconds: float | None = None,
    ) -> None:
        super().__init__(diagnostics)
        self.status = status
        self.document = dict(document or {})
        self.retry_seconds = retry_seconds

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: no answer, too many requests, a restart."""
        return self.status in (None, 429, 502, 503, 504)


def unreachable_error(address: str, error: Exception) -> ServiceError:
    """No answer arrived."""
    reason = str(error) or type(error).__name__
    made = service_catalogue.UNREACHABLE.at(None, address=address, reason=reason)
    return ServiceError([made])


def refusal_error(status: int, document: Any, retry_after: str | None) -> ServiceError:
    """The error that an answer describes, with the codes of the service."""
    found = document if isinstance(document, Mapping) else {}
    problems = found.get("problems") or ()
    diagnostics = [
        Diagnostic(str(each["code"]), str(each["message"]), (), each["note"], each["hint"])
        for each in problems
    ]
    if not diagnostics:
        detail = str(found.get("detail") or "no reason was given")
        diagnostics = [service_catalogue.REFUSED.at(None, status=status, detail=detail)]
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return ServiceError(diagnostics, status, found, seconds)


def bad_stream(view: str, reason: str) -> ServiceError:
    return ServiceError([service_catalogue.BAD_STREAM.at(None, view=view, reason=reason)])
