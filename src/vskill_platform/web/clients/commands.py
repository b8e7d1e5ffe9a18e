"""How a skill is installed: the commands of each client, for the install box of its page, for `/docs/clients`, and
for agents. They are typed as they stand here, so what could be read otherwise by a shell is quoted."""

import shlex

import msgspec

from vskill_core.naming import hyphenate
from vskill_platform.web.clients.own_client import client_command

_SAME = "The archive is the same bytes every time."
_ITS_OWNER = "The list holds all of the owner's skills."
_BY_HELPER = "Needs the token in git's credential helper."
_NODE_AND_HELPER = "Needs Node 22, and the token in git's credential helper."
_OURS = "This registry's own client, from this registry; needs uv."
_INSIDE = "Inside Claude Code; a marketplace of the whole owner is one address up."


class Way(msgspec.Struct, frozen=True):
    """One client: its tab, and what to type."""

    id: str
    title: str
    commands: tuple[str, ...]
    note: str = ""


def install_commands(
    base_url: str, canonical: str, name: str, *, listed: str, with_token: bool
) -> tuple[Way, ...]:
    """Of every client, in the order in which they are shown; each means this skill and no other. `base_url` ends
    without a slash, `name` is the skill's in its own marketplace and `listed` in its owner's. `with_token` is for a
    skill that not everybody may read."""
    repository = _word(f"{base_url}/marketplace/{canonical}.git")
    clawhub = f"npx clawhub --registry {base_url}/clawhub"
    marketplace = f"{base_url}/{canonical}/marketplace.json"
    claude = f"/plugin install {name}@{marketplace_name(canonical)}"
    archive = f"-o {name}.zip {_word(f'{base_url}/api/v1/skills/{canonical}/archive')}"
    unzip = f"unzip {name}.zip -d {name}"
    install = f"{clawhub} install {_word(flat_name(canonical))}"
    client = client_command(base_url)
    own = f"{client} --registry {base_url} install {_word(canonical)}"
    by_list = _from_list(base_url, canonical, listed, _BY_HELPER if with_token else _ITS_OWNER)
    if with_token:
        by_settings = f"Once the settings of Claude Code name {marketplace} with the token."
        curl = f'curl -fsSL -H "Authorization: Bearer TOKEN" {archive}'
        return (
            Way("skills", "skills", (f"npx skills add {repository}",), _NODE_AND_HELPER),
            Way("clawhub", "clawhub", (f"{clawhub} login --token TOKEN", install)),
            Way("claude", "Claude Code", (claude,), by_settings),
            *by_list,
            Way("own", "vskill-client", (f"{client} login {base_url}", own), _OURS),
            Way("curl", "curl", (curl, unzip), _SAME),
        )
    place = install_address(base_url, canonical)
    return (
        Way("skills", "skills", (f"npx skills add {place}",), "The client of skills.sh; needs Node 22."),
        Way("clawhub", "clawhub", (install,)),
        Way("claude", "Claude Code", (f"/plugin marketplace add {marketplace}", claude), _INSIDE),
        *by_list,
        Way("gemini", "Gemini CLI", (f"gemini extensions install {repository}",)),
        Way("own", "vskill-client", (own,), _OURS),
        Way("curl", "curl", (f"curl -fsSL {archive}", unzip), _SAME),
    )


def _from_list(base_url: str, canonical: str, listed: str, note: str) -> tuple[Way, ...]:
    """Clients that clone the list of an owner."""
    owner = canonical.partition("/")[0]
    place, wanted = _word(f"{base_url}/{owner}.git"), f"{listed}@{marketplace_name(owner)}"
    copilot = (f"copilot plugin marketplace add {place}", f"copilot plugin install {wanted}")
    return (
        Way("codex", "Codex", (f"codex plugin marketplace add {place}", f"codex plugin add {wanted}"), note),
        Way("copilot", "Copilot CLI", copilot, note),
    )


def install_address(base_url: str, canonical: str) -> str:
    """What `npx skills add` is given for one skill, as it is typed."""
    return _word(f"{base_url}/{canonical}")


def _word(text: str) -> str:
    """Quoted where a shell needs it; a `~` means something at the beginning of a word only."""
    plain = text[:1] + text[1:].replace("~", "")
    return text if shlex.quote(plain) == plain else shlex.quote(text)


def flat_name(canonical: str) -> str:
    """As ClawHub's protocol writes a name that can mean one skill only."""
    return canonical.replace("/", "--")


def marketplace_name(text: str) -> str:
    """A marketplace's name has no spaces: lower-case words with single hyphens."""
    return hyphenate(text) or "skills"
