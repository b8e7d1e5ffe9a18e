"""The registry's own client and scanner as wheels: `uvx --from ADDRESS/client/….whl vskill-client install NAME`.

They are made from the installed packages, so that they and the registry are of one release, and no index is asked for a
name of ours. Their members are not compressed: one release gives the same bytes on every machine.
"""

import asyncio
import base64
import hashlib
import io
import zipfile
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_core.dsse import ENVELOPE_TYPE
from vskill_core.errors import NotFound
from vskill_core.release import __version__
from vskill_core.statement import STATEMENT_TYPE
from vskill_platform.actions.skills.installs import sign
from vskill_platform.web.exchange import answer_with_tag, attachment, services_of
from vskill_platform.web.routing import get


class OwnPart(msgspec.Struct, frozen=True):
    """A part of this release that people run on their own machine."""

    #: the package, which the wheel is called by
    name: str
    summary: str
    #: `PROGRAM = MODULE:FUNCTION`
    program: str
    #: what it imports of others' packages; which versions, the registry's own metadata says
    needs: tuple[str, ...]

    @property
    def wheel(self) -> str:
        return f"{self.name}-{__version__}-py3-none-any.whl"


CLIENT = OwnPart(
    "vskill_client",
    "The command line of this registry.",
    "vskill-client = vskill_client.main:main",
    ("click", "cryptography", "httpx2", "msgspec"),
)
SCANNER = OwnPart(
    "vskill_scan",
    "The scanner of this registry.",
    "vskill-scan = vskill_scan.command:main",
    ("click", "google-re2", "msgspec", "pyyaml", "rich", "yara-x"),
)
WHEEL_TYPE = "application/zip"
PREDICATE_TYPE = "urn:vskill-platform:client:v1"
#: Behind a wheel's name: the envelope that signs its digest.
SIGNATURE = ".dsse.json"
#: The oldest moment that a zip archive can name.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_ABOUT = "Wheel-Version: 1.0\nGenerator: vskill-platform\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def client_command(base_url: str) -> str:
    """What runs the client that the registry at this address serves, without installing it for good."""
    return f"uvx --from {base_url}/client/{CLIENT.wheel} vskill-client"


@cache
def make_wheel(part: OwnPart) -> bytes:
    members = {
        f"{package}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for package in (part.name, "vskill_core")
        for folder in (Path(str(files(package))),)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = f"{part.name}-{__version__}.dist-info"
    members[f"{about}/METADATA"] = _metadata(part).encode()
    members[f"{about}/WHEEL"] = _ABOUT.encode()
    members[f"{about}/entry_points.txt"] = f"[console_scripts]\n{part.program}\n".encode()
    members[f"{about}/RECORD"] = _record(members, f"{about}/RECORD").encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, _EPOCH)
            member.external_attr = 0o100644 << 16
            archive.writestr(member, data)
    return written.getvalue()


def _metadata(part: OwnPart) -> str:
    ours = metadata.metadata("vskill-platform")
    required = [line for line in ours.get_all("Requires-Dist", ()) if line.partition(">")[0] in part.needs]
    return "\n".join(
        (
            "Metadata-Version: 2.4",
            f"Name: {part.name.replace('_', '-')}",
            f"Version: {__version__}",
            f"Summary: {part.summary}",
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
    asked = request.path_params["file"]
    part = next((one for one in (CLIENT, SCANNER) if one.wheel == asked.removesuffix(SIGNATURE)), None)
    if part is None:
        message = f"There is no {asked[:100]!r} here; this registry has {CLIENT.wheel} and {SCANNER.wheel}."
        raise NotFound(message, fix=f"get /client/{CLIENT.wheel}")
    # Files are read the first time.
    wheel = await asyncio.to_thread(make_wheel, part)
    if asked == part.wheel:
        return attachment(answer_with_tag(request, wheel, WHEEL_TYPE), asked)
    statement = _statement(part.wheel, hashlib.sha256(wheel).hexdigest())
    return answer_with_tag(request, await sign(services_of(request), statement), ENVELOPE_TYPE)


def _statement(name: str, digest: str) -> bytes:
    """What the wheel's digest is, as in-toto says it."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}}],
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
        summary="Download the registry's client or scanner as a wheel; with `.dsse.json` behind it, its signature",
    ),
)
