"""What runs where: jobs are counted, and what the cluster computes is compared with the driver."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import deltalog
from conformance import test_engines
from deltalog.engines.base import Engine
from deltalog.engines.spark.engine import SparkEngine
from deltalog.engines.spark.lazy_frame import LazyFrame
from deltalog.engines.spark.partitions import Source, rows_to_send, share_numbers
from deltalog.engines.spark.relation import Frame
from deltalog.engines.spark.settings import Settings
from deltalog.runtime.engine_choice import ENGINES

CLOSURE = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), edge(Y, Z).
"""
RING = [(n, (n + 1) % 8) for n in range(8)]


@pytest.fixture(autouse=True)
def sizes(spark: SparkSession) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "4")


def engine_of(database: deltalog.MemoryDatabase) -> SparkEngine:
    assert isinstance(database.engine, SparkEngine)
    return database.engine


def test_what_is_small_costs_no_job(spark: SparkSession) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "1000")
    database = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": RING})
    database.apply(delete={"edge": [(0, 1)]}, insert={"edge": [(0, 2)]})
    assert not engine_of(database).jobs


def test_a_pivot_is_one_job(spark: SparkSession) -> None:
    frame = spark.createDataFrame(RING, "src bigint, dst bigint")
    database = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": frame})
    engine = engine_of(database)
    assert engine.jobs == {"load": 1, "partitions": 1}
    assert engine.size("path") == 64
    delta = database.apply(delete={"edge": [(3, 4)]})
    assert len(delta.deleted["path"]) == 36
    assert engine.jobs["partitions"] == 1, "a small change is not sent to tasks"
    assert database.audit(engine="reference") == ()


def test_rules_of_a_round_share_a_probe(spark: SparkSession) -> None:
    """Five rules over two relations, each one probe deep: one job for the net, one for all."""
    spark.conf.set("spark.deltalog.driver_rows_max", "10")
    program = """
        base a(x: int, y: int).
        base b(x: int, y: int).
        virtual view p(x: int, y: int).
        virtual view q(x: int, y: int).
        virtual view r(x: int).
        p(X, Z) :- a(X, Y), b(Y, Z).
        q(X, Z) :- b(X, Y), a(Y, Z).
        r(X) :- a(X, Y), not b(Y, X).
    """
    facts = {name: [(n, n % 7) for n in range(30)] for name in ("a", "b")}
    database = deltalog.connect(spark=spark, program=program, facts=facts, strategy="differencing")
    engine = engine_of(database)
    engine.jobs.clear()
    delta = database.apply(insert={"a": [(100, 3)]})
    assert len(delta.only("p", "q", "r")) == 2
    assert engine.jobs["probe"] <= 5


def test_pieces_masks_and_folds(spark: SparkSession) -> None:
    settings = Settings(driver_rows_max=3, overlay_rows_max=4, pieces_max=2)
    engine = SparkEngine(ENGINES["embedded"], spark, settings)
    engine.create("r", ("int", "str"))
    known = {(n, f"t{n}") for n in range(10)}
    assert engine.insert("r", sorted(known)) == 10
    engine.prepare(())
    for n in range(8):
        assert engine.delete("r", [(n, f"t{n}"), (n, "none")]) == 1
        assert engine.insert("r", [(n, "again"), (9, "t9")]) == 1
        known = known - {(n, f"t{n}")} | {(n, "again")}
        if n % 3 == 2:
            engine.prepare(())  # now and then things are put in order
        assert set(engine.rows("r")) == known
        assert engine.size("r") == 10
        assert list(engine.lookup("r", {0: n})) == [(n, "again")]
    assert engine.jobs["fold"] + engine.jobs["promote"] >= 2
    assert {tuple(row) for row in engine.frame("r").collect()} == known
    assert engine.insert("r", [(3, "t3")]) == 1  # what came back is younger than what stayed
    assert [row for _, row in engine.history(["r"])][-1] == (3, "t3")


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    settings = Settings(driver_rows_max=3, overlay_rows_max=4, pieces_max=2)
    made = SparkEngine(ENGINES["embedded"], spark, settings)
    for name, types in test_engines.SHAPES.items():
        made.create(name, types)
    return made


def test_a_random_history_is_what_sets_say(engine: SparkEngine) -> None:
    test_engines.check_history(engine, 3, 12)
    assert engine.jobs["promote"]


