"""Skills: searching them, what an install needs, and which versions were withdrawn; and the account that asks."""

from typing import Annotated, Any, Literal

import msgspec

from vskill_client.wire.base import (
    PLAIN,
    ActionRequest,
    NoParameters,
    SkillName,
    VersionNumber,
    Wire,
    call_for,
)
from vskill_core.capability import Lack

SKILLS = "/api/v1/skills"
SKILL = f"{SKILLS}/{{skill}}"

_LACK = "|".join(Lack)
FilterText = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
SearchText = Annotated[str, msgspec.Meta(max_length=400)]
LackNames = Annotated[str, msgspec.Meta(max_length=200, pattern=f"^({_LACK})(,({_LACK}))*$")]
OwnerChoice = Literal["verified"]
InstallsChoice = Literal["1", "10", "50", "100", "1000"]
AgeChoice = Literal["18", "54", "90"]
SkillLimit = Annotated[int, msgspec.Meta(ge=1, le=100)]
CollectionName = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
ListNamespace = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PLAIN)]


# Finding.


class NarrowSkills(ActionRequest, frozen=True, kw_only=True):
    """Which skills; all of them where nothing is given."""

    #: only this category
    category: FilterText | None = None
    #: only this certification
    certification: Literal["SCANNED", "VERIFIED", "CERTIFIED"] | None = None
    #: only this trust level
    trust: Literal["T0", "T1", "T2", "T3", "T4"] | None = None
    #: only skills for this agent
    agent: FilterText | None = None
    #: only skills of this owner
    owner: FilterText | None = None
    #: only this licence
    licence: FilterText | None = None
    #: only what is without these, as far as our rules read it, separated by commas: network, secrets, installs,
    #: scripts, files (outside its folder)
    without: LackNames | None = None
    #: verified: only what the owner of its repository submitted
    provenance: OwnerChoice | None = None
    #: only what was installed at least this often
    min_installs: InstallsChoice | None = None
    #: only what was first published at least this many days ago
    min_age: AgeChoice | None = None


class SearchSkills(NarrowSkills, frozen=True, kw_only=True):
    """All words count, in any form; the last one may be the beginning of a word."""

    q: SearchText = ""
    #: how many to show on a page
    limit: SkillLimit = 20


class SkillCard(Wire, frozen=True, kw_only=True):
    """A skill in a list."""

    #: the canonical name, `owner/repo/slug`
    name: str
    display_name: str
    author: str
    description: str
    repo_url: str
    owner_slug: str
    repo_slug: str
    skill_slug: str
    current_version: str | None
    #: SCANNED, VERIFIED or CERTIFIED; BLOCKED or WITHDRAWN where nothing can be installed
    cert_tier: str
    cert_score: int
    trust_tier: str | None
    trust_score: int
    vskill_installs: int
    #: not known here
    github_stars: int | None
    is_blocked: bool
    #: another skill of its repository is blocked
    is_tainted: bool
    threat_type: str | None
    severity: str | None
    #: no version can be installed
    is_withdrawn: bool
    #: its current version can be installed, and waits for a reviewer after a rescan
    under_review: bool
    category: str | None
    licence: str | None
    agent: str | None
    #: of network, secrets, installs, scripts and files: those that our rules found no trace of; null where it was not
    #: read whole
    without: tuple[str, ...] | None
    created_at: str
    updated_at: str
    alternate_repos: tuple[str, ...] = ()
    #: skill, or plugin: it holds several, perhaps with servers and hooks
    kind: str = "skill"


class Paging(Wire, frozen=True):
    """Where this page stands."""

    has_more: bool
    #: give it back as `after` for the next page
    after: str | None = None
    limit: int = 0


class SearchAnswer(Wire, frozen=True):
    """What was found, best first; what is blocked or withdrawn last."""

    results: tuple[SkillCard, ...]
    pagination: Paging
    #: how many are in `results`; more exist where `truncated` says so
    total: int
    truncated: bool
    unreadable: int = 0
    #: what was probably meant, where little was found; its results come last
    did_you_mean: str | None = None


# Looking at one, and what an install needs.


class SkillRequest(ActionRequest, frozen=True, kw_only=True):
    """One skill."""

    #: its full name, or a short one that means exactly one skill
    skill: SkillName


