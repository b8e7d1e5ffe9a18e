"""Namespaces, teams and who may read: the records, and the one rule that gives a reader its audiences.

A namespace is the first segment of a canonical name, and nobody chooses it. It is *unmanaged* until somebody sets its
visibility: then its skills are for everybody whom the registry lets in. The records of a managed namespace carry the
audience `ns:{name}`, which says whose they are and not who may read them; that stands in the namespace's own record.
So a change of visibility is one write, and every question that begins after it obeys.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.identity import UPLOAD_HOST, Identity
from vskill_platform.domain.canonical_names import canonical_name

# Each skill and submission has one audience, and a reader has a set of them: a question to the store finds the records
# whose audience is in the set, and no others.


class Everything(enum.Enum):
    """What the system itself reads by: every record, whatever its audience."""

    EVERYTHING = "everything"


#: Only the modules that a house rule lists may name it (`tools/code_rules.py`).
EVERYTHING = Everything.EVERYTHING
#: Names of the audiences that one reader has, or everything.
Audiences: TypeAlias = frozenset[str] | Everything
#: The audience of every reader: what a record has unless its namespace is managed.
PUBLIC = "public"
#: What every account has where namespaces are managed. No record has it: it tells whose names a reader knows.
INTERNAL = "internal"
#: What an anonymous reader has.
PUBLIC_ONLY: frozenset[str] = frozenset({PUBLIC})
#: The audience of what concerns records of several audiences of which none includes the others: no reader's set holds
#: it, so only those find it who may read everything.
SEVERAL = "several"

#: How the audiences of a namespace's records end, the widest first.
_ENDS = ("", ":internal", ":team")


def includes(wider: str, narrower: str) -> bool:
    """Whether every reader of the narrower audience may read the wider one as well."""
    same = _namespace(wider) == _namespace(narrower)
    return wider == PUBLIC or (same and _width(wider) <= _width(narrower))


def widest(audiences: Iterable[str]) -> str | None:
    """The audience of what concerns records of all of these: the one that includes all others, or SEVERAL. None of
    none."""
    found = set(audiences)
    if not found:
        return None
    return next((one for one in found if all(includes(one, other) for other in found)), SEVERAL)


def _namespace(audience: str) -> str:
    return audience.removesuffix(_ENDS[_width(audience)])


def _width(audience: str) -> int:
    return max(place for place, end in enumerate(_ENDS) if audience.endswith(end))


def may_read(audience: str | None, audiences: Audiences) -> bool:
    """Whether a reader of these audiences may read a record of this one. A record without a usable audience has
    None, and no set of names holds it."""
    return isinstance(audiences, Everything) or audience in audiences


#: Of a name.
MOST_NAMESPACE = 200
MOST_MEMBERS = 500
MOST_TEAM = 2_000


class Visibility(enum.StrEnum):
    """Who may read what is in a namespace, the widest first."""

    #: Everybody whom the registry lets in.
    PUBLIC = "public"
    #: Every account.
    INTERNAL = "internal"
    #: Members of the namespace.
    TEAM = "team"

    @property
    def width(self) -> int:
        """Less is wider."""
        return tuple(Visibility).index(self)


class RegistryMode(enum.StrEnum):
    """Whom the registry lets in."""

    PUBLIC = "public"
    #: Only accounts.
    INTERNAL = "internal"


class Submitters(enum.StrEnum):
    """Who may submit."""

    EVERYBODY = "everybody"
    SIGNED_IN = "signed in"
    #: Whoever has the role author in the namespace that the place belongs to.
    MEMBERS = "members"


class Reviewers(enum.StrEnum):
    """Who decides about what waits for review in a namespace."""

    #: The registry's reviewers.
    REGISTRY = "registry"
    #: Also its own maintainers, about what is not public (`domain.review.own_review`).
    OWN = "own"


class OwnReview(enum.StrEnum):
    """Whether owners may let a namespace review itself."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"


class NamespaceRole(enum.StrEnum):
    """What a member may do, the least first; each may do what those before it may."""

    READER = "reader"
    AUTHOR = "author"
    MAINTAINER = "maintainer"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        return tuple(NamespaceRole).index(self)


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person or team with a role. With a repository it holds for that one only, and is no right to read the rest."""

    #: `user:NAME` or `team:NAME`
    principal: str
    role: NamespaceRole
    since: int
    #: `file`, `sign-in`, `upload`, `transfer`, or `added` by somebody who may.
    how: str
    #: The repository's key, `host/owner/repo`; empty: the whole namespace.
    repo: str = ""
    #: The repository's address.
    url: str = ""
    #: The commit in which the proof was found.
    commit: str | None = None
    #: The account that handed it over or added it, and why.
    by: str | None = None
    reason: str = ""


class Quotas(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a namespace may hold; None is no limit."""

    skills: int | None = None
    bytes: int | None = None
    submissions_per_hour: int | None = None


