from __future__ import annotations

from pathlib import Path

import pytest
from command_line import GRAPH, Call, write

from deltalog.cli.commands import NAMES
from deltalog.cli.line_reader import completions_of, history_path
from deltalog.cli.statements import Statement, group_statements, is_complete, split_statements
from deltalog.rewrites.strategies import STRATEGIES


def test_a_script_builds_asks_and_changes(command: Call) -> None:
    script = GRAPH + "+edge(1, 2). +edge(2, 3).\n? path(1, Y).\n-edge(1, 2).\n"
    result = command("repl", given=script)
    assert result.returncode == 0
    assert result.stderr == ""
    assert result.stdout == (
        "+edge(1, 2).\n+edge(2, 3).\n+path(1, 2).\n+path(1, 3).\n+path(2, 3).\n"
        "? path(1, Y).\nY\n-\n2\n3\n(2 rows)\n"
        "-edge(1, 2).\n-path(1, 2).\n-path(1, 3).\n"
    )


def test_changes_that_stand_together_are_one_transaction(invoke: Call) -> None:
    script = "+edge(1, 2). -edge(1, 2).\n+edge(1, 2).\n+edge(5, 6). -edge(1, 2).\n"
    result = invoke("repl", "graph.dl", given=script)
    assert result.stdout == (
        "+edge(1, 2).\n+path(1, 2).\n-edge(1, 2).\n+edge(5, 6).\n-path(1, 2).\n+path(5, 6).\n"
    )


def test_a_statement_may_take_several_lines(invoke: Call) -> None:
    script = 'base t(x: str).\nt(\n  "a. b" /* . */\n). % done.\n? t(X),\n  X contains "."\n.\n'
    assert "a. b" in invoke("repl", given=script).stdout


def test_a_bad_statement_changes_nothing_and_the_rest_goes_on(invoke: Call) -> None:
    script = (
        "edge(1, 2).\n"
        "bad(X) :- nope(X).\n"
        "path(X) :- edge(X, _).\n"
        "win(X) :- edge(X, Y), not win(Y).\n"
        "edge(1.5, 2).\n"
        ":list\n"
        "? path(X, Y).\n"
    )
    result = invoke("repl", "graph.dl", given=script)
    assert result.exit_code == 1
    assert " --> <stdin>:2:11" in result.stderr
    for code in ("E0203", "E0204", "E0501", "E0402"):
        assert f"error[{code}]" in result.stderr
    assert result.stdout == (
        f"+edge(1, 2).\n+path(1, 2).\n{GRAPH.splitlines()[0]}\n\n"
        + "\n".join(GRAPH.splitlines()[1:])
        + "\n"
        "% edge: 1 fact\n? path(X, Y).\nX  Y\n-  -\n1  2\n(1 row)\n"
    )


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("+path(1, 2).", "`path` is a view and cannot be changed directly"),
        ("+egde(1, 2).", "did you mean `edge`?"),
        ("+edge(1).", "has 2 values"),
        ('+edge("a", 2).', "does not fit"),
        ("+edge(X, 2).", "a fact cannot contain the variable `X`\n --> <stdin>:1:7"),
        ("+edge(1 + 1, 2).", "expected a value, found an expression"),
        ("+edge(X, Y) :- edge(Y, X).", "expected a fact, found a rule"),
        ("+? edge(1, 2).", "expected a fact"),
        ("+.", "expected"),
        ("-edge(1, 2", "this statement never ends"),
        ("? pth(1).", "did you mean `path`?"),
        (":frob", "unknown command `:frob`"),
        (":fact x", "there is no relation `x`"),
        (":facts pth", "did you mean `path`?"),
        (":schema pth", "did you mean `path`?"),
        (":load edge none.csv", "cannot read `none.csv`"),
        (":load path edges.csv", "is a view"),
        (":explain pth(1)", "did you mean `path`?"),
        ('include "none.dl".', "cannot include `none.dl`"),
    ],
)
def test_what_is_refused(invoke: Call, statement: str, words: str) -> None:
    result = invoke("repl", "graph.dl", given=f"{statement}\n")
    assert result.exit_code in (1, 4)
    assert words in result.stderr
    assert result.stdout == ""


def test_the_sign_is_shown_where_a_change_is_wrong(invoke: Call) -> None:
    result = invoke("repl", "graph.dl", given="+edge(1, 2). +edge(X, 2).\n")
    assert "1 | +edge(1, 2). +edge(X, 2).\n" in result.stderr
    assert result.stdout == ""


def test_the_code_is_that_of_the_first_problem(invoke: Call) -> None:
    assert invoke("repl", "graph.dl", given=":facts\n? p.\n").exit_code == 2
    assert invoke("repl", "graph.dl", given=":load edge x.csv\n? p.\n").exit_code == 4
    assert invoke("repl", "--rounds-max", "9", given="n(0). n(X + 1) :- n(X).\n").exit_code == 3


