"""Issuers of OpenID Connect, as the operator's file names them: who they are, and whom they let in."""

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
        """Without the secret."""
        return f"Issuer(name={self.name!r}, issuer={self.issuer!r})"


def read_issuers(path: str) -> tuple[Issuer, ...]:
    """The issuers of VSKILL_SIGN_IN_FILE; InvalidSettings says which section is wrong."""
    if not path:
        return ()
    if importlib.util.find_spec("joserfc") is None:
        raise _refuse("it needs what is not installed", "install the extra `sso`")
    found, section = [], "the file"
    try:
        for section, entry in tomllib.loads(Path(path).read_text(encoding="utf-8")).items():
            found.append(msgspec.convert({**entry, "name": section}, Issuer))
    except (OSError, ValueError, TypeError, msgspec.ValidationError) as error:
        raise _refuse(f"{section}: {error}") from None
    if "github" in {one.name for one in found} or len({one.issuer for one in found}) < len(found):
        raise _refuse("two sections name one issuer, or one is called github")
    return tuple(found)


def _refuse(problem: str, fix: str = "see docs/how-to/single-sign-on.md") -> InvalidSettings:
    name = "VSKILL_SIGN_IN_FILE"
    return InvalidSettings(f"{name}: {problem}; {fix}.", setting=name, fix=fix)
