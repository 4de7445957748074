"""Tokens: who may use a service, in a file beside the database that only its owner can read.

    dlt_3f9c…_Qm4x…        an id, which names the token, and a secret, which nobody keeps

The file has the SHA-256 of each secret: secrets are 256 random bits, so nothing slower is needed.
It is not part of the database, so that backups carry no credentials and tokens are made and revoked
while a service is running, which notices by the time of the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalog.analysis.relation import Relations
from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.service.grant_texts import Grant, misfit_of, parse_grant

PREFIX = "dlt"
ROLES = ("read", "write", "admin")


@dataclass(frozen=True)
class Token:
    """A token without its secret; `grants` limit its roles, without any there is no limit."""

    id: str
    name: str
    roles: tuple[str, ...]
    grants: tuple[Grant, ...] = ()
    digest: str = field(default="", repr=False)
    created: str = ""
    revoked: str | None = None


def create_token(
    path: Path,
    name: str,
    roles: Sequence[str],
    grants: Sequence[str],
    relations: Relations | None = None,
) -> str:
    """Add a token; returns what its owner shows, which nobody can find out again.

    Each of its grants must name some of these `relations`, if they are known.
    """
    for role in roles:
        if role not in ROLES:
            hint = f"the roles are {', '.join(ROLES)}"
            raise DataError([service_catalogue.NO_SUCH_ROLE.at(None, name=role, hint=hint)])
    parsed = tuple(parse_grant(text) for text in grants)
    if relations is not None:
        for grant in parsed:
            if misfit := misfit_of(grant, relations):
                raise misfit
    id_, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    made = Token(id_, name, tuple(roles), parsed, _digest_of(secret), _time_text())
    with _changing_tokens(path) as known:
        known.append(made)
    return f"{PREFIX}_{id_}_{secret}"


def revoke_token(path: Path, name: str) -> list[Token]:
    """Revoke the token of an id, or all tokens of a name; returns those that were valid."""
    with _changing_tokens(path) as known:
        found = [each for each in known if name in (each.id, each.name) and not each.revoked]
        if not found:
            raise DataError([service_catalogue.NO_SUCH_TOKEN.at(None, name=name)])
        known[:] = [replace(t, revoked=_time_text()) if t in found else t for t in known]
    return found


def read_tokens(path: Path) -> list[Token]:
    """All tokens of a file, revoked ones too."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise _bad_tokens(path, getattr(error, "strerror", None) or "it is no text") from None
    try:
        return [_token_of(each) for each in json.loads(text)["tokens"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _bad_tokens(path, "it is not a file of tokens") from None


def misfits_of(path: Path, relations: Relations) -> Iterator[tuple[Token, DataError]]:
    """The valid tokens with grants for no fact, since relations or columns are not there."""
    for token in read_tokens(path):
        for grant in token.grants if token.revoked is None else ():
            if misfit := misfit_of(grant, relations):
                yield token, misfit


class TokenFile:
    """The valid tokens of a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, Token] = {}
        self._refresh_tokens()

    def find(self, text: str) -> Token | None:
        """The token that somebody shows, if it is one and not revoked."""
        self._refresh_tokens()
        prefix, _, rest = text.partition("_")
        id_, _, secret = rest.partition("_")
        token = self._known.get(id_)
        expected = _digest_of("") if token is None else token.digest
        is_same = hmac.compare_digest(_digest_of(secret), expected)
        return token if is_same and prefix == PREFIX and token is not None else None

    def is_valid(self, token: Token) -> bool:
        """Whether a token that was found before is still there, with the same roles and grants."""
        self._refresh_tokens()
        return self._known.get(token.id) == token

    @property
    def is_changed(self) -> bool:
        """Whether the file is another one than when it was last read."""
        return self._stamp_now() != self._stamp

    def _stamp_now(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def _refresh_tokens(self) -> None:
        stamp = self._stamp_now()
        if stamp != self._stamp:
            valid = (each for each in read_tokens(self._path) if each.revoked is None)
            self._known = {each.id: each for each in valid}
            self._stamp = stamp


@contextmanager
def _changing_tokens(path: Path) -> Iterator[list[Token]]:
    """The tokens of a file; what is done to the list is written when the block ends well."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        tokens = read_tokens(path)
        yield tokens
        _write_tokens(path, tokens)
    finally:
        os.close(folder)


def _write_tokens(path: Path, tokens: Sequence[Token]) -> None:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    records = [{**asdict(each), "grants": [grant.text for grant in each.grants]} for each in tokens]
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"tokens": records}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _token_of(record: dict[str, Any]) -> Token:
    grants = tuple(parse_grant(text) for text in record.pop("grants"))
    return Token(**{**record, "roles": tuple(record["roles"]), "grants": grants})


def _digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _time_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _bad_tokens(path: Path, reason: str) -> DataError:
    return DataError([service_catalogue.BAD_TOKENS.at(None, name=path, reason=reason.lower())])
