"""Routes of delivery: who gets messages of rules, how far queues are, and dead letters.

`deltalog dispatch` delivers; these routes show what it has written down, and pass on wishes.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel
from starlette.responses import Response

from deltalog.diagnostics import service_catalogue
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.deliveries import forget_deliveries, resume_deliveries, retry_dead_letters
from deltalog.runtime.delivery_verbs import undelivered_counts
from deltalog.service.answers import HostDep, SettingsDep, json_answer
from deltalog.service.grants import CallerDep
from deltalog.service.problems import http_problem

router = APIRouter(prefix="/v1", tags=["delivery"])
RecipientName = Annotated[str, Path(description="The name of a recipient.")]


class DeliveryModel(BaseModel):
    """The messages of one rule for one recipient; `settled` is a sequence number."""

    recipient: str
    rule: str
    settled: int
    attempts: int
    due: float
    error: str


class RecipientModel(BaseModel):
    name: str
    since: int
    stopped: str


class RuleCounts(BaseModel):
    rule: str
    waiting: int
    dead: int


class DeliveryList(BaseModel):
    recipients: list[RecipientModel]
    deliveries: list[DeliveryModel]
    rules: list[RuleCounts]


class DeadLetterModel(BaseModel):
    recipient: str
    sequence: int
    id: str
    rule: str
    name: str
    payload: str
    attempts: int
    error: str
    time: str
    is_retried: bool


class DeadLetterList(BaseModel):
    dead_letters: list[DeadLetterModel]
    total: int


class Done(BaseModel):
    count: int


@router.get("/outbox", response_model=DeliveryList)
async def deliveries(caller: CallerDep, host: HostDep) -> Response:
    """Return who gets messages, how far each queue is, and what waits."""
    caller.check_reads_all()

    def run(database: MemoryDatabase) -> dict[str, Any]:
        with database.turn():
            book = database.delivery_book()
            return {
                "recipients": [
                    {"name": each.name, "since": each.since, "stopped": each.stopped}
                    for each in book.recipients.values()
                ],
                "deliveries": [asdict(each) for each in book.queues.values()],
                "rules": [
                    {"rule": rule, "waiting": waiting, "dead": dead}
                    for rule, (waiting, dead) in undelivered_counts(database).items()
                ],
            }

    return json_answer(await host.call(run))


@router.get("/dead-letters", response_model=DeadLetterList)
async def dead_letters(caller: CallerDep, host: HostDep, settings: SettingsDep) -> Response:
    """Return the messages that could not be delivered, with the reason of the last failure."""
    caller.check_reads_all()
    found = await host.call(lambda database: list(database.dead_letters()))
    shown = [
        {**asdict(each), "is_retried": bool(each.is_retried)} for each in found[: settings.rows_max]
    ]
    return json_answer({"dead_letters": shown, "total": len(found)})


@router.post("/dead-letters/retry", response_model=Done)
async def retry(
    caller: CallerDep,
    host: HostDep,
    recipient: Annotated[str | None, Query(description="Those of this recipient only.")] = None,
) -> Response:
    """Let dead letters be delivered once more."""
    caller.check_administrate()

    def run(database: MemoryDatabase) -> int:
        with database.journal() as journal:
            return retry_dead_letters(journal, recipient)

    return json_answer({"count": await host.call(run)})


@router.post("/recipients/{recipient}/resume", response_model=Done)
async def resume_recipient(recipient: RecipientName, caller: CallerDep, host: HostDep) -> Response:
    """Let a stopped recipient get messages again; `count` is 0 if it was not stopped."""
    caller.check_administrate()

    def run(database: MemoryDatabase) -> int:
        with database.journal() as journal:
            return int(resume_deliveries(journal, recipient))

    return json_answer({"count": await host.call(run)})


@router.delete("/recipients/{recipient}", response_model=Done)
async def forget_recipient(recipient: RecipientName, caller: CallerDep, host: HostDep) -> Response:
    """Hold nothing any more for a recipient, and drop its dead letters."""
    caller.check_administrate()

    def run(database: MemoryDatabase) -> bool:
        with database.journal() as journal:
            return forget_deliveries(journal, recipient)

    if not await host.call(run):
        raise http_problem(404, service_catalogue.NOT_FOUND, what="recipient", name=recipient)
    return json_answer({"count": 1})
