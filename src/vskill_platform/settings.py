"""Every setting of a process, read once from `VSKILL_*` variables and checked before anything opens.

This is the only module that sees the process environment: the command line calls `process_settings`, and what
lies below takes the `Settings` it is given. `docs/reference/settings.md` describes each one for operators.
"""

import difflib
import ipaddress
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from vskill_platform.domain.errors import InvalidSettings

PREFIX = "VSKILL_"
#: Variables of the `vskill` client (the first two) and of its companion. A shell may have them set for both programs.
OF_THE_CLIENT = frozenset({"VSKILL_API_BASE", "VSKILL_API_URL", "VSKILL_PLATFORM_URL"})

# A type's description says what a valid value is; it becomes the fix in the error about an invalid one.
Location = Annotated[str, msgspec.Meta(min_length=1, description="a location such as sqlite:PATH or memory:")]
Folder = Annotated[str, msgspec.Meta(min_length=1, description="a folder's path")]
Host = Annotated[str, msgspec.Meta(min_length=1, description="an address such as 127.0.0.1 or 0.0.0.0")]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535, description="a port number from 0 to 65535")]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000, description="a whole number from 1 to 1000")]
Processes = Annotated[int, msgspec.Meta(ge=0, le=256, description="a whole number from 0 to 256")]
Milliseconds = Annotated[
    int, msgspec.Meta(ge=1, le=86_400_000, description="a whole number of milliseconds from 1 to 86400000")
]
Drain = Annotated[
    int, msgspec.Meta(ge=0, le=600_000, description="a whole number of milliseconds from 0 to 600000")
]
Mebibytes = Annotated[
    int, msgspec.Meta(ge=1, le=65_536, description="a whole number of mebibytes from 1 to 65536")
]
HostRule = Annotated[
    str, msgspec.Meta(min_length=1, description="a host such as github.com or git.example.org:8443")
]
Rewrite = Annotated[
    str,
    msgspec.Meta(
        pattern="^https://[^=]+/=(https?|file)://.*/$",
        description="a rule such as https://github.com/=https://mirror.example.org/github/",
    ),
]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="64 characters of 0-9 and a-f")]
Address = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$",
        description="an http or https address without user name, query and fragment",
    ),
]
Name = Annotated[
    str,
    msgspec.Meta(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=200, description="a name in plain characters"),
]
#: What protects something. It has no default, and no message, log line or `repr` shows it.
Secret = Annotated[
    str, msgspec.Meta(pattern="^[!-~]+$", max_length=4096, description="plain characters without spaces")
]
#: A mail server; as it may hold a password, it is shown as little as a secret.
MailServer = Annotated[
    str,
    msgspec.Meta(
        max_length=4096,
        pattern=r"^smtps?://([^\s/@]+@)?[^\s/@:]+(:[0-9]{1,5})?/?$",
        description="an address such as smtp://host:587 or smtps://user:password@host",
    ),
]
Mailbox = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[!-;=?-~]+@[a-zA-Z0-9.-]+$",
        max_length=254,
        description="an e-mail address such as registry@example.org",
    ),
]
#: `name=secret`, as remote analysers sign with; shown as little as a secret.
NamedSecret = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-z0-9][a-z0-9-]{0,39}=[!-+\--~]{16,}$",
        max_length=4096,
        description="a name, '=' and a secret of at least 16 characters without commas and spaces",
    ),
]
#: At most what a task may wait between two attempts.
CallbackMs = Annotated[
    int,
    msgspec.Meta(ge=1, le=43_200_000, description="a whole number of milliseconds from 1 to 43200000"),
]
#: Less than a task of that kind may take as a whole.
AnalysisMs = Annotated[
    int,
    msgspec.Meta(ge=1, le=600_000, description="a whole number of milliseconds from 1 to 600000"),
]
Program = Annotated[str, msgspec.Meta(min_length=1, description="a program's name or path, or off")]
Bytes = Annotated[
    int,
    msgspec.Meta(ge=1_000, le=10_000_000, description="a whole number of bytes from 1000 to 10000000"),
]
Network = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[0-9a-fA-F:.]{2,45}(/[0-9]{1,3})?$",
        description="an address or network such as 127.0.0.1 or 10.0.0.0/8",
    ),
]
OwnerPlace = Annotated[
    str, msgspec.Meta(pattern=r"^[^\s/]+/[^\s/]+$", description="a host and an owner, as in github.com/acme")
]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator may set. A field `name` is the variable `VSKILL_NAME`."""

    #: The folder that holds everything this process keeps on disk.
    data_dir: Folder = "data"
    #: Where records live: `sqlite:PATH`, `postgresql://…`, or `memory:`. Default: vskill.db in the data folder.
    store: Location = ""
    #: Where messages are queued: `nats://HOST:PORT`. Default: the store's own queue, one commit with the records.
    broker: Location = ""
    #: Where content is kept: `files:FOLDER` or `memory:`. Default: blobs in the data folder.
    blobs: Location = ""
    #: The address that the web side listens on.
    host: Host = "127.0.0.1"
    #: The port that the web side listens on; 0 takes any free one.
    port: Port = 8080
    #: The address that people use, such as `https://skills.example.org`; needed behind a proxy and for GitHub.
    public_url: Address = ""
    #: Proxies whose `X-Forwarded-For` is believed, as addresses or networks, separated by commas or spaces.
    trusted_proxies: tuple[Network, ...] = ()
    #: Whom requests are counted for: `on` everybody, `remote` everybody but this machine (a demo), `off` nobody.
    rate_limits: Literal["on", "remote", "off"] = "on"
    #: How many event streams one address may have open at once, in each web process.
    max_streams_per_address: Count = 100
    #: A port for the metrics of a process that has no web side (`worker`, `schedule`); 0 is none.
    metrics_port: Port = 0
    #: Where traces go over OTLP, such as `http://127.0.0.1:4318`; needs the extra `telemetry`. Unset: no traces.
    otlp_endpoint: Address = ""
    #: How many messages one batch of the queue consumer holds at most.
    max_batch_size: Count = 3
    #: How many batches one worker process handles at once.
    max_concurrency: Count = 10
    #: How long the judge may think about one skill; less than the submission's budget.
    judge_budget_ms: Milliseconds = 30_000
    #: How long one attempt at a submission may take; less than the stuck threshold.
    submission_budget_ms: Milliseconds = 55_000
    #: After how long without a change an active submission is reported as stuck.
    stuck_threshold_ms: Milliseconds = 300_000
    #: How long a stopping worker lets running work finish before it hands it back.
    shutdown_grace_ms: Milliseconds = 10_000
    #: How long a stopping web process goes on answering while `/readyz` says no; more than a proxy's checks are apart.
    drain_ms: Drain = 0
    #: Hosts that repositories may be on, separated by commas or spaces; `*` allows every public host.
    allowed_hosts: tuple[HostRule, ...] = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org")
    #: Hosts that may have private addresses, such as a company's own git server; `http://HOST:PORT` is one without TLS.
    allowed_private_hosts: tuple[HostRule, ...] = ()
    #: Mirrors: `https://HOST/=https://MIRROR/` fetches from the mirror, while the identity stays the public one.
    source_rewrites: tuple[Rewrite, ...] = ()
    #: How long fetching one repository may take; less than the submission's budget. Default: 20 s, or half of that.
    fetch_budget_ms: Milliseconds = 0
    #: How much of one repository is fetched at most.
    fetch_limit_mib: Mebibytes = 256
    #: How many repositories one process fetches at once.
    max_fetches: Count = 8
    #: How log lines look: `console` for people, `json` for machines.
    log_format: Literal["console", "json"] = "console"
    #: The least important level that is logged.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: How many processes scan skills; 0 takes as many as there are cores.
    scan_processes: Processes = 0
    #: Content digests that are blocked without a judge, separated by commas or spaces.
    known_bad_digests: tuple[Digest, ...] = ()
    #: The registry's name in its attestations.
    registry_name: Name = "vskill-platform"
    #: Whose skills count as a trusted vendor's, as `host/owner`, separated by commas or spaces.
    trusted_owners: tuple[OwnerPlace, ...] = ()
    #: The judge: the base address of an OpenAI-compatible API, such as `http://127.0.0.1:11434/v1`.
    judge_url: Address = ""
    #: The model that the judge is asked to use; needed with an address.
    judge_model: Name = ""
    #: What the judge is shown as a bearer token, where it asks for one. Never logged or shown.
    judge_api_key: Secret = ""
    #: How many bytes of a skill the judge is shown at most; what is left out is said.
    judge_max_bytes: Bytes = 200_000
    #: The Bandit program. Default: `bandit` on the PATH; `off` leaves it out.
    bandit_command: Program = ""
    #: The Semgrep program. Default: `semgrep` on the PATH; `off` leaves it out.
    semgrep_command: Program = ""
    #: How long one external analyser may take over one skill.
    external_scan_budget_ms: AnalysisMs = 60_000
    #: How many external analyses one process runs at once.
    max_external_scans: Count = 1
    #: How long a remote analyser has to call back before it counts as timed out.
    external_scan_callback_ms: CallbackMs = 3_600_000
    #: Remote analysers and what they sign with, as `name=secret`, separated by commas or spaces. Never logged or shown.
    external_scan_secrets: tuple[NamedSecret, ...] = ()
    #: The client id of the GitHub OAuth app that people sign in with; needs its secret and a public address.
    github_client_id: Name = ""
    #: The secret of that app. Never logged or shown.
    github_client_secret: Secret = ""
    #: Where GitHub's sign-in pages are; another one for an enterprise server.
    github_url: Address = "https://github.com"
    #: Where GitHub's API is.
    github_api_url: Address = "https://api.github.com"
    #: The mail server that tells decisions: `smtp://HOST:PORT` or `smtps://USER:PASSWORD@HOST`. Never logged or shown.
    smtp_url: MailServer = ""
    #: The address that mail comes from; needed with a mail server.
    mail_from: Mailbox = ""
    #: Who is told of decisions whose submitter has no e-mail address; nobody where it is not set.
    mail_to: Mailbox = ""

    def __post_init__(self) -> None:
        """Locations that were not given follow the data folder, or the store where that is in memory."""
        in_memory = self.store == "memory:"
        derived = {
            "store": f"sqlite:{Path(self.data_dir) / 'vskill.db'}",
            "broker": self.store or f"sqlite:{Path(self.data_dir) / 'vskill.db'}",
            "blobs": "memory:" if in_memory else f"files:{Path(self.data_dir) / 'blobs'}",
        }
        for name, value in derived.items():
            if not getattr(self, name):
                msgspec.structs.force_setattr(self, name, value)
        if not self.fetch_budget_ms:
            budget = max(1, min(20_000, self.submission_budget_ms // 2))
            msgspec.structs.force_setattr(self, "fetch_budget_ms", budget)

    def __repr__(self) -> str:
        """Every field but the secrets, of which only that they are set."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        hidden = {name: "***" for name in SECRETS if shown[name]}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in {**shown, **hidden}.items())})"