class VersionState(Wire, frozen=True):
    """Whether a version can be installed."""

    version: str
    status: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["live", "yanked", "taken_down"]})]
    #: why it has this status
    reason: str
    certification: str
    published_at: str
    #: names exactly its content
    digest: str
    #: only a maintainer of its namespace approved it, and no reviewer
    team_approved: bool = False


class SkillState(Wire, frozen=True):
    """A skill with the status of every version."""

    #: its full name
    skill: str
    description: str
    #: the newest version that can be installed; null where there is none
    current_version: str | None
    #: newest first
    versions: tuple[VersionState, ...]


class CapabilityView(Wire, frozen=True):
    """One thing that a version can do, as far as our rules found it."""

    #: host, command, file, secret, install, persistence, program, server, hook or unread
    kind: str
    #: the host, program, path, package, or what it is in words
    value: str
    #: the first place that says so
    file: str
    #: from 1; 0 is the whole file
    line: int
    #: code (it runs), instruction (an agent is told to run or use it) or link (nothing runs it)
    context: str
    #: of a host: a shell command names it, or its file starts commands
    shell: bool
    #: runs, sends, requires, moves, starts or deletes: what the skill does with it, where that can be told
    uses: tuple[str, ...] = ()


class DownloadVersion(SkillRequest, frozen=True, kw_only=True):
    """A version of a skill, as an archive."""

    #: the current version if left out
    version: VersionNumber | None = None
    format: Literal["zip", "tar.gz"] = "zip"


class AttestedVersion(ActionRequest, frozen=True, kw_only=True):
    """A version of a skill."""

    #: its full name
    skill: SkillName
    version: VersionNumber


class KeySet(Wire, frozen=True):
    """A JSON Web Key Set; `status` of a key is active or retired."""

    keys: tuple[dict[str, str], ...]


class InstallAnswer(Wire, frozen=True):
    """That it was counted."""

    ok: bool
    name: str


class LockSkills(ActionRequest, frozen=True, kw_only=True):
    """Which skills: by name, or a whole collection."""

    #: names, separated by commas; `NAME@VERSION` locks that version instead of the current one
    skills: Annotated[str, msgspec.Meta(max_length=40_000, pattern=PLAIN)] = ""
    #: every skill of this collection that can be installed
    collection: CollectionName | None = None


class LockedSkill(Wire, frozen=True):
    """One version of a skill."""

    #: its full name
    skill: str
    version: str
    #: names exactly its content
    digest: str
    #: the signed envelope
    attestation: dict[str, Any]


class LeftOut(Wire, frozen=True):
    """A skill of the collection that cannot be installed now."""

    skill: str
    reason: str


class LockFile(Wire, frozen=True):
    """What `install --frozen` installs."""

    lock_version: Literal[1]
    #: the registry's name
    registry: str
    #: by full name
    skills: tuple[LockedSkill, ...]
    left_out: tuple[LeftOut, ...]


class ReadRevocationList(ActionRequest, frozen=True, kw_only=True):
    """The signed list."""

    #: only the skills of this namespace, those too that only its members may read
    namespace: ListNamespace | None = None


SEARCH_SKILLS = call_for("skill.search", f"{SKILLS}/search", SearchSkills, SearchAnswer)
SHOW_SKILL = call_for("skill.show", f"{SKILL}/status", SkillRequest, SkillState)
DOWNLOAD = call_for("skill.download", f"{SKILL}/archive", DownloadVersion, bytes)
ATTESTATION = call_for(
    "skill.attestation", f"{SKILL}/versions/{{version}}/attestation", AttestedVersion, bytes
)
KEYS = call_for("keys.list", "/.well-known/vskill-keys.json", NoParameters, KeySet)
COUNT_INSTALL = call_for("skill.count_install", f"{SKILL}/installs", SkillRequest, InstallAnswer, "POST")
LOCK = call_for("skill.lock", "/api/v1/lock", LockSkills, LockFile)
READ_LIST = call_for("revocation.list", "/.well-known/vskill-revocations.json", ReadRevocationList, bytes)


class AccountView(Wire, frozen=True):
    """Who is asking."""

    account: str
    role: str
    #: of the token that was shown; null for a session
    scopes: tuple[str, ...] | None


WHO_AM_I = call_for("account.show", "/api/v1/account", NoParameters, AccountView)
