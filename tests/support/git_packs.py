"""A git repository of one commit, fetched through the application without git."""

import json
import zlib
from typing import Any

import httpx2
import msgspec


class ClonedTexts(msgspec.Struct, frozen=True):
    """What a client is given."""

    status: int
    #: empty where it is refused
    commit: str
    #: every object of the pack, or the refusal
    texts: list[str]

    @property
    def plugins(self) -> dict[str, dict[str, Any]]:
        """The entries of a marketplace by name."""
        (document,) = (text for text in self.texts if '"plugins":[' in text)
        return {one["name"]: one for one in json.loads(document)["plugins"]}


def read_pack(pack: bytes) -> list[bytes]:
    """Every object of a pack without differences."""
    assert pack[:4] == b"PACK"
    found, rest = [], pack[12:]
    for _ in range(int.from_bytes(pack[8:12], "big")):
        while rest[0] & 0x80:
            rest = rest[1:]
        inflating = zlib.decompressobj()
        found.append(inflating.decompress(rest[1:]))
        rest = inflating.unused_data
    assert len(rest) == 20
    return found


async def clone_texts(client: httpx2.AsyncClient, address: str, **options: Any) -> ClonedTexts:
    """Both requests of a clone, in the older version of the protocol."""
    shown = await client.get(f"{address}/info/refs?service=git-upload-pack", **options)
    if shown.status_code != 200:
        return ClonedTexts(shown.status_code, "", [shown.text])
    commit = shown.text.partition("\n0000")[2][4:44]
    packed = await fetch_pack(client, address, commit, **options)
    assert packed.startswith(b"0008NAK\n"), packed[:200]
    return ClonedTexts(200, commit, [one.decode("utf-8", "replace") for one in read_pack(packed[8:])])


async def fetch_pack(client: httpx2.AsyncClient, address: str, commit: str, **options: Any) -> bytes:
    """What is answered to whoever wants this commit."""
    wanted = b"0032want " + commit.encode() + b"\n00000009done\n"
    return (await client.post(f"{address}/git-upload-pack", content=wanted, **options)).content
