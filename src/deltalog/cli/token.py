"""`deltalog token`: who may use a service; made, listed and revoked also while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from deltalog.analysis.relation import Relations
from deltalog.checks.program import check_program
from deltalog.cli.opening import is_database, program_in, read_and_parse
from deltalog.cli.progress import Progress
from deltalog.cli.results import table_lines
from deltalog.cli.terminal import write_note, write_result
from deltalog.service.tokens import Token, create_token, read_tokens, revoke_token

EXAMPLE = "deltalog token create shop.tokens ann --role read --grant 'orders?customer=7'"
app = typer.Typer(no_args_is_help=True, help="Make, list and revoke tokens of a service.")
TokensFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file of tokens; created if it does not exist.")
]


@app.command(epilog=f"Example: {EXAMPLE}")
def create(
    file: TokensFile,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will use it.")],
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--role", metavar="read|write|admin", help="What it may do; `read` if none is named."
        ),
    ] = None,
    grants: Annotated[
        list[str] | None,
        typer.Option(
            "--grant",
            metavar="GRANT",
            help="With which facts: `path`, `read:path?src=1`, `write:edge`; all, without any.",
        ),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(
            "--for",
            metavar="DATABASE|PROGRAM",
            help="Refuse a grant for a relation or column that is not there.",
        ),
    ] = None,
) -> None:
    """Make a token and write it to standard output; only its hash is kept."""
    relations = None if database is None else _relations_of(database)
    write_result(create_token(file, name, roles or ["read"], grants or [], relations))
    write_note("keep it: it cannot be shown again")


@app.command("list", epilog="Example: deltalog token list shop.tokens")
def list_(
    file: TokensFile,
    is_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON line for each token.")
    ] = False,
) -> None:
    """List the tokens of a file, with roles and grants."""
    tokens = read_tokens(file)
    if is_json:
        for token in tokens:
            write_result(json.dumps(_token_record(token), ensure_ascii=False))
        return
    header = ["id", "name", "roles", "grants", "created", "revoked"]
    cells = [
        [
            token.id,
            token.name,
            " ".join(token.roles),
            " ".join(grant.text for grant in token.grants) or "all",
            token.created,
            token.revoked or "",
        ]
        for token in tokens
    ]
    for line in table_lines(header, cells, [False] * len(header)):
        write_result(line)


@app.command(epilog="Example: deltalog token revoke shop.tokens ann")
def revoke(
    file: TokensFile,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name or the id of a token.")],
) -> None:
    """Revoke a token by its id, or all tokens of a name; a running service notices at once."""
    for token in revoke_token(file, name):
        write_note(f"revoked {token.id} of {token.name}")


def _relations_of(file: Path) -> Relations:
    """The relations of a database file or of a program, without their facts."""
    program = program_in(file) if is_database(file) else read_and_parse(file, Progress())
    return check_program(program).relations


def _token_record(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "roles": list(token.roles),
        "grants": [grant.text for grant in token.grants],
        "created": token.created,
        "revoked": token.revoked,
    }
