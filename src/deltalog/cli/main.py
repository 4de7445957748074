"""The `deltalog` command: one file per subcommand, put together here."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from deltalog import __version__
from deltalog.cli import (
    apply,
    audit,
    backup,
    check,
    compact,
    create,
    dispatch,
    dump,
    emitted,
    explain,
    log,
    migrate,
    models,
    pipeline,
    query,
    realize,
    recover,
    repl,
    restore,
    rules,
    run,
    serve,
    token,
    verify,
    why,
    why_changed,
    why_not,
)
from deltalog.cli.exit_codes import MEANINGS, exit_codes
from deltalog.cli.option_groups import with_option_groups
from deltalog.cli.terminal import write_note

EXAMPLE = "deltalog run graph.dl"


_DELETION = re.compile(r"-[^\W\d]\w*\s*\(")


class _Commands(TyperGroup):
    """Every subcommand runs inside `exit_codes`, and `-path(1, 2)` is a request, not an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = [f" {each}" if _DELETION.match(each) else each for each in args]
        return super().parse_args(ctx, given)

    def invoke(self, ctx: Any) -> Any:
        with exit_codes():
            return super().invoke(ctx)


_ENDING = "Exit codes: " + "; ".join(f"{code.value} {text}" for code, text in MEANINGS.items())

app = typer.Typer(
    name="deltalog",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=f"{_ENDING}.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"deltalog {__version__}")
        raise typer.Exit()


@app.callback()
def program_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Deltalog: incremental view maintenance for Datalog."""


for _module, _command in (
    (check, check.check),
    (run, run.run),
    (query, query.query),
    (apply, apply.apply),
    (realize, realize.realize),
    (models, models.models),
    (why, why.why),
    (why_not, why_not.why_not),
    (why_changed, why_changed.why_changed),
    (audit, audit.audit),
    (rules, rules.rules),
    (emitted, emitted.messages),
    (dispatch, dispatch.dispatch),
    (explain, explain.explain),
    (repl, repl.repl),
    (create, create.create),
    (log, log.log),
    (migrate, migrate.migrate),
    (backup, backup.backup),
    (restore, restore.restore),
    (dump, dump.dump),
    (verify, verify.verify),
    (compact, compact.compact),
    (recover, recover.recover),
    (serve, serve.serve),
):
    app.command(epilog=f"Example: {_module.EXAMPLE}")(with_option_groups(_command))

app.add_typer(token.app, name="token", epilog=f"Example: {token.EXAMPLE}")
app.add_typer(pipeline.app, name="pipeline", epilog=f"Example: {pipeline.EXAMPLE}")


def main() -> None:
    """The entry point of the installed command."""
    _prepare_streams()
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", UserWarning)  # each transaction that violates, not the first
    app(prog_name="deltalog")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    write_note(str(message))


def _prepare_streams() -> None:
    """Programs are UTF-8 wherever they come from; what cannot be shown is shown as an escape."""
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - None when closed
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    with suppress(AttributeError, ValueError):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")  # type: ignore[union-attr]
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
