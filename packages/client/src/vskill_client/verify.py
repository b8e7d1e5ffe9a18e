"""`verify`: is an attestation genuine, is it about the files at hand, and was the version withdrawn since? With a
registry's address, or for an installed skill, the registry is asked for its keys, whether it still vouches for the
version, and for its revocation list. With a key at hand, or for a file on the server's machine, nothing is asked, and
the list is read from a file if one is given."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client import install
from vskill_client.destination import Caller, current_destination, run_with_caller
from vskill_client.installed import InstallRecord, read_record
from vskill_client.output import json_option, print_json, print_table
from vskill_client.revocation_check import open_list, require_not_revoked
from vskill_client.wire.skills import ATTESTATION, READ_LIST, AttestedVersion, ReadRevocationList
from vskill_core.capability import CapabilityContext
from vskill_core.content import digest_of_files
from vskill_core.errors import AttestationInvalid, InvalidInput, NotFound
from vskill_core.folders import read_installed_folder

if TYPE_CHECKING:
    from vskill_core.signing_keys import PublicKey
    from vskill_core.statement import AttestedPolicy, CapabilityCard, Judgement
    from vskill_core.verification import Checked

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Vouched(msgspec.Struct, frozen=True, kw_only=True):
    """What a registry says about a version. Where none was asked, only the keys are there."""

    keys: "tuple[PublicKey, ...]"
    #: `skill@version`
    name: str = ""
    envelope: bytes = b""
    status: str | None = None
    #: Its signed revocation list; None where it signs none.
    revocations: bytes | None = None


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
@click.option("--lock", "lock_file", type=FILE, help="A lock file; FOLDER holds the skills that it names.")
@click.option(
    "--revocations",
    type=FILE,
    help="A revocation list, as /.well-known/vskill-revocations.json gives it, instead of asking.",
)
@click.option(
    "--publisher",
    default="",
    metavar="REPO[/WORKFLOW]",
    help="Require that a CI job of this repository published it, such as acme/skills/publish.yml.",
)
@click.option("--offline-ok", is_flag=True, help="Take a revocation list that has expired, with a warning.")
@json_option
def verify(  # noqa: PLR0913 - one for each option
    *,
    target: Path,
    archive: Path | None,
    folder: Path | None,
    key: Path | None,
    keys: Path | None,
    skill: str | None,
    lock_file: Path | None,
    revocations: Path | None,
    publisher: str,
    offline_ok: bool,
    as_json: bool,
) -> None:
    """Check that a skill is what a registry verified, and was not withdrawn since.

    FOLDER is a skill that `install` put there, or with --lock the folder of several. ATTESTATION is a downloaded
    attestation; give what it should be about with --archive or --folder. Exit code 1 unless all of it holds; a version
    that its owner yanked is a warning.

    With --registry, that registry's keys count, and it is asked whether it still vouches for the version. With --key or
    --keys, those count, and nobody is asked. On the server's machine, without any, a FOLDER is checked against the
    registry there, and an ATTESTATION with the keys in VSKILL_DATA_DIR.
    """
    _check_usage(target, archive, folder, skill, lock_file, bool(key), bool(keys))
    given = given_keys(key, keys)
    if lock_file is not None:
        _verify_lock(lock_file, target, given, revocations, publisher, offline_ok=offline_ok, as_json=as_json)
        return
    is_folder = target.is_dir()
    found = _check_folder(target, given, skill) if is_folder else _check_file(target, given, archive, folder)
    _conclude(*found, publisher, revocations, offline_ok=offline_ok, as_json=as_json)


def _conclude(
    checked: "Checked",
    vouched: Vouched,
    publisher: str,
    revocations: Path | None,
    *,
    offline_ok: bool,
    as_json: bool,
) -> None:
    """Raise Blocked where the version was withdrawn; otherwise print what was checked."""
    from vskill_core.statement import CONTENT_DIGEST

    if publisher:
        checked.require_publisher(publisher)
    about = checked.statement.predicate
    versions = [(about.skill, about.version, one) for one in checked.statement.digest(CONTENT_DIGEST)]
    serial = _require_current(versions, revocations, vouched, offline_ok=offline_ok)
    if as_json:
        print_json(_view(checked, vouched.status, serial))
    else:
        _print(checked, vouched.status, serial)


def _check_usage(
    target: Path, archive: Path | None, folder: Path | None, skill: str | None, lock: Path | None, *keys: bool
) -> None:
    is_folder = target.is_dir()
    for problem, is_given in (
        ("give --archive or --folder, not both", archive and folder),
        (
            "--archive and --folder go with an ATTESTATION, not with a FOLDER",
            is_folder and (archive or folder),
        ),
        ("--skill asks a registry, --key and --keys ask nobody: give one of them", skill and any(keys)),
        ("--skill and --lock go with a FOLDER, not with an ATTESTATION", not is_folder and (skill or lock)),
        ("give --skill or --lock, not both", skill and lock),
        ("give --key or --keys, not both", all(keys)),
    ):
        if is_given:
            raise click.UsageError(problem)


def _require_current(
    versions: Iterable[tuple[str, str, str]], given: Path | None, vouched: Vouched, *, offline_ok: bool
) -> int | None:
    """Raise Blocked where one was withdrawn, by the list of the file, else that of the registry; the list's serial, or
    None where there is neither."""
    data = vouched.revocations if given is None else given.read_bytes()
    if data is None:
        return None
    document = open_list(data, vouched.keys, offline_ok=offline_ok)
    for skill, version, digest in versions:
        require_not_revoked(document, skill, version, digest)
    return document.serial


def _check_file(
    attestation: Path, given: "tuple[PublicKey, ...] | None", archive: Path | None, folder: Path | None
) -> "tuple[Checked, Vouched]":
    from vskill_core.verification import check_attestation

    destination = current_destination()
    trusted = given or (
        run_with_caller(install.fetch_keys) if destination.registry else destination.own_keys()
    )
    checked = check_attestation(
        attestation.read_bytes(),
        trusted,
        archive=archive.read_bytes() if archive else None,
        files=read_installed_folder(folder) if folder else None,
    )
    if given is not None or not destination.registry:
        return checked, Vouched(keys=trusted)
    about = checked.statement.predicate
    asked = run_with_caller(lambda caller: _ask(caller, about.skill, about.version))
    return checked, msgspec.structs.replace(asked, keys=trusted)


def _check_folder(
    folder: Path, given: "tuple[PublicKey, ...] | None", skill: str | None
) -> "tuple[Checked, Vouched]":
    from vskill_core.verification import check_attestation

    record, files = read_record(folder), read_installed_folder(folder)
    if given is not None:
        if record is None:
            fix = f"give the attestation: verify ATTESTATION --folder {folder}"
            raise InvalidInput(f"{folder} was not installed by `install`.", field="FOLDER", fix=fix)
        about = f"{record.skill}@{record.version}"
        checked = check_attestation(bytes(record.attestation), given, files=files, about=about)
        return checked, Vouched(keys=given)
    name, version = _name_installed(folder, record) if skill is None else install.split_version(skill)
    digest = digest_of_files(files)
    asked = run_with_caller(lambda caller: _ask(caller, name, version, digest))
    return check_attestation(asked.envelope, asked.keys, files=files, about=asked.name), asked


def _verify_lock(
    lock_file: Path,
    folder: Path,
    given: "tuple[PublicKey, ...] | None",
    revocations: Path | None,
    publisher: str,
    *,
    offline_ok: bool,
    as_json: bool,
) -> None:
    """Every skill of the lock is in the folder as it was locked, nothing else is, and none was withdrawn."""
    lock = install.read_lock(lock_file)
    vouched = Vouched(keys=given) if given is not None else run_with_caller(_ask_keys_and_list)
    for one in lock.skills:
        checked = install.check_locked(one, folder, vouched.keys)
        if publisher:
            checked.require_publisher(publisher)
    install.require_nothing_else(lock, folder)
    versions = ((one.skill, one.version, one.digest) for one in lock.skills)
    serial = _require_current(versions, revocations, vouched, offline_ok=offline_ok)
    count = len(lock.skills)
    if as_json:
        print_json({"verified": True, "skills": count, "revocationSerial": serial})
        return
    click.echo(f"{folder} holds the {count} skills of {lock_file}, as they were locked.")
    click.echo(f"Revocations: {_serial_in_words(serial)}.")


async def _ask_keys_and_list(caller: Caller) -> Vouched:
    revocations = await caller.call(READ_LIST, ReadRevocationList())
    return Vouched(keys=await install.fetch_keys(caller), revocations=revocations)


def _name_installed(folder: Path, record: InstallRecord | None) -> tuple[str, str | None]:
    """What was installed. Its registry is asked only where the command line names it: anybody could have written the
    record, with the address of a registry of theirs."""
    if record is None:
        fix = "say which skill it is with --skill"
        raise InvalidInput(f"{folder} was not installed by `install`.", field="FOLDER", fix=fix)
    if record.registry and not current_destination().registry:
        fix = f"verify it there: {current_destination().program} --registry {record.registry} verify {folder}"
        raise InvalidInput(f"{folder} was installed from {record.registry}.", field="FOLDER", fix=fix)
    return record.skill, record.version


async def _ask(caller: Caller, name: str, version: str | None, digest: str = "") -> Vouched:
    """What the registry vouches for: the version that is named, or the one with this content."""
    shown = await install.look_up_skill(caller, name)
    fitting = [one for one in shown.versions if version in (None, one.version) and digest in ("", one.digest)]
    what = shown.skill if version is None else f"{shown.skill} {version}"
    if not fitting and not digest:
        raise NotFound(f"The registry has no {what}.", skill=shown.skill)
    # Where the version is named, its attestation says which file differs.
    fitting = fitting or [one for one in shown.versions if one.version == version]
    if not fitting:
        message = f"The folder is not the content of {what}: its digest is {digest}."
        raise AttestationInvalid(message, found=digest)
    chosen = fitting[0]
    wanted = AttestedVersion(skill=shown.skill, version=chosen.version)
    envelope = await caller.call(ATTESTATION, wanted)
    name = f"{shown.skill}@{chosen.version}"
    vouched = await _ask_keys_and_list(caller)
    return msgspec.structs.replace(vouched, name=name, envelope=envelope, status=chosen.status)


def given_keys(key: Path | None, keys: Path | None) -> "tuple[PublicKey, ...] | None":
    from vskill_core.signing_keys import public_from_jwks, public_from_pem

    if key is not None:
        return (public_from_pem(key.read_bytes()),)
    return None if keys is None else public_from_jwks(keys.read_bytes())


def _print(checked: "Checked", status: str | None, serial: int | None) -> None:
    about = checked.statement.predicate
    job = about.publisher
    rows: list[tuple[str, object]] = [
        ("skill", f"{about.skill} {about.version}"),
        ("content", checked.content or "not compared: give --archive or --folder"),
        ("status", status or "not asked: give --registry"),
        ("revocations", _serial_in_words(serial)),
        ("registry", f"{about.registry}, key {checked.key.key_id}"),
        ("from", f"{about.repository} {about.path} {about.commit or ''}".strip()),
        (
            "published by",
            f"{job.workflow} of {job.repository} at {job.commit}, {job.ref}" if job else "no CI job",
        ),
        ("certification", f"{about.certification}, decided {about.decided_at}"),
        ("static scan", f"{about.static.verdict}, {about.static.ruleset}" if about.static else "none"),
        ("judge", _judge_in_words(about.judge, about.judge_status)),
        ("policy", _policy_in_words(about.policy)),
        *([("made by the registry", ", ".join(about.generated))] if about.generated else ()),
        ("can do", _card_in_words(about.capability_card)),
    ]
    if (origin := about.origin) is not None:
        said = (
            f"{origin.registry}, {origin.skill} {origin.version}, key {origin.key_id}, verified when it came"
        )
        rows.insert(-1, ("also signed by", said))
    if about.second_judge_status != "none":
        rows.insert(-1, ("second judge", _judge_in_words(about.second_judge, about.second_judge_status)))
    print_table("The attestation is genuine.", ("what", "value"), rows)


def _judge_in_words(judge: "Judgement | None", status: str) -> str:
    return f"{judge.verdict}, {judge.model}, {judge.rubric}" if judge else status


def _policy_in_words(policy: "AttestedPolicy | None") -> str:
    if policy is None:
        return "not asked"
    rules = ", ".join(f"{one.name} ({'failed' if one.failed else one.then})" for one in policy.matched)
    return f"{policy.digest}, {f'matched {rules}' if rules else 'no rule matched'}"


def _serial_in_words(serial: int | None) -> str:
    return "not checked: give --registry or --revocations" if serial is None else f"checked, serial {serial}"


def _card_in_words(card: "CapabilityCard | None") -> str:
    """How many things of each kind our rules found, without links."""
    if card is None:
        return "no capability card"
    kinds = Counter(one.kind for one in card.entries if one.context != CapabilityContext.LINK)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{counted} (--json lists them)" if counted else "nothing was found by the rules"


def _view(checked: "Checked", status: str | None, serial: int | None) -> dict[str, object]:
    """For programs: what was compared with the attestation (null: only the signature was checked), the status of the
    version in the registry now (null: none was asked), and the serial of the list that does not revoke it (null: none
    was read)."""
    about = checked.statement.predicate
    return {
        "verified": True,
        "skill": about.skill,
        "version": about.version,
        "content": checked.content,
        "keyId": checked.key.key_id,
        "status": status,
        "revocationSerial": serial,
        "statement": msgspec.to_builtins(checked.statement),
    }
