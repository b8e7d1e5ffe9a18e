"""Ruby, Perl, PHP, Lua, PowerShell, Go, VBScript, awk, batch files and AppleScript, read line by line: the functions
that a line names tell what it does, and the texts and names on it what it does it to.

That is shallow on purpose. Names carry what was fetched or decoded to the line that runs it; a store of secrets counts
for every line of the same script that sends something. docs/adr/0028-fewer-rules.md says what a reader of every token
was worth beside it.
"""

from collections.abc import Iterator

import re2

from vskill_scan.code.taint import (
    DECODED,
    FETCHED,
    NOTHING,
    SECRET,
    STORED,
    Program,
    RunShell,
    Value,
    base_name,
    literal,
)
from vskill_scan.places import KEY_NAMES, TELLING_PATHS, host_in, is_broad, is_foreign_host, secret_at

#: Of one script, and of one line; what stands behind them is not read, and the scan is not complete.
MOST_LINES = 20_000
LONGEST_LINE = 4000

_COMMENT = re2.compile(rb"(?i)^\s*(?:#|//|--|::|;|'|\*|rem\b|@?echo off)")
_TEXT = re2.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`([^`]*)`|%[wWqQ][\[({]([^\])}]*)[\])}]")
_NAME = re2.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re2.compile(
    r"(?i)^\s*(?:my|our|local|var|let|set|dim|const)?\s*\(?[$@%]?([A-Za-z_]\w*)(?:\[[^\]]*\])?(?:\s*,\s*[$@%]?\w+)*\)?"
    r"\s*(?::|\.|\+)?=[^=~>]"
)
_GETLINE = re2.compile(r"\|\s*getline\s+(\w+)")
_KEY = re2.compile(rf"\b(?:{KEY_NAMES})\b")
_BATCH_SET = re2.compile(r"(?i)^\s*@?set\s+\"?(\w{1,40})=([^\"]*)")
_BATCH_IF = re2.compile(r"(?i)^\s*@?if\s+(?:not\s+)?(?:exist|defined)\s+(?:\"[^\"]*\"|\S+)\s+")
_BATCH_VARIABLE = re2.compile(r"%%?~?(\w{1,40})%?")
_BATCH_HOME = {"userprofile", "homepath", "appdata", "localappdata"}


def _doing(pattern: str) -> "re2._Regexp":
    return re2.compile(f"(?i){pattern}")


_READS = _doing(
    r"\b(?:file|io)[.:]+(?:read|binread|open|lines)|readfile|readall|get-content|\bgc\s|file_get_contents|\bfopen|\bopen\b|"
    r"slurp|copy-item|opentextfile|\.read\b|get-childitem|\bgci\s|scandir|\bglob\b|filepath\.walk|find-generic-password|cmdkey"
)
_DUMPS = _doing(
    r"\benv\.(?:to_|each|map|inspect)|os\.environ\b|getenvironmentvariables|\bgetenv\(\s*\)|%env\b|\$_env\b|(?:gci|dir|ls|childitem)\s+env:"
)
_FETCHES = _doing(
    r"uri\.open|open-uri|net::http|http\.get|httparty\.get|rest-?client\.get|faraday\.get|curl_exec|\blwp\b|getstore|"
    r"download(?:string|file|data)|bitstransfer|\bhttp\W{1,4}request|invoke-(?:webrequest|restmethod)|\biwr\b|\birm\b|\bwget\b|"
    r"\bcurl\b|\bget\s*\(\s*[\"']https?:|getstringasync|xmlhttp|winhttp|http\.newrequest|(?:open|file_get_contents|include|loadstring)\b[^\n]{0,40}https?://"
)
_SENDS = _doing(
    r"\bpost(?:form|async|_form)?\b|\.put\b|upload|send_message|sendmail|send-mailmessage|\bmail\(|curl_setopt|"
    r"-(?:body|infile|form)\b|\b(?:puts|write|print|fwrite)\b[^\n]{0,40}\bsock"
)
_DECODES = _doing(
    r"base64_decode|frombase64|decode_?(?:base)?64|b64decode|\bunpack|\bpack\b|gz(?:inflate|uncompress|decode)|rot13|hex2bin|"
    r"zlib|deflatestream|gzipstream|fromhex|decodestring|strrev|\breverse\b"
)
_EVALUATES = _doing(
    r"\beval\s*[^\s{=]|_eval\b|\bloadstring\b|\bload\s*\(|\bdofile\b|\binclude(?:_once)?\b|\brequire_once\b|\bassert\s*\(|create_function|"
    r"\biex\b|invoke-expression|scriptblock|executeglobal|\bexecute\b|&\s*\("
)
_STARTS = _doing(
    r"\bsystem\s*[(\s\"'$]|\bexec\b|popen|shell_exec|passthru|proc_open|os\.execute|exec\.command|start-process|capture[23]|"
    r"process\]?(?:::|\.)start|\bspawn\b|do shell script|\.run\b|startprocess|syscall\.exec|\|\s*getline"
)
_INSTALLS = _doing(r"\|\s*(?:iex|invoke-expression)\b")
_DELETES = _doing(r"rm_r|remove-item|unlink|rmdir|removeall|remove_tree|rmtree|file\.delete|os\.remove\b")
_WRITES = _doing(
    r"file[.:]+(?:write|binwrite|create)|file_put_contents|(?:set|add)-content|out-file|writeall|writefile|createtextfile|"
    r"new-itemproperty|set-itemproperty|io\.copy|copy_stream|os\.create|os\.openfile|fputs|fwrite|>>?\s*[$\w.~/]"
)
_CONNECTS = _doing(
    r"tcpsocket|fsockopen|inet(?:->|::)|socket\.tcp|tcpclient|net\.dial|tls\.dial|stream_socket_client|socket_connect"
)
_HOMES = _doing(r"dir\.home|homedir|userprofile|\benv\W{1,4}home\b|\bgetenv\(\W{0,2}home|\$home\b|homepath")
_CLIPBOARD = _doing(r"get-clipboard|clipboard\.(?:gettext|paste)|getdatafromclipboard")
_WALKS = _doing(
    r"\bglob\b|get-childitem|\bgci\b|directoryiterator|scandir|filepath\.walk|\bfind\.find|dir\.(?:each|children)"
)
_SHELLS = _doing(r"/bin/(?:ba|z|da)?sh\b|cmd\.exe|powershell|\bcmd\b")
#: What a line must hold to do anything; of others only what they assign counts.
_ANY = re2.compile(
    "|".join(
        f"(?:{sign.pattern})"
        for sign in (
            *(_READS, _DUMPS, _FETCHES, _SENDS, _DECODES, _EVALUATES, _STARTS, _DELETES, _WRITES, _CONNECTS),
            *(_HOMES, _CLIPBOARD, _WALKS, _KEY),
        )
    )
    + f"|(?:{TELLING_PATHS.pattern.decode()})"
)
_HOME_NAMES = frozenset({"HOME", "USERPROFILE"})
_LOCAL = ("localhost", "127.0.0.1")


class LineCode:
    """Reads one script."""

    def __init__(self, program: Program, source: bytes, run_shell: RunShell, language: str) -> None:
        self._program = program
        self._source = source
        self._run_shell = run_shell
        self._language = language
        #: stores of secrets that the script names
        self._secrets: set[str] = set()
        #: whether it sends anything, is connected to somewhere else, and lists what is in the user's folder
        self._sends = _SENDS.search(source.decode("utf-8", "replace")) is not None
        self._connected = False
        self._walks_home = False

    def run(self) -> None:
        for _ in range(2 if self._may_harm() else 0):
            # What is read may stand below what sends it, in a function of its own.
            for start, line in self._lines():
                if self._language == "batch":
                    self._read_batch(line, start)
                else:
                    self._read(line, start)

    def _may_harm(self) -> bool:
        """Whether the script holds words of both sides of an attack, which few do."""
        text = self._source.decode("utf-8", "replace")

        def holds(*signs: "re2._Regexp") -> bool:
            return any(sign.search(text) for sign in signs)

        runs = holds(_STARTS) or (self._language != "go" and holds(_EVALUATES))
        runs = runs or ("`" in text and self._language in _BACKTICKS)
        fetches = holds(_FETCHES)
        secret = TELLING_PATHS.search(self._source) is not None or holds(_DUMPS, _CLIPBOARD, _WALKS, _KEY)
        return (
            self._language == "batch"
            or (runs and (fetches or holds(_DECODES, _CONNECTS)))
            or (secret and (runs or fetches or self._sends))
            or ((runs or holds(_DELETES)) and (holds(_HOMES) or "~" in text))
        )

    def _lines(self) -> Iterator[tuple[int, str]]:
        at = 0
        for number, line in enumerate(self._source.split(b"\n")):
            if number == MOST_LINES or len(line) > LONGEST_LINE:
                self._program.partial = True
                return
            if line.strip() and not _COMMENT.match(line):
                self._program.enter()
                self._program.leave()
                yield at, line.decode("utf-8", "replace")
            at += len(line) + 1

    def _read_batch(self, line: str, start: int) -> None:
        """A line of a batch file as a shell would write it."""
        text = _BATCH_IF.sub("", _BATCH_VARIABLE.sub(_as_variable, line)).replace("\\", "/")
        if assigned := _BATCH_SET.match(text):
            self._program.assign(assigned.group(1), literal(assigned.group(2)))
        else:
            self._run_shell(text.strip().removeprefix("@"), start, len(line))

    def _read(self, line: str, start: int) -> None:
        acts = _ANY.search(line) is not None or ("`" in line and self._language in _BACKTICKS)
        assigned = _ASSIGNED.match(line) if "=" in line else None
        if not acts and assigned is None:
            return
        texts = [next((part for part in match.groups() if part), "") for match in _TEXT.finditer(line)]
        value = self._value(line, texts)
        content = self._do(line, texts, value, start) if acts else value
        if assigned is not None:
            self._program.assign(assigned.group(1), Value(content.tags, value.text, value.literal))

    def _do(self, line: str, texts: list[str], value: Value, start: int) -> Value:
        """What a line that acts makes of what stands on it."""
        program, length = self._program, len(line)
        content = value
        if _DUMPS.search(line):
            content = content | program.dump_environment(start, length)
        if _READS.search(line):
            content = content | program.read_file(value, start, length)
        self._find_secrets(line, value)
        if _DECODES.search(line):
            content = content | program.decode(value, "decode", start, length)
        starts = self._starts(line)
        if not starts:
            # What a command that is started sends and fetches, the reader of commands tells.
            content = content | self._exchange(line, content, start)
        # `irm … | iex` is how programs are installed, as `curl … | sh` is; another rule knows both.
        self._act(line, texts, value if _INSTALLS.search(line) else content, start, starts=starts)
        return content

    def _find_secrets(self, line: str, value: Value) -> None:
        if (what := secret_at(value.text)) and what != "dotenv":
            self._secrets.add(SECRET + what)
        if _CLIPBOARD.search(line):
            self._secrets.add(SECRET + "clipboard")
        if _WALKS.search(line) and is_broad(value.text.partition("*")[0]):
            self._walks_home = True
            self._secrets.add(SECRET + "documents")

    def _value(self, line: str, texts: list[str]) -> Value:
        """What the names on a line hold, with the texts on it."""
        held = [value for name in _NAME.findall(line) if (value := self._program.names.get(name)) is not None]
        tags = frozenset().union(*(value.tags for value in held))
        for name in _KEY.findall(line):
            tags |= self._program.read_variable(name).tags
        parts = ["~"] if _HOMES.search(line) else []
        parts += [value.text for value in held if value.text]
        parts += [text for text in texts if text.upper() not in _HOME_NAMES]
        return Value(tags, "/".join(parts)[:LONGEST_LINE])

    def _exchange(self, line: str, content: Value, start: int) -> Value:
        """What the line sends and fetches."""
        program, length = self._program, len(line)
        if _CONNECTS.search(line) and not any(host in line for host in _LOCAL):
            self._connected = True
        if _SENDS.search(line):
            carried = Value(content.tags | self._secrets, content.text)
            program.note_target(content, "post", start, length)
            return program.send(content, carried, "post", start, length)
        if _FETCHES.search(line):
            if self._secrets and self._sends and is_foreign_host(host_in(content.text)):
                return program.send(content, Value(content.tags | self._secrets), "get", start, length)
            return program.fetch(content, "get", start, length)
        return NOTHING

    def _starts(self, line: str) -> bool:
        """Whether the line starts a program."""
        if _STARTS.search(line) is not None or ("`" in line and self._language in _BACKTICKS):
            return True
        return self._language == "awk" and "|" in line

    def _act(self, line: str, texts: list[str], content: Value, start: int, *, starts: bool) -> None:
        """What the line runs, writes and deletes."""
        program, length = self._program, len(line)
        # Go has no function that runs a text.
        evaluates = self._language != "go" and _EVALUATES.search(line) is not None
        if evaluates and self._connected and not texts:
            program.fact("reverse.shell", start, length, how="socket")
        runs = starts and (self._language != "awk" or "system(" in line)
        if evaluates or (runs and content.tags & {FETCHED, DECODED}):
            program.execute(content, "eval" if content.tags & {FETCHED, DECODED} else "run", start, length)
        if starts:
            bare = self._language != "go" and not any(len(text) > len("r+") for text in texts)
            if self._connected and (bare or _SHELLS.search(line)):
                program.fact("reverse.shell", start, length, how="socket")
            output = self._start(texts, content, start, length)
            if taken := _GETLINE.search(line):
                program.assign(taken.group(1), Value(output.tags))
        if _WRITES.search(line):
            self._write(line, content, start)
        if _DELETES.search(line) and (self._walks_home or self._names_everything(line, texts, content.text)):
            program.fact("delete.broad", start, length, what="~")

    def _names_everything(self, line: str, texts: list[str], joined: str) -> bool:
        """Whether one of the paths on the line is the user's folder or the system; parts of a path are none."""
        written = line.split() if self._language == "powershell" else texts if len(texts) == 1 else []
        return (joined.startswith("~") and is_broad(joined)) or any(map(is_broad, written))

    def _write(self, line: str, content: Value, start: int) -> None:
        """Into a file by its path, or by a name that stands for it."""
        self._program.write_file(Value(text=content.text), content, start, len(line))
        if content.tags & {FETCHED, DECODED}:
            for name in _NAME.findall(line):
                if name in self._program.names or f"${name}" in line:
                    self._program.assign(name, Value(content.tags))

    def _start(self, texts: list[str], content: Value, start: int, length: int) -> Value:
        program = self._program
        for text in texts:
            stored = program.look_up(STORED + base_name(text))
            program.execute(Value(stored.tags), "program", start, length)
        command = " ".join(text for text in texts if text not in _INTERPRETERS)
        return self._run_shell(command, start, length, tags=content.tags) if command.strip() else NOTHING


#: Languages that run what is between backticks.
_BACKTICKS = frozenset({"ruby", "perl", "php"})
#: What a command is given to as a text.
_INTERPRETERS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "-c", "-lc", "cmd", "cmd.exe", "/c"})


def _as_variable(match: "re2._Match[str]") -> str:
    name = match.group(1)
    return "~" if name.lower() in _BATCH_HOME else f"${{{name}}}"
