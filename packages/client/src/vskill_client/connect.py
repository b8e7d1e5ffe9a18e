"""`connect` and `git-credential`: point the agents of this machine at a registry, and hand its token to git.

`connect` shows what it would write into a client's settings, writes it with `--yes`, and `--undo` brings the old bytes
back. What it wrote is noted beside the tokens of `login`.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from vskill_client.destination import Destination, current_destination
from vskill_client.registries import read_own_file, read_tokens, remote_variables, replace_file
from vskill_client.settings_files import put_json_entry, put_section, take_out, take_out_member
from vskill_core.errors import InvalidInput, RegistryUnavailable
from vskill_core.foreign_json import read_json

NOTES = "connected.json"


class WrittenEntry(msgspec.Struct, frozen=True):
    """What is put into one file."""

    path: str
    #: the file as it was; None where there was none
    before: bytes | None
    after: bytes
    #: what is put in
    put: str


class ListAddress(msgspec.Struct, frozen=True):
    """The list of skills that a client is pointed at."""

    registry: str
    #: below the registry, without an ending
    path: str
    #: the marketplace's name
    name: str

    @property
    def git(self) -> str:
        return f"{self.registry}/{self.path}.git"


@click.command("connect")
@click.argument(
    "client",
    type=click.Choice(("claude", "codex", "copilot", "opencode", "gemini", "skills", "clawhub", "vskill")),
)
@click.option("--owner", help="Only the skills of this owner or namespace.")
@click.option("--collection", help="Only this collection.")
@click.option("--yes", is_flag=True, help="Write what is shown.")
@click.option("--undo", is_flag=True, help="Take back what an earlier call wrote.")
@click.pass_obj
def connect_client(
    connection: Destination, *, client: str, owner: str | None, collection: str | None, yes: bool, undo: bool
) -> None:
    """Point a client of this machine at the registry of --registry.

    Shows what it would write into the client's settings; --yes writes it. With a token that `login` keeps, git gets it
    from the command `git-credential`, so that no file of the client holds it.
    """
    if undo:
        _undo(client)
        return
    if owner and collection:
        raise click.UsageError("give --owner or --collection, not both")
    if not connection.registry:
        raise connection.no_registry()
    address = _find_list(connection, client, owner, collection)
    planned = list(_plan(client, address, has_token=connection.token is not None))
    for entry in planned:
        click.echo(f"{entry.path}:\n{entry.put.strip()}\n")
    click.echo(_next_step(client, address))
    if planned and yes:
        _write(client, planned)
        click.echo(f"Written. `{connection.program} connect {client} --undo` takes it back.")
    elif planned:
        click.echo("Nothing is written yet: add --yes.")


@click.command("git-credential")
@click.argument("operation", type=click.Choice(("get", "store", "erase")))
def git_credential(*, operation: str) -> None:
    """Hand git the token that `login` keeps for a registry; git calls this itself."""
    asked = dict(line.rstrip("\n").split("=", 1) for line in sys.stdin if "=" in line)
    if operation != "get":
        return
    wanted = (asked.get("protocol", ""), asked.get("host", ""))
    for address, token in read_tokens(remote_variables().folder).items():
        if urlsplit(address)[:2] == wanted:
            click.echo(f"username=any\npassword={token}")
            return


# What is written.


def _find_list(
    connection: Destination, client: str, owner: str | None, collection: str | None
) -> ListAddress:
    """The list's address, and the name that the registry gives it."""
    import httpx2

    # OpenCode sends no token, so it is pointed at what can be read without one.
    token = None if client == "opencode" else connection.token
    everything = "internal/marketplace" if token else "marketplace"
    scope = f"collections/{collection}" if collection else owner or ""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    document = "/".join(filter(None, (connection.registry, scope, "marketplace.json")))
    try:
        answer = httpx2.get(document, headers=headers, timeout=30)
        if client == "opencode" and answer.status_code in (401, 404):
            message = f"{document} cannot be read without a token, and OpenCode sends none."
            fix = "name a public owner or collection, or use another client for private skills"
            raise InvalidInput(message, field="--collection" if collection else "--owner", fix=fix)
        answer.raise_for_status()
        name = str(read_json(answer.content, dict[str, object])["name"])
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        raise RegistryUnavailable(f"{document} cannot be read: {error}") from error
    ending = "-internal" if token and not scope else ""
    return ListAddress(connection.registry, scope or everything, name + ending)


def _plan(client: str, address: ListAddress, *, has_token: bool) -> Iterator[WrittenEntry]:
    """What is missing in the client's settings, and in git's where a token is needed."""
    home, name, there = Path.home(), address.name, f'"{address.git}"'
    if client in ("claude", "copilot"):
        path = home / f".{client}" / "settings.json"
        member = f'"{name}": {{"source":{{"source":"git","url":{there}}}}}'
        known = ("extraKnownMarketplaces",)
        yield from _missing(path, there, lambda text: put_json_entry(text, known, member), f'"{name}"')
    elif client == "codex":
        head = f"[marketplaces.{name}]"
        section = f'{head}\nsource_type = "git"\nsource = {there}\n'
        yield from _missing(
            home / ".codex" / "config.toml", there, lambda text: put_section(text, section), head
        )
    elif client == "opencode":
        folder = home / ".config" / "opencode"
        commented = folder / "opencode.jsonc"
        path = commented if commented.exists() else folder / "opencode.json"
        scope = "" if address.path.endswith("marketplace") else f"/{address.path}"
        url = f'"{address.registry}{scope}/.well-known/skills/"'
        yield from _missing(
            path, url, lambda text: put_json_entry(text, ("skills", "urls"), url, is_item=True)
        )
    if has_token and client in ("claude", "copilot", "codex"):
        head = f'[credential "{address.registry}"]'
        helper = f"{head}\n\thelper = !{current_destination().program} git-credential\n"
        yield from _missing(home / ".gitconfig", head, lambda text: _put_helper(text, helper))


