"""Licences: an SPDX identifier where a text is one of the common ones, and no guess otherwise."""

import pytest

from vskill_platform.domain.skills.licences import (
    FILES,
    MOST_BYTES,
    NONE,
    NOT_RECOGNISED,
    licence_of,
    recognise,
)

MIT = (
    b"Permission is hereby granted, free of charge, to any person\nobtaining a copy ...\n"
    b"The above copyright notice and this permission notice shall be included"
)
GRANT = b"permission is hereby granted, free of charge, to any person obtaining a copy"
TAG = b"SPDX-License-Identifier: "


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (MIT, "MIT"),
        (GRANT, "MIT-0"),
        (b"# GNU *Affero* General Public License\n\nVersion 3", "AGPL-3.0"),
        (b"Apache License\n  Version 2.0, January 2004", "Apache-2.0"),
        (b"All rights reserved.", NOT_RECOGNISED),
        (b"", NOT_RECOGNISED),
        (b"\xff\xfe" + MIT, "MIT"),
        (b"x" * (MOST_BYTES - len(GRANT)) + GRANT, "MIT-0"),
        (b"x" * (MOST_BYTES - len(GRANT) + 1) + GRANT, NOT_RECOGNISED),
        (b"// " + TAG + b"EUPL-1.2\nrest", "EUPL-1.2"),
        (TAG.lower() + b"0BSD", "0BSD"),
        (TAG + b"A" * 64, "A" * 64),
        (TAG + b"A" * 65, NOT_RECOGNISED),
        (TAG + b"(MIT OR 0BSD)\n" + MIT, "MIT"),
        (TAG, NOT_RECOGNISED),
        (TAG.replace(b" ", b""), NOT_RECOGNISED),
        (TAG + b" MIT", "MIT"),
        (TAG + b" " + b"A" * 65, NOT_RECOGNISED),
        (TAG + b"MIT\n" + TAG + b"0BSD\n", "MIT"),
        (b"\xc4\xb0 " + TAG + b"EUPL-1.2", NOT_RECOGNISED),
    ],
)
def test_a_text_is_recognised_by_its_tag_or_its_phrases(text, licence):
    assert licence_of(text) == licence


def test_the_first_file_that_is_recognised_counts():
    assert recognise({}) == (NONE, None)
    assert recognise({"README.md": MIT}) == (NONE, None)
    assert recognise({"COPYING": MIT, "LICENSE": b"ours"}) == ("MIT", "COPYING")
    assert recognise({"COPYING": MIT, "LICENSE.md": GRANT}) == ("MIT-0", "LICENSE.md")
    assert recognise({"COPYING": b"ours", "LICENSE": b"ours too"}) == (NOT_RECOGNISED, "LICENSE")
    assert FILES[0] == "LICENSE"
