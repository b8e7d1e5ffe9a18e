"""Keys: as the design writes them, taken apart again without doubt, and closed against foreign text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.errors import InvalidInput
from vskill_core.identity import Identity, has_control_characters, normalise
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import name_target, place_target

PLACE = normalise("https://git.example.com:8443/a/b", "x:y/z")


def built_keys() -> list[tuple[str, str]]:
    """Every builder's key, made anew, and as the design writes it."""
    return [
        (keys.sub("sub_1"), "sub:sub_1"),
        (keys.subrun("sub_1", "12"), "subrun:sub_1:12"),
        (keys.sub_alias("sub_1"), "sub_alias:sub_1"),
        (keys.scan("d", "r1"), "scan:d:r1"),
        (keys.judge("d", "r1", "llama3:8b", "v1"), "judge:d:r1:llama3%3A8b:v1"),
        (keys.extscan("d", "semgrep"), "extscan:d:semgrep"),
        (keys.rescan("r1", "a/b/c", "d"), "rescan:r1:a/b/c:d"),
        (keys.skill("a/b/c"), "skill:a/b/c"),
        (keys.alias_key("c", "a/b/c"), "skill:alias:c:a/b/c"),
        (keys.name("c"), "name:c"),
        (keys.version("a/b/c", "1.0.0"), "version:a/b/c:1.0.0"),
        (keys.sketch("a/b/c"), "sketch:a/b/c"),
        (keys.host("ns:upload~mia", "get.tool.dev"), "host:ns%3Aupload~mia:get.tool.dev"),
        (keys.attestation("a/b/c", "1.0.0"), "attestation:a/b/c:1.0.0"),
        (keys.signer("0123456789abcdef"), "signer:0123456789abcdef"),
        (keys.suppress("d", "CI-001"), "suppress:d:CI-001"),
        (keys.ruling("rule", "CI-001", "9-e"), "ruling:rule:CI-001:9-e"),
        (keys.rule_figure("CI-001", "fired"), "rule_figure:CI-001:fired"),
        (
            keys.policy_figure("2026-11-15", "copy", "matched", "acme:team"),
            "policy_figure:2026-11-15:copy:matched:acme%3Ateam",
        ),
        (keys.facts("sub_1", "12"), "facts:sub_1:12"),
        (keys.revocation_at(17), "revocation:000000000017"),
        (keys.revoked("namespace acme acme:team"), "revoked:namespace acme acme%3Ateam"),
        (keys.namespace("git.example.com_8443~a"), "namespace:git.example.com_8443~a"),
        (keys.team("core"), "team:core"),
        (keys.usage("upload~mia", "bytes"), "usage:upload~mia:bytes"),
        (keys.owner_proof(PLACE.repo_key, "ann"), "owner_proof:git.example.com_8443/a/b:ann"),
        (keys.hand_in("01J"), "hand_in:01J"),
        (keys.repohealth(PLACE.repo_key), "repohealth:git.example.com_8443/a/b"),
        (place_target(PLACE).key, "block:place:git.example.com_8443/a/b/x%3Ay/z"),
        (name_target("100%").key, "block:name:100%25"),
        (keys.job("recover"), "job:recover"),
        (keys.worker("host-1-ab"), "worker:host-1-ab"),
        (keys.web("host-1-ab"), "web:host-1-ab"),
        (keys.installs("a/b/c", "2026-11-15"), "installs:a/b/c:2026-11-15"),
        (keys.review("a/b/c"), "review:a/b/c"),
        (keys.report("01J"), "report:01J"),
        (keys.open_report("a/b/c", "user:ann"), "open_report:a/b/c:user%3Aann"),
        (keys.webhook("w1"), "webhook:w1"),
        (keys.inbox("ann", "9-e"), "inbox:ann:9-e"),
        (keys.inbox_seen("ann"), "inbox:ann:0"),
        (keys.watches("ann"), "watches:ann"),
        (keys.watcher("a/b/c", "ann"), "watcher:a/b/c:ann"),
        (keys.damage("ab" * 32), "damage:" + "ab" * 32),
        (keys.collection("team"), "collection:team"),
        (keys.git_list("collections/team", "readers"), "git_list:collections/team:readers"),
        (keys.upload("ann", "3-ab"), "upload:ann:3-ab"),
        (keys.token("h"), "token:h"),
        (keys.device("c"), "device:c"),
        (keys.ci_token("h"), "ci_token:h"),
        (keys.ci_proof("h"), "ci_proof:h"),
        (keys.push_hook("01hook"), "push_hook:01hook"),
        (keys.follow("acme", "github.com/acme/tools"), "follow:acme:github.com/acme/tools"),
        (keys.upstream("vendor"), "upstream:vendor"),
        (keys.upstream_entries("vendor"), "upstream_entries:vendor"),
        (keys.upstream_facts("vendor", "skills/lint"), "upstream_facts:vendor:skills/lint"),
        (keys.bundles("vendor"), "bundles:vendor"),
        (keys.brought("vendor", "ab" * 32), "brought:vendor:" + "ab" * 32),
        (keys.origin("a/b/c", "1.0.0"), "origin:a/b/c:1.0.0"),
        (keys.credentials("acme"), "credentials:acme"),
        (keys.publishers("github.com/acme/tools"), "publishers:github.com/acme/tools"),
        (keys.session("h"), "session:h"),
        (keys.device("h"), "device:h"),
        (keys.scim("i"), "scim:i"),
        (keys.scim_group("g"), "scim_group:g"),
        (keys.scim_user("https://a", "f"), "scim_user:https%3A//a:f"),
        (keys.scim_member("g", "ann"), "scim_member:g:ann"),
        (keys.user("ann"), "user:ann"),
        (keys.github("id", "583231"), "github:id:583231"),
        (keys.identity("f" * 64), "identity:" + "f" * 64),
        (keys.attempts("h"), "attempts:h"),
        (keys.audit("01J"), "audit:01J"),
        (keys.audit_address("01J"), "audit_address:01J"),
        (keys.refused("29000000"), "refused:29000000"),
        (keys.CONTROL_BLOCKLIST, "control:blocklist"),
        (keys.CONTROL_NAMESPACES, "control:namespaces"),
        (keys.CONTROL_POLICY, "control:policy"),
        (keys.CONTROL_QUEUE, "control:queue"),
        (keys.CONTROL_RELEASE, "control:release"),
        (keys.CONTROL_RESCANS, "control:rescans"),
        (keys.CONTROL_SETUP, "control:setup"),
        (keys.CONTROL_STREAMS, "control:streams"),
        (keys.CONTROL_VOCABULARY, "control:vocabulary"),
    ]