def _is_secret(kind: Any) -> bool:
    return kind in (Secret, MailServer) or NamedSecret in get_args(kind)


#: Fields whose value is nobody's business.
SECRETS = frozenset(
    name for name, kind in get_type_hints(Settings, include_extras=True).items() if _is_secret(kind)
)


#: Settings that are of no use without another one, and what they serve.
TOGETHER = (
    ("judge_url", "judge_model", "a judge"),
    ("judge_model", "judge_url", "a judge"),
    ("github_client_id", "github_client_secret", "signing in with GitHub"),
    ("github_client_secret", "github_client_id", "signing in with GitHub"),
    ("github_client_id", "public_url", "signing in with GitHub"),
    ("smtp_url", "mail_from", "mail"),
)


def process_settings() -> Settings:
    """The settings of this process, from its environment."""
    return load_settings(os.environ)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from `VSKILL_*` variables; InvalidSettings names the variable and the fix."""
    ours = (name for name in environ if name.startswith(PREFIX) and name not in OF_THE_CLIENT)
    given = {name: environ[name] for name in ours}
    kinds = get_type_hints(Settings, include_extras=True)
    known = {variable(field): field for field in Settings.__struct_fields__}
    for name in given:
        if name not in known:
            raise _unknown(name, known)
    values = {known[name]: _parse(name, text, kinds[known[name]]) for name, text in given.items()}
    settings = Settings(**values)
    check_settings(settings)
    return settings


def variable(field: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + field.upper()


def keys_folder(settings: Settings) -> Path:
    """Where the registry's signing keys are kept."""
    return Path(settings.data_dir) / "keys"


