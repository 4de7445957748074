"""AMOSQL on the command line: scripts, the prompt, and explanations."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import GRAPH, Call, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "inventory-amosql"
ORDERED = (
    "i      ordered\n-----  -------\nitem1     4850\nitem1     4861\nitem2     7211\n(3 rows)\n"
)
SMALL = """\
create type item;
create function quantity(item) -> integer;
create item instances :item1;
set quantity(:item1) = 3;
"""


@pytest.fixture(autouse=True)
def _example(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "inventory")


def test_the_session_of_the_paper_at_the_prompt(invoke: Call) -> None:
    """All of it typed, as a script types it."""
    files = ("inventory/inventory.amosql", "inventory/changes.amosql")
    script = ":language amosql\n" + "".join(Path(name).read_text() for name in files)
    result = invoke("repl", "--engine", "reference", given=script)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "item1        140\nitem2        290\n" in result.stdout
    assert result.stdout.endswith(ORDERED)
    fired = [line for line in result.stdout.splitlines() if line.startswith("% fired")]
    assert fired == [
        '% fired monitor_items("item1").',
        '% fired monitor_items("item2").',
        '% fired monitor_items("item1").',
    ]


def test_the_session_of_the_paper_from_a_file(invoke: Call) -> None:
    changes = Path("inventory/changes.amosql").read_text()
    with Path("inventory/inventory.amosql").open("a") as script:
        script.write(changes)
    result = invoke("run", "inventory/inventory.amosql", "--engine", "reference")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith(ORDERED)


def test_a_prompt_begins_with_a_script(invoke: Call) -> None:
    given = Path("inventory/changes.amosql").read_text()
    result = invoke("repl", "inventory/inventory.amosql", "--engine", "reference", given=given)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith(ORDERED)


def test_orders_go_to_a_function_of_python(invoke: Call) -> None:
    text = Path("inventory/inventory.amosql").read_text()
    foreign = text.replace("as\n  add ordered(i) = amount;", 'as foreign "orders:order";')
    assert foreign != text
    write("foreign.amosql", foreign)
    write("orders.py", "def order(rows):\n    for row in rows:\n        print('order', *row)\n")
    changes = Path("inventory/changes.amosql").read_text()
    arguments = ("repl", "foreign.amosql", "--engine", "reference", "--actions", "orders.py")
    result = invoke(*arguments, given=changes)
    assert (result.exit_code, result.stderr) == (0, "")
    orders = [line for line in result.stdout.splitlines() if line.startswith("order ")]
    assert orders == ["order item1 4861", "order item2 7211", "order item1 4850"]


def test_the_language_of_a_database_file_changes(invoke: Call) -> None:
    write("small.amosql", SMALL)
    assert invoke("create", "shop.db", "small.amosql").stderr == "note: shop.db contains 5 facts\n"
    script = ":language amosql\n:language\n:language deltalog\n? quantity(I, Q).\n"
    assert invoke("repl", "shop.db", given=script).stdout.endswith(
        "amosql\n? quantity(I, Q).\nI      Q\n-----  -\nitem1  3\n(1 row)\n"
    )
    result = invoke("repl", "shop.db", given=":language amosql\nquantity(:item1);\n")
    assert result.stdout == "quantity(:item1)\nquantity\n--------\n       3\n(1 row)\n"


def test_rules_and_statements_share_a_database(invoke: Call) -> None:
    script = (
        f":language amosql\n{SMALL}:language deltalog\nscarce(I) :- quantity(I, Q), Q < 5.\n"
        ":language amosql\ncreate type place;\nset quantity(:item1) = 7;\n:facts scarce\n"
    )
    result = invoke("repl", given=script)
    assert (result.exit_code, result.stderr) == (0, "")
    assert '+scarce("item1").\n' in result.stdout
    assert result.stdout.endswith('-scarce("item1").\n')


def test_a_bad_statement_changes_nothing_and_the_rest_goes_on(invoke: Call) -> None:
    script = f":language amosql\n{SMALL}set quantity(:item2) = 1;\nquantity(:item1);\nset q("
    result = invoke("repl", given=script)
    assert result.exit_code == 1
    assert " --> <stdin>:6:14" in result.stderr
    assert "error[E1313]" in result.stderr
    assert "error[E1301]" in result.stderr
    assert result.stdout.endswith("       3\n(1 row)\n")


def test_a_script_is_read_before_it_is_carried_out(invoke: Call) -> None:
    write("bad.amosql", SMALL + "select quantity(:item1);\nselect select;\ncreate it;\n")
    result = invoke("run", "bad.amosql")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("error[E0102]") == 2


def test_formats_and_relations(invoke: Call) -> None:
    write("small.amosql", SMALL + "select i, quantity(i) for each item i;\n")
    result = invoke("run", "small.amosql", "--format", "json", "--show", "item")
    assert result.stdout == (
        '{"query": "select i, quantity(i) for each item i", "row": {"i": "item1", "quantity": 3}}\n'
        '{"relation": "item", "row": {"o": "item1"}}\n'
    )
    assert invoke("run", "small.amosql", "--output", "quantity=q.csv").exit_code == 0
    assert Path("q.csv").read_text() == "item,value\nitem1,3\n"
    assert invoke("run", "small.amosql", "--facts", "quantity=q.csv").exit_code == 2
    assert invoke("run", "small.amosql", "--as-of", "1").exit_code == 2


def test_explain_shows_how_a_rule_is_monitored(invoke: Call) -> None:
    result = invoke("explain", "inventory/inventory.amosql")
    assert (result.exit_code, result.stderr) == (0, "")
    arcs = [line for line in result.stdout.splitlines() if " -> cnd_monitor_items" in line]
    assert [line.split()[0] for line in arcs] == [
        "consume_freq",
        "delivery_time",
        "min_stock",
        "quantity",
        "supplies",
    ]
    for part in ("condition", "expanded condition", "action", "arcs"):
        assert f"\n  {part}\n" in result.stdout
    assert "act_monitor_items(I): insert ordered(I, Argument)" in result.stdout


def test_explain_prints_the_rules(invoke: Call) -> None:
    result = invoke("explain", "inventory/inventory.amosql", "--as-rules")
    assert "\nbase quantity(item: str key, value: int).\n" in result.stdout
    assert "\nrule monitor_items\n    when cnd_monitor_items(I)\n" in result.stdout
    write("printed.dl", result.stdout)
    assert invoke("check", "printed.dl").exit_code == 0
    assert invoke("explain", "graph.dl", "--as-rules").stdout.split() == GRAPH.split()


def test_check_finds_what_is_wrong(invoke: Call) -> None:
    assert "1 active rule" in invoke("check", "inventory/inventory.amosql").stdout
    write("wrong.amosql", SMALL + "create function f(item i) -> integer as select g(i);\n")
    result = invoke("check", "wrong.amosql")
    assert result.exit_code == 1
    assert "unknown function `g`" in result.stderr
