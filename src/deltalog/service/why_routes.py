"""Routes of provenance: why a fact holds, does not hold, or has changed.

Whoever may not read everything gets a proof with the premises that it may read; the others are
left out, and so are rules, which may contain constants, comparisons and absent facts.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from deltalog.analysis.relation import Relations
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.why.asked import parse_asked
from deltalog.runtime.why.proof import Proof
from deltalog.service.answers import HostDep, json_answer
from deltalog.service.grants import Caller, CallerDep
from deltalog.service.models import Body, Bounded, Version
from deltalog.service.query_routes import relations_at

router = APIRouter(prefix="/v1", tags=["reasons"])
HIDDEN = "(not shown)"


class WhyNotRequest(Body):
    fact: str = Field(description="As in `path(1, 3)`.", max_length=100_000)
    version: Version | None = Field(default=None, description="In an earlier version.")


class WhyRequest(WhyNotRequest):
    every: bool = Field(default=False, description="All derivations, as a graph.")
    facts_max: Bounded = Field(default=100_000, description="Facts that the search may look at.")


class WhyChangedRequest(Body):
    fact: str = Field(description="As in `path(1, 3)`.", max_length=100_000)
    version: Version | None = Field(
        default=None, description="The version that a transaction made, by default the last."
    )


class Reason(BaseModel):
    """A reason as `text`, as the command shows it, and as nested values."""

    text: str
    reason: dict[str, Any]


@router.post("/why", response_model=Reason)
async def why(body: WhyRequest, caller: CallerDep, host: HostDep) -> Response:
    """Prove a fact; with variables, `path(1, X)`, all facts that fit are proved as one."""

    def run(database: MemoryDatabase) -> dict[str, Any]:
        relations = relations_at(database, body.version)
        asked = parse_asked(body.fact, relations, has_variables=True)
        caller.check_literals((asked.atom,), relations)
        if asked.fact is None or body.every:
            caller.check_reads_all()
        found = database.why(
            body.fact, version=body.version, every=body.every, facts_max=body.facts_max
        )
        if not caller.reads_all:
            assert isinstance(found, Proof)
            return readable_proof(found, caller, relations)
        return {"text": str(found), "reason": found.to_json()}

    return json_answer(await host.compute(run))


def readable_proof(proof: Proof, caller: Caller, relations: Relations) -> dict[str, Any]:
    """A proof with only those steps whose facts a caller may read; equal steps are shared."""
    made: dict[int, dict[str, Any]] = {}
    lines = [proof.conclusion]
    for step in proof.steps():
        made[id(step)] = {"conclusion": step.conclusion, "kind": step.kind, "premises": []}
    pending, seen = [proof], {id(proof)}
    while pending:
        step = pending.pop()
        for premise in step.premises:
            if not _may_read(premise, caller, relations):
                made[id(step)]["premises"].append({"conclusion": HIDDEN, "kind": "hidden"})
                continue
            lines.append(f"  {premise.conclusion}, for {step.conclusion}")
            if id(premise) in seen:  # proofs share what they have in common
                repeated = {"conclusion": premise.conclusion, "kind": premise.kind}
                made[id(step)]["premises"].append({**repeated, "repeated": True, "premises": []})
                continue
            seen.add(id(premise))
            pending.append(premise)
            made[id(step)]["premises"].append(made[id(premise)])
    return {"text": "\n".join(lines), "reason": made[id(proof)]}


def _may_read(step: Proof, caller: Caller, relations: Relations) -> bool:
    relation = None if step.relation is None else relations.get(step.relation)
    return relation is not None and step.row is not None and caller.may_read_row(relation, step.row)


@router.post("/why-not", response_model=Reason)
async def why_not(body: WhyNotRequest, caller: CallerDep, host: HostDep) -> Response:
    """Show what blocks a fact: for every rule the literal that its nearest instance fails by."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        found = database.why_not(body.fact, version=body.version)
        return {"text": str(found), "reason": found.to_json()}

    return json_answer(await host.compute(run))


@router.post("/why-changed", response_model=Reason)
async def why_changed(body: WhyChangedRequest, caller: CallerDep, host: HostDep) -> Response:
    """Show which base changes of a transaction inserted or deleted a fact, and by which way."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        found = database.why_changed(body.fact, body.version)
        return {"text": str(found), "reason": found.to_json()}

    return json_answer(await host.compute(run))
