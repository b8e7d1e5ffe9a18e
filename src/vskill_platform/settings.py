"""Every setting of a process, read once from `VSKILL_*` variables and checked before anything opens.

This is the only module that sees the process environment: the command line calls `process_settings`, and what
lies below takes the `Settings` it is given. A setting is declared once: its type says which values it takes, its `#:`
line says what it does. Errors, the admin page and `docs/reference/settings.md` are made of that.
"""

import difflib
import ipaddress
import itertools
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

import msgspec

from vskill_core.errors import InvalidSettings
from vskill_platform import setting_values as values
from vskill_platform.setting_issuers import CI_ISSUERS, CiIssuer, Issuer, read_issuers

PREFIX = "VSKILL_"
#: Variables of the `vskill` client (the first two) and of its companion. A shell may have them set for both programs.
OF_THE_CLIENT = frozenset({"VSKILL_API_BASE", "VSKILL_API_URL", "VSKILL_PLATFORM_URL"})
#: The last two are for commands that act on a registry elsewhere (`vskill_client.registries`).
_NO_SETTINGS = OF_THE_CLIENT | {
    *("VSKILL_PLATFORM_REGISTRY", "VSKILL_PLATFORM_TOKEN", "VSKILL_PLATFORM_ID_TOKEN"),
}


class FixedLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What no variable sets: numbers that no operator has to choose, which tests make small; and what a file says that
    a variable names."""

    #: What VSKILL_SIGN_IN_FILE says.
    issuers: tuple[Issuer, ...] = ()
    ci_issuers: tuple[CiIssuer, ...] = CI_ISSUERS

    #: Bytes of stored content that are read and verified per second, to find damage.
    scrub_bytes_per_s: int = 2_000_000
    #: Pieces of content that are read per day from S3 to find damage; each is one GET, which may be charged.
    scrub_requests_per_day: int = 50_000
    #: Event streams that one address may hold open, per web process.
    max_streams_per_address: int = 100
    #: Alert when less than this is free on a disk that keeps records or content.
    disk_alert_mib: int = 2_048
    #: Messages per batch of the queue consumer.
    max_batch_size: int = 3
    #: Processes that scan skills, at most; 0 allows one per core.
    scan_processes: int = 0
    #: Timeout of one attempt at a submission; 0 follows the judge's.
    submission_budget_ms: int = 0
    #: An active submission without a change for this long is reported as stuck; 0 follows the attempt's timeout.
    stuck_threshold_ms: int = 0
    #: Timeout of one fetch; 0 follows the attempt's.
    fetch_budget_ms: int = 0
    #: Timeout of one external analyser per skill; less than a task of that kind may take as a whole.
    external_scan_budget_ms: int = 60_000
    #: Time that a remote analyser has to report; at most what a task may wait between two attempts.
    external_scan_callback_ms: int = 3_600_000


class Settings(FixedLimits, frozen=True, kw_only=True):
    """What an operator may set. A field `name` is the variable `VSKILL_NAME`."""

    #: Folder for everything that this process keeps on disk.
    data_dir: values.Folder = "data"
    #: Database: `sqlite:PATH`, `postgresql://…` or `memory:`. By default `vskill.db` in VSKILL_DATA_DIR.
    store: values.StoreLocation = ""
    #: Message queue: `nats://HOST:PORT`. By default the store holds the queue, in one commit with the records.
    broker: values.QueueLocation = ""
    #: Content store: `files:FOLDER`, `s3://BUCKET/FOLDER` or `memory:`. By default `blobs` in VSKILL_DATA_DIR.
    blobs: values.BlobLocation = ""
    #: Time between two commits of a git marketplace; changes in between are in the next one.
    git_list_interval_ms: values.Milliseconds = 10_000
    #: Address that the web server listens on.
    host: values.Host = "127.0.0.1"
    #: Port of the web server; 0 picks a free one.
    port: values.Port = 8080
    #: Address that people use, such as `https://skills.example.org`; required behind a proxy and for GitHub sign-in.
    public_url: values.Address = ""
    #: Where to report a weakness of this registry, for `/.well-known/security.txt`; without it there is no such file.
    security_contact: values.Contact = ""
    #: Proxies whose `X-Forwarded-For` is trusted.
    trusted_proxies: tuple[values.Network, ...] = ()
    #: Rate limiting: `on`, `remote` (all but localhost) or `off`.
    rate_limits: Literal["on", "remote", "off"] = "on"
    #: Port for the metrics of a process without a web server (`worker`, `schedule`); 0 opens none.
    metrics_port: values.Port = 0
    #: Bearer token for `/metrics` on the web port. Unset: only this machine may read it, and nobody in internal mode.
    metrics_token: values.Secret = ""
    #: OTLP endpoint for traces, such as `http://127.0.0.1:4318`; needs the `telemetry` extra. Unset: no traces.
    otlp_endpoint: values.Address = ""
    #: Batches that one worker process handles at once.
    max_concurrency: values.Count = 10
    #: Judge timeout per skill. An attempt at a submission ends after 55 s, or half as long again as this.
    judge_budget_ms: values.Milliseconds = 30_000
    #: Time that a stopping worker gives running work before it hands the work back.
    shutdown_grace_ms: values.Milliseconds = 10_000
    #: Time that a stopping web process keeps answering while `/readyz` fails; set it above the proxy's check interval.
    drain_ms: values.Drain = 0
    #: Hosts that repositories may be fetched from; `*` allows every public host, `ssh://HOST:PORT` that SSH port.
    allowed_hosts: tuple[values.HostRule, ...] = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org")
    #: Hosts that may have private addresses, such as git servers: HOST, `http://HOST:PORT` or `ssh://HOST:PORT`.
    allowed_private_hosts: tuple[values.HostRule, ...] = ()
    #: Mirrors: `https://HOST/=https://MIRROR/` fetches from the mirror; the skill keeps its public identity.
    source_rewrites: tuple[values.Rewrite, ...] = ()
    #: Log format: `console` for people, `json` for machines.
    log_format: Literal["console", "json"] = "console"
    #: Lowest level that is logged.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: Content digests that are blocked without asking the judge; a changed list makes every skill due for a new scan.
    known_bad_digests: tuple[values.Digest, ...] = ()
    #: File with known-bad hosts, accounts and SHA-256 hashes of files, one on each line; a skill with one is blocked.
    indicators_file: values.FilePath = ""
    #: Private key that signs: a file's path from / on, read again when it is replaced, or the key itself.
    signing_key: values.Secret = ""
    #: Key that seals credentials for private repositories: a file's path from / on, or the key; further keys only open.
    sealing_key: values.Secret = ""
    #: Name of the registry in its attestations and of its marketplace; set it before anybody connects a client.
    registry_name: values.Name = "vskill-platform"
    #: Whether reviewers may decide about what they submitted themselves: `off` marks it, `on` forbids it.
    four_eyes: Literal["off", "on"] = "off"
    #: What is not published without a reviewer: `open`, `guarded`, `strict`, or a file; it counts until one is set.
    policy: values.PolicySource = "open"
    #: Judge: base address of an OpenAI-compatible API, such as `http://127.0.0.1:11434/v1`.
    judge_url: values.Address = ""
    #: Model that the judge uses; required with VSKILL_JUDGE_URL.
    judge_model: values.Name = ""
    #: Bearer token for the judge.
    judge_api_key: values.Secret = ""
    #: Second judge: base address of its API. Where the two disagree, a reviewer decides.
    second_judge_url: values.Address = ""
    #: Model of the second judge, another than the first one's; required with VSKILL_SECOND_JUDGE_URL.
    second_judge_model: values.Name = ""
    #: Bearer token for the second judge.
    second_judge_api_key: values.Secret = ""
    #: Most bytes of a skill that a judge reads; the attestation says what was left out.
    judge_max_bytes: values.Bytes = 200_000
    #: Bandit program; `off` disables it. By default `bandit` on the PATH.
    bandit_command: values.Program = ""
    #: Semgrep program; `off` disables it. By default `semgrep` on the PATH.
    semgrep_command: values.Program = ""
    #: Remote analysers and the secrets that they sign with, as `name=secret`.
    external_scan_secrets: tuple[values.NamedSecret, ...] = ()
    #: Client id of the GitHub OAuth app; requires VSKILL_GITHUB_CLIENT_SECRET and VSKILL_PUBLIC_URL.
    github_client_id: values.Name = ""
    #: Client secret of the GitHub OAuth app.
    github_client_secret: values.Secret = ""
    #: Address of GitHub; change it for GitHub Enterprise Server.
    github_url: values.Address = "https://github.com"
    #: GitHub logins that may sign in; `*` is all. Where nobody is named, an internal registry lets in nobody by GitHub.
    github_allowed_logins: tuple[values.GitHubName, ...] = ()
    #: GitHub organisations, and teams as `ORGANISATION/TEAM`, whose members may sign in; it asks for `read:org`.
    github_allowed_organisations: tuple[values.GitHubGroup, ...] = ()
    #: File (TOML) with the issuers of OpenID Connect for signing in, and more for CI jobs; needs the `sso` extra.
    sign_in_file: values.FilePath = ""
    #: Forges whose CI jobs maintainers may let in without a section of VSKILL_SIGN_IN_FILE; empty: none.
    ci_forges: tuple[Literal["github", "gitlab"], ...] = ("github", "gitlab")
    #: Mail server that sends decisions: `smtp://HOST:PORT` or `smtps://USER:PASSWORD@HOST`.
    smtp_url: values.MailServer = ""
    #: Sender address of mail; required with VSKILL_SMTP_URL.
    mail_from: values.Mailbox = ""
    #: Recipient of reports, alerts, and decisions whose submitter has no e-mail address. Unset: nobody.
    mail_to: values.Mailbox = ""

    def __post_init__(self) -> None:
        """Locations that were not given follow the data folder, or the store where that is in memory; budgets follow
        that of the judge."""
        in_memory = self.store == "memory:"
        self._derive("store", f"sqlite:{Path(self.data_dir) / 'vskill.db'}")
        self._derive("broker", self.store)
        self._derive("blobs", "memory:" if in_memory else f"files:{Path(self.data_dir) / 'blobs'}")
        # Each is longer than the one before, or within the one around it (B2).
        self._derive("submission_budget_ms", max(55_000, self.judge_budget_ms * 3 // 2))
        self._derive("stuck_threshold_ms", max(300_000, self.submission_budget_ms * 2))
        self._derive("fetch_budget_ms", max(1, min(20_000, self.submission_budget_ms // 2)))

    def _derive(self, field: str, value: object) -> None:
        if not getattr(self, field):
            msgspec.structs.force_setattr(self, field, value)

    def __repr__(self) -> str:
        """Every field but the secrets, of which only that they are set; locations without their passwords."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        shown |= {name: values.shown_location(shown[name]) for name in ("store", "broker", "blobs")}
        hidden = {name: "***" for name in SECRETS if shown[name]}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in {**shown, **hidden}.items())})"


