"""Which values settings take: a type for each kind of value, in words that become the fix in the error about an invalid
one; and locations, as they may be shown."""

from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import re2

from vskill_core.errors import InvalidSettings

_POSTGRES_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^:@/?#,\[\]\s]*)(:[0-9]+)?"
#: As the driver reads it: one `@` after user and password, hosts with ports, and nothing else unescaped.
_POSTGRES_ADDRESS = re2.compile(
    r"postgres(ql)?://([^:@/?#\s]*(:[^@/?#\[\]\s]*)?@)?"
    rf"{_POSTGRES_HOST}(,{_POSTGRES_HOST})*(/[^@?#\s]*)?(\?[^@#\s]*)?"
)

_BUCKET = re2.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.-]+)*")


def _whole(least: int, most: int, unit: str = "") -> msgspec.Meta:
    """A whole number within limits, in words that name both."""
    counted = f" of {unit}" if unit else ""
    return msgspec.Meta(ge=least, le=most, description=f"a whole number{counted} from {least} to {most}")


def _text(
    description: str, pattern: str | None = None, *, least: int | None = None, most: int | None = None
) -> msgspec.Meta:
    return msgspec.Meta(description=description, pattern=pattern, min_length=least, max_length=most)


# A type's description says what a valid value is; it becomes the fix in the error about an invalid one.
StoreLocation = Annotated[str, _text("a location such as sqlite:PATH or memory:", least=1)]
QueueLocation = Annotated[str, _text("a location such as nats://127.0.0.1:4222", least=1)]
BlobLocation = Annotated[str, _text("a location such as files:FOLDER or s3://BUCKET/FOLDER", least=1)]
Contact = Annotated[
    str,
    _text(
        "an address such as mailto:security@example.org or https://example.org/report",
        r"^((mailto:|https://|tel:)[!-~]+)?$",
    ),
]
Folder = Annotated[str, _text("a folder's path", least=1)]
FilePath = Annotated[str, _text("a file's path")]
Host = Annotated[str, _text("an address such as 127.0.0.1 or 0.0.0.0", least=1)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535, description="a port number from 0 to 65535")]
Count = Annotated[int, _whole(1, 1000)]
Milliseconds = Annotated[int, _whole(1, 86_400_000, "milliseconds")]
Drain = Annotated[int, _whole(0, 600_000, "milliseconds")]
HostRule = Annotated[str, _text("a host such as github.com or git.example.org:8443", least=1)]
Rewrite = Annotated[
    str,
    _text(
        "a rule such as https://github.com/=https://mirror.example.org/github/",
        "^https://[^=]+/=(https?|file)://.*/$",
    ),
]
Digest = Annotated[str, _text("64 characters of 0-9 and a-f", "^[0-9a-f]{64}$")]
Address = Annotated[
    str,
    _text(
        "an http or https address without user name, query and fragment", r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"
    ),
]
Name = Annotated[str, _text("a name in plain characters", r"^[!-~]([ -~]*[!-~])?$", most=200)]
#: What protects something. It has no default, and no message, log line or `repr` shows it.
Secret = Annotated[str, _text("plain characters without spaces", "^[!-~]+$", most=4096)]
#: A mail server; as it may hold a password, it is shown as little as a secret.
MailServer = Annotated[
    str,
    _text(
        "an address such as smtp://host:587 or smtps://user:password@host",
        r"^smtps?://([^\s/@]+@)?[^\s/@:]+(:[0-9]{1,5})?/?$",
        most=4096,
    ),
]
Mailbox = Annotated[
    str, _text("an e-mail address such as registry@example.org", r"^[!-;=?-~]+@[a-zA-Z0-9.-]+$", most=254)
]
#: `name=secret`, as remote analysers sign with; shown as little as a secret.
NamedSecret = Annotated[
    str,
    _text(
        "a name, '=' and a secret of at least 16 characters without commas and spaces",
        r"^[a-z0-9][a-z0-9-]{0,39}=[!-+\--~]{16,}$",
        most=4096,
    ),
]
Program = Annotated[str, _text("a program's name or path, or off", least=1)]
Bytes = Annotated[int, _whole(1_000, 10_000_000, "bytes")]
Network = Annotated[
    str,
    _text("an address or network such as 127.0.0.1 or 10.0.0.0/8", r"^[0-9a-fA-F:.]{2,45}(/[0-9]{1,3})?$"),
]
PolicySource = Annotated[str, _text("open, guarded, strict, or a file's path", least=1)]

GitHubName = Annotated[str, _text("a name on GitHub, such as octo-cat", r"^(\*|[A-Za-z0-9_-]{1,100})$")]
GitHubGroup = Annotated[
    str,
    _text(
        "an organisation such as acme, or a team of one, as in acme/platform",
        r"^[A-Za-z0-9_-]{1,100}(/[A-Za-z0-9._-]{1,100})?$",
    ),
]


def is_secret(kind: Any) -> bool:
    return kind in (Secret, MailServer) or NamedSecret in get_args(kind)


def accepted_values(kind: Any) -> str:
    """In words, what a setting of this type takes."""
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(get_args(kind))
    if origin is tuple:
        return f"a list, each {accepted_values(get_args(kind)[0])}"
    description = next(
        (meta.description for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta)), None
    )
    return description or "another value"


def check_location(location: str, name: str) -> None:
    """A server's address that the driver would read otherwise than it is meant: it would take part of the password
    for the host, and name it in its errors."""
    if location.startswith(("postgresql:", "postgres:")) and not _POSTGRES_ADDRESS.fullmatch(location):
        fix = (
            "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            "and in the password %40 for @, %2F for /, %3F for ?, %23 for #"
        )
        raise InvalidSettings(f"{name} is no address of a PostgreSQL server: {fix}.", setting=name, fix=fix)
    if (mode := re2.search(r"[?&]pool_mode=([^&]*)", location)) and mode[1] != "transaction":
        fix = "write ?pool_mode=transaction behind a pooler in that mode, and nothing in session mode"
        raise InvalidSettings(f"{name}: {mode[1]!r} is no pool_mode: {fix}.", setting=name, fix=fix)
    if location.startswith("s3:") and not _BUCKET.fullmatch(location):
        fix = "write s3://BUCKET or s3://BUCKET/FOLDER; credentials belong into the AWS_ variables"
        raise InvalidSettings(f"{name} is no place in a bucket: {fix}.", setting=name, fix=fix)


def driver_address(location: str) -> tuple[str, bool]:
    """A PostgreSQL address without `pool_mode`, which no driver knows, and whether it named a pooler, such as
    PgBouncer, that gives each transaction any of its connections: nothing that a client may ask tells it."""
    parts = urlsplit(location)
    options = parse_qs(parts.query)
    if options.pop("pool_mode", None) is None:
        return location, False
    return parts._replace(query=urlencode(options, doseq=True)).geturl(), True


def shown_location(location: str) -> str:
    """A location as it may be shown: a server's without the password."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location
    # A password may hold any character that should have been escaped, so all that may belong to one is left out.
    credentials, at, place = rest.rpartition("@")
    user = re2.split("[:@/?#]", credentials)[0]
    hidden = "..." if re2.search("[?#]", credentials) else place
    return f"{scheme}://{user}{at}{hidden.partition('?')[0]}"
