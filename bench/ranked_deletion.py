"""What the rank of first derivation saves: deletions in one strongly connected component.

Plain delete-and-rederive estimates that every fact is gone that lost a derivation; in a component
where everything reaches everything that is nearly all, and nearly all come back. Guarded by ranks,
a fact with another derivation from older facts is never touched. Compared are the facts in
`path__overdeleted`: `rederive` is guarded, `demand` on stored views uses the plain rules.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.contenders import DEMAND, REDERIVE, Contender, Gap
from bench.figures import NOTHING, compact, pair, ratio
from bench.measure import Comparison, Run, Spread, in_common, transactions
from bench.settings import Progress, Settings
from bench.workloads import CLOSURE, Fact, Workload, graph_changes, workload
from deltalog.rewrites import names

CHANGES = 8
RING_NODES = 600
SCALE = 0.06
ESTIMATE = names.overdeleted_name("path")


def ring_with_chords(scale: float, changes: int, seed: int = 25) -> Workload:
    """One strongly connected component: a ring, and half as many chords as nodes."""
    draw = random.Random(seed)
    nodes = max(10, int(RING_NODES * scale))
    edges: set[Fact] = {(node, (node + 1) % nodes) for node in range(nodes)}
    while len(edges) < nodes + nodes // 2:
        a, b = draw.sample(range(nodes), 2)
        edges.add((a, b))
    base = sorted(edges)
    phases = graph_changes(base, nodes, "any", seed, changes)
    return Workload("ring with chords", CLOSURE, {"edge": base}, ("path",), phases)


@dataclass(frozen=True)
class RankedDeletion:
    """Guarded and plain deletions of the same edges, per graph and engine."""

    comparisons: tuple[Comparison, ...]
    engines: tuple[str, ...]

    @property
    def gaps(self) -> list[Gap]:
        return [gap for comparison in self.comparisons for gap in comparison.gaps]

    def pairs(self) -> list[tuple[Comparison, str, Run, Run]]:
        """Where both were measured, and as far as both came: guarded by ranks, plain."""
        found = []
        for comparison in self.comparisons:
            for engine in self.engines:
                guarded = comparison.run_of(REDERIVE.label, engine)
                plain = comparison.run_of(DEMAND.label, engine)
                if guarded is not None and plain is not None:
                    guarded, plain = in_common(guarded, plain)
                    found.append((comparison, engine, guarded, plain))
        return found

    def show(self, console: Console) -> None:
        title = f"Deleting single edges: facts in {ESTIMATE}, median / mean"
        table = Table(title=title, title_justify="left", header_style="bold", box=None)
        for heading in ("graph", "engine"):
            table.add_column(heading)
        for heading in ("edges", "paths", "n", "really gone"):
            table.add_column(heading, justify="right")
        for heading in ("by ranks", "plain", "plain ÷ ranks"):
            table.add_column(heading, justify="right", style="cyan")
        for heading in ("by ranks ms", "plain ms"):
            table.add_column(heading, justify="right")
        for comparison, engine, guarded, plain in self.pairs():
            table.add_row(
                f"{comparison.workload.name}@{comparison.scale:g}",
                engine,
                compact(comparison.workload.size),
                compact(guarded.load_facts),
                *_cells(guarded, plain),
            )
        console.print(table)
        console.print()

    def charts(self) -> dict[str, str]:
        return {}

    def as_json(self) -> list[object]:
        return [
            {
                "graph": comparison.workload.name,
                "scale": comparison.scale,
                "engine": engine,
                "paths": guarded.load_facts,
                "really_gone": [len(sample.change) - 1 for sample in guarded.of("delete")],
                "estimated_by_ranks": _estimates(guarded),
                "estimated_plainly": _estimates(plain),
            }
            for comparison, engine, guarded, plain in self.pairs()
        ]


def _estimates(run: Run) -> list[int]:
    return [sample.generated.get(ESTIMATE, 0) for sample in run.of("delete")]


def _cells(guarded: Run, plain: Run) -> list[str]:
    by_ranks, plainly = Spread.of(_estimates(guarded)), Spread.of(_estimates(plain))
    gone = Spread.of([len(sample.change) - 1 for sample in guarded.of("delete")])
    spent, plain_spent = guarded.milliseconds("delete"), plain.milliseconds("delete")
    if not (by_ranks and plainly and gone and spent and plain_spent):
        return [NOTHING] * 7
    return [
        compact(gone.count),
        pair(gone),
        pair(by_ranks),
        pair(plainly),
        ratio(plainly.mean, by_ranks.mean),
        pair(spent),
        pair(plain_spent),
    ]


def ranked_deletion(settings: Settings, progress: Progress) -> RankedDeletion:
    """Delete the same edges guarded by ranks and plainly."""
    scale = settings.scale if settings.scale is not None else SCALE
    changes = settings.changes or CHANGES
    graphs = [ring_with_chords(scale, changes), workload("w1_scc", scale, changes)]
    comparisons = []
    for number, graph in enumerate(graphs, start=1):
        steps = [step for step in transactions(graph) if step.kind in ("delete", "reinsert")]
        comparison = Comparison(graph, scale, steps, settings.seconds_max)
        for engine in settings.engines:
            for each in (REDERIVE, DEMAND):
                text = f"{graph.name}: {each.label} on {engine}"
                progress.say("deletion by ranks", text, number, len(graphs))
                comparison.add(Contender(each.strategy, engine=engine))
        comparisons.append(comparison)
    return RankedDeletion(tuple(comparisons), settings.engines)
