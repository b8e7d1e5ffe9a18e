"""What the code analysis knows of the world by name: where secrets lie, what survives a restart, whom an address
belongs to. Tables of patterns over literals; the languages' own files know which calls read, write, send and run.
"""

from collections.abc import Mapping
from functools import lru_cache

import re2

from vskill_scan.words import words

_SECRETS = {
    "ssh": r"\.ssh(?:/|\\|$|\b)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b",
    "cloud": r"\.aws(?:[/\\]|$|\s)|\.config[/\\]gcloud|application_default_credentials|\.azure\b|"
    r"\.kube[/\\]config|\.oci[/\\]|doctl|\.terraform\.d",
    "registry": r"\.npmrc\b|\.pypirc\b|\.docker[/\\]config\.json|\.netrc\b|\.git-credentials|"
    r"\.config[/\\]gh[/\\]hosts|\.cargo[/\\]credentials|\.gem[/\\]credentials",
    "gpg": r"\.gnupg\b",
    "wallet": r"wallet\.dat|\.ethereum\b|\.bitcoin\b|\.config[/\\]solana|\bsolana[/\\]id\.json|"
    r"[Ee]lectrum|[Ee]xodus\b|MetaMask|nkbihfbeogaeaoehlefnkodbefgpgknn|"
    r"bfnaelmomeimhlpmgjnjophhpkkoljpa|\.monero\b|\.electron-cash|atomic[/\\]Local Storage|"
    r"ledger live|keystore[/\\]UTC|mnemonic\.txt|seed[_-]?phrase",
    "browser": r"Login Data|cookies\.sqlite|logins\.json|key4\.db|User Data[/\\]|[/\\]Cookies\b|"
    r"Local State\b|BraveSoftware|Google[/\\]Chrome|google-chrome|\.mozilla[/\\]firefox|"
    r"Firefox[/\\]Profiles|Web Data\b|Microsoft[/\\]Edge",
    "keychain": r"Library[/\\]Keychains|login\.keychain|find-(?:generic|internet)-password|"
    r"dump-keychain|Microsoft[/\\](?:Credentials|Protect)\b|\.local[/\\]share[/\\]keyrings|"
    r"secret-tool",
    "agent": r"\.claude(?:\.json|[/\\](?:\.credentials|projects|history))|\.codex[/\\]auth|"
    r"\.cursor[/\\]auth|\.config[/\\](?:anthropic|openai)|\.gemini[/\\]oauth",
    # Where an agent keeps the settings of all its skills: one value of it is how a skill is configured. What lies
    # deeper in these folders belongs to a skill.
    "agent-config": r"\.claude[/\\]settings|\.cursor[/\\]mcp|\.aider|(?:openclaw|clawdbot|moltbot)\.json|"
    r"\.(?:openclaw|clawdbot|moltbot)(?:[/\\](?:\.env|credentials|agents))?[/\\]?\*?[\"'\s]*$",
    "chat": r"Telegram Desktop|\btdata\b|discord[/\\]Local Storage|Signal[/\\]config|"
    r"Slack[/\\](?:Cookies|storage)",
    "vault": r"\.password-store|1Password|\.bitwarden|\.kdbx\b|lastpass",
    "system": r"/etc/(?:shadow|sudoers|passwd)\b|/proc/(?:self|[0-9]+|\*)/environ|"
    r"\bSAM\b.{0,4}SYSTEM|ntds\.dit",
    "history": r"\.(?:bash|zsh|python|psql|mysql|node_repl)_history|ConsoleHost_history|HistorySavePath",
    "dotenv": r"(?:^|[/\\\s\"'=@])\.env(?:\.(?:local|production|prod|development|dev|staging))?(?:$|[\s\"';)|&<>])",
    "metadata": r"169\.254\.169\.254|metadata\.google\.internal|100\.100\.100\.200",
}
_PERSISTENCE = {
    "cron": r"/etc/cron|/var/spool/cron|\bcrontab\b",
    "launchd": r"Library/Launch(?:Agents|Daemons)",
    "systemd": r"/etc/systemd/|\.config/systemd/|/lib/systemd/|\.config/autostart|/etc/rc\.local|"
    r"/etc/init\.d",
    "profile": r"\.(?:bashrc|zshrc|bash_profile|zprofile|zshenv|profile|bash_login)\b|config\.fish|"
    r"HOME\}?/\.\w{0,8}rc\b|/etc/profile|Microsoft\.PowerShell_profile|\w\.pth$|(?:site|user)customize\.py|"
    r"(?:\.ipython|profile_default).{0,40}[/\\]startup\b",
    "authorized_keys": r"authorized_keys",
    "git-hook": r"\.git/hooks/|core\.hooksPath",
    "registry": r"CurrentVersion\\+Run|HKCU:?\\+.*\\+Run\b|Winlogon",
    "startup": r"Start Menu.{0,3}Programs.{0,3}Startup",
    "agent": r"(?:^|[/\\~\s\"'])(?:CLAUDE|AGENTS|SOUL|MEMORY|GEMINI|HEARTBEAT)\.md\b|"
    r"\.claude[/\\](?:settings|hooks|agents|commands|skills)|\.cursor[/\\](?:rules|mcp)|"
    r"\.cursorrules|\.mcp\.json|\.openclaw[/\\]|copilot-instructions\.md|\.windsurfrules|"
    r"\.codex[/\\](?:config|AGENTS)",
    "sudoers": r"/etc/sudoers",
    "hosts": r"/etc/hosts\b",
}

