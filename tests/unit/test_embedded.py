"""What only the embedded engine has: words, kernels, memory of its own, threads, and no numba."""

from __future__ import annotations

import itertools
import random
import signal
import sys
import threading
import time
from array import array
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

import deltalog
from deltalog.diagnostics.report import LimitError
from deltalog.engines.embedded import compile, jit
from deltalog.engines.embedded.codec import SWEEP_MIN
from deltalog.engines.embedded.engine import EmbeddedEngine
from deltalog.engines.embedded.kernels import layout, scalars, wave
from deltalog.engines.embedded.kernels.memory import as_float
from deltalog.engines.reference.engine import ReferenceEngine
from deltalog.runtime.limits import Limits
from waiting import HANG_SECONDS

CLOSURE = """
base edge(a: int, b: int).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
"""

KERNELS_MAX = 100
"""Until another thread has run beside one of them."""

EDGES = [0, 1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**53 - 1, 2**53 + 1, 2**62, 2**63 - 1]


def halves(total: int) -> tuple[int, int]:
    """A sum of ints in two halves, the low one as long as sums of low halves are."""
    return total // 2**32, total % 2**32


def float_of(word: int) -> float:
    return memoryview(array("q", [word])).cast("B").cast("d")[0]


# --- sums in halves -----------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("total", [*EDGES, 2**64 + 1, 2**80 + 12345, 2**93 - 1])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 10**9, 2**31 - 1, 2**32 - 1])
def test_an_average_is_the_nearest_float(total: int, count: int, sign: int) -> None:
    has_value, word = scalars.mean_of_halves(*halves(sign * total), count)
    assert has_value
    assert float_of(word) == float(Fraction(sign * total, count))


def test_averages_of_random_sums_are_the_nearest_floats() -> None:
    draw = random.Random(1)
    for _ in range(3_000):
        total = draw.randrange(2 ** draw.randint(1, 93)) * draw.choice([1, -1])
        count = draw.randrange(1, 2 ** draw.randint(1, 32))
        _, word = scalars.mean_of_halves(*halves(total), count)
        assert float_of(word) == float(Fraction(total, count)), (total, count)


@pytest.mark.parametrize("total", [*EDGES, 2**63, 2**63 + 1, 2**64, 2**80])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_has_a_value_if_it_is_an_int(total: int, sign: int) -> None:
    high, low = halves(sign * total)
    for shift in range(3):  # a long low half is the same sum
        has_value, word = scalars.int_of_halves(high - shift, low + shift * 2**32)
        assert has_value == (total < 2**63)
        assert not has_value or word == sign * total


def test_intrinsics_are_compiled() -> None:
    with pytest.raises(NotImplementedError):
        as_float(1)  # an intrinsic exists inside kernels only


# --- text ---------------------------------------------------------------------------------------

WORDS = ["", "a", "ab", "b", "Z", "ä", "é", "日本", "\U0001f600", "a" * 1000, "a" * 999 + "b", "0"]


def test_text_is_ordered_as_python_orders_it() -> None:
    program = """
    base word(w: str).
    before(X, Y) :- word(X), word(Y), X < Y.
    lowest(min(X)) :- word(X).
    highest(max(X)) :- word(X).
    """
    db = deltalog.connect(program=program, engine="embedded", facts={"word": [("x",)]})
    for word in WORDS:
        db.apply(insert={"word": [(word,)]})
    words = [*WORDS, "x"]
    assert db.facts("before") == {(x, y) for x, y in itertools.product(words, words) if x < y}
    assert db.facts("lowest") == {(min(words),)}
    assert db.facts("highest") == {(max(words),)}
    assert db.audit() == ()


def test_numbers_of_text_are_given_out_again() -> None:
    program = 'base word(n: int, w: str).\nlater(N) :- word(N, W), W > "m".'
    db = deltalog.connect(program=program, engine="embedded")
    assert isinstance(db.engine, EmbeddedEngine)
    texts = db.engine.codec.numberings["str"]
    for start in range(0, 6 * SWEEP_MIN, 2_000):
        rows = [(n, f"{'amz'[n % 3]}{n}") for n in range(start, start + 2_000)]
        change = db.apply(insert={"word": rows})
        assert change.inserted["later"] == {(n,) for n, w in rows if w > "m"}
        gone = db.apply(delete={"word": rows[1:]})
        assert gone.deleted["word"] == frozenset(rows[1:])
    assert len(texts.values) < 2 * SWEEP_MIN
    assert db.audit() == ()


