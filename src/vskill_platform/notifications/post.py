"""Sending a request to an address that somebody else chose: resolved once, pinned, public only, no redirects."""

import asyncio
import ssl
from collections.abc import Collection
from contextlib import suppress
from urllib.parse import urlsplit

# Loaded here, because httpx2 would load it at its first use, on the event loop.
import httpcore2  # noqa: F401
import httpx2

from vskill_core.errors import InvalidInput, SourceUnavailable
from vskill_platform.sources.addresses import is_public, read_private_hosts, resolve_name

TIMEOUT_S = 10.0
#: Timeout of the DNS lookup for a new webhook.
LOOK_UP_S = 3.0
#: An answer is read in parts of this size.
ANSWER_BYTES = 4096


def check_url(url: str) -> str:
    """Refuse anything but a plain http(s) URL with a host."""
    if not _can_be_posted_to(url):
        raise InvalidInput(
            "This is not an address that can be posted to.",
            field="url",
            fix="give https://host/path without user name and fragment",
        )
    return url


def _can_be_posted_to(url: str) -> bool:
    try:
        parts, port = urlsplit(url), urlsplit(url).port
        host = _host(httpx2.URL(url))
        # The system's resolver refuses names with an empty or too long label.
        host.encode("idna")
    except (ValueError, httpx2.InvalidURL):
        return False
    is_plain = url.isprintable() and " " not in url and "@" not in parts.netloc and not parts.fragment
    return is_plain and parts.scheme in ("https", "http") and bool(host) and port != 0


def _host(url: httpx2.URL) -> str:
    """The host in ASCII, as it is resolved, connected to and named in the request."""
    return url.raw_host.decode("ascii")


async def post(url: str, body: bytes, headers: dict[str, str], private_hosts: Collection[str] = ()) -> int:
    """Post JSON, and return the status. A host that cannot be reached is SourceUnavailable."""
    sent = {**headers, "content-type": "application/json"}
    return (await request("POST", url, sent, body, private_hosts=private_hosts))[0]


async def request(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes | None,
    *,
    private_hosts: Collection[str],
    most_bytes: int = 0,
) -> tuple[int, bytes]:
    """The status and the body of the answer; of a longer body more than `most_bytes`, and not all."""
    asked = httpx2.URL(check_url(url))
    host = _host(asked)
    pinned = asked.copy_with(host=await _address(asked, private_hosts))
    # Reading the certificates takes milliseconds of blocking; plain http needs none.
    trust = await asyncio.to_thread(ssl.create_default_context) if asked.scheme == "https" else False
    sent = {
        "accept-encoding": "identity",
        **headers,
        "host": asked.netloc.decode("ascii"),
        "user-agent": "vskill-platform",
    }
    found = b""
    try:
        async with (
            asyncio.timeout(2 * TIMEOUT_S),
            httpx2.AsyncClient(verify=trust, timeout=TIMEOUT_S, trust_env=False) as client,
            client.stream(
                method, pinned, content=body, headers=sent, extensions={"sni_hostname": host}
            ) as answer,
        ):
            async for part in answer.aiter_raw(ANSWER_BYTES):
                found += part
                if len(found) > most_bytes:
                    break
            return answer.status_code, found
    except (httpx2.HTTPError, TimeoutError) as error:
        raise SourceUnavailable(f"{host} cannot be reached: {error!r}", host=host) from error


async def check_receiver(url: str, private_hosts: Collection[str]) -> str:
    """Refuse a URL that cannot be posted to, as far as we can tell now: a name that does not resolve may resolve at
    delivery, and is checked again then."""
    asked = httpx2.URL(check_url(url))
    with suppress(SourceUnavailable, TimeoutError):
        async with asyncio.timeout(LOOK_UP_S):
            await _address(asked, private_hosts)
    return url


async def _address(url: httpx2.URL, private_hosts: Collection[str]) -> str:
    """The address to connect to: a public one, unless the operator lists the host."""
    host, port = _host(url), url.port or (443 if url.scheme == "https" else 80)
    try:
        found = list(await resolve_name(host, port))
    except OSError as error:
        raise SourceUnavailable(f"The name {host} cannot be resolved at the moment.", host=host) from error
    listed = read_private_hosts(private_hosts)
    if not listed.keys() & {host, f"{host}:{port}"} and not all(map(is_public, found)):
        rule = f"{url.scheme}://{host}:{port}"
        raise InvalidInput(
            f"{host} is not a public address.",
            field="url",
            fix=f"use a public host, or ask the operator to add {rule} to VSKILL_ALLOWED_PRIVATE_HOSTS",
        )
    return found[0]
