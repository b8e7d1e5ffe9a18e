"""What the registry says about a version, as an in-toto Statement, version 1: these bytes were looked at by these
rules, with this result.

Publishing makes one with every version. The subjects are the content by our own digest and both archives by their
SHA-256, so any tool that knows in-toto can match a downloaded file. docs/reference/attestations.md describes it.
"""

import msgspec

from vskill_core.errors import AttestationInvalid
from vskill_core.foreign_json import read_json
from vskill_core.publisher import Publisher

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:vskill-platform:verification:v1"

#: Names of digests that only we compute; docs/reference/attestations.md says how.
CONTENT_DIGEST = "vskillContent"
SKILL_FILE_DIGEST = "vskillSkillFile"


class Subject(msgspec.Struct, frozen=True):
    """One thing that the statement is about, by name and digests."""

    name: str
    digest: dict[str, str]


class Static(msgspec.Struct, frozen=True, rename="camel"):
    """The static scan, as it reported before anything was cleared or suppressed."""

    ruleset: str
    status: str
    verdict: str
    score: int
    #: malice and mismatches, by severity
    findings: dict[str, int]
    capabilities: int


class CardEntry(msgspec.Struct, frozen=True):
    """One thing that the version can do; `SkillCapability` describes the members."""

    kind: str
    value: str
    file: str
    line: int
    context: str
    shell: bool
    uses: tuple[str, ...] = ()


class CapabilityCard(msgspec.Struct, frozen=True, rename="camel"):
    """What our rules found that the version can do."""

    ruleset: str
    #: of the scan that made it; only `complete` has read everything
    status: str
    entries: tuple[CardEntry, ...]


class Judgement(msgspec.Struct, frozen=True, rename="camel"):
    """The judge's answer; the statement has none where no judge answered."""

    model: str
    rubric: str
    verdict: str
    score: int
    partial: bool


class AttestedMemory(msgspec.Struct, frozen=True):
    """The facts about public skills that the version was compared with before it was published."""

    #: the day of which it tells
    date: str
    #: SHA-256 of the file
    digest: str
    skills: int


class AttestedFile(msgspec.Struct, frozen=True):
    """One file of the version."""

    path: str
    #: as git writes it: 100644 or 100755
    mode: str
    sha256: str


class AttestedRule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule of the policy that matched."""

    name: str
    #: `refuse`, `review` or `note`
    then: str
    #: it could not be evaluated
    failed: bool


class AttestedPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """The registry's policy that was in force."""

    digest: str
    matched: tuple[AttestedRule, ...]


class AttestedOrigin(msgspec.Struct, frozen=True, rename="camel"):
    """What another registry signed about the same content, which was verified when it came here."""

    registry: str
    #: as it is called there
    skill: str
    version: str
    #: of the key that signed it
    key_id: str
    #: SHA-256 of the signed envelope
    attestation: str


class Predicate(msgspec.Struct, frozen=True, rename="camel"):
    """What was found out about the subjects."""

    registry: str
    skill: str
    version: str
    repository: str
    path: str
    commit: str | None
    submission: str
    run: int
    #: None where nothing is known of a scan of these bytes
    static: Static | None
    #: of two judges the one with the lower score
    judge: Judgement | None
    #: `answered`, `none` or `down`
    judge_status: str
    certification: str
    #: the static score without what was cleared or suppressed
    score: int
    #: a person approved exactly these bytes
    reviewed: bool
    trusted_vendor: bool
    suppressed: tuple[str, ...]
    #: in UTC
    decided_at: str
    #: None where nothing is known
    capability_card: CapabilityCard | None
    #: every file, by path
    files: tuple[AttestedFile, ...]
    #: what another judge said, where two are configured
    second_judge: Judgement | None
    #: as `judge_status`, of the other judge
    second_judge_status: str
    #: None where it was not asked
    policy: AttestedPolicy | None = None
    #: None where nothing was compared
    memory: AttestedMemory | None = None
    #: a maintainer of its namespace approved exactly these bytes, and no reviewer of the registry
    team_approved: bool = False
    #: the CI job that submitted exactly these bytes; None where none did
    publisher: Publisher | None = None
    #: paths of files that the registry made: a plugin's SKILL.md, where it has none of its own
    generated: tuple[str, ...] = ()
    #: None where no other registry vouches for it
    origin: AttestedOrigin | None = None


class Statement(msgspec.Struct, frozen=True, rename="camel"):
    """The payload of an attestation."""

    type: str = msgspec.field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: str
    predicate: Predicate

    def digest(self, algorithm: str) -> frozenset[str]:
        """Every digest of that kind among the subjects."""
        return frozenset(one.digest[algorithm] for one in self.subject if algorithm in one.digest)


def encode_statement(statement: Statement) -> bytes:
    return msgspec.json.encode(statement)


def read_statement(payload: bytes) -> Statement:
    """Decode a payload whose signature was checked; `AttestationInvalid` if it is not one of ours."""
    try:
        statement = read_json(payload, Statement)
    except msgspec.DecodeError as error:
        raise AttestationInvalid(f"Its payload is not a statement about a skill: {error}.") from error
    kinds = (statement.type, statement.predicate_type)
    if kinds != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise AttestationInvalid(f"It is a statement of another kind: {kinds[1][:80]!r}.")
    return statement
