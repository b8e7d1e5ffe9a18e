"""The words of shell commands: what an option means, which command a wrapper starts, what a filter that only hides
makes of a text. `shell` reads the tree and follows values; here nothing is followed.
"""

import base64
from itertools import pairwise

import re2

from vskill_scan.code.taint import LONGEST_TEXT, Value
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
#: Options of ssh, by their last letter, that a value follows.
_SSH_VALUED = frozenset("BbcDEeFIiJLlmOopQRSWw")
#: A machine as `ssh` is given it. A list of options in one variable is none.
_MACHINE = re2.compile(r"^(?:[\w.-]+@)?[\w.-]+$")
#: A connection that goes on behind the user's back, or to a machine whose key nobody has looked at.
_HIDING = re2.compile(r"^-[A-Za-z]*f[A-Za-z]*$|StrictHostKeyChecking[= ]no\b")
_PUBLIC_KEY = re2.compile(r"^[^;|&`\n]*\bcat [^\s;|&`]*\.pub$")
#: Interpreters whose texts nobody reads.
_UNREAD = frozenset(words("ruby perl php pwsh powershell osascript"))
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


def split_first(words: list[Value]) -> list[Value]:
    """A command whose name is a variable is all the words of that variable."""
    first = words[0]
    if " " not in first.text or first.literal or len(first.text) > LONGEST_TEXT:
        return words
    return [*(Value(first.tags, part) for part in first.text.split()), *words[1:]]


def ssh_target(given: list[str]) -> tuple[str, bool]:
    """The host that `ssh` goes to, and whether a port there leads back to the login of this machine."""
    host, opened, skips = "", False, False
    for before, text in pairwise(["", *given]):
        forwards = text[2:] if text.startswith("-R") and len(text) > 2 else ""
        if before.startswith("-") and before.endswith("R"):
            forwards = text
        opened = opened or forwards.rpartition(":")[2] == "22"
        if skips:
            skips = False
        elif text.startswith("-"):
            skips = not text.startswith("--") and text[-1] in _SSH_VALUED
        elif not host and _MACHINE.match(text):
            host = text.rpartition("@")[2]
    return host, opened


def hides_connection(given: list[str]) -> bool:
    """Whether `ssh` is told to go into the background, or not to ask about the other machine."""
    return any(_HIDING.search(text) for text in given)


def reads_public_key(given: list[str]) -> bool:
    """Whether all that `ssh` does on the other machine is to show its public key."""
    return _PUBLIC_KEY.search(" ".join(given)) is not None


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
    known = {
        "python": "python",
        "node": "javascript",
        "nodejs": "javascript",
        "deno": "typescript",
        "bun": "typescript",
    }
    return known.get(plain, "" if plain in _UNREAD else "bash")


def untangled(name: str, given: list[str], text: str) -> str:
    """What a filter that only hides makes of a text; the text itself where that is not known."""
    plain = [one for one in given if not one.startswith("-")]
    if name == "rev":
        return "\n".join(line[::-1] for line in text.split("\n"))
    if name == "tr" and len(plain) == 2 and "-d" not in given:
        old, new = _spelt_out(plain[0]), _spelt_out(plain[1])
        if old and new:
            return text.translate(str.maketrans(old, (new + new[-1] * len(old))[: len(old)]))
    if name in {"base64", "base32", "xxd", "openssl"}:
        try:
            raw = bytes.fromhex(text) if name == "xxd" else base64.b64decode(text + "=" * (-len(text) % 4))
            return raw.decode("utf-8")
        except ValueError:
            return text
    return text


def _spelt_out(letters: str) -> str:
    """The letters of `a-z`, as `tr` takes them."""
    spelt: list[str] = []
    at = 0
    while at < len(letters) and len(spelt) < LONGEST_TEXT:
        if letters[at + 1 : at + 2] == "-" and at + 2 < len(letters):
            spelt.extend(
                map(chr, range(ord(letters[at]), min(ord(letters[at + 2]), ord(letters[at]) + 255) + 1))
            )
            at += 3
        else:
            spelt.append(letters[at])
            at += 1
    return "".join(spelt)


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
