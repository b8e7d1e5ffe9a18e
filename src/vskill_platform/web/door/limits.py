"""Rate limits for expensive requests, per client.

Requests that write are counted in the store, so all processes together allow no more than one would. Requests that read
must go on where the store cannot be written, so each process counts them by itself (by the `limits` package), and of
several that answer as one each allows its part.

A client is its account if it has one, otherwise the address of its connection, or the one that a trusted proxy gives;
of an IPv6 address, only the prefix that a provider gives to one customer. Administrators are not counted.
"""

import ipaddress
import math

import limits
import msgspec
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter
from starlette.requests import Request

from vskill_core.errors import RateLimited
from vskill_platform.actions.action import Allowance
from vskill_platform.actions.principal import is_unlimited
from vskill_platform.settings import Settings
from vskill_platform.store.people.attempts import Window, count_request
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.worker_context import require_env

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Prefix length of one customer's IPv6 network.
_IPV6_SHARE = 64
#: A longer list of proxies is not trusted.
_MOST_HOPS = 32


class Quota(msgspec.Struct, frozen=True):
    """Requests per hour, for an address and for an account."""

    address: int
    account: int


QUOTAS: dict[Allowance, Quota] = {
    Allowance.SUBMISSIONS: Quota(10, 30),
    Allowance.DISCOVERIES: Quota(30, 60),
    Allowance.INSTALLS: Quota(60, 60),
    # A company may share one address: a thousand machines, six requests an hour. A check reads at most 100 records.
    Allowance.UPDATES: Quota(6_000, 6_000),
    Allowance.REPORTS: Quota(10, 30),
    Allowance.LOGINS: Quota(600, 600),
}
HOUR_S = 3600
#: Installs only raise a counter, which is not worth a second write for each.
COUNTED_HERE = frozenset({Allowance.INSTALLS, Allowance.UPDATES})


class Limiter:
    """What one of so many processes that answer as one allows."""

    def __init__(self, settings: Settings, processes: int) -> None:
        self._mode = settings.rate_limits
        self._processes = processes
        self._proxies = networks_of(settings)
        self._limiter = FixedWindowRateLimiter(MemoryStorage())

    async def take(self, request: Request, allowance: Allowance) -> None:
        """Count one request; RateLimited if there were too many. The answer's headers say what is left."""
        principal = principal_of(request)
        address = client_address(request, self._proxies)
        is_own_machine = self._mode == "remote" and is_loopback(address)
        if self._mode == "off" or is_own_machine or is_unlimited(principal):
            return
        quota = QUOTAS[allowance]
        amount = quota.address if principal.account is None else quota.account
        client = f"account {principal.account}" if principal.account is not None else share_of(address)
        if principal.ci is not None:
            # Jobs of many repositories share the addresses of a forge.
            amount, client = quota.account, principal.actor
        if allowance in COUNTED_HERE:
            amount = math.ceil(amount / self._processes)
            window = await self._count_here(amount, allowance, client)
        else:
            window = await count_request(allowance.value, client, amount, HOUR_S * 1000)
        wait_s = max(1, min(HOUR_S, math.ceil(window.ends_in_ms / 1000)))
        # As the HTTP working group's draft on rate limits writes them.
        request.scope["rate_limit"] = {
            "ratelimit-policy": f'"{allowance.value}";q={amount};w={HOUR_S}',
            "ratelimit": f'"{allowance.value}";r={window.left};t={wait_s}',
        }
        if not window.allowed:
            raise RateLimited(
                f"Only {amount} requests of this kind are allowed per hour; try again in {wait_s} s.",
                limit=amount,
                retry_after_s=wait_s,
            )

    async def _count_here(self, amount: int, allowance: Allowance, client: str) -> Window:
        item = limits.RateLimitItemPerHour(amount)
        allowed = await self._limiter.hit(item, allowance.value, client)
        state = await self._limiter.get_window_stats(item, allowance.value, client)
        ends_in_ms = round(state.reset_time * 1000) - require_env("clock").clock.now()
        return Window(allowed, max(0, state.remaining), ends_in_ms)


async def take(request: Request, allowance: Allowance) -> None:
    limiter: Limiter = request.app.state.limiter
    await limiter.take(request, allowance)


def client_of(request: Request) -> str:
    """The address that a request counts for, or its IPv6 network, however it is signed in."""
    origin = services_of(request).origin
    return origin.address if origin else ""


def client_address(request: Request, proxies: tuple[Network, ...]) -> str:
    """The connection's other end; behind trusted proxies the last address before them."""
    peer = request.client.host if request.client else ""
    return address_behind(peer, request.headers.get("x-forwarded-for", ""), proxies)


def address_behind(peer: str, forwarded_for: str, proxies: tuple[Network, ...]) -> str:
    """The last address before the trusted proxies; the peer's own if it is not one of them."""
    if not forwarded_for:
        return peer
    address = peer
    for hop in reversed(forwarded_for.split(",")[-_MOST_HOPS:]):
        if not is_within(address, proxies) or not _is_address(hop.strip()):
            break
        address = hop.strip()
    return address


def networks_of(settings: Settings) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text, strict=False) for text in settings.trusted_proxies)


def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    return bool(networks) and _is_address(address) and any(_plain(address) in one for one in networks)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _plain(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address; an IPv4-mapped IPv6 address becomes IPv4."""
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_loopback(address: str) -> bool:
    return _is_address(address) and _plain(address).is_loopback


def share_of(address: str) -> str:
    """One customer's addresses: an IPv4 address, or an IPv6 network."""
    if not _is_address(address):
        return "unknown"
    plain = _plain(address)
    if isinstance(plain, ipaddress.IPv4Address):
        return str(plain)
    return str(ipaddress.ip_network((plain, _IPV6_SHARE), strict=False))
