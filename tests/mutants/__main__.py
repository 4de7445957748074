"""A check on the tests: break one place at a time, and see that they notice. `make mutants`

Each mutant is one replacement in one source file, applied to a copy of the package in a temporary
folder; the repository is never touched. A mutant that survives, or whose text is no longer there,
fails the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
QUICK = (
    "tests/conformance",
    "tests/properties/test_exhaustive.py",
    "tests/unit/test_case_files.py",
)
SECONDS_MAX = 300


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = QUICK


def mutants() -> list[Mutant]:
    text = (Path(__file__).parent / "mutants.toml").read_text(encoding="utf-8")
    return [
        Mutant(
            name, entry["file"], entry["before"], entry["after"], tuple(entry.get("tests", QUICK))
        )
        for name, entry in tomllib.loads(text).items()
    ]


def outcome(mutant: Mutant, is_mutant: bool = True) -> str:
    """`killed`, `survived`, or what is wrong with the mutant itself."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "deltalog"
        shutil.copytree(ROOT / "src" / "deltalog", package)
        path = package / mutant.file
        source = path.read_text(encoding="utf-8")
        if is_mutant and source.count(mutant.before) != 1:
            return f"its text occurs {source.count(mutant.before)} times"
        if is_mutant:
            path.write_text(source.replace(mutant.before, mutant.after), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-n", "2", *mutant.tests]
        try:
            run = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            return "killed (it never ended)"
        return "survived" if run.returncode == 0 else "killed"


def main() -> int:
    console = Console()
    chosen = [m for m in mutants() if not sys.argv[1:] or m.name in sys.argv[1:]]
    table = Table("mutant", "file", "outcome")
    failures = 0
    untouched = Mutant("untouched", "__init__.py", "import", "import")
    if outcome(untouched, is_mutant=False) != "survived":
        console.print("the tests fail without any mutant: nothing can be learnt")
        return 1
    with console.status("mutating ..."):
        for mutant in chosen:
            result = outcome(mutant)
            failures += not result.startswith("killed")
            console.print(f"{mutant.name}: {result}")
            table.add_row(mutant.name, mutant.file, result)
    console.print(table)
    console.print(f"{len(chosen) - failures} of {len(chosen)} mutants killed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
