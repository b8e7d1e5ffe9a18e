"""The registry's own client as a wheel: `uvx --from ADDRESS/client/….whl vskill-client install NAME`.

It is made from the installed package, so that client and registry are of one release, and no index is asked for a name
of ours. Its members are not compressed: one release gives the same bytes on every machine.
"""

import asyncio
import base64
import hashlib
import io
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import vskill_client
import vskill_core
from vskill_core.dsse import ENVELOPE_TYPE
from vskill_core.errors import NotFound
from vskill_core.release import __version__
from vskill_core.statement import STATEMENT_TYPE
from vskill_platform.actions.skills.downloads import sign
from vskill_platform.web.exchange import answer_with_tag, attachment, services_of
from vskill_platform.web.routing import get

#: What the client imports of others' packages; which versions, the registry's own metadata says.
NEEDED = ("click", "cryptography", "httpx2", "msgspec")
NAME = f"vskill_client-{__version__}"
WHEEL = f"{NAME}-py3-none-any.whl"
WHEEL_TYPE = "application/zip"
PREDICATE_TYPE = "urn:vskill-platform:client:v1"
#: The oldest moment that a zip archive can name.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_ENTRY_POINTS = "[console_scripts]\nvskill-client = vskill_client.main:main\n"
_ABOUT = "Wheel-Version: 1.0\nGenerator: vskill-platform\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def client_command(base_url: str) -> str:
    """What runs the client that the registry at this address serves, without installing it for good."""
    return f"uvx --from {base_url}/client/{WHEEL} vskill-client"


@cache
def client_wheel() -> bytes:
    """The wheel: the client, and what it shares with the registry."""
    members = {
        f"{package.__name__}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for package in (vskill_client, vskill_core)
        for folder in (Path(str(package.__file__)).parent,)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = f"{NAME}.dist-info"
    members[f"{about}/METADATA"] = _metadata().encode()
    members[f"{about}/WHEEL"] = _ABOUT.encode()
    members[f"{about}/entry_points.txt"] = _ENTRY_POINTS.encode()
    members[f"{about}/RECORD"] = _record(members, f"{about}/RECORD").encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, _EPOCH)
            member.external_attr = 0o100644 << 16
            archive.writestr(member, data)
    return written.getvalue()


def _metadata() -> str:
    ours = metadata.metadata("vskill-platform")
    required = [line for line in ours.get_all("Requires-Dist", ()) if line.partition(">")[0] in NEEDED]
    return "\n".join(
        (
            "Metadata-Version: 2.4",
            "Name: vskill-client",
            f"Version: {__version__}",
            "Summary: The command line of this registry.",
            f"License-Expression: {ours['License-Expression']}",
            f"Requires-Python: {ours['Requires-Python']}",
            *(f"Requires-Dist: {line}" for line in sorted(required)),
            "",
        )
    )


def _record(members: dict[str, bytes], own_name: str) -> str:
    """Every member with its digest and size, as installers check them."""
    lines = []
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join((*lines, f"{own_name},,\n"))


async def client_file(request: Request) -> Response:
    """The wheel, or the envelope that signs its digest."""
    asked = request.path_params["file"]
    # Files are read the first time.
    wheel = await asyncio.to_thread(client_wheel)
    if asked == WHEEL:
        return attachment(answer_with_tag(request, wheel, WHEEL_TYPE), WHEEL)
    if asked == f"{WHEEL}.dsse.json":
        return answer_with_tag(request, await sign(services_of(request), _statement()), ENVELOPE_TYPE)
    raise NotFound(
        f"There is no {asked[:100]!r} here; the client of this registry is {WHEEL}.",
        fix=f"get /client/{WHEEL}",
    )


def _statement() -> bytes:
    """What the wheel's digest is, as in-toto says it."""
    digest = {"sha256": hashlib.sha256(client_wheel()).hexdigest()}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": WHEEL, "digest": digest}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"version": __version__},
    }
    return msgspec.json.encode(statement)


ENDPOINTS = (
    get(
        "/client/{file}",
        client_file,
        stays_open=True,
        media=WHEEL_TYPE,
        problems=(404,),
        tag="keys",
        summary="Download the client of this registry as a wheel, or with `.dsse.json` behind its name what signs it",
    ),
)
