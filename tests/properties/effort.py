"""How hard the properties try: a fixed, quick run by default, a long random one in `make fuzz`."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, Phase, settings

IS_FUZZ = bool(os.environ.get("DELTALOG_FUZZ"))


def fresh_seed() -> int:
    """A seed that is another one in each run, and the same in all processes of one."""
    return random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID")).randrange(10**9)


def effort(quick: int, fuzz: int) -> settings:
    """`quick` examples with fixed seeds, or `fuzz` fresh ones."""
    return settings(
        max_examples=fuzz if IS_FUZZ else quick,
        derandomize=not IS_FUZZ,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
