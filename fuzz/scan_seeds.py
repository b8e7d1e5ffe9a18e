"""Where fuzzing the readers of the scanner begins: one honest input of every kind, and the words of each."""

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
        b"<<'EOF'\n",
        b"<<-EOF\n",
        b"\nEOF\n",
        b"$((1<<",
        b'"$(',
        b"${x:-",
        b"$'\\x41'",
        b"# don't (\n",
        b'"""',
        b'f"{x["',
        b"\\\n",
        b"sudo -E env X=1 ",
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
