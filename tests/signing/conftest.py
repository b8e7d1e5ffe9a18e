"""A statement about a small skill, signed by a key of its own."""

import pytest

from vskill_platform.archives import archive_digests, tar_archive, zip_archive
from vskill_platform.domain.content import SkillFile, content_hash, digest_of_files
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.scan import JudgeReport, JudgeStatus, StaticReport, Verdict
from vskill_platform.signing.dsse import seal
from vskill_platform.signing.keys import SigningKey
from vskill_platform.signing.statement import Facts, encode_statement, make_statement

FILES = (
    SkillFile("SKILL.md", "100644", b"---\nname: tidy\ndescription: Tidies.\n---\n"),
    SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho tidy\n"),
)
ZIP, TAR = zip_archive(FILES), tar_archive(FILES)


def facts(**changes: object) -> Facts:
    judge = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 91, "fine", (), "m", "rubric-1")
    usual: dict[str, object] = {
        "registry": "a registry",
        "canonical": "acme/tools/tidy",
        "number": "1.2.0",
        "digest": digest_of_files(FILES),
        "content_hash": content_hash(FILES[0].data),
        "archives": archive_digests(FILES),
        "repository": "https://github.com/acme/tools",
        "path": "skills/tidy",
        "commit": "c" * 40,
        "submission": "sub_1",
        "run": 3,
        "certification": "VERIFIED",
        "score": 100,
        "reviewed": False,
        "decided_at": 1_763_000_000_123,
        "evidence": evidence_of(digest_of_files(FILES), StaticReport("r7"), judge),
    }
    return Facts(**{**usual, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture(scope="session")
def attestation(key) -> bytes:
    return seal(encode_statement(make_statement(facts())), key)
