"""`docs/http.md`: every route of the service, made from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import deltalog
from deltalog.service.app import make_app
from deltalog.service.host import Host
from deltalog.service.open_api import ERRORS
from deltalog.service.settings import ServiceSettings

INTRODUCTION = """\
# The service over HTTP

Every route of `deltalog serve`, made from its OpenAPI description (`/v1/openapi.json`) by
`make update-cases`. How they are used: [the service](service.md).

Errors of all routes have one shape (RFC 9457, `application/problem+json`): `type`, `title`,
`status`, `detail`, `code` ([every code](errors.md)), and `problems`, each with `code`, `message`,
`place`, `note`, `hint` and `text`, which is what the command would show.
"""


def described() -> dict[str, Any]:
    """The OpenAPI description of the service."""
    database = deltalog.connect(program="base edge(src: int, dst: int).", engine="reference")
    return make_app(Host(database), ServiceSettings()).openapi()


def http_reference() -> str:
    document = described()
    schemas = document["components"]["schemas"]
    parts = [INTRODUCTION, "| status | |\n|---|---|"]
    parts[-1] += "".join(f"\n| {status} | {text} |" for status, text in ERRORS.items()) + "\n"
    for tag in _tags(document):
        parts.append(f"## {tag[0].upper()}{tag[1:]}\n")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"][0] == tag:
                    parts.append("\n".join(_operation(path, method, operation, schemas)))
    parts.append("## Parts of bodies and answers\n")
    for name in _parts(document, schemas):
        parts.append("\n".join(_members(f"`{name}`", {"$ref": f"/{name}"}, schemas)))
    return "\n".join(parts)


def _parts(document: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    """Names of objects that occur inside others."""
    return [name for name in schemas if f"/schemas/{name}" in str(schemas)]


def _tags(document: dict[str, Any]) -> list[str]:
    found = (o["tags"][0] for methods in document["paths"].values() for o in methods.values())
    return list(dict.fromkeys(found))


def _operation(
    path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`\n"
    yield f"{_flat(operation.get('description', operation['summary']))}\n"
    parameters = operation.get("parameters", ())
    if parameters:
        yield "| parameter | in | type | |"
        yield "|---|---|---|---|"
        for each in parameters:
            needed = "; required" if each.get("required") else ""
            shown = f"{_type(each['schema'])}{needed}"
            yield f"| `{each['name']}` | {each['in']} | {shown} | {each.get('description', '')} |"
        yield ""
    for _, schema in _contents(operation.get("requestBody", {})):
        yield from _members("Body", schema, schemas)
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            for media, schema in _contents(answer):
                if "$ref" in schema:
                    yield from _members(f"Answer, {status}", schema, schemas)
                else:
                    yield f"Answer, {status}: `{media}`.\n"


def _contents(part: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for media, content in part.get("content", {}).items():
        yield media, content.get("schema", {})


def _members(title: str, schema: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    found = schemas[_name(schema)] if "$ref" in schema else schema
    yield f"{title}:\n"
    yield "| member | type | |"
    yield "|---|---|---|"
    for name, each in found.get("properties", {}).items():
        default = each.get("default")
        note = each.get("description", "")
        if default not in (None, [], {}, ""):
            shown = "true" if default is True else "false" if default is False else default
            note = f"{note} Default: {shown}.".strip()
        yield f"| `{name}` | {_type(each)} | {_flat(note)} |"
    yield ""


def _type(schema: dict[str, Any]) -> str:
    """
    >>> _type({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    'array of string, or null'
    """
    if "$ref" in schema:
        return _name(schema)
    if "anyOf" in schema:
        return ", or ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    type_ = schema.get("type", "any")
    if type_ == "array":
        return f"array of {_type(schema.get('items', {}))}"
    if type_ == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(type_)


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"].rsplit("/", 1)[1])


def _flat(text: str) -> str:
    return " ".join(text.split())
