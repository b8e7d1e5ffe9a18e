"""Issuers of OpenID Connect, as the operator's file names them: who they are, and whom they let in; and those that say
which CI job somebody is, with what their claims mean."""

import importlib.util
import tomllib
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec

from vskill_core.errors import InvalidSettings

#: Of one account, and of one person at an issuer.
MOST_IDENTITIES = 10
MOST_GROUPS = 500
#: How teams name a group: `oidc:ISSUER:GROUP`.
GROUP_PREFIX = "oidc:"

ShortName = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9-]{0,29}$")]
#: TLS, but on this machine.
IssuerAddress = Annotated[
    str, msgspec.Meta(pattern=r"^(https://|http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$))[^\s?#@]*$")
]
Plain = Annotated[str, msgspec.Meta(pattern="^[ -~]+$", max_length=500)]
#: A group as the issuer sends it; `*` is everybody.
Group = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
#: Claims that people change, or that are given to one person after another.
REUSED_CLAIMS = frozenset({"email", "preferred_username", "nickname", "name", "upn", "unique_name"})
_PLAIN = "!#$&'()*+-./:;<=>?@[]^_`{|}~"


class Issuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section of VSKILL_SIGN_IN_FILE."""

    #: The section's name; it is in addresses, and in the groups that teams name.
    name: ShortName
    #: As the issuer calls itself in its discovery document and in its tokens.
    issuer: IssuerAddress
    client_id: Plain
    #: Empty: a public client, by PKCE alone.
    client_secret: Plain | None = None
    #: On the button; the name where there is none.
    title: Plain = ""
    scopes: tuple[Plain, ...] = ("openid", "profile", "email")
    #: The claim that says for ever who somebody is: the subject of identities, and SCIM's `externalId`.
    subject_claim: Plain = "sub"
    #: The claim that holds a person's groups.
    groups_claim: Plain = "groups"
    #: Members of these may sign in.
    allowed_groups: tuple[Group, ...] = ()
    #: People with a verified e-mail address of these domains may sign in.
    allowed_domains: tuple[Plain, ...] = ()
    #: Members of these review, and members of those administer, for a day after each sign-in.
    reviewer_groups: tuple[Group, ...] = ()
    admin_groups: tuple[Group, ...] = ()

    @property
    def shown(self) -> str:
        return self.title or self.name

    def name_of(self, group: str) -> str:
        """The group as a member of a team; people separate members by spaces and commas."""
        return f"{GROUP_PREFIX}{self.name}:{quote(group, safe=_PLAIN)}"

    def __repr__(self) -> str:
        return f"Issuer(name={self.name!r}, issuer={self.issuer!r})"


class CiClaims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claims of a CI job's token, by what they mean. Where one is empty, the issuer has none."""

    #: The repository on its host, such as `acme/skills`.
    repository: Plain
    #: Its number, which no other repository ever gets.
    repository_id: Plain = ""
    #: The workflow file with a ref behind `@`. All must name the same one: those of a job in a reusable workflow and of
    #: the run differ.
    workflow: tuple[Plain, ...]
    #: What stands before the file's path there.
    before_workflow: Plain = ""
    #: Where workflow files are, for those who give a file's name only.
    folder: Plain = ""
    #: The branch or tag, such as `refs/heads/main`.
    ref: Plain
    commit: Plain
    environment: Plain = ""
    #: What began the run.
    event: Plain = ""
    #: How the events begin in which somebody else's commit may run.
    foreign_events: tuple[Plain, ...] = ()
    #: How the branches begin that hold such a commit.
    foreign_refs: tuple[Plain, ...] = ()
    #: Where the job comes from, where that may differ from what began the run. Not every token has it.
    source: Plain = ""
    #: Events and sources of jobs that are in another file than the token names.
    foreign_files: tuple[Plain, ...] = ()
    #: The run's address, with names of claims in braces.
    run: Plain = ""


class CiIssuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section `ci.NAME` of VSKILL_SIGN_IN_FILE, or one that every registry knows."""

    name: ShortName
    #: As the issuer calls itself in its discovery document and in its tokens.
    issuer: IssuerAddress
    #: The host of its repositories, as in their addresses.
    host: Plain
    claims: CiClaims

    @property
    def shown(self) -> str:
        return self.name


_GITHUB_CLAIMS = CiClaims(
    repository="repository",
    repository_id="repository_id",
    workflow=("workflow_ref", "job_workflow_ref"),
    before_workflow="{repository}/",
    folder=".github/workflows/",
    ref="ref",
    commit="sha",
    environment="environment",
    event="event_name",
    foreign_events=("pull_request", "merge_group"),
    # Of a merge queue, whose pushes begin runs too.
    foreign_refs=("refs/heads/gh-readonly-queue/",),
    run="https://{host}/{repository}/actions/runs/{run_id}",
)
_GITLAB_CLAIMS = CiClaims(
    repository="project_path",
    repository_id="project_id",
    workflow=("ci_config_ref_uri",),
    before_workflow="{host}/{repository}//",
    ref="ref_path",
    commit="sha",
    environment="environment",
    event="pipeline_source",
    foreign_events=("merge_request", "external_pull_request"),
    source="job_source",
    foreign_files=(
        # A child pipeline: of any file, also one that a job wrote, and of a parent that a merge request may have begun.
        "parent_pipeline",
        *("scan_execution_policy", "pipeline_execution_policy", "security_orchestration_policy"),
    ),
    run="https://{host}/{repository}/-/jobs/{job_id}",
)
_CLAIMS = {"github": _GITHUB_CLAIMS, "gitlab": _GITLAB_CLAIMS}
#: Those that need no file, unless VSKILL_CI_FORGES leaves them out. A publisher that a maintainer adds lets a job in.
CI_ISSUERS = (
    CiIssuer(
        name="github",
        issuer="https://token.actions.githubusercontent.com",
        host="github.com",
        claims=_GITHUB_CLAIMS,
    ),
    CiIssuer(name="gitlab", issuer="https://gitlab.com", host="gitlab.com", claims=_GITLAB_CLAIMS),
)


class ReadIssuers(msgspec.Struct, frozen=True):
    """What VSKILL_SIGN_IN_FILE says, and what stands without it."""

    issuers: tuple[Issuer, ...] = ()
    ci_issuers: tuple[CiIssuer, ...] = ()


def read_issuers(path: str, forges: tuple[str, ...] = ()) -> ReadIssuers:
    """The issuers of VSKILL_SIGN_IN_FILE, and those of these forges; InvalidSettings says which section is wrong. A
    forge that is left out keeps its name: publishers of its jobs must not become those of another issuer."""
    trusted = tuple(one for one in CI_ISSUERS if one.name in forges)
    if not path:
        return ReadIssuers(ci_issuers=trusted)
    if importlib.util.find_spec("joserfc") is None:
        raise _refuse("it needs what is not installed", "install the extra `sso`")
    found, of_ci, section = [], list(CI_ISSUERS), "the file"
    try:
        sections = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        for name, entry in sections.pop("ci", {}).items():
            section = f"ci.{name}"
            of_ci.append(_convert_ci(name, **entry))
        for section, entry in sections.items():
            found.append(msgspec.convert({**entry, "name": section}, Issuer))
    except (OSError, ValueError, TypeError, msgspec.ValidationError) as error:
        raise _refuse(f"{section}: {error}") from None
    if "github" in {one.name for one in found} or len({one.issuer for one in found}) < len(found):
        raise _refuse("two sections name one issuer, or one is called github")
    if any(len({getattr(one, field) for one in of_ci}) < len(of_ci) for field in ("name", "issuer")):
        raise _refuse("two issuers of CI jobs have one name or address; github and gitlab are known already")
    for one in found:
        if one.subject_claim in REUSED_CLAIMS:
            raise _refuse(f"{one.name}: subject_claim {one.subject_claim} may be somebody else's later")
    return ReadIssuers(tuple(found), (*trusted, *of_ci[len(CI_ISSUERS) :]))


def _convert_ci(name: str, *, like: str = "", claims: object = None, **entry: object) -> CiIssuer:
    """A section: `like` names the forge whose claims it has, but for those that `claims` names."""
    known = msgspec.to_builtins(_CLAIMS[like]) if like in _CLAIMS else {}
    named = claims if isinstance(claims, dict) else {}
    # What one of them has not is left out, as in a file.
    merged = {claim: meant for claim, meant in {**known, **named}.items() if meant}
    return msgspec.convert({**entry, "name": name, "claims": merged}, CiIssuer)


def _refuse(problem: str, fix: str = "see docs/how-to/single-sign-on.md") -> InvalidSettings:
    name = "VSKILL_SIGN_IN_FILE"
    return InvalidSettings(f"{name}: {problem}; {fix}.", setting=name, fix=fix)
