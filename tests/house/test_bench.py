"""The benchmark runs, at a tiny scale: what it claims is checked, what it writes can be read.

Its figures are looked at in `make bench`; here only workloads that nobody else would notice if they
changed, and that every part says what it found.
"""

from __future__ import annotations

import doctest
import hashlib
import importlib
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from documents import ROOT

MODULES = ("charts", "crossover", "figures", "many_rules", "workloads")
DIGESTS = {
    "w1_scc": "d7cc734eed6961e8",
    "w1_dag": "a93831caec37ea78",
    "w1_chain": "0ad20ff41dd91bb8",
    "w1_grid": "5084fffa6c141977",
    "w2": "b3433ac4c6fdd5be",
    "w3": "eb248bef44da497e",
    "w4": "82078a6fddd5611d",
    "w5_1k": "d8a2690e0d26aeb1",
    "w7": "e82370f1bd976669",
}


@pytest.fixture(autouse=True)
def bench_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_every_part_says_what_it_found(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    tiny = ("--workloads", "w1_scc,w1_dag,w5_10", "--scale", "0.004", "--changes", "2")
    done = bench(*tiny, "--results", tmp_path, "--json", figures)
    assert done.returncode == 0, done.stderr
    for words in (
        "All contenders gave the same deltas",
        "Checked: magic on reference generated exactly the same facts",
        "Checked: magic virtual on reference generated exactly the same facts",
        "Recomputing is cheaper from this share of changed facts on",
        "facts in path__del",
        "Milliseconds to install a program",
        "`delta` does not handle recursion: w1_scc: delta on reference",
        "other systems",
    ):
        assert words in done.stdout
    found = json.loads(figures.read_text(encoding="utf-8"))
    measured = {(run["workload"], run["strategy"]) for run in found["single_changes"]}
    assert {("w1_scc", "magic"), ("w1_dag", "rederive"), ("w5_10", "delta")} <= measured
    assert all(run["is_same"] for run in found["follows_change"] if run["strategy"] == "magic")
    pictures = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert pictures == [
        "crossover.svg",
        "follows_change.svg",
        "single_changes_facts.svg",
        "single_changes_milliseconds.svg",
    ]
    for picture in pictures:
        assert ElementTree.parse(tmp_path / picture).getroot().tag.endswith("svg")


def test_unknown_names_are_refused() -> None:
    done = bench("--strategies", "guess", "--engines", "steam", "--workloads", "w9", "--parts", "x")
    assert done.returncode == 2
    for name in ("guess", "steam", "w9", "x"):
        assert f"`{name}`" in done.stderr


def test_a_difference_between_strategies_ends_the_benchmark() -> None:
    from bench.contenders import MAGIC, REDERIVE
    from bench.measure import BenchError, Comparison, Transaction
    from bench.workloads import workload

    made = workload("w1_scc", 0.01, 2)
    insert = Transaction("insert", {"edge": [(1, 777)]}, {})
    comparison = Comparison(made, 0.01, [insert])
    comparison.add(REDERIVE)
    comparison.steps = [Transaction("insert", {"edge": [(1, 778)]}, {})]
    with pytest.raises(BenchError, match="transaction 1 has another delta"):
        comparison.add(MAGIC)


@pytest.mark.parametrize("name", DIGESTS)
def test_workloads_stay_what_they_were(name: str) -> None:
    """At their full size; figures of different days are worth comparing only then."""
    from bench.workloads import workload

    made = workload(name)
    said = repr((sorted(made.base.items()), sorted(made.phases.items())))
    assert hashlib.sha256(said.encode()).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"bench.{module}")).failed == 0
