"""Small things that were said wrongly, or left behind, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deltalog
from deltalog.pipeline.project import read_project
from deltalog.store.storage import is_blank

PROGRAM = "base a(x: int).\nb(X) :- a(X).\n"


def connect(path: Path, **options: object) -> deltalog.FileDatabase:
    return deltalog.connect(path, engine="reference", **options)  # type: ignore[call-overload, no-any-return]


def test_the_same_program_makes_no_version(tmp_path: Path) -> None:
    with connect(tmp_path / "a.db", program=PROGRAM) as db:
        assert not db.change_program(PROGRAM)
        assert not db.change_program(f"% a comment\n{PROGRAM}\n")
        assert (db.version, len(db.commits()), len(db.programs())) == (0, 0, 1)
        db.change_program(f"{PROGRAM}? b(X).\n")  # `deltalog run` answers it
        assert db.version == 1
    memory = deltalog.connect(program=PROGRAM, engine="reference")
    assert not memory.change_program(PROGRAM)
    assert memory.version == 0


@pytest.mark.parametrize("options", [{"program": PROGRAM}, {}, {"read_only": True}])
def test_a_directory_is_no_database(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(deltalog.DataError, match="it is a directory"):
        connect(tmp_path, **options)
    assert not list(tmp_path.parent.glob("*-lock"))


def test_a_killed_backup_is_tidied_up_by_the_next(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    left = [tmp_path / f".copy.db.0123abcd.part{end}" for end in ("", "-journal")]
    other = tmp_path / ".other.db.0123abcd.part"
    for path in (*left, other):
        path.write_bytes(b"left")
    held = tmp_path / ".copy.db.aaaabbbb.part"
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    try:
        with connect(tmp_path / "a.db", program=PROGRAM) as db:
            db.backup(target)
        assert sorted(tmp_path.glob(".*")) == [held, other]
    finally:
        holder.kill()
        holder.communicate()
    with connect(target) as copy:
        copy.backup(tmp_path / "copy.db2")
        assert held.exists()  # it belongs to another target


_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_failed_backup_names_its_target(tmp_path: Path) -> None:
    db = connect(tmp_path / "a.db", program=PROGRAM)
    with db, pytest.raises(deltalog.DataError) as caught:
        db.backup(tmp_path / "nowhere" / "copy.db")
    assert ".part" not in str(caught.value)
    assert "no such file or directory" in str(caught.value)


@pytest.mark.parametrize("statement", ["journal_mode", "application_id"])
def test_a_failed_create_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    from deltalog.store import storage

    def fail(*_: object) -> None:
        raise deltalog.DataError([])

    monkeypatch.setattr(
        storage, "_prepare_storage" if statement == "journal_mode" else "_check_log", fail
    )
    with pytest.raises(deltalog.DataError):
        connect(tmp_path / "a.db", program=PROGRAM)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_holds_nothing_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    assert not is_blank(path)
    path.touch()
    assert is_blank(path)
    with pytest.raises(deltalog.DataError):
        connect(path, program=PROGRAM, facts={"a": [("x",)]})
    assert is_blank(path)
    connect(path, program=PROGRAM).close()
    assert not is_blank(path)
    (tmp_path / "text").write_text("text")
    assert not is_blank(tmp_path / "text")


def test_swapped_pages_are_damage(tmp_path: Path) -> None:
    path, size = tmp_path / "a.db", 4096
    with connect(path, program=PROGRAM) as db:
        for number in range(3):
            db.apply(insert={"a": [(number,)]})
    data = path.read_bytes()
    pages = [data[start : start + size] for start in range(0, len(data), size)]
    codes: list[str] = []
    for one in range(1, len(pages)):
        for other in range(one + 1, len(pages)):
            swapped = list(pages)
            swapped[one], swapped[other] = pages[other], pages[one]
            path.write_bytes(b"".join(swapped))
            try:
                with connect(path) as db:
                    assert db.facts("a") == {(0,), (1,), (2,)}
            except deltalog.DeltalogError as error:
                codes += error.codes
    assert set(codes) == {"E0903"}
    assert len(codes) > 10


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with connect(path, program=PROGRAM):
        with pytest.raises(deltalog.DataError, match="this process is writing") as caught:
            connect(path)
        assert "wait=" not in str(caught.value)
        code = f"import deltalog; deltalog.connect({str(path)!r}, engine='reference')"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "another process is writing" in found.stderr
    connect(path).close()


def test_a_forked_process_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with connect(path, program=PROGRAM):
        child = os.fork()
        if not child:
            try:
                connect(path)
            except deltalog.DataError as error:
                os._exit(7 if "another process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_compacting_to_no_versions_keeps_the_last_commit(tmp_path: Path) -> None:
    for versions in (0, 1):
        with connect(tmp_path / f"{versions}.db", program=PROGRAM) as db:
            for number in range(4):
                db.apply(insert={"a": [(number,)]})
            db.compact(deltalog.Retention(versions=versions))
            assert (db.first_version, db.version) == (3, 4)
            assert db.facts("b", 3) == {(0,), (1,), (2,)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('program = "p.dl"\nstate = "s"\nsources = 3\n', "`sources` is not a table"),
        ('program = "p.dl"\nstate = "s"\nspark = "x"\n', "`spark` is not a table"),
        ('program = 3\nstate = "s"\n', 'write `program = "…"`'),
        ('program = "p.dl"\nstate = "s"\nzzz = 1\n', "its keys are program, state, bad_rows"),
        ('program = "p.dl"\nstate = s\n', "2 | state = s\n  |         ^\n"),
        ('program = "p.dl\n', "this is not TOML"),
        (
            'program = "p.dl"\nstate = "s"\n[sinks.a]\nkind = "merge"\npath = "x"\nkey = "k"\n',
            "`key` is not a list",
        ),
    ],
)
def test_a_project_file_is_judged_in_plain_words(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "project.toml"
    path.write_text(text)
    with pytest.raises(deltalog.DataError) as caught:
        read_project(path)
    assert set(caught.value.codes) == {"E1003"}
    assert words in str(caught.value)
    assert not any(word in str(caught.value) for word in ("dict", "invalid", "at line"))
