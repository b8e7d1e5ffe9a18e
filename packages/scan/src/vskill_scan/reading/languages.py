"""What a file or a fenced block is, told by its name: which language, and which role its text has."""

from fnmatch import fnmatchcase
from functools import lru_cache

from vskill_scan.model import TextRole
from vskill_scan.words import words

#: Languages whose statements are read, and whose values are followed.
FOLLOWED = frozenset({"bash", "python"})
#: Languages of which patterns tell the commands that they start, with their names; no value is followed.
SHALLOW = {
    "javascript": "JavaScript", "typescript": "TypeScript", "go": "Go", "ruby": "Ruby", "powershell": "PowerShell",
    "batch": "Batch files", "php": "PHP", "lua": "Lua", "rust": "Rust", "java": "Java", "csharp": "C#",
    "script": "Perl, AWK, VBScript or AppleScript",
}  # fmt: skip
#: All that have a reader.
READ = FOLLOWED | SHALLOW.keys()

_BY_SUFFIX = {
    "bash": "sh bash zsh ksh command",
    "python": "py pyw pyi",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts tsx",
    "powershell": "ps1 psm1",
    "batch": "bat cmd",
    "ruby": "rb gemspec",
    "php": "php",
    "lua": "lua",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "csharp": "cs",
    "script": "pl pm vbs awk applescript scpt",
    "other": "kt scala swift c h cc cpp hpp r jl fish nu "
    "sql dart ex exs clj groovy gradle tcl el vim html htm vue svelte",
    "prose": "md mdx markdown txt rst adoc mdc text org",
    "data": "json jsonl ndjson json5 jsonc yaml yml toml ini cfg conf xml csv tsv lock svg css scss less env "
    "properties plist tmpl j2 template log diff patch ipynb map po pem key crt",
}
SUFFIXES = {suffix: language for language, suffixes in _BY_SUFFIX.items() for suffix in suffixes.split()}

_BY_FENCE = {
    "bash": "bash sh shell zsh console terminal shellsession sh-session shell-session ksh command cli",
    "python": "python py python3 pycon ipython",
    "javascript": "javascript js jsx mjs node cjs",
    "typescript": "typescript ts tsx",
    "powershell": "powershell ps1 pwsh ps",
    "batch": "bat batch cmd dos",
    "ruby": "ruby rb",
    "php": "php",
    "lua": "lua",
    "go": "go golang",
    "script": "perl pl vbscript vbs awk gawk applescript osascript",
    "data": "diff output log csv mermaid plaintext-output http dot plantuml svg",
    "config": "json yaml yml toml jsonc json5 ini xml env dotenv properties nginx hcl terraform",
    "prose": "text txt plaintext plain markdown md mdx prompt none",
}
FENCES = {name: language for language, names in _BY_FENCE.items() for name in names.split()}

_INTERPRETERS = {
    "bash": "bash", "sh": "bash", "zsh": "bash", "dash": "bash", "ksh": "bash", "python": "python",
    "python3": "python", "node": "javascript", "deno": "typescript", "bun": "typescript", "uv": "python",
    "ruby": "ruby", "php": "php", "lua": "lua", "luajit": "lua", "pwsh": "powershell",
    **dict.fromkeys(("perl", "osascript", "awk", "gawk", "mawk"), "script"),
}  # fmt: skip

_CODE_NAMES = frozenset(
    {"makefile", "dockerfile", "justfile", "rakefile", "gemfile", "procfile", "vagrantfile"}
)
_BASH_NAMES = frozenset({".bashrc", ".zshrc", ".profile", ".bash_profile", ".zprofile", ".envrc"})
_PROSE_NAMES = frozenset(
    {"readme", "license", "licence", "changelog", "notice", "authors", "contributing", "copying"}
)
#: Data that a program acts upon.
_CONFIG = (
    "package.json", "pyproject.toml", "setup.cfg", "*.mcp.json", "mcp.json", "settings.json", "settings.local.json",
    "hooks.json", "plugin.json", "marketplace.json", "manifest.json", "skill.json", "skill.yaml", "skill.yml",
    "*.plist", ".npmrc", ".pypirc", "pip.conf", ".gitconfig", "config.toml", "tasks.json", "launch.json",
    "devcontainer.json", "docker-compose*.y*ml", "compose.y*ml", "action.y*ml", "requirements*.txt", "deno.json",
    "agents.json", "*.service", "*.timer", "crontab", "composer.json", "cargo.toml", ".pre-commit-config.yaml",
)  # fmt: skip
_TEST_FOLDERS = frozenset(
    words(
        "test tests __tests__ spec specs fixture fixtures testdata test_data test-data mocks __mocks__ "
        "eval evals "
        "__fixtures__ samples"
    )
)

_CONFIG_NAMES = frozenset(name for name in _CONFIG if "*" not in name)
_CONFIG_PATTERNS = tuple(name for name in _CONFIG if "*" in name)

ACTING_CODE = READ | {"other"}


def language_of(path: str, text: bytes) -> str:
    """`prose`, `data`, `config`, or the language of a script."""
    name = path.rpartition("!")[2].rstrip("/").rpartition("/")[2].lower()
    if name in _CONFIG_NAMES or "/workflows/" in f"/{path}":
        return "config"
    if is_config(name):
        return "config"
    if name in _CODE_NAMES or name.startswith("dockerfile"):
        return "other"
    if name in _BASH_NAMES:
        return "bash"
    stem, dot, suffix = name.rpartition(".")
    if dot and suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if text.startswith(b"#!"):
        return _interpreter(text)
    if not dot or not stem or name.split(".")[0] in _PROSE_NAMES:
        return "prose"
    return "data"


@lru_cache(maxsize=1024)
def is_config(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _CONFIG_PATTERNS)


def is_named_text(path: str, data: bytes) -> bool:
    """Whether its name or first line makes a program read it as text, whatever bytes it holds."""
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    return SUFFIXES.get(suffix) in _READ_AS_TEXT or data.startswith(b"#!")


_READ_AS_TEXT = ACTING_CODE | {"prose"}


def _interpreter(text: bytes) -> str:
    words = text[2 : text.find(b"\n") % (len(text) + 1)][:200].replace(b"/", b" ").split()
    for word in words:
        plain = word.decode("ascii", "replace").rstrip("0123456789.")
        if plain in _INTERPRETERS:
            return _INTERPRETERS[plain]
    return "other"


def fence_language(info: str) -> str:
    """The language of a fenced block by the word after its backticks; an unknown one is some program's."""
    word = info.strip().strip("{}.").split(" ")[0].split(",")[0].split("{")[0].lower()
    return FENCES.get(word, "other") if word else ""


def role_of(language: str) -> TextRole:
    """The role of a whole file in that language."""
    if language in ACTING_CODE:
        return TextRole.CODE
    return {"prose": TextRole.FOLLOW, "config": TextRole.CONFIG}.get(language, TextRole.DATA)


def fence_role(language: str) -> TextRole:
    if language in {"bash", "powershell", "batch"}:
        return TextRole.COMMAND
    return role_of(language)


def is_test(path: str) -> bool:
    """Whether the file lies among tests, fixtures or samples."""
    parts = path.lower().replace("!", "/").split("/")
    name = parts[-1]
    marked = name.startswith(("test_", "conftest.")) or any(
        mark in name for mark in (".test.", ".spec.", "_test.")
    )
    return marked or not _TEST_FOLDERS.isdisjoint(parts[:-1])