#: The settings: fields that have a variable.
CHOSEN = tuple(name for name in Settings.__struct_fields__ if name not in FixedLimits.__struct_fields__)
_FIXED = "nobody had to choose it; unset the variable"
_FOLLOWS = "it follows VSKILL_JUDGE_BUDGET_MS; unset the variable"
_DOOR = "the web server knows its limits; unset the variable"
_POLICY = (
    "in a file that begins with 'extends: open', and name it in VSKILL_POLICY (docs/reference/policy.md)"
)
_OPEN_FILES = "it follows from the limit of open files (LimitNOFILE, ulimit -n); unset the variable"
#: Settings of earlier versions, and what to do instead.
GONE = {
    "VSKILL_BODY_TIMEOUT_MS": _DOOR,
    "VSKILL_DISK_ALERT_MIB": "the alert begins below 2 GiB; unset the variable",
    "VSKILL_EXTERNAL_SCAN_BUDGET_MS": "an analyser has a minute per skill; unset the variable",
    "VSKILL_EXTERNAL_SCAN_CALLBACK_MS": "a remote analyser has an hour to report; unset the variable",
    "VSKILL_FETCH_BUDGET_MS": _FIXED,
    "VSKILL_FETCH_LIMIT_MIB": _FIXED,
    "VSKILL_GITHUB_ALLOWED_TEAMS": "name teams in VSKILL_GITHUB_ALLOWED_ORGANISATIONS, as acme/platform",
    "VSKILL_GITHUB_API_URL": "it follows VSKILL_GITHUB_URL: /api/v3 there; unset the variable",
    "VSKILL_HEADER_TIMEOUT_MS": _DOOR,
    "VSKILL_IDLE_TIMEOUT_MS": "connections stay open for 15 s; let a proxy in front close idle ones before that",
    "VSKILL_JUDGES_REQUIRED": f"write 'needs: {{judges: 1}}' {_POLICY}",
    "VSKILL_MAX_BATCH_SIZE": "VSKILL_MAX_CONCURRENCY says how much a worker does at once; unset the variable",
    "VSKILL_MAX_CONNECTIONS": _OPEN_FILES,
    "VSKILL_MAX_CONNECTIONS_PER_ADDRESS": _OPEN_FILES,
    "VSKILL_MAX_EXTERNAL_SCANS": "a worker runs one at a time: start more workers; unset the variable",
    "VSKILL_MAX_FETCHES": _FIXED,
    "VSKILL_MAX_REQUESTS": _DOOR,
    "VSKILL_MAX_REQUEST_WAIT_MS": _DOOR,
    "VSKILL_MAX_STREAMS_PER_ADDRESS": _DOOR,
    "VSKILL_REQUIRED_ANALYSERS": f"write 'needs: {{analysers: [bandit]}}' {_POLICY}",
    "VSKILL_REVIEW_NEW_CAPABILITIES": f"write rules about 'gained', or one with the name new-capability, {_POLICY}",
    "VSKILL_REVIEW_SIGNALS": f"write rules with the names copy, look-alike, host or publisher {_POLICY}",
    "VSKILL_SCAN_PROCESSES": "a worker scans on every core; unset the variable",
    "VSKILL_SCRUB_BYTES_PER_S": _FIXED,
    "VSKILL_SCRUB_REQUESTS_PER_DAY": "50,000 pieces a day are read from S3, for some 0.02 $; unset the variable",
    "VSKILL_STUCK_THRESHOLD_MS": _FOLLOWS,
    "VSKILL_SUBMISSION_BUDGET_MS": _FOLLOWS,
    "VSKILL_TRUSTED_OWNERS": f"write 'trusted: [github.com/acme]' {_POLICY}",
    "VSKILL_WORKER_NICE": "it is 10; unset the variable",
}


