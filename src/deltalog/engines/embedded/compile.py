"""Compile the kernels now rather than in the first query.

    python -m deltalog.engines.embedded.compile

numba keeps what it compiled on disk, beside the package or in the user's cache directory, so this
costs some seconds once per machine and nothing afterwards.
"""

from __future__ import annotations

import sys
import time

from deltalog.engines.embedded.engine import EmbeddedEngine
from deltalog.plan.nodes import Assign, Compute, Fixed, Match, Pipeline, RulePlan, Slot


def compile_kernels() -> float:
    """Run a tiny rule on every kind of kernel; answers the seconds it took."""
    started = time.perf_counter()
    engine = EmbeddedEngine()
    for name in ("a", "b"):
        engine.create(name, ("int", "int"))
    engine.insert("a", [(1, 2), (2, 3)])
    successor = Compute("+", "int", (Slot(1), Fixed(1, "int")))
    steps = (Match("a", bind=((0, Slot(0)), (1, Slot(1)))), Assign(Slot(2), successor))
    plan = RulePlan("b", (), Pipeline(steps, (Slot(0), Slot(2)), 3), ())
    engine.run_round(engine.prepare((plan,)))
    assert list(engine.lookup("b", {0: 1})) == [(1, 3)]
    engine.delete("b", [(1, 3)])
    engine.clear("a")
    engine.clear("b")
    return time.perf_counter() - started


if __name__ == "__main__":
    print("compiling the kernels of the embedded engine (once per machine) ...", file=sys.stderr)
    print(f"done in {compile_kernels():.1f} s", file=sys.stderr)
