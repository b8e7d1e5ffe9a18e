"""A bundle as a file: the same content gives the same bytes, any tar can list it, and what was changed, cut, foreign or
hostile is refused with a sentence that says what to do."""

import gzip
import hashlib
import io
import random
import tarfile

import msgspec
import pytest

from tests.signing.conftest import DIGEST, FILES, TAR, statement
from tests.signing.test_revocation_list import REVOKED
from vskill_core.archive_reading import SERVED_LIMITS
from vskill_core.archives import tar_archive, tar_header
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.dsse import seal
from vskill_core.errors import AttestationInvalid, InvalidInput
from vskill_core.revocation_list import PAYLOAD_TYPE as LIST_TYPE
from vskill_core.signing_keys import SigningKey, jwk
from vskill_core.statement import CONTENT_DIGEST, Subject, encode_statement
from vskill_platform.domain.skills.bundle import (
    END,
    MOST_BYTES,
    MOST_INDEX,
    PAYLOAD_TYPE,
    BundledSkill,
    BundleIndex,
    OpenBundle,
    pack_head,
    pack_skill,
)
from vskill_platform.signing.from_records import encode_document, make_document

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
NAME = statement().predicate.skill
ATTESTATION = seal(encode_statement(statement()), KEY)
LIST = seal(encode_document(make_document("reg", "accounts", REVOKED, {}, 0)), KEY, LIST_TYPE)
ENTRY = BundledSkill(NAME, "1.2.0", DIGEST, hashlib.sha256(ATTESTATION).hexdigest())


def index(**changes: object) -> BundleIndex:
    made = BundleIndex(1, "reg", "skills", 7, (jwk(KEY.public),), hashlib.sha256(LIST).hexdigest(), (ENTRY,))
    return msgspec.structs.replace(made, **changes)


def bundle(
    *members: bytes, key: SigningKey = KEY, revocations: bytes = LIST, end: bytes = END, **changes: object
) -> bytes:
    head = pack_head(seal(msgspec.json.encode(index(**changes)), key, PAYLOAD_TYPE), revocations)
    return b"".join((head, *members, end))


SKILL = pack_skill(0, ATTESTATION, TAR)
WHOLE = bundle(SKILL)


def open_whole(data: bytes, *trusted: SigningKey) -> list[str]:
    opened = OpenBundle(io.BytesIO(data), [one.public for one in trusted])
    return [one.entry.skill for one in opened.skills()]


def test_what_was_put_in_comes_out_verified():
    opened = OpenBundle(io.BytesIO(WHOLE), [KEY.public])
    (skill,) = opened.skills()
    assert (skill.entry, skill.attestation, skill.statement) == (ENTRY, ATTESTATION, statement())
    assert [file.path for file in skill.files] == ["SKILL.md", "scripts/run.sh"]
    assert (opened.key, opened.document.serial) == (KEY.public, REVOKED.serial)


def test_any_tar_lists_it():
    with tarfile.open(fileobj=io.BytesIO(WHOLE), mode="r:") as archive:
        names = archive.getnames()
        assert names == ["index.json", "revocations.json", "000-attestation.json", "000-skill.tar.gz"]
        assert archive.extractfile(names[3]).read() == TAR  # type: ignore[union-attr]


def test_the_same_content_gives_the_same_bytes():
    assert bundle(pack_skill(0, ATTESTATION, TAR)) == WHOLE


def test_a_revocation_list_alone_is_a_bundle():
    assert open_whole(bundle(skills=()), KEY) == []


def test_before_any_key_is_trusted_its_own_count():
    assert open_whole(WHOLE) == [NAME]


def test_whoever_signs_the_index_vouches_for_retired_keys():
    both = (jwk(KEY.public), jwk(OTHER.public))
    assert open_whole(bundle(SKILL, key=OTHER, keys=both), OTHER) == [NAME]


def test_every_changed_byte_is_noticed():
    for place in range(0, len(WHOLE), 97):
        changed = bytearray(WHOLE)
        changed[place] ^= 1
        with pytest.raises((InvalidInput, AttestationInvalid)) as refused:
            open_whole(bytes(changed), KEY)
        assert "copy the file again" in refused.value.in_words


