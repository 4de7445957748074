"""Parameters of addresses: a route takes those that it states, each once, and no others.

A misspelt parameter would be ignored otherwise, and `rows?src=1` would show all facts instead of
those with `path.src=1`. Streams are left out: clients of their protocol may send more. An object in
a body has each member once, too: of two with one name a reader of JSON would keep the last.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, get_args, get_origin

from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.similar import did_you_mean
from deltalog.service.problems import Problem, http_problem


async def check_parameters(connection: HTTPConnection) -> None:
    """Raise 400 unless the route of a request takes its parameters."""
    route = connection.scope.get("route")
    path = connection.url.path
    if not connection.query_params or not isinstance(route, APIRoute):
        return
    if path.startswith("/v1/") and not path.endswith("/stream"):
        _check_names(connection, _known_parameters(route))


async def check_members(connection: HTTPConnection) -> None:
    """Raise 400 if an object in the body of a request has a member twice."""
    route = connection.scope.get("route")
    if isinstance(route, APIRoute) and route.body_field and isinstance(connection, Request):
        with suppress(ValueError):  # what is no JSON does not fit the model either
            json.loads(await connection.body(), object_pairs_hook=_check_object)


def _check_object(members: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in members}
    if len(names) < len(members):
        twice = next(name for name in names if sum(name == each for each, _ in members) > 1)
        raise _bad_request(f"an object of the body has `{twice[:100]}` twice")


def _check_names(connection: HTTPConnection, known: dict[str, bool]) -> None:
    view = connection.path_params.get("view")
    for name in connection.query_params:
        if view is not None and name.startswith(f"{view}."):
            continue  # a binding, whose column is checked by the route
        if name not in known:
            hint = did_you_mean(name, known)
            if hint is None and view is not None:
                hint = f"`{view}.COLUMN=VALUE` selects the facts that have a value"
            raise _bad_request(f"there is no parameter `{name[:100]}`", hint)
        if not known[name] and len(connection.query_params.getlist(name)) > 1:
            raise _bad_request(f"`{name}` is there twice")


def _known_parameters(route: APIRoute) -> dict[str, bool]:
    """The parameters of a route, and whether each may be repeated."""
    known: dict[str, bool] = {}
    waiting = [route.dependant]
    while waiting:
        each = waiting.pop()
        waiting += each.dependencies
        known |= {p.alias: _is_list(p.field_info.annotation) for p in each.query_params}
    return known


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(map(_is_list, get_args(annotation)))


def _bad_request(reason: str, hint: str | None = None) -> Problem:
    return http_problem(400, service_catalogue.BAD_REQUEST, reason=reason, hint=hint)
