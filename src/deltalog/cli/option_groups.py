"""Groups of options that commands share: a dataclass with a field for each option.

    @dataclass(frozen=True)
    class FactFiles:
        facts: Facts = None
        facts_dir: FactsDirectory = None

    def run(file: GivenFile, files: FactFiles) -> None: …       --facts, --facts-dir

`with_option_groups` returns the command in the form typer needs: fields in place of their group.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

from deltalog.cli.actions import Actions
from deltalog.cli.opening import Settings
from deltalog.cli.options import (
    FACTS_MAX,
    FIRINGS_MAX,
    ROUNDS_MAX,
    SECONDS_MAX,
    ChangesOption,
    Engine,
    Facts,
    FactsDirectory,
    FactsMax,
    FiringsMax,
    Network,
    NetworkForm,
    Relation,
    RoundsMax,
    SecondsMax,
    Strategies,
    Virtual,
    strategy_of,
)
from deltalog.runtime.engine_choice import DEFAULT_ENGINE
from deltalog.runtime.limits import Limits


@dataclass(frozen=True)
class FactFiles:
    """Files from which base relations are loaded."""

    facts: Facts = None
    facts_dir: FactsDirectory = None


@dataclass(frozen=True)
class ChangesFile:
    """A file of transactions that are applied first."""

    changes: ChangesOption = None
    relation: Relation = None


@dataclass(frozen=True)
class Maintenance:
    """The strategy, the engine, and the functions that active rules call."""

    strategy: Strategies = None
    engine: Engine = DEFAULT_ENGINE
    actions: Actions = None


@dataclass(frozen=True)
class NetworkOptions:
    """The views that are stored, and the form of the propagation network."""

    virtual: Virtual = False
    network: Network = NetworkForm.BUSHY


@dataclass(frozen=True)
class LimitOptions:
    """Limits of an evaluation."""

    rounds_max: RoundsMax = ROUNDS_MAX
    facts_max: FactsMax = FACTS_MAX
    seconds_max: SecondsMax = SECONDS_MAX
    firings_max: FiringsMax = FIRINGS_MAX

    @property
    def limits(self) -> Limits:
        return Limits(self.rounds_max, self.facts_max, self.seconds_max, self.firings_max)


def database_settings(
    limits: LimitOptions,
    maintenance: Maintenance,
    network: NetworkOptions | None = None,
    durability: str = "full",
    wait_seconds: float = 0.0,
) -> Settings:
    """Settings of a database from the options of a command."""
    network = network or NetworkOptions()
    return Settings(
        limits.limits,
        strategy_of(maintenance.strategy),
        maintenance.engine,
        not network.virtual,
        network.network,
        durability,
        wait_seconds,
        maintenance.actions,
    )


def options_of(group: object, *names: str) -> dict[str, object]:
    """The values of some options of a group, by their names on the command line.

    >>> options_of(NetworkOptions(virtual=True), "virtual")
    {'--virtual': True}
    """
    return {f"--{name.replace('_', '-')}": getattr(group, name) for name in names}


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of its groups."""
    types = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for parameter in inspect.signature(command).parameters.values():
        type_ = types[parameter.name]
        if is_dataclass(type_) and isinstance(type_, type):
            groups[parameter.name] = type_
            parameters += _option_parameters(type_)
        else:
            parameters.append(
                parameter.replace(annotation=type_, kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    del call.__wrapped__  # typer would look through it
    return call


def _option_parameters(group: type) -> list[inspect.Parameter]:
    types: Mapping[str, Any] = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=types[field.name],
        )
        for field in fields(group)
    ]
