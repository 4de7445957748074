"""Bytes of a database file are altered or cut off at random; what it says then is never wrong.

Of a file that was closed, all is in one file whose pages have checksums. Of one whose writer was
killed, the newest commits are in the write-ahead log. Wherever the damage is: the file is refused,
or what was damaged is of no use, and everything is as it was.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from effort import IS_FUZZ

import deltalog
from deltalog.diagnostics import catalogue
from deltalog.store.verify import verify_file

DAMAGES = 2_000 if IS_FUZZ else 150
SUFFIXES = ("", "-wal", "-shm")
REFUSED = ("E0901", "E0902", "E0903")
PROGRAM = """
    base edge(src: int, dst: int).
    base note(text: str, on: date?).
    path(X, Y) :- edge(X, Y).
    path(X, Y) :- edge(X, Z), path(Z, Y).
    reach(X, count()) :- path(X, Y).
"""


def everything(path: Path) -> object:
    """All that a database says, its past included."""
    with deltalog.connect(path, engine="reference", read_only=True) as database:
        found = verify_file(database)
        if found.pages:  # of no fact and no commit, but found all the same
            raise deltalog.DataError([catalogue.FILE_DAMAGED.at(None, name=path, reason=found)])
        assert found.is_clean, found
        facts = {name: database.facts(name) for name in database.relations}
        return facts, database.version, database.commits(), database.programs(), database.readers


def told(path: Path) -> object:
    """All that it says, or the code with which it is refused."""
    try:
        return everything(path)
    except deltalog.DataError as error:
        return error.codes[0]


def altered(data: bytes, chance: random.Random) -> bytes:
    """One bit flipped, some bytes overwritten, or the end cut off."""
    kind, place = chance.choice(("flip", "overwrite", "cut")), chance.randrange(len(data))
    if kind == "cut":
        return data[:place]
    changed = bytearray(data)
    if kind == "flip":
        changed[place] ^= 1 << chance.randrange(8)
    else:
        changed[place : place + 64] = chance.randbytes(len(changed[place : place + 64]))
    return bytes(changed)


def check(files: dict[str, bytes], suffix: str, folder: Path, truth: object, count: int) -> None:
    seed = time.time_ns() if IS_FUZZ else 11
    print(f"seed {seed}")
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for number in range(count):
        path = folder / f"{number}.db"
        for each, data in files.items():
            changed = altered(data, chance) if each == suffix else data
            path.with_name(path.name + each).write_bytes(changed)
        outcome = told(path)
        assert outcome == truth or outcome in REFUSED, outcome
        outcomes["harmless" if outcome == truth else "refused"] += 1
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()
    print(dict(outcomes))
    assert outcomes["refused"] > 0.9 * count


def test_a_closed_file(tmp_path: Path) -> None:
    path = tmp_path / "whole.db"
    with deltalog.connect(path, program=PROGRAM, engine="reference") as database:
        database.register("somebody")
        for number in range(40):
            database.apply(
                insert={
                    "edge": [(number, number + 1), (number, 0)],
                    "note": [(f"note {number}" * 20, None)],
                },
                delete={"edge": [(number - 5, number - 4)]},
            )
    truth = everything(path)
    check({"": path.read_bytes()}, "", tmp_path, truth, DAMAGES)


WRITER = """
import sys, time, deltalog
db = deltalog.connect(sys.argv[1], program=sys.argv[2], engine="reference", durability="normal")
for n in range(int(sys.argv[3])):
    db.apply(insert={"edge": [(n, n + 1)]}, delete={"edge": [(n - 3, n - 2)]})
print("done", flush=True)
time.sleep(1800)
"""


@pytest.mark.parametrize("commits", [30, 150])
def test_the_file_of_a_process_that_was_killed(tmp_path: Path, commits: int) -> None:
    """With few commits all of them are in the log; with more it was begun anew meanwhile."""
    path = tmp_path / "whole.db"
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), PROGRAM, str(commits)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    files = {each: path.with_name(path.name + each).read_bytes() for each in SUFFIXES}
    check(files, "-wal", tmp_path, everything(path), DAMAGES)
