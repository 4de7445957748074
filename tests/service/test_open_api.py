"""The OpenAPI description is true: whatever fits it is answered as it says, and nothing is a bug.

Schemathesis generates requests from the description, here narrowed to names and texts of a real
program, so that most of them get past the first check. `make fuzz` generates many more.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from effort import effort
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from serving import Service, serving
from test_routes import SHOP

import deltalog
from deltalog.service.app import make_app
from deltalog.service.host import Host
from deltalog.service.settings import ServiceSettings

CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
NAMES = ["item", "stock", "link", "dear", "low", "reach", "negative", "reorder", "nothing"]
TEXTS = [
    "stock(I, A)",
    "reach($x, Y)",
    'reach("a", Y), not link("a", Y)',
    "low(I), item(I, N, P, S)",
    "sys_rule(N, P, A)",
    "stock(I, A), B = A / 0",
    "stock(I, A",
    "",
    "? nothing(X).",
    '+reach("a", "d")',
    'not reach("a", "b")',
    "+low(3)",
    "path(1)",
    'reach("a", "c")',
    "low(2)",
]
FACTS = {
    "type": "object",
    "properties": {
        "stock": {
            "type": "array",
            "items": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "integer"}],
                "minItems": 2,
                "maxItems": 2,
            },
            "maxItems": 3,
        },
        "link": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"src": {"enum": ["a", "b", "c"]}, "dst": {"type": "string"}},
                "required": ["src", "dst"],
            },
            "maxItems": 3,
        },
    },
}


def narrowed(document: dict[str, Any]) -> dict[str, Any]:
    """The description with names and texts that mean something to the program."""
    found = copy.deepcopy(document)
    for methods in found["paths"].values():
        for operation in methods.values():
            for each in operation.get("parameters", ()):
                if each["in"] == "path":
                    each["schema"] = {"enum": NAMES}
                if each["name"] in ("version", "first", "last", "after", "until"):
                    each["schema"] = {"type": "integer", "minimum": 0, "maximum": 9}
    schemas = found["components"]["schemas"]
    texts = {"anyOf": [{"enum": TEXTS}, {"type": "string", "maxLength": 30}]}
    for name in ("QueryRequest", "ExplainRequest"):
        schemas[name]["properties"]["query"] = texts
    for name in ("WhyRequest", "WhyNotRequest", "WhyChangedRequest"):
        schemas[name]["properties"]["fact"] = texts
    for name in ("RealizeRequest", "RealizeApplyRequest"):
        members = schemas[name]["properties"]
        members["requests"]["items"] = {"enum": TEXTS}
        members["nodes"]["maximum"] = 50
        members["fixed"] = {"type": "array", "items": {"enum": NAMES}, "maxItems": 2}
        members["costs"] = {"type": "object", "maxProperties": 0}
    for name in ("TransactionRequest", "WhatIfRequest"):
        for side in ("insert", "delete", "set"):
            schemas[name]["properties"][side] = FACTS
    schemas["ProgramRequest"]["properties"]["dry_run"] = {"const": True}
    return found


def without_endless(document: dict[str, Any]) -> dict[str, Any]:
    """The description without the parameter that makes an answer go on for ever."""
    for methods in document["paths"].values():
        for operation in methods.values():
            declared = operation.get("parameters", [])
            operation["parameters"] = [each for each in declared if each["name"] != "live"]
    return document


def operations() -> list[tuple[str, str]]:
    database = deltalog.connect(program=SHOP, engine="reference")
    paths = make_app(Host(database), ServiceSettings()).openapi()["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path: Path = tmp_path_factory.mktemp("open_api") / "shop.db"
    facts = {"stock": [(1, 20), (2, 3)], "link": [("a", "b"), ("b", "c")]}
    database = deltalog.connect(path, program=SHOP, facts=facts, engine="reference")
    with serving(database, requests_per_second=1e9, seconds_max=2.0) as service:
        yield service


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("is_narrow", [True, False], ids=["narrowed", "as described"])
@pytest.mark.parametrize(("path", "method"), operations(), ids=" ".join)
def test_every_answer_is_as_described(
    shop: Service, path: str, method: str, is_narrow: bool
) -> None:
    document = without_endless(shop.get("/v1/openapi.json").json())
    schema = schemathesis.openapi.from_dict(narrowed(document) if is_narrow else document)
    operation = schema[path][method.upper()]
    load_all_checks()
    checks: list[Any] = [each for each in CHECKS.get_all() if each.__name__ in CHECKED]
    assert len(checks) == len(CHECKED)

    @effort(6, 2_000)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy())
        response = case.call(base_url=shop.address, session=None)
        case.validate_response(response, checks=checks)

    run()
    assert shop.get("/ready").status_code == 200