def test_commands(invoke: Call) -> None:
    write("more.dl", GRAPH + "edge(1, 2). edge(2, 3).\n")
    write("new.csv", "3,4\n1,2\n")

    def said(line: str) -> str:
        result = invoke("repl", "more.dl", given=f"{line}\n")
        assert (result.exit_code, result.stderr) == (0, "")
        return str(result.stdout)

    assert said(":facts edge") == "edge(1, 2).\nedge(2, 3).\n"
    assert said(":schema") == (
        "base edge(src: int, dst: int).  % 2 facts\nview path(x: int, y: int).  % 3 facts\n"
    )
    assert said(":schema path").endswith("path(X, Y) :- edge(X, Z), path(Z, Y).\n")
    assert said(":load edge new.csv") == "% edge: 1 inserted\n% path: 3 inserted\n"
    assert said(":load edge 'edges.csv'") == "% nothing changes\n"
    assert said(":strata") == "strata\n  0  edge\n  1  path\n"
    assert "answer__(Y) :- path(1, Y)." in said(":explain path(1, Y)")
    assert "path <- edge, path" in said(":explain")
    for name in NAMES:
        assert name in said(":help")
    assert said(":q\n? path(1, Y).") == ""
    assert said(":list").endswith("% edge: 2 facts\n")


def test_facts_survive_a_new_rule(invoke: Call) -> None:
    script = "-edge(1, 2). +edge(8, 9).\nback(Y, X) :- edge(X, Y).\n:facts edge\n:facts back\n"
    write("more.dl", GRAPH + "edge(1, 2).\n")
    result = invoke("repl", "more.dl", "--facts", "edge=edges.csv", given=script)
    assert result.stderr == ""
    assert result.stdout.endswith("edge(2, 3).\nedge(8, 9).\nback(3, 2).\nback(9, 8).\n")


def test_undeclared_relations_keep_their_inferred_types(invoke: Call) -> None:
    script = (
        "p(1). p(2).\nq(X) :- p(X).\n-p(1). -p(2).\nr(X) :- q(X).\n? r(X).\n"
        "p(2.5).\n? r(X).\np(null).\n:schema p\n"
        "+p(4.0).\ns(X) :- p(X), X > 3.\n:facts p\n"
    )
    result = invoke("repl", given=script)
    assert result.stderr == ""
    assert "(no rows)" in result.stdout
    assert "base p(c1: float?).  % 2 facts" in result.stdout
    assert result.stdout.endswith("+s(4.0).\np(null).\np(2.5).\np(4.0).\n")


def test_a_base_relation_can_become_a_view(invoke: Call) -> None:
    script = "p(1).\n+p(2).\np(X) :- p(Y), X = Y + 1, X < 4.\n:facts p\n"
    result = invoke("repl", given=script)
    assert result.stderr == ""
    assert result.stdout == "+p(1).\n+p(2).\n+p(3).\np(1).\np(2).\np(3).\n"


def test_keys_are_kept_while_facts_change(invoke: Call) -> None:
    script = (
        'pay("ann", 1).\n-pay("ann", 1).\npay("ann", 2).\n'
        "rich(X) :- pay(X, Y), Y > 1.\n? rich(X).\n"
        'pay("ann", 3).\n:facts pay\n'
    )
    write("pay.dl", "base pay(who: str key, much: int).\n")
    result = invoke("repl", "pay.dl", given=script)
    assert result.exit_code == 1
    assert 'two facts of `pay` have the key "ann"' in result.stderr
    assert result.stdout.endswith('X\n---\nann\n(1 row)\npay("ann", 2).\n')


def test_a_whole_file_can_be_added(invoke: Call) -> None:
    write("more.dl", "edge(1, 2).\nback(Y, X) :- edge(X, Y).\n? back(X, Y).\n")
    result = invoke("repl", "graph.dl", given='include "more.dl".\n')
    assert result.stderr == ""
    assert "2  1" in result.stdout


def test_a_new_rule_shows_what_it_changes(invoke: Call) -> None:
    write("more.dl", GRAPH + "edge(1, 2). edge(2, 1).\n")
    script = (
        "one_way(X, Y) :- path(X, Y), not path(Y, X).\n"
        "path(X, Y) :- edge(X, Z), edge(Z, W), Y = W + 10.\n"
        ":audit\n"
    )
    result = invoke("repl", "more.dl", given=script)
    assert result.stderr == ""
    assert result.stdout == (
        "+one_way(1, 11).\n+one_way(1, 12).\n+one_way(2, 11).\n+one_way(2, 12).\n"
        "+path(1, 11).\n+path(1, 12).\n+path(2, 11).\n+path(2, 12).\n"
        "all 2 views agree with recomputation\n"
    )


