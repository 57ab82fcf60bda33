"""Which addresses the studio may connect to: one spelling for a host, and no way into its own network (CASES S03).

An address is read here once, by this reader alone. What it cannot read in exactly one way it refuses, so that no
later reader finds another host in it.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

WHERE: Final = "an admin can allow {there} for the connection at /settings/connections/"
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\Z")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_PLAIN_V4: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}\Z")
_ENTRY: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})\Z")
_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"), IPv6Network("2002::/16"))
_METADATA: Final = frozenset({IPv4Address("169.254.169.254"), IPv6Address("fd00:ec2::254")})
LONGEST: Final = 2_000  # characters of an address that somebody enters
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
type Address = IPv4Address | IPv6Address


class Refused(ValueError):
    """An address that is not connected to. The message says why, and what to allow where if that can be allowed."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server's address, read. `target` is the path with its query; `place` is how allow-lists spell it."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def place(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return place_of(self.host, self.port)

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a credential may be sent to."""
        return f"{self.scheme}://{self.place}"

    @property
    def url(self) -> str:
        """The address in its one spelling."""
        return f"{self.origin}{self.target}"


def read_url(url: str, *, longest: int = LONGEST) -> Target:
    """The one server that an `http:` or `https:` address of at most so many characters names. Raises `Refused`."""
    if not url or len(url) > longest or not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        raise Refused("an address is plain ASCII without spaces or backslashes (write other names as xn--…)")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused(f"it is not an address: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise Refused(f"an address begins with https:// or http://, not {parts.scheme or 'nothing'}:")
    if "@" in parts.netloc:
        raise Refused("an address holds no user or password: give the connection a credential")
    if parts.fragment or "#" in url:
        raise Refused("an address holds no #fragment")
    host = _host(parts.hostname or "", bracketed="[" in parts.netloc)
    if port == 0:
        raise Refused("port 0 is no port")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], target)


def read_place(text: str) -> str:
    """One entry of an allow-list, `host:port`, in its one spelling. Raises `Refused`."""
    found = _ENTRY.match(text.strip().lower())
    if found is None or not 0 < int(found["port"]) < 65_536:
        raise Refused(f"{text[:100]!r} is not host:port, such as mcp.example.org:443, 127.0.0.1:8801 or [::1]:8801")
    bracketed = found["host"].startswith("[")
    return place_of(_host(found["host"].strip("[]"), bracketed=bracketed), int(found["port"]))


def place_of(host: str, port: int) -> str:
    """`host:port`, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def literal(host: str) -> Address | None:
    """The address a host is, when it is not a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def refuse_bad(target: Target, found: list[Address], *, allowed: bool) -> None:
    """Refuse a target when one of the addresses its host stands for may not be reached (CASES S03).

    `allowed` says that the target's exact host and port are on an allow-list. That opens this machine and private
    networks; link-local, multicast and metadata addresses only where the entry is that very address.
    """
    fix = WHERE.format(there=target.place)
    if target.scheme == "http" and not allowed:
        raise Refused(f"{target.place} would be talked to without TLS: use https://, or {fix}")
    named = literal(target.host)
    for address in found:
        why = _not_public(address)
        if why is None or (allowed and (named == address or _inside(address))):
            continue
        if allowed:
            raise Refused(f"{target.host} stands for {address}, {why}: that is allowed only by its number, not a name")
        raise Refused(f"{target.host} {'is' if named else 'stands for'} {address}, {why}: {fix}")


def _host(host: str, *, bracketed: bool) -> str:
    if bracketed:
        try:
            found = IPv6Address(host)
        except ValueError as error:
            raise Refused(f"[{host[:60]}] is not an IPv6 address") from error
        if found.scope_id:
            raise Refused("an IPv6 address holds no zone (%…)")
        return str(found)
    host = host.lower()
    if host.endswith("."):
        raise Refused("a host does not end in a dot")
    if _NUMBER.match(host.rpartition(".")[2]):
        if not _PLAIN_V4.match(host):
            raise Refused(f"{host[:60]} is an odd spelling of a number: write four decimal numbers, such as 192.0.2.7")
        try:
            return str(IPv4Address(host))
        except ValueError as error:
            raise Refused(f"{host[:60]} is not an IPv4 address") from error
    if len(host) > 253 or not _NAME.match(host):
        raise Refused(f"{host[:60]!r} is not the name of a host")
    return host


def _not_public(address: Address) -> str | None:
    """Why an address is not one of the public internet's, or None."""
    if _translated(address):
        return "which is an IPv4 address in another spelling"
    if address.is_loopback:
        return "this machine itself"
    if address.is_link_local or address in _METADATA:
        return "a link-local address, where clouds keep their credentials"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified or not address.is_global:
        return "an address of a private or reserved network"
    return None


def _inside(address: Address) -> bool:
    """This machine and private networks: what an allow-list entry may name by a host's name."""
    closed = address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
    return (address.is_loopback or address.is_private) and not closed and not _translated(address)


def _translated(address: Address) -> bool:
    if not isinstance(address, IPv6Address):
        return False
    mapped = address.ipv4_mapped is not None or address.teredo is not None
    return mapped or any(address in network for network in _TRANSLATED)
