"""Addresses that may be connected to: public ones, and networks that are allowed by name.

    hooks.example.com ─ resolve ─▶ 203.0.113.7 ─ check ─▶ connect to 203.0.113.7, not to the name

Whoever controls a name could let it lead somewhere else between the check and the connection, so
nothing is resolved a second time. If one address of a name is refused, the name is.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

ADDRESSES_MAX = 4
"""Addresses of a name that are tried."""
_TRANSLATED = ip_network("64:ff9b::/96")
"""IPv6 addresses that lead to the IPv4 address in their last 32 bits."""


class AddressRefusedError(Exception):
    """A target is in a network that is not allowed."""


async def resolve_name(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as this machine knows them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def checked_addresses(
    host: str, port: int, networks: Sequence[Network], resolve: Resolve = resolve_name
) -> list[Address]:
    """The addresses of a host; raises if one of them must not be connected to."""
    try:
        found: list[Address] = [ip_address(host)]
    except ValueError:
        found = [ip_address(text.partition("%")[0]) for text in await resolve(host, port)]
    if not found:
        raise OSError(f"{host} has no address")
    for address in found:
        check_address(address, networks)
    return found[:ADDRESSES_MAX]


def check_address(address: Address, networks: Sequence[Network]) -> None:
    """Raise unless an address is public or in one of these networks."""
    if not is_public(address) and not is_allowed(address, networks):
        raise AddressRefusedError(f"{address} is not a public address, and its network not allowed")


def is_allowed(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of these networks."""
    return any(address in network for network in networks if network.version == address.version)


def is_public(address: Address) -> bool:
    """Whether an address, and the one that it stands for, is one of the Internet.

    >>> [is_public(ip_address(each)) for each in ("8.8.8.8", "10.0.0.1", "::ffff:127.0.0.1")]
    [True, False, False]
    """
    return all(
        each.is_global and not each.is_multicast and not each.is_reserved
        for each in (address, *_embedded_addresses(address))
    )


def _embedded_addresses(address: Address) -> list[IPv4Address]:
    """IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour]
    if address.teredo is not None:
        found += address.teredo
    if address in _TRANSLATED:
        found.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]
