"""Checks of a match that no pattern can make: whether a token's own checksum fits, so that one made up for a document
is not taken for a secret. A rule names a check with `check:`; the engine asks it about the bytes that matched.
"""

import string
import zlib
from collections.abc import Callable

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
#: Characters at the end of a GitHub token that hold the checksum of those before them.
CHECKSUM = 6


def github_checksum(token: bytes) -> bool:
    """`ghp_` and its like: the CRC-32 of what stands between the prefix and the last six, written in base 62."""
    body = token.partition(b"_")[2]
    return _base62(zlib.crc32(body[:-CHECKSUM])).encode() == body[-CHECKSUM:]


def _base62(number: int) -> str:
    digits = []
    for _ in range(CHECKSUM):
        number, digit = divmod(number, len(_BASE62))
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))


CHECKS: dict[str, Callable[[bytes], bool]] = {"github-checksum": github_checksum}
