"""The jars of Delta Lake: what is fetched, what is remembered, and what happens if that fails."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from deltalog.engines.spark import jars

STANDS_FOR = {
    "com.fasterxml.jackson.core:*": "jackson-core",
    "commons-logging:*": "jcl-over-slf4j",
    "org.apache.hadoop:*": "hadoop-client-runtime",
    "org.apache.logging.log4j:*": "log4j-core",
    "org.apache.parquet:*": "parquet-hadoop",
    "org.roaringbitmap:*": "RoaringBitmap",
    "org.slf4j:*": "slf4j-api",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where Spark has put two jars; the list grows by a word for each time it was asked."""
    asked: list[str] = []
    files = [tmp_path / "with space.jar", tmp_path / "b.jar"]
    for path in files:
        path.touch()
    uris = ",".join(path.as_uri() for path in files)

    def submit(command: list[Any], **_: object) -> SimpleNamespace:
        asked.append(" ".join(map(str, command)))
        told = f"Parsed arguments:\n(spark.app.name,x)\n(spark.jars,{uris})\n"
        return SimpleNamespace(returncode=0, stderr=told, stdout="")

    monkeypatch.setattr(jars, "java_home", lambda: tmp_path)
    monkeypatch.setattr(subprocess, "run", submit)
    return asked


@pytest.mark.parametrize("coordinate", jars.PROVIDED)
def test_what_is_not_fetched_is_in_spark(coordinate: str) -> None:
    artifact = STANDS_FOR.get(coordinate, coordinate.partition(":")[2])
    assert list((Path(pyspark.__file__).parent / "jars").glob(f"{artifact}-[0-9]*.jar"))


def test_they_are_fetched_once(fetched: list[str]) -> None:
    first = jars.delta_settings({})
    assert first["spark.jars"].count(".jar") == 2
    assert jars.delta_settings({}) == first
    assert len(fetched) == 1
    assert f"--packages {jars.delta_coordinates()}" in fetched[0]


def test_one_that_is_missing_is_fetched_again(fetched: list[str], tmp_path: Path) -> None:
    jars.delta_settings({})
    (tmp_path / "with space.jar").unlink()
    assert jars.known_jars() == []
    jars.delta_settings({})
    assert len(fetched) == 2


def test_jars_of_the_user_stay(fetched: list[str]) -> None:
    assert jars.delta_settings({"spark.jars": "mine.jar"})["spark.jars"].startswith("mine.jar,")


def test_a_cache_that_cannot_be_written_does_no_harm(fetched: list[str], cache: Path) -> None:
    cache.touch()
    assert jars.delta_settings({}) == jars.delta_settings({})
    assert len(fetched) == 2


@pytest.mark.usefixtures("fetched")
def test_where_fetching_fails_spark_is_told_the_coordinates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = SimpleNamespace(returncode=1, stderr="(spark.jars,x)", stdout="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    found = jars.delta_settings({"spark.jars.packages": "a:b:1"})
    assert found["spark.jars.packages"] == f"a:b:1,{jars.delta_coordinates()}"
    assert "org.apache.hadoop:*" in found["spark.jars.excludes"]


def test_coordinates_are_those_that_delta_would_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from delta import pip_utils

    class Builder:
        def config(self, name: str, value: str) -> tuple[str, str]:
            return name, value

    monkeypatch.setattr(pip_utils, "SparkSession", SimpleNamespace(Builder=Builder))
    found: Any = pip_utils.configure_spark_with_delta_pip(Builder())  # type: ignore[arg-type]
    assert found == ("spark.jars.packages", jars.delta_coordinates())
