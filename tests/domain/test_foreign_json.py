"""Foreign JSON that is nested too deeply is refused as all other broken JSON is, wherever it is read."""

import base64
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from joserfc import jws
from joserfc.jwk import ECKey
from starlette.requests import Request

from vskill_client.caller import error_of
from vskill_client.installed import RECORDS, read_record
from vskill_client.registries import FILE, read_tokens
from vskill_core.content import SkillFile
from vskill_core.dsse import read_payload
from vskill_core.errors import AttestationInvalid, InvalidInput, StoreCorrupt
from vskill_core.foreign_json import read_json
from vskill_core.revocation_list import read_revocation_list
from vskill_core.signing_keys import public_from_jwks
from vskill_core.statement import read_statement
from vskill_platform.actions.review.review_queue import _decode_place
from vskill_platform.domain.skills.forges import FORGES, read_push
from vskill_platform.external_scan.callback import _decode as read_report
from vskill_platform.external_scan.contract import Unreadable, decode_json
from vskill_platform.installation.backup import MANIFEST, read_manifest
from vskill_platform.ledger.kv.query import _decode_cursor
from vskill_platform.sign_in.oidc import _decode as read_token
from vskill_platform.stages import upstream_registries, upstream_sources
from vskill_platform.tiers.judge import ServiceFailed, TokenCount, _content
from vskill_platform.web.pages.people.signin import OAUTH_COOKIE, _journey
from vskill_platform.web.routing import decode_body
from vskill_scan.plugins.json_files import BadJson, read_object

#: A field that no reader knows, so that none refuses it for its type.
DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
#: As a cookie or a cursor can hold it.
SHORT = base64.urlsafe_b64encode(b'{"a":' + b"[" * 1_500 + b"]" * 1_500 + b"}").decode()
KEY = ECKey.generate_key("P-256")


def _in_token() -> Any:
    return read_token(jws.serialize_compact({"alg": "ES256"}, base64.urlsafe_b64decode(SHORT), KEY), [KEY])


def _in_cookie() -> Any:
    headers = [(b"cookie", f"{OAUTH_COOKIE}={SHORT}.mac".encode())]
    return _journey(Request({"type": "http", "headers": headers}), "github", "state")


def _in_backup(path: Path) -> Any:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo(MANIFEST)
        member.size = len(DEEP)
        archive.addfile(member, BytesIO(DEEP))
    return read_manifest(path)


def _in_file(read: Callable[[Path], Any], path: Path) -> Any:
    path.write_bytes(DEEP)
    return read(path)


class _Fields(msgspec.Struct):
    known: int = 0


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda _: read_json(DEEP), msgspec.DecodeError),
        (lambda _: read_json(DEEP.decode(), _Fields), msgspec.DecodeError),
        (lambda _: decode_body(DEEP, _Fields), InvalidInput),
        (lambda _: _decode_cursor(SHORT, None), InvalidInput),
        (lambda _: _decode_place(SHORT), InvalidInput),
        (lambda _: read_push(FORGES[0], DEEP), InvalidInput),
        (lambda _: read_report(DEEP), InvalidInput),
        (lambda _: decode_json(DEEP, _Fields), Unreadable),
        (lambda _: _content(DEEP, TokenCount()), ServiceFailed),
        (lambda _: upstream_registries._decoded(DEEP, upstream_registries._Cards), InvalidInput),
        (lambda _: read_object(SkillFile("plugin.json", "100644", DEEP)), BadJson),
        (lambda _: read_payload(DEEP), AttestationInvalid),
        (lambda _: read_statement(DEEP), AttestationInvalid),
        (lambda _: read_revocation_list(DEEP), AttestationInvalid),
        (lambda _: public_from_jwks(DEEP), InvalidInput),
        (lambda _: _in_token(), ValueError),
        (lambda folder: _in_backup(folder / "backup.tar"), StoreCorrupt),
        (lambda folder: _in_file(lambda path: read_tokens(path.parent), folder / FILE), StoreCorrupt),
    ],
)
def test_it_is_refused(read: Callable[[Path], Any], error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        read(tmp_path)


def test_what_is_only_looked_at_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    records = tmp_path / RECORDS
    records.mkdir()
    (records / "skill.json").write_bytes(DEEP)
    assert read_record(tmp_path / "skill") is None
    assert _in_cookie() is None
    assert error_of(httpx2.Response(500, content=DEEP, request=httpx2.Request("GET", "https://x/"))).message
    left: list[Any] = []
    catalogue = upstream_sources._Catalogue([msgspec.Raw(DEEP)])
    assert not list(upstream_sources._plugins(catalogue, left))
    assert "nested too deeply" in left[0].reason