#: Files that git runs by their names, in a folder that its settings name.
GIT_HOOKS = frozenset(
    words(
        "applypatch-msg pre-applypatch post-applypatch pre-commit prepare-commit-msg commit-msg post-commit pre-rebase "
        "post-checkout post-merge pre-push pre-receive update post-receive post-update pre-auto-gc post-rewrite"
    )
)
_NEARBY = frozenset(words("localhost 0.0.0.0 [::1] host.docker.internal"))
_HOST = re2.compile(
    r"(?i)(?:https?|wss?|ftp|tcp|ssh)://(?:[^/\s@\"'`]{1,80}@)?([a-z0-9.\-_\[\]:]{2,120})(/[^\s\"'`)>]{0,60})?"
)
IP_DOTS = 3
_BARE_IP = re2.compile(r"\b([0-9]{1,3}(?:\.[0-9]{1,3}){3})\b")
_IP = re2.compile(r"^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$")


class _Table:
    """Patterns by name; one search tells whether any can match."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._rows = [(name, re2.compile(pattern)) for name, pattern in rows.items()]
        self._any = re2.compile("|".join(f"(?:{pattern.pattern})" for _, pattern in self._rows))

    def find(self, text: str) -> str:
        if not self._any.search(text):
            return ""
        return next((name for name, pattern in self._rows if pattern.search(text)), "")


#: What code must say to read a secret, or to leave something behind that outlives the session.
TELLING_PATHS = re2.compile(
    "|".join(
        f"(?:{pattern})"
        for pattern in (
            *(*_SECRETS.values(), *_PERSISTENCE.values()),
            r"\b(?:launchctl|systemctl|schtasks|winreg|reg\s+add)\b",
            r"(?m)(?:^|[;|&(])[ \t]*(?:sudo[ \t]+)?at[ \t]+(?:-|now\b|\d|midnight|noon|teatime|tomorrow|next\b)",
        )
    ).encode()
)
#: Where secrets lie, as prose and code name it.
SECRET_PATHS = re2.compile("|".join(f"(?:{pattern})" for pattern in _SECRETS.values()).encode())
_SECRET_TABLE = _Table(_SECRETS)
_PERSISTENCE_TABLE = _Table(_PERSISTENCE)


@lru_cache(maxsize=4096)
def secret_at(text: str) -> str:
    """What kind of secret lies at the path that a literal names; "" for none."""
    return _SECRET_TABLE.find(text) if 3 < len(text) < 2000 and not _harmless(text) else ""


def _harmless(text: str) -> bool:
    return text.endswith((".pub", "known_hosts", ".env.example", ".env.sample", ".env.template"))


#: Services whose keys programs find in the environment: how the names of the keys begin, and words of their hosts.
_SERVICES = (
    ("OPENAI", "openai azure"), ("ANTHROPIC", "anthropic claude"), ("CLAUDE", "anthropic claude"),
    ("GITHUB", "github ghcr"), ("GH", "github ghcr"), ("GITLAB", "gitlab"), ("BITBUCKET", "bitbucket atlassian"),
    ("SLACK", "slack"), ("AWS", "amazonaws aws"), ("GCP", "google gcr"), ("GOOGLE", "google gcr"),
    ("AZURE", "azure microsoft windows"), ("STRIPE", "stripe"), ("TWILIO", "twilio"), ("SENDGRID", "sendgrid"),
    ("NPM", "npmjs npm github"), ("PYPI", "pypi pythonhosted"), ("DOCKER", "docker"), ("DATADOG", "datadog"),
    ("DISCORD", "discord"), ("HEROKU", "heroku"), ("CLOUDFLARE", "cloudflare"), ("DIGITALOCEAN", "digitalocean"),
    ("HUGGINGFACE", "huggingface"), ("HF", "huggingface hf"), ("MAILGUN", "mailgun"), ("NOTION", "notion"),
    ("LINEAR", "linear"), ("JIRA", "atlassian jira"), ("VERCEL", "vercel"), ("NETLIFY", "netlify"),
    ("SENTRY", "sentry"), ("PAGERDUTY", "pagerduty"), ("OKTA", "okta"), ("SHOPIFY", "shopify"),
)  # fmt: skip
_HOST_WORDS = {name: frozenset(words(hosts)) for name, hosts in _SERVICES}
_KEY_ENDS = "KEY|TOKEN|SECRET|PASSWORD|PASSWD|PAT|CREDENTIALS"
#: Keys that no service is given as they are: they sign, encrypt, or open the user's own things.
_OWN_KEYS = (
    r"(?:\w+_)?(?:SSH|RSA|SIGNING|WALLET)_?(?:PRIVATE_)?KEY|(?:\w+_)?PRIVATE_KEY|JWT_SECRET|DATABASE_URL|DB_PASSWORD|"
    r"PGPASSWORD|AWS_SECRET_ACCESS_KEY|(?:GCP|GOOGLE)_SERVICE_ACCOUNT(?:_KEY)?|MNEMONIC|SEED_PHRASE|SECRET_KEY_BASE"
)
#: What names the key of a service, as it stands in code.
KEY_NAMES = rf"{_OWN_KEYS}|(?:{'|'.join(_HOST_WORDS)})_(?:\w+_)?(?:{_KEY_ENDS})"
_KEY_NAME = re2.compile(rf"^(?:{KEY_NAMES})$")
_OWN_KEY = re2.compile(rf"^(?:{_OWN_KEYS})$")


def service_words(name: str) -> frozenset[str]:
    """Words of the hosts of the service that keys and settings with this first word belong to; none for others."""
    return _HOST_WORDS.get(name, frozenset())


@lru_cache(maxsize=4096)
def is_service_key(name: str) -> bool:
    """Whether a variable of this name holds a key of a service that we know, or one that is nobody else's."""
    return _KEY_NAME.match(name) is not None


