"""Which of two audiences includes the other, and what concerns records of several."""

import itertools

import pytest

from vskill_platform.domain.people.namespace import (
    PUBLIC,
    SEVERAL,
    Access,
    Directory,
    Member,
    Namespace,
    NamespaceRole,
    Reader,
    RegistryMode,
    Visibility,
    audiences,
    common_audiences,
    includes,
    may_read,
    widest,
)

AUDIENCES = (PUBLIC, "ns:a", "ns:a:internal", "ns:a:team", "ns:b", "ns:b:team")
READERS = (Reader(), Reader("ann"), Reader("bob"), Reader("cid"))


def directory(a: Visibility, b: Visibility, mode: RegistryMode = RegistryMode.PUBLIC) -> Directory:
    def namespace(name: str, visibility: Visibility, account: str) -> Namespace:
        member = Member(f"user:{account}", NamespaceRole.READER, 0, "added")
        return Namespace(name, visibility, members=(member,))

    made = {"a": namespace("a", a, "ann"), "b": namespace("b", b, "bob")}
    return Directory(Access(mode), made)


DIRECTORIES = [
    directory(a, b, mode) for a, b, mode in itertools.product(Visibility, Visibility, RegistryMode)
]


@pytest.mark.parametrize(("wider", "narrower"), list(itertools.product(AUDIENCES, AUDIENCES)))
def test_an_audience_includes_another_only_where_all_its_readers_may_read_it(wider: str, narrower: str):
    if includes(wider, narrower):
        for known in DIRECTORIES:
            for reader in READERS:
                own = audiences(reader, known)
                assert not may_read(narrower, own) or may_read(wider, own)


def test_in_a_namespace_the_wider_includes_the_narrower_and_not_the_other_way_round():
    order = ("ns:a", "ns:a:internal", "ns:a:team")
    for one, other in itertools.product(range(3), repeat=2):
        assert includes(order[one], order[other]) == (one <= other)
    assert not includes("ns:a", "ns:b:team")


def test_what_concerns_several_is_of_the_widest_or_of_nobody():
    assert widest([]) is None
    assert widest(["ns:a:team", PUBLIC, "ns:b"]) == PUBLIC
    assert widest(["ns:a:team", "ns:a"]) == "ns:a"
    assert widest(["ns:a:team", "ns:a:internal"]) == "ns:a:internal"
    assert widest(["ns:a", "ns:b"]) == SEVERAL
    assert widest([SEVERAL]) == SEVERAL
    assert not includes(SEVERAL, "ns:a") and not includes("ns:a", SEVERAL)


@pytest.mark.parametrize("known", DIRECTORIES)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_what_every_reader_of_an_audience_may_read(audience: str, known: Directory):
    """No reader of it lacks any of that, and no more could be added."""
    common = common_audiences(audience, known)
    own = [found for reader in READERS if isinstance(found := audiences(reader, known), frozenset)]
    having = [found for found in own if audience in found]
    for found in having:
        assert common <= found
    if having:
        assert common == having[0].intersection(*having), audience