@pytest.mark.parametrize(
    "conforms",
    [
        test_engines.test_what_came_and_went_is_moved_in_the_order_of_derivation,
        test_engines.check_declared,
        test_engines.test_a_copy_is_what_was_there_then,
        test_engines.test_a_dropped_relation_can_be_made_again_with_other_columns,
    ],
)
def test_as_every_engine(conforms: Callable[[Engine], None], engine: SparkEngine) -> None:
    conforms(engine)


def test_large_changes_are_moved_on_the_cluster(engine: SparkEngine) -> None:
    """Frames change hands, with the ranks they have; what goes is taken out by a join."""
    for name in ("stored", "gone", "come"):
        engine.create(name, ("int", "int"))
    engine.insert("stored", [(n, 0) for n in range(10)])
    engine.settle()
    engine.insert("come", [(n, 1) for n in range(10)])
    engine.insert("gone", [(n, 0) for n in range(3, 10)])
    engine.settle()
    copied = engine.copied("come")
    assert isinstance(copied, LazyFrame)
    engine.jobs.clear()
    engine.move((("stored", "gone", "come"),))
    assert engine.jobs == {"fold": 1}
    engine.clear_all(("come", "gone"))
    engine.insert("stored", [(99, 99)])
    assert [row for _, row in engine.history(["stored"])] == [
        *((n, 0) for n in range(3)),
        *((n, 1) for n in range(10)),
        (99, 99),
    ]
    assert copied.size == copied.data.count() == 10
    assert set(copied.read()) == {(n, 1) for n in range(10)}


def test_much_from_little_goes_to_the_cluster(spark: SparkSession) -> None:
    """The driver tries, natively and without a job, and gives up when it becomes much."""
    chain = [(n, n + 1) for n in range(60)]
    spark.conf.set("spark.deltalog.driver_rows_max", "1000")
    large = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": chain})
    assert engine_of(large).jobs == {"partitions": 1}
    spark.conf.set("spark.deltalog.driver_rows_max", "10000")
    small = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": chain})
    assert not engine_of(small).jobs
    assert small.facts("path") == large.facts("path")
    assert len(small.facts("path")) == 60 * 61 // 2


DOUBLING = """
    base edge(src: int, dst: int).
    path(X, Y) :- edge(X, Y).
    path(X, Z) :- path(X, Y), path(Y, Z).
"""


def test_much_from_little_without_a_pivot(spark: SparkSession) -> None:
    spark.conf.set("spark.deltalog.driver_rows_max", "100")
    chain = [(n, n + 1) for n in range(30)]
    database = deltalog.connect(spark=spark, program=DOUBLING, facts={"edge": chain})
    rounds = engine_of(database).jobs["round"]
    assert 0 < rounds <= 7, "the edges, then paths up to 2, 4, 8, 16 and 32 of them, then no more"
    assert len(database.facts("path")) == 30 * 31 // 2
    database.apply(delete={"edge": [(15, 16)]})
    assert len(database.facts("path")) == 15 * 16 // 2 + 14 * 15 // 2


MUTUAL = """
    base edge(src: int, dst: int).
    even(X, X) :- edge(X, _).
    odd(X, Z) :- even(X, Y), edge(Y, Z).
    even(X, Z) :- odd(X, Y), edge(Y, Z).
"""


@pytest.mark.parametrize("most", ["4", "40"])
def test_ranks_of_several_predicates(most: str, spark: SparkSession) -> None:
    """What is brought to the driver from tasks is still younger than what it was derived from."""
    spark.conf.set("spark.deltalog.driver_rows_max", most)
    frame = spark.createDataFrame(RING, "src bigint, dst bigint")
    database = deltalog.connect(spark=spark, program=MUTUAL, facts={"edge": frame})
    for edge in RING[3:5]:
        database.apply(delete={"edge": [edge]})
        assert database.audit(engine="reference") == ()


EXACT = """
    base n(id: int, i: int?, f: float, d: decimal, s: str).
    plus(X, V) :- n(X, I, _, _, _), V = I + 1.
    times(X, V) :- n(X, I, _, _, _), V = I * I.
    over(X, V) :- n(X, I, _, _, _), V = 10 / I.
    float_sum(sum(F)) :- n(_, _, F, _, _).
    product(X, V) :- n(X, _, F, _, _), V = F * 1.0e300.
    decimal_sum(sum(D), avg(D)) :- n(_, _, _, D, _).
    int_sum(P, sum(I), count()) :- n(X, I, _, _, _), P = X mod 2.
    ends(min(S), max(S)) :- n(_, _, _, _, S).
    text(X, V) :- n(X, _, _, _, S), V = concat(upper(S), "!").
    same(X, Y) :- n(X, I, _, _, _), n(Y, I, _, _, _), X < Y.
    none(X) :- n(X, I, _, _, _), not n(_, X, _, _, _).
"""


