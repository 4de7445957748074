"""Peers beside the engine: the same facts, the same transactions, in the same run.

    differential-dataflow    `bench/differential`: the rules of the workloads as dataflows
    dbsp                     `bench/dbsp`: the same as circuits; the library below Feldera

Each is a Rust program with one worker, in a release build for this processor; `bench/peer` is what
they share. `cargo` builds them once per machine, in the user's cache folder: some minutes for dbsp.
A program reads facts and transactions from a file before time counts, and takes the time of a
transaction inside its process, until all views have caught up. Finally it prints the number of
facts in each view and a checksum; they must equal ours, or there is no figure at all.

Each phase has some seconds. The rest is applied at once then, and not timed. So a ratio is one of
the transactions that both have made one by one, from the first on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from bench.measure import BenchError, Transaction
from bench.peers import DBSP, DIFFERENTIAL
from bench.workloads import (
    CLOSURE,
    GROUP_BY,
    INVENTORY,
    NEGATION,
    PERMISSIONS,
    POINTS_TO,
    SAME_GENERATION,
    Fact,
    Workload,
)

PROJECT = Path(__file__).parent
PACKAGES: Mapping[str, str] = {DIFFERENTIAL: "differential", DBSP: "dbsp-peer"}
"""Peers that can be run, and their packages in the Cargo workspace."""
PROGRAMS: Mapping[str, str] = {
    CLOSURE: "closure",
    SAME_GENERATION: "same_generation",
    POINTS_TO: "points_to",
    NEGATION: "negation",
    INVENTORY: "inventory",
    GROUP_BY: "group_by",
    PERMISSIONS: "permissions",
}
"""Names of the programs in every package, by the rules they compute."""
DEFECTS: Mapping[tuple[str, str], str] = {
    (DBSP, POINTS_TO): "version 0.349.0 does not end, or computes another view, where a rule joins "
    "a recursive relation with itself and facts are inserted one by one",
}
"""Why a peer is not run on some rules: `w3` at scale 0.05 does not end at the 29th transaction."""
BUILD_SECONDS_MAX = 3_600.0
RUN_SECONDS_MAX = 120.0
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


class UnavailableError(Exception):
    """A peer cannot be run here, or did not end: recorded figures must do."""


@dataclass(frozen=True)
class Contents:
    """What a view holds: how many facts, and a checksum that does not depend on their order."""

    count: int
    checksum: int

    @classmethod
    def of(cls, rows: Collection[tuple[Any, ...]]) -> Contents:
        """
        >>> Contents.of([(1, 2), (3, 4)]) == Contents.of([(3, 4), (1, 2)])
        True
        >>> Contents.of([(1, 2)]) == Contents.of([(2, 1)])
        False
        """
        values = np.fromiter(chain.from_iterable(rows), np.uint64)
        mixed = np.zeros(len(rows), np.uint64)
        for column in values.reshape(len(rows), -1).T if rows else ():
            mixed = ((mixed ^ column) + np.uint64(1)) * SPREAD
            mixed ^= mixed >> np.uint64(32)
        return cls(len(rows), int(mixed.sum(dtype=np.uint64)))


@dataclass(frozen=True)
class PeerRun:
    """Milliseconds of every transaction by kind, loading among them, and views in the end."""

    milliseconds: Mapping[str, Sequence[float]]
    views: Mapping[str, Contents]

    @classmethod
    def read(cls, said: str) -> PeerRun:
        """Parse the output of a peer.

        >>> PeerRun.read("time load 1500\\nview path 2 77").milliseconds
        {'load': [1.5]}
        """
        milliseconds: dict[str, list[float]] = {}
        views = {}
        for line in said.splitlines():
            match line.split():
                case ["time", kind, microseconds]:
                    milliseconds.setdefault(kind, []).append(float(microseconds) / 1_000)
                case ["view", name, count, checksum]:
                    views[name] = Contents(int(count), int(checksum))
                case _:
                    raise BenchError(f"a peer prints `{line}`, which means nothing")
        return cls(milliseconds, views)


def build(system: str, say: Callable[[str], None]) -> Path:
    """Return the executable of a peer, built if it is not there, or not up to date."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo/bin"))
    if cargo is None:
        raise UnavailableError("there is no cargo to build it")
    package, target = PACKAGES[system], _cache() / "peers"
    command = [cargo, "build", "--release", "--locked", "--package", package]
    command += ["--target-dir", str(target)]
    flags = f"{os.environ.get('RUSTFLAGS', '')} -C target-cpu=native".strip()
    said = []
    with subprocess.Popen(
        command,
        cwd=PROJECT,
        env={**os.environ, "RUSTFLAGS": flags},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        timer = threading.Timer(BUILD_SECONDS_MAX, process.kill)
        timer.start()
        try:
            for line in process.stderr:
                said.append(line.strip())
                say(said[-1])
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
    if code != 0:
        errors = [line for line in said if line.startswith("error")]
        raise UnavailableError(f"cargo cannot build it: {(errors or said or ['stopped'])[0]}")
    return target / "release" / package


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deltalog"


def run(
    system: str,
    executable: Path,
    made: Workload,
    phases: Sequence[Sequence[Transaction]],
    seconds_max: float,
) -> PeerRun:
    """Load the workload and make the transactions, phase by phase."""
    if made.rules not in PROGRAMS:
        raise UnavailableError("no program is written for it")
    if (system, made.rules) in DEFECTS:
        raise UnavailableError(DEFECTS[system, made.rules])
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".facts") as file:
        _write(file, made.base, phases)
        file.flush()
        command = [str(executable), PROGRAMS[made.rules], file.name, str(seconds_max)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"stopped after {RUN_SECONDS_MAX:g} s") from None
        except OSError as error:
            raise UnavailableError(str(error)) from error
    if done.returncode < 0:
        raise UnavailableError(f"it was ended by signal {-done.returncode}")
    if done.returncode > 0:
        raise BenchError(f"{made.name} on {system}: {done.stderr.strip()}")
    return PeerRun.read(done.stdout)


def _write(
    file: IO[str], base: Mapping[str, list[Fact]], phases: Sequence[Sequence[Transaction]]
) -> None:
    """Write what `bench/peer/src/transactions.rs` reads; loading is the first phase."""
    numbers = {name: number for number, name in enumerate(base)}
    file.write(f"relations {' '.join(base)}\n")
    for phase in ([Transaction("load", base, {})], *phases):
        file.write("phase\n")
        for step in phase:
            file.write(f"{step.kind}\n")
            for sign, side in (("-", step.delete), ("+", step.insert)):
                for name, facts in side.items():
                    start = f"{sign} {numbers[name]} "
                    file.writelines(f"{start}{' '.join(map(str, fact))}\n" for fact in facts)
