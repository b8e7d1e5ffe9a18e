"""The main pages, by name, as they are with the bundled examples; and every page of an admin."""

from vskill_platform.web.app import ENDPOINTS

CSV = "/skills/vskill-harbour/data-skills/csv-cleaner"
TOUR = "https://github.com/vskill-examples/tour"

PUBLIC = {
    "home": "/",
    "skills": "/skills",
    "search": "/skills?q=csv",
    "no hits": "/skills?q=zebra",
    "filtered": "/skills?category=data&licence=MIT",
    "chosen": "/skills?without=network,scripts",
    "compare": "/compare?a=vskill-harbour/data-skills/csv-cleaner&b=vskill-lintel/engineering/changelog-writer",
    "skill": CSV,
    "files": f"{CSV}/files",
    "file": f"{CSV}/files/SKILL.md",
    "versions": f"{CSV}/versions",
    "changes": f"{CSV}/versions/diff?from=1.0.0&to=1.1.0",
    "security": f"{CSV}/security",
    "owner": "/owners/vskill-lintel",
    "submit": "/submit",
    "docs": "/docs",
    "document": "/docs/docs/glossary.md",
    "clients": "/docs/clients",
    "reference": "/docs/api",
    "queue": "/queue",
    "recalls": "/revocations",
    "sign in": "/signin",
}

#: Pages that only somebody who signed in sees, as far as their addresses name nothing.
SIGNED_IN = {
    one.path.removeprefix("/"): one.path
    for one in ENDPOINTS
    if one.method == "GET" and one.media == "text/html" and "{" not in one.path
    if one.path.startswith(("/admin", "/account", "/device", "/namespaces"))
}
