"""Where a fetch may go: which hosts are allowed, which mirror replaces one, and which addresses a name has.

A name is resolved once, all its addresses must be public, and the connection is pinned to them, so that DNS rebinding
cannot reach the internal network. The operator sets the right side of a rewrite and `allowed_private_hosts`, so those
are trusted.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlsplit

import msgspec

from vskill_core.errors import InvalidInput, InvalidSettings, SourceUnavailable
from vskill_core.identity import Identity
from vskill_platform.domain.people.source_credential import SSH_PORT
from vskill_platform.sources.credential import GitCredential

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: From a name and a port to the addresses of that name, as text; raises OSError.
Resolve = Callable[[str, int], Awaitable[Iterable[str]]]

ANY_HOST = "*"
_SSH = "ssh://"
#: Protocols of mirrors.
MIRROR_PROTOCOLS = frozenset({"http", "https", "file"})
#: Hosts that redirect URLs without `.git`.
_GIT_SUFFIX_HOSTS = frozenset({"gitlab.com"})

#: Private networks that `is_global` of some Python releases calls public.
_FURTHER_PRIVATE = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "100.64.0.0/10", "fec0::/10"))
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")


class Route(msgspec.Struct, frozen=True):
    """How to reach one repository."""

    url: str
    #: The public host, for messages: what a submission is "waiting for".
    host: str
    protocol: str
    #: `name:port:addresses` of the only name that may be connected to; empty for hosts that the operator trusts.
    pin: str = ""
    #: The operator's own mirror; its redirects are not followed.
    mirror: bool = False
    #: What its host gets if it asks who we are.
    credential: GitCredential | None = None


class Hosts:
    """The operator's rules about hosts."""

    def __init__(
        self,
        allowed: Iterable[str],
        private: Iterable[str] = (),
        rewrites: Iterable[str] = (),
        resolve: Resolve | None = None,
    ) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)
        private = tuple(private)
        self._private = read_private_hosts(private)
        self._private_ssh = _ssh_endpoints(private, "VSKILL_ALLOWED_PRIVATE_HOSTS")
        self._allowed_ssh = _ssh_endpoints(self._allowed, "VSKILL_ALLOWED_HOSTS") | self._private_ssh
        self._rewrites = tuple(sorted(map(parse_rewrite, rewrites), key=lambda pair: -len(pair[0])))
        self._resolve = resolve or resolve_name

    async def route(
        self, identity: Identity, url: str | None = None, *, credential: GitCredential | None = None
    ) -> Route:
        """The route to a repository; `url` is its address if a redirect gave another spelling. A mirror, or what the
        credential is not for, is asked without it."""
        mirrored = self._mirror_url(identity)
        if mirrored is not None:
            return Route(mirrored, identity.host, urlsplit(mirrored).scheme, mirror=True)
        if credential is not None and not credential.covers(identity):
            credential = None
        if credential is not None and credential.ssh is not None:
            return await self._ssh_route(identity, credential, credential.ssh.port)
        self._check_allowed(identity.host)
        protocol = self._private.get(identity.host, "https")
        name, _, port = identity.host.partition(":")
        number = int(port) if port else (443 if protocol == "https" else 80)
        pin = await self._pin(name, number, private=identity.host in self._private)
        if url is None:
            suffix = ".git" if identity.host in _GIT_SUFFIX_HOSTS else ""
            url = f"{protocol}://{identity.url.partition('://')[2]}{suffix}"
        return Route(url, identity.host, protocol, pin, credential=credential)

    async def _ssh_route(self, identity: Identity, credential: GitCredential, port: int) -> Route:
        """By a deploy key, to the SSH port of an allowed host, or to another one that the operator allows."""
        name = identity.host.partition(":")[0]
        endpoint = f"{name}:{port}"
        is_usual = port == SSH_PORT
        if endpoint not in self._allowed_ssh:
            if is_usual:
                self._check_allowed(identity.host)
            elif ANY_HOST not in self._allowed:
                raise InvalidInput(
                    f"The SSH port {port} of {name} is not allowed here.",
                    field="port",
                    fix=f"use {SSH_PORT}, or ask the operator to add {_SSH}{endpoint} to VSKILL_ALLOWED_HOSTS",
                )
        private = endpoint in self._private_ssh or (is_usual and identity.host in self._private)
        pin = await self._pin(name, port, private=private)
        # As forges write it: a path after the host, which they read from their own root.
        url = f"{credential.user}@{name}:{identity.owner}/{identity.repo}"
        return Route(url, identity.host, "ssh", pin, credential=credential)

    async def _pin(self, name: str, port: int, *, private: bool) -> str:
        addresses = await self._addresses(name, port, private=private)
        bracketed = (f"[{address}]" if ":" in address else address for address in addresses)
        return f"{name}:{port}:{','.join(bracketed)}"

    def _mirror_url(self, identity: Identity) -> str | None:
        """The mirror's URL by prefix, compared without case, as hosts and most owners are."""
        url = identity.url
        for prefix, mirror in self._rewrites:
            if url.lower().startswith(prefix.lower()):
                return mirror + url[len(prefix) :]
        return None

    def _check_allowed(self, host: str) -> None:
        if host in self._private or host in self._allowed or ANY_HOST in self._allowed:
            return
        known = ", ".join(sorted(self._allowed)) or "none"
        raise InvalidInput(
            f"Repositories on {host} are not accepted here.",
            field="repo_url",
            fix=f"use one of {known}, or ask the operator to add the host to VSKILL_ALLOWED_HOSTS",
        )

    async def _addresses(self, name: str, port: int, *, private: bool) -> list[str]:
        _refuse_odd_number(name)
        try:
            found = list(dict.fromkeys(await self._resolve(name, port)))
        except OSError as error:
            raise SourceUnavailable(
                f"The name {name} cannot be resolved at the moment.", host=name
            ) from error
        if not found:
            raise SourceUnavailable(f"The name {name} has no address at the moment.", host=name)
        if not private and not all(map(is_public, found)):
            raise InvalidInput(
                f"{name} is not a public address.",
                field="repo_url",
                fix="use a public host, or ask the operator to add it to VSKILL_ALLOWED_PRIVATE_HOSTS",
            )
        return found


