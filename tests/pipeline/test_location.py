"""Where a state is, and who reaches it; sessions of Spark Connect are imitated here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltalog.pipeline.location import STORAGE, Location


class Connected:
    """A session of Spark Connect whose server sees `machine` as the root of its files."""

    def __init__(self, machine: Path | None, storage: str | None = None) -> None:
        self.machine = machine
        self.conf = {} if storage is None else {STORAGE: storage}
        self.asked: list[str] = []

    @property
    def read(self) -> Connected:
        return self

    def text(self, path: str) -> Connected:
        self.asked.append(path)
        seen = Path(path) if self.machine is None else self.machine / path.lstrip("/")
        if not seen.exists():
            raise RuntimeError("PATH_NOT_FOUND")
        return self

    def take(self, number: int) -> list[Any]:
        return []


Connected.__module__ = "pyspark.sql.connect.session"


def test_a_folder_of_the_servers_machine_is_written_by_spark(tmp_path: Path) -> None:
    state = tmp_path / "here/deep/state"
    elsewhere: Any = Connected(tmp_path / "elsewhere")
    found = Location.of(str(state), elsewhere)
    assert not found.is_reached
    assert found.root == str(state)
    assert found.folder is None
    assert not (tmp_path / "here").exists()  # nothing is left of the attempt


def test_a_folder_that_both_see_is_written_by_the_driver(tmp_path: Path) -> None:
    same: Any = Connected(None)
    found = Location.of(str(tmp_path / "state"), same)
    assert found.is_reached
    assert found.folder == tmp_path / "state"
    (tmp_path / "state").mkdir()
    assert Location.of(str(tmp_path / "state"), same).is_reached
    assert not list((tmp_path / "state").iterdir())


@pytest.mark.parametrize("storage", ["driver", "spark"])
def test_a_session_that_says_it_is_not_asked(tmp_path: Path, storage: str) -> None:
    session: Any = Connected(tmp_path / "elsewhere", storage)
    assert Location.of(str(tmp_path / "state"), session).is_reached == (storage == "driver")
    assert session.asked == []


def test_an_address_is_not_asked_for(tmp_path: Path) -> None:
    session: Any = Connected(tmp_path)
    assert Location.of("s3://bucket/state", session).is_reached
    assert not Location.of("hdfs://host/state", session).is_reached
    assert session.asked == []
