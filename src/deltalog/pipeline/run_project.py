"""Run a project from Python: one call for a scheduler or a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from deltalog.diagnostics.report import Diagnostic
from deltalog.pipeline.problems import PartsFailedError
from deltalog.pipeline.project import read_project
from deltalog.pipeline.run import Pipeline
from deltalog.pipeline.step import Step


@dataclass(frozen=True)
class RunResult:
    """The commits of a run, the version of the state after it, and the parts that failed."""

    version: int
    steps: tuple[Step, ...]
    problems: tuple[Diagnostic, ...] = ()

    @property
    def rejected(self) -> int:
        """How many rows went to the quarantine."""
        return sum(len(step.refused) for step in self.steps)


def run_project(
    path: str | Path, spark: SparkSession | None = None, *, raise_problems: bool = True
) -> RunResult:
    """Take everything that is new; `deltalog.run_project` describes the arguments."""
    steps: list[Step] = []  # of a run that fails, those before
    with Pipeline(read_project(path), spark) as pipeline:
        try:
            steps += pipeline.steps()
        except PartsFailedError as error:
            if raise_problems:
                raise
            return RunResult(pipeline.database.version, tuple(steps), error.diagnostics)
        return RunResult(pipeline.database.version, tuple(steps))
