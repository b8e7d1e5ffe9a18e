"""The main pages, by name, as they are with the bundled examples."""

CSV = "/skills/vskill-harbour/data-skills/csv-cleaner"
TOUR = "https://github.com/vskill-examples/tour"

PUBLIC = {
    "home": "/",
    "skills": "/skills",
    "search": "/skills?q=csv",
    "no hits": "/skills?q=zebra",
    "filtered": "/skills?category=data&licence=MIT",
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
    "sign in": "/signin",
}