class Namespace(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `namespace:{name}`."""

    name: str
    #: None: unmanaged.
    visibility: Visibility | None = None
    #: The visibility that it gets once all its records carry its audience; until then it is read as before.
    preparing: Visibility | None = None
    members: tuple[Member, ...] = ()
    quotas: Quotas = Quotas()
    #: When preparing began; 0 where it does not.
    preparing_since: int = 0
    #: Its members alone say who owns it: nobody owns it by its name.
    released: bool = False
    review: Reviewers = Reviewers.REGISTRY

    @property
    def managed(self) -> bool:
        return self.visibility is not None


class Team(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `team:{name}`."""

    name: str
    #: Accounts, and groups at an issuer, as `oidc:ISSUER:GROUP`.
    members: tuple[str, ...] = ()
    created_at: int = 0


class Access(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `control:namespaces`. Its version rises with every change of it, of a namespace and of a team."""

    mode: RegistryMode = RegistryMode.PUBLIC
    submitters: Submitters = Submitters.EVERYBODY
    own_review: OwnReview = OwnReview.ALLOWED
    #: The issuers whose directories say by SCIM who has left, and since when each has had a token.
    directories: Mapping[str, int] = {}


class Directory(msgspec.Struct, frozen=True):
    """Everything that decides who may read, as it was at one version."""

    access: Access = Access()
    namespaces: Mapping[str, Namespace] = {}
    teams: Mapping[str, Team] = {}

    def principals(self, account: str, groups: frozenset[str] = frozenset()) -> frozenset[str]:
        """The account and its teams, by its name or its groups, as members are named."""
        own = groups | {account}
        teams = (f"team:{team.name}" for team in self.teams.values() if not own.isdisjoint(team.members))
        return frozenset((f"user:{account}", *teams))


class Reader(msgspec.Struct, frozen=True):
    """What decides which audiences somebody has."""

    #: None is nobody who signed in.
    account: str | None = None
    #: Reviewers, admins and the operator: they decide about everything, so they read everything.
    reads_all: bool = False
    #: The one namespace that its token is bound to.
    namespace: str | None = None
    #: The groups that it is in, as teams name them.
    groups: frozenset[str] = frozenset()


# Names.


def namespace_of(identity: Identity) -> str:
    return namespace_in(canonical_name(identity))


def namespace_in(canonical: str) -> str:
    return canonical.partition("/")[0]


def upload_namespace(account: str) -> str:
    return f"{UPLOAD_HOST}~{account.lower()}"


def uploader_of(name: str) -> str | None:
    """The account whose uploads a namespace holds, if there is one of that name; None for other namespaces."""
    prefix = upload_namespace("")
    return name.removeprefix(prefix) if name.startswith(prefix) else None


def check_namespace_name(name: str) -> None:
    """InvalidInput for what cannot be the first part of a skill's name. `acme:team` would be the audience of others."""
    if not is_namespace_name(name):
        fix = "give the first part of a skill's name, such as acme"
        raise InvalidInput(f"{name[:80]!r} cannot be a namespace's name.", field="name", fix=fix)


def is_namespace_name(name: str) -> bool:
    return bool(name) and not any(mark in "/:" or mark.isspace() for mark in name)


# Audiences.


def audience_for(namespace: Namespace | None, name: str, narrowed: Visibility | None = None) -> str:
    """The audience of a record in a namespace."""
    if namespace is None or not namespace.managed:
        return PUBLIC
    return f"ns:{name}" if narrowed in (None, Visibility.PUBLIC) else f"ns:{name}:{narrowed.value}"


def namespace_audiences(name: str) -> frozenset[str]:
    """Every audience that records of a managed namespace can have."""
    return frozenset((f"ns:{name}", f"ns:{name}:internal", f"ns:{name}:team"))


def audiences(reader: Reader, directory: Directory) -> Audiences:
    """The audiences whose records this reader may read: the only rule there is."""
    if reader.namespace is not None:
        return _bound(reader, reader.namespace, directory)
    if reader.reads_all:
        return EVERYTHING
    return _own(reader, directory)


def _own(reader: Reader, directory: Directory) -> frozenset[str]:
    is_shut = reader.account is None and directory.access.mode is RegistryMode.INTERNAL
    return frozenset() if is_shut else _audiences_inside(reader, directory)


def _audiences_inside(reader: Reader, directory: Directory) -> frozenset[str]:
    """What somebody reads whom the registry lets in."""
    account = reader.account
    # No account has an empty name, so it is in no team.
    principals = directory.principals(account or "", reader.groups)
    found = {PUBLIC}
    for name, namespace in directory.namespaces.items():
        if namespace.visibility is None or not is_namespace_name(name):
            continue
        if account is not None:
            found.add(INTERNAL)
        if account is not None and role_of(namespace, account, principals) is not None:
            found |= namespace_audiences(name)
        elif account is not None and namespace.visibility is not Visibility.TEAM:
            found |= {f"ns:{name}", f"ns:{name}:internal"}
        elif namespace.visibility is Visibility.PUBLIC:
            found.add(f"ns:{name}")
    return frozenset(found)


def _bound(reader: Reader, name: str, directory: Directory) -> Audiences:
    """What is public, and of the token's namespace what its account has."""
    within = namespace_audiences(name)
    if not reader.reads_all:
        within &= _own(reader, directory)
    # Whoever has a token is let in.
    return _audiences_inside(Reader(), directory) | within


def public_form(directory: Directory) -> frozenset[str]:
    """What registry-wide documents hold for readers who did not sign in."""
    return _own(Reader(), directory)


def internal_form(directory: Directory) -> frozenset[str]:
    """What registry-wide documents hold for everybody else, whatever they are members of."""
    # No account has this name, so it is a member of nothing.
    return _own(Reader(""), directory)


def shared_form(directory: Directory) -> frozenset[str]:
    """What each reader has whom the registry lets in, with an account or without, by a token of any namespace."""
    return _audiences_inside(Reader(), directory)


def with_namespace(directory: Directory, namespace: Namespace) -> Directory:
    return msgspec.structs.replace(directory, namespaces={**directory.namespaces, namespace.name: namespace})


def common_audiences(audience: str, directory: Directory) -> frozenset[str]:
    """What every reader of an audience may read."""
    if audience in public_form(directory):
        return public_form(directory)
    # Whoever reads it has an account, or it is internal because the registry is.
    everybody = internal_form(directory)
    own = (names for name in directory.namespaces if audience in (names := namespace_audiences(name)))
    return everybody if audience in everybody else everybody.union(*own)


# Roles.


def role_of(
    namespace: Namespace, account: str, principals: frozenset[str], repo: str = ""
) -> NamespaceRole | None:
    """The highest role that an account has in a namespace, and in one of its repositories if that is named."""
    if not namespace.released and namespace.name == upload_namespace(account):
        return NamespaceRole.OWNER
    held = [
        member.role
        for member in namespace.members
        if member.principal in principals and member.repo in ("", repo)
    ]
    return max(held, key=lambda role: role.rank, default=None)


def maintainers_in(directory: Directory, name: str, repo: str) -> set[str]:
    """The accounts, and groups of a team, that maintain or own a repository of a namespace, directly, by a team or
    because it holds what they upload."""
    namespace = directory.namespaces.get(name, Namespace(name))
    found = {
        member.principal
        for member in namespace.members
        if member.role.rank >= NamespaceRole.MAINTAINER.rank and member.repo in ("", repo)
    }
    teams = (team.members for team in directory.teams.values() if f"team:{team.name}" in found)
    accounts = {one.removeprefix("user:") for one in found if one.startswith("user:")}.union(*teams)
    uploader = uploader_of(name)
    return accounts if uploader is None or namespace.released else accounts | {uploader}


def is_taken_from(namespace: Namespace, account: str) -> bool:
    """Whether others than this account have taken a namespace in hand: it has a visibility, or a member of the whole
    namespace whom the account did not add. Then proving its name gives no right to it."""
    own = {f"user:{account}", f"admin:{account}"}
    others = (one for one in namespace.members if not one.repo and one.by not in own)
    return namespace.released or namespace.managed or any(others)


def with_member(namespace: Namespace, member: Member) -> Namespace:
    """The namespace with this member, in place of one of the same name and repository."""
    others = without_member(namespace, member.principal, member.repo).members
    if len(others) >= MOST_MEMBERS:
        message = f"{namespace.name} has {MOST_MEMBERS} members, which is the limit."
        raise InvalidInput(message, field="principal", fix="add a team instead of its people")
    return msgspec.structs.replace(namespace, members=(*others, member))


def without_member(namespace: Namespace, principal: str, repo: str = "") -> Namespace:
    """The namespace without this member; other entries of the same name stay."""
    left = (one for one in namespace.members if (one.principal, one.repo) != (principal, repo))
    return msgspec.structs.replace(namespace, members=tuple(left))


def owners_in(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members who own the whole namespace."""
    return tuple(one for one in members if one.role is NamespaceRole.OWNER and not one.repo)
