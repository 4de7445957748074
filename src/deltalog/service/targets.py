"""Targets of messages, as users write them: a table of TOML for each, or an option.

    [targets.warehouse]
    url = "https://hooks.example.com/deltalog"
    messages = ["reorder"]              # all messages, if there is neither this nor `rules`
    secret_env = "WAREHOUSE_SECRET"     # the name of the variable that has the secret

Secrets are in the environment only: neither files nor lists of processes show them. Everything is
checked before the first delivery, and all problems are reported at once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deltalog.diagnostics import catalogue, service_catalogue
from deltalog.diagnostics.report import DataError, Diagnostic
from deltalog.diagnostics.similar import did_you_mean
from deltalog.runtime.deliveries import PAUSES_SECONDS, Target
from deltalog.service.addresses import AddressRefusedError, Network, check_address
from deltalog.service.secrets import secrets_of

SECRET_VARIABLE = "DELTALOG_WEBHOOK_SECRET"
TIMEOUT_SECONDS = 15.0
TIMEOUT_SECONDS_MAX = 300.0
PAUSES_MAX = 100
EVERYTHING = "default"
"""The name of a target that an option names without one."""


@dataclass(frozen=True)
class HttpTarget:
    """A target that gets messages by HTTP; without a URL it discards them."""

    target: Target
    url: str = ""
    secrets: tuple[bytes, ...] = field(default=(), repr=False)
    networks: tuple[Network, ...] = ()
    timeout_seconds: float = TIMEOUT_SECONDS
    authorization: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        return self.target.name


@dataclass(frozen=True)
class _Setting:
    """The types of a setting, and what it must be in words."""

    words: str
    types: tuple[type, ...]


_SETTINGS = {
    "url": _Setting("a text", (str,)),
    "messages": _Setting("a list of names", (list,)),
    "rules": _Setting("a list of names", (list,)),
    "start": _Setting('"oldest" or "now"', (str,)),
    "secret_env": _Setting("the name of an environment variable", (str,)),
    "authorization_env": _Setting("the name of an environment variable", (str,)),
    "allow_networks": _Setting('a list of networks, as in ["10.0.0.0/8"]', (list,)),
    "timeout_seconds": _Setting("a number", (int, float)),
    "pauses_seconds": _Setting("a list of numbers", (list,)),
    "discard": _Setting("true or false", (bool,)),
}


def read_targets(
    path: Path, environment: Mapping[str, str], networks: Sequence[Network] = ()
) -> list[HttpTarget]:
    """The targets in a file; `networks` are allowed for each of them."""
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise DataError(
            [catalogue.CANNOT_READ.at(None, name=path, reason=reason.lower())]
        ) from None
    except tomllib.TOMLDecodeError as error:
        reason = f"it is not TOML: {str(error).lower()}"
        raise DataError([catalogue.CANNOT_READ.at(None, name=path, reason=reason)]) from None
    return targets_of(found, str(path), environment, networks)


def targets_of(
    found: Mapping[str, Any],
    place: str,
    environment: Mapping[str, str],
    networks: Sequence[Network] = (),
) -> list[HttpTarget]:
    """The targets in a parsed file."""
    problems = [_bad_target(place, f"there is no key `{key}`") for key in found if key != "targets"]
    tables = found.get("targets")
    if not isinstance(tables, dict) or not tables:
        hint = 'as in `[targets.warehouse]`, `url = "https://…"`'
        raise DataError([*problems, _bad_target(place, "it has no targets", hint)])
    targets = []
    for name, table in tables.items():
        if not name:
            problems.append(_bad_target(place, "the name of a target is empty"))
        where = f"{place}, target `{name}`"
        reading = _Reading(where, name, table, environment, networks)
        targets += reading.targets()
        problems += reading.problems
    if problems:
        raise DataError(problems)
    return targets


def targets_of_options(
    texts: Sequence[str], environment: Mapping[str, str], networks: Sequence[Network] = ()
) -> list[HttpTarget]:
    """Targets of the form `URL`, which gets all messages, or `MESSAGE=URL`."""
    tables: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, url = text.partition("=")
        if not equals or "/" in name:
            name, url = EVERYTHING, text
        table = {"url": url, "messages": [] if name == EVERYTHING else [name]}
        if name in tables:
            raise DataError([_bad_target("--to", f"there are two targets `{name}`")])
        tables[name] = table
    return targets_of({"targets": tables}, "--to", environment, networks)


def network_of(text: str) -> Network:
    """A network such as `10.0.0.0/8`; raises a `ValueError` with the reason."""
    return ip_network(text)


def _bad_target(place: str, reason: str, hint: str | None = None) -> Diagnostic:
    return service_catalogue.BAD_TARGET.at(None, place=place, reason=reason, hint=hint)


class _Reading:
    """One table of a file; collects its problems."""

    def __init__(
        self,
        place: str,
        name: str,
        table: Any,
        environment: Mapping[str, str],
        networks: Sequence[Network],
    ) -> None:
        self._place = place
        self._name = name
        self._table: dict[str, Any] = {}
        self._environment = environment
        self._networks = list(networks)
        self.problems: list[Diagnostic] = []
        if isinstance(table, dict):
            self._table = dict(self._fitting_settings(table))
        else:
            self._add_problem("it is not a table")

    def _add_problem(self, reason: str, hint: str | None = None) -> None:
        self.problems.append(_bad_target(self._place, reason, hint))

    def _fitting_settings(self, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The settings that have the right type."""
        for key, value in table.items():
            setting = _SETTINGS.get(key)
            if setting is None:
                self._add_problem(f"there is no setting `{key}`", did_you_mean(key, _SETTINGS))
            elif not _has_type(value, setting.types) or (
                setting.words == "a list of names" and not all(isinstance(x, str) for x in value)
            ):
                self._add_problem(f"`{key}` is {setting.words}")
            else:
                yield key, value

    def targets(self) -> list[HttpTarget]:
        """The target, or none if there are problems."""
        target = Target(
            self._name,
            tuple(self._table.get("messages", ())),
            tuple(self._table.get("rules", ())),
            self._starts_now(),
            self._read_pauses(),
        )
        self._add_networks()
        timeout = self._read_timeout()
        is_discarding = self._table.get("discard", False)
        url = str(self._table.get("url", ""))
        if is_discarding:
            if url:
                self._add_problem("a target with `discard` has no `url`")
            return [] if self.problems else [HttpTarget(target)]
        self._check_url(url)
        secrets = self._read_secrets()
        authorization = self._read_variable("authorization_env") or ""
        if self.problems:
            return []
        return [HttpTarget(target, url, secrets, tuple(self._networks), timeout, authorization)]

    def _starts_now(self) -> bool:
        start = self._table.get("start", "oldest")
        if start not in ("oldest", "now"):
            self._add_problem(f"`start` is {_SETTINGS['start'].words}")
        return bool(start == "now")

    def _read_pauses(self) -> tuple[float, ...]:
        pauses = self._table.get("pauses_seconds", PAUSES_SECONDS)
        if len(pauses) > PAUSES_MAX or not all(
            _has_type(each, (int, float)) and 0 <= each < float("inf") for each in pauses
        ):
            self._add_problem(
                f"`pauses_seconds` is a list of up to {PAUSES_MAX} numbers, 0 or more"
            )
            return ()
        return tuple(map(float, pauses))

    def _read_timeout(self) -> float:
        timeout = float(self._table.get("timeout_seconds", TIMEOUT_SECONDS))
        if not 0 < timeout <= TIMEOUT_SECONDS_MAX:
            limit = f"more than 0 and up to {TIMEOUT_SECONDS_MAX:g}"
            self._add_problem(f"`timeout_seconds` is {limit}")
        return timeout

    def _add_networks(self) -> None:
        for text in self._table.get("allow_networks", ()):
            try:
                self._networks.append(network_of(text))
            except ValueError as error:
                self._add_problem(f"`allow_networks`: {error}")

    def _check_url(self, url: str) -> None:
        if not url:
            self._add_problem("it needs a `url`, or `discard = true`")
            return
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            self._add_problem(f"`url`: {str(error).lower()}")
            return
        if parts.scheme not in ("http", "https") or not host:
            self._add_problem("`url` is an address that begins with `https://`")
        elif parts.username or parts.password:
            hint = "set `authorization_env`; the variable has the whole header"
            self._add_problem("`url` must not contain a password", hint)
        elif parts.fragment:
            self._add_problem("`url` must not have a fragment")
        else:
            self._check_literal(host)

    def _check_literal(self, host: str) -> None:
        """Refuse a private address at once if it is written as such."""
        try:
            check_address(ip_address(host), self._networks)
        except AddressRefusedError as error:
            hint = f'allow it with `allow_networks = ["{host}"]` or `--allow-network {host}`'
            self._add_problem(str(error), hint)
        except ValueError:
            pass  # a name: it is resolved for each attempt

    def _read_secrets(self) -> tuple[bytes, ...]:
        variable = str(self._table.get("secret_env", SECRET_VARIABLE))
        found = secrets_of(self._environment.get(variable, ""))
        if found is None:
            entry = service_catalogue.NO_SECRET
            hint = f"`export {variable}=…`, or name another one by `secret_env`"
            self.problems.append(entry.at(None, variable=variable, target=self._name, hint=hint))
        return found or ()

    def _read_variable(self, key: str) -> str | None:
        if key not in self._table:
            return None
        value = self._environment.get(self._table[key])
        if not value or not value.isprintable():
            self._add_problem(f"the environment variable `{self._table[key]}` has no header")
        return value


def _has_type(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))
