"""Which Java is taken for Spark; nothing is started or installed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog.engines.spark import java


def a_java(home: Path, release: str | None, script: str = "") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (home / "bin" / "java").chmod(0o755)
    if release is not None:
        (home / "release").write_text(release, encoding="utf-8")
    return home


@pytest.fixture
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "PLACES", (str(tmp_path / "jvm" / "*"),))


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n', 17),
        ('JAVA_VERSION="1.8.0_422"\n', 8),
        ('JAVA_VERSION="21"\n', 21),
    ],
)
def test_the_version_is_read(release: str, version: int, tmp_path: Path) -> None:
    assert java.java_version(a_java(tmp_path / "home", release)) == version


def test_a_java_that_does_not_tell_is_asked(tmp_path: Path) -> None:
    home = a_java(tmp_path / "home", None, """echo 'openjdk version "17.0.9" 2023' >&2""")
    assert java.java_version(home) == 17
    assert java.java_version(tmp_path / "nothing") == 0
    assert java.java_version(a_java(tmp_path / "broken", None, "exit 1")) == 0


@pytest.mark.usefixtures("nothing_else")
def test_one_that_is_new_enough_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java.java_home() is None
    old = a_java(tmp_path / "old", 'JAVA_VERSION="11.0.2"')
    kept = a_java(tmp_path / "jvm" / "java-21", 'JAVA_VERSION="21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert java.java_home() == kept
    on_path = a_java(tmp_path / "other", 'JAVA_VERSION="17.0.1"')
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.java_home() == on_path


@pytest.mark.usefixtures("nothing_else")
def test_without_a_package_manager_nothing_is_installed() -> None:
    assert java.install_java() is False


@pytest.mark.usefixtures("nothing_else")
def test_as_root_on_debian_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package manager that knows only the second of the packages."""
    made = tmp_path / "jvm" / "made"
    fake = tmp_path / "manager" / "bin" / "apt-get"
    a_java(
        tmp_path / "waiting",
        'JAVA_VERSION="21.0.1"',
    )
    fake.parent.mkdir(parents=True)
    fake.write_text(
        "#!/bin/sh\n"
        '[ "$1" = update ] && exit 0\n'
        '[ "$4" = openjdk-21-jre-headless ] || exit 100\n'
        f"/bin/mkdir -p {made.parent} && /bin/mv {tmp_path / 'waiting'} {made}\n",
        encoding="utf-8",
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert java.install_java() is True
    assert java.java_home() == made
