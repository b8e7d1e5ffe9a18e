"""What pure expressions come to, and that hostile ones come to nothing in time."""

import base64
import zlib

import pytest
import tree_sitter
import tree_sitter_javascript
import tree_sitter_python

from vskill_scan.code.fold import Fold
from vskill_scan.code.pure_functions import LARGEST

GRAMMARS = {"python": tree_sitter_python.language, "javascript": tree_sitter_javascript.language}


def fold(program: str, language: str = "python") -> str | None:
    """The last expression, with the assignments and functions before it."""
    source = program.encode()
    root = tree_sitter.Parser(tree_sitter.Language(GRAMMARS[language]())).parse(source).root_node

    def text(node: tree_sitter.Node) -> str:
        return source[node.start_byte : node.end_byte].decode()

    def field(node: tree_sitter.Node, *names: str) -> tree_sitter.Node:
        return next(child for name in names if (child := node.child_by_field_name(name)) is not None)

    folded = Fold(source, text)
    for statement in root.named_children:
        inner = statement.named_children[0] if statement.named_children else statement
        if statement.type == "function_definition":
            parameters = [text(one) for one in field(statement, "parameters").named_children]
            folded.define(text(field(statement, "name")), parameters, field(statement, "body"))
        elif inner.type in {"assignment", "variable_declarator"}:
            folded.bind(text(field(inner, "left", "name")), field(inner, "right", "value"))
    return folded.text(root.named_children[-1].named_children[0])


XOR = bytes(byte ^ 7 for byte in b"curl -s https://box").hex()
PACKED = base64.b85encode(zlib.compress(b"import os")).decode()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("'.' + 's' 'sh'", ".ssh"),
        ("''.join(['a', 'b'])", "ab"),
        ("''.join(chr(one) for one in [99, 117, 114, 108])", "curl"),
        ("''.join(map(chr, [99, 117, 114, 108]))", "curl"),
        ("'hsab'[::-1]", "bash"),
        ("'%s/%s' % ('a', 'b')", "a/b"),
        ("'{}-{}'.format('a', 'b')", "a-b"),
        ("codecs.decode('phey', 'rot13')", "curl"),
        ("base64.b64decode('Y3VybA').decode()", "curl"),
        (f"bytes(one ^ 7 for one in bytes.fromhex('{XOR}')).decode()", "curl -s https://box"),
        (f"zlib.decompress(base64.b85decode('{PACKED}'))", "import os"),
        ("bytes(a ^ b for a, b in zip(bytes.fromhex('0205'), itertools.cycle(b'ab')))", "cg"),
        ("key = 1\ndef f(text):\n    return ''.join(chr(ord(one) - key) for one in text)\nf('dvsm')", "curl"),
        (
            "def f(text):\n    out = []\n    for one in text:\n        out.append(one)\n    return ''.join(out)\nf('ab')",
            "ab",
        ),
        ("'a'.translate(str.maketrans('a', 'b'))", "b"),
    ],
)
def test_python_comes_to(program, expected):
    assert fold(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("'cu' + 'rl'", "curl"),
        ("['c', 'u'].join('')", "cu"),
        ("String.fromCharCode(99, 117)", "cu"),
        ("atob('Y3VybA==')", "curl"),
        ("Buffer.from('6375', 'hex').toString()", "cu"),
        ("'lruc'.split('').reverse().join('')", "curl"),
        ("['Y3U=', 'cmw='].map((one) => atob(one)).join('')", "curl"),
        ("const a = 'c';\n`${a}url`", "curl"),
    ],
)
def test_javascript_comes_to(program, expected):
    assert fold(program, "javascript") == expected


@pytest.mark.parametrize(
    "program",
    [
        "open('x').read()",
        "unknown + 'a'",
        "os.environ['A'] + 'b'",
        "'{0.__class__}'.format('a')",
        "a = a + 'b'\na",
        "__import__('os').getcwd()",
        "'a'.__class__",
    ],
)
def test_what_is_not_pure_comes_to_nothing(program):
    assert fold(program) is None


@pytest.mark.parametrize(
    "program",
    [
        f"'a' * {LARGEST} * 100",
        f"('a' * {LARGEST}).replace('a', 'b' * {LARGEST})",
        f"('b' * {LARGEST}).join(['a'] * {LARGEST})",
        "''.join(itertools.cycle('a'))",
        "bytes(10 ** 9)",
        "bytes(999999999)",
        "''.join(str(one) for one in range(10000000))",
        "def f(a):\n    return f(a) + f(a)\nf('x')",
        "str(['a' * 60000] * 60000)",
        "zlib.decompress(base64.b64decode('"
        + base64.b64encode(zlib.compress(b"a" * 10**7)).decode()
        + "'))[70000:]",
    ],
)
def test_hostile_expressions_end_soon(stopwatch, program):
    began = stopwatch()
    assert len(fold(program) or "") <= LARGEST
    assert stopwatch() - began < 1