def test_rules_and_facts_together_are_one_change(invoke: Call) -> None:
    script = "edge(1, 2). back(Y, X) :- edge(X, Y). edge(3, 4).\n"
    result = invoke("repl", "graph.dl", given=script)
    assert result.stdout == (
        "+back(2, 1).\n+back(4, 3).\n+edge(1, 2).\n+edge(3, 4).\n+path(1, 2).\n+path(3, 4).\n"
    )


def test_a_refused_addition_leaves_its_facts_out(invoke: Call) -> None:
    result = invoke("repl", "graph.dl", given="edge(1, 2). bad(X) :- nope(X).\n:facts edge\n")
    assert "unknown predicate `nope`" in result.stderr
    assert result.stdout == ""


def test_a_rule_can_be_removed(invoke: Call) -> None:
    write("more.dl", GRAPH + "edge(1, 2). edge(2, 3).\npath(7, 8).\n")
    script = (
        ":remove path(X, Y) :- edge(X, Z), path(Z, Y).\n"
        ":remove path(7, 8).\n"
        ":remove path(X, Y) :- edge(Y, X).\n"
        ":remove edge(1, 2).\n"
        ":remove\n"
        ":facts path\n"
    )
    result = invoke("repl", "more.dl", given=script)
    assert result.exit_code == 1
    assert "unknown rule `path(X, Y) :- edge(Y, X).`" in result.stderr
    assert "did you mean `path(X, Y) :- edge(X, Y).`?" in result.stderr
    assert "`-edge(1, 2).` deletes a fact" in result.stderr
    assert "usage: :remove RULE" in result.stderr
    assert result.stdout == "-path(1, 3).\n-path(7, 8).\npath(1, 2).\npath(2, 3).\n"


def test_what_if_changes_nothing(invoke: Call) -> None:
    write("more.dl", GRAPH + "edge(1, 2).\n")
    script = (
        ":what-if +edge(2, 3). -edge(1, 2).\n"
        ":what-if back(Y, X) :- edge(X, Y).\n"
        ":what-if edge(2, 3).\n"
        ":what-if +edge(1, 2).\n"
        ":facts path\n:list\n"
    )
    result = invoke("repl", "more.dl", given=script)
    assert result.stderr == ""
    assert result.stdout == (
        "-edge(1, 2).\n+edge(2, 3).\n-path(1, 2).\n+path(2, 3).\n"
        "+back(2, 1).\n"
        "+edge(2, 3).\n+path(1, 3).\n+path(2, 3).\n"
        "% nothing would change\n"
        "path(1, 2).\n" + GRAPH.replace("\n", "\n\n", 1) + "% edge: 1 fact\n"
    )


@pytest.mark.parametrize("arguments", ["", "? path(X, Y).", "+edge(1, 2). edge(2, 3)."])
def test_what_if_is_about_one_change(invoke: Call, arguments: str) -> None:
    result = invoke("repl", "graph.dl", given=f":what-if {arguments}\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("usage: :what-if ")


def test_a_wrong_what_if(invoke: Call) -> None:
    result = invoke("repl", "graph.dl", given=":what-if +egde(1, 2).\n:what-if p(X) :- q(X).\n")
    assert result.exit_code == 1
    assert "did you mean `edge`?" in result.stderr
    assert "unknown predicate `q`" in result.stderr


def test_strategies_are_chosen_and_shown(invoke: Call) -> None:
    write("more.dl", GRAPH + "back(Y, X) :- edge(X, Y).\n")
    arguments = ("repl", "more.dl", "--strategy", "differencing", "--strategy", "path=magic")
    result = invoke(*arguments, given=":strategies\n+edge(1, 2).\n:audit\n")
    assert result.stdout == (
        "path  magic: requested\nback  differencing: requested\n"
        "+back(2, 1).\n+edge(1, 2).\n+path(1, 2).\n"
        "all 2 views agree with recomputation\n"
    )


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "auto"])
def test_rules_change_under_every_strategy(invoke: Call, strategy: str) -> None:
    script = (
        "edge(1, 2). edge(2, 1). edge(2, 3).\n"
        "one_way(X, Y) :- path(X, Y), not path(Y, X).\n"
        "reach(X, count()) :- path(X, _).\n"
        "-edge(2, 1).\n"
        ":remove path(X, Y) :- edge(X, Z), path(Z, Y).\n"
        "+edge(3, 1).\n:facts reach\n:audit\n"
    )
    result = invoke("repl", "graph.dl", "--strategy", strategy, given=script)
    assert result.stderr == ""
    assert result.stdout.endswith(
        "+reach(3, 1).\nreach(1, 1).\nreach(2, 1).\nreach(3, 1).\n"
        "all 3 views agree with recomputation\n"
    )


