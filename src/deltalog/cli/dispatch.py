"""`deltalog dispatch`: deliver the messages of a database file, beside whoever writes to it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Sequence, Set
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from deltalog.analysis.active_rules import emitted_names
from deltalog.cli.delivery_status import write_status
from deltalog.cli.exit_codes import ExitCode
from deltalog.cli.opening import program_in
from deltalog.cli.terminal import (
    counted_noun,
    visible_text,
    write_message,
    write_note,
    write_result,
)
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.diagnostics.similar import did_you_mean
from deltalog.pipeline.spark_needed import spark_needed
from deltalog.runtime.deliveries import (
    Recorded,
    forget_deliveries,
    resume_deliveries,
    retry_dead_letters,
)
from deltalog.runtime.delivery_records import Journal
from deltalog.service.addresses import Network
from deltalog.service.http_needed import http_needed
from deltalog.service.targets import (
    HttpTarget,
    network_of,
    read_targets,
    targets_of_options,
)
from deltalog.store.file_journal import FileJournal
from deltalog.store.sqlite_journal import JournalUse

EXAMPLE = "deltalog dispatch shop.db --targets targets.toml"
POLL_SECONDS = 0.5
BUCKET = re.compile(r"([a-z][a-z0-9+.-]+:)/+(.+)")
_ABOUT = "Instead of delivering"


def dispatch(
    database: Annotated[
        Path,
        typer.Argument(
            metavar="DATABASE", help="A database file, or the folder of a state in tables."
        ),
    ],
    targets: Annotated[
        Path | None,
        typer.Option("--targets", metavar="FILE", help="The targets, in TOML."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="[MESSAGE=]URL",
            help="Deliver all messages, or those of one name, to this address; may be repeated. "
            "The environment variable DELTALOG_WEBHOOK_SECRET has the secret that signs them.",
        ),
    ] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-network",
            metavar="NETWORK",
            help="Allow targets in this network, as in `127.0.0.0/8`, besides public addresses; "
            "may be repeated.",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Deliver what is due now and exit: with code 1 if something is left undelivered.",
        ),
    ] = False,
    poll_seconds: Annotated[
        float,
        typer.Option(
            "--poll-seconds",
            metavar="SECONDS",
            min=0.01,
            help="How often to look for new messages.",
        ),
    ] = POLL_SECONDS,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each attempt, or the status.")
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Show how far each target is, and its dead letters.",
            rich_help_panel=_ABOUT,
        ),
    ] = False,
    retry_dead: Annotated[
        bool,
        typer.Option(
            "--retry-dead",
            help="Let all dead letters be delivered once more: by a dispatcher that runs, or by "
            "this one if it has targets.",
        ),
    ] = False,
    resume_target: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="TARGET",
            help="Let a target that was stopped by status 410 get messages again.",
            rich_help_panel=_ABOUT,
        ),
    ] = None,
    forget_target: Annotated[
        str | None,
        typer.Option(
            "--forget",
            metavar="TARGET",
            help="Hold no messages any more for a target, and drop its dead letters.",
            rich_help_panel=_ABOUT,
        ),
    ] = None,
) -> None:
    """Deliver the messages that rules have emitted, at least once, in order per rule.

    Messages are sent by HTTP as Standard Webhooks prescribes, beside any process that writes to the
    database. A message that fails is retried after longer and longer pauses, and is finally a dead
    letter. A target receives all messages that are stored, unless its `start` is "now".
    """
    if status:
        with closing(_open_journal(database, JournalUse.READ)) as journal:
            write_status(journal, as_json)
        return
    if resume_target or forget_target:
        use = JournalUse.DISPATCH if forget_target else JournalUse.CHANGE
        with closing(_open_journal(database, use)) as journal:
            change_recipients(journal, resume_target, forget_target)
        return
    networks = _parse_networks(allow_network or ())
    wanted = [] if targets is None else read_targets(targets, os.environ, networks)
    wanted += targets_of_options(to or (), os.environ, networks) if to else []
    if retry_dead:
        with closing(_open_journal(database, JournalUse.CHANGE)) as journal:
            write_note(
                f"{counted_noun(retry_dead_letters(journal), 'dead letter')} to be delivered"
            )
        if not wanted:
            return
    if not wanted:
        raise typer.BadParameter("set --targets or --to")
    if len({target.name for target in wanted}) < len(wanted):
        raise typer.BadParameter("--targets has a target of this name, too", param_hint="--to")
    with closing(_open_journal(database, JournalUse.DISPATCH)) as journal:
        if isinstance(journal, FileJournal):
            _warn_of_never_emitted(emitted_names(program_in(database)), wanted)
        code = _run_dispatcher(journal, wanted, once, poll_seconds, as_json)
    raise typer.Exit(code)


def _open_journal(path: Path, use: JournalUse) -> Journal:
    """The journal of a database file, or of a state in tables."""
    bucket = BUCKET.match(str(path))
    if not path.is_dir() and (bucket is None or path.exists()):
        return FileJournal(path, use)
    with spark_needed():
        from deltalog.pipeline.state_journal import StateJournal
    state = f"{bucket[1]}//{bucket[2]}" if bucket else str(path)  # a path has lost a slash
    return StateJournal(state, use)


def _parse_networks(texts: Sequence[str]) -> list[Network]:
    found = []
    for text in texts:
        try:
            found.append(network_of(text))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--allow-network") from None
    return found


def change_recipients(journal: Journal, resumed: str | None, forgotten: str | None) -> None:
    """Resume a recipient, forget one, or both."""
    known = [recipient.name for recipient in journal.read().recipients.values()]
    for name in filter(None, (resumed, forgotten)):
        if name not in known:
            hint = did_you_mean(name, known)
            entry = service_catalogue.NO_SUCH_RECIPIENT
            raise DataError([entry.at(None, name=name, hint=hint)])
    if resumed:
        was_stopped = resume_deliveries(journal, resumed)
        write_note(f"`{resumed}` {'gets messages again' if was_stopped else 'was not stopped'}")
    if forgotten:
        forget_deliveries(journal, forgotten)
        write_note(f"nothing is held for `{forgotten}` any more")


def _run_dispatcher(
    journal: Journal, targets: list[HttpTarget], is_once: bool, poll_seconds: float, as_json: bool
) -> int:
    with http_needed():
        from deltalog.service.dispatch import Dispatcher

    async def deliver() -> int:
        dispatcher = Dispatcher(journal, targets, _write_json if as_json else _write_line)
        _warn_of_unclaimed(dispatcher.deliveries.unclaimed)
        if not is_once:
            waiting = counted_noun(dispatcher.deliveries.undelivered, "delivery")
            write_note(f"{waiting.replace('deliverys', 'deliveries')} waiting; Ctrl-C ends")
        with _stopped_by_signals(dispatcher.stop):
            summary = await dispatcher.run(is_once=is_once, poll_seconds=poll_seconds)
        counts = ", ".join(f"{count:,} {state}" for state, count in sorted(summary.states.items()))
        write_note(f"{counts or 'nothing was due'}; {summary.undelivered:,} undelivered")
        return ExitCode.WRONG if is_once and not summary.is_complete else ExitCode.FINE

    return asyncio.run(deliver())


def _warn_of_unclaimed(unclaimed: set[str]) -> None:
    if unclaimed:
        names = ", ".join(f"`{name}`" for name in sorted(unclaimed))
        write_note(f"no target takes {names}: these messages are kept until one does")


def _warn_of_never_emitted(emitted: Set[str], targets: Sequence[HttpTarget]) -> None:
    """Name messages that no rule of the program emits; another program may do so later."""
    for target in targets:
        for name in target.target.messages:
            if name not in emitted:
                hint = did_you_mean(name, emitted)
                text = f"no rule emits `{name}`, for which `{target.name}` waits"
                write_note(f"{text}; {hint}" if hint else text)


class _stopped_by_signals:  # noqa: N801
    """Let the first SIGINT or SIGTERM of a block end what runs, in its own time."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, self._handle_signal, number)

    def _handle_signal(self, number: int) -> None:
        asyncio.get_running_loop().remove_signal_handler(number)  # the next one ends at once
        self._stop()

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)