def check_settings(settings: Settings) -> None:
    """Refuse settings that are valid one by one but not together."""
    check_budgets(settings)
    check_networks(settings)
    for given, needed, purpose in TOGETHER:
        if getattr(settings, given) and not getattr(settings, needed):
            raise InvalidSettings(
                f"{variable(given)} is set and {variable(needed)} is not: set both for {purpose}, or neither.",
                settings=[variable(given), variable(needed)],
            )


def check_networks(settings: Settings) -> None:
    """A proxy that cannot be an address would be believed by nobody, in silence."""
    for text in settings.trusted_proxies:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError as error:
            name = variable("trusted_proxies")
            fix = "give addresses or networks such as 127.0.0.1 or 10.0.0.0/8"
            raise InvalidSettings(f"{name}: {error}; {fix}.", setting=name, fix=fix) from None


def check_budgets(settings: Settings) -> None:
    """A budget that is not smaller than the one around it would never be the one that ends the work (B2)."""
    chain = ("judge_budget_ms", "submission_budget_ms", "stuck_threshold_ms")
    pairs = (*itertools.pairwise(chain), ("fetch_budget_ms", "submission_budget_ms"))
    for inner, outer in pairs:
        small, large = getattr(settings, inner), getattr(settings, outer)
        if small >= large:
            raise InvalidSettings(
                f"{variable(inner)} is {small} and must be less than {variable(outer)}, which is {large}: "
                f"lower the first or raise the second.",
                settings=[variable(inner), variable(outer)],
            )


