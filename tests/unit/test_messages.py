"""Messages and what is known of their delivery: kept, counted, dumped, and deleted when settled."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltalog
from deltalog.runtime import delivery_verbs
from deltalog.runtime.deliveries import forget_deliveries
from deltalog.runtime.messages import Message
from deltalog.store.dump import dump_folder, dump_lines
from deltalog.store.files import read_rows

PROGRAM = """
base stock(item: str key, amount: int).
base gone(item: str).
rule low(L) for I when stock(I, N), N < L do emit low(I, L).
rule high for I when stock(I, N), N > 100 do emit high(I).
rule off on insert gone(I) do emit off(I).
"""


@pytest.fixture(params=["memory", "file"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> deltalog.MemoryDatabase:
    path = (tmp_path / "shop.db",) if request.param == "file" else ()
    database = deltalog.connect(*path, program=PROGRAM, engine="reference")
    database.activate("low", L=10)
    database.activate("low", L=20)
    database.deactivate("off")
    return database


def insert(database: deltalog.MemoryDatabase, item: str, amount: int) -> None:
    database.apply(insert={"stock": [(item, amount)]})


def fail(message: Message) -> None:
    raise OSError("nobody listens")


def test_a_function_gets_each_message_once(shop: deltalog.MemoryDatabase) -> None:
    insert(shop, "nut", 15)
    insert(shop, "bolt", 5)
    found: list[Message] = []
    done = shop.dispatch(found.append)
    assert (done.delivered, done.failed, done.dead, done.waiting) == (3, 0, 0, 0)
    assert found == shop.messages()
    assert shop.dispatch(found.append).delivered == 0
    assert shop.dispatch(found.append, target="other", messages=["low"]).delivered == 3
    assert shop.dispatch(found.append, target="third", rules=["high"]).delivered == 0
    assert [message.time.tzinfo is not None for message in found] == [True] * 6


def test_a_function_may_change_the_database(shop: deltalog.MemoryDatabase) -> None:
    """What it emits waits for the next call: a cascade outside the transaction has an end."""
    insert(shop, "nut", 500)

    def follow(message: Message) -> None:
        insert(shop, f"{message.arguments[0]}+", 500)

    assert shop.dispatch(follow).delivered == 1
    assert shop.dispatch(follow).delivered == 1
    assert len(shop.facts("stock")) == 3


def test_failures_wait_and_die(shop: deltalog.MemoryDatabase) -> None:
    insert(shop, "a", 500)
    insert(shop, "b", 500)
    done = shop.dispatch(fail, pauses_seconds=[3600])
    assert (done.delivered, done.failed, done.dead, done.waiting) == (0, 1, 0, 2)
    assert shop.dispatch(fail, pauses_seconds=[3600]).failed == 0  # not due
    counts = {rule.name: (rule.undelivered, rule.dead) for rule in shop.rules()}
    assert counts == {"low": (0, 0), "high": (2, 0), "off": (0, 0)}
    done = shop.dispatch(fail, target="other", pauses_seconds=[])
    assert (done.failed, done.dead, done.waiting) == (0, 2, 0)
    assert [(each.recipient, each.error) for each in shop.dead_letters()] == [
        ("other", "OSError: nobody listens")
    ] * 2
    assert {
        row[0] for row in shop.query('sys_dead_letter("other", _, I, "high", _, _, 1, _, _)')
    } == {message.id for message in shop.messages()}


@pytest.mark.parametrize(
    "arguments", [{"handler": "print"}, {"handler": print, "target": ""}], ids=str
)
def test_arguments_are_checked(shop: deltalog.MemoryDatabase, arguments: dict[str, object]) -> None:
    with pytest.raises(deltalog.DataError, match=r"handler|target"):
        shop.dispatch(**arguments)  # type: ignore[arg-type]


def test_settled_messages_are_deleted_with_later_ones(
    shop: deltalog.MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_verbs, "MESSAGES_MIN", 4)
    monkeypatch.setattr(shop, "_prune_from", 4)
    for number in range(10):
        insert(shop, f"a{number}", 500)
    assert len(shop.messages()) == 10  # nobody has them
    shop.dispatch(lambda message: None)
    assert len(shop.messages()) == 10
    for number in range(25):
        insert(shop, f"b{number}", 500)
    kept = [message.arguments for message in shop.messages()]
    assert kept == [[f"b{number}"] for number in range(25)]
    assert not shop.audit()


def test_a_refused_transaction_deletes_no_message(
    shop: deltalog.MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "_prune_from", 2)
    shop.change_program(PROGRAM + "deny negative(I) :- stock(I, N), N < 0.")
    for number in range(3):
        insert(shop, f"a{number}", 500)
    shop.dispatch(lambda message: None)
    before = shop.messages()
    with pytest.raises(deltalog.ConstraintError):
        shop.apply(insert={"stock": [("x", 500), ("y", -1)]})
    assert shop.messages() == before


# --- dumps --------------------------------------------------------------------------------------


def _filled(shop: deltalog.MemoryDatabase) -> None:
    insert(shop, "delivered", 500)
    shop.dispatch(lambda message: None, target="first")
    insert(shop, "nut", 15)
    insert(shop, "dead", 500)
    shop.dispatch(fail, target="first", rules=["high"], pauses_seconds=[])
    shop.dispatch(lambda message: None, target="first", rules=["high"])


def _check_copy(shop: deltalog.MemoryDatabase, copy: deltalog.MemoryDatabase) -> None:
    assert [each.parameters for each in copy.rules()] == [((10,), (20,)), (), ()]
    assert [each.is_active for each in copy.rules()] == [True, True, False]
    for before, after in zip(shop.rules(), copy.rules(), strict=True):
        assert (before.firings, before.seconds, before.last) == (
            after.firings,
            after.seconds,
            after.last,
        )
    kept = [message for message in shop.messages() if message.arguments[0] != "delivered"]
    assert [m.id for m in copy.messages()] == [m.id for m in kept]
    assert [m.payload for m in copy.messages()] == [m.payload for m in kept]
    insert(copy, "later", 500)
    assert [m.arguments for m in copy.messages()][-1] == ["later"]
    found: list[Message] = []
    copy.dispatch(found.append)
    assert found[-1].arguments == ["later"]


def test_a_dump_has_activations_and_messages(shop: deltalog.MemoryDatabase) -> None:
    _filled(shop)
    text = "\n".join(dump_lines(shop))
    copy = deltalog.connect(program=text, engine="reference")
    assert "\n".join(dump_lines(copy)) == text
    _check_copy(shop, copy)
    copy.change_program(PROGRAM)  # these facts only begin a database
    assert len(copy.messages()) == 3
    assert [each.is_active for each in copy.rules()] == [True, True, False]


def test_a_dumped_folder_has_them_too(shop: deltalog.MemoryDatabase, tmp_path: Path) -> None:
    _filled(shop)
    program, *files = dump_folder(shop, tmp_path / "dumped")
    relations = shop.model.checked.relations
    facts = {path.stem: list(read_rows(path, relations[path.stem].columns)) for path in files}
    assert facts.keys() == {
        *("stock", "low__active", "rules__inactive", "rules__messages", "rules__statistics")
    }
    _check_copy(shop, deltalog.connect(program=program, facts=facts, engine="reference"))


def test_too_many_messages_for_a_dump(
    shop: deltalog.MemoryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.store.dump.PER_COMMIT", 2)
    insert(shop, "a", 500)
    assert list(dump_lines(shop))
    insert(shop, "b", 500)
    with pytest.raises(deltalog.LimitError, match="E1605"):
        list(dump_lines(shop))


# --- changes of the program ---------------------------------------------------------------------


def test_a_program_without_messages_must_wait_for_their_delivery(
    shop: deltalog.MemoryDatabase,
) -> None:
    insert(shop, "a", 500)
    before = shop.version, shop.messages()
    with pytest.raises(deltalog.DataError, match="E1607"):
        shop.change_program("base stock(item: str key, amount: int).")
    assert (shop.version, shop.messages()) == before
    shop.dispatch(lambda message: None)
    changed = shop.change_program("base stock(item: str key, amount: int).")
    assert set(changed.relations) <= {"gone", "stock"}
    assert shop.messages() == []


def test_a_program_without_messages_must_wait_for_every_target(
    shop: deltalog.MemoryDatabase,
) -> None:
    insert(shop, "a", 500)
    assert shop.dispatch(fail, target="slow").waiting == 1
    shop.dispatch(lambda message: None)
    with pytest.raises(deltalog.DataError, match=r"E1607[^$]*deliver them to `slow`, or drop one"):
        shop.change_program("base stock(item: str key, amount: int).")
    with shop.journal() as journal:
        assert forget_deliveries(journal, "slow")
    assert sum(rule.undelivered for rule in shop.rules()) == 0
    shop.change_program("base stock(item: str key, amount: int).")


def test_a_program_without_messages_waits_for_no_dead_letters(
    shop: deltalog.MemoryDatabase,
) -> None:
    insert(shop, "a", 500)
    shop.dispatch(fail, target="other", pauses_seconds=[])
    shop.change_program("base stock(item: str key, amount: int).")
    assert [letter.recipient for letter in shop.dead_letters()] == ["other"]
