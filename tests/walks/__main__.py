"""Walk at length; see `walks.py`.

python tests/walks --store file --engine embedded --seconds 600 --tally walks.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path[1:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "properties")]

from families import random_family  # noqa: E402 - it is in one of these folders

from walks import shrunk, walk  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=("memory", "file"), default="memory")
    parser.add_argument("--engine", default="embedded")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--seed", type=int, help="one walk only")
    parser.add_argument("--first", type=int, default=None, help="the first of many seeds")
    parser.add_argument("--failures", type=int, default=1, help="go on until there are as many")
    parser.add_argument("--nervous", action="store_true")
    parser.add_argument("--tally", type=Path, help="a JSON file in which counts add up")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else options.first
    seed = time.time_ns() % 10**12 if seed is None else seed
    started, walks, steps, failures = time.monotonic(), 0, 0, 0
    while time.monotonic() - started < options.seconds and steps < options.steps:
        kind = seed % 10  # one walk of ten is nervous, two are over random programs
        nervous = options.nervous or (kind == 0 and options.store == "memory")
        family = random_family(seed) if kind in (4, 8) else ()
        taken, failure = walk(seed, options.store, options.engine, nervous, family)
        walks, steps, seed = walks + 1, steps + taken, seed + 1
        if failure is not None:
            failures += 1
            print(f"{shrunk(failure)}\n", flush=True)
            if failures >= options.failures:
                break
        if options.seed is not None:
            break
    seconds = time.monotonic() - started
    name = f"{options.engine}, {options.store}"
    print(
        f"{name}: {walks} walks, {steps} steps, {failures} failures in {seconds:.0f} s", flush=True
    )
    if options.tally is not None:
        add_up(options.tally, name, walks, steps, failures)
    return 1 if failures else 0


def add_up(path: Path, name: str, walks: int, steps: int, failures: int) -> None:
    counts = json.loads(path.read_text()) if path.exists() else {}
    before = counts.get(name, {"walks": 0, "steps": 0, "failures": 0})
    now = {"walks": walks, "steps": steps, "failures": failures}
    counts[name] = {key: before[key] + number for key, number in now.items()}
    path.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
