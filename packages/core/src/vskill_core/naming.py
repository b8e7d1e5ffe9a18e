"""How published skills are called: canonical names, slugs and the flat names that may mean them.

Publishing names a skill here once, from its normalised identity. The canonical name is the key of its record
and stays for ever, whatever the skill is called later; flat names are only ways to find it.
"""

import hashlib
import unicodedata

from vskill_core.identity import Identity

MAX_SLUG = 100
#: Length limit of a skill's name, by the Agent Skills specification and its clients.
NAME_LENGTH = 64
#: Hexadecimal digits that replace a text without a usable letter.
_MARK = 8
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_NEUTRAL_MARKS = frozenset("-._")
#: Translates ASCII characters that are not allowed in a plain name.
_ASCII_PLAIN = {code: "-" for code in range(128) if chr(code) not in _PLAIN}
_ASCII_SLUG = {code: "-" for code in range(128) if not (chr(code).isalnum() or chr(code) in _NEUTRAL_MARKS)}

#: first segments of our own pages and interfaces; an owner of this name is shown with its host instead
RESERVED_OWNERS = frozenset(
    {
        ".well-known",
        "about",
        "account",
        "accounts",
        "admin",
        "alias",
        "api",
        "assets",
        "auth",
        "badge",
        "blocklist",
        "check-updates",
        "clawhub",
        "client",
        "collection",
        "collections",
        "device",
        "docs",
        "events",
        "favicon.ico",
        "feed",
        "feeds",
        "healthz",
        "help",
        "installs",
        "login",
        "logout",
        "marketplace",
        "marketplace.json",
        "mcp",
        "metrics",
        "openapi.json",
        "owner",
        "owners",
        "publishers",
        "queue",
        "readyz",
        "reports",
        "review",
        "robots.txt",
        "search",
        "settings",
        "sitemap.xml",
        "skill",
        "skills",
        "static",
        "stats",
        "stream",
        "submission",
        "submissions",
        "submit",
        "trust",
        "upload",
        "upstream",
        "upstreams",
        "user",
        "users",
        "webhooks",
    }
)


def canonical_name(identity: Identity, slug: str | None = None) -> str:
    """`owner/repo/slug`: always three parts, without `:`, and with the host wherever it is not GitHub.

    A GitHub owner whose name is one of our routes keeps its host too, so it can publish and we keep the
    route.
    """
    # An unchecked record may hold a repository with a slash; a page about it must not break.
    _, owner, repo = identity.repo_key.split("/", 2)
    if identity.host != "github.com" or owner in RESERVED_OWNERS:
        owner = f"{identity.host_segment}~{owner}"
    return f"{owner}/{repo}/{slug or slug_of(identity)}"


def slug_of(identity: Identity) -> str:
    """The folder that holds SKILL.md, or the repository's name at the root, without case."""
    return slugify(identity.path.rpartition("/")[2] or identity.repo)


def slugify(text: str) -> str:
    """Letters, digits, `-`, `.` and `_`; all else becomes a `-`, and an empty result becomes `skill`."""
    if text.isascii():
        dashed = text.lower().translate(_ASCII_SLUG)
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        dashed = "".join(c if _belongs_in_slug(c) else "-" for c in folded)
    joined = "-".join(part for part in dashed.split("-") if part)
    return joined[:MAX_SLUG].strip("-.") or "skill"


def is_plain_name(name: str) -> bool:
    """1 to 64 of a-z, 0-9 and single hyphens between them: what every client accepts."""
    return len(name) <= NAME_LENGTH and _PLAIN.issuperset(name) and all(name.split("-"))


def plain_name(text: str) -> str:
    """The plain name nearest to a text (deterministic); `skill-` and a hash if no letter is left."""
    hyphened = hyphenate(text)[:NAME_LENGTH].strip("-")
    return hyphened or f"skill-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:_MARK]}"


def hyphenate(text: str) -> str:
    """Lower-case letters, digits and single hyphens for everything else; may be empty."""
    lower = text.lower()
    if text.isascii():
        plain = lower.translate(_ASCII_PLAIN)
    else:
        plain = "".join(char if char in _PLAIN else "-" for char in lower)
    return "-".join(part for part in plain.split("-") if part)


def clash_slug(slug: str, identity: Identity) -> str:
    """The slug of a second place in a repository whose folder has the same name; no plain slug has a `~`."""
    return f"{slug}~{hashlib.sha256(identity.key.encode()).hexdigest()[:6]}"


def name_note(slug: str, declared: str | None) -> str | None:
    """What to tell an author whose folder and SKILL.md give two names; None where they agree."""
    if not declared or slugify(declared) == slug.partition("~")[0]:
        return None
    return f"It is published as {slug}, the name of its folder; SKILL.md calls it {declared}."


def alias_names(slug: str, name: str) -> tuple[str, ...]:
    """The flat names of a skill: its slug, the slug without a clash suffix, and its name as a slug."""
    return tuple(sorted({slug, slug.partition("~")[0], slugify(name or slug)}))


def _belongs_in_slug(char: str) -> bool:
    """Combining marks too: many scripts write their vowels with them."""
    return char.isalnum() or char in _NEUTRAL_MARKS or unicodedata.category(char).startswith("M")