def test_what_the_cluster_computes_is_exact(spark: SparkSession) -> None:
    """Overflow, division by zero, null, floats that cancel out: as on the reference engine."""
    from decimal import Decimal

    spark.conf.set("spark.deltalog.driver_rows_max", "0")
    largest = 2**63 - 1
    facts = {
        "n": [
            (0, largest, 1e16, Decimal("0.000000000000000001"), "ß"),
            (1, None, 1.0, Decimal("99999999999999999999"), "z"),
            (2, 0, -1e16, Decimal("0.1"), "Z"),
            (3, None, 1e10, Decimal("-99999999999999999999"), "é"),
            (4, largest, -0.0, Decimal("2.50"), ""),
        ]
    }
    ours = deltalog.connect(spark=spark, program=EXACT, facts=facts)
    reference = deltalog.connect(program=EXACT, facts=facts)
    for name in reference.relations:
        assert ours.facts(name) == reference.facts(name), name


def test_frames_in_and_out(spark: SparkSession) -> None:
    frame = spark.range(40).select(F.col("id").alias("src"), (F.col("id") * 2).alias("dst"))
    database = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": frame})
    reference = deltalog.connect(program=CLOSURE, facts={"edge": [(n, 2 * n) for n in range(40)]})
    assert database.facts("path") == reference.facts("path")
    shown = engine_of(database).frame("path").where("c0 = 5")
    assert {tuple(row) for row in shown.collect()} == {(5, 10), (5, 20), (5, 40)}


@pytest.mark.parametrize("partitions", [2, 4, 8])
def test_every_share_has_a_partition_of_its_own(partitions: int, spark: SparkSession) -> None:
    source = Source("p", ("int",), spark.range(1000).select(F.col("id").alias("c0")), 0)
    data = rows_to_send(source, 0, share_numbers(spark, partitions), {"int_0": "int"})
    put = data.repartition(partitions, F.col("share")).groupBy(F.spark_partition_id()).count()
    assert len(put.collect()) == partitions


STAR = """
    base invoice(id: int, customer: int, amount: int).
    base paid(invoice: int).
    base customer(id: int, region: int).
    open_amount(R, sum(A), count()) :- invoice(I, C, A), not paid(I), customer(C, R).
"""


def test_a_change_of_a_star_join_is_one_job(spark: SparkSession) -> None:
    """For the net effect on both relations, and for all that rules look up."""
    numbers = spark.range(60)
    invoice = numbers.selectExpr("id", "id % 3 AS customer", "id * 10 AS amount")
    facts = {
        "invoice": invoice,
        "paid": numbers.where("id % 2 = 0"),
        "customer": [(n, n % 2) for n in range(3)],
    }
    database = deltalog.connect(spark=spark, program=STAR, facts=facts)
    engine = engine_of(database)
    for number in (0, 10, 20):  # the first one installs rules, and learns what they look up
        engine.jobs.clear()
        database.apply(
            insert={"invoice": [(100 + number, 1, 5)], "paid": [(number + 1,)]},
            delete={"invoice": [(number + 3, number % 3, 10 * number + 30)], "paid": [(number,)]},
        )
        assert database.audit(engine="reference") == ()
    database.apply(insert={"paid": [(100,)]})
    engine.jobs.clear()
    database.apply(insert={"invoice": [(300, 1, 5)], "paid": [(5,)]}, delete={"paid": [(6,)]})
    assert engine.jobs["probe"] == 1
    assert database.audit(engine="reference") == ()


def test_a_deletion_sees_whole_pivots(spark: SparkSession) -> None:
    """However deep it goes, it is a few jobs."""
    spark.conf.set("spark.deltalog.driver_rows_max", "20")
    ring = [(n, (n + 1) % 24) for n in range(24)] + [(n, (n + 2) % 24) for n in range(0, 24, 3)]
    frame = spark.createDataFrame(ring, "src bigint, dst bigint")
    spark.conf.set("spark.deltalog.literal_keys_max", "100")
    database = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": frame})
    spark.conf.set("spark.deltalog.literal_keys_max", "5")
    engine = engine_of(database)
    database.apply(insert={"edge": [(5, 8)]})
    engine.jobs.clear()
    database.apply(delete={"edge": [(10, 11)]})
    assert engine.jobs["probe"] <= 6
    assert engine.jobs["partitions"] == 0
    assert database.audit(engine="reference") == ()