def test_keys_are_as_the_design_writes_them_and_parse() -> None:
    for built, written in built_keys():
        assert built == written
        parsed = keys.parse(built)
        assert built.startswith(parsed.prefix) and len(parsed.parts) == len(keys.KINDS[parsed.prefix].parts)


def test_every_kind_is_among_those_that_are_built_here() -> None:
    assert {keys.parse(built).prefix for built, _ in built_keys()} == set(keys.KINDS)


def test_a_key_has_all_of_its_parts() -> None:
    for parts in (("d",), ("d", "r1", "more")):
        with pytest.raises(TypeError, match="digest, ruleset"):
            keys.scan(*parts)


def test_a_longer_prefix_is_tried_before_the_one_that_it_contains() -> None:
    order = list(keys.KINDS)
    for index, prefix in enumerate(order):
        assert not any(later.startswith(prefix) for later in order[index + 1 :])


def test_a_prefix_holds_exactly_its_own_keys() -> None:
    for prefix, inside, outside in (
        (keys.scan.under("d"), keys.scan("d", "r"), keys.scan("d2", "r")),
        (keys.judge.under("d"), keys.judge("d", "r", "m", "v"), keys.judge("d2", "r", "m", "v")),
        (keys.rescan.under("r"), keys.rescan("r", "a/b/c", "d"), keys.rescan("r2", "a/b/c", "d")),
        (keys.version.under("a/b/c"), keys.version("a/b/c", "1.0.0"), keys.version("a/b/cd", "1.0.0")),
        (keys.installs.under("a/b/c"), keys.installs("a/b/c", "1"), keys.installs("a/b/cd", "1")),
        (keys.extscan.under("d"), keys.extscan("d", "p"), keys.extscan("d2", "p")),
        (keys.alias_key.under("pdf"), keys.alias_key("pdf", "a/b/c"), keys.alias_key("pdf2", "a/b/c")),
        (keys.suppress.under("d"), keys.suppress("d", "r"), keys.suppress("d2", "r")),
        (keys.ruling.under("rule", "r"), keys.ruling("rule", "r", "1"), keys.ruling("rule", "r2", "1")),
        (keys.open_report.under("a/b/c"), keys.open_report("a/b/c", "x"), keys.open_report("a/b/cd", "x")),
        (keys.upload.under("ann"), keys.upload("ann", "3-ab"), keys.upload("anna", "3-ab")),
    ):
        assert inside.startswith(prefix) and not outside.startswith(prefix)


