"""The file of mended rows that `deltalog pipeline replay` takes back in."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import DataError
from deltalog.pipeline.replay import read_mended

ROW = '{"id": "a1", "op": "+", "row": {"src": 1, "dst": 2}, "reason": "a reason"}\n'


def test_a_row_without_operation_is_read(tmp_path: Path) -> None:
    (tmp_path / "mended.jsonl").write_text(ROW + '\n{"id": "b2", "op": null, "row": "1,2"}')
    found = read_mended(tmp_path / "mended.jsonl")
    assert [(each.id, each.op, each.row, each.line) for each in found] == [
        ("a1", "+", {"src": 1, "dst": 2}, 1),
        ("b2", None, "1,2", 3),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (ROW, "line 2: the row `a1` is in line 1, too"),
        ('{"id": ["b2"], "op": "+", "row": {}}', "line 2: this is not a row of the quarantine"),
        ('{"id": "b2", "op": {}, "row": {}}', "line 2: this is not a row of the quarantine"),
        ('{"id": "b2", "row": {}}', "line 2: this is not a row of the quarantine"),
        ("[]", "line 2: this is not a row of the quarantine"),
        ("5 x", "line 2: this is not a row of the quarantine"),
    ],
)
def test_a_line_that_is_no_row_or_repeats_one_is_refused(
    tmp_path: Path, line: str, expected: str
) -> None:
    (tmp_path / "mended.jsonl").write_text(ROW + line)
    with pytest.raises(DataError) as refused:
        read_mended(tmp_path / "mended.jsonl")
    assert expected in str(refused.value)
