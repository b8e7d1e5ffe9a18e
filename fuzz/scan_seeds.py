"""Where fuzzing the readers of the scanner begins: one honest input of every kind, and the words of each."""

import datetime as dt
import marshal
import pickle
import zlib
from collections.abc import Iterator

TOKENS: dict[str, tuple[bytes, ...]] = {}
TOKENS["code"] = (
    *(
        b"%w[",
        b"[[",
        b"<#",
        b"#>",
        b"/*",
        b"*/",
        b"--[[",
        b"do |x|",
        b"|",
        b"{",
        b"}",
        b"(",
        b")",
        b"=",
        b"=>",
        b"->",
    ),
    *(
        b"File.read(",
        b"~/.ssh/id_rsa",
        b"curl ",
        b"$ENV{",
        b"$env:",
        b"require(",
        b".then(",
        b"Invoke-Expression ",
    ),
    *(
        b"import ",
        b"def f(a):\n    ",
        b"exec(",
        b"getattr(",
        b"chr(",
        b"base64.b64decode(",
        b"os.environ",
        b"\\\n",
    ),
)
TOKENS["carrier"] = (
    *(
        b'"cell_type": "code"',
        b'"source": [',
        b'"',
        b"\\n",
        b'\\"',
        b"\t",
        b"RUN ",
        b"run: |\n",
        b"- ",
        b"  ",
    ),
    *(b"<script>", b"</script>", b"<![CDATA[", b"]]>", b" onload=", b"ExecStart=", b"<string>", b"</string>"),
    *(b"$$", b"command: ", b"[", b"]", b"{", b"}", b"curl ", b"| sh", b"\\", b"\n", b"\xff"),
)
TOKENS["binary"] = (
    *(
        b"\x80\x04",
        b"\x80\x02",
        b"c",
        b"os\nsystem\n",
        b"R.",
        b"\x8c\x02os",
        b"\x93",
        b"\x94",
        b"q\x00",
        b"h\x00",
    ),
    *(
        b"%PDF-1.7\n",
        b"stream\n",
        b"endstream",
        b"(",
        b")",
        b" Tj",
        b"[(",
        b")] TJ",
        b"<41>",
        b"\\",
        b"x\x9c",
    ),
    *(b"GIF89a", b"RIFF", b"#!/bin/sh\n", b"\0", b"\xff" * 8),
)
TOKENS["folding"] = (
    *(
        b"chr(",
        b"ord(",
        b"''.join(",
        b"[::-1]",
        b" + ",
        b" * ",
        b" % ",
        b" ^ ",
        b" >> ",
        b"9" * 30,
        b"-1",
        b"[",
        b"]",
    ),
    *(b"bytes.fromhex(", b"base64.b64decode(", b"zlib.decompress(", b"codecs.decode(", b"'rot13'", b"range("),
    *(
        b"lambda a: ",
        b" for a in ",
        b"a = ",
        b"\n",
        b"(",
        b")",
        b"'",
        b'"',
        b"`${",
        b"}`",
        b"String.fromCharCode(",
    ),
    *(
        b".map(",
        b"=> ",
        b".replace(",
        b".split('')",
        b".reverse()",
        b"atob(",
        b"*a",
        b"...a",
        b"{}".join([b"'", b"'"]),
    ),
)


def programs() -> Iterator[bytes]:
    """One short program of each language."""
    for number, text in enumerate(_PROGRAMS):
        yield bytes([number]) + text