def _write_line(recorded: Recorded) -> None:
    delivery, outcome = recorded.delivery, recorded.outcome
    message = delivery.message
    text = f"{message.name} {message.id} → {delivery.target}"
    match recorded.state:
        case "delivered":
            write_result(Text(f"delivered {text}", "green"))
        case "dead":
            reason = visible_text(outcome.reason)
            write_message(
                Text(f"dead      {text} after attempt {delivery.attempt}: {reason}", "red")
            )
        case _:
            until = datetime.fromtimestamp(recorded.due).strftime("%Y-%m-%d %H:%M:%S")
            next_ = "stopped" if outcome.is_refused_for_good else f"next attempt {until}"
            reason = visible_text(outcome.reason)
            write_message(
                Text(f"failed    {text}, attempt {delivery.attempt}: {reason}; {next_}", "yellow")
            )


def _write_json(recorded: Recorded) -> None:
    delivery, message = recorded.delivery, recorded.delivery.message
    found = {
        "state": recorded.state,
        "target": delivery.target,
        "id": message.id,
        "sequence": message.sequence,
        "rule": message.rule,
        "name": message.name,
        "attempt": delivery.attempt,
        "reason": recorded.outcome.reason or None,
        "due": recorded.due or None,
    }
    write_result(json.dumps(found, ensure_ascii=False))
