"""What lets anyone check offline what this registry vouches for: its public keys, and each version's attestation."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.skill_contents import read_attestation
from vskill_platform.actions.wire import Wire, encode
from vskill_platform.signing.dsse import ENVELOPE_TYPE
from vskill_platform.store.attestations import public_keys
from vskill_platform.web.principal import principal_of
from vskill_platform.web.routing import get
from vskill_platform.worker_context import require_env

JWKS_TYPE = "application/jwk-set+json"
PEM_TYPE = "application/x-pem-file"
#: Keys change by rotation only; a client that finds an unknown key id asks again anyway.
KEYS_MAX_AGE_S = 300


async def key_set(_request: Request) -> Response:
    """Every public key as a JSON Web Key Set, the one that signs now first."""
    body = KeySet(tuple(one.jwk for one in await public_keys()))
    return Response(encode(body), 200, _cached_for(KEYS_MAX_AGE_S), JWKS_TYPE)


async def key_texts(_request: Request) -> Response:
    """The same keys as PEM, one after the other."""
    body = "".join(one.key.pem for one in await public_keys())
    return Response(body, 200, _cached_for(KEYS_MAX_AGE_S), PEM_TYPE)


async def attestation(request: Request) -> Response:
    """The signed statement about one version, byte for byte as it was signed."""
    parts = request.path_params
    canonical = f"{parts['owner']}/{parts['repo']}/{parts['slug']}"
    reader = principal_of(request)
    envelope = await read_attestation(require_env(), reader, canonical, parts["number"])
    return Response(envelope, 200, {"cache-control": "no-store"}, ENVELOPE_TYPE)


def _cached_for(seconds: int) -> dict[str, str]:
    return {"cache-control": f"public, max-age={seconds}"}


class KeySet(Wire, frozen=True):
    """A JSON Web Key Set; `status` of a key is active or retired."""

    keys: tuple[dict[str, str], ...]


_VERSION = "/api/v1/skills/{owner}/{repo}/{slug}/versions/{number}"

ENDPOINTS = (
    get(
        "/.well-known/vskill-keys.json",
        key_set,
        answer=KeySet,
        media=JWKS_TYPE,
        tag="keys",
        summary="Read the public keys that sign, as a key set",
    ),
    get(
        "/.well-known/vskill-keys.pem",
        key_texts,
        tag="keys",
        summary="Read the public keys that sign, as PEM",
        media=PEM_TYPE,
    ),
    get(
        f"{_VERSION}/attestation",
        attestation,
        media=ENVELOPE_TYPE,
        problems=(403, 404),
        tag="skills",
        summary="Read what was verified about a version, signed",
    ),
)
