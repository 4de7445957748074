"""Java for Spark: found, installed where that may be done, or named in one line.

    python -m deltalog.engines.spark.java

Looked for in `JAVA_HOME`, on the path, and where systems keep it. Installed only as root on a
Debian machine; anywhere else that is left to the person.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSION_MIN = 17
PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
"""Of Debian, in the order they are tried: not every release has all of them."""
PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
)
WANTED = "Java 17 or newer"
HINT = "install a JDK or JRE (Debian: `apt-get install openjdk-17-jre-headless`) or set JAVA_HOME"


def java_home() -> Path | None:
    """The home of the first Java that is new enough."""
    return next(
        (home for home in _possible_java_homes() if java_version(home) >= VERSION_MIN), None
    )


def _possible_java_homes() -> Iterator[Path]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named)
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    for place in PLACES:
        yield from sorted(Path("/").glob(place.lstrip("/")))


def java_version(home: Path) -> int:
    """The major version of the Java in a folder; 0 if there is none.

    It is in a file there; a Java without that file is asked.
    """
    java = home / "bin" / "java"
    if not java.is_file():
        return 0
    try:
        description = (home / "release").read_text(encoding="utf-8")
    except OSError:
        description = ""
    if "JAVA_VERSION=" not in description:
        try:
            asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return 0
        description = asked.stderr
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', description)
    return int(found[1]) if found else 0


def install_java() -> bool:
    """Install Java if this is a Debian machine and we are root; returns whether it is there."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print("installing Java for Spark ...", flush=True)
    _run_quietly("apt-get", "update", "-qq", env=quiet)
    for package in PACKAGES:
        if (
            _run_quietly("apt-get", "install", "-y", "-qq", package, env=quiet)
            and java_home() is not None
        ):
            return True
    return False


def _run_quietly(*command: str, env: dict[str, str]) -> bool:
    return subprocess.run(command, env=env, stdout=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__" and java_home() is None and not install_java():
    sys.exit(f"Spark needs {WANTED}: {HINT}; everything else works without")
