"""The test of the tests: break the source in one place at a time; some test must fail every time.

    make mutants                    all of them
    python tests/mutants WORD …     those whose name or file contains one of the words

Each mutant is made in a copy of the package, which the tests import instead; the sources are not
touched. First the tests must pass on a copy without a mutant, or a failure would show nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "deltalog"
WORKERS = 2
SECONDS_MAX = 900
"""Many times what the tests of any mutant take: a kernel that is broken may never end."""
COMPILED = "engines/embedded/"
"""A mutant below this compiles all kernels anew; for others those that are compiled are copied."""
_cached = shutil.ignore_patterns("__pycache__")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    mutant: str
    outcome: str
    noticed: str
    seconds: float

    @property
    def is_killed(self) -> bool:
        return self.outcome == "killed"

    def __str__(self) -> str:
        return f"{self.outcome:9} {self.seconds:5.1f} s  {self.mutant:64} {self.noticed}"


def tested(arguments: Iterable[str], mutant: Mutant | None) -> subprocess.CompletedProcess[str]:
    """Run the tests on a copy of the package, with the mutant in it."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "deltalog"
        is_kernel = mutant is not None and mutant.file.startswith(COMPILED)
        shutil.copytree(PACKAGE, copy, ignore=_cached if is_kernel else None)
        if mutant is not None:
            path = copy / mutant.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("DELTALOG_FUZZ", None)
        where = "import deltalog; print(deltalog.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", where], env=environment, capture_output=True, text=True
        )
        if found.returncode == 0 and folder not in found.stdout:
            raise SystemExit(f"the tests would import {found.stdout.strip()}, not the copy")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "--exitfirst", "--tb=no", "-rfE", *arguments],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX,
        )  # fmt: skip


def tried(mutant: Mutant) -> Result:
    """Killed by a test, a crash or an endless loop; survived, lost (its text is gone), unclear."""
    started = time.monotonic()
    found = (PACKAGE / mutant.file).read_text(encoding="utf-8").count(mutant.old)
    if found != 1:
        return Result(mutant.name, "lost", f"{mutant.file}: found {found} times", 0.0)
    try:
        done = tested(mutant.tests, mutant)
    except subprocess.TimeoutExpired:
        return Result(mutant.name, "killed", "its tests do not end", time.monotonic() - started)
    seconds = time.monotonic() - started
    if done.returncode == 0:
        return Result(mutant.name, "SURVIVED", " ".join(mutant.tests), seconds)
    if done.returncode < 0:  # a broken kernel may end its process: nobody overlooks that
        crashed = f"the process ended by {signal.Signals(-done.returncode).name}"
        return Result(mutant.name, "killed", crashed, seconds)
    failed = FAILED.search(done.stdout)
    if done.returncode != 1 or failed is None:
        return Result(mutant.name, "unclear", (done.stdout + done.stderr)[-300:], seconds)
    return Result(mutant.name, "killed", failed[1].removeprefix("tests/"), seconds)


def compile_kernels() -> None:
    """Compile the kernels of the sources, which copies take along; else each compiles its own."""
    command = [sys.executable, "-m", "deltalog.engines.embedded.compile"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    subprocess.run(command, env=environment, check=True)


def control(chosen: Iterable[Mutant]) -> str | None:
    """What fails without a mutant: then a failure with one would show nothing."""
    words: dict[str, set[str]] = {}
    for mutant in chosen:
        file, *rest = mutant.tests
        words.setdefault(file, set()).add(f"({rest[1]})" if rest else "(test)")
    for file, selections in words.items():
        done = tested([file, "-n", str(WORKERS), "-k", " or ".join(sorted(selections))], None)
        if done.returncode != 0:
            return done.stdout[-2000:]
    return None


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(w in m.name or w in m.file for w in words)]
    print(f"{len(chosen)} mutants; first their tests without one", flush=True)
    started = time.monotonic()
    compile_kernels()
    failure = control(chosen)
    if failure is not None:
        print("the tests fail without a mutant, so nothing can be learnt from them:", failure)
        return 1
    print(f"passed    {time.monotonic() - started:5.1f} s", flush=True)
    results = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(tried, chosen):
            print(result, flush=True)
            results.append(result)
    killed = sum(result.is_killed for result in results)
    print(f"{killed} of {len(results)} killed in {time.monotonic() - started:.0f} s")
    return 0 if killed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
