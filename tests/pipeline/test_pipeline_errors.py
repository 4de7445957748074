"""Errors that need Spark, to the letter: the cases of `tests/cases/run_time` that ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog
from casefiles import compare, find, identify, read_case

CASES = [path for path in find("run_time") if path.read_text().startswith("=== spark\n")]


@pytest.mark.parametrize("path", CASES, ids=identify)
def test_error(
    path: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = read_case(path)
    for section in case.sections:
        if section.words[0] == "file":
            (tmp_path / section.words[1]).write_text(section.text.strip() + "\n")
        elif section.name == "python":
            with pytest.raises(deltalog.DeltalogError) as caught:
                exec(section.text, {"deltalog": deltalog, "spark": spark, "Path": Path})
        elif section.name == "error":
            compare(case, section, str(caught.value))
    assert caught.value.codes == (path.stem[:5].upper(),)
