"""A bundle: skills of a registry in one file, for places without a network, with everything that verifies them offline.

It is a plain tar: a signed index, the signed revocation list, then of each skill its attestation and its archive, in
the order of the index. The index names the SHA-256 of every member but the archives, which the attestations name. The
same content gives the same bytes, and a file has one valid form, so any changed byte is noticed.
docs/reference/bundles.md describes it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Annotated, BinaryIO, Literal

import msgspec

from vskill_core.archive_reading import BLOCK, SERVED_LIMITS, read_archive
from vskill_core.archives import pad_block, tar_header
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.dsse import MAX_BYTES, open_envelope, read_payload
from vskill_core.errors import AttestationInvalid, InvalidInput, PlatformError
from vskill_core.foreign_json import read_json
from vskill_core.identity import has_control_characters
from vskill_core.revocation_list import MAX_BYTES as MOST_LIST
from vskill_core.revocation_list import RevocationDocument
from vskill_core.signing_keys import PublicKey, public_from_jwk
from vskill_core.statement import Statement
from vskill_core.verification import check_attestation, open_revocation_list

PAYLOAD_TYPE = "application/vnd.vskill.bundle+json"
MEDIA_TYPE = "application/x-tar"
MOST_SKILLS = 500
#: One request makes a bundle, and one adds it.
MOST_BYTES = 32 * 1024 * 1024
#: Of the signed index: a skill takes some 300 bytes of it.
MOST_INDEX = 1024 * 1024
#: Behind the last member.
END = bytes(2 * BLOCK)

_INDEX, _LIST = "index.json", "revocations.json"
_ATTESTATION, _ARCHIVE = "attestation.json", "skill.tar.gz"
_NAME_LENGTH = 100

ShortText = Annotated[str, msgspec.Meta(max_length=400)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class BundledSkill(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One version of a skill, as the index names it."""

    #: its full name in the registry that made the bundle
    skill: ShortText
    version: ShortText
    #: names exactly its content
    digest: Sha256
    #: SHA-256 of its attestation's envelope
    attestation: Sha256


