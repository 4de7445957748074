"""The public dynamic-datalog CRDT problem: the order of a text from the edits that made it.

    python -m bench.crdt FOLDER              insert.txt and remove.txt of the problem
    python -m bench.crdt --typed 20000       edits of somebody who types, made up from a seed

An element is inserted to the right of its parent and named by a counter and a node. Children of one
parent stand with the later ones first; the text is the walk through that tree, parents before their
children, without what was removed. `next_visible` says which element follows which.

Loading is measured, then single edits: a removal or an insertion of the record is undone, and made
again. Each answer is compared with a walk in plain Python. The rules as published skip removed
elements from every element, and so derive a fact for each two in a row of them; ours begin at
visible ones. `--published` loads those, too, and says what they cost.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import deltalog

Element = tuple[int, int]
Insertion = tuple[int, int, int, int]

ORDER = """
base insert(counter: int, node: int, parent_counter: int, parent_node: int).
base remove(counter: int, node: int).

after(C, N, D, M) :- insert(C, N, P, Q), insert(D, M, P, Q), (C > D ; C = D, N > M).
far_after(C, N, E, K) :- after(C, N, D, M), after(D, M, E, K).
first_child(P, Q, C, N) :- insert(C, N, P, Q), not after(_, _, C, N).
next_sibling(C, N, D, M) :- after(C, N, D, M), not far_after(C, N, D, M).
next_above(C, N, D, M) :- next_sibling(C, N, D, M).
next_above(C, N, D, M) :- insert(C, N, P, Q), not after(C, N, _, _), next_above(P, Q, D, M).
next_element(C, N, D, M) :- first_child(C, N, D, M).
next_element(C, N, D, M) :- next_above(C, N, D, M), not insert(_, _, C, N).
visible(C, N) :- insert(C, N, _, _), not remove(C, N).
"""
FROM_VISIBLE = """
skipped(C, N, D, M) :- visible(C, N), next_element(C, N, D, M).
skipped(C, N, E, K) :- skipped(C, N, D, M), not visible(D, M), next_element(D, M, E, K).
next_visible(C, N, D, M) :- skipped(C, N, D, M), visible(D, M).
"""
FROM_EVERYWHERE = """
skip_blank(C, N, D, M) :- next_element(C, N, D, M).
skip_blank(C, N, E, K) :- next_element(C, N, D, M), not visible(D, M), skip_blank(D, M, E, K).
next_visible(C, N, D, M) :- visible(C, N), skip_blank(C, N, D, M), visible(D, M).
"""
PROGRAM = ORDER + FROM_VISIBLE
PUBLISHED = ORDER + FROM_EVERYWHERE


@dataclass(frozen=True)
class Edits:
    """Elements that were inserted, each with its parent, and elements that were removed."""

    insert: tuple[Insertion, ...]
    remove: tuple[Element, ...]

    @property
    def facts(self) -> dict[str, list[tuple[int, ...]]]:
        return {"insert": list(self.insert), "remove": list(self.remove)}


def recorded(folder: Path) -> Edits:
    """The edits of the public problem, wherever in the folder its files are."""

    def rows(name: str) -> Iterator[tuple[int, ...]]:
        (path,) = folder.rglob(name)
        for line in path.read_text(encoding="ascii").splitlines():
            yield tuple(map(int, line.split()))

    return Edits(tuple(rows("insert.txt")), tuple(rows("remove.txt")))  # type: ignore[arg-type]


def typed(count: int, seed: int = 7) -> Edits:
    """So many edits of two people who type, go somewhere else, and take back what they typed.

    >>> typed(50) == typed(50), len(typed(50).insert) + len(typed(50).remove)
    (True, 50)
    """
    draw = random.Random(seed)
    text: list[Element] = []
    insert: list[Insertion] = []
    remove: list[Element] = []
    at, node = 0, 0
    while len(insert) + len(remove) < count:
        chance = draw.random()
        if chance < 0.05:
            at, node = draw.randint(0, len(text)), draw.randrange(2)
        if chance > 0.7 and at > 0:
            at -= 1
            remove.append(text.pop(at))
        else:
            parent = text[at - 1] if at > 0 else (0, 0)
            element = (len(insert) + 1, node)
            insert.append((*element, *parent))
            text.insert(at, element)
            at += 1
    return Edits(tuple(insert), tuple(remove))


def text_order(insert: Iterable[Insertion], remove: Iterable[Element]) -> list[Element]:
    """The visible elements in the order of the text, by a walk through the tree."""
    children: dict[Element, list[Element]] = {}
    for counter, node, *parent in insert:
        children.setdefault((parent[0], parent[1]), []).append((counter, node))
    gone = set(remove)
    order: list[Element] = []
    waiting = [(0, 0)]
    while waiting:
        element = waiting.pop()
        order.append(element)
        waiting += sorted(children.get(element, ()))
    return [element for element in order[1:] if element not in gone]


def followers(order: list[Element]) -> set[tuple[int, ...]]:
    """The order as facts of `next_visible`."""
    return {(*one, *other) for one, other in itertools.pairwise(order)}


def open_text(edits: Edits, program: str, engine: str) -> tuple[deltalog.MemoryDatabase, float]:
    """The database of a text, and the seconds that it took to load."""
    started = time.perf_counter()
    database = deltalog.connect(program=program, facts=edits.facts, engine=engine)
    return database, time.perf_counter() - started


def check(database: deltalog.MemoryDatabase, edits: Edits) -> None:
    expected = followers(text_order(edits.insert, edits.remove))
    if database.facts("next_visible") != expected:
        raise SystemExit("next_visible is not the order of the text")


def edit_times(
    database: deltalog.MemoryDatabase, relation: str, rows: list[tuple[int, ...]]
) -> tuple[list[float], list[float]]:
    """Milliseconds to undo each of some edits, and to make it again."""
    undone, redone = [], []
    for row in rows:
        started = time.perf_counter()
        gone = database.apply(delete={relation: [row]})
        between = time.perf_counter()
        back = database.apply(insert={relation: [row]})
        redone.append(1000 * (time.perf_counter() - between))
        undone.append(1000 * (between - started))
        if gone != -back:
            raise SystemExit(f"undoing and redoing {relation}{row} differ")
    return undone, redone


def main(arguments: list[str] | None = None) -> int:
    title = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.crdt", description=title)
    parser.add_argument("folder", nargs="?", type=Path, help="holds insert.txt and remove.txt")
    parser.add_argument("--typed", type=int, default=20_000, help="edits to make up without it")
    parser.add_argument("--edits", type=int, default=200, help="edits to undo and redo, of a kind")
    parser.add_argument("--engine", default="embedded")
    parser.add_argument("--published", action="store_true", help="load the rules as published, too")
    chosen = parser.parse_args(arguments)
    edits = typed(chosen.typed) if chosen.folder is None else recorded(chosen.folder)
    print(f"{len(edits.insert):,} insertions, {len(edits.remove):,} removals")
    database, seconds = open_text(edits, PROGRAM, chosen.engine)
    check(database, edits)
    number = len(database.facts("next_visible"))
    total = database.statistics.total
    print(f"load      {seconds:8.2f} s   {total:,} facts derived, {number:,} in next_visible")
    draw = random.Random(0)
    for relation, facts in edits.facts.items():
        rows = draw.sample(facts, min(chosen.edits, len(facts)))
        for kind, times in zip(("undo", "redo"), edit_times(database, relation, rows), strict=True):
            median, mean = statistics.median(times), statistics.fmean(times)
            print(f"{kind} {relation}  median {median:.3f} ms, mean {mean:.3f} ms")
    check(database, edits)
    if chosen.published:
        published, seconds = open_text(edits, PUBLISHED, chosen.engine)
        check(published, edits)
        derived = published.statistics.generated
        print(
            f"published {seconds:8.2f} s   {derived.total():,} facts derived, "
            f"{derived['skip_blank']:,} in skip_blank"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
