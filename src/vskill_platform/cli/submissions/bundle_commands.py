"""The commands of `bundle`: make a file of verified skills, check one, and add one to another registry."""

import io
from pathlib import Path

import click
import msgspec

from vskill_client.destination import Caller, run_with_caller
from vskill_client.install import read_lock
from vskill_client.output import json_option, plain, print_json
from vskill_client.verify import FILE, given_keys
from vskill_client.wire.base import iso_time
from vskill_client.wire.skills import LOCK, LockFile
from vskill_core.errors import AttestationInvalid, InvalidInput
from vskill_core.plural import counted
from vskill_platform.actions.submissions.bundles import ADD_BUNDLE, MAKE_BUNDLE, MakeBundle
from vskill_platform.cli.action_commands import command_for, details, show_answer, when
from vskill_platform.domain.skills.bundle import OpenBundle
from vskill_platform.machine.durable_files import write_file


@click.command("make")
@click.argument("target", metavar="[COLLECTION|LOCKFILE]", default="")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, instead of NAME.vskill.tar here; it appears once it is whole.",
)
def make(*, target: str, out: Path | None) -> None:
    """Write a bundle: skills of a collection or of a lock file, with all that verifies them offline.

    It holds their archives and attestations, the registry's public keys and its revocation list, and is signed. Without
    COLLECTION and LOCKFILE it holds the revocation list alone. The same content gives the same bytes.
    """
    out = out or Path(f"{Path(target).stem or 'revocations'}.vskill.tar")

    given = read_lock(Path(target)) if Path(target).is_file() else None
    wanted = MakeBundle(collection=target or None)
    if given is not None:
        wanted = MakeBundle(skills=",".join(f"{one.skill}@{one.version}" for one in given.skills))
        if not given.skills:
            raise InvalidInput(f"{target} names no skill.", field="LOCKFILE", fix="lock some skills first")

    async def work(caller: Caller) -> tuple[LockFile | None, bytes]:
        if not wanted.collection:
            return given, await caller.call(MAKE_BUNDLE, wanted)
        locked = await caller.call(LOCK, wanted)
        return locked, await caller.call(MAKE_BUNDLE, wanted)

    locked, data = run_with_caller(work)
    skills = OpenBundle(io.BytesIO(data)).index.skills
    if locked is not None:
        names, made = ({(one.skill, one.version, one.digest) for one in of} for of in (locked.skills, skills))
        if names != made:
            raise AttestationInvalid(f"The registry has other content than {target} names.")
        for one in locked.left_out:
            click.echo(f"Warning: {plain(one.skill)} is left out: {plain(one.reason)}", err=True)
    try:
        write_file(out.parent, data, 0o644, prefix=f".{out.name}-").replace(out)
    except OSError as error:
        fix = "name a file in a folder that you may write"
        message = f"{out} cannot be written: {error.strerror}."
        raise InvalidInput(message, field="--out", fix=fix) from error
    click.echo(f"{out} holds {counted(len(skills), 'skill')} and the revocation list.")


class BundleFacts(msgspec.Struct, frozen=True):
    """What a bundle says, for programs."""

    registry: str
    key_id: str
    #: Whether its key is one that was given.
    key_is_trusted: bool
    scope: str
    serial: int
    skills: tuple[str, ...]
    revocation_serial: int
    revocations_issued_at: str
    revoked: int


_FACTS = details(
    "The bundle is whole.",
    ("registry", "registry"),
    ("key", lambda facts: f"{facts.key_id}, {_trust(facts)}"),
    ("made of", "scope"),
    ("serial", lambda facts: f"{facts.serial} ({iso_time(facts.serial)})"),
    ("skills", lambda facts: ", ".join(facts.skills) or "none"),
    (
        "revocations",
        lambda facts: f"{facts.revoked}, serial {facts.revocation_serial}, {facts.revocations_issued_at}",
    ),
)


def _trust(facts: BundleFacts) -> str:
    return "trusted" if facts.key_is_trusted else "compare it with the registry's, or give --key"


@click.command("check")
@click.argument("file", type=FILE)
@click.option("--key", type=FILE, help="A public key that you trust, as PEM.")
@click.option(
    "--keys", type=FILE, help="A key set that you trust, as /.well-known/vskill-keys.json gives it."
)
@json_option
def check(*, file: Path, key: Path | None, keys: Path | None, as_json: bool) -> None:
    """Check a bundle offline: that it is whole, and that every skill is what its registry verified and signed.

    With --key or --keys, that registry must be the one that you trust. Otherwise compare the key id that is printed.
    """
    if key is not None and keys is not None:
        raise click.UsageError("give --key or --keys, not both")
    trusted = given_keys(key, keys)
    with file.open("rb") as opened:
        bundle = OpenBundle(opened, trusted or ())
        skills = tuple(f"{one.entry.skill}@{one.entry.version}" for one in bundle.skills())
    index, document = bundle.index, bundle.document
    facts = BundleFacts(
        index.registry,
        bundle.key.key_id,
        trusted is not None,
        index.scope,
        index.serial,
        skills,
        document.serial,
        document.issued_at,
        len(document.entries),
    )
    if as_json:
        print_json(facts)
    else:
        show_answer(facts, _FACTS)


_FILE = click.Argument(["bundle"], metavar="FILE", type=FILE, callback=lambda *given: given[2].read_bytes())
_KEY = click.Option(
    ["--key"],
    type=FILE,
    help="A public key of its registry that you trust, as PEM; otherwise those of the first bundle are trusted.",
    callback=lambda *given: given[2].read_text("ascii", "replace") if given[2] else "",
)
COMMANDS = (
    make,
    check,
    command_for(
        ADD_BUNDLE,
        "{upstream} has {#skills:skill} of {registry}, key {key_id}.",
        when("first_use", "Compare the key with the registry's: from now on it is trusted."),
        when("withdrawn", "{#withdrawn:content} blocked, because withdrawn there."),
        options={"bundle": _FILE, "key": _KEY},
    ),
)
