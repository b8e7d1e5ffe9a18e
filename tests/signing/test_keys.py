"""The registry's keys: made once, by one of many, readable by their owner alone, and never forgotten."""

import asyncio
import hashlib
import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed448
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.database import children
from vskill_core.errors import InvalidInput, InvalidSettings, StoreCorrupt, StoreUnavailable
from vskill_core.signing_keys import (
    PublicKey,
    SigningKey,
    jwk,
    public_from_jwk,
    public_from_jwks,
    public_from_pem,
    read_public_folder,
)
from vskill_platform.signing.key_ring import FileKeys, MemoryKeys

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "keys"


async def test_the_first_start_makes_a_key_and_the_next_one_finds_it(folder):
    first = await (await FileKeys.open(folder)).current()
    again = await (await FileKeys.open(folder)).current()
    assert first.public == again.public
    assert first.public.verifies(again.sign(b"x"), b"x")
    assert not first.public.verifies(again.sign(b"x"), b"y")


async def test_only_the_owner_can_read_the_private_key_and_nothing_unfinished_is_left(folder):
    ring = await FileKeys.open(folder)
    key_id = (await ring.current()).public.key_id
    assert stat.S_IMODE((folder / "signing.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == sorted(["signing.key", f"{key_id}.pub"])
    assert b"PRIVATE" not in (folder / f"{key_id}.pub").read_bytes()


async def test_the_key_id_is_the_beginning_of_the_public_keys_sha256(folder):
    key = (await (await FileKeys.open(folder)).current()).public
    assert key.key_id == hashlib.sha256(key.raw).hexdigest()[:16]


_OPENS_KEYS = """
from pathlib import Path
from vskill_platform.signing.key_ring import FileKeys

async def work():
    print("ready", flush=True)
    sys.stdin.readline()
    ring = await FileKeys.open(Path(path))
    print((await ring.current()).public.key_id)

asyncio.run(work())
"""


def test_of_many_processes_that_start_at_once_one_makes_the_key(folder):
    workers = [children.start(_OPENS_KEYS, folder) for _ in range(6)]
    assert [children.line_of(worker) for worker in workers] == ["ready"] * 6
    for worker in workers:
        children.tell(worker, "go")
    ids = {children.finish(worker) for worker in workers}
    assert len(ids) == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted(["signing.key", f"{ids.pop()}.pub"])


async def test_many_tasks_that_open_at_once_share_the_key(folder):
    rings = await asyncio.gather(*(FileKeys.open(folder) for _ in range(20)))
    assert len({(await ring.current()).public for ring in rings}) == 1


async def test_a_rotation_signs_with_a_new_key_and_keeps_the_old_public_one(folder):
    ring = await FileKeys.open(folder)
    old = await ring.current()
    signature = old.sign(b"said before")
    new = await ring.rotate()
    assert new.public != old.public
    assert (await ring.current()).public == new.public
    assert await ring.public_keys() == (new.public, old.public)
    assert any(
        key.verifies(signature, b"said before") for key in await asyncio.to_thread(read_public_folder, folder)
    )
    assert old.to_pem() not in [path.read_bytes() for path in folder.iterdir()], "the old private key is gone"
    assert stat.S_IMODE((folder / "signing.key").stat().st_mode) == 0o600


async def test_a_running_process_takes_a_rotation_by_another_one_up(folder):
    running, other = await FileKeys.open(folder), await FileKeys.open(folder)
    await running.current()
    rotated = await other.rotate()
    assert (await running.current()).public == rotated.public


async def test_every_rotation_is_remembered(folder):
    ring = await FileKeys.open(folder)
    made = [(await ring.current()).public, *[(await ring.rotate()).public for _ in range(3)]]
    assert set(await (await FileKeys.open(folder)).public_keys()) == set(made)


async def test_a_start_that_broke_off_before_the_public_key_was_kept_is_mended(folder):
    key = await (await FileKeys.open(folder)).current()
    (folder / f"{key.public.key_id}.pub").unlink()
    assert await (await FileKeys.open(folder)).public_keys() == (key.public,)
    assert await asyncio.to_thread(read_public_folder, folder) == (key.public,)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
async def test_a_key_that_others_can_read_or_write_is_refused_with_the_fix(folder, mode):
    await FileKeys.open(folder)
    (folder / "signing.key").chmod(mode)
    with pytest.raises(InvalidSettings, match="chmod 600"):
        await FileKeys.open(folder)


def _other_kind() -> bytes:
    return ed448.Ed448PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "content", [b"", b"not a key", SigningKey.generate().public.pem.encode(), _other_kind()]
)
async def test_a_damaged_key_is_said_by_name_never_replaced_and_never_quoted(folder, content):
    await FileKeys.open(folder)
    (folder / "signing.key").write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"signing\.key is not a private Ed25519 key\.$"):
        await FileKeys.open(folder)
    assert (folder / "signing.key").read_bytes() == content


