"""Walk at length, over every store and engine or the one that is named; see `walks.py`.

python tests/walks --steps 200000 --tally walks.json
python tests/walks --store file --engine embedded --seed 17
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path[1:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "properties")]

from families import random_family  # noqa: E402 - it needs these folders

from deltalog.runtime.engine_choice import ENGINES  # noqa: E402
from walks import STORES, Failure, shrunk, walk  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description="Random walks over databases beside a model.")
    parser.add_argument("--store", choices=STORES, help="both, if left out")
    parser.add_argument("--engine", choices=ENGINES, help="all, if left out")
    parser.add_argument("--steps", type=int, default=10**9, help="end each part after as many")
    parser.add_argument("--seconds", type=float, default=3600.0, help="end each part after as many")
    parser.add_argument("--failures", type=int, default=1, help="end each part after as many")
    parser.add_argument("--first", type=int, help="the first seed; else one that is fresh")
    parser.add_argument("--seed", type=int, help="one walk only")
    parser.add_argument("--tally", type=Path, help="a JSON file in which counts add up")
    options = parser.parse_args()
    failed = 0
    for store in STORES if options.store is None else [options.store]:
        for engine in ENGINES if options.engine is None else [options.engine]:
            failed += walked(store, engine, options)
    return 1 if failed else 0


def walked(store: str, engine: str, options: argparse.Namespace) -> int:
    """Walk until something says stop; returns the number of walks that failed."""
    seed = options.first if options.seed is None else options.seed
    seed = time.time_ns() % 10**12 if seed is None else seed
    started = time.monotonic()
    walks = steps = failures = 0
    while (
        time.monotonic() - started < options.seconds
        and steps < options.steps
        and failures < options.failures
        and not (options.seed is not None and walks)
    ):
        taken, failure = one(seed, store, engine)
        walks, steps, seed = walks + 1, steps + taken, seed + 1
        if failure is not None:
            failures += 1
            print(f"{shrunk(failure)}\n", flush=True)
    name = f"{engine}, {store}"
    seconds = time.monotonic() - started
    print(f"{name}: {walks} walks, {steps} steps, {failures} wrong, {seconds:.0f} s", flush=True)
    if options.tally is not None:
        add_up(options.tally, name, {"walks": walks, "steps": steps, "failures": failures})
    return failures


def one(seed: int, store: str, engine: str) -> tuple[int, Failure | None]:
    """The walk of a seed: one of ten is nervous, two are over random programs."""
    kind = seed % 10
    family = random_family(seed) if kind in (4, 8) else ()
    return walk(seed, store, engine, kind == 0 and store == "memory", family)


def add_up(path: Path, name: str, counts: dict[str, int]) -> None:
    held = json.loads(path.read_text()) if path.exists() else {}
    before = held.get(name, {})
    held[name] = {key: before.get(key, 0) + number for key, number in counts.items()}
    path.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