def test_a_cut_file_is_refused_wherever_it_is_cut():
    for size in (0, 100, 512, 700, len(WHOLE) - len(END) - len(SKILL), *range(2_000, len(WHOLE), 311)):
        with pytest.raises((InvalidInput, AttestationInvalid)) as refused:
            open_whole(WHOLE[:size], KEY)
        assert "copy the file again, or make the bundle again" in refused.value.in_words


def member(name: str, data: bytes, size: int | None = None) -> bytes:
    head = tar_header(name.encode(), "100644", len(data) if size is None else size, b"0")
    return head + data + bytes(-len(data) % 512)


WRONG = {
    "another registry": (bundle(SKILL, key=OTHER), "None of the trusted keys has signed it"),
    "a key that is none": (bundle(SKILL, keys=({"kty": "RSA"},)), "No public key can be read"),
    "another list": (bundle(SKILL, revocations=ATTESTATION), "revocation list that is not the one"),
    "another attestation": (
        bundle(member("000-attestation.json", LIST), member("000-skill.tar.gz", TAR)),
        "not the one of its index",
    ),
    "another archive": (
        bundle(member("000-attestation.json", ATTESTATION), member("000-skill.tar.gz", TAR[:-1] + b"!")),
        "archive",
    ),
    "another digest": (
        bundle(SKILL, skills=(msgspec.structs.replace(ENTRY, digest="0" * 64),)),
        "other content",
    ),
    "another version": (
        bundle(SKILL, skills=(msgspec.structs.replace(ENTRY, version="9.0.0"),)),
        "is about",
    ),
    "a skill too many": (bundle(SKILL, SKILL), "which its index does not name"),
    "a skill too few": (bundle(), "lacks its member '000-attestation.json'"),
    "something behind its end": (WHOLE + b"\0", "goes on behind its end"),
    "a foreign member": (bundle(member("evil/../x", b"1")), "lacks its member"),
    "a link": (bundle(tar_header(b"000-attestation.json", "100644", 0, b"2")), "no registry writes"),
    "an enormous index": (member("index.json", b"", MOST_INDEX + 1), "at most"),
    "an enormous archive": (
        bundle(member("000-attestation.json", ATTESTATION), member("000-skill.tar.gz", b"", 2**32)),
        "at most",
    ),
    "a name with control characters": (bundle(SKILL, registry="a\x1b[2J"), "control characters"),
    "no bundle at all": (TAR, "no registry writes"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_with_what_to_do(wrong):
    data, words = WRONG[wrong]
    with pytest.raises((InvalidInput, AttestationInvalid), match=words) as refused:
        open_whole(data, KEY)
    assert "copy the file again" in refused.value.in_words


def test_more_bytes_of_files_than_a_registry_packs_are_refused():
    """Packed by somebody else, a small file holds many gigabytes."""
    most = SERVED_LIMITS.bytes_total * 3 // 4
    size = SERVED_LIMITS.bytes_file
    # Not so empty that an archive of it is refused.
    data = random.Random(1).randbytes(size // 100).ljust(size, b"\0")
    zeros = tuple(SkillFile(f"{start}", "100644", data) for start in range(0, most, size))
    files = (*FILES, *zeros)
    archive, digest = gzip.compress(gzip.decompress(tar_archive(files))), digest_of_files(files)
    subjects = (
        Subject(f"{NAME}@1.2.0", {CONTENT_DIGEST: digest}),
        Subject("tar.gz", {"sha256": hashlib.sha256(archive).hexdigest()}),
    )
    attestation = seal(encode_statement(msgspec.structs.replace(statement(), subject=subjects)), KEY)
    entry = BundledSkill(NAME, "1.2.0", digest, hashlib.sha256(attestation).hexdigest())
    count = MOST_BYTES // sum(len(one.data) for one in files) + 1
    data = bundle(*(pack_skill(one, attestation, archive) for one in range(count)), skills=(entry,) * count)
    assert len(data) < MOST_BYTES // 10
    with pytest.raises(InvalidInput, match="bytes of files"):
        open_whole(data)
