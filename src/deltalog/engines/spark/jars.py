"""The jars of Delta Lake: fetched once by Spark's own resolver, quietly, and found after that.

    python -m deltalog.engines.spark.jars

`spark.jars.packages` would resolve them again for every session, and print each step. Here one
`spark-submit` resolves them under the user's settings of Spark, and a file in the user's cache
directory lists where they are; sessions are given those. Whatever Spark itself brings
(`PROVIDED`) is not fetched: its own classes come first anyway.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalog.engines.spark.java import java_home

PROVIDED = (
    "com.fasterxml.jackson.core:*",
    "com.github.luben:zstd-jni",
    "com.google.code.findbugs:jsr305",
    "commons-logging:*",  # Spark has jcl-over-slf4j instead
    "commons-pool:commons-pool",
    "io.airlift:aircompressor",
    "org.apache.hadoop:*",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.locationtech.jts:jts-core",
    "org.roaringbitmap:*",
    "org.slf4j:*",
    "org.xerial.snappy:snappy-java",
)
"""Dependencies of Delta Lake that are in the jars of Spark, as `group:artifact`."""
SCALA = "2.13"


def delta_coordinates() -> str:
    """The Maven coordinates of the Delta Lake that belongs to the installed packages."""
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA}:{version('delta-spark')}"


def delta_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that give a session Delta Lake, beside what the user's settings already name.

    They name the jars, which are fetched first if need be. Where that fails, Spark resolves the
    coordinates itself, and reports what is wrong.
    """
    found = known_jars() or fetch_jars()
    if found:
        added = {"spark.jars": ",".join(found)}
    else:
        added = {
            "spark.jars.packages": delta_coordinates(),
            "spark.jars.excludes": ",".join(PROVIDED),
        }
    return {
        name: f"{settings[name]},{value}" if settings.get(name) else value
        for name, value in added.items()
    }


def known_jars() -> list[str]:
    """The jars that were fetched before; empty if one of them is missing."""
    try:
        found = _list_path().read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return found if all(Path(unquote(urlsplit(uri).path)).is_file() for uri in found) else []


def fetch_jars() -> list[str]:
    """Have Spark resolve the jars, and remember where they are; empty if it cannot."""
    found = _resolve_jars()
    if not found:
        return []
    target = _list_path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.{os.getpid()}")
        part.write_text("\n".join(found) + "\n", encoding="utf-8")
        part.replace(target)
    except OSError:
        pass  # they are resolved again the next time
    return found


def _resolve_jars() -> list[str]:
    """The jars as URIs, from what `spark-submit` says about an application that does nothing."""
    import pyspark

    home = java_home()
    if home is None:
        return []
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, "JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory(prefix="deltalog-") as folder:
        application = Path(folder) / "nothing.py"
        application.touch()
        command: list[str | Path] = [
            submit,
            "--verbose",
            "--master",
            "local[1]",
            "--packages",
            delta_coordinates(),
        ]
        command += ["--exclude-packages", ",".join(PROVIDED), application]
        try:
            done = subprocess.run(
                command, env=environment, cwd=folder, capture_output=True, text=True
            )
        except OSError:
            return []
    listed = re.search(r"^\(spark\.jars,(.*)\)$", done.stderr + done.stdout, re.MULTILINE)
    if done.returncode != 0 or listed is None:
        return []
    return listed[1].split(",")


def _list_path() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "deltalog" / f"{delta_coordinates().replace(':', '_')}.jars"


if __name__ == "__main__" and not (known_jars() or fetch_jars()):
    sys.exit("the jars of Delta Lake cannot be fetched now; Spark will try again")
