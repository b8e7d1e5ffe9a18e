"""How published skills are called: canonical names, and the flat names that may mean them.

Publishing names a skill here once, from its normalised identity. The canonical name is the key of its record
and stays for ever, whatever the skill is called later; flat names are only ways to find it.
"""

import hashlib

from vskill_core.identity import Identity
from vskill_core.naming import slug_of, slugify

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


def clash_slug(slug: str, identity: Identity) -> str:
    """The slug of a second place in a repository whose folder has the same name; no plain slug has a `~`."""
    return f"{slug}~{hashlib.sha256(identity.key.encode()).hexdigest()[:6]}"


def alias_names(slug: str, name: str) -> tuple[str, ...]:
    """The flat names of a skill: its slug, the slug without a clash suffix, and its name as a slug."""
    return tuple(sorted({slug, slug.partition("~")[0], slugify(name or slug)}))
