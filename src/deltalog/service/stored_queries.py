"""Stored queries: names for parts of views, which clients follow without knowing the bindings.

    PUT /v1/queries/from_one    {"view": "path", "bindings": {"src": 1}}       by an administrator
    GET /v1/views/from_one/stream                                              as `path?path.src=1`

A stored query is a view with values for some of its columns, so that it is followed at the cost of
any binding. Whoever reads it needs a grant for these facts: a name shows nothing by itself. Names
of relations cannot be taken; if a later program has a relation of that name, the relation counts.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from deltalog.diagnostics import service_catalogue
from deltalog.language.ast import Value
from deltalog.service.answers import HostDep, json_answer
from deltalog.service.grants import Caller, CallerDep
from deltalog.service.host import Host
from deltalog.service.problems import http_problem
from deltalog.service.values import value_from_json, value_from_text, value_to_text

PREFIX = "query:"
QUERIES_MAX = 10_000


@dataclass(frozen=True)
class StoredQuery:
    """A view, and texts of the values that its columns have."""

    name: str
    view: str
    bindings: Mapping[str, str]

    def values(self, host: Host) -> dict[str, Value] | None:
        """The values of its columns; None if the view is gone or has other columns by now."""
        relation = host.relations.get(self.view)
        columns = {} if relation is None else {each.name: each for each in relation.columns}
        if relation is None or not columns.keys() >= self.bindings.keys():
            return None
        return {name: value_from_text(columns[name], text) for name, text in self.bindings.items()}


@asynccontextmanager
async def _loaded_queries(app: Any) -> AsyncIterator[None]:
    host: Host = app.state.host
    found = await host.call(lambda _: host.settings.list(PREFIX))
    host.queries = {name.removeprefix(PREFIX): _read_query(text) for name, text in found.items()}
    yield


def _read_query(text: str) -> StoredQuery:
    return StoredQuery(**json.loads(text))


router = APIRouter(prefix="/v1", tags=["queries"], lifespan=_loaded_queries)
Name = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9_.\-]+$")]


class QueryDefinition(BaseModel):
    """The facts that a stored query stands for."""

    model_config = ConfigDict(extra="forbid")
    view: str
    bindings: dict[str, str | int | float | bool | None] = {}


class StoredQueryModel(BaseModel):
    name: str
    view: str
    bindings: dict[str, str]


class StoredQueryList(BaseModel):
    queries: list[StoredQueryModel]


@router.put("/queries/{name}", response_model=StoredQueryModel)
async def store_query(
    name: Name, body: QueryDefinition, caller: CallerDep, host: HostDep
) -> Response:
    """Store a query under a name, or replace the one that has it."""
    caller.check_administrate()
    relation = host.relations.get(body.view)
    if relation is None:
        raise http_problem(404, service_catalogue.NOT_FOUND, what="view", name=body.view)
    if name in host.relations:
        raise http_problem(409, service_catalogue.QUERY_NAME_TAKEN, name=name)
    if name not in host.queries and len(host.queries) >= QUERIES_MAX:
        raise http_problem(409, service_catalogue.TOO_MANY_QUERIES, limit=QUERIES_MAX)
    columns = {each.name: each for each in relation.columns}
    bindings: dict[str, str] = {}
    for column, value in body.bindings.items():
        if column not in columns:
            reason = f"`{body.view}` has no column `{column}`"
            raise http_problem(400, service_catalogue.BAD_REQUEST, reason=reason)
        bindings[column] = value_to_text(value_from_json(columns[column], value))
    made = StoredQuery(name, body.view, bindings)
    value = json.dumps(asdict(made))
    await host.call(lambda _: host.settings.put(PREFIX + name, value))
    host.queries[name] = made
    return json_answer(asdict(made))


@router.get("/queries", response_model=StoredQueryList)
async def list_queries(caller: CallerDep, host: HostDep) -> Response:
    """List the stored queries whose facts the caller may read."""
    found = [asdict(each) for each in host.queries.values() if may_follow(host, caller, each)]
    return json_answer({"queries": sorted(found, key=lambda each: str(each["name"]))})


@router.delete("/queries/{name}", status_code=204, response_class=Response)
async def delete_query(name: Name, caller: CallerDep, host: HostDep) -> Response:
    """Forget a stored query; streams that are open go on."""
    caller.check_administrate()
    if name not in host.queries:
        raise http_problem(404, service_catalogue.NOT_FOUND, what="stored query", name=name)
    await host.call(lambda _: host.settings.delete(PREFIX + name))
    host.queries.pop(name, None)
    return Response(None, 204)


def may_follow(host: Host, caller: Caller, query: StoredQuery) -> bool:
    """Whether a caller may read the facts of a stored query, which must still make sense."""
    values = query.values(host)
    return values is not None and caller.may_read(query.view, values)