#: Secret fields; never shown or logged.
SECRETS = frozenset(
    name for name, kind in get_type_hints(Settings, include_extras=True).items() if values.is_secret(kind)
)


#: Where the store is if no setting says it.
DEFAULT_STORE = Settings().store.removeprefix("sqlite:")
#: Settings that are of no use without another one, and what they serve.
TOGETHER = (
    ("judge_url", "judge_model", "a judge"),
    ("judge_model", "judge_url", "a judge"),
    ("second_judge_url", "second_judge_model", "a second judge"),
    ("second_judge_model", "second_judge_url", "a second judge"),
    ("second_judge_url", "judge_url", "a second judge"),
    ("github_client_id", "github_client_secret", "signing in with GitHub"),
    ("github_client_secret", "github_client_id", "signing in with GitHub"),
    ("github_client_id", "public_url", "signing in with GitHub"),
    ("sign_in_file", "public_url", "single sign-on"),
    ("smtp_url", "mail_from", "mail"),
)


def process_settings() -> Settings:
    return load_settings(os.environ)


def keep_temporary_files_in(folder: Path) -> None:
    """Unless the operator has chosen a folder (TMPDIR), let this process and its children put temporary files here: a
    service often may write nothing but its data. Call it before SQLite is loaded, which looks once. Where the folder
    cannot be made, temporary files go where the system puts them, and readiness says whether that works."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.setdefault("TMPDIR", str(folder.absolute()))


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from `VSKILL_*` variables; InvalidSettings names the variable and the fix."""
    ours = (name for name in environ if name.startswith(PREFIX) and name not in _NO_SETTINGS)
    given = {name: environ[name] for name in ours}
    kinds = get_type_hints(Settings, include_extras=True)
    known = {variable(field): field for field in CHOSEN}
    for name in given:
        if name not in known:
            raise _unknown(name, known)
    values = {known[name]: _parse(name, text, kinds[known[name]]) for name, text in given.items()}
    settings = Settings(**values)
    check_settings(settings)
    found = read_issuers(settings.sign_in_file, settings.ci_forges)
    return msgspec.structs.replace(settings, issuers=found.issuers, ci_issuers=found.ci_issuers)


