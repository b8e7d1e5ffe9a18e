"""The commands of `bundle`: make a file of verified skills, and check one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from vskill_client.destination import Caller, in_thread, run_with_caller
from vskill_client.install import read_lock
from vskill_client.output import json_option, plain, print_json, print_table
from vskill_client.verify import FILE, given_keys
from vskill_client.wire.base import iso_time
from vskill_core.errors import AttestationInvalid, InvalidInput
from vskill_core.plural import counted
from vskill_platform.actions.submissions import bundles
from vskill_platform.domain.skills.bundle import END, OpenBundle, pack_head, pack_skill


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
    wanted, locked = _read_target(target)
    out = out or Path(f"{Path(target).stem or 'revocations'}.vskill.tar")

    async def work(caller: Caller, file: BinaryIO) -> bundles.BundleHead:
        head = await caller.call(bundles.MAKE_BUNDLE, wanted)
        if locked is not None and locked != {(one.skill, one.version, one.digest) for one in head.skills}:
            raise AttestationInvalid(f"The registry has other content than {target} names.")
        async for part in bundles.write_bundle(caller.call, head):
            await in_thread(file.write, part)
        return head

    with _whole_file(out) as file:
        head = run_with_caller(lambda caller: work(caller, file))
    for one in head.left_out:
        click.echo(f"Warning: {plain(one.skill)} is left out: {plain(one.reason)}", err=True)
    click.echo(f"{out} holds {counted(len(head.skills), 'skill')} and the revocation list.")


def _read_target(target: str) -> tuple[bundles.MakeBundle, set[tuple[str, str, str]] | None]:
    """What to ask for, and of a lock file what must come."""
    if not target:
        return bundles.MakeBundle(), None
    if not Path(target).is_file():
        return bundles.MakeBundle(collection=target), None
    skills = read_lock(Path(target)).skills
    if not skills:
        raise InvalidInput(f"{target} names no skill.", field="LOCKFILE", fix="lock some skills first")
    names = ",".join(f"{one.skill}@{one.version}" for one in skills)
    return bundles.MakeBundle(skills=names), {(one.skill, one.version, one.digest) for one in skills}


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place as a whole; an error leaves what was there."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
            unfinished = Path(folder) / "bundle"
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}."
        raise InvalidInput(
            message, field="--out", fix="name a file in a folder that you may write"
        ) from error


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
        return
    said = "trusted" if facts.key_is_trusted else "compare it with the registry's, or give --key"
    rows = (
        ("registry", facts.registry),
        ("key", f"{facts.key_id}, {said}"),
        ("made of", facts.scope),
        ("serial", f"{facts.serial} ({iso_time(facts.serial)})"),
        ("skills", ", ".join(facts.skills) or "none"),
        ("revocations", f"{facts.revoked}, serial {facts.revocation_serial}, {facts.revocations_issued_at}"),
    )
    print_table("The bundle is whole.", ("what", "value"), rows)


#: A part is sent once it has so many bytes.
PART_BYTES = 12 * 1024 * 1024


@click.command("add")
@click.argument("name")
@click.argument("file", type=FILE)
@click.option("--key", type=FILE, help="A public key of its registry that you trust, as PEM.")
@click.option("--reason", required=True, help="Why; kept in the audit.")
@json_option
def add(*, name: str, file: Path, key: Path | None, reason: str, as_json: bool) -> None:
    """Add a bundle of another registry: its skills are verified here, and what it withdrew is blocked.

    NAME is the upstream, part of the skills' names here; the first bundle makes it. Without --key, the keys of the
    first bundle are trusted from then on. The whole file is checked before anything is sent.
    """
    pem = key.read_text("ascii", "replace") if key else ""

    async def send(caller: Caller, parts: Iterator[bytes]) -> list[bundles.BundleAdded]:
        done = []
        while (part := await in_thread(next, parts, None)) is not None:
            wanted = bundles.AddBundle(name=name, bundle=part, key=pem, partial=True, reason=reason)
            done.append(await caller.call(bundles.ADD_BUNDLE, wanted))
        return done

    with file.open("rb") as opened:
        for _ in OpenBundle(opened).skills():
            pass
        opened.seek(0)
        parts = split_bundle(OpenBundle(opened))
        done = run_with_caller(lambda caller: send(caller, parts))
    skills = tuple(skill for one in done for skill in one.skills)
    withdrawn = tuple(dict.fromkeys(digest for one in done for digest in one.withdrawn))
    whole = msgspec.structs.replace(done[-1], first_use=done[0].first_use, skills=skills, withdrawn=withdrawn)
    if as_json:
        print_json(whole)
        return
    first = "; compare it with the registry's, from now on it is trusted" if whole.first_use else ""
    click.echo(
        f"{name} has {counted(len(skills), 'skill')} of {plain(whole.registry)}, key {whole.key_id}{first}."
    )
    if withdrawn:
        said = "it was" if len(withdrawn) == 1 else "they were"
        click.echo(f"{counted(len(withdrawn), 'content')} blocked, because {said} withdrawn there.")


def split_bundle(bundle: OpenBundle, most: int = PART_BYTES) -> Iterator[bytes]:
    """The file in pieces that one request each can bring, each a bundle with some of the skills."""
    head = pack_head(bundle.envelope, bundle.revocations)
    part, sent = head, False
    numbers = {one: number for number, one in enumerate(bundle.index.skills)}
    for one in bundle.skills():
        part += pack_skill(numbers[one.entry], one.entry, one.attestation, one.archive)
        if len(part) - len(head) >= most:
            yield part + END
            part, sent = head, True
    if part != head or not sent:
        yield part + END


COMMANDS = (make, check, add)
