"""How a skill is installed: the commands of each client, as the install box shows them."""

import msgspec
from starlette.requests import Request

from vskill_platform.store.dossier import Dossier
from vskill_platform.worker_context import require_env


class Way(msgspec.Struct, frozen=True):
    """One client: its tab, and what to type."""

    id: str
    title: str
    commands: tuple[str, ...]
    note: str = ""


def base_address(request: Request) -> str:
    """Where people reach this registry, without a last slash."""
    public = require_env("settings").settings.public_url
    return (public or str(request.base_url)).rstrip("/")


def ways_to_install(request: Request, dossier: Dossier) -> tuple[Way, ...]:
    """The command of each client; nothing for what cannot be installed."""
    if not dossier.installable:
        return ()
    base, skill = base_address(request), dossier.skill
    archive = f"{base}/api/v1/skills/{skill.canonical}/archive"
    return (
        Way("skills", "skills", (f"npx skills add {base}/{skill.canonical}",), "The client of skills.sh."),
        Way(
            "vskill",
            "vskill",
            (
                f"export VSKILL_PLATFORM_URL={base} VSKILL_API_URL={base}",
                f"npx vskill install {skill.canonical}",
            ),
        ),
        Way("clawhub", "clawhub", (f"npx clawhub --registry {base}/clawhub install {skill.slug}",)),
        Way(
            "claude",
            "Claude Code",
            (f"/plugin marketplace add {base}/marketplace.json", f"/plugin install {skill.slug}"),
            "Inside Claude Code.",
        ),
        Way(
            "curl",
            "curl",
            (f"curl -fsSL -o {skill.slug}.zip {archive}", f"unzip {skill.slug}.zip -d {skill.slug}"),
            "The archive is the same bytes every time.",
        ),
    )
