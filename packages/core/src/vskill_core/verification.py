"""Checks an attestation or a revocation list offline: who signed it, what it says, and whether it is about the given
content. The command `verify` calls it."""

import hashlib
from collections.abc import Iterable

import msgspec

from vskill_core.content import SkillFile, digest_of_files, manifest_of
from vskill_core.dsse import open_envelope
from vskill_core.errors import AttestationInvalid
from vskill_core.revocation_list import (
    MAX_BYTES,
    PAYLOAD_TYPE,
    RevocationDocument,
    read_revocation_list,
)
from vskill_core.signing_keys import PublicKey
from vskill_core.statement import CONTENT_DIGEST, AttestedFile, Statement, read_statement


class Checked(msgspec.Struct, frozen=True):
    """A genuine attestation."""

    statement: Statement
    key: PublicKey
    #: what was compared with it; None: only the signature was checked
    content: str | None

    def require_publisher(self, wanted: str) -> None:
        """AttestationInvalid unless a CI job of this repository, or workflow, published the version."""
        about = self.statement.predicate
        found, what = about.publisher, f"{about.skill} {about.version}"
        if found is None:
            message = f"{what} was not published from CI, so not by {wanted}."
            raise AttestationInvalid(message, expected=wanted)
        if not found.fits(wanted):
            by = f"{found.repository}/{found.workflow}"
            message = f"{what} was published by {by}, not by {wanted}."
            raise AttestationInvalid(message, found=by, expected=wanted)


def check_attestation(
    data: bytes,
    trusted: Iterable[PublicKey],
    *,
    archive: bytes | None = None,
    files: Iterable[SkillFile] | None = None,
    about: str | None = None,
) -> Checked:
    """Raises `AttestationInvalid`, which says what does not match; `about` is the `skill@version` that it must name."""
    payload, key = open_envelope(data, trusted)
    statement = read_statement(payload)
    named = f"{statement.predicate.skill}@{statement.predicate.version}"
    if about is not None and named != about:
        raise AttestationInvalid(f"The attestation is about {named}, not about {about}.", found=named)
    content = None
    if archive is not None:
        content = _check_archive(statement, archive)
    if files is not None:
        content = _check_files(statement, files)
    return Checked(statement, key, content)


def open_revocation_list(data: bytes, trusted: Iterable[PublicKey]) -> tuple[RevocationDocument, PublicKey]:
    """The list and the trusted key that signed it; `AttestationInvalid` says what is wrong."""
    payload, key = open_envelope(data, trusted, PAYLOAD_TYPE, MAX_BYTES)
    return read_revocation_list(payload), key


def _check_archive(statement: Statement, archive: bytes) -> str:
    found = hashlib.sha256(archive).hexdigest()
    for subject in statement.subject:
        if subject.digest.get("sha256") == found:
            return subject.name
    raise _mismatch("archive", "sha256", found, statement.digest("sha256"))


def _check_files(statement: Statement, files: Iterable[SkillFile]) -> str:
    files = tuple(files)
    found, about = digest_of_files(files), statement.predicate
    if found in statement.digest(CONTENT_DIGEST):
        return f"{about.skill}@{about.version}"
    differences = _differences(about.files, files)
    if differences:
        message = f"The folder is not the content of {about.skill} {about.version}: {'; '.join(differences)}."
        raise AttestationInvalid(message, found=found)
    raise _mismatch("folder", "digest", found, statement.digest(CONTENT_DIGEST))


def _differences(attested: tuple[AttestedFile, ...], files: tuple[SkillFile, ...]) -> list[str]:
    """How a folder differs from the files that the attestation names, in words."""
    known = {one.path: one for one in attested}
    there = {one.path: one for one in manifest_of(files)}
    added = [f"{path} is not in the attestation" for path in sorted(there.keys() - known.keys())]
    gone = [f"{path} is missing" for path in sorted(known.keys() - there.keys())]
    changed = [
        f"{path} was changed"
        for path in sorted(there.keys() & known.keys())
        if (there[path].mode, there[path].sha256) != (known[path].mode, known[path].sha256)
    ]
    return [*added, *changed, *gone]


def _mismatch(what: str, kind: str, found: str, expected: frozenset[str]) -> AttestationInvalid:
    named = " or ".join(sorted(expected)) or "none"
    return AttestationInvalid(
        f"The {what} is not the content that was verified: its {kind} is {found}, the attestation names {named}.",
        found=found,
        expected=sorted(expected),
    )
