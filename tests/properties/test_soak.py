"""A short soak: what `make soak` does a million times, a few thousand times, without the memory.

It must also notice: a delta that lies and a view that is wrong end it, and say where.
"""

from __future__ import annotations

import pytest
from bench.soak import CLAIM_TRANSACTIONS_MIN, Plan, Soak, SoakError
from bench.soak import main as soak_command
from bench.traffic import Step, Traffic

import deltalog

SHORT = {"reference": 1_000, "embedded": 3_000}


@pytest.mark.parametrize("engine", SHORT)
def test_nothing_differs_in_a_short_soak(engine: str) -> None:
    soak = Soak(Plan(SHORT[engine], seed=3, engine=engine, audit_every=500))
    soak.run()
    assert soak.done == SHORT[engine]
    assert soak.audits == SHORT[engine] // 500
    assert soak.growth() is None


def test_the_same_seed_gives_the_same_transactions() -> None:
    one, same, other = (
        [step for _, step in zip(range(200), Traffic(seed).steps(), strict=False)]
        for seed in (5, 5, 6)
    )
    assert one == same != other
    assert {step.op for step in one} == {"insert", "delete", "set"}


def test_a_delta_that_lies_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Step.apply
    monkeypatch.setattr(
        Step,
        "apply",
        lambda step, database: honest(step, database) and deltalog.ChangeSet(),
    )
    with pytest.raises(SoakError, match="is not what all deltas together give") as raised:
        Soak(Plan(60, seed=7, engine="reference", audit_every=20)).run()
    assert "after transaction 20 of seed 7 on engine reference" in str(raised.value)
    assert "--seed 7 --transactions 20 --audit-after 0 --audit-every 1" in str(raised.value)


def test_a_wrong_view_is_noticed_and_the_command_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = Step.apply

    def spoiled(step: Step, database: deltalog.MemoryDatabase) -> deltalog.ChangeSet:
        delta = honest(step, database)
        if delta.inserted["reach"]:
            database.engine.delete("reach", list(delta.inserted["reach"])[:1])
        return delta

    monkeypatch.setattr(Step, "apply", spoiled)
    arguments = ["--transactions", "60", "--audit-every", "30", "--engine", "reference"]
    assert soak_command(arguments) == 1
    said = capsys.readouterr().err
    assert "failed: after transaction 30 of seed 1" in said
    assert "view reach" in said


def test_growing_memory_is_noticed() -> None:
    soak = Soak(Plan(), done=CLAIM_TRANSACTIONS_MIN, memory=[100] * 6 + [104] * 6)
    with pytest.raises(SoakError, match=r"it grew by 4\.0%"):
        soak.check_memory()
    soak.memory = [80] * 3 + [100] * 9
    soak.check_memory()
