"""The description of the service (OpenAPI), completed with what holds for every route.

Every error has one shape and one media type; which statuses a route has besides its own is the same
for all of them. The token is a scheme of security that is optional, since on loopback none is
needed.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from deltalog.service.problems import MEDIA_TYPE

ERRORS = {
    "400": "The text of a query, a program or an address is wrong.",
    "401": "A valid token is needed.",
    "403": "The token, or the origin of the page, does not allow this.",
    "404": "There is no such relation, version or thing.",
    "405": "The address has other methods.",
    "409": "The change was refused: it violates constraints, or the state is another one by now.",
    "410": "What was asked for is no longer kept.",
    "413": "The body is too large.",
    "421": "The service is not called so.",
    "422": "The data does not fit, or a limit was reached.",
    "429": "Too many requests; `Retry-After` tells when to come again.",
    "503": "It took too long, or the service is being stopped; try again.",
}
_OPEN = ("/health", "/ready")
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "problems"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "An error code; docs/errors.md has them all."},
        "problems": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["code", "message", "place", "note", "hint", "text"],
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "place": {
                        "anyOf": [
                            {"type": "null"},
                            {
                                "type": "object",
                                "properties": {
                                    "source": {"type": "string"},
                                    "line": {"type": "integer"},
                                    "column": {"type": "integer"},
                                    "length": {"type": "integer"},
                                },
                            },
                        ]
                    },
                    "note": {"type": ["string", "null"]},
                    "hint": {"type": ["string", "null"]},
                    "text": {"type": "string", "description": "With the source line and a caret."},
                },
            },
        },
        "violations": {"type": "array", "items": {"type": "object"}},
    },
}


def describe_api(app: FastAPI) -> None:
    """Let the application describe itself completely."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, routes=app.routes)
            app.openapi_schema = _complete_document(made)
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _complete_document(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = _PROBLEM
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    reference = {"$ref": "#/components/schemas/Problem"}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path not in _OPEN:
                operation["security"] = [{"token": []}, {}]
            for status, text in ERRORS.items():
                operation["responses"][status] = {
                    "description": text,
                    "content": {MEDIA_TYPE: {"schema": reference}},
                }
    return document
