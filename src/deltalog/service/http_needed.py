"""Importing what needs a library for HTTP, which is an extra of the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError


@contextmanager
def http_needed() -> Iterator[None]:
    """Report an import that fails as the extra that is missing."""
    try:
        yield
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[service]'`"
        entry = service_catalogue.DISPATCH_NEEDS
        needed = error.name or "httpx"
        raise DataError([entry.at(None, needed=needed, hint=hint)]) from error
