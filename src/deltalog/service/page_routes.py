"""The page of the service: static files of the package, and a policy that lets nothing else in.

    GET /               the document
    GET /page/{name}    its scripts, its style and the vendored libraries

Scripts and styles come from the service itself only, none stand inside the document, and nothing is
loaded from elsewhere; so no text of a database can become code. The files hold no data: whoever
opens the page needs a token as soon as it asks for some.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from deltalog.diagnostics import service_catalogue
from deltalog.service.problems import http_problem

router = APIRouter(tags=["page"], include_in_schema=False)
DOCUMENT = "page.html"
FOLDERS = ("service", "vendor")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """The files that are served, by name, with their media types."""
    found = {}
    for folder in FOLDERS:
        for file in resources.files("deltalog").joinpath("web", folder).iterdir():
            suffix = file.name[file.name.rfind(".") :]
            if suffix in KINDS:
                found[file.name] = (file.read_bytes(), KINDS[suffix])
    return found


@router.get("/")
async def document(request: Request) -> Response:
    """Return the page."""
    return _file_response(request, DOCUMENT)


@router.get("/page/{name}")
async def page_file(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    """Return a file that the page consists of."""
    return _file_response(request, name)


def _file_response(request: Request, name: str) -> Response:
    if name not in page_files():
        raise http_problem(404, service_catalogue.NOT_FOUND, what="file", name=name)
    body, kind = page_files()[name]
    headers = {**HEADERS, "ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(None, 304, headers)
    return Response(body, 200, headers, kind)
