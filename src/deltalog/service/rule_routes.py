"""Routes of constraints, active rules and the messages that rules emit."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from deltalog.analysis.active_rules import parameter_types
from deltalog.diagnostics import catalogue, service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import ActiveRule, Column, Value
from deltalog.language.values import VALUE_ERRORS
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.rule_verbs import RuleState
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.models import (
    ActivationRequest,
    ConstraintList,
    FiringList,
    MessageList,
    RuleList,
    RuleModel,
    ViolationList,
)
from deltalog.service.problems import http_problem, violation_json
from deltalog.service.values import rows_to_json
from deltalog.store.json_lines_file import from_json

router = APIRouter(prefix="/v1", tags=["constraints and rules"])
RuleName = Annotated[str, Path(description="The name of an active rule.")]


@router.get("/constraints", response_model=ConstraintList)
async def constraints(caller: CallerDep, host: HostDep) -> Response:
    """List the constraints of the program, with the relations that they watch."""

    def run(database: MemoryDatabase) -> list[dict[str, Any]]:
        known = database.propagation.constraints
        return [
            {
                "name": check.name,
                "relation": check.relation,
                "mode": check.mode,
                "is_immediate": check.is_immediate,
            }
            for check in (() if known is None else known.checks)
            if caller.may_read_some(check.relation)
        ]

    return json_answer({"constraints": await host.call(run)})


@router.get("/violations", response_model=ViolationList)
async def violations(
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    constraint: Annotated[str | None, Query(description="Of this constraint only.")] = None,
) -> Response:
    """Return the violations of constraints as of now; an enforced one has none."""
    caller.check_reads_some()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        relations = database.relations
        found = [
            each
            for each in database.violations(constraint)
            if caller.reads_all
            or (
                each.relation in relations
                and caller.may_read_row(relations[each.relation], each.fact)
            )
        ]
        return {
            "version": database.version,
            "total": len(found),
            "violations": [
                violation_json(each, caller.reads_all) for each in found[: settings.rows_max]
            ],
        }

    return json_answer(await host.compute(run))


@router.get("/rules", response_model=RuleList)
async def rules(caller: CallerDep, host: HostDep) -> Response:
    """List the active rules, whether they are active, and how often they have fired."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        return {"version": database.version, "rules": list(map(rule_json, database.rules()))}

    return json_answer(await host.call(run))


@router.get("/rules/firings", response_model=FiringList)
async def firings(request: Request, caller: CallerDep, host: HostDep) -> Response:
    """Return the last firings since the service was started, and the arcs that led to them."""
    caller.check_reads_all()
    recent = request.app.state.recent
    return json_answer({"firings": await host.call(lambda _: list(recent.firings))})


@router.post("/rules/{rule}/activate", response_model=RuleModel)
async def activate(
    rule: RuleName, body: ActivationRequest, caller: CallerDep, host: HostDep
) -> Response:
    """Activate a rule, for these parameters if it has some; nothing fires by that."""
    return await _set_activation(rule, body, caller, host, is_active=True)


@router.post("/rules/{rule}/deactivate", response_model=RuleModel)
async def deactivate(
    rule: RuleName, body: ActivationRequest, caller: CallerDep, host: HostDep
) -> Response:
    """Deactivate a rule, for these parameters if it has some."""
    return await _set_activation(rule, body, caller, host, is_active=False)


async def _set_activation(
    rule: str, body: ActivationRequest, caller: CallerDep, host: HostDep, *, is_active: bool
) -> Response:
    caller.check_administrate()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        parameters = _typed_parameters(database, rule, body.parameters)
        change = database.activate if is_active else database.deactivate
        change(rule, **parameters)
        return next(rule_json(each) for each in database.rules() if each.name == rule)

    return json_answer(await host.call(run))


def _typed_parameters(
    database: MemoryDatabase, name: str, found: dict[str, Any]
) -> dict[str, Value]:
    """The parameters of an activation as values of their types."""
    rules = {each.name: each for each in database.model.checked.program.active_rules}
    if name not in rules:
        raise DataError([catalogue.UNKNOWN_RULE.at(None, name=name)])
    types = parameter_types(rules[name], database.model.checked.relations)
    return {
        each: _typed_parameter(rules[name], each, types.get(each), v) for each, v in found.items()
    }


def _typed_parameter(rule: ActiveRule, name: str, type_: str | None, value: Any) -> Value:
    if type_ is None:
        return cast("Value", value)  # the rule reports a parameter that it does not have
    try:
        return from_json(Column(name, type_))(value)
    except VALUE_ERRORS:
        reason = f"the parameter `{name}` of `{rule.name}` is {type_}"
        raise http_problem(422, service_catalogue.BAD_REQUEST, reason=reason) from None


def rule_json(state: RuleState) -> dict[str, Any]:
    return {
        "name": state.name,
        "priority": state.priority,
        "is_active": state.is_active,
        "firings": state.firings,
        "seconds": state.seconds,
        "last": None if state.last is None else state.last.isoformat(sep=" "),
        "parameters": rows_to_json(state.parameters),
    }


@router.get("/messages", response_model=MessageList)
async def messages(
    caller: CallerDep,
    host: HostDep,
    settings: SettingsDep,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="A sequence number.")] = 0,
) -> Response:
    """Return the messages that rules have emitted, behind a sequence number."""
    caller.check_reads_all()
    found = await host.call(lambda database: database.messages(after))
    shown = found[: settings.rows_max]
    return json_answer(
        {
            "messages": [
                {
                    "sequence": each.sequence,
                    "id": each.id,
                    "rule": each.rule,
                    "name": each.name,
                    "arguments": each.arguments,
                }
                for each in shown
            ],
            "next": shown[-1].sequence if len(found) > len(shown) else None,
        }
    )
