"""Files of the page: what is vendored is what its table says, and everything is in the package."""

from __future__ import annotations

import hashlib
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from documents import ROOT

WEB = ROOT / "src/deltalog/web"
VENDOR = WEB / "vendor"
README = (VENDOR / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(VENDOR.glob("*.js")), ids=lambda path: path.name)
def test_vendored_files_are_what_the_table_says(path: Path) -> None:
    (row,) = (line for line in README.splitlines() if line.startswith(f"| `{path.name}` |"))
    assert hashlib.sha256(path.read_bytes()).hexdigest() in row


@pytest.mark.parametrize("path", sorted(VENDOR.iterdir()), ids=lambda path: path.name)
def test_the_readme_names_every_file(path: Path) -> None:
    assert path.name == "README.md" or f"`{path.name}`" in README


def test_every_file_is_package_data() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["deltalog"]
    for path in (path for path in WEB.rglob("*") if path.is_file()):
        name = path.relative_to(WEB.parent)
        assert any(
            Path(pattern).parent == name.parent and fnmatch(name.name, Path(pattern).name)
            for pattern in patterns
        ), name
