"""Settings of the service: where it listens, whom it trusts, and how much one request may take."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from deltalog.diagnostics import service_catalogue
from deltalog.diagnostics.report import DataError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServiceSettings:
    """Options of `deltalog serve`; limits are per request unless their name says otherwise."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Path | None = None
    """The file of tokens; without it whoever reaches the service may do everything."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    is_behind_proxy: bool = False
    """Whether a proxy ends TLS and says by `X-Forwarded-*` who calls."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may use the service, besides its own."""
    names: tuple[str, ...] = ()
    """Further names under which the service is called, for the check of `Host`."""
    body_bytes_max: int = 16 * 2**20
    rows_max: int = 10_000
    """Rows of one answer."""
    seconds_max: float = 30.0
    """How long one request may compute."""
    requests_per_second: float = 2_000.0
    """Requests of one token, or of one address without a token."""
    subscriptions_max: int = 20_000
    request_keys_seconds: float = 7 * 24 * 3_600.0
    """How long an idempotency key is remembered."""
    reserved_bytes_max: int = 2**30
    """Bytes of the log that are kept for a durable subscription."""
    reserved_seconds_max: float = 7 * 24 * 3_600.0
    """How long a durable subscription may be idle before nothing is kept for it."""
    stop_seconds: float = 10.0
    """How long requests may take to end when the service is stopped."""

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def check(self) -> None:
        """Raise unless it is safe to listen there."""
        if not self.is_loopback and self.tokens is None:
            hint = "make one with `deltalog token create FILE NAME`, and pass `--tokens`"
            made = service_catalogue.NEEDS_TOKENS.at(None, host=self.host, hint=hint)
            raise DataError([made])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
