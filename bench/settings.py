"""What is asked for on the command line, and what every part of the benchmark gives back."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from bench.contenders import CONTENDERS, Contender, Gap
from deltalog.runtime.engine_choice import ENGINES

SECONDS_BETWEEN_LINES = 5.0


@dataclass(frozen=True)
class Settings:
    """Nothing given means: as each part thinks right."""

    workloads: tuple[str, ...] = ()
    scale: float | None = None
    changes: int | None = None
    strategies: tuple[str, ...] = ()
    asked_engines: tuple[str, ...] = ()
    seconds_max: float = 6.0
    is_quick: bool = False
    peers: tuple[str, ...] = ()

    @property
    def engines(self) -> tuple[str, ...]:
        """For parts that compare strategies: one engine, unless others are asked for."""
        return self.asked_engines or ("reference",)

    @property
    def side_by_side(self) -> tuple[str, ...]:
        """For parts that are about engines: all, unless some are asked for."""
        return self.asked_engines or tuple(ENGINES)

    def contenders(self, among: Iterable[Contender] = CONTENDERS) -> list[Contender]:
        """Those whose strategy is asked for, on every engine that is; engines side by side."""
        return [
            replace(contender, engine=engine)
            for contender in among
            if not self.strategies or contender.strategy in self.strategies
            for engine in self.engines
        ]

    def includes(self, workload: str) -> bool:
        """Whether a workload is asked for, by its name or the beginning of it."""
        return not self.workloads or any(
            workload == name or workload.startswith(f"{name}_") for name in self.workloads
        )


class Finding(Protocol):
    """What a part found out: to be looked at, drawn, and kept."""

    @property
    def gaps(self) -> Sequence[Gap]: ...

    def show(self, console: Console) -> None: ...

    def charts(self) -> Mapping[str, str]:
        """Pictures by file name."""

    def as_json(self) -> object: ...


@dataclass
class Progress:
    """A line on standard error that says what is being measured; in a file, one now and then."""

    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    status: Status | None = None
    due: float = 0.0

    def say(self, part: str, text: str, done: int, total: int) -> None:
        line = f"{part} [{done}/{total}] {text}"
        if not sys.stderr.isatty():
            if time.monotonic() >= self.due:
                self.console.print(escape(line), style="dim")
                self.due = time.monotonic() + SECONDS_BETWEEN_LINES
            return
        if self.status is None:
            self.status = self.console.status("")
            self.status.start()
        self.status.update(escape(line))

    def clear(self) -> None:
        if self.status is not None:
            self.status.stop()
            self.status = None
