"""Deltalog in one minute, without Spark: `make demo-embedded`.

Loads the permissions example, changes facts and rules with their exact effect, tries what is not
meant and what is forbidden, asks something, and recomputes everything to compare.
"""

from __future__ import annotations

from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import deltalog
from deltalog.store.files import read_rows

FOLDER = Path(__file__).parent / "permissions"
PROGRAM = FOLDER / "permissions.dl"

console = Console(highlight=False)
console.width = min(console.width, 100)


def main() -> None:
    database = loaded(materialize=True)
    show_idea()
    show_views(database)
    show_transaction(database)
    show_what_if(database)
    show_rule_change(database)
    show_query()
    show_refusal(database)
    show_audit(database)


def loaded(materialize: bool) -> deltalog.Database:
    """The program with the facts of its CSV files, in one transaction."""
    database = deltalog.connect(program=PROGRAM, materialize=materialize)
    with database.transaction() as tx:
        for path in sorted(FOLDER.glob("*.csv")):
            tx.insert(path.stem, read_rows(path, database.relations[path.stem].columns))
    return database


def chapter(title: str, text: str) -> None:
    console.print()
    console.rule(f"[bold]{title}", align="left", style="dim")
    console.print(text)


def show_idea() -> None:
    chapter("1  Rules", "Who may read which document? Teams are nested, denials beat grants:")
    wanted = ("belongs(", "access(", "readers(")
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    rules = "\n".join(line for line in lines if line.startswith(wanted))
    console.print(Panel(Text(rules, style="cyan"), border_style="dim", expand=False))


def show_views(database: deltalog.Database) -> None:
    sizes = [(name, len(database.facts(name))) for name in ("belongs", "access")]
    said = ", ".join(f"[bold]{number}[/] facts of {name}" for name, number in sizes)
    chapter("2  Views", f"Loaded from CSV files; what follows from them is there:\n{said}.")
    readers = table("document", "readers")
    for title, number in database.query("readers(Title, Number)"):
        readers.add_row(str(title), str(number))
    hidden = table("nobody may read")
    for (title,) in database.query("unreadable(Title)"):
        hidden.add_row(str(title))
    console.print(Columns([readers, hidden], padding=(0, 6)))


def show_transaction(database: deltalog.Database) -> None:
    chapter(
        "3  A transaction and its exact effect",
        "The web team moves from engineering to operations, and contractors may see the roadmap.",
    )
    delta = database.apply(
        delete={"member": [("web", "engineering")], "denial": [("contractors", "roadmap")]},
        insert={"member": [("web", "operations")]},
    )
    given = delta.only("member", "denial")
    followed = delta.only("access", "readers")
    console.print(Columns([changes("given", given), changes("followed", followed)], padding=(0, 6)))
    shown = given.relations + followed.relations
    others = ", ".join(name for name in delta.relations if name not in shown)
    console.print(f"[dim]and {len(delta) - len(given) - len(followed)} changes in {others}[/]")


def show_what_if(database: deltalog.Database) -> None:
    chapter("4  What if?", "What if operations might read the papers on the merger?")
    version = database.version
    delta = database.what_if(insert={"grant": [("operations", "merger")]})
    access = changes("would follow", delta.only("access"))
    audits = changes("and for the auditor", delta.only("readers", "unreadable"))
    console.print(Columns([access, audits], padding=(0, 6)))
    assert database.version == version
    console.print("[dim]Nothing has changed.[/]")


def show_rule_change(database: deltalog.Database) -> None:
    rule = "access(U, D) :- document(D, U)."
    chapter(
        "5  A change of rules", "From now on an owner may read her document, whatever else holds:"
    )
    console.print(Panel(Text(rule, style="cyan"), border_style="dim", expand=False))
    delta = database.change_program(f"{PROGRAM.read_text(encoding='utf-8')}\n{rule}\n")
    console.print(changes("followed", delta))
    console.print(f"[dim]Only what the rule reaches was looked at: version {database.version}.[/]")


def changes(title: str, delta: deltalog.ChangeSet) -> Table:
    listed = table(title)
    for op, relation, row in delta:
        fact = f"{op} {relation}({', '.join(map(str, row))})"
        listed.add_row(Text(fact, style="green" if op == "+" else "red"))
    return listed


def show_query() -> None:
    question = 'access("rosa", Title)'
    everything = loaded(materialize=True)
    rows = loaded(materialize=False).query(question)
    chapter(
        "6  A query that derives only what it needs",
        f"[cyan]? {question}.[/]   " + ", ".join(f"[bold]{title}[/]" for (title,) in rows),
    )
    total = sum(
        len(everything.facts(name))
        for name, relation in everything.relations.items()
        if relation.kind == "view" and relation.storage == "materialized"
    )
    console.print(
        f"[dim]No view was stored: {rows.statistics.total} facts were derived for this answer; "
        f"the stored views of the other database have {total}.[/]"
    )


def show_refusal(database: deltalog.Database) -> None:
    chapter("7  A transaction that is refused", "The handbook has an owner already:")
    before = database.facts("grant")
    try:
        with database.transaction() as tx:
            tx.insert("grant", [("tom", "merger")])
            tx.insert("document", [("handbook", "tom")])
    except deltalog.DataError as error:
        console.print(Panel(Text(str(error), style="red"), border_style="dim", expand=False))
    assert database.facts("grant") == before
    console.print("[dim]All of a transaction counts, or nothing: tom has no new grant either.[/]")


def show_audit(database: deltalog.Database) -> None:
    chapter("8  Is it all true?", "Every view recomputed from the base facts, and compared:")
    differences = database.audit()
    views = [name for name, known in database.relations.items() if known.kind == "view"]
    facts = sum(len(database.facts(name)) for name in views)
    for each in differences:
        console.print(
            f"[red]{each.view}: {len(each.missing)} missing, {len(each.excess)} in excess[/]"
        )
    if not differences:
        console.print(f"[green]{len(views)} views with {facts} facts, and no difference.[/]")
    console.print()


def table(*columns: str) -> Table:
    made = Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", header_style="dim")
    return made


if __name__ == "__main__":
    main()
