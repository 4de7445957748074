"""The Delta table of a log: what it costs and holds does not follow the commits before."""

from __future__ import annotations

from pathlib import Path

from deltalog.pipeline.location import Location
from deltalog.pipeline.log import Log, Record, current_time
from deltalog.pipeline.log_rows import DELETE, INSERT, RERANK, Changes, decoded_rows
from deltalog.pipeline.log_table import COMPACTED_FILES, KEPT_VERSIONS, DriverLogTable

PAIR = ("int", "int")
NAMED = ("int", "str")


def commit(log: Log, number: int, *changes: Changes) -> None:
    record = Record(sequence=number, version=number, at=current_time())
    log.append(record, changes, {PAIR, NAMED}, batches=(("test", str(number)),))
    log.tidy()


def test_records_of_delta_are_removed_behind_a_checkpoint(tmp_path: Path) -> None:
    log = Log(DriverLogTable(Location.of(str(tmp_path))), "test")
    log.open()
    most = KEPT_VERSIONS + 2 * COMPACTED_FILES
    for number in range(1, most + 2 * COMPACTED_FILES):
        commit(log, number, Changes("edge", INSERT, PAIR, [(number, number)]))
    kept = list((tmp_path / "log/_delta_log").glob("*.json"))
    assert len(kept) <= most
    assert len(list((tmp_path / "log/_delta_log").glob("*.checkpoint.parquet"))) <= most
    again = Log(DriverLogTable(Location.of(str(tmp_path))), "test")
    assert [record.sequence for record in again.open()] == list(range(1, number + 1))
    assert again.batches() == {("test", str(each)) for each in range(1, number + 1)}
    commit(again, number + 1, Changes("edge", INSERT, PAIR, [(0, 0)]))
    assert len(again.changes("edge", 0, number + 1)) == number + 1


def test_relations_with_the_same_types_are_written_together(tmp_path: Path) -> None:
    log = Log(DriverLogTable(Location.of(str(tmp_path))), "test")
    log.open()
    commit(
        log,
        1,
        Changes("edge", INSERT, PAIR, [(1, 2), (2, 3)]),
        Changes("name", INSERT, NAMED, [(1, "a")]),
        Changes("path", INSERT, PAIR, [(1, 2), (1, 3)], [7, 8]),
        Changes("path", RERANK, PAIR, [(2, 3)], [9]),
        Changes("edge", DELETE, PAIR, [(4, 5)]),
        Changes("mark", INSERT, (), [()]),
    )
    found = {name: log.changes(name, 0, 1) for name in ("edge", "name", "path", "mark")}
    edges = zip(found["edge"]["change"].to_pylist(), decoded_rows(found["edge"], PAIR), strict=True)
    assert list(edges) == [(INSERT, (1, 2)), (INSERT, (2, 3)), (DELETE, (4, 5))]
    assert found["edge"]["rank"].to_pylist() == [None] * 3
    assert decoded_rows(found["name"], NAMED) == [(1, "a")]
    assert decoded_rows(found["path"], PAIR) == [(1, 2), (1, 3), (2, 3)]
    assert found["path"]["rank"].to_pylist() == [7, 8, 9]
    assert decoded_rows(found["mark"], ()) == [()]
