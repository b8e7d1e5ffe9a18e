"""`verify`: is an attestation genuine, and is it about the files at hand? With a registry's address, or for an
installed skill, the registry is asked for its keys and whether it still vouches for the version. With a key at hand, or
for a file on the server's machine, nothing is asked."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_platform.cli.connection import run_with_caller
from vskill_platform.cli.destination import Connection
from vskill_platform.cli.install import fetch_keys, look_up_skill, split_version
from vskill_platform.cli.installed import InstallRecord, read_record
from vskill_platform.cli.local_skills import read_folder
from vskill_platform.cli.output import json_option, print_json, print_table
from vskill_platform.domain.capability import CapabilityContext
from vskill_platform.domain.content import digest_of_files
from vskill_platform.domain.errors import AttestationInvalid, InvalidInput, NotFound

if TYPE_CHECKING:
    from vskill_platform.cli.caller import Caller
    from vskill_platform.signing.check import Checked
    from vskill_platform.signing.keys import PublicKey
    from vskill_platform.signing.statement import CapabilityCard

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class VerifiedAttestation(msgspec.Struct, frozen=True):
    """A genuine attestation, for programs."""

    verified: bool
    skill: str
    version: str
    #: What was compared with it; None: only the signature was checked.
    content: str | None
    key_id: str
    #: Of the version in the registry now: live or yanked. None: no registry was asked.
    status: str | None
    statement: dict[str, object]


class Vouched(msgspec.Struct, frozen=True):
    """What a registry says about a version."""

    #: `skill@version`
    name: str
    envelope: bytes
    keys: "tuple[PublicKey, ...]"
    status: str


@click.command()
@click.argument("target", metavar="ATTESTATION|FOLDER", type=click.Path(exists=True, path_type=Path))
@click.option("--archive", type=FILE, help="The zip or tar.gz to check against the attestation.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The unpacked skill to check against the attestation.",
)
@click.option("--key", type=FILE, help="A public key that you trust, as PEM.")
@click.option(
    "--keys", type=FILE, help="A key set that you trust, as /.well-known/vskill-keys.json gives it."
)
@click.option(
    "--skill",
    metavar="SKILL[@VERSION]",
    help="The skill in FOLDER, if `install` did not put it there.",
)
@json_option
def verify(
    *,
    target: Path,
    archive: Path | None,
    folder: Path | None,
    key: Path | None,
    keys: Path | None,
    skill: str | None,
    as_json: bool,
) -> None:
    """Check that a skill is what a registry verified.

    FOLDER is a skill that `install` put there. ATTESTATION is a downloaded attestation; give what it should be about
    with --archive or --folder. Exit code 1 unless all of it holds.

    With --registry, that registry's keys count, and it is asked whether it still vouches for the version. With --key or
    --keys, those count, and nobody is asked. Without any, a FOLDER is checked against the registry on this machine, and
    an ATTESTATION with the keys in VSKILL_DATA_DIR.
    """
    if archive and folder:
        raise click.UsageError("give --archive or --folder, not both")
    if key and keys:
        raise click.UsageError("give --key or --keys, not both")
    if target.is_dir() and (archive or folder):
        raise click.UsageError("--archive and --folder go with an ATTESTATION, not with a FOLDER")
    if skill and (key or keys):
        raise click.UsageError("--skill asks a registry, --key and --keys ask nobody: give one of them")
    given = _given_keys(key, keys)
    if target.is_dir():
        checked, status = _check_folder(target, given, skill)
    elif skill is not None:
        raise click.UsageError("--skill goes with a FOLDER, not with an ATTESTATION")
    else:
        checked, status = _check_file(target, given, archive, folder)
    if as_json:
        print_json(_view(checked, status))
    else:
        _print(checked, status)


def _check_file(
    attestation: Path, given: "tuple[PublicKey, ...] | None", archive: Path | None, folder: Path | None
) -> "tuple[Checked, str | None]":
    from vskill_platform.signing.check import check_attestation

    envelope = attestation.read_bytes()
    trusted = given or (run_with_caller(fetch_keys) if _registry() else _own_keys())
    checked = check_attestation(
        envelope,
        trusted,
        archive=archive.read_bytes() if archive else None,
        files=read_folder(folder) if folder else None,
    )
    if given is not None or not _registry():
        return checked, None
    about = checked.statement.predicate
    return checked, run_with_caller(lambda caller: _ask(caller, about.skill, about.version)).status


def _check_folder(
    folder: Path, given: "tuple[PublicKey, ...] | None", skill: str | None
) -> "tuple[Checked, str | None]":
    from vskill_platform.signing.check import check_attestation

    record, files = read_record(folder), read_folder(folder)
    if given is not None:
        if record is None:
            fix = f"give the attestation: verify ATTESTATION --folder {folder}"
            raise InvalidInput(f"{folder} was not installed by `install`.", field="FOLDER", fix=fix)
        about = f"{record.skill}@{record.version}"
        return check_attestation(bytes(record.attestation), given, files=files, about=about), None
    name, version = _name_installed(folder, record) if skill is None else split_version(skill)
    digest = digest_of_files(files)
    asked = run_with_caller(lambda caller: _ask(caller, name, version, digest))
    return check_attestation(asked.envelope, asked.keys, files=files, about=asked.name), asked.status


def _name_installed(folder: Path, record: InstallRecord | None) -> tuple[str, str | None]:
    """What was installed. Its registry is asked only where the command line names it: anybody could have written the
    record, with the address of a registry of theirs."""
    if record is None:
        fix = "say which skill it is with --skill"
        raise InvalidInput(f"{folder} was not installed by `install`.", field="FOLDER", fix=fix)
    if record.registry and not _registry():
        fix = f"verify it there: vskill-platform --registry {record.registry} verify {folder}"
        raise InvalidInput(f"{folder} was installed from {record.registry}.", field="FOLDER", fix=fix)
    return record.skill, record.version


def _registry() -> str:
    connection = click.get_current_context().find_object(Connection)
    return connection.registry if connection is not None else ""


async def _ask(caller: "Caller", name: str, version: str | None, digest: str = "") -> Vouched:
    """What the registry vouches for: the version that is named, or the one with this content."""
    from vskill_platform.actions.downloads import ATTESTATION, AttestedVersion

    shown = await look_up_skill(caller, name)
    fitting = [one for one in shown.versions if version in (None, one.version) and digest in ("", one.digest)]
    what = shown.skill if version is None else f"{shown.skill} {version}"
    if not fitting and not digest:
        raise NotFound(f"The registry has no {what}.", skill=shown.skill)
    if not fitting:
        message = f"The folder is not the content of {what}: its digest is {digest}."
        raise AttestationInvalid(message, found=digest)
    chosen = fitting[0]
    wanted = AttestedVersion(skill=shown.skill, version=chosen.version)
    envelope = await caller.call(ATTESTATION, wanted)
    name = f"{shown.skill}@{chosen.version}"
    return Vouched(name, envelope, await fetch_keys(caller), chosen.status.value)


def _given_keys(key: Path | None, keys: Path | None) -> "tuple[PublicKey, ...] | None":
    from vskill_platform.signing.keys import public_from_jwks, public_from_pem

    if key is not None:
        return (public_from_pem(key.read_bytes()),)
    return None if keys is None else public_from_jwks(keys.read_bytes())


def _own_keys() -> "tuple[PublicKey, ...]":
    from vskill_platform.settings import keys_folder, process_settings
    from vskill_platform.signing.keys import read_public_folder

    folder = keys_folder(process_settings())
    found = read_public_folder(folder)
    if not found:
        raise InvalidInput(
            f"There is no public key in {folder}.", field="--keys", fix="say whom to trust by --keys or --key"
        )
    return found


def _print(checked: "Checked", status: str | None) -> None:
    about = checked.statement.predicate
    judge = about.judge
    rows: list[tuple[str, object]] = [
        ("skill", f"{about.skill} {about.version}"),
        ("content", checked.content or "not compared: give --archive or --folder"),
        ("status", status or "not asked: give --registry"),
        ("registry", f"{about.registry}, key {checked.key.key_id}"),
        ("from", f"{about.repository} {about.path} {about.commit or ''}".strip()),
        ("certification", f"{about.certification}, decided {about.decided_at}"),
        ("static scan", f"{about.static.verdict}, {about.static.ruleset}" if about.static else "none"),
        ("judge", f"{judge.verdict}, {judge.model}, {judge.rubric}" if judge else about.judge_status),
        ("can do", _card_in_words(about.capability_card)),
    ]
    print_table("The attestation is genuine.", ("what", "value"), rows)


def _card_in_words(card: "CapabilityCard | None") -> str:
    """How many things of each kind our rules found, without links."""
    if card is None:
        return "no capability card"
    kinds = Counter(one.kind for one in card.entries if one.context != CapabilityContext.LINK)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{counted} (--json lists them)" if counted else "nothing was found by the rules"


def _view(checked: "Checked", status: str | None) -> VerifiedAttestation:
    about = checked.statement.predicate
    statement: dict[str, object] = msgspec.to_builtins(checked.statement)
    return VerifiedAttestation(
        verified=True,
        skill=about.skill,
        version=about.version,
        content=checked.content,
        key_id=checked.key.key_id,
        status=status,
        statement=statement,
    )