# --- memory -------------------------------------------------------------------------------------


def test_memory_is_given_back_when_rows_go() -> None:
    engine = EmbeddedEngine()
    engine.create("pair", ("int", "int"))
    rows = [(n, n) for n in range(100_000)]
    engine.insert("pair", rows)
    line = engine.relations["pair"].line
    assert line[layout.CAPACITY] == 131_072
    engine.delete("pair", rows[:99_990])
    assert line[layout.CAPACITY] < 100
    assert list(engine.rows("pair")) == rows[99_990:]
    engine.insert("pair", rows)
    engine.clear("pair")
    engine.insert("pair", rows[:1])
    engine.clear("pair")
    assert line[layout.CAPACITY] == 0, "a relation that was large once does not stay large"


def test_a_fact_of_two_ints_needs_less_than_a_hundred_bytes() -> None:
    db = deltalog.connect(
        program=CLOSURE, engine="embedded", facts={"edge": [(n, n + 1) for n in range(300)]}
    )
    assert isinstance(db.engine, EmbeddedEngine)
    line = db.engine.relations["path"].line
    per_row = 8 * 2 + 8 + 8 + line[layout.INDEXES] * 8  # words, stamp, hash; heads and links
    assert per_row * line[layout.CAPACITY] / line[layout.LIVE] < 100


MANY_KINDS = """
base edge(a: int, b: int).
base is_on().
two(X, Z) :- edge(X, Y), edge(Y, Z).
shown() :- is_on(), two(1, _).
"""
WITH_TEXT = f"{MANY_KINDS} base name(id: int, text: str). known(T, Y) :- name(X, T), two(X, Y)."


def random_changes(draw: random.Random, has_text: bool) -> dict[str, list[tuple[Any, ...]]]:
    """Rows that may be there already, few or more than a wave has room to tell."""
    rows = draw.choice([1, 2, 2, 300])
    nodes = 400 if rows > 2 else 6
    made: dict[str, list[tuple[Any, ...]]] = {
        "edge": [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(rows)],
        "is_on": [()],
    }
    if has_text:
        made["name"] = [(draw.randrange(6), f"t{draw.randrange(10)}")]
    return {name: made[name] for name in draw.sample(sorted(made), draw.randint(1, len(made)))}


@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize("strategy", ["auto", "delta"])
def test_a_delta_is_the_same_whenever_it_is_read(strategy: str, has_text: bool) -> None:
    """An output buffer is overwritten, numbers of text are given to others: nobody sees."""
    draw = random.Random(7)
    program = WITH_TEXT if has_text else MANY_KINDS
    late = deltalog.connect(program=program, strategy=strategy)
    early = deltalog.connect(program=program, strategy=strategy, engine="reference")
    deltas, expected, counts = [], [], []
    for _ in range(40):
        change = {
            "insert": random_changes(draw, has_text),
            "delete": random_changes(draw, has_text),
        }
        deltas.append(late.apply(**change))
        counts.append(late.statistics.total)
        expected.append(early.apply(**change))
        assert late.version == early.version
        assert bool(deltas[-1]) == bool(expected[-1])
    assert deltas == expected
    assert all(count == 0 for count, delta in zip(counts, deltas, strict=True) if not delta)
    assert sum(map(len, deltas)) > 5_000
    assert not late.audit()


def test_what_is_so_already_is_left_out() -> None:
    database = deltalog.connect(program=CLOSURE, facts={"edge": [(1, 2), (5, 6)]})
    delta = database.apply(insert={"edge": [(1, 2), (2, 3)]}, delete={"edge": [(5, 6), (7, 8)]})
    assert delta.inserted == {"edge": {(2, 3)}, "path": {(2, 3), (1, 3)}}
    assert delta.deleted == {"edge": {(5, 6)}, "path": {(5, 6)}}
    assert database.version == 1
    assert not database.apply(insert={"edge": [(2, 3)]}, delete={"edge": [(5, 6)]})
    assert database.version == 1
    assert not database.audit()


