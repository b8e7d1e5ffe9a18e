"""`verify`: is an attestation genuine, and is it about the files at hand? It asks no store and no network."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_platform.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from vskill_platform.domain.content import SkillFile
    from vskill_platform.signing.check import Checked
    from vskill_platform.signing.keys import PublicKey

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Verified(msgspec.Struct, frozen=True):
    """A genuine attestation, for programs."""

    verified: bool
    skill: str
    version: str
    #: What was compared with it; None: only the signature was checked.
    content: str | None
    key_id: str
    statement: dict[str, object]


@click.command()
@click.argument("attestation", type=FILE)
@click.option("--archive", type=FILE, help="The zip or tar.gz that it should be about.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The unpacked skill that it should be about.",
)
@click.option("--key", type=FILE, help="A public key that you trust, as PEM.")
@click.option(
    "--keys", type=FILE, help="A key set that you trust, as /.well-known/vskill-keys.json gives it."
)
@json_option
def verify(
    *,
    attestation: Path,
    archive: Path | None,
    folder: Path | None,
    key: Path | None,
    keys: Path | None,
    as_json: bool,
) -> None:
    """Check a downloaded attestation offline; exit code 1 unless all of it holds.

    Without --key and --keys, the keys of the registry in VSKILL_DATA_DIR are trusted.
    """
    from vskill_platform.signing.check import check_attestation

    if archive and folder:
        raise click.UsageError("give --archive or --folder, not both")
    if key and keys:
        raise click.UsageError("give --key or --keys, not both")
    checked = check_attestation(
        attestation.read_bytes(),
        _trusted(key, keys),
        archive=archive.read_bytes() if archive else None,
        files=_files(folder) if folder else None,
    )
    if as_json:
        print_json(_view(checked))
    else:
        _print(checked)


def _trusted(key: Path | None, keys: Path | None) -> "tuple[PublicKey, ...]":
    from vskill_platform.signing.keys import public_from_jwks, public_from_pem

    if key is not None:
        return (public_from_pem(key.read_bytes()),)
    if keys is not None:
        return public_from_jwks(keys.read_bytes())
    return _own_keys()


def _own_keys() -> "tuple[PublicKey, ...]":
    from vskill_platform.domain.errors import InvalidInput
    from vskill_platform.settings import keys_folder, process_settings
    from vskill_platform.signing.keys import read_public_folder

    folder = keys_folder(process_settings())
    found = read_public_folder(folder)
    if not found:
        raise InvalidInput(
            f"There is no public key in {folder}.", field="--keys", fix="say whom to trust by --keys or --key"
        )
    return found


def _files(folder: Path) -> "tuple[SkillFile, ...]":
    from vskill_platform.cli.local_skills import read_folder

    return read_folder(folder)


def _print(checked: "Checked") -> None:
    about = checked.statement.predicate
    judge = about.judge
    rows: list[tuple[str, object]] = [
        ("skill", f"{about.skill} {about.version}"),
        ("content", checked.content or "not compared: give --archive or --folder"),
        ("registry", f"{about.registry}, key {checked.key.key_id}"),
        ("from", f"{about.repository} {about.path} {about.commit or ''}".strip()),
        ("certification", f"{about.certification}, decided {about.decided_at}"),
        ("static scan", f"{about.static.verdict}, {about.static.ruleset}" if about.static else "none"),
        ("judge", f"{judge.verdict}, {judge.model}, {judge.rubric}" if judge else about.judge_status),
    ]
    print_table("The attestation is genuine.", ("what", "value"), rows)


def _view(checked: "Checked") -> Verified:
    about = checked.statement.predicate
    statement: dict[str, object] = msgspec.to_builtins(checked.statement)
    return Verified(
        verified=True,
        skill=about.skill,
        version=about.version,
        content=checked.content,
        key_id=checked.key.key_id,
        statement=statement,
    )