@pytest.mark.parametrize("rows", ["20", "2"])
def test_a_deletion_that_takes_many_jobs_is_given_up(
    rows: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or that begins from more than the driver should hold: all is computed anew."""
    monkeypatch.setattr("deltalog.engines.spark.engine.JOBS_MIN", 0)
    spark.conf.set("spark.deltalog.driver_rows_max", rows)
    frame = spark.createDataFrame(RING, "src bigint, dst bigint")
    database = deltalog.connect(spark=spark, program=CLOSURE, facts={"edge": frame})
    delta = database.apply(delete={"edge": [(3, 4)]})
    assert len(delta.deleted["path"]) == 36
    assert [node.choice.strategy for node in database.propagation.ran] == ["recompute"]
    assert database.audit(engine="reference") == ()
    patient = deltalog.connect(
        spark=spark, program=CLOSURE, facts={"edge": frame}, strategy="differencing"
    )
    assert len(patient.apply(delete={"edge": [(3, 4)]}).deleted["path"]) == 36


def test_ints_without_a_value_go_through_partitions(spark: SparkSession) -> None:
    program = """
        base edge(src: int?, dst: int?).
        path(X, Y) :- edge(X, Y).
        path(X, Z) :- path(X, Y), edge(Y, Z).
    """
    edges = [(1, None), (None, 3), (3, 4), (4, 3), (5, 1), (None, None), (6, 5)]
    frame = spark.createDataFrame(edges, "src bigint, dst bigint")
    database = deltalog.connect(spark=spark, program=program, facts={"edge": frame})
    assert engine_of(database).jobs["partitions"] == 1
    assert database.facts("path") == deltalog.connect(program=program, facts={"edge": edges}).facts(
        "path"
    )
    database.apply(delete={"edge": [(None, 3)]})
    assert database.audit(engine="reference") == ()


def test_the_benchmark_is_of_right_answers(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both workloads at a tiny size: they compare with queries by hand, and raise otherwise."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from bench import spark_closure, spark_star
    from bench.measure import BenchError
    from bench.spark import SparkFound

    for module in (spark_closure, spark_star):
        monkeypatch.setattr(module, "WARM_UPS", 0)
    monkeypatch.setattr(spark_closure, "COMMUNITY", 5)
    monkeypatch.setattr(spark_closure, "SHARES", (1.0,))
    monkeypatch.setattr(spark_star, "CUSTOMERS", 50)
    monkeypatch.setattr(spark_star, "PRODUCTS", 5)
    star, closed = spark_star.StarFound(4_000), spark_closure.ClosureFound()
    spark.conf.set("spark.deltalog.driver_rows_max", "100")
    assert "checking" in list(spark_star.star(spark, star, 1, is_first=False))
    assert "checking" in list(spark_closure.closure(spark, 1, 1, closed))
    lines = list(SparkFound((star,), closed, is_full=False).lines())
    assert len(lines) == 5
    assert all(line.ours > 0 and line.by_hand > 0 for line in lines)
    monkeypatch.setattr(spark_star, "by_hand", lambda frames: set())
    with pytest.raises(BenchError, match="is not what the query by hand says"):
        list(spark_star.star(spark, star, 1, is_first=False))


def test_a_probe_with_fewer_columns_is_ordered_once() -> None:
    frame = Frame(None, 0, 3)
    frame.remember((0,), [(1,)], [((1, 2), 0), ((1, 3), 1)])
    assert frame.known((0, 1), (1, 2)) == [(1, 2)]
    frame.probed[0,][1,] = []  # which is not looked at again
    assert frame.known((0, 1), (1, 3)) == [(1, 3)]
    assert frame.known((0, 1), (1, 9)) == []
    assert frame.known((0, 1), (2, 2)) is None
    frame.mask.add((1, 3))
    assert frame.known((0, 1), (1, 3)) == []
    frame.forget()
    assert frame.known((0, 1), (1, 2)) is None


def test_values_of_a_column_are_found_where_they_are(engine: SparkEngine) -> None:
    engine.create("day", ("int", "date"))
    rows = [(n % 3, None if n == 5 else date(2026, 1, 1 + n)) for n in range(10)]
    engine.insert("day", rows[:2])
    assert engine.values("day", 0) == {0, 1}
    assert "values" not in engine.jobs
    engine.insert("day", rows)
    engine.settle()
    assert engine.values("day", 0) == {0, 1, 2}
    assert engine.values("day", 1) == {row[1] for row in rows}
    assert dict(engine.jobs)["values"] == 2
