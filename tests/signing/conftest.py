"""A statement about a small skill, signed by a key of its own."""

import msgspec
import pytest

from tests.support.records import submission
from vskill_core.archives import tar_archive
from vskill_core.content import SkillFile, digest_of_files, manifest_of
from vskill_core.dsse import seal
from vskill_core.findings import JudgeReport, JudgeStatus, StaticReport, Verdict
from vskill_core.identity import Identity
from vskill_core.signing_keys import SigningKey
from vskill_core.statement import Statement, encode_statement
from vskill_platform.domain.client_hashes import content_hash
from vskill_platform.domain.downloads import Artifact, archive_digests, zip_archive
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.skills.skill import Certification, VersionRef
from vskill_platform.signing.from_records import make_statement

FILES = (
    SkillFile("SKILL.md", "100644", b"---\nname: tidy\ndescription: Tidies.\n---\n"),
    SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho tidy\n"),
)
ZIP, TAR = zip_archive(FILES), tar_archive(FILES)


DIGEST = digest_of_files(FILES)
ARCHIVES = archive_digests(FILES)
JUDGE = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 91, "fine", (), "m", "rubric-1")


def statement(**changes: object) -> Statement:
    """About a version of a submission, with single fields of the submission's record replaced."""
    version = VersionRef(
        "1.2.0",
        DIGEST,
        5,
        Artifact(True, "0" * 64),
        "tidy",
        certification=Certification.VERIFIED,
        score=100,
        content_hash=content_hash(FILES[0].data),
    )
    evidence = evidence_of(DIGEST, StaticReport("r7"), JUDGE)
    record = submission(
        "tidy",
        id="sub_1",
        identity=Identity("github.com", "acme", "tools", "skills/tidy"),
        repo_url="https://github.com/acme/tools",
        run=3,
        commit="c" * 40,
        updated_at=1_763_000_000_123,
        evidence=evidence,
    )
    record = msgspec.structs.replace(record, **changes)
    return make_statement(
        "a registry", "acme/tools/tidy", version, record, ARCHIVES, StaticReport("r7"), manifest_of(FILES)
    )


@pytest.fixture(scope="session")
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture(scope="session")
def attestation(key) -> bytes:
    return seal(encode_statement(statement()), key)