@lru_cache(maxsize=4096)
def is_foreign(name: str, host: str) -> bool:
    """Whether this key has no business at that host."""
    if is_nearby(host):
        return False
    if _OWN_KEY.match(name):
        return True
    return not any(word in host for word in service_words(name.partition("_")[0]))


@lru_cache(maxsize=4096)
def persists_at(text: str) -> str:
    """What survives a restart if the path that a literal names is written; "" for nothing."""
    return _PERSISTENCE_TABLE.find(text) if 3 < len(text) < 2000 else ""


#: Everything that a user has: the home folder as a whole, or the folders in it that hold their work.
_EVERYTHING = re2.compile(
    r"^(?:~|/|/home|/Users|/root|\$\{?HOME\}?|[Cc]:)(?:/(?:home|Users))?/?"
    r"(?:[*.].{0,20}|\{?(?:Documents|Desktop|Pictures|Downloads)\b.{0,80})?$"
)


@lru_cache(maxsize=4096)
def is_broad(path: str) -> bool:
    """Whether a path names everything that a user has, or a whole system."""
    plain = path.replace("\\", "/").strip("\"'")
    return (_EVERYTHING.match(plain) is not None and not plain.startswith("~/.")) or plain in {
        "~/.*",
        "~/.[!.]*",
    }


@lru_cache(maxsize=4096)
def host_in(text: str) -> str:
    """The host that a literal addresses; "" for none."""
    match = _HOST.search(text) if "://" in text else None
    if match:
        return str(match.group(1)).lower().rstrip(".:").rsplit("@", 1)[-1]
    bare = _BARE_IP.search(text) if text.count(".") >= IP_DOTS else None
    return str(bare.group(1)) if bare else ""


@lru_cache(maxsize=4096)
def is_nearby(host: str) -> bool:
    """Whether this is this machine, or an address that nobody else can reach."""
    name = host.rsplit(":", 1)[0] if host.count(":") == 1 else host
    return (
        _private(name) if _IP.match(name) else any(name == one or name.endswith(f".{one}") for one in _NEARBY)
    )


def _private(address: str) -> bool:
    numbers = [int(part) for part in address.split(".")]
    return (
        numbers[0] in {0, 10, 127}
        or numbers[:2] == [192, 168]
        or numbers[:2] == [169, 254]
        or (numbers[0] == 172 and 16 <= numbers[1] <= 31)
        or max(numbers) > 255
    )