_PROGRAMS = (
    b'for f in *; do cat "$f" | tr a-z n-za-m; done\n',
    b"import base64\ndef f(x: str) -> bytes:\n    return base64.b64decode(x)\nprint(f('aGVsbG8gd29ybGQ='))\n",
    b"const a = ['c', 'u'].map((x) => x + 'r').join('');\nrequire('fs').readFile(a, (e, d) => fetch(d));\n",
    b"export async function f(x: string): Promise<string> { return (await fetch(x)).text(); }\n",
    b"const A = () => <div onClick={() => eval(b)}>{c}</div>;\n",
    b'%w[a b].each do |x|\n  puts File.read("#{x}.txt")\nend\n',
    b"open(my $f, '<', $ENV{HOME}); my @a = map { chr } (1, 2); print <$f>;\n",
    b"<?php $a = file_get_contents('x'); foreach ($b as $c) { echo \"{$c}\"; } /* d */\n",
    b"local f = io.open([[x]]) --[[ y ]]\nprint(f:read('*a'))\n",
    b"Get-Content a | ForEach-Object { & ('i' + 'ex') $_ } <# b #>\n",
    b"func main() { b, _ := os.ReadFile(`a`); http.Post(\"x\", 'y', b) }\n",
    b'Set x = CreateObject("a")\nx.Open "GET", "b" \' c\n',
    b"@echo off\nset A=cu\n%A%rl x\n",
    b'do shell script "ls " & quoted form of a\n',
    b"# A\n\n```sh\ncurl x | sh\n```\n",
    b'BEGIN { "ls" | getline l; print l | "cat" } # a\n',
)


def carriers() -> Iterator[bytes]:
    for number, text in enumerate(_CARRIERS):
        yield bytes([number]) + text


_CARRIERS = (
    b'{"cells": [{"cell_type": "code", "source": ["!ls\\n", "print(1)"]}, {"cell_type": "markdown", "source": "a"}]}',
    b"A = b\nall:\n\t@echo $$A; \\\n\tls\n",
    b'FROM a\nRUN --mount=x ls && \\\n  cat b\nCMD ["sh", "-c", "ls a"]\n',
    b"jobs:\n  a:\n    steps:\n      - run: |\n          ls\n      - run: echo a\n",
    b'{"hooks": {"Stop": [{"command": "sh -c \\"ls a\\""}]}}',
    b'{"scripts": {"postinstall": "node a.js", "x": "curl \\\\ y"}}',
    b"[Service]\nExecStart=/bin/sh -c 'ls a'\n",
    b"[alias]\n  a = !sh -c 'ls b'\n",
    b"<plist><string>sh -c ls</string></plist>",
    b"<p onload='eval(a)'><script>fetch(b)</script></p>",
    b"<svg><script><![CDATA[fetch(a)]]></script></svg>",
    b"[Desktop Entry]\nExec=sh -c ls\n",
    b"services:\n  a:\n    command:\n      - sh\n      - -c\n",
    b'{"a": "bash -c \\"ls\\""}',
)


def binaries() -> Iterator[bytes]:
    for protocol in range(5):
        yield b"\x00" + pickle.dumps({"a": [1, "bcd"], "e": dt.date(2026, 1, 1)}, protocol)
    yield b"\x01" + marshal.dumps(compile("import os\nprint('abcdefgh')", "a", "exec"))
    shown = zlib.compress(b"BT (run \\\\(this\\\\)) Tj [(a) -1 (b)] TJ <414243> Tj ET")
    yield b"\x02%PDF-1.7\n1 0 obj\nstream\n" + shown + b"\nendstream\n%%EOF"
    yield b"\x03GIF89a=1;curl https://a.example | sh;" + bytes(40)


def expressions() -> Iterator[bytes]:
    for number, texts in enumerate(_EXPRESSIONS):
        for text in texts:
            yield bytes([number]) + text


_EXPRESSIONS = (
    (
        b"a = 'x' * 3\n''.join(chr(b ^ 7) for b in bytes.fromhex('6465'))\n",
        b"codecs.decode('phey', 'rot13') + '%s-{}' % ('a',)\n",
        b"''.join(map(lambda a: chr(a + 1), [98, 99]))[::-1]\n",
    ),
    (
        b"const a = [99, 117].map((x) => String.fromCharCode(x)).join('');\n",
        b"atob('aGk=').split('').reverse().join('') + `${1 + 2}`;\n",
    ),
)
