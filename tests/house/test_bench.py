"""The benchmark runs, at a tiny scale: what it claims is checked, what it writes can be read.

Its figures are looked at in `make bench`; here only workloads that nobody else would notice if they
changed, and that every part says what it found.
"""

from __future__ import annotations

import doctest
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from documents import ROOT

import deltalog
from waiting import HANG_SECONDS

MODULES = (
    "charts",
    "crdt",
    "crossover",
    "figures",
    "many_rules",
    "peers",
    "side_by_side",
    "workloads",
)
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
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_SECONDS)


def test_every_part_says_what_it_found(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    tiny = ("--workloads", "w1_scc,w1_dag,w5_10", "--scale", "0.004", "--changes", "2")
    done = bench(*tiny, "--engines", "reference", "--results", tmp_path, "--json", figures)
    assert done.returncode == 0, done.stderr
    for words in (
        "All contenders gave the same deltas",
        "Checked: magic on reference generated exactly the same facts",
        "Checked: magic virtual on reference generated exactly the same facts",
        "Recomputing is cheaper from this share of changed facts on",
        "facts in path__overdeleted",
        "`delta` does not handle recursion: w1_scc: delta on reference",
        "other systems",
        "Installing rules",
        "a file should add at most 2 bare inserts",
        "not asked for: engine embedded at full size",
    ):
        assert words in done.stdout
    found = json.loads(figures.read_text(encoding="utf-8"))
    measured = {(run["workload"], run["strategy"]) for run in found["single_changes"]}
    assert {("w1_scc", "magic"), ("w1_dag", "rederive"), ("w5_10", "delta")} <= measured
    assert all(run["is_same"] for run in found["follows_change"] if run["strategy"] == "magic")
    pictures = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert pictures == [
        "crossover.svg",
        "durability.svg",
        "embedded.svg",
        "follows_change.svg",
        "installing.svg",
        "single_changes_facts.svg",
        "single_changes_milliseconds.svg",
    ]
    for picture in pictures:
        assert ElementTree.parse(tmp_path / picture).getroot().tag.endswith("svg")


def test_the_embedded_engine_is_measured_beside_the_limit(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    parts = ("--parts", "embedded,crossover", "--engines", "embedded", "--seconds", "0.2")
    tiny = ("--workloads", "w1_dag,w5_10", "--scale", "0.01", "--changes", "2", "--recorded-peers")
    done = bench(*parts, *tiny, "--results", tmp_path, "--json", figures)
    assert done.returncode == 0, done.stderr
    assert "Views are what recomputation says: w1_dag (by hand), w5_10 (reference)" in done.stdout
    assert "No targets: they are for workloads at full size." in done.stdout
    found = json.loads(figures.read_text(encoding="utf-8"))
    full = {each["workload"]: each for each in found["embedded"]["measured"]}
    assert set(full["w1_dag"]["costs"]) == {"insert", "delete", "reinsert", "batch"}
    assert full["w1_dag"]["costs"]["delete"]["limit"]["count"] >= 1
    assert full["w5_10"]["costs"]["update"]["with_rows"]["median"] > 0
    assert all(each["verified"] and each["stage"] == "done" for each in full.values())
    assert {each["engine"] for each in found["crossover"]} == {"embedded"}


@pytest.mark.parametrize("engine", ["reference", "embedded"])
@pytest.mark.parametrize("rules", ["PROGRAM", "PUBLISHED"])
def test_a_text_is_what_was_typed(engine: str, rules: str) -> None:
    """Loaded as a whole, and edit by edit, with edits taken back, it is the order of a walk."""
    from bench import crdt

    edits = crdt.typed(120)
    whole, _ = crdt.open_text(edits, getattr(crdt, rules), engine)
    expected = crdt.followers(crdt.text_order(edits.insert, edits.remove))
    assert whole.facts("next_visible") == expected
    assert len(expected) == len(edits.insert) - len(edits.remove) - 1
    one_by_one, _ = crdt.open_text(crdt.Edits((), ()), getattr(crdt, rules), engine)
    for relation, rows in edits.facts.items():
        for number, row in enumerate(rows):
            one_by_one.apply(insert={relation: [row]})
            if number % 3 == 0:
                one_by_one.apply(delete={relation: [row]})
                one_by_one.apply(insert={relation: [row]})
    assert one_by_one.facts("next_visible") == expected


def test_a_text_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from bench import crdt

    edits = crdt.typed(300)
    for name, rows in (("insert.txt", edits.insert), ("remove.txt", edits.remove)):
        lines = (" ".join(map(str, row)) for row in rows)
        (tmp_path / name).write_text("\n".join(lines), encoding="ascii")
    assert crdt.recorded(tmp_path) == edits
    assert crdt.main([str(tmp_path), "--edits", "5", "--published"]) == 0
    shown = capsys.readouterr().out
    for words in ("in next_visible", "undo insert", "redo remove", "in skip_blank"):
        assert words in shown


def test_unknown_names_are_refused() -> None:
    unknown = ("--strategies", "guess", "--engines", "steam", "--workloads", "w9", "--parts", "x")
    done = bench(*unknown, "--peers", "nobody")
    assert done.returncode == 2
    for name in ("guess", "steam", "w9", "x", "nobody"):
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


def test_what_differs_from_recomputation_ends_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import full_scale

    honest = deltalog.MemoryDatabase.facts
    spoiled = {"path": {(0, 0)}}
    monkeypatch.setattr(
        deltalog.MemoryDatabase,
        "facts",
        lambda db, name: honest(db, name) | spoiled.get(name, set()),
    )
    tiny = ["w1_chain", "--scale", "0.02", "--changes", "2", "--engine", "reference"]
    assert full_scale.main(tiny) == 1
    assert "views are not what recomputation says" in capsys.readouterr().err


def test_the_view_of_duckdb_is_ours() -> None:
    pytest.importorskip("duckdb")
    from bench.full_scale import Measured, full_scale

    seen: list[Measured] = []
    found = full_scale("w6_500k", 0.002, 2, 1.0, "reference", seen.append)
    assert found.verified == "DuckDB"
    assert found.duckdb is not None
    assert "move" in found.costs
    assert Measured.of_json(json.dumps(found.as_json())) == found


def test_the_limit_keeps_a_closure() -> None:
    import random

    from bench.limit import Limit

    draw = random.Random(1)
    closure, edges = Limit(capacity=1 << 15, stack=1 << 12), set()
    for _ in range(300):
        edge = (draw.randrange(12), draw.randrange(12))
        if edge in edges:
            closure.apply(delete=[edge])
        else:
            closure.apply(insert=[edge])
        edges ^= {edge}
        fresh = Limit(capacity=1 << 15, stack=1 << 12)
        fresh.apply(insert=sorted(edges))
        assert closure.keys().tolist() == fresh.keys().tolist() == _closed(edges)


def _closed(edges: set[tuple[int, int]]) -> list[int]:
    paths = set(edges)
    while more := {(x, z) for x, y in paths for a, z in edges if a == y} - paths:
        paths |= more
    return sorted((x << 32) + y for x, y in paths)


def test_targets_are_judged_by_what_was_measured() -> None:
    from bench.full_scale import Cost, Measured
    from bench.measure import Spread
    from bench.targets import verdicts

    def spread(milliseconds: float) -> Spread:
        return Spread(10, milliseconds, milliseconds)

    def measured(name: str, kind: str, ours: float, limit: float | None = None) -> Measured:
        by_hand = spread(limit) if limit is not None else None
        cost = Cost(10, 1.0, spread(ours), spread(ours), by_hand)
        return Measured(name, 1.0, "embedded", costs={kind: cost})

    made = [
        measured("w1_scc", "delete", 1.0, 0.3),
        measured("w1_dag", "insert", 1.0, 0.2),
        measured("w5_10", "update", 0.05),
        measured("w5_1m", "update", 0.06),
        measured("w6", "insert", 0.2),
    ]
    made[-1].duckdb = spread(100.0)
    found = {(v.workload, v.words): v.is_reached for v in verdicts({m.workload: m for m in made})}
    assert found == {
        ("w1_scc", "≤4× limit"): True,
        ("w1_scc", "5× faster"): True,
        ("w1_dag", "≤4× limit"): False,
        ("w1_dag", "5× faster"): False,
        ("w5_10", "not slower"): True,
        ("w5_1m", "≤1.3× w5_10"): True,
        ("w6", "<0.1 ms"): False,
        ("w6", "100× DuckDB"): True,
    }


def test_a_peer_of_the_same_run_replaces_what_is_recorded() -> None:
    from bench.full_scale import Beside, Cost, Measured
    from bench.measure import Spread
    from bench.peers import DIFFERENTIAL
    from bench.targets import beside_peer, verdicts

    ours, peer = Spread(10, 1.0, 1.0), Spread(4, 6.0, 30.0)
    beside = {DIFFERENTIAL: Beside(peer, Spread(4, 2.0, 3.0))}
    cost = Cost(10, 1.0, ours, ours, beside_peers=beside)
    measured = Measured("w2", 1.0, "embedded", costs={"insert": cost})
    recorded = {v.words: v for v in verdicts({"w2": measured})}
    assert recorded["5× faster, median"].ratio == 7.49
    assert all(verdict.is_recorded for verdict in recorded.values())
    measured.peers_load_seconds[DIFFERENTIAL] = 0.5
    found = {v.words: (v.ratio, v.is_recorded) for v in verdicts({"w2": measured})}
    assert found == {"5× faster, median": (3.0, False), "5× faster, mean": (10.0, False)}
    small = Measured("w2", 0.1, "embedded", costs={"insert": cost})
    small.peers_load_seconds[DIFFERENTIAL] = 0.5
    assert beside_peer(small, "insert") is not None  # recorded figures are for full size only


FAKE_PEER = """\
#!{python}
import sys
sys.path[:0] = {path}
from bench.side_by_side import Contents

edges = set()
for line in open(sys.argv[2]):
    match line.split():
        case ["relations" | "phase", *_]:
            pass
        case [sign, "0", x, y]:
            (edges.add if sign == "+" else edges.remove)((int(x), int(y)))
        case [kind]:
            print("time", kind, 2000)
paths = set(edges)
while more := {{(x, z) for x, y in paths for a, z in edges if a == y}} - paths:
    paths |= more
found = Contents.of(paths)
print("view path", found.count, found.checksum + {error})
"""


def fake_executable(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def test_peers_make_the_same_transactions_and_must_agree(tmp_path: Path) -> None:
    from bench.full_scale import Measured, full_scale
    from bench.measure import BenchError

    fake = partial(FAKE_PEER.format, python=sys.executable, path=[str(ROOT), str(ROOT / "src")])
    honest = fake_executable(tmp_path / "honest", fake(error=0))

    def measured(text: str) -> Measured:
        peers = {"first": honest, "second": fake_executable(tmp_path / "second", text)}
        return full_scale("w1_chain", 0.02, 3, 5.0, "reference", lambda _: None, peers)

    found = measured(fake(error=0))
    assert found.peers_load_seconds == {"first": 0.002, "second": 0.002}
    for system in ("first", "second"):
        counts = {kind: cost.beside_peers[system].peer.count for kind, cost in found.costs.items()}
        assert counts == {"insert": 3, "delete": 3, "reinsert": 3, "batch": 1}
    assert Measured.of_json(json.dumps(found.as_json())) == found
    with pytest.raises(BenchError, match="second computes another view path"):
        measured(fake(error=1))
    with pytest.raises(BenchError, match="which means nothing"):
        measured("#!/bin/sh\necho nonsense")
    found = measured("#!/bin/sh\nkill -9 $$")
    assert found.peers_load_seconds == {"first": 0.002}
    assert found.missing == {"second in this run": "it was ended by signal 9"}


def test_a_peer_that_cannot_be_built_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench import side_by_side
    from bench.peers import DBSP

    build = partial(side_by_side.build, DBSP)
    said: list[str] = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(side_by_side.UnavailableError, match="there is no cargo"):
        build(said.append)
    fake_executable(tmp_path / "bin" / "cargo", "#!/bin/sh\necho 'error: no crates' >&2; exit 101")
    with pytest.raises(side_by_side.UnavailableError, match="cannot build it: error: no crates"):
        build(said.append)
    fake_executable(tmp_path / "bin" / "cargo", "#!/bin/sh\necho Compiling >&2")
    executable = build(said.append)
    assert executable == tmp_path / "cache" / "deltalog" / "peers" / "release" / "dbsp-peer"
    assert said == ["error: no crates", "Compiling"]


def test_every_peer_has_a_package_and_every_program() -> None:
    from bench.side_by_side import PACKAGES, PROGRAMS, PROJECT

    manifests = {
        tomllib.loads(file.read_text(encoding="utf-8"))["package"]["name"]: file.parent
        for file in PROJECT.glob("*/Cargo.toml")
    }
    assert set(PACKAGES.values()) < set(manifests)
    for package in PACKAGES.values():
        programs = (manifests[package] / "src" / "programs.rs").read_text(encoding="utf-8")
        assert set(re.findall(r'"(\w+)" => ', programs)) == set(PROGRAMS.values())


@pytest.mark.skipif("DELTALOG_BUILD_PEERS" not in os.environ, reason="compiles Rust for minutes")
def test_peers_compute_the_same_views() -> None:
    """On every workload, tiny: that they agree is checked there, or `full_scale` raises."""
    from bench.full_scale import full_scale
    from bench.side_by_side import DEFECTS, PACKAGES, build
    from bench.workloads import WORKLOADS, workload

    peers = {system: build(system, print) for system in PACKAGES}
    for name in WORKLOADS:
        scale = 2e-5 if name in ("w6", "w5_1m") else 0.02
        found = full_scale(name, scale, 20, 5.0, "reference", lambda _: None, peers)
        rules = workload(name, scale, 2).rules
        expected = {system for system in peers if (system, rules) not in DEFECTS}
        assert found.peers_load_seconds.keys() == expected, found.missing


def test_what_it_costs_to_store_rows_is_told() -> None:
    arguments = ["--held", "3000", "--rows", "100,200", "--tries", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.storing", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert all(line.endswith("ns a row") for line in lines)


def test_programs_of_many_rules_are_as_large_as_they_say() -> None:
    from bench.installing import program_of

    program = deltalog.connect(program=program_of(100)).model.checked.program
    assert len(program.rules) == 100
    assert program_of(100) != program_of(100, changed=5, least=1)


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