def is_public(text: str) -> bool:
    """Whether an address is public; one that embeds another counts as the embedded one."""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        carried = _embedded_ipv4(address)
        if carried is not None:
            return is_public(str(carried))
    further = any(address in network for network in _FURTHER_PRIVATE if network.version == address.version)
    return address.is_global and not address.is_multicast and not address.is_reserved and not further


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a translated or tunnelled one leads to."""
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


async def resolve_name(name: str, port: int) -> list[str]:
    """Every address of a name, as the system sees it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def parse_rewrite(rule: str) -> tuple[str, str]:
    """`PREFIX=MIRROR`, both addresses that end in `/`."""
    prefix, equals, mirror = rule.partition("=")
    before, after = urlsplit(prefix), urlsplit(mirror)
    ok = equals and before.scheme == "https" and before.netloc and after.scheme in MIRROR_PROTOCOLS
    if not ok or not prefix.endswith("/") or not mirror.endswith("/"):
        raise InvalidSettings(
            f"VSKILL_SOURCE_REWRITES has {rule!r}: write https://HOST/=https://MIRROR/, both with a '/' at the end; "
            "a mirror is http, https or file.",
            setting="VSKILL_SOURCE_REWRITES",
        )
    return prefix, mirror


def read_private_hosts(entries: Iterable[str]) -> dict[str, str]:
    """From each host of VSKILL_ALLOWED_PRIVATE_HOSTS, with its port if it names one, to its protocol."""
    return dict(_private_host(entry) for entry in entries if not _is_ssh(entry))


def _is_ssh(entry: str) -> bool:
    return entry.lower().startswith(_SSH)


def _ssh_endpoints(entries: Iterable[str], setting: str) -> frozenset[str]:
    found = set()
    for entry in filter(_is_ssh, entries):
        host, _, port = entry.lower().removeprefix(_SSH).rstrip("/").partition(":")
        if not host or not (port or "1").isdecimal():
            raise InvalidSettings(f"{setting} has {entry!r}: write ssh://HOST:PORT.", setting=setting)
        found.add(f"{host}:{port or SSH_PORT}")
    return frozenset(found)


def _private_host(entry: str) -> tuple[str, str]:
    """The host and its protocol: https, unless the entry says http."""
    scheme, separator, host = entry.rpartition("://")
    if separator and scheme not in ("http", "https"):
        raise InvalidSettings(
            f"VSKILL_ALLOWED_PRIVATE_HOSTS has {entry!r}: write HOST, HOST:PORT, http://HOST:PORT or ssh://HOST:PORT.",
            setting="VSKILL_ALLOWED_PRIVATE_HOSTS",
        )
    return host.rstrip("/").lower(), scheme or "https"


def _refuse_odd_number(name: str) -> None:
    """Refuse names such as `2130706433` and `0x7f.1`, which some programs read as addresses."""
    last = name.rpartition(".")[2]
    if not (last.isdigit() or last.startswith("0x")):
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise InvalidInput(
            f"{name} is not a host name.", field="repo_url", fix="use the repository's public host name"
        ) from None
