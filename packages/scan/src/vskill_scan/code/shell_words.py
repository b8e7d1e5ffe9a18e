"""The words of shell commands: what an option means, and which command a wrapper starts. `shell` reads the tree and
follows values; here nothing is followed."""

import re2

from vskill_scan.code.taint import Value
from vskill_scan.places import persists_at
from vskill_scan.words import words

_WRAPPERS = frozenset(
    words("sudo doas nohup time env command exec builtin nice timeout stdbuf setsid xargs caffeinate")
)
_HEADER_OPTIONS = frozenset(words("-H --header -u --user -b --cookie --oauth2-bearer --proxy-user"))
_SCHEDULERS: dict[str, tuple[str, frozenset[str]]] = {
    "crontab": ("cron", frozenset()),
    "at": ("at", frozenset()),
    "launchctl": ("launchd", frozenset({"load", "bootstrap", "enable"})),
    "systemctl": ("systemd", frozenset({"enable"})),
    "schtasks": ("task", frozenset({"/create"})),
    "reg": ("registry", frozenset({"add"})),
}
#: Interpreters whose texts nobody reads.
_UNREAD = frozenset(words("node nodejs deno bun ruby perl php pwsh powershell osascript"))
_VARIABLE = re2.compile(r"^\$\{?[!#]?(\w+)")


def variable_name(expansion: str) -> str:
    """`x` of `$x`, `${x%/}`, `${x:-y}` and their like; the sign of a special one."""
    match = _VARIABLE.match(expansion)
    return str(match.group(1)) if match is not None else expansion.strip("${}")


def unwrap(words: list[Value]) -> list[Value]:
    """The command that `sudo`, `nohup` and their like start."""
    while len(words) > 1 and words[0].text.rpartition("/")[2] in _WRAPPERS:
        rest = words[1:]
        while len(rest) > 1 and (
            rest[0].text.startswith("-") or "=" in rest[0].text or rest[0].text.isdigit()
        ):
            rest = rest[1:]
        words = rest
    return words


def _names_file(name: str, option: str) -> bool:
    """Whether the word after this option is the file that a download goes to."""
    if option.startswith("--"):
        return option in {"--output", "--output-document"}
    return option.startswith("-") and option[-1:] == ("O" if name == "wget" else "o")


def expected_after(name: str, option: str) -> str:
    """What the word after an option of curl or wget is."""
    if _names_file(name, option):
        return "file"
    if option in {"-T", "--upload-file", "-sT", "--post-file", "--body-file"}:
        return "upload"
    return "header" if option in _HEADER_OPTIONS else ""


def keeps_name(name: str, options: set[str]) -> bool:
    """Whether a download becomes a file with the name that it has there."""
    if name == "wget":
        return not {"-O-", "-qO-"} & options
    return bool({"-O", "-LO", "-sLO", "-fsSLO", "--remote-name"} & options)


def interpreter_language(interpreter: str) -> str:
    """What an interpreter of this name reads."""
    plain = interpreter.rstrip("0123456789.")
    return "" if plain in _UNREAD else plain if plain == "python" else "bash"


def decodes(name: str, texts: list[str]) -> bool:
    wanted = {
        "base64": {"-d", "-D", "--decode", "-di"},
        "base32": {"-d", "--decode"},
        "xxd": {"-r", "-p"},
        "openssl": {"-d"},
    }
    return name in {"rev", "tr"} or bool(wanted[name] & set(texts))


def runs_shell(text: str) -> bool:
    return text in {"-e", "-c", "-lvpe", "--exec", "--sh-exec"} or text.lower().startswith(
        ("exec:", "system:")
    )


def scheduled_by(name: str, given: list[str]) -> str:
    """What outlives the session because of this command; "" for nothing."""
    what, acts = _SCHEDULERS[name]
    texts = {text.lower() for text in given}
    if not acts:
        # These take what they are given, by their input or as a file, unless they only list or remove.
        return what if texts - {"-l", "-r", "-u"} else ""
    if acts.isdisjoint(texts) or (name == "reg" and not persists_at(" ".join(given))):
        return ""
    return what
