"""Open a database in memory, as `deltalog.connect` does without a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from deltalog.checks.program import check_program
from deltalog.engines.base import Engine
from deltalog.language.ast import Program
from deltalog.language.parser import parse_program
from deltalog.runtime.database import MemoryDatabase
from deltalog.runtime.fixpoint import Watch
from deltalog.runtime.limits import Limits
from deltalog.runtime.model import Options, make_model
from deltalog.runtime.protocols import Facts, Participant
from deltalog.runtime.read_program import read_program


def open_in_memory(
    program: str | Path | Program,
    engine: Callable[[], Engine],
    options: Options,
    limits: Limits,
    watch: Watch | None,
    facts: Facts,
    participants: tuple[Participant, ...] = (),
) -> MemoryDatabase:
    """Check the program, load the facts and compute all stored views."""
    parsed = program if isinstance(program, Program) else parse_program(read_program(program))
    model = make_model(check_program(parsed), options)
    return MemoryDatabase(model, engine(), limits, watch, facts, participants=participants)
