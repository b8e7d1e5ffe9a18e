"""How a skill is installed: the commands of each client, for the install box of its page, for `/docs/clients`, and
for agents. They are typed as they stand here, so what could be read otherwise by a shell is quoted."""

import shlex

import msgspec

from vskill_core.naming import hyphenate

_SAME = "The archive is the same bytes every time."
_ITS_OWNER = "The list holds all of the owner's skills."
_BY_HELPER = "Needs the token in git's credential helper."


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
    by_list = _from_list(base_url, canonical, listed, _BY_HELPER if with_token else _ITS_OWNER)
    return (_with_token if with_token else _for_everybody)(base_url, canonical, name, by_list)


def _from_list(base_url: str, canonical: str, listed: str, note: str) -> tuple[Way, ...]:
    """Clients that clone the list of an owner."""
    owner = canonical.partition("/")[0]
    place, wanted = _word(f"{base_url}/{owner}.git"), f"{listed}@{marketplace_name(owner)}"
    return (
        Way("codex", "Codex", (f"codex plugin marketplace add {place}", f"codex plugin add {wanted}"), note),
        Way(
            "copilot",
            "Copilot CLI",
            (f"copilot plugin marketplace add {place}", f"copilot plugin install {wanted}"),
            note,
        ),
    )


def _for_everybody(base_url: str, canonical: str, name: str, by_list: tuple[Way, ...]) -> tuple[Way, ...]:
    place = install_address(base_url, canonical)
    archive = _word(f"{base_url}/api/v1/skills/{canonical}/archive")
    return (
        Way("skills", "skills", (f"npx skills add {place}",), "The client of skills.sh; needs Node 22."),
        Way(
            "clawhub",
            "clawhub",
            (f"npx clawhub --registry {base_url}/clawhub install {_word(flat_name(canonical))}",),
        ),
        Way(
            "claude",
            "Claude Code",
            (
                f"/plugin marketplace add {base_url}/{canonical}/marketplace.json",
                f"/plugin install {name}@{marketplace_name(canonical)}",
            ),
            "Inside Claude Code; a marketplace of the whole owner is one address up.",
        ),
        *by_list,
        Way(
            "gemini",
            "Gemini CLI",
            (f"gemini extensions install {_word(f'{base_url}/marketplace/{canonical}.git')}",),
        ),
        Way("curl", "curl", (f"curl -fsSL -o {name}.zip {archive}", f"unzip {name}.zip -d {name}"), _SAME),
    )


def install_address(base_url: str, canonical: str) -> str:
    """What `npx skills add` is given for one skill, as it is typed."""
    return _word(f"{base_url}/{canonical}")


def _with_token(base_url: str, canonical: str, name: str, by_list: tuple[Way, ...]) -> tuple[Way, ...]:
    repository = _word(f"{base_url}/marketplace/{canonical}.git")
    clawhub = f"npx clawhub --registry {base_url}/clawhub"
    archive = _word(f"{base_url}/api/v1/skills/{canonical}/archive")
    curl = f'curl -fsSL -H "Authorization: Bearer TOKEN" -o {name}.zip {archive}'
    return (
        Way(
            "skills",
            "skills",
            (f"npx skills add {repository}",),
            "Needs Node 22, and the token in git's credential helper.",
        ),
        Way(
            "clawhub",
            "clawhub",
            (f"{clawhub} login --token TOKEN", f"{clawhub} install {_word(flat_name(canonical))}"),
        ),
        Way(
            "claude",
            "Claude Code",
            (f"/plugin install {name}@{marketplace_name(canonical)}",),
            f"Once the settings of Claude Code name {base_url}/{canonical}/marketplace.json with the token.",
        ),
        *by_list,
        Way("curl", "curl", (curl, f"unzip {name}.zip -d {name}"), _SAME),
    )


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