@pytest.mark.parametrize("width", [62, 63, 64, 65, 100])
def test_columns_that_have_no_bit_in_an_index(width: int) -> None:
    columns = ", ".join(f"c{i}: int" for i in range(width))
    names = ", ".join(f"X{i}" for i in range(width))
    last = f"X{width - 1}"
    program = f"""
    base wide({columns}).
    base wanted(x: int).
    hit(X0) :- wanted({last}), wide({names}).
    pair(X0) :- wanted({last}), wanted(X{width - 2}), wide({names}).
    whole({names}) :- wide({names}), wanted(X0).
    """
    db = deltalog.connect(program=program, engine="embedded")
    rows = [tuple(range(start, start + width)) for start in range(20)]
    db.apply(insert={"wide": rows, "wanted": [(width + 3,), (width + 4,)]})
    assert db.facts("hit") == {(4,), (5,)}
    assert db.facts("pair") == {(5,)}
    db.apply(delete={"wide": rows[5:6]}, insert={"wanted": [(7,)]})
    assert db.audit() == ()


def test_large_deletions_take_what_a_fresh_start_would_not_make() -> None:
    """So many facts that rows are held, and suspects come in many batches."""
    draw = random.Random(3)
    nodes = range(150)
    edges = {(draw.choice(nodes), draw.choice(nodes)) for _ in range(270)}
    db = deltalog.connect(
        program=CLOSURE, facts={"edge": edges}, strategy="rederive", engine="embedded"
    )
    assert len(db.facts("path")) > 5_000
    for _ in range(12):
        gone = set(draw.sample(sorted(edges), 10))
        come = {(draw.choice(nodes), draw.choice(nodes)) for _ in range(10)} - edges
        db.apply(insert={"edge": sorted(come)}, delete={"edge": sorted(gone)})
        edges = (edges - gone) | come
        fresh = deltalog.connect(program=CLOSURE, facts={"edge": edges})
        assert db.facts("path") == fresh.facts("path")


# --- limits and threads -------------------------------------------------------------------------


def test_time_is_up_in_the_middle_of_a_round() -> None:
    program = """
    base n(x: int).
    many(A) :- n(A), n(B), n(C), n(D), A + B + C + D < 0.
    """
    facts = {"n": [(i,) for i in range(10_000)]}  # the round would take years
    with pytest.raises(LimitError, match=r"0\.2"):
        deltalog.connect(
            program=program, engine="embedded", facts=facts, limits=Limits(seconds_max=0.2)
        )


def test_too_many_facts_in_one_round_are_stopped_and_nothing_has_changed() -> None:
    program = "base n(x: int).\ntriple(A, B, C) :- n(A), n(B), n(C)."
    limits = Limits(facts_max=200_000)
    db = deltalog.connect(program=program, engine="embedded", limits=limits)
    db.apply(insert={"n": [(1,), (2,)]})
    with pytest.raises(LimitError, match=r"200,?000"):
        db.apply(insert={"n": [(i,) for i in range(3, 600)]})
    assert db.facts("n") == {(1,), (2,)}
    assert len(db.facts("triple")) == 8
    assert db.audit() == ()


