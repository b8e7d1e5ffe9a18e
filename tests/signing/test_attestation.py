"""An attestation verifies offline, and stops to as soon as one byte of anything changes."""

import base64
import json

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.signing.conftest import ARCHIVES, DIGEST, FILES, JUDGE, TAR, ZIP, statement
from vskill_core.content import SkillFile, manifest_of
from vskill_core.dsse import MAX_BYTES, PAYLOAD_TYPE, open_envelope, pae, seal
from vskill_core.errors import AttestationInvalid
from vskill_core.findings import JUDGE_DOWN, StaticReport
from vskill_core.signing_keys import SigningKey
from vskill_core.statement import encode_statement, read_statement
from vskill_core.verification import check_attestation
from vskill_platform.domain.client_hashes import content_hash
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.signals import RecordedRule, RuleEffect
from vskill_platform.domain.submissions.submission import Approval, RecordedDecision

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def refused(data: bytes, key: SigningKey, **content: object) -> str:
    with pytest.raises(AttestationInvalid) as caught:
        check_attestation(data, [key.public], **content)  # type: ignore[arg-type]
    return caught.value.message


# The formats.


@pytest.mark.parametrize(
    ("kind", "body", "encoded"),
    [
        (
            "http://example.com/HelloWorld",
            b"hello world",
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world",
        ),
        ("", b"", b"DSSEv1 0  0 "),
        ("é", "日".encode(), b"DSSEv1 2 \xc3\xa9 3 \xe6\x97\xa5"),
    ],
)
def test_what_is_signed_is_encoded_as_the_specification_says(kind, body, encoded):
    assert pae(kind, body) == encoded


def test_the_envelope_can_be_verified_by_any_tool_that_knows_dsse(attestation, key):
    """Written out with nothing of ours but the public key's bytes."""
    envelope = json.loads(attestation)
    assert set(envelope) == {"payload", "payloadType", "signatures"}
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"])
    (signature,) = envelope["signatures"]
    assert signature["keyid"] == key.public.key_id
    signed = b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(payload), payload)
    Ed25519PublicKey.from_public_bytes(key.public.raw).verify(base64.b64decode(signature["sig"]), signed)


def test_the_payload_is_an_in_toto_statement_about_content_and_archives(attestation):
    told = json.loads(base64.b64decode(json.loads(attestation)["payload"]))
    assert list(told) == ["_type", "subject", "predicateType", "predicate"]
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert told["predicateType"] == "urn:vskill-platform:verification:v1"
    assert told["subject"] == [
        {
            "name": "acme/tools/tidy@1.2.0",
            "digest": {"vskillContent": DIGEST, "vskillSkillFile": content_hash(FILES[0].data)},
        },
        {"name": "acme/tools/tidy@1.2.0.zip", "digest": {"sha256": ARCHIVES.zip}},
        {"name": "acme/tools/tidy@1.2.0.tar.gz", "digest": {"sha256": ARCHIVES.tar_gz}},
    ]
    assert told["predicate"] == {
        "registry": "a registry",
        "skill": "acme/tools/tidy",
        "version": "1.2.0",
        "repository": "https://github.com/acme/tools",
        "path": "skills/tidy",
        "commit": "c" * 40,
        "submission": "sub_1",
        "run": 3,
        "static": {
            "ruleset": "r7",
            "status": "complete",
            "verdict": "PASS",
            "score": 100,
            "findings": {"low": 0, "medium": 0, "high": 0, "critical": 0},
            "capabilities": 0,
        },
        "judge": {"model": "m", "rubric": "rubric-1", "verdict": "PASS", "score": 91, "partial": False},
        "judgeStatus": "answered",
        "certification": "VERIFIED",
        "score": 100,
        "reviewed": False,
        "trustedVendor": False,
        "suppressed": [],
        "decidedAt": "2025-11-13T02:13:20.123Z",
        "capabilityCard": None,
        "files": [{"path": one.path, "mode": one.mode, "sha256": one.sha256} for one in manifest_of(FILES)],
        "secondJudge": None,
        "secondJudgeStatus": "none",
        "policy": None,
        "memory": None,
        "publisher": None,
        "generated": [],
        "origin": None,
        "teamApproved": False,
    }


