"""Every program case by the Spark engine where all rows fit the driver: no session is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from test_spark_programs import UPKEEP

from casefiles import find, identify, read_case
from conformance.test_programs import applied, change_in, check, without_facts
from deltalog import ChangeSet
from deltalog.engines.spark import engine as engine_module
from deltalog.language.parser import parse_text
from treatments import contents, difference


class NoSession:
    """Has settings, and nothing else: whatever is asked of it fails."""

    conf: ClassVar[dict[str, str]] = {}


def no_session(**_: Any) -> NoSession:
    return NoSession()


@pytest.mark.parametrize("upkeep", UPKEEP)
@pytest.mark.parametrize("path", find("programs"), ids=identify)
def test_program_on_the_driver(path: Path, upkeep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are there from the beginning, every `update` is one transaction."""
    monkeypatch.setattr(engine_module, "active_or_new_session", no_session)
    case = read_case(path)
    program, facts = without_facts(parse_text(case.text("program")))
    database = UPKEEP[upkeep].connect(program, facts)
    delta = ChangeSet()
    for section in case.sections:
        if section.name == "update":
            before = contents(database)
            delta = applied(database, change_in(section.text, database.relations))
            assert delta == difference(before, contents(database)).only(*database.model.views)
        elif section.name == "delta":
            assert delta == change_in(section.text, database.relations)
        elif section.words[0] == "expect":
            check(case, section, contents(database))
    assert database.audit() == ()
