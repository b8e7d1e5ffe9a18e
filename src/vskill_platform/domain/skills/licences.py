"""Which licence a text is, for the common ones: a few telling phrases, looked for in text without case and line ends.

The answer is an SPDX identifier, `NOASSERTION` for a text that is none of these, and `NONE` where there is no text.
A licence's text does not say whether later versions are allowed too, so the GNU licences have their plain names.
"""

from collections.abc import Mapping

NONE = "NONE"
NOT_RECOGNISED = "NOASSERTION"

#: Where a repository keeps its licence, the usual place first.
FILES = tuple(
    f"{stem}{ending}"
    for stem in ("LICENSE", "LICENCE", "COPYING", "UNLICENSE", "License", "license")
    for ending in ("", ".md", ".txt")
)
#: The phrases of every known licence stand near the beginning.
MOST_BYTES = 64 * 1024

_TAG = "spdx-license-identifier:"
_TAG_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-")
_MOST_TAG = 64

#: The first row whose phrases all occur names the licence.
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("AGPL-3.0", ("gnu affero general public license version 3",)),
    ("LGPL-3.0", ("gnu lesser general public license version 3",)),
    ("LGPL-2.1", ("gnu lesser general public license version 2.1",)),
    ("GPL-3.0", ("gnu general public license version 3",)),
    ("GPL-2.0", ("gnu general public license version 2",)),
    ("Apache-2.0", ("apache license version 2.0",)),
    ("Apache-2.0", ("licensed under the apache license, version 2.0",)),
    ("MPL-2.0", ("mozilla public license version 2.0",)),
    ("MPL-2.0", ("mozilla public license, version 2.0",)),
    ("EPL-2.0", ("eclipse public license - v 2.0",)),
    ("BSL-1.0", ("boost software license - version 1.0",)),
    ("CC0-1.0", ("cc0 1.0 universal",)),
    ("CC-BY-SA-4.0", ("attribution-sharealike 4.0 international",)),
    ("CC-BY-4.0", ("attribution 4.0 international",)),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",)),
    (
        "MIT",
        (
            "permission is hereby granted, free of charge, to any person obtaining a copy",
            "the above copyright notice and this permission notice shall be included",
        ),
    ),
    ("MIT-0", ("permission is hereby granted, free of charge, to any person obtaining a copy",)),
    ("BSD-3-Clause", ("redistribution and use in source and binary forms", "neither the name")),
    ("BSD-2-Clause", ("redistribution and use in source and binary forms",)),
    (
        "ISC",
        (
            "permission to use, copy, modify, and/or distribute this software for any purpose",
            "provided that the above copyright notice",
        ),
    ),
    (
        "ISC",
        (
            "permission to use, copy, modify, and distribute this software for any purpose",
            "provided that the above copyright notice",
        ),
    ),
    ("0BSD", ("permission to use, copy, modify, and/or distribute this software for any purpose",)),
)


def recognise(files: Mapping[str, bytes]) -> tuple[str, str | None]:
    """The licence among a repository's files, and the file that says so."""
    there = [name for name in FILES if name in files]
    for name in there:
        found = licence_of(files[name])
        if found != NOT_RECOGNISED:
            return found, name
    return (NOT_RECOGNISED, there[0]) if there else (NONE, None)


def licence_of(data: bytes) -> str:
    """The licence of one text; the time that it takes grows with the text and with nothing else."""
    text = data[:MOST_BYTES].decode("utf-8", "replace")
    tagged = _find_tag(text)
    if tagged is not None:
        return tagged
    plain = " ".join(text.lower().replace("*", " ").replace("#", " ").split())
    for name, phrases in _PHRASES:
        if all(phrase in plain for phrase in phrases):
            return name
    return NOT_RECOGNISED


def _find_tag(text: str) -> str | None:
    start = text.lower().find(_TAG)
    # Case folding of odd letters may change the length; the tag is only believed where it stands.
    if start < 0 or text[start : start + len(_TAG)].lower() != _TAG:
        return None
    words = text[start + len(_TAG) :].split()
    word = words[0] if words else ""
    return word if word and len(word) <= _MOST_TAG and _TAG_CHARACTERS.issuperset(word) else None