async def test_a_damaged_public_key_is_said_by_name(folder):
    ring = await FileKeys.open(folder)
    (folder / "0000000000000000.pub").write_text("nothing")
    with pytest.raises(StoreCorrupt, match=r"0000000000000000\.pub"):
        await ring.public_keys()


async def test_a_folder_that_cannot_be_made_is_said_by_name(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match=r"file/keys cannot be used"):
        await FileKeys.open(tmp_path / "file" / "keys")


async def test_a_key_that_was_taken_away_is_not_made_anew_behind_the_operators_back(folder):
    ring = await FileKeys.open(folder)
    (folder / "signing.key").unlink()
    with pytest.raises(StoreUnavailable):
        await ring.current()


async def test_a_ring_in_memory_has_a_key_and_rotates():
    ring = MemoryKeys()
    old = (await ring.current()).public
    new = (await ring.rotate()).public
    assert await ring.public_keys() == (new, old)


async def test_nothing_shows_what_a_private_key_is_made_of(folder):
    key = await (await FileKeys.open(folder)).current()
    secret = key.to_pem().splitlines()[1].decode()
    assert secret not in repr(key) + str(key) + repr(vars(key))


# Public keys on the wire.

KEY = PublicKey(bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"))


def test_a_json_web_key_is_as_rfc_8037_writes_it():
    """The key and its form are the example in the RFC's appendix."""
    assert jwk(KEY)["x"] == "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    assert (jwk(KEY)["kty"], jwk(KEY)["crv"], jwk(KEY)["kid"]) == ("OKP", "Ed25519", KEY.key_id)
    assert public_from_jwk(jwk(KEY, status="retired")) == KEY
    assert public_from_pem(KEY.pem.encode()) == KEY


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": []}',
        b'{"keys": [1]}',
        b'{"keys": [{"kty": "RSA", "n": "x"}]}',
        b'{"keys": [{"kty": "OKP", "crv": "Ed25519"}]}',
        b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}]}',
        b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "\xc3\xa9"}]}',
        b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp"}]}',
    ],
)
def test_a_key_set_that_cannot_be_read_is_refused_with_the_fix(text):
    with pytest.raises(InvalidInput, match="No public key can be read") as caught:
        public_from_jwks(text)
    assert "vskill-keys.json" in caught.value.fix


def _ed448_public() -> bytes:
    return (
        ed448.Ed448PrivateKey.generate()
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )


@pytest.mark.parametrize("pem", [b"", b"text", SigningKey.generate().to_pem(), _ed448_public()])
def test_a_text_that_is_no_public_ed25519_key_is_refused(pem):
    with pytest.raises(InvalidInput, match="PEM"):
        public_from_pem(pem)


def test_two_keys_of_a_set_that_are_the_same_are_one():
    assert public_from_jwks(b'{"keys": [%b, %b]}' % ((_json(jwk(KEY)),) * 2)) == (KEY,)


def _json(members: dict[str, str]) -> bytes:
    return json.dumps(members).encode()
