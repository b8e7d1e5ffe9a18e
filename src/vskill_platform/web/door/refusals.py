"""The front door's answers to refused clients: complete responses, made once, so that a refusal costs next to nothing.
They look like every other problem document."""

import socket
from http import HTTPStatus

import msgspec

_BUSY_WAIT_S = 2
_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><h1>{title}</h1><p>{detail}</p></html>"
)


class Refusal(msgspec.Struct, frozen=True):
    """One reason, with its answer."""

    code: str
    status: int
    detail: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    #: The same for a browser.
    page: bytes
    #: All of it as it goes over the wire, ending the connection.
    answer: bytes


def _refusal(code: str, status: HTTPStatus, detail: str, retry_after_s: int | None = None) -> Refusal:
    document = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "error": detail,
        "code": code,
        "requestId": None,
    }
    body = msgspec.json.encode(document)
    headers = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    if retry_after_s is not None:
        headers.append((b"retry-after", str(retry_after_s).encode()))
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}".encode(),
        *(name + b": " + value for name, value in headers),
        b"content-type: application/problem+json",
        b"content-length: " + str(len(body)).encode(),
        b"connection: close",
        b"",
        body,
    ]
    page = _PAGE.format(title=status.phrase, detail=detail).encode()
    return Refusal(code, status.value, detail, tuple(headers), body, page, b"\r\n".join(lines))


#: Too many requests run and wait.
BUSY = _refusal(
    "busy",
    HTTPStatus.SERVICE_UNAVAILABLE,
    f"This registry is busy; try again in {_BUSY_WAIT_S} s.",
    _BUSY_WAIT_S,
)
FULL = _refusal(
    "too_many_connections",
    HTTPStatus.SERVICE_UNAVAILABLE,
    "This registry has too many connections; try again in 5 s.",
    5,
)
TOO_MANY_FROM_ADDRESS = _refusal(
    "too_many_connections_of_address",
    HTTPStatus.TOO_MANY_REQUESTS,
    "Your address has too many connections to this registry; close some, or try again in 5 s.",
    5,
)
SLOW_HEADERS = _refusal(
    "headers_too_slow",
    HTTPStatus.REQUEST_TIMEOUT,
    "The request's headers took too long to arrive; send the request again.",
)
SLOW_BODY = _refusal(
    "body_too_slow",
    HTTPStatus.REQUEST_TIMEOUT,
    "The request's body took too long to arrive; send the request again.",
)
LARGE_HEADERS = _refusal(
    "headers_too_large",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "The request's headers are larger than 65,536 bytes or more than 100; send fewer or shorter ones.",
)
LONG_ADDRESS = _refusal(
    "address_too_long",
    HTTPStatus.REQUEST_URI_TOO_LONG,
    "The request's address is longer than 49,152 bytes; send a shorter one.",
)
BAD_HOST = _refusal(
    "bad_host",
    HTTPStatus.BAD_REQUEST,
    "The request needs exactly one Host header, with a host name and nothing else; send it so.",
)
BAD_REQUEST = _refusal(
    "bad_request",
    HTTPStatus.BAD_REQUEST,
    "This is not a valid HTTP/1.1 request; send one.",
)
SLOW_READER = _refusal(
    "answer_not_read",
    HTTPStatus.REQUEST_TIMEOUT,
    "The client did not read the answer.",
)


def refuse_at_once(client: socket.socket, refusal: Refusal) -> None:
    """Send the reason and close at once: too many are being refused to wait for each."""
    try:
        client.send(refusal.answer)
        client.shutdown(socket.SHUT_WR)
    except OSError:  # it has gone already
        pass
    finally:
        client.close()
