"""Where fuzzing begins: honest inputs of every kind, and the words that make each format interesting."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator

from fuzz import scan_seeds
from fuzz.targets import SEPARATOR
from vskill_platform.sources.examples import ExampleFile, bundled_repositories
from vskill_scan.rules.ruleset import bundled_rules

MOST_SCANNER_SEEDS = 400

_URLS = (
    "https://github.com/owner/repo",
    "https://github.com/Owner/Repo.git",
    "https://github.com/o/r/tree/main/skills/a",
    "https://github.com/o/r/blob/main/skills/a/SKILL.md",
    "git@github.com:o/r.git",
    "ssh://git@gitlab.com/group/sub/group/r",
    "https://gitlab.com/group/sub/r/-/tree/main/a%20b",
    "https://bitbucket.org/o/r/src/main/x",
    "https://codeberg.org/o/r/src/branch/main/x",
    "github.com/o/r",
    "https://user:pass@git.example.org:8443/~o/r?x=1#y",
    "https://xn--bcher-kva.example/o/r",
    "https://bücher.example/o/r",
    "https://[::1]:80/o/r",
    "https://127.0.0.1/o/r",
    "upload:ann/skills",
)

TOKENS: dict[str, tuple[bytes, ...]] = {
    "manifest": (
        *(b"---\n", b"name: ", b"description: ", b"\n  ", b"- ", b"&a ", b"*a", b"!!python/object", b"<<: "),
        *(
            b"? ",
            b"| \n",
            b">-\n",
            b"[",
            b"]",
            b"{",
            b"}",
            b'"',
            b"'",
            b"%YAML 1.2\n",
            b"\xef\xbb\xbf",
            b"\t",
        ),
        *(
            b"...\n",
            b"version: 1.0.0\n",
            b"allowed-tools: ",
            b"metadata:\n",
            b"\xff",
            b"\xe2\x80\xae",
            b"\0",
            b"\r",
        ),
    ),
    "markdown": (
        *(
            b"```\n",
            b"~~~",
            b"````sh\n",
            b"<!--",
            b"-->",
            b"\n\n",
            b"# ",
            b"> ",
            b"- ",
            b"1. ",
            b"    ",
            b"|",
            b"`",
        ),
        *(
            b"](",
            b"[a]: ",
            b"<b>",
            b"---\n",
            b"\xe2\x80\x8b",
            b"\xf3\xa0\x81\xa1",
            b"\xe2\x80\xae",
            b"!`",
            b"$(",
        ),
        *(
            b"aGVsbG8gd29ybGQ=",
            b"\\x68\\x65",
            b"&#104;",
            b"eval(",
            b"'''",
            b'"""',
            b"${",
            b"<<EOF\n",
            b"\r\n",
            b"\0",
        ),
    ),
    "archive": (
        *(
            b"PK\x03\x04",
            b"PK\x01\x02",
            b"PK\x05\x06",
            b"PK\x06\x06",
            b"\x1f\x8b",
            b"ustar\x0000",
            b"../",
            b"SKILL.md",
        ),
        *(
            b"\xff\xff\xff\xff",
            b"\x00\x00\x00\x00",
            b"\x00" * 512,
            b"g",
            b"x",
            b"L",
            b"K",
            b"2",
            b"30 path=x\n",
        ),
    ),
    "url": (
        *(
            b"https://",
            b"http://",
            b"git@",
            b"ssh://",
            b"file://",
            b".git",
            b"/tree/",
            b"/-/",
            b"/blob/",
            b"%2e%2e",
        ),
        *(
            b"%2F",
            b"%00",
            b"%ff",
            b"..",
            b"//",
            b"@",
            b":",
            b"?",
            b"#",
            b"~",
            b"www.",
            b"xn--",
            b"\\",
            b"\t",
            b" ",
        ),
        *("。".encode(), "ß".encode(), "ﬁ".encode(), "İ".encode(), b"\xff", SEPARATOR, b"SKILL.md", b"-"),
    ),
}
TOKENS["scanner"] = (
    *TOKENS["markdown"],
    *TOKENS["manifest"],
    SEPARATOR,
    b"curl ",
    b"| bash",
    b"base64 -d",
    b"rm -rf ~",
)
TOKENS |= scan_seeds.TOKENS


def seeds(target: str) -> list[bytes]:
    """Honest inputs of a target."""
    return list(_SEEDS[target]())


def _skills() -> Iterator[tuple[ExampleFile, ...]]:
    for repository in bundled_repositories():
        for skill in repository.skills:
            yield from skill.versions


def _manifests() -> Iterator[bytes]:
    for version in _skills():
        yield version[0].data
    yield b"---\nname: a\ndescription: b\nmetadata:\n  version: '1'\n  x: [a, b]\nallowed-tools: [Read, Write]\n---\n"


def _texts() -> Iterator[bytes]:
    for version in _skills():
        for file in version:
            kind = {"py": 1, "sh": 2, "md": 0}.get(file.path.rpartition(".")[2], 5)
            yield bytes([kind]) + file.data
    yield b"\x03const a = `x${await import('y')}`; eval(atob('aGk='));\n"
    yield b"\x04export const f = async (x: string): Promise<void> => { await fetch(x); };\n"


def _skill_inputs() -> Iterator[bytes]:
    for version in _skills():
        yield SEPARATOR.join(file.data for file in version)
    for number, text in enumerate(_rule_texts()):
        if number >= MOST_SCANNER_SEEDS:
            return
        yield b"---\nname: a\ndescription: b\n---\n" + text


def _rule_texts() -> Iterator[bytes]:
    """What the rules themselves give as examples."""
    for rule in bundled_rules().rules:
        for kind in (rule.examples.match, rule.examples.near_miss, rule.examples.benign):
            for example in kind:
                if isinstance(example, str):
                    yield example.encode()


def _programs() -> Iterator[bytes]:
    """Short programs of each language, and those of the bundled skills."""
    yield from scan_seeds.programs()
    for text in _texts():
        yield {1: b"\x01", 2: b"\x00"}.get(text[0], b"\x0e") + text[1:]


def _archives() -> Iterator[bytes]:
    members = {
        "a/SKILL.md": b"---\nname: a\ndescription: b\n---\n",
        "a/run.sh": b"#!/bin/sh\n",
        "a/d/x": b"x" * 500,
    }
    for packing in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", packing) as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        yield out.getvalue()
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        plain = _tar(members | {f"a/{'long' * 20}/{'name' * 20}": b"y"}, form)
        yield plain
        yield gzip.compress(plain, 1)


def _tar(members: dict[str, bytes], form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as packed:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("a/link")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
        if form == tarfile.GNU_FORMAT:
            packed.addfile(link)
    return out.getvalue()


def _addresses() -> Iterator[bytes]:
    for address in _URLS:
        yield address.encode()
        yield address.encode() + SEPARATOR + b"skills/a"


_SEEDS = {
    "manifest": _manifests,
    "markdown": _texts,
    "archive": _archives,
    "url": _addresses,
    "scanner": _skill_inputs,
    "code": _programs,
    "carrier": scan_seeds.carriers,
}