def _parse(name: str, text: str, kind: Any) -> Any:
    origin = get_origin(kind)
    raw: object = text.replace(",", " ").split() if origin is tuple else text.strip()
    try:
        return msgspec.convert(raw, kind, strict=False)
    except msgspec.ValidationError:
        fix = f"give {_accepted(kind)}, or leave the variable unset"
        shown = "set to a value" if _is_secret(kind) else f"{text!r},"
        raise InvalidSettings(
            f"{name} is {shown} which is not valid: {fix}.", setting=name, fix=fix
        ) from None


def _accepted(kind: Any) -> str:
    """In words, what a setting of this type takes."""
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(get_args(kind))
    if origin is tuple:
        return f"a list, each {_accepted(get_args(kind)[0])}"
    description = next(
        (meta.description for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta)), None
    )
    return description or "another value"


def _unknown(name: str, known: Mapping[str, str]) -> InvalidSettings:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return InvalidSettings(
        f"There is no setting {name}; the nearest is {near[0]}. Correct the name, or unset it.",
        setting=name,
        nearest=near[0],
    )


def shown_location(location: str) -> str:
    """A location as it may be shown: a server's without the password."""
    if "://" not in location:
        return location
    scheme, _, rest = location.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{slash}{path.partition('?')[0]}"