def test_a_repeated_rule_is_one_rule(invoke: Call) -> None:
    result = invoke("repl", given="p(1).\nq(X) :- p(X).\nq(X) :- p(X).\n:list\n")
    assert result.stdout.count("q(X) :- p(X).") == 1


def test_the_limit_cuts_long_changes(invoke: Call) -> None:
    result = invoke("repl", "graph.dl", "--limit", "1", given="+edge(1, 2). +edge(2, 3).\n")
    assert result.stdout == "+edge(1, 2).\n"
    assert result.stderr == "note: 4 more rows not shown\n"


def test_a_limit_undoes_the_change(invoke: Call) -> None:
    write("grow.dl", "base a(x: int).\nn(X) :- a(X).\nn(X + 1) :- n(X), X < 100.\n")
    script = "+a(99).\n+a(0).\n:facts a\n"
    result = invoke("repl", "grow.dl", "--rounds-max", "20", given=script)
    assert result.exit_code == 3
    assert result.stdout.endswith("+n(100).\na(99).\n")


def test_strange_input(invoke: Call, command: Call) -> None:
    assert invoke("repl", given="").exit_code == 0
    assert invoke("repl", given="\n\n% comment\n\n").stdout == ""
    unfinished = invoke("repl", given="p(1)")
    assert unfinished.exit_code == 1
    assert "this statement never ends" in unfinished.stderr
    assert invoke("repl", "missing.dl").exit_code == 4
    binary = command("repl", given=b"p(1).\n\xff\xfe.\n")
    assert binary.returncode == 4
    assert "standard input" in binary.stderr


def test_a_command_ends_an_unfinished_statement(invoke: Call) -> None:
    result = invoke("repl", "graph.dl", given="? path(1,\n:strata\n")
    assert result.exit_code == 1
    assert "this statement never ends" in result.stderr
    assert result.stdout.startswith("strata\n")


def test_a_long_script_is_quick(invoke: Call) -> None:
    lines = "".join(f"  % line {number}\n" for number in range(3000))
    result = invoke("repl", given=f"p(1).\nq(X) :-\n{lines}  p(X).\n? q(X).\n")
    assert "(1 row)" in result.stdout


# --- the pieces


def test_statements_are_cut_at_stops_only() -> None:
    text = 'p("a. b", 1.5, x1). % q. \n/* r. */ -p(1). ? q(X)'
    assert [text[each.start : each.end] for each in split_statements(text)] == [
        'p("a. b", 1.5, x1).', "-p(1).", "? q(X)"
    ]  # fmt: skip
    assert [kind for kind, _ in group_statements(text)] == ["clause", "change", "query"]
    assert list(split_statements("")) == []
    assert list(split_statements(".")) == [Statement("clause", 0, 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p(1).", True),
        ("p(1)", False),
        ("p(1.5)", False),
        ('p("a.', False),
        ("p(1). % more", True),
        ("p(1). /* more", False),
        ("p(1). /* more */", True),
        ("p(1). q(", False),
        ("", True),
        ("x1.5.", True),
    ],
)
def test_when_input_is_complete(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


def test_completions() -> None:
    predicates = ["path", "person", "edge"]
    assert completions_of("", ":s", predicates) == [":schema ", ":strata", ":strategies"]
    assert completions_of("? ", "pa", predicates) == ["path"]
    assert completions_of(":facts ", "", predicates) == ["edge", "path", "person"]
    assert "materialized" in completions_of("", "mat", predicates)
    assert completions_of("path(X) :- n", "not", predicates) == ["not"]


def test_where_the_history_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert history_path() == Path("/somewhere/deltalog/history")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    assert history_path() == Path("~/.local/state/deltalog/history").expanduser()


def test_parameters_of_a_session(invoke: Call) -> None:
    given = "+edge(1, 2).\n:param src 1\n:param\n? path($src, Y).\n:param src x\n? edge($src, Y).\n"
    result = invoke("repl", "graph.dl", given=given)
    assert "$src = 1\n? path(1, Y).\nY\n-\n2\n(1 row)\n" in result.stdout
    assert "x does not fit the parameter `$src`" in result.stderr
    result = invoke("repl", "graph.dl", given="p($x) :- edge($x, 1).\n? edge($y, X).\n")
    assert "E0119" in result.stderr
    assert "E0719" in result.stderr


@pytest.mark.parametrize("word", ["quit", "exit", " quit ", ":exit"])
def test_plain_words_end_a_session(invoke: Call, word: str) -> None:
    result = invoke("repl", "graph.dl", given=f"{word}\nnonsense\n")
    assert (result.exit_code, result.stderr) == (0, "")


def test_help_needs_no_colon(invoke: Call) -> None:
    assert ":what-if CHANGES" in invoke("repl", given="help\n").stdout
