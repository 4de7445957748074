"""How long until the first realization of "user u must (not) see document d", and until all?

    python -m bench.view_updates [--requests 20] [--scale 1.0]

Workload w7: users in nested groups, documents in nested folders, grants and denials. Half of the
requests take a permission away, half give one; views are stored, and the engine is embedded.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import deltalog
from bench.workloads import permissions

BUDGET = deltalog.Budget(nodes=20_000, seconds=10, changes=1, new_values=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    workload = permissions(given.scale, changes=1)
    db = deltalog.connect(program=workload.program, facts=dict(workload.base))
    draw = random.Random(7)
    known = db.facts("can")
    held = sorted(known)
    users = sorted({user for user, _ in workload.base["member"]})
    documents = sorted({document for document, _ in workload.base["doc_in"]})
    print(f"{len(held):,} permissions, {sum(map(len, workload.base.values())):,} base facts")
    for sign in "-+":
        first, whole, counts = [], [], []
        for _ in range(given.requests):
            row = draw.choice(held)
            while sign == "+" and row in known:
                row = draw.choice(users), draw.choice(documents)
            begun = time.perf_counter()
            found = db.realize(f"{sign}can({row[0]}, {row[1]})", budget=BUDGET)
            answers = iter(found)
            any_ = next(answers, None)
            first.append(time.perf_counter() - begun)
            counts.append((any_ is not None) + sum(1 for _ in answers))
            whole.append(time.perf_counter() - begun)
        print(
            f"{sign}can: first answer {_shown(first)}, all of one change {_shown(whole)}, "
            f"{statistics.median(counts):.0f} answers in the median"
        )


def _shown(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.0f} ms (at most {max(seconds) * 1e3:.0f})"


if __name__ == "__main__":
    main()
