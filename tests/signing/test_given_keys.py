"""A signing key from a secret: read again when it is replaced, the same for processes that share no folder, and never
shown."""

from pathlib import Path

import msgspec
import pytest
import structlog

from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.signing import as_value
from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidSettings, StoreCorrupt, StoreUnavailable, Unsupported
from vskill_core.signing_keys import SigningKey
from vskill_platform.actions.operation.system import show_storage
from vskill_platform.bootstrap import open_keys
from vskill_platform.settings import Settings
from vskill_platform.signing.key_ring import GivenKeys
from vskill_platform.store.operation.workers import give_sign, look_at_workers
from vskill_platform.store.recall.attestations import public_keys
from vskill_platform.worker_context import require_env

pytestmark = pytest.mark.anyio


@pytest.fixture
def secret(tmp_path):
    """A file as a secret manager mounts it, and how it replaces it: another file under the same name."""
    path = tmp_path / "mounted" / "signing.pem"
    path.parent.mkdir()

    def mount(key: SigningKey, mode: int = 0o440) -> str:
        fresh = path.with_name("..data_tmp")
        fresh.write_bytes(key.to_pem())
        fresh.chmod(mode)
        fresh.replace(path)
        return str(path)

    return mount


async def test_a_key_comes_from_a_file_or_from_the_value(secret, tmp_path):
    key = SigningKey.generate()
    for given in (secret(key), as_value(key)):
        ring = await open_keys(Settings(data_dir=str(tmp_path / "data"), signing_key=given))
        assert (await ring.current()).public == key.public
        assert await ring.public_keys() == (key.public,)
        with pytest.raises(Unsupported, match="replace the file"):
            await ring.rotate()
    assert not (tmp_path / "data").exists()


async def test_a_replaced_file_is_read_without_a_restart(secret):
    old, new = SigningKey.generate(), SigningKey.generate()
    ring = GivenKeys(secret(old))
    assert (await ring.current()).public == old.public
    secret(new)
    assert (await ring.current()).public == new.public


async def test_processes_without_a_shared_folder_serve_both_keys_while_one_is_rotated(secret, tmp_path):
    """The first has the new key already, the second still the old one."""
    old, new = SigningKey.generate(), SigningKey.generate()
    async with open_test_env("memory", tmp_path, signing=GivenKeys(secret(old))) as first:
        await submit_skill("before")
        await run_until_quiet(first)
        with active_env(first, signing=GivenKeys(as_value(old))) as second:
            secret(new)
            with active_env(first):
                await submit_skill("after")
                await run_until_quiet(first)
                mine = await public_keys()
            theirs = await public_keys()
            assert {one.key for one in mine} == {one.key for one in theirs} == {old.public, new.public}
            assert [one.key for one in mine if one.active] == [new.public]
            await give_sign()
        with active_env(msgspec.structs.replace(second, worker_id="other"), signing=first.signing):
            await give_sign()
        assert (await look_at_workers()).signing_keys == tuple(sorted((old.public.key_id, new.public.key_id)))


@pytest.mark.parametrize("spoil", ["away", "no key", "open to others"])
async def test_a_key_that_is_away_for_a_moment_stops_no_sign_of_life(secret, tmp_path, spoil):
    key = SigningKey.generate()
    path = Path(secret(key))
    async with open_test_env("memory", tmp_path, signing=GivenKeys(str(path))):
        path.unlink()
        if spoil == "no key":
            path.write_text("half of a key")
            path.chmod(0o440)
        if spoil == "open to others":
            secret(key, 0o444)
        with structlog.testing.capture_logs() as logged:
            await give_sign(lacks="something")
        assert [one["event"] for one in logged] == ["the signing key cannot be read"]
        seen = await look_at_workers()
        assert (seen.alive, seen.signing_keys, seen.lacks) == (1, (), ("something",))
        assert (await show_storage(require_env("kv"), NoParameters())).signing_key == ""
        secret(key)
        await give_sign()
        assert (await look_at_workers()).signing_keys == (key.public.key_id,)


async def test_what_is_no_key_is_refused_and_not_shown(secret, tmp_path):
    path = secret(SigningKey.generate(), 0o444)
    with pytest.raises(
        InvalidSettings, match="can be read by others: give it to this process's group at most"
    ):
        await GivenKeys(path).current()
    (tmp_path / "other").write_text("never-shown")
    (tmp_path / "other").chmod(0o400)
    with pytest.raises(StoreCorrupt, match="is not a private Ed25519 key"):
        await GivenKeys(str(tmp_path / "other")).current()
    with pytest.raises(StoreUnavailable, match="cannot be read: No such file"):
        await GivenKeys(str(tmp_path / "absent")).current()
    with pytest.raises(InvalidSettings, match="no private Ed25519 key: give a file's path") as caught:
        await open_keys(Settings(data_dir=str(tmp_path), signing_key="never-shown"))
    assert "never-shown" not in str(caught.value) + repr(caught.value.details)
    assert "never-shown" not in repr(Settings(signing_key="never-shown"))
