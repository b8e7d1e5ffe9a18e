"""What lets anyone check offline what this registry vouches for: its public keys, and each version's attestation."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import NoParameters
from vskill_client.wire.skills import AttestedVersion, KeySet
from vskill_core.dsse import ENVELOPE_TYPE
from vskill_core.signing_keys import public_from_jwk
from vskill_platform.actions.skills.installs import ATTESTATION, KEYS
from vskill_platform.actions.wire import encode
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.routing import get

JWKS_TYPE = "application/jwk-set+json"
PEM_TYPE = "application/x-pem-file"
#: Keys change by rotation only; a client that finds an unknown key id asks again anyway.
_KEPT = {"cache-control": "public, max-age=300"}


async def key_set(request: Request) -> Response:
    return Response(encode(await _keys(request)), 200, _KEPT, JWKS_TYPE)


async def key_texts(request: Request) -> Response:
    """The same keys as PEM, one after the other."""
    body = "".join(public_from_jwk(dict(key)).pem for key in (await _keys(request)).keys)
    return Response(body, 200, _KEPT, PEM_TYPE)


async def attestation(request: Request) -> Response:
    """The signed statement about one version, byte for byte as it was signed."""
    parts = request.path_params
    canonical = f"{parts['owner']}/{parts['repo']}/{parts['slug']}"
    asked = AttestedVersion(skill=canonical, version=parts["number"])
    envelope = await ATTESTATION(services_of(request), principal_of(request), asked)
    return Response(envelope, 200, {"cache-control": "no-store"}, ENVELOPE_TYPE)


async def _keys(request: Request) -> KeySet:
    return await KEYS(services_of(request), principal_of(request), NoParameters())


_VERSION = "/api/v1/skills/{owner}/{repo}/{slug}/versions/{number}"

ENDPOINTS = (
    get(
        "/.well-known/vskill-keys.json",
        key_set,
        action=KEYS,
        stays_open=True,
        answer=KeySet,
        media=JWKS_TYPE,
        tag="keys",
        summary="Read the public keys that sign, as a key set",
    ),
    get(
        "/.well-known/vskill-keys.pem",
        key_texts,
        action=KEYS,
        stays_open=True,
        tag="keys",
        summary="Read the public keys that sign, as PEM",
        media=PEM_TYPE,
    ),
    get(
        f"{_VERSION}/attestation",
        attestation,
        action=ATTESTATION,
        media=ENVELOPE_TYPE,
        problems=(403, 404),
        tag="skills",
        summary="Read what was verified about a version, signed",
    ),
)