def _put_helper(text: str, helper: str) -> tuple[str, str]:
    """Git calls the helper later. What `uvx` runs lies in a cache, which may be gone by then."""
    if any((folder / "CACHEDIR.TAG").exists() for folder in Path(sys.prefix).parents):
        message = "Git would call this command later, and `uvx` keeps it in a cache only."
        raise InvalidInput(message, field="client", fix="install it with `uv tool install`, then connect")
    return put_section(text, helper)


def _missing(
    path: Path, there: str, put: Callable[[str], tuple[str, str]], name: str = ""
) -> Iterator[WrittenEntry]:
    """What is put into a file, unless it is there already. Two entries of one name would be read differently by each
    program."""
    before = path.read_bytes() if path.exists() else None
    text = (before or b"").decode()
    if there in text:
        return
    if name and name in text:
        message = f"{path} has {name} already, with another address."
        raise InvalidInput(message, field="file", fix="remove that entry first")
    after, entry = put(text)
    yield WrittenEntry(str(path), before, after.encode(), entry)


def _next_step(client: str, address: ListAddress) -> str:
    """What to type then, or where there is nothing to write, instead."""
    base = address.registry
    steps = {
        "claude": f"Then, in Claude Code: /plugin install SKILL@{address.name}",
        "codex": f"Then: codex plugin marketplace upgrade {address.name}; codex plugin add SKILL@{address.name}",
        "copilot": f"Then: copilot plugin install SKILL@{address.name}",
        "opencode": "Then start OpenCode again.",
        "gemini": f"Gemini CLI keeps no list: gemini extensions install {base}/marketplace/OWNER/REPO/SKILL.git",
        "skills": f"skills keeps no settings: npx skills add {base}/OWNER/REPO/SKILL",
        "clawhub": f"clawhub keeps no list: npx clawhub --registry {base}/clawhub install SKILL",
        "vskill": f"vskill finds and submits, never installs: export VSKILL_API_BASE={base} VSKILL_API_URL={base}",
    }
    return steps[client]


# Writing, and taking back.


def _write(client: str, planned: list[WrittenEntry]) -> None:
    notes, notes_path = _read_notes()
    # Noted first: what is written can always be taken back.
    replace_file(notes_path, {**notes, client: [*notes.get(client, []), *planned]})
    for entry in planned:
        path = Path(entry.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.after)


def _undo(client: str) -> None:
    notes, notes_path = _read_notes()
    left = []
    for entry in reversed(notes.pop(client, [])):
        heir = _other_user(entry, notes)
        if heir is not None:
            notes[heir] = [*notes[heir], entry]
            click.echo(f"{entry.path}: the entry stays, because {heir} uses it.")
            continue
        said = _take_back(entry)
        click.echo(said or f"{entry.path}: it has changed since; remove this by hand:\n{entry.put.strip()}")
        if said is None:
            left.append(entry)
    replace_file(notes_path, {**notes, **({client: left} if left else {})})
    if left:
        raise SystemExit(1)


def _other_user(entry: WrittenEntry, notes: dict[str, list[WrittenEntry]]) -> str | None:
    """A client that is still connected to the registry whose token this entry of git's settings hands out."""
    _, helped, rest = entry.put.partition('[credential "')
    if not helped:
        return None
    registry = rest.partition('"')[0]
    begins = f'"{registry}/'
    return next((name for name, own in notes.items() if any(begins in other.put for other in own)), None)


def _take_back(entry: WrittenEntry) -> str | None:
    """What was done; None where the entry is not there as it was written."""
    path = Path(entry.path)
    if not path.exists():
        return f"{path}: it is gone already."
    now = path.read_bytes()
    if now == entry.after:
        if entry.before is None:
            path.unlink()
            return f"{path}: removed; there was none before."
        path.write_bytes(entry.before)
        return f"{path}: as it was before."
    text = now.decode()
    without = take_out(text, entry.put)
    name, marketplace, url = entry.put.partition('": {"source":{"source":"git","url":"')
    if without is None and marketplace:
        # Claude Code and Copilot CLI write the whole file anew with each plugin.
        name, url = name.rpartition('"')[2], url.partition('"')[0]
        without = take_out_member(text, ("extraKnownMarketplaces", name), url)
    if without is None:
        return None
    if without == text:
        return f"{path}: the entry is gone already."
    path.write_bytes(without.encode())
    return f"{path}: the entry is removed; what changed since stays."


def _read_notes() -> tuple[dict[str, list[WrittenEntry]], Path]:
    path = remote_variables().folder / NOTES
    return read_own_file(path, dict[str, list[WrittenEntry]]) or {}, path
