"""Routes that read: queries, the rows of a view, the relations there are, explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from deltalog.analysis.relation import Relation, Relations
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.language.ast import Atom, Column, Constant, Row, Value, Variable
from deltalog.language.ast import Query as QueryNode
from deltalog.language.parser import parse_query
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.parameters import bound_query
from deltalog.runtime.rows import Rows
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import Caller, CallerDep
from deltalog.service.models import (
    ExplainRequest,
    QueryRequest,
    RelationList,
    RelationModel,
    RowsAnswer,
    TextAnswer,
)
from deltalog.service.streams import streams_of
from deltalog.service.values import bindings_of, parameters_from_json, rows_to_json

router = APIRouter(prefix="/v1", tags=["reading"])
VersionQuery = Annotated[
    int | None, Query(ge=0, le=2**63 - 1, description="An earlier version of a database file.")
]
LimitQuery = Annotated[int | None, Query(ge=1, le=2**31, description="Rows at most.")]
StartQuery = Annotated[int, Query(ge=0, le=2**31, description="Leave out this many rows.")]
WaitFor = Annotated[
    str | None,
    Query(description="An offset that a commit was answered with; wait until it is reached."),
]
Name = Annotated[str, Path(description="A base relation or view.")]


@router.post("/query", response_model=RowsAnswer)
async def query(
    request: Request,
    body: QueryRequest,
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    wait_for: WaitFor = None,
) -> Response:
    """Return the bindings of a query's variables, now or as of an earlier version."""
    await streams_of(request).wait_for(wait_for, settings.seconds_max)

    def run(database: MemoryDatabase) -> dict[str, Any]:
        relations = relations_at(database, body.version)
        parsed = parse_query(body.query)
        asked = bound_query(
            parsed, parameters_from_json(parsed, body.parameters, relations), relations
        )
        caller.check_literals(asked.body, relations)
        rows = database.query(asked, version=body.version)
        version = database.version if body.version is None else body.version
        most = min(body.limit or settings.rows_max, settings.rows_max)
        return page_json(version, host.offset(version), rows.columns, rows, body.start, most)

    return json_answer(await host.compute(run))


@router.get("/views/{view}/rows", response_model=RowsAnswer)
async def rows(
    request: Request,
    view: Name,
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    version: VersionQuery = None,
    limit: LimitQuery = None,
    start: StartQuery = 0,
    wait_for: WaitFor = None,
) -> Response:
    """Return the facts of a base relation or view, a page at a time, in a fixed order.

    Bindings select some of them: `?path.src=1`. Pages of one `version` belong together; a database
    in memory has its last version only.
    """
    await streams_of(request).wait_for(wait_for, settings.seconds_max)
    parameters = request.query_params.multi_items()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        relation = known_relation(relations_at(database, version), view, caller)
        bindings = bindings_of(parameters, relation)
        caller.check_read(view, bindings)
        found = facts_with(database, relation, bindings, version)
        at = database.version if version is None else version
        most = min(limit or settings.rows_max, settings.rows_max)
        return page_json(at, host.offset(at), relation.columns, found, start, most)

    return json_answer(await host.compute(run))


def facts_with(
    database: MemoryDatabase,
    relation: Relation,
    bindings: Mapping[str, Value],
    version: int | None,
) -> Sequence[Row]:
    """Facts of a relation that have these values, sorted."""
    if not bindings and version is None:
        return database.rows(relation.name)
    if not bindings:
        return Rows(relation.columns, database.facts(relation.name, version))
    terms = [
        _constant_of(column, bindings[column.name])
        if column.name in bindings
        else Variable(f"V{position}")
        for position, column in enumerate(relation.columns)
    ]
    asked = QueryNode((Atom(relation.name, tuple(terms)),))
    answers = database.query(asked, version=version)
    return [_whole_fact(relation.columns, bindings, row) for row in answers]


def _constant_of(column: Column, value: Value) -> Constant:
    return Constant(value, "null" if value is None else column.type or "str")


def _whole_fact(columns: Sequence[Column], bindings: Mapping[str, Value], answer: Row) -> Row:
    """A fact from the values that were given and those that were found."""
    found = iter(answer)
    return tuple(bindings[c.name] if c.name in bindings else next(found) for c in columns)


def page_json(
    version: int,
    offset: str,
    columns: Sequence[Column],
    found: Sequence[Row],
    start: int,
    most: int,
) -> dict[str, Any]:
    end = start + most
    return {
        "version": version,
        "offset": offset,
        "columns": [column_json(column) for column in columns],
        "rows": rows_to_json(found[start:end]),
        "total": len(found),
        "next": end if end < len(found) else None,
    }


# --- relations


def relations_at(database: MemoryDatabase, version: int | None) -> Relations:
    if version is None or version == database.version:
        return database.relations
    return database.relations_at(version)


def known_relation(relations: Relations, name: str, caller: Caller) -> Relation:
    """A relation that the caller may know of; others look as if they were not there."""
    found = relations.get(name)
    if found is None or not (caller.may_read_some(name) or caller.may_write(name)):
        known = relations if caller.reads_all else ()
        hint = did_you_mean(name, known)
        raise DataError([catalogue.NO_SUCH_RELATION.at(None, name=name, hint=hint)])
    return found


def column_json(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "nullable": column.nullable,
        "key": column.key,
    }


def relation_json(database: MemoryDatabase, relation: Relation) -> dict[str, Any]:
    return {
        "name": relation.name,
        "kind": relation.kind,
        "is_stored": relation.name in database.model.stored,
        "columns": [column_json(column) for column in relation.columns],
        "key": [relation.columns[position].name for position in relation.key],
    }


@router.get("/relations", response_model=RelationList)
async def relations(caller: CallerDep, host: HostDep, version: VersionQuery = None) -> Response:
    """List the base relations and views that the caller may read or write, with their columns."""

    def run(database: MemoryDatabase) -> dict[str, Any]:
        known = relations_at(database, version)
        shown = [
            relation_json(database, each)
            for name, each in known.items()
            if caller.may_read_some(name) or (each.kind == "base" and caller.may_write(name))
        ]
        at = database.version if version is None else version
        return {"version": at if caller.reads_some else None, "relations": shown}

    return json_answer(await host.call(run))


@router.get("/relations/{name}", response_model=RelationModel)
async def relation(
    name: Name, caller: CallerDep, host: HostDep, version: VersionQuery = None
) -> Response:
    """Return the columns and the key of a base relation or view."""

    def run(database: MemoryDatabase) -> dict[str, Any]:
        return relation_json(
            database, known_relation(relations_at(database, version), name, caller)
        )

    return json_answer(await host.call(run))


@router.post("/explain", response_model=TextAnswer)
async def explain(body: ExplainRequest, caller: CallerDep, host: HostDep) -> Response:
    """Return what the program, or a query, is rewritten to, as `deltalog explain` shows it."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> str:
        parameters = body.parameters or None
        if body.query is not None and parameters is not None:
            parsed = parse_query(body.query)
            parameters = parameters_from_json(parsed, parameters, database.relations)
        return database.explain(
            body.query, parameters, show=body.show, propagation=body.propagation
        )

    return json_answer({"text": await host.compute(run)})