def test_threads_share_a_database() -> None:
    db = deltalog.connect(program=CLOSURE, engine="embedded")
    problems: list[BaseException] = []

    def work(offset: int) -> None:
        try:
            for n in range(60):
                db.apply(insert={"edge": [(offset + n, offset + n + 1)]})
                db.query(f"path({offset}, Y)")
                if n % 7 == 0:
                    db.apply(delete={"edge": [(offset + n, offset + n + 1)]})
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(1_000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert db.audit() == ()


def test_other_threads_run_while_a_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel releases the interpreter; nothing else does here, as threads do not switch."""
    counted = counted_in_kernels = 0
    is_over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not is_over.is_set():
            counted += 1
            time.sleep(0)  # which lets the other thread go on

    def run_wave(*arguments: Any) -> Any:
        nonlocal counted_in_kernels
        before = counted
        status = kernel(*arguments)
        counted_in_kernels += counted - before
        return status

    db = deltalog.connect(program=CLOSURE, engine="embedded", strategy="rederive")
    db.apply(insert={"edge": [(0, 1)]})  # from now on the kernels need no help
    kernel = wave.run_wave
    monkeypatch.setattr(wave, "run_wave", run_wave)
    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    sys.setswitchinterval(HANG_SECONDS)
    try:
        thread.start()
        for _ in range(KERNELS_MAX):
            chain = {"edge": [(n, n + 1) for n in range(1, 400)]}
            db.apply(insert=chain)
            db.apply(delete=chain)
            if counted_in_kernels:
                break
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert counted_in_kernels > 0


# --- without numba ------------------------------------------------------------------------------


def test_without_numba_the_reference_engine_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith("deltalog.engines.embedded")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numba", None)  # importing it fails
    with pytest.warns(RuntimeWarning, match="reference engine serves instead"):
        db: Any = deltalog.connect(program=CLOSURE)
    assert db.engine.name == "reference"
    db.apply(insert={"edge": [(1, 2), (2, 3)]})
    assert db.facts("path") == {(1, 2), (2, 3), (1, 3)}


def test_an_interrupt_while_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba may lose it, and fail with something else."""

    class Kernel:
        def py_func(self) -> None: ...

        def compile(self, _: object) -> None:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            raise RuntimeError("generator raised StopIteration")

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(compile, "KERNELS", (Kernel(),))
    with pytest.raises(KeyboardInterrupt):
        compile.compile_kernels(lambda *_: None)
    assert signal.getsignal(signal.SIGINT) is before


# --- indexes whose links are side by side -------------------------------------------------------


@pytest.mark.parametrize("keys", [1, 3, 40, 2_000])
def test_an_index_made_late_and_filled_on(keys: int) -> None:
    """Rows before it was made, rows that go, come back and come anew, and a relation compacted."""
    engine, plain = EmbeddedEngine(), ReferenceEngine()
    draw = random.Random(keys)
    held: set[tuple[int, int]] = set()
    for each in (engine, plain):
        each.create("pair", ("int", "int"))
    for round_ in range(30):
        some = {(draw.randrange(keys), draw.randrange(5_000)) for _ in range(300)}
        gone = set(draw.sample(sorted(held), len(held) // draw.choice([2, 3, 9]))) - some
        held = (held | some) - gone
        for each in (engine, plain):
            each.insert("pair", sorted(some))
            each.delete("pair", sorted(gone))
        for key in draw.sample(range(keys), min(keys, 5)):
            for columns in ({0: key}, {1: key}) if round_ > 3 else ({1: key},):
                found, expected = (list(each.lookup("pair", columns)) for each in (engine, plain))
                assert len(found) == len(set(found))
                assert set(found) == set(expected)
    assert engine.size("pair") == len(held)


def test_newer_rows_are_read_by_rounds_that_follow() -> None:
    """What a round looks up by key among new rows may have moved when the relation grew."""
    program = """
    base edge(x: int, y: int).
    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z).
    path(500, Y) :- path(0, Y).
    path(X, 500) :- path(X, 100), path(100, 120).
    """
    chain = [(n, n + 1) for n in range(120)]
    database = deltalog.connect(program=program, facts={"edge": chain})
    afresh = deltalog.connect(program=program, facts={"edge": chain}, engine="reference")
    assert database.facts("path") == afresh.facts("path")
    for each in (database, afresh):
        each.apply(delete={"edge": chain[40:42]})
        each.apply(insert={"edge": [(40, 42)]})
    assert database.facts("path") == afresh.facts("path")


GROWS_WHILE_WALKED = """
base pair(x: int, y: int).
p(X, Y) :- pair(X, Y).
p(K, Y) :- p(0, K), p(K, X), Y = X + 1000000, X < 1000000.
"""


@pytest.mark.parametrize("machine_code", ["never", "eager"])
@pytest.mark.parametrize("count", [100, 1_000, 6_000])
def test_a_relation_grows_while_a_rule_walks_it(
    count: int, machine_code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links are side by side, so that all of them have other numbers after a resize."""
    monkeypatch.setattr(jit, "WHEN", machine_code)
    rows = [(1, 10 + number) for number in range(count)]
    expected = {(0, 1), *rows, *((1, 1_000_000 + number) for _, number in rows)}
    loaded = deltalog.connect(program=GROWS_WHILE_WALKED, facts={"pair": [(0, 1), *rows]})
    assert loaded.facts("p") == expected
    changed = deltalog.connect(program=GROWS_WHILE_WALKED, facts={"pair": rows})
    changed.apply(insert={"pair": [(0, 1)]})
    assert changed.facts("p") == expected
    changed.apply(delete={"pair": [(0, 1)]})
    assert changed.facts("p") == set(rows)


# --- changes that are listed --------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        "p(Y) :- r(X), q(Y).",
        "p(Y) :- q(Y), r(X).",
        "p(Y) :- r(_), q(Y).",
        "p(X) :- q(X), s(X, Y). p(X) :- s(X, X).",
        "p(X) :- s(X, Y).",
        "p(Y) :- r(X), s(X, Y), q(Y).",
        "p(Y) :- s(X, Z), s(Z, Y), q(X).",
    ],
)
def test_what_comes_in_many_ways_comes_once(rules: str) -> None:
    """Rows are only listed, not looked for, where none can come twice."""
    program = f"base r(a: int). base q(a: int). base s(a: int, b: int). {rules} low(X) :- p(X)."
    database, plain = (
        deltalog.connect(program=program, engine=engine) for engine in ("embedded", "reference")
    )
    pairs = [(i, j) for i in range(3) for j in range(3)]
    changes = [
        {"q": [(i,) for i in range(3)]},
        {"r": [(i,) for i in range(3)]},
        {"s": pairs},
        {"r": [(7,)]},
        {"s": [(2, 7)]},
        {"s": [(7, 2)], "r": [(8,)]},
    ]
    for change in (*changes, *reversed(changes)):
        for side in ("insert", "delete"):
            told, expected = (each.apply(**{side: change}) for each in (database, plain))
            assert len(told) == len(expected)  # a row that is there twice counts twice
            assert told == expected
        database.apply(insert=change)
        plain.apply(insert=change)


def test_appended_rows_are_indexed_when_something_is_looked_up() -> None:
    """Changes of two relations at once: what one rule lists, another looks up."""
    program = """
    base a(x: int, y: int). base b(x: int, y: int).
    c(X, Y) :- a(X, Y).
    d(X, Y) :- b(X, Y), not c(X, Y).
    e(X, Z) :- c(X, Y), d(Y, Z).
    f(X, Y) :- c(X, Y), b(X, Y), not e(X, Y).
    """
    database, plain = (
        deltalog.connect(program=program, engine=engine) for engine in ("embedded", "reference")
    )
    draw = random.Random(5)
    for _ in range(150):
        sides: dict[str, dict[str, list[tuple[int, int]]]] = {"insert": {}, "delete": {}}
        for name in "ab":
            rows = {(draw.randrange(8), draw.randrange(8)) for _ in range(draw.randrange(30))}
            held = plain.facts(name)
            sides["insert"][name] = sorted(rows - held)
            sides["delete"][name] = sorted(rows & held)
        assert database.apply(**sides) == plain.apply(**sides)
    assert all(database.facts(view) == plain.facts(view) for view in "cdef")


def test_what_returns_has_its_old_place_and_a_new_rank() -> None:
    database = deltalog.connect(program=CLOSURE, facts={"edge": [(i, i + 1) for i in range(30)]})
    engine = database.engine
    assert isinstance(engine, EmbeddedEngine)
    path = engine.relations["path"]
    before, end = {row: rank for rank, row in path.stamped()}, path.end
    for _ in range(20):
        gone = database.apply(delete={"edge": [(10, 11)]}).deleted["path"]
        assert len(path) == len(before) - len(gone) == path.end - len(gone)
        assert database.apply(insert={"edge": [(10, 11)]}).inserted["path"] == gone
    assert path.end == end
    after = {row: rank for rank, row in engine.ranked("path")}
    assert list(after.values()) == sorted(after.values())
    assert {row for row in after if after[row] != before[row]} == gone
    assert min(after[row] for row in gone) > max(before.values())
