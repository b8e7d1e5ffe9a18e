"""What forges send when somebody pushes: which headers, how a delivery is signed, where repository and branch stand.
Each forge is an entry of `FORGES`; nothing else knows them."""

import base64
import binascii
import enum
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.foreign_json import read_json

_BRANCHES = "refs/heads/"


class Signing(enum.StrEnum):
    """How a forge shows that it knows the secret."""

    #: HMAC-SHA256 of the body, in hexadecimal digits.
    BODY = "body"
    #: The secret itself.
    TOKEN = "token"  # noqa: S105 - a kind, no secret
    #: Standard Webhooks: HMAC-SHA256 of id, time and body, in base64; the secret is base64 after `whsec_`.
    STANDARD = "standard"


class Forge(msgspec.Struct, frozen=True):
    """How one kind of forge tells of a push."""

    name: str
    #: The header that names the event, and what it says of a push.
    event: str
    push: str
    #: Headers that may hold the delivery's id; the first that is there does.
    delivery: tuple[str, ...]
    #: Headers that may hold the signature; the first that is there decides.
    signatures: tuple[tuple[str, Signing], ...]
    #: Where the repository's address and the branches stand; `*` is every element of a list.
    repository: tuple[str, ...]
    branches: tuple[str, ...]
    #: What the event of a try is called.
    ping: str = ""


#: Gitea and Forgejo send GitHub's headers too, so they come first.
FORGES = (
    Forge(
        "gitea",
        "x-gitea-event",
        "push",
        ("x-gitea-delivery",),
        (("x-gitea-signature", Signing.BODY),),
        ("repository", "clone_url"),
        ("ref",),
    ),
    Forge(
        "github",
        "x-github-event",
        "push",
        ("x-github-delivery",),
        (("x-hub-signature-256", Signing.BODY),),
        ("repository", "clone_url"),
        ("ref",),
        "ping",
    ),
    Forge(
        "gitlab",
        "x-gitlab-event",
        "Push Hook",
        ("webhook-id", "idempotency-key", "x-gitlab-event-uuid"),
        (("webhook-signature", Signing.STANDARD), ("x-gitlab-token", Signing.TOKEN)),
        ("project", "git_http_url"),
        ("ref",),
    ),
    Forge(
        "bitbucket",
        "x-event-key",
        "repo:push",
        ("x-request-uuid",),
        (("x-hub-signature", Signing.BODY),),
        ("repository", "links", "html", "href"),
        ("push", "changes", "*", "new", "name"),
        "diagnostics:ping",
    ),
)


class Push(msgspec.Struct, frozen=True):
    """What a delivery says, once its signature is checked."""

    repository: str
    #: Without `refs/heads/`; tags and deleted branches are left out.
    branches: tuple[str, ...]


def forge_of(headers: Mapping[str, str]) -> Forge | None:
    return next((one for one in FORGES if one.event in headers), None)


def delivery_id(forge: Forge, headers: Mapping[str, str]) -> str:
    return next((headers[name] for name in forge.delivery if name in headers), "")[:100]


def is_signed(forge: Forge, secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the sender knows the secret; in constant time."""
    name, signing = next((one for one in forge.signatures if one[0] in headers), forge.signatures[0])
    shown = headers.get(name, "").encode("utf-8", "replace")[:1000]
    if signing is Signing.TOKEN:
        return hmac.compare_digest(secret.encode(), shown)
    if signing is Signing.BODY:
        made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
        return hmac.compare_digest(made, shown.removeprefix(b"sha256="))
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return False
    signed = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}.".encode() + body
    made = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    fits = [hmac.compare_digest(made, one) for one in shown.split(b" ")[:5]]
    return any(fits)


def read_push(forge: Forge, body: bytes) -> Push:
    """InvalidInput where the body is not what the forge documents."""
    fix = "let the forge send JSON (application/json)"
    try:
        sent = read_json(body)
    except msgspec.DecodeError as error:
        raise InvalidInput("The delivery is no JSON.", field="body", fix=fix) from error
    repository = next(_texts(sent, forge.repository), "")
    if not repository:
        place = ".".join(forge.repository)
        raise InvalidInput(f"The delivery names no repository ({place}).", field="body", fix=fix)
    refs = _texts(sent, forge.branches)
    branches = (ref.removeprefix(_BRANCHES) for ref in refs if not ref.startswith("refs/tags/"))
    return Push(repository, tuple(branches))


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if not path:
        if isinstance(value, str):
            yield value
    elif path[0] == "*" and isinstance(value, list):
        for one in value[:100]:
            yield from _texts(one, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _texts(value[path[0]], path[1:])
