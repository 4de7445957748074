"""The monitoring service in half a minute: `make demo-service`.

Serves the permissions example and prints the address of its page. Two clients follow views, one in
this process and one with its copy in a file, while a script commits changes; one of them goes away
meanwhile and continues where it was. On a terminal it keeps serving until Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

import deltalog
from deltalog.client import Client, ViewCopy, ViewDelta
from deltalog.client.calls import Facts
from deltalog.service.background import background_service
from deltalog.service.settings import ServiceSettings
from deltalog.store.files import read_rows

FOLDER = Path(__file__).parent / "permissions"
SCRIPT = FOLDER / "changes.jsonl"
WAIT_SECONDS_MAX = 60.0

console = Console(highlight=False)
console.width = min(console.width, 100)


@dataclass(frozen=True)
class Access:
    """A row of the view `access`."""

    user: str
    title: str


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--port", type=int, default=0, help="where the page is served")
    arguments.add_argument("--seconds", type=float, default=0.5, help="between two transactions")
    chosen = arguments.parse_args()
    logging.getLogger("deltalog").setLevel(logging.ERROR)
    with (
        tempfile.TemporaryDirectory() as folder,
        background_service(loaded(), ServiceSettings(port=chosen.port)) as address,
        Client(address) as client,
    ):
        console.print(f"\nThe page is at [bold]{address}/[/]\n")
        show(client, Path(folder) / "readers.copy", chosen.seconds)
        if sys.stdin.isatty() and sys.stdout.isatty():
            console.print("\nServing until Ctrl-C.")
            keep_changing(client)


def loaded() -> deltalog.MemoryDatabase:
    """The program with the facts of its CSV files, in one transaction."""
    database = deltalog.connect(program=FOLDER / "permissions.dl")
    with database.transaction() as tx:
        for path in sorted(FOLDER.glob("*.csv")):
            tx.insert(path.stem, read_rows(path, database.relations[path.stem].columns))
    return database


def show(client: Client, file: Path, seconds: float) -> None:
    transactions = [json.loads(line) for line in SCRIPT.read_text("utf-8").splitlines() if line]
    middle = len(transactions) // 2
    access = client.view("access", into=Access)
    access.start(lambda delta: report("access", delta))
    readers = client.view("readers", file=file)
    report("readers", *readers.refresh())
    for number, changes in enumerate(transactions, start=1):
        commit(client, changes)
        if number <= middle:
            report("readers", *readers.refresh())
        if number == middle:
            readers.close()
            console.print("[dim]readers: this client goes away; its copy and offset are a file[/]")
        time.sleep(seconds)
    with client.view("readers", file=file) as again:
        console.print(
            f"[dim]readers: back, with {len(again)} rows as of version {again.version}[/]"
        )
        report("readers", *again.refresh())
        version = client.status()["version"]
        wait_for(access, version)
        check(client, "access", frozenset((row.user, row.title) for row in access))
        check(client, "readers", again.rows)
    access.close()


def commit(client: Client, changes: dict[str, Facts]) -> None:
    made = client.apply(changes.get("insert"), changes.get("delete"), changes.get("set"))
    console.print(f"[bold]version {made.version}[/]  [dim]{json.dumps(changes)}[/]")


def report(view: str, *deltas: ViewDelta) -> None:
    for delta in deltas:
        if delta.is_snapshot:
            console.print(f"[dim]{view}: a copy of {len(delta.inserted)} rows[/]")
            continue
        for sign, rows in (("-", delta.deleted), ("+", delta.inserted)):
            for row in rows:
                text = f"  {view} v{delta.version}  {sign} {row}"
                console.print(Text(text, style="green" if sign == "+" else "red"))


def wait_for(view: ViewCopy, version: int) -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    while view.version != version and time.monotonic() < until:
        time.sleep(0.02)


def check(client: Client, view: str, rows: frozenset[object]) -> None:
    expected = set(client.query(f"{view}(A, B)"))
    same = "is the view" if rows == expected else "DIFFERS from the view"
    console.print(f"The copy of {view} {same}: {len(rows)} rows.")
    assert rows == expected


def keep_changing(client: Client) -> None:
    """Change something every second, so that the page has something to show."""
    stopping = threading.Event()
    sides = ("insert", "delete")
    for number in range(1_000_000):
        client.apply(**{sides[number % 2]: {"grant": [("operations", "merger")]}})
        try:
            stopping.wait(1.0)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