def test_tc077_an_alias_is_told_from_a_skill_by_its_key_alone() -> None:
    assert keys.is_alias(keys.alias_key("old", "a/b/c"))
    assert not keys.is_alias(keys.skill("alias/b/c"))
    assert not keys.is_alias(keys.skill("alias:x"))


@pytest.mark.parametrize("part", ["", "a\0b", "a\nb", "\ud800"])
def test_a_part_that_is_empty_or_not_plain_text_is_refused(part: str) -> None:
    for build in (lambda: keys.user(part), lambda: keys.scan("d", part), lambda: keys.scan(part, "r:1")):
        with pytest.raises(InvalidInput) as caught:
            build()
        assert caught.value.field == "key" and caught.value.fix


def test_a_refused_part_is_named_and_cut() -> None:
    with pytest.raises(InvalidInput, match=f"'{'x' * 80}'"):
        keys.user("x" * 81 + "\n")
    with pytest.raises(InvalidInput) as caught:
        keys.user("\ud800")
    assert repr("\\ud800") in str(caught.value)


@pytest.mark.parametrize(
    "key", ["", "nothing", "sub:", "sub:a:b", "scan:d", "user:a%b", "user:a%3a", "other:x", "skill:alias:x"]
)
def test_what_no_builder_builds_does_not_parse(key: str) -> None:
    with pytest.raises(InvalidInput):
        keys.parse(key)


PARTS = st.one_of(
    st.text(st.sampled_from(":%3A25ab/~"), min_size=1, max_size=10),
    st.text(min_size=1, max_size=10).filter(lambda text: not has_control_characters(text)),
)


@given(PARTS, PARTS, PARTS, PARTS)
def test_whatever_the_parts_are_they_come_back(one: str, two: str, three: str, four: str) -> None:
    assert keys.parse(keys.judge(one, two, three, four)).parts == (one, two, three, four)
    assert keys.parse(keys.alias_key(one, two)).parts == (one, two)


@given(st.text(max_size=40))
def test_parsing_is_total(text: str) -> None:
    for key in (text, f"scan:{text}", f"skill:{text}"):
        try:
            parsed = keys.parse(key)
        except InvalidInput:
            continue
        assert all(parsed.parts)


def test_two_places_never_share_a_block_key() -> None:
    one = Identity("github.com", "a", "b", "c:d")
    two = Identity("github.com", "a", "b", "c%3Ad")
    assert place_target(one).key != place_target(two).key


def test_several_short_names_have_the_keys_that_each_has_alone() -> None:
    for flats in (["lint", "slides"], ["lint", "a:b"], ["über", "lint"], []):
        assert keys.names(flats) == {keys.name(flat): flat for flat in flats}
    with pytest.raises(InvalidInput):
        keys.names(["lint", ""])


def test_what_an_account_was_told_and_who_watches_begins_with_a_prefix_of_its_own() -> None:
    assert keys.inbox.under("a:b") == "inbox:a%3Ab:"
    assert keys.watcher.under("acme") == "watcher:acme:"
