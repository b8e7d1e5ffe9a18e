"""Where a fetch may go: allowed hosts, mirrors, and addresses that are never reached for a stranger."""

import pytest

from vskill_core.errors import InvalidInput, InvalidSettings, SourceUnavailable
from vskill_core.identity import Identity, normalise
from vskill_platform.sources.addresses import Hosts, is_public, resolve_name

pytestmark = pytest.mark.anyio

PUBLIC = "140.82.112.3"


def resolving(*addresses: str):
    async def resolve(_name: str, _port: int) -> tuple[str, ...]:
        return addresses

    return resolve


@pytest.mark.parametrize(
    "address", [PUBLIC, "2606:50c0:8000::153", "8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "192.0.0.170",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd12:3456::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2002:a00:1::",
        "not an address",
        "",
    ],
)
def test_private_loopback_link_local_and_special_addresses_are_not_public(address):
    assert not is_public(address)


async def test_a_public_host_is_reached_over_https_and_pinned_to_what_was_checked():
    hosts = Hosts(("github.com",), resolve=resolving(PUBLIC, "2606:50c0:8000::153"))
    route = await hosts.route(normalise("https://github.com/ann/tools"))
    assert route.url == "https://github.com/ann/tools"
    assert route.protocol == "https"
    assert route.pin == f"github.com:443:{PUBLIC},[2606:50c0:8000::153]"


async def test_the_name_is_resolved_once_for_each_route():
    asked = []

    async def resolve(name: str, _port: int) -> list[str]:
        asked.append(name)
        return [PUBLIC]

    await Hosts(("github.com",), resolve=resolve).route(normalise("ann/tools"))
    assert asked == ["github.com"]


@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), (PUBLIC, "10.0.0.1"), ("169.254.169.254",), ("::1",), ("::ffff:192.168.0.1",)],
)
async def test_a_name_with_any_private_address_is_refused(addresses):
    hosts = Hosts(("*",), resolve=resolving(*addresses))
    with pytest.raises(InvalidInput, match="not a public address") as caught:
        await hosts.route(normalise("https://git.example.org/ann/tools"))
    assert "VSKILL_ALLOWED_PRIVATE_HOSTS" in caught.value.fix
    assert not any(address in str(caught.value) for address in addresses), "nothing about the inside is told"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.5", "0.0.0.0", "169.254.169.254"])
async def test_an_address_as_host_is_judged_by_itself(host):
    with pytest.raises(InvalidInput, match="not a public address"):
        await Hosts(("*",)).route(Identity(host, "ann", "tools"))


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "0x7f000001", "0177.0.0.1"])
async def test_an_odd_spelling_of_an_address_is_refused(host):
    with pytest.raises(InvalidInput):
        await Hosts(("*",)).route(Identity(host, "ann", "tools"))


async def test_localhost_is_refused():
    with pytest.raises(InvalidInput):
        await Hosts(("*",)).route(Identity("localhost", "ann", "tools"))
    assert "127.0.0.1" in await resolve_name("localhost", 443)


async def test_other_hosts_are_refused_with_the_way_to_allow_them():
    hosts = Hosts(("github.com",), resolve=resolving(PUBLIC))
    with pytest.raises(InvalidInput, match=r"git\.example\.org are not accepted") as caught:
        await hosts.route(normalise("https://git.example.org/ann/tools"))
    assert "VSKILL_ALLOWED_HOSTS" in caught.value.fix
    with pytest.raises(InvalidInput):
        await hosts.route(normalise("https://github.com:8443/ann/tools"))


async def test_a_star_allows_every_public_host():
    route = await Hosts(("*",), resolve=resolving(PUBLIC)).route(
        normalise("https://git.example.org:8443/ann/tools")
    )
    assert route.pin == f"git.example.org:8443:{PUBLIC}"


async def test_the_operators_private_host_is_reached_and_its_plain_http_too():
    hosts = Hosts((), ("git.corp", "http://10.0.0.5:3000"), resolve=resolving("10.0.0.5"))
    assert (await hosts.route(normalise("https://git.corp/ann/tools"))).url == "https://git.corp/ann/tools"
    assert (await hosts.route(normalise("http://10.0.0.5:3000/a/b"))).url == "http://10.0.0.5:3000/a/b"
    with pytest.raises(InvalidInput):
        await hosts.route(normalise("https://10.0.0.6/a/b"))


async def test_B16_a_name_that_cannot_be_resolved_is_a_host_that_is_down():
    async def fails(_name: str, _port: int) -> list[str]:
        raise OSError("no name server")

    for resolve in (fails, resolving()):
        with pytest.raises(SourceUnavailable) as caught:
            await Hosts(("github.com",), resolve=resolve).route(normalise("ann/tools"))
        assert caught.value.text("host") == "github.com"


async def test_a_rewrite_leads_to_the_mirror_and_the_longest_prefix_decides():
    rules = ("https://github.com/=http://10.0.0.5/gh/", "https://github.com/Ann/=file:///srv/ann/")
    hosts = Hosts((), rewrites=rules)
    route = await hosts.route(normalise("https://github.com/bob/tools"))
    assert (route.url, route.host, route.pin, route.mirror) == (
        "http://10.0.0.5/gh/bob/tools",
        "github.com",
        "",
        True,
    )
    assert (await hosts.route(normalise("https://github.com/ANN/tools"))).url == "file:///srv/ann/tools"
    with pytest.raises(InvalidInput):
        await hosts.route(normalise("https://gitlab.com/bob/tools"))


async def test_gitlab_is_asked_under_the_address_that_it_does_not_redirect():
    hosts = Hosts(("gitlab.com",), resolve=resolving(PUBLIC))
    assert (await hosts.route(normalise("https://gitlab.com/g/s/r"))).url == "https://gitlab.com/g/s/r.git"


@pytest.mark.parametrize(
    "rule",
    [
        "github.com=mirror",
        "https://github.com/",
        "https://github.com/=ext::sh -c id/",
        "https://github.com=http://m/",
        "https://a/=ssh://m/",
    ],
)
def test_a_rewrite_that_cannot_be_meant_is_refused(rule):
    with pytest.raises(InvalidSettings, match="VSKILL_SOURCE_REWRITES"):
        Hosts((), rewrites=(rule,))


def test_a_private_host_with_another_protocol_is_refused():
    with pytest.raises(InvalidSettings, match="VSKILL_ALLOWED_PRIVATE_HOSTS"):
        Hosts((), ("ftp://git.corp",))


@pytest.mark.parametrize("entry", ["ssh://", "ssh://git.corp:x", "ssh://git@git.corp:22:22"])
def test_an_entry_for_ssh_that_names_no_port_is_refused(entry):
    with pytest.raises(InvalidSettings, match="write ssh://HOST:PORT"):
        Hosts((entry,))
