"""How far deliveries are: a line for each target and rule, and a line for each dead letter."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from rich.text import Text

from deltalog.cli.results import table_lines
from deltalog.cli.terminal import visible_text, write_note, write_result
from deltalog.runtime.delivery_records import Book, Journal, StoredMessage

DEAD_SHOWN_MAX = 20
Counts = dict[tuple[str, str], int]


def write_status(journal: Journal, as_json: bool) -> None:
    """Write who waits for what; everything that is not settled counts."""
    book = journal.read()
    stored = journal.stored(-1)
    waiting = _count_waiting(book, stored)
    unclaimed = _count_unclaimed(book, stored)
    if as_json:
        write_result(json.dumps(_status_record(book, waiting, unclaimed), ensure_ascii=False))
        return
    cells = [_queue_cells(book, *key, count) for key, count in sorted(waiting.items())]
    header = ("target", "rule", "waiting", "dead", "attempts", "next attempt", "last failure")
    for line in table_lines(header, cells, (False, False, True, True, True, False, False)):
        write_result(line)
    for recipient in book.recipients.values():
        if recipient.stopped:
            text = f"{recipient.name} is stopped: {visible_text(recipient.stopped)}"
            write_result(Text(text, "red"))
    for letter in book.dead_letters[:DEAD_SHOWN_MAX]:
        about = f"{letter.name} {letter.id} → {letter.recipient}"
        write_result(
            f"dead letter {about}, {letter.attempts} attempts: {visible_text(letter.error)}"
        )
    left = len(book.dead_letters) - DEAD_SHOWN_MAX
    if left > 0:
        write_note(f"{left:,} more dead letters; `sys_dead_letter` has them all")
    for name, count in sorted(unclaimed.items()):
        write_result(f"{count:,} `{name}` that no target takes")


def _count_waiting(book: Book, stored: list[StoredMessage]) -> Counts:
    """The messages that each queue still has to deliver; queues without any count, too."""
    counts: Counts = {(each.recipient, each.rule): 0 for each in book.queues.values()}
    for message in stored:
        for recipient in book.recipients.values():
            key = recipient.name, message.rule
            if (
                recipient.takes(message.rule, message.name)
                and message.sequence > book.queue(*key).settled
            ):
                counts[key] = counts.get(key, 0) + 1
    return counts


def _count_unclaimed(book: Book, stored: list[StoredMessage]) -> dict[str, int]:
    counts: dict[str, int] = {}
    settled = book.settled
    for message in stored:
        is_taken = any(each.takes(message.rule, message.name) for each in book.recipients.values())
        if not is_taken and message.sequence > settled.get(message.rule, -1):
            counts[message.name] = counts.get(message.name, 0) + 1
    return counts


def _count_dead(book: Book, target: str, rule: str) -> int:
    return sum(1 for each in book.dead_letters if (each.recipient, each.rule) == (target, rule))


def _queue_cells(book: Book, target: str, rule: str, waiting: int) -> tuple[str, ...]:
    queue = book.queue(target, rule)
    due = datetime.fromtimestamp(queue.due).strftime("%Y-%m-%d %H:%M:%S") if queue.attempts else ""
    counts = f"{waiting:,}", f"{_count_dead(book, target, rule):,}", f"{queue.attempts:,}"
    return target, rule, *counts, due, visible_text(queue.error)


def _status_record(book: Book, waiting: Counts, unclaimed: dict[str, int]) -> dict[str, object]:
    queues = []
    for (target, rule), count in sorted(waiting.items()):
        queue = book.queue(target, rule)
        due = datetime.fromtimestamp(queue.due, UTC).isoformat() if queue.attempts else None
        found = {"target": target, "rule": rule, "waiting": count}
        found |= {"dead": _count_dead(book, target, rule), "attempts": queue.attempts}
        queues.append(found | {"due": due, "error": queue.error or None})
    return {
        "queues": queues,
        "stopped": {each.name: each.stopped for each in book.recipients.values() if each.stopped},
        "dead": len(book.dead_letters),
        "unclaimed": unclaimed,
    }
