"""The child's side of `child_processes.start_own`: MessagePack frames over the socket to its parent, and limits for
itself. Plain data only, so that nothing in a skill can become an object on the other side.
"""

import resource
import socket
import struct
from contextlib import suppress

import msgspec

HEADER = struct.Struct(">I")
#: A skill of 20 MB, with room; more is a mistake.
MOST_BYTES = 64 * 1024 * 1024


def frame(message: object) -> bytearray:
    """Encode into a bytearray: out of memory, `encode` would kill the process (msgspec 0.22), but this raises."""
    framed = bytearray(HEADER.size)
    msgspec.msgpack.Encoder().encode_into(message, framed, HEADER.size)
    HEADER.pack_into(framed, 0, len(framed) - HEADER.size)
    return framed


def receive(connection: socket.socket) -> bytes | None:
    """One message; None at the end."""
    header = _exactly(connection, HEADER.size)
    if header is None:
        return None
    (size,) = HEADER.unpack(header)
    return None if size > MOST_BYTES else _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


def limit_resource(kind: int, soft: int, hard: int | None = None, *, pid: int = 0) -> None:
    """Lower a kernel limit of this process or of a child; without `hard`, the hard limit stays. Never raise one: root
    could, but the operator set it on purpose."""
    _, ours = resource.getrlimit(kind)
    if hard is None or (ours != resource.RLIM_INFINITY and ours < hard):
        hard = ours
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    if pid == 0:
        resource.setrlimit(kind, (soft, hard))
    elif hasattr(resource, "prlimit"):  # pragma: no branch - Linux has it
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, kind, (soft, hard))