def has_own_store(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this machine has a registry of its own: the environment says where, or the default place has one."""
    named = {variable("store"), variable("data_dir")}
    return not named.isdisjoint(environ) or Path(DEFAULT_STORE).exists()


def variable(field: str) -> str:
    return PREFIX + field.upper()


def keys_folder(settings: Settings) -> Path:
    return Path(settings.data_dir) / "keys"


def check_settings(settings: Settings) -> None:
    """Refuse settings that are valid one by one but not together."""
    check_budgets(settings)
    values.check_location(settings.store, variable("store"))
    values.check_location(settings.broker, variable("broker"))
    values.check_location(settings.blobs, variable("blobs"))
    check_networks(settings)
    check_remote_analysers(settings)
    check_judges(settings)
    for given, needed, purpose in TOGETHER:
        if getattr(settings, given) and not getattr(settings, needed):
            raise InvalidSettings(
                f"{variable(given)} is set and {variable(needed)} is not: set both for {purpose}, or neither.",
                settings=[variable(given), variable(needed)],
            )


def _refuse(field: str, problem: str, fix: str) -> InvalidSettings:
    name = variable(field)
    return InvalidSettings(f"{name}{problem}{fix}.", setting=name, fix=fix)


def check_networks(settings: Settings) -> None:
    """Reject invalid proxy addresses; they would be silently ignored."""
    for text in settings.trusted_proxies:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError as error:
            fix = "give addresses or networks such as 127.0.0.1 or 10.0.0.0/8"
            raise _refuse("trusted_proxies", f": {error}; ", fix) from None


def check_remote_analysers(settings: Settings) -> None:
    """A remote analyser with the name of one that runs here would never be asked."""
    for pair in settings.external_scan_secrets:
        analyser = pair.partition("=")[0]
        # Each of those that run here has a setting for its program.
        if f"{analyser}_command" in settings.__struct_fields__:
            fix = f"give the remote analyser another name, such as {analyser}-remote"
            problem = f": {analyser} is the name of an analyser that runs here; "
            raise _refuse("external_scan_secrets", problem, fix)


def check_judges(settings: Settings) -> None:
    """Two answers of one model are one opinion."""
    if settings.second_judge_model and settings.second_judge_model == settings.judge_model:
        fix = "name another model; two answers of one model are one opinion"
        raise _refuse("second_judge_model", " is the first judge's model: ", fix)


def describe_unmet(settings: Settings, judges: int, analysers: Collection[str]) -> str:
    """What a policy needs and this registry does not have, so that nothing would ever be published without a reviewer;
    empty where it has all."""
    configured = bool(settings.judge_url) + bool(settings.second_judge_url)
    if judges > configured:
        return f"it needs {judges} judges, and {configured} are configured ({variable('judge_url')})"
    remote = {pair.partition("=")[0] for pair in settings.external_scan_secrets}
    for analyser in analysers:
        command = getattr(settings, f"{analyser}_command", None)
        if command == "off" or (command is None and analyser not in remote):
            own = f"bandit, semgrep or one of {variable('external_scan_secrets')}, and none that is off"
            return f"it needs {analyser}, which is no analyser of this registry: name {own}"
    return ""


def check_budgets(settings: Settings) -> None:
    """A budget that is not smaller than the one around it would never be the one that ends the work (B2)."""
    chain = ("judge_budget_ms", "submission_budget_ms", "stuck_threshold_ms")
    pairs = (*itertools.pairwise(chain), ("fetch_budget_ms", "submission_budget_ms"))
    for inner, outer in pairs:
        small, large = getattr(settings, inner), getattr(settings, outer)
        if small >= large:
            raise InvalidSettings(f"{inner} is {small} and must be less than {outer}, which is {large}.")


def _parse(name: str, text: str, kind: Any) -> Any:
    origin = get_origin(kind)
    raw: object = text.replace(",", " ").split() if origin is tuple else text.strip()
    try:
        return msgspec.convert(raw, kind, strict=False)
    except msgspec.ValidationError:
        fix = f"give {values.accepted_values(kind)}, or leave the variable unset"
        shown = "set to a value" if values.is_secret(kind) else f"{text!r},"
        raise InvalidSettings(
            f"{name} is {shown} which is not valid: {fix}.", setting=name, fix=fix
        ) from None


def _unknown(name: str, known: Mapping[str, str]) -> InvalidSettings:
    if name in GONE:
        return InvalidSettings(f"{name} is no setting any more: {GONE[name]}.", setting=name, fix=GONE[name])
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return InvalidSettings(
        f"There is no setting {name}; the nearest is {near[0]}. Correct the name, or unset it.",
        setting=name,
        nearest=near[0],
    )
