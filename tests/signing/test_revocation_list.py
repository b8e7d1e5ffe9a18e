"""The signed revocation list as anybody opens it: with our reader, and with another implementation of DSSE."""

import json

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from vskill_core.dsse import seal
from vskill_core.errors import AttestationInvalid
from vskill_core.findings import Severity
from vskill_core.revocation_list import DAY_MS, PAYLOAD_TYPE, RevokedStatus
from vskill_core.signing_keys import PublicKey, SigningKey
from vskill_core.verification import open_revocation_list
from vskill_platform.domain.downloads import ArchiveDigests
from vskill_platform.domain.skills.skill import Replacement, RevokedList, RevokedVersion
from vskill_platform.signing.from_records import encode_document, make_document

NOW = 20_000 * DAY_MS + 5_000
BAD = RevokedVersion(
    skill="acme/tools/lint",
    version="1.0.0",
    digest="d" * 64,
    content_hash="c" * 64,
    status=RevokedStatus.BLOCKED,
    reason="steals keys",
    since=NOW - 1,
    threat_type="credential-theft",
    severity=Severity.CRITICAL,
    replacement=Replacement("1.0.1", "e" * 64),
)
OLD = RevokedVersion(
    skill="acme/tools/old",
    version="2.0.0",
    digest="a" * 64,
    content_hash="",
    status=RevokedStatus.YANKED,
    reason="broken",
    since=0,
    threat_type="",
    severity=None,
    replacement=None,
)
REVOKED = RevokedList(70, {one.skill: (one,) for one in (BAD, OLD)}, "", serial=7, at=NOW - 60_000)
ARCHIVES = {(BAD.skill, BAD.version): ArchiveDigests("1" * 64, "2" * 64)}
KEY = SigningKey.generate()


def signed(key: SigningKey = KEY, now: int = NOW) -> bytes:
    return seal(encode_document(make_document("reg", "everybody", REVOKED, ARCHIVES, now)), key, PAYLOAD_TYPE)


def foreign_key(key: PublicKey) -> SSlibKey:
    return SSlibKey(key.key_id, "ed25519", "ed25519", {"public": key.raw.hex()})


def test_another_library_verifies_the_list():
    envelope = Envelope.from_dict(json.loads(signed()))
    assert envelope.payload_type == PAYLOAD_TYPE
    assert list(envelope.verify([foreign_key(KEY.public)], 1)) == [KEY.public.key_id]
    assert json.loads(envelope.payload)["serial"] == 7
    with pytest.raises(VerificationError):
        envelope.verify([foreign_key(SigningKey.generate().public)], 1)


def test_another_library_refuses_a_changed_list():
    changed = json.loads(signed())
    payload = encode_document(make_document("reg", "everybody", RevokedList(80, {}, "", serial=8), {}, NOW))
    changed["payload"] = json.loads(seal(payload, KEY, PAYLOAD_TYPE))["payload"]
    with pytest.raises(VerificationError):
        Envelope.from_dict(changed).verify([foreign_key(KEY.public)], 1)


def test_what_was_signed_is_read_back():
    document, key = open_revocation_list(signed(), [KEY.public])
    assert (document.registry, document.serial, key) == ("reg", 7, KEY.public)
    assert [one.skill for one in document.entries] == [OLD.skill, BAD.skill], "sorted by digest"
    found = document.find(BAD.skill, BAD.version, BAD.digest)
    assert found is not None and found.archives is not None and found.archives.tar_gz == "2" * 64
    assert found.replacement is not None and found.replacement.version == "1.0.1"
    assert document.find(BAD.skill, BAD.version, "f" * 64) is None
    old = document.find(OLD.skill, OLD.version, OLD.digest)
    assert old is not None
    assert (old.severity, old.threat_type, old.archives, old.replacement) == (None,) * 4


def test_a_list_is_good_for_seven_days():
    document, _ = open_revocation_list(signed(), [KEY.public])
    issued = NOW - NOW % DAY_MS
    assert document.age_ms(NOW) == NOW - issued
    assert not document.has_expired(issued + 7 * DAY_MS - 1)
    assert document.has_expired(issued + 7 * DAY_MS)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (seal(b"{}", KEY, PAYLOAD_TYPE), "not a revocation list"),
        (seal(b"\xff", KEY, PAYLOAD_TYPE), "not a revocation list"),
        (seal(encode_document(make_document("reg", "everybody", REVOKED, {}, NOW)), KEY), "payload type"),
        (b"{}", "not a DSSE envelope"),
    ],
)
def test_what_is_no_list_is_refused_with_its_reason(data, words):
    with pytest.raises(AttestationInvalid, match=words):
        open_revocation_list(data, [KEY.public])


def test_a_moment_that_is_none_is_refused():
    text = encode_document(make_document("reg", "everybody", REVOKED, {}, NOW)).replace(
        b'"expiresAt":"2', b'"expiresAt":"x'
    )
    with pytest.raises(AttestationInvalid, match="not a revocation list"):
        open_revocation_list(seal(text, KEY, PAYLOAD_TYPE), [KEY.public])
