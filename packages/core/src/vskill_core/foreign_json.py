"""JSON that somebody else wrote: broken in one way only, whatever is wrong with it."""

from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")


@overload
def read_json(data: bytes | str, kind: type[T]) -> T: ...
@overload
def read_json(data: bytes | str, kind: Any = Any) -> Any: ...
def read_json(data: bytes | str, kind: Any = Any) -> Any:
    """Decode foreign JSON. Raises msgspec.DecodeError, which is a ValueError, also for what is nested too deeply."""
    try:
        return msgspec.json.decode(data, type=kind)
    except UnicodeError as error:
        raise msgspec.DecodeError(f"JSON is not UTF-8 text: {error}") from None
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None