def test_the_policy_is_attested_without_the_sentences_of_its_rules():
    rules = (
        RecordedRule("copy", RuleEffect.REVIEW, "as ann wrote"),
        RecordedRule("odd", RuleEffect.REVIEW, "as ann wrote", failed=True),
    )
    told = statement(decision=RecordedDecision("passed", policy="d1", matched=rules)).predicate.policy
    assert told is not None and told.digest == "d1"
    assert [(one.name, one.then, one.failed) for one in told.matched] == [
        ("copy", "review", False),
        ("odd", "review", True),
    ]
    assert b"ann" not in msgspec.json.encode(told)


def test_two_judges_are_both_attested_the_lower_score_first():
    high = msgspec.structs.replace(JUDGE, model="n", score=99)
    both = statement(evidence=evidence_of(DIGEST, StaticReport("r7"), high, second=JUDGE)).predicate
    assert both.judge is not None and both.second_judge is not None
    assert (both.judge.model, both.second_judge.model, both.second_judge_status) == ("m", "n", "answered")
    down = statement(evidence=evidence_of(DIGEST, StaticReport("r7"), JUDGE, second=JUDGE_DOWN)).predicate
    assert (down.second_judge, down.second_judge_status) == (None, "down")


def test_without_evidence_about_these_bytes_nothing_is_said_about_a_scan():
    predicate = statement(evidence=None).predicate
    assert (predicate.static, predicate.judge, predicate.judge_status) == (None, None, "none")


def test_what_was_found_in_other_bytes_is_not_said_about_these():
    other = statement(
        evidence=evidence_of("0" * 64, StaticReport("r7"), JUDGE), approval=Approval("0" * 64, "admin:eve", 5)
    ).predicate
    assert (other.static, other.judge_status, other.reviewed) == (None, "none", False)
    assert statement(approval=Approval(DIGEST, "admin:eve", 5)).predicate.reviewed


def test_the_same_facts_signed_by_the_same_key_are_the_same_bytes(attestation, key):
    assert seal(encode_statement(statement()), key) == attestation


# Genuine ones.


def test_it_verifies_alone_and_with_each_form_of_its_content(attestation, key):
    assert check_attestation(attestation, [key.public]).content is None
    assert check_attestation(attestation, [key.public], archive=ZIP).content == "acme/tools/tidy@1.2.0.zip"
    assert check_attestation(attestation, [key.public], archive=TAR).content == "acme/tools/tidy@1.2.0.tar.gz"
    checked = check_attestation(
        attestation, [SigningKey.generate().public, key.public], files=reversed(FILES)
    )
    assert (checked.content, checked.key) == ("acme/tools/tidy@1.2.0", key.public)


def test_what_no_job_published_is_from_no_repository(attestation, key):
    with pytest.raises(AttestationInvalid, match="was not published from CI, so not by acme/tools"):
        check_attestation(attestation, [key.public]).require_publisher("acme/tools")


def test_an_envelope_that_was_written_anew_by_a_json_tool_still_verifies(attestation, key):
    pretty = json.dumps(json.loads(attestation), indent=2, sort_keys=True).encode() + b"\n"
    assert check_attestation(pretty, [key.public], files=FILES).content


# One byte.


def test_no_byte_of_the_envelope_can_change(attestation, key):
    for place in range(len(attestation)):
        changed = bytearray(attestation)
        changed[place] ^= 1
        refused(bytes(changed), key)


@pytest.mark.parametrize("part", ["payload", "sig"])
def test_no_character_of_payload_and_signature_can_become_another_one(attestation, key, part):
    """Also where the other one is valid base64, and even in the bits that base64 does not use."""
    envelope = json.loads(attestation)
    holder = envelope if part == "payload" else envelope["signatures"][0]
    text = holder[part]
    for place, char in enumerate(text):
        if char == "=":
            continue
        other = BASE64[(BASE64.index(char) + 1) % 64]
        holder[part] = text[:place] + other + text[place + 1 :]
        refused(json.dumps(envelope).encode(), key)


