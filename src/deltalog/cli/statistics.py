"""Statistics of an evaluation on standard error: rounds, and generated facts per predicate."""

from __future__ import annotations

from rich.text import Text

from deltalog.cli.terminal import counted_noun, write_message
from deltalog.runtime.fixpoint import Statistics


def show_statistics(title: str, statistics: Statistics) -> None:
    counts = sorted(statistics.generated.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"  {count:>12,}  {name}" for name, count in counts]
    work = f"{counted_noun(statistics.rounds, 'round')}, {counted_noun(statistics.total, 'fact')}"
    write_message(Text("\n".join((f"{title}  {work}", *lines)), style="dim"))
