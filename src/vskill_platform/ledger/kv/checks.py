"""What a commit may hold, checked before any engine sees it, so that every engine refuses the same things."""

from collections.abc import Sequence

from vskill_core.errors import Conflict, InvalidInput
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.kv.entries import Assert, Delete, Operation, Put

#: Bytes of a key. PostgreSQL cannot index more than about 2,700 in one entry.
MAX_KEY = 2_000


def check_operations(operations: Sequence[Operation]) -> None:
    """Keys and values are text that every engine can hold, no key is written twice, and no two expectations of one key
    contradict each other."""
    written: set[str] = set()
    expected: dict[str, int] = {}
    for operation in operations:
        if isinstance(operation, Send):
            continue
        check_key(operation.key)
        if isinstance(operation, Assert):
            _expect(expected, operation.key, operation.version)
            continue
        if isinstance(operation, Put | Delete) and operation.if_version is not None:
            _expect(expected, operation.key, operation.if_version)
        if operation.key in written:
            raise InvalidInput(f"{operation.key} is written twice in one commit", field="operations")
        written.add(operation.key)
        if isinstance(operation, Put):
            check_value(operation.key, operation.value)


def _expect(expected: dict[str, int], key: str, version: int) -> None:
    if expected.setdefault(key, version) != version:
        raise Conflict(f"{key} cannot be at version {expected[key]} and {version}", key=key)


def check_key(key: str) -> None:
    if key and key.isascii() and len(key) <= MAX_KEY and "\0" not in key:
        return
    if not key or "\0" in key:
        raise InvalidInput(f"{key!r} is not a valid key: a key is not empty and has no NUL", field="key")
    size = len(_encode(key, "key"))
    if size > MAX_KEY:
        raise InvalidInput(f"a key of {size} bytes is too long; at most {MAX_KEY}", field="key")


def check_texts(field: str, *texts: str) -> None:
    """Texts that are compared with keys or fields must be encodable: half a surrogate pair would crash some engines."""
    for text in texts:
        if not text.isascii():
            _encode(text, field)


def check_value(key: str, value: bytes) -> None:
    """UTF-8 without NUL: what a database's text column can hold."""
    if b"\0" in value:
        raise InvalidInput(f"the value of {key} has a NUL byte; JSON writes it as \\u0000", field="value")
    if value.isascii():
        return
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the value of {key} is not UTF-8 ({error.reason})", field="value") from error


def _encode(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text!r} cannot be encoded as UTF-8", field=field) from error