def test_no_bit_of_the_statement_can_change_even_if_the_envelope_is_written_anew(attestation, key):
    envelope = json.loads(attestation)
    payload = base64.b64decode(envelope["payload"])
    for place in range(len(payload)):
        changed = bytearray(payload)
        changed[place] ^= 0x20
        envelope["payload"] = base64.b64encode(bytes(changed)).decode()
        assert "does not match" in refused(json.dumps(envelope).encode(), key)


@pytest.mark.parametrize("archive", [ZIP, TAR], ids=["zip", "tar.gz"])
def test_no_byte_of_an_archive_can_change(attestation, key, archive):
    for place in range(len(archive)):
        changed = bytearray(archive)
        changed[place] ^= 1
        message = refused(attestation, key, archive=bytes(changed))
        assert message.startswith("The archive is not the content that was verified: its sha256 is ")
    refused(attestation, key, archive=archive + b"\0")
    refused(attestation, key, archive=archive[:-1])


OTHER_FILES = {
    "one byte": [FILES[0], SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho tidY\n")],
    "one mode bit": [FILES[0], SkillFile("scripts/run.sh", "100644", FILES[1].data)],
    "a name": [FILES[0], SkillFile("scripts/Run.sh", "100755", FILES[1].data)],
    "a file less": [FILES[0]],
    "a file more": [*FILES, SkillFile("x", "100644", b"")],
    "line ends": [SkillFile("SKILL.md", "100644", FILES[0].data.replace(b"\n", b"\r\n")), FILES[1]],
}


@pytest.mark.parametrize("other", OTHER_FILES)
def test_no_other_files_pass(attestation, key, other):
    message = refused(attestation, key, files=OTHER_FILES[other])
    assert message.startswith("The folder is not the content of acme/tools/tidy 1.2.0: ")


# Forgeries.


def test_another_key_is_not_trusted_whatever_key_id_it_claims(attestation, key):
    forger = SigningKey.generate()
    forged = json.loads(seal(encode_statement(statement()), forger))
    assert "None of the trusted keys has signed it" in refused(json.dumps(forged).encode(), key)
    forged["signatures"][0]["keyid"] = key.public.key_id
    assert "does not match" in refused(json.dumps(forged).encode(), key)


def test_no_signature_and_no_trusted_key_are_refused(attestation, key):
    envelope = {**json.loads(attestation), "signatures": []}
    assert "None of the trusted keys" in refused(json.dumps(envelope).encode(), key)
    with pytest.raises(AttestationInvalid, match="None of the trusted keys"):
        open_envelope(attestation, [])


def test_a_signature_of_another_payload_type_is_refused_though_it_is_genuine(key):
    other = seal(encode_statement(statement()), key, "text/plain")
    assert "payload type is 'text/plain'" in refused(other, key)
    renamed = json.dumps({**json.loads(other), "payloadType": PAYLOAD_TYPE}).encode()
    assert "does not match" in refused(renamed, key)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predicate_type": "https://slsa.dev/provenance/v1"}, "another kind"),
        ({"type": "https://in-toto.io/Statement/v0.1"}, "another kind"),
    ],
)
def test_a_genuine_statement_of_another_kind_is_refused(key, changes, message):
    other = msgspec.structs.replace(statement(), **changes)
    assert message in refused(seal(encode_statement(other), key), key)


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b"\xff", b'{"_type": 1}'])
def test_a_signed_payload_that_is_no_statement_is_refused(key, payload):
    assert "not a statement" in refused(seal(payload, key), key)


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"\xff\xfe", b"[" * 100_000, b" " * (MAX_BYTES + 1)])
def test_what_is_no_envelope_is_refused(key, data):
    refused(data, key)


def test_members_that_a_later_release_adds_to_the_statement_are_no_error(key):
    """The specification asks readers to ignore what they do not know."""
    members = json.loads(encode_statement(statement()))
    members["predicate"]["later"] = 1
    assert read_statement(json.dumps(members).encode()).predicate.skill == "acme/tools/tidy"