class BundleIndex(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The payload of the signed index."""

    version: Literal[1]
    #: the name of the registry that made it
    registry: ShortText
    #: what it was made of; serials are compared with those of bundles of the same
    scope: ShortText
    serial: int
    #: every public key of the registry as a JSON Web Key, by key id: those of attestations may be retired
    keys: Annotated[tuple[dict[str, str], ...], msgspec.Meta(max_length=100)]
    #: SHA-256 of the revocation list's envelope
    revocations: Sha256
    skills: Annotated[tuple[BundledSkill, ...], msgspec.Meta(max_length=MOST_SKILLS)]


class OpenedSkill(msgspec.Struct, frozen=True):
    """A skill of a bundle whose bytes are those that its registry verified."""

    entry: BundledSkill
    files: tuple[SkillFile, ...]
    statement: Statement
    #: the signed envelope
    attestation: bytes
    #: of the key that signed it
    key_id: str


# Writing.


def pack_head(index: bytes, revocations: bytes) -> bytes:
    """How a bundle begins: the envelopes of its index and of its revocation list."""
    return _pack(_INDEX, index) + _pack(_LIST, revocations)


def pack_skill(number: int, attestation: bytes, archive: bytes) -> bytes:
    """The members of one skill."""
    return _pack(_name(number, _ATTESTATION), attestation) + _pack(_name(number, _ARCHIVE), archive)


def _name(number: int, what: str) -> str:
    return f"{number:03}-{what}"


def _pack(name: str, data: bytes) -> bytes:
    return tar_header(name.encode(), "100644", len(data), b"0") + pad_block(data)


# Reading.


class OpenBundle:
    """A bundle whose index and revocation list are genuine. Its skills are read one by one."""

    def __init__(self, file: BinaryIO, trusted: Iterable[PublicKey] = ()) -> None:
        """Raises InvalidInput or AttestationInvalid, which say what to do. Where no key is trusted yet, those that the
        bundle itself names count: then only its being whole is checked."""
        self._file = file
        #: `keys` are those that its attestations may be signed by.
        self.index, self.key, self.keys = _open_index(self._require(_INDEX, MOST_INDEX), tuple(trusted))
        #: The signed envelope of its revocation list.
        self.revocations = self._require(_LIST, MOST_LIST)
        self.document = self._open_list()

    def skills(self) -> Iterator[OpenedSkill]:
        """Its skills in the order of the index, each verified; raises where one is missing, or one too many."""
        total = 0
        for number, entry in enumerate(self.index.skills):
            attestation = self._require(_name(number, _ATTESTATION), MAX_BYTES)
            skill = self._open_skill(
                entry, attestation, self._require(_name(number, _ARCHIVE), _MOST_ARCHIVE)
            )
            # A registry compresses nothing, so its files are no larger than the bundle.
            if (total := total + sum(len(one.data) for one in skill.files)) > MOST_BYTES:
                raise _refuse(f"holds more than {MOST_BYTES} bytes of files")
            yield skill
        if (member := self._read(MAX_BYTES)) is not None:
            raise _refuse(f"holds {member[0]!r}, which its index does not name")

    def _open_list(self) -> RevocationDocument:
        if hashlib.sha256(self.revocations).hexdigest() != self.index.revocations:
            raise _refuse("holds a revocation list that is not the one of its index")
        try:
            return open_revocation_list(self.revocations, self.keys)[0]
        except AttestationInvalid as error:
            raise _untrusted("revocation list", error) from error

    def _open_skill(self, entry: BundledSkill, attestation: bytes, archive: bytes) -> OpenedSkill:
        what = f"{entry.skill} {entry.version}"
        if hashlib.sha256(attestation).hexdigest() != entry.attestation:
            raise _refuse(f"holds an attestation of {what} that is not the one of its index")
        try:
            files = read_archive(archive, SERVED_LIMITS)
            about = f"{entry.skill}@{entry.version}"
            checked = check_attestation(attestation, self.keys, archive=archive, files=files, about=about)
        except PlatformError as error:
            raise _untrusted(what, error) from error
        if digest_of_files(files) != entry.digest:
            raise _refuse(f"holds other content of {what} than its index names")
        return OpenedSkill(entry, files, checked.statement, attestation, checked.key.key_id)

    def _require(self, name: str, most: int) -> bytes:
        member = self._read(most)
        if member is None or member[0] != name:
            raise _refuse(f"lacks its member {name!r}")
        return member[1]

    def _read(self, most: int) -> tuple[str, bytes] | None:
        """The next member; None at the end. Its header must be the very one that this module would write."""
        header = self._exactly(BLOCK)
        if not any(header):
            if any(self._exactly(BLOCK)) or self._file.read(1):
                raise _refuse("goes on behind its end")
            return None
        name, size = header[:_NAME_LENGTH].rstrip(b"\0"), _size_in(header)
        if tar_header(name, "100644", size, b"0") != header or not name.isascii():
            raise _refuse("holds a member that no registry writes")
        if size > most:
            raise _refuse(f"holds a member of {size} bytes, and at most {most} are read")
        data = self._exactly(size)
        if any(self._exactly(-size % BLOCK)):
            raise _refuse("holds bytes between its members")
        return name.decode("ascii"), data

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise _refuse("is cut off")
        return data


_MOST_ARCHIVE = SERVED_LIMITS.bytes_total


def _open_index(
    envelope: bytes, trusted: tuple[PublicKey, ...]
) -> tuple[BundleIndex, PublicKey, tuple[PublicKey, ...]]:
    """The index, the key that signed it, and all keys that it vouches for."""
    try:
        index = _decode(read_payload(envelope, MOST_INDEX))
        keys = tuple(dict.fromkeys((*trusted, *map(public_from_jwk, index.keys))))
        _, key = open_envelope(envelope, trusted or keys, PAYLOAD_TYPE, MOST_INDEX)
    except (AttestationInvalid, InvalidInput) as error:
        raise _untrusted("index", error) from error
    return index, key, keys


def _decode(payload: bytes) -> BundleIndex:
    try:
        index = read_json(payload, BundleIndex)
    except msgspec.DecodeError as error:
        raise AttestationInvalid(f"Its payload is not the index of a bundle: {error}.") from error
    names = (
        index.registry,
        index.scope,
        *(text for one in index.skills for text in (one.skill, one.version)),
    )
    if any(map(has_control_characters, names)):
        raise AttestationInvalid("A name in it has control characters.")
    return index


def _size_in(header: bytes) -> int:
    digits = header[124:135]
    return int(digits, 8) if digits.isdigit() and not set(digits) & set(b"89") else 0


def _refuse(problem: str) -> InvalidInput:
    fix = "copy the file again, or make the bundle again"
    return InvalidInput(f"The bundle {problem}.", field="bundle", fix=fix)


def _untrusted(what: str, error: PlatformError) -> AttestationInvalid:
    fix = (
        "copy the file again; if its registry has a new key, compare that with the keys that the registry shows, and "
        "give it as a trusted one"
    )
    return AttestationInvalid(f"The bundle's {what} is not accepted: {error.message}", fix=fix)
