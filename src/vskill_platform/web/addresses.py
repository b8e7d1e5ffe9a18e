"""Where people reach this registry: the address that the operator set, or else the one that the request came to."""

from starlette.requests import Request

from vskill_platform.web.principal import services_of

#: Where a request notes that its answer holds an address that the client itself named.
NAMED_BY_CLIENT = "address_named_by_client"

_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-[]")


def public_address(request: Request) -> str:
    """Without a slash at its end. A `Host` that could not be one is not repeated, and an answer with one that the
    client named is kept by nobody else (`responses.cache_for`)."""
    settings = services_of(request).settings
    if settings.public_url:
        return settings.public_url.rstrip("/")
    request.scope[NAMED_BY_CLIENT] = True
    host = request.headers.get("host", "")
    if not host or not _HOST.issuperset(host):
        host = f"{settings.host}:{settings.port}"
    return f"{request.scope.get('scheme', 'http')}://{host}"
