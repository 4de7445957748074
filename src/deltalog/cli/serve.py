"""`deltalog serve`: a database behind HTTP, for clients that ask once and are told what changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from deltalog.cli.option_groups import (
    FactFiles,
    LimitOptions,
    Maintenance,
    NetworkOptions,
    database_settings,
)
from deltalog.cli.options import GivenFile
from deltalog.cli.progress import Progress
from deltalog.cli.served import Served, open_served
from deltalog.cli.terminal import write_note
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.service.settings import ServiceSettings
from deltalog.service.tokens import misfits_of

EXAMPLE = "deltalog serve shop.db --port 8080"
DEFAULTS = ServiceSettings()


def serve(
    file: GivenFile,
    *,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Listen there; other than loopback needs --tokens."
        ),
    ] = DEFAULTS.host,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65_535, help="Listen on this port; 0: any."
        ),
    ] = DEFAULTS.port,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="Only callers with a token of this file, which `deltalog token` makes.",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option("--tls-certificate", metavar="FILE", help="Serve HTTPS, with this chain."),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", help="The private key of the certificate."),
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="A proxy on this machine ends TLS; believe its headers."
        ),
    ] = False,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin", metavar="ORIGIN", help="Let pages of this origin use the service."
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="A name by which the service may be called."),
    ] = None,
    rows_max: Annotated[
        int,
        typer.Option("--rows-max", metavar="COUNT", min=1, help="Rows of one answer at most."),
    ] = DEFAULTS.rows_max,
    body_bytes_max: Annotated[
        int,
        typer.Option("--body-max", metavar="BYTES", min=1, help="Bytes of a request at most."),
    ] = DEFAULTS.body_bytes_max,
    request_seconds: Annotated[
        float,
        typer.Option(
            "--request-seconds", metavar="SECONDS", min=0.001, help="A request computes this long."
        ),
    ] = DEFAULTS.seconds_max,
    requests_per_second: Annotated[
        float,
        typer.Option(
            "--requests-per-second", metavar="COUNT", min=0.1, help="Of one caller, at most."
        ),
    ] = DEFAULTS.requests_per_second,
    subscriptions_max: Annotated[
        int,
        typer.Option(
            "--subscriptions-max", metavar="COUNT", min=1, help="Streams open at one time."
        ),
    ] = DEFAULTS.subscriptions_max,
    spark: Annotated[
        bool,
        typer.Option(
            "--spark", help="Serve a state in tables as its writer, on Spark; else it is read."
        ),
    ] = False,
    sources: Annotated[
        Path | None,
        typer.Option(
            "--sources", metavar="FILE", help="Base relations of a program that are elsewhere."
        ),
    ] = None,
    pull_seconds: Annotated[
        float,
        typer.Option(
            "--pull-seconds", metavar="SECONDS", min=0.01, help="Ask sources for changes so often."
        ),
    ] = 1.0,
    reserved_bytes_max: Annotated[
        int,
        typer.Option(
            "--reserve-bytes",
            metavar="BYTES",
            min=0,
            help="Log that is kept for a durable subscription.",
        ),
    ] = DEFAULTS.reserved_bytes_max,
    reserved_seconds_max: Annotated[
        float,
        typer.Option(
            "--reserve-seconds",
            metavar="SECONDS",
            min=0,
            help="It is kept for one that is idle this long.",
        ),
    ] = DEFAULTS.reserved_seconds_max,
    files: FactFiles,
    maintenance: Maintenance,
    network: NetworkOptions,
    limits: LimitOptions,
) -> None:
    """Serve a database over HTTP, on loopback unless there are tokens.

    A program is served from memory, perhaps over tables of other databases (--sources); a database
    file keeps what is committed. A state in tables is served without Spark, while pipelines write
    to it; with --spark this service is its writer. Ctrl-C or SIGTERM stops it: nothing that was
    acknowledged is lost.
    """
    chosen = ServiceSettings(
        host=host,
        port=port,
        tokens=tokens,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        is_behind_proxy=behind_proxy,
        origins=tuple(origins or ()),
        names=tuple(names or ()),
        body_bytes_max=body_bytes_max,
        rows_max=rows_max,
        seconds_max=request_seconds,
        requests_per_second=requests_per_second,
        subscriptions_max=subscriptions_max,
        reserved_bytes_max=reserved_bytes_max,
        reserved_seconds_max=reserved_seconds_max,
    )
    chosen.check()
    with service_needed("deltalog serve"):
        from deltalog.service.host import Host
        from deltalog.service.logs import log_to
        from deltalog.service.server import serve_until_signal
    made = database_settings(limits, maintenance, network)
    given = Served(file, files.facts, files.facts_dir, sources, spark)
    database = open_served(given, made, Progress())
    if tokens is not None:
        for token, misfit in misfits_of(tokens, database.relations):
            write_note(f"token {token.id} of {token.name}: {misfit.diagnostics[0].message}")
    log_to()
    hosted = Host(database, pull_seconds=pull_seconds)
    serve_until_signal(hosted, chosen, lambda address: write_note(f"serving {file} at {address}"))


@contextmanager
def service_needed(command: str) -> Iterator[None]:
    """Report an import that fails as the extra that is missing."""
    try:
        yield
    except ImportError as error:
        hint = "install it with `pip install 'deltalog[service]'`"
        needed = error.name or "fastapi"
        wrong = catalogue.PACKAGE_NEEDED.at(None, name=command, needed=needed, hint=hint)
        raise DataError([wrong]) from error
