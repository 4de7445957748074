"""Bodies of requests and answers, as the OpenAPI description has them.

Rows are checked against their relation and not here: an array has the values of all columns, an
object has them by name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Row = Annotated[
    list[Any] | dict[str, Any],
    Field(description="A fact: values by position, or by the names of columns."),
]
Rows = list[Row]
Facts = dict[str, Rows]
JsonRow = list[Any]
Version = Annotated[int, Field(ge=0, le=2**63 - 1)]
Bounded = Annotated[int, Field(ge=1, le=2**31)]


class Body(BaseModel):
    """A body in which a name that is not known is an error."""

    model_config = ConfigDict(extra="forbid")


class Changes(Body):
    """Facts of base relations: deleted first, then inserted, then set."""

    insert: Facts = Field(default_factory=dict, description="Facts to insert, by relation.")
    delete: Facts = Field(default_factory=dict, description="Facts to delete, by relation.")
    set: Facts = Field(
        default_factory=dict, description="Facts that replace those with the same key."
    )


class TransactionRequest(Changes):
    views: list[str] | None = Field(
        default=None,
        description="Views whose change is in the answer, beside that of base relations; without "
        "it the answer has no delta.",
    )


class WhatIfRequest(Changes):
    views: list[str] | None = Field(
        default=None, description="Views whose change is computed; all of them without it."
    )


class Delta(BaseModel):
    """An exact change: facts inserted and deleted, by relation."""

    inserted: dict[str, list[JsonRow]]
    deleted: dict[str, list[JsonRow]]


class ViolationModel(BaseModel):
    constraint: str
    relation: str
    fact: JsonRow
    message: str
    causes: list[list[Any]]


class Committed(BaseModel):
    """An accepted transaction; whoever may read nothing learns no more than that."""

    accepted: bool
    version: int | None
    offset: str | None
    is_repeated: bool
    is_complete: bool
    delta: Delta | None
    warnings: list[ViolationModel]
    """Violations by it of constraints that only warn."""


class Tried(BaseModel):
    """The change that a transaction would make; `is_complete` is false if it has more facts."""

    version: int | None
    is_complete: bool
    delta: Delta
    violations: list[ViolationModel]


class QueryRequest(Body):
    query: str = Field(description="As in `path($src, Y), not edge($src, Y)`.", max_length=100_000)
    parameters: dict[str, Any] = Field(default_factory=dict, description="Values of `$name`s.")
    version: Version | None = Field(default=None, description="Ask an earlier version.")
    limit: Bounded | None = Field(default=None, description="Rows of the answer at most.")
    start: Annotated[int, Field(ge=0, le=2**31)] = Field(
        default=0, description="Leave out this many rows."
    )


class ColumnModel(BaseModel):
    name: str
    type: str | None
    nullable: bool
    key: bool


class RowsAnswer(BaseModel):
    """Rows in a fixed order; `next` is where to go on, null at the end."""

    version: int
    offset: str
    columns: list[ColumnModel]
    rows: list[JsonRow]
    total: int
    next: int | None


class RelationModel(BaseModel):
    name: str
    kind: str
    is_stored: bool
    columns: list[ColumnModel]
    key: list[str]


class RelationList(BaseModel):
    version: int | None
    relations: list[RelationModel]


class ExplainRequest(Body):
    query: str | None = Field(default=None, max_length=100_000)
    parameters: dict[str, Any] = Field(default_factory=dict)
    show: list[str] | None = Field(
        default=None, description="Some of `dependencies`, `strata`, `rules`, `plan`."
    )
    propagation: bool = Field(default=False, description="The propagation network instead.")


class TextAnswer(BaseModel):
    text: str


class RealizeRequest(Body):
    requests: Annotated[list[str], Field(min_length=1, max_length=100)] = Field(
        description="Facts that shall hold, `+path(1, 9)`, or shall not, `-path(1, 9)`."
    )
    answers: Annotated[int, Field(ge=1, le=1000)] = 10
    changes: Annotated[float, Field(gt=0, le=1e6)] | None = None
    nodes: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    seconds: Annotated[float, Field(gt=0, le=3600)] = 5.0
    new_values: Annotated[int, Field(ge=0, le=10)] = 2
    fixed: list[str] = Field(default_factory=list, description="Base relations not to touch.")
    costs: dict[str, Annotated[float, Field(ge=0, le=1e9)]] = Field(default_factory=dict)
    rank: Literal["cost", "side_effects"] = Field(
        default="cost", description="The order of answers that cost the same."
    )


class RealizeApplyRequest(RealizeRequest):
    number: Annotated[int, Field(ge=1, le=1000)] = Field(description="Which answer, from 1.")
    version: Version = Field(description="The version for which the answers were found.")
    values: dict[str, Any] = Field(
        default_factory=dict, description="Values in the place of new ones, by these."
    )


class RealizationModel(BaseModel):
    number: int
    inserted: dict[str, list[JsonRow]]
    deleted: dict[str, list[JsonRow]]
    new_values: list[Any]
    delta: Delta


class RealizationList(BaseModel):
    version: int
    already: list[str]
    hints: list[str]
    answers: list[RealizationModel]
    is_complete: bool
    reasons: list[str]


class ConstraintModel(BaseModel):
    name: str
    relation: str
    mode: str
    is_immediate: bool


class ConstraintList(BaseModel):
    constraints: list[ConstraintModel]


class ViolationList(BaseModel):
    version: int
    total: int | None
    violations: list[ViolationModel]


class RuleModel(BaseModel):
    name: str
    priority: int
    is_active: bool
    firings: int
    seconds: float
    last: str | None
    parameters: list[JsonRow]


class RuleList(BaseModel):
    version: int
    rules: list[RuleModel]


class ActivationRequest(Body):
    parameters: dict[str, Any] = Field(default_factory=dict)


class FiringModel(BaseModel):
    version: int
    time: str
    rule: str
    instances: list[JsonRow]
    watched: str
    arcs: list[dict[str, Any]]


class FiringList(BaseModel):
    firings: list[FiringModel]


class MessageModel(BaseModel):
    sequence: int
    id: str
    rule: str
    name: str
    arguments: list[Any]


class MessageList(BaseModel):
    messages: list[MessageModel]
    next: int | None


class CommitModel(BaseModel):
    version: int
    time: str
    kind: str
    facts: int | None
    """Changed facts in the log; null unless the caller may read everything, as below."""
    omitted: list[str] | None
    """Views that may have changed, too, and whose change is derived for whoever asks."""


class CommitList(BaseModel):
    """Some commits; `next` is the version after which to go on, if there are more."""

    first: int
    last: int
    commits: list[CommitModel]
    next: int | None


class DeltaAnswer(BaseModel):
    first: int
    last: int
    is_complete: bool
    delta: Delta


class ProgramModel(BaseModel):
    version: int
    time: str | None
    text: str


class ProgramList(BaseModel):
    programs: list[ProgramModel]


class ProgramRequest(Body):
    text: Annotated[str, Field(max_length=4_000_000)]
    dry_run: bool = Field(default=False, description="Only return the change.")
    version: Version | None = Field(
        default=None, description="Refuse if the database has another version by now."
    )


class ProgramChanged(BaseModel):
    version: int
    offset: str
    is_complete: bool
    delta: Delta


class AuditRequest(Body):
    engine: str | None = Field(default=None, description="`reference` recomputes with plain sets.")


class DifferenceModel(BaseModel):
    view: str
    missing: list[JsonRow]
    excess: list[JsonRow]


class AuditAnswer(BaseModel):
    version: int
    differences: list[DifferenceModel]


class NetworkAnswer(BaseModel):
    """The propagation network; `flows` are facts that flowed over each arc, by commit."""

    version: int
    nodes: list[dict[str, Any]]
    arcs: list[dict[str, Any]]
    flows: list[dict[str, Any]]
