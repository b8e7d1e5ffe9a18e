"""The words of Python and the shell by which `flows` knows what a statement does: read, decode, fetch, send, run, write
and delete. Tables and patterns; what they mean together is decided there."""

from bisect import bisect_left
from collections.abc import Iterator

import re2

from vskill_scan.code.statements import LONGEST_TEXT, CodeStatement
from vskill_scan.places import KEY_NAMES, SECRET_PATHS, TELLING_PATHS, is_broad, persists_at, secret_at
from vskill_scan.reading.outline import COMMANDS
from vskill_scan.words import words

_SHELL = r"(?:ba|z|da|k|a|fi)?sh|python[\d.]*|node|perl|ruby|php"
#: What stands before the program of a command.
_FIRST = r"(?:^|[;&|(`]\s*|\b(?:sudo|nohup|exec|xargs|then|do|time)\s+)"

#: Code without one of these, or without both of a pair, brings about no fact that a rule or a card asks for.
_ALONE = re2.compile(
    rb"(?im)mkfifo|home\}?/\.\$|^\s*\$\{?\w+\}?\s+\$|(?:^|[;&|({`!])\s*(?:sudo\s+)?\"?[\w./-]*\$(?:\{\w+\}[\w$-]|"
    rb"\w+[$-])|\|\s*rev\b|"
    rb"\btr\s+[\"']?[a-z]-z|/dev/\$|=[\"']?\$\{\w+\}\w|\$\{?\w+\}?/\$\{?\w+\}?/\$|s_client|openssl[^\n]*\s-d\b|"
    rb"base(?:64|32)\s[^\n]*-+d|"
    rb"\d_?decode|decodebytes|a2b_|fromhex|unhexlify|codecs\.dec|decompress|\bxxd\b|printf\s+.%b|"
    rb"(?:pickle|marshal|dill)\W{0,3}load|getattr\s*\([^()\n]{0,120}\)\s*\(|=\s*getattr\s*\(|\bbuiltins\b|__import__|"
    rb"import_module|"
    rb"\w(?:''|\"\")\w|\w'\w+'\w|\w\"\w+\"\w|\$'|(?:^|[;&|(`])[ \t]*\w*\\\w|\\x[2-7]|"
    rb"/dev/(?:tcp|udp)|\b(?:nc|ncat|netcat|socat)\s|\bsocket\s*\.\s*socket|open_connection|create_connection|websocket|"
    rb"bytes\s*\([^\n]*\bfor\b|(?:^|[^\w-])rm[\"']*,?\\?\s(?:[^\n]|\\\n)*(?:[\s\"'](?:/|\*|C:)|~|HOME|/(?:home|users|etc|usr|var)\b)|"
    rb"rmtree\s*\(|[\w./~$-][\"']\s*\+\s*[\"'][\w./~$-]|"
    rb"environ(?:[^\w.\[]|\.(?:items|values)|$)|printenv|(?:(?:^|[;|&($`])\s*set|\benv|"
    rb"\b(?:export|declare)\s+-[px])\s*(?:$|[|>;)`])|"
    rb"[\"'/]\.(?:ssh|aws|docker|kube|gnupg|azure|cargo|oci|mozilla|claude|codex|cursor|gemini|openclaw|clawdbot|"
    rb"moltbot)[\"']|\.pth\b|" + TELLING_PATHS.pattern
)
_FETCHING = rb"curl|wget|request|urlopen|urlretrieve|httpx"
_DECODING = rb"\d_?decode|decodebytes|a2b_|fromhex|unhexlify|codecs|decompress|marshal|pickle|\bdill"
_EVALUATING = rb"\b(?:exec|eval)\b|(?:^|[^\w.])compile\s*\("
_PAIRS = tuple(
    (re2.compile(rb"(?i)" + one), re2.compile(rb"(?im)" + other))
    for one, other in (
        (_DECODING, _EVALUATING),
        (_FETCHING, rb"\b(?:exec|eval)\b|(?:^|[^\w.])compile\s*\(|\bchmod\b|\bst_mode\b|0o?7[0-7]5\b"),
        (_FETCHING, rb"(?:environ|getenv|\benv|\$)\W{0,4}(?:" + KEY_NAMES.encode() + rb")\b"),
        (
            rb"json\s*\.\s*dumps|yaml\s*\.\s*dump",
            rb"(?:environ|getenv)\W{0,4}(?:" + KEY_NAMES.encode() + rb")\b",
        ),
        (rb"path\s*\.\s*home|expanduser", rb"os\s*\.\s*(?:remove|unlink)|\.\s*(?:unlink|encrypt)\s*\("),
        (
            _FETCHING + rb"|\bnc\b",
            rb"(?:pre|post)-(?:commit|checkout|merge|push|rewrite|receive|rebase|update)\b",
        ),
    )
)
ENVIRONMENT = {
    "python": re2.compile(
        r"(?:^|[(\[,:{]\s*|\bfor\b[^\n]{0,80}\bin\s+|=\s+|\breturn\s+)os\.environ(?:\.(?:items|values)\(|\s*(?:$|"
        r"[\])},:]))"
    ),
    "bash": re2.compile(
        r"(?:^|[|;&(`]\s*)(?:env|printenv|set|export\s+-p|declare\s+-[px])(?:\s+-0)?\s*(?:$|[|>)`])"
    ),
}
#: What is chosen by the beginning of its name is a program's own.
CHOSEN = re2.compile(r"\bif\s+\w+\.startswith\(\(?\"\w{2}")
FETCHES = {
    "python": re2.compile(
        r"\b(?:requests|httpx)\.(?:get|head|stream|request)\(|\burl(?:open|retrieve)\(|\bRequest\(|"
        r"\bwget\.download\(|"
        r"\b(?:aiohttp|urllib3)\.request\(|HTTPS?Connection\("
    ),
    "bash": re2.compile(r"(?:^|[\s;|&(`\"'])(?:\S*/)?(?:curl|wget)\s|\burlopen\("),
}
SENDS = {
    "python": re2.compile(
        r"\.(?:post|put|patch|sendall|sendto|sendmail|send_message|storbinary|upload_file|upload_fileobj|"
        r"put_object|publish)\(|"
        r"\b(?:requests|httpx)\.request\(|\b(?:urlopen|Request|get|stream)\([^\n]*?\b(?:data|json|files|content|"
        r"body)\s*=|"
        r"\.request\(\s*\"(?:POST|PUT)"
    ),
    "bash": re2.compile(
        r"\b(?:curl|wget)\s(?:[^\n]*?\s)?(?:-\w{0,4}[dFT]|--(?:data|form|upload-file|json|post-|body-))|"
        r"(?:^|[|;&(]\s*)(?:\S*/)?(?:nc|ncat|netcat|socat|telnet|ftp|mailx?|sendmail|mutt|swaks)\s|"
        r"\bopenssl\s+s_client|"
        r">\s*/dev/(?:tcp|udp)/"
    ),
}
ASKS_NAMES = re2.compile(
    r"\b(?:nslookup|dig|host|ping)\s|gethostbyname\w*\(|getaddrinfo\(|resolver\.resolve\("
)
DECODES = {
    "python": re2.compile(
        r"[ab]\d\d_?decode\(|decodebytes\(|fromhex\(|unhexlify\(|a2b_\w+\(|codecs\.decode\(|\bdecompress\(|"
        r"\b(?:bytes|bytearray)\([^\n]*\bfor\b|\bmarshal\.loads?\("
    ),
    "bash": re2.compile(
        r"\bbase(?:64|32)\s[^\n|]*(?:-\w*[dD]|--decode)|\bxxd\s[^\n|]*-\w*[rp]|\bopenssl\s[^\n|]*\s-d\b|\|\s*rev\b|"
        r"\btr\s+[\"']?[a-zA-Z]-[a-zA-Z][^\n|]*[a-zA-Z]-[a-zA-Z]|\bprintf\s+[\"']?%b"
    ),
}
#: What is decoded stands in the code itself.
_COVERED = re2.compile(r"\(\s*\"[^\"]{16,}\"|\b(?:echo|printf|<<<)\s[^\n|]*[\w+/=]{16,}[^\n|]*\|")
_CONNECTS = re2.compile(
    r"\b(?:open_connection|socket\.socket|create_connection|websockets?\.connect|WebSocketApp)\("
)
_NEARBY = ("localhost", "127.0.0.1", "0.0.0.0")  # noqa: S104 - compared, not bound
WALKS = re2.compile(r"\bos\.(?:walk|scandir|listdir)\(\s*\"([^\"]*)\"|\"([^\"]*)\"\)*\.r?glob\(\s*\"\*")
UNLINKS = re2.compile(r"\bos\.(?:remove|unlink)\(|\.unlink\(")
WRITES = re2.compile(r"\.write\w*\(|\bdump\(")
#: One entry of a file of settings, which is how an honest program is configured.
PICKS = re2.compile(
    r"\b(?:jq|yq|[ef]?grep|rg|awk|sed|cut)\s|\)\s*\[|\.get\(|\.(?:r?split|r?partition)\(\s*\"[=:]"
)
PACKS = re2.compile(r"\b(?:json\.dumps|pickle\.dumps|yaml\.dump)\(")
_KEYS = {
    "python": re2.compile(r"(?:os\.environ(?:\.get)?[\[(]|getenv\()\s*\"(\w+)\""),
    "bash": re2.compile(r"\$\(?(\w+)"),
}
#: What says who asks is given no service's key for keeps.
_HEADER = re2.compile(
    r"\s(?:-H|--header|-u|--user|-b|--cookie|--oauth2-bearer|--proxy-user)[= ]*(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\S+)"
)
_HEADERS = re2.compile(r"\b(?:headers|auth|cookies|cert)\s*=\s*")
_OUTPUT_OF = re2.compile(r"^\w+=[\"']?\$\(\s*([\w.-]+)")
_CALLED = re2.compile(r"^\s*(?:await\s+)?([\w.]+)\(")
_KEEPING = frozenset(
    words(
        "encode decode strip str bytes dict format replace lower upper b64encode urlsafe_b64encode hexlify hex quote "
        "dumps urlencode join items values append update split getenv os.environ.get echo printf cat base64 tr"
    )
)
NAME = re2.compile(r"[A-Za-z_][\w.]*")
#: The last parts of paths.
FILE_NAME = re2.compile(r"([^\s\"'`/\\|;&()<>,=@{}]+)(?:[\"'`\s|;&)>,}]|$)")
#: The target of a request, where that is a name.
TARGET = re2.compile(
    r"\b(?:post|put|patch|get|request|urlopen|urlretrieve|Request)\(\s*([A-Za-z_]\w*)|\b(?:curl|wget)\s"
)

_STARTS = re2.compile(
    r"\b(?:subprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|os\.(?:system|popen|"
    r"exec\w{1,3}|"
    r"spawn\w{1,3})|create_subprocess_(?:exec|shell)|pty\.spawn|commands\.getoutput|platform\.popen)\("
)
_ARGUMENT = re2.compile(r"[\s\[(,]*(?:\"([^\"]*)\"|([\w.]+))(?:\([^()]*\))*\s*(=)?")
_RUNS = {
    "python": re2.compile(
        r"(?:^|[^\w.])(exec|eval|compile)\(|\b(?:pickle|marshal|dill|cloudpickle)\.(loads?)\(|"
        r"\b(?:runpy\.(run_\w+)|(spec_from_file_location))\("
    ),
    "bash": re2.compile(
        rf"\|\s*(?:sudo\s+(?:-\w+\s+)*)?(?:[^\s|]*/)?({_SHELL})(?:\s+-\S*)*\s*(?:$|[;&|<>)\n])|{_FIRST}(eval|"
        rf"source)\s"
    ),
}
#: A shell that is given a variable or an output, and a variable that is run.
_GIVEN = re2.compile(
    rf"{_FIRST}(?:\S*/)?({_SHELL})\s+(?:-\w+\s+)*[\"']?(?:\$[({{]?\w|`|<\()|^[\"']?(\$\w+)[\"']?\s*$"
)
_SCRIPT = re2.compile(
    r"\b((?:ba|z|da|k)?sh|python)[\d.]*\s+(?:-\w+\s+)*-\w*c\s+(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')"
)
_INTERPRETER = re2.compile(
    rf"{_FIRST}(?:\S*/)?((?:ba|z|da|k|a)?sh|python)[\d.]*(?:\s+-\w*)*\s*(?:$|[;&|<>)\n])"
)
_INTERPRETED = {"python": "python"}
_PROGRAM = re2.compile(
    r"^(?:(?:sudo|nohup|exec|env|time|then|do|else|\{|!)\s+)*[\"']?(?:[^\s\"'|;&]*/)?([^\s\"'|;&/]+)"
)
_REVERSE = re2.compile(
    r"(?:\b(?:nc|ncat|netcat|socat|telnet)\s|\bopenssl\s+s_client)[^\n;]*\|\s*(?:\S*/)?(?:ba|z|da|"
    r"k)?sh(?:[\s>&\"]|$)|"
    r"\b(?:nc|ncat|netcat)\s(?:[^\n;|]*\s)?(?:-e|-c|-lvpe|--exec|--sh-exec)\s|\bsocat\s[^\n;|]*(?i:exec|system):|"
    r"(?:^|\s)\d*<?>>?&?\s*[\"']?/dev/(?:tcp|udp)/"
)
_REMOVES = re2.compile(r"(?:^|[\s;&|(`])(?:\S*/)?rm\s+([^;&|\n)`]*)|\brmtree\(\s*\"([^\"]*)\"")
_BROAD = frozenset(words("/ /* ~ ~/ ~/* $HOME $HOME/ $HOME/* ${HOME} /home /Users /etc /usr /var C:\\ C:/"))
_WRITTEN = {
    "python": re2.compile(
        r"\bopen\(\s*\"([^\"]+)\"\s*,\s*(?:mode\s*=\s*)?\"[^\"]{0,2}[wax+]|\"([^\"]+)\"\s*\)*\.(?:write_\w+\(|"
        r"open\(\s*\"[wa])|"
        r"\b(?:shutil\.\w+|os\.rename|urlretrieve|wget\.download)\([^\n]*?,\s*\"([^\"]+)\""
    ),
    "bash": re2.compile(
        r">>?\s*[\"']?([^\s\"'|;&)<>]+)|\btee\s+(?:-a\s+)?[\"']?([^\s\"'|;&]+)|\s(?:-\w*[oO]|"
        r"--output(?:-document)?)[ =]+[\"']?([^\s\"'|;&-][^\s\"'|;&]*)|"
        r"\btar\s+-?\w*c\w*f\s+[\"']?([^\s\"']+)|\bzip\s+(?:-\w+\s+)*[\"']?([^\s\"']+)|\b(?:cp|mv|rsync|ln|"
        r"install)\s[^\n;|&]*\s[\"']?([^\s\"';|&]+)"
    ),
}
_KEEPS_NAME = re2.compile(r"\bcurl\s(?:[^\n]*\s)?(?:-\w*O|--remote-name)\b|\bwget\s")
_URL_NAME = re2.compile(r"://[^\s\"'?]*/([^\s\"'/?]+)")
OPENED = re2.compile(
    r"\bopen\(\s*\"([^\"]+)\"\s*,\s*(?:mode\s*=\s*)?\"[^\"]{0,2}[wax+]|\"([^\"]+)\"\)*\.open\(\s*\"[wa]"
)
_SCHEDULED = (
    ("cron", re2.compile(r"\bcrontab\s+(?:-(?:\s|$)|[^-\s])|\|\s*crontab\b")),
    ("at", re2.compile(r"(?:^|[;&|(])\s*at\s+(?:-|now\b|\d|midnight|noon|teatime|tomorrow|next\b)")),
    ("launchd", re2.compile(r"\blaunchctl\s+(?:load|bootstrap|enable)\b")),
    ("systemd", re2.compile(r"\bsystemctl\s+(?:-\S+\s+)*enable\b")),
    ("task", re2.compile(r"(?i)\bschtasks(?:\.exe)?\s+/create\b")),
    ("git-hook", re2.compile(r"\bgit\s[^\n]*config\s[^\n]*core\.hooksPath")),
)
_SCHEDULES = re2.compile(r"crontab|launchctl|systemctl|schtasks|hooksPath|\bat\s|\breg\s")
_ASSIGNED = re2.compile(
    r"(\w+)\+?=(\"(?:\$\([^()]*\)|[^\"\\]|\\.)*\"|'[^']*'|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|[^\s;]*)\s*"
)
_DECLARED = re2.compile(r"^(?:(?:export|local|readonly|declare|typeset|then|do|else|if|\{)\s+(?:-\w+\s+)*)*")
_LOOP = re2.compile(r"^for\s+(\w+)\s+in\s+([^\n]*)")
LITERAL_MARK = re2.compile(r"<<-?\s*[\\\"']")
OUTPUT = re2.compile(r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`")
_LITERAL = re2.compile(
    r"^[\s(]*(?:(?:pathlib\.)?(?:Path|PurePath|str)\(|os\.path\.\w+\(|"
    r"os\.fspath\()*\s*\"([^\"]*)\"((?:\s*,\s*\"[^\"]*\")*)[\s)]*"
    r"(?:\.joinpath\(\s*\"([^\"]*)\"[\s)]*)?(?:\.(?:expanduser|resolve|absolute|strip|as_posix)\([\s)]*)*$"
)
#: The end of a path whose folder is not known.
_TAIL = re2.compile(r"(?:/|join\([^\n]*,)\s*\"([^\"]*)\"[\s)]*$")
_QUOTED = re2.compile(r"\"([^\"]*)\"")
#: What opens or passes on the files that it names.
_READS = {
    "python": re2.compile(
        r"\b(?:open|read_\w+|listdir|walk|r?glob|iterdir|scandir|copy\w*|move|connect|make_archive|dotenv_values)\("
    ),
    "bash": re2.compile(
        rf"{_FIRST}(?:\S*/)?(?:cat|less|more|head|tail|tac|[ef]?grep|rg|awk|sed|cut|sort|uniq|strings|xxd|od|"
        rf"hexdump|base(?:64|32)|tar|"
        r"zip|gzip|bzip2|7z|cp|mv|rsync|find|ls|sqlite3|jq|yq|openssl|gpg|tee|dd|split|security|secret-tool|tr)\s|"
        r"<\s*[\"']?[~/$.]"
    ),
}
_COPIES = re2.compile(rf"{_FIRST}(?:cp|mv)\s")
_UPLOADS = re2.compile(r"\b(?:curl|wget)\b[^\n]*(?:[=\s\"']@|\s-\w*T\s|--(?:upload|post|body)-file)|\bnc\s")
#: What these give back says nothing of what they were given.
_TELLS_NOTHING = re2.compile(r"\b(?:exists|isfile|isdir|is_file|is_dir|print|len|isinstance)\(")
#: How far the word around the place of a secret is looked for.
_REACH = 200
_AROUND = b" \t\n\"'`,;()<>|=@[]{}"

#: A text that, run as a command, runs whatever a server answers, and one that talks to somebody.
FETCHES_AND_RUNS = re2.compile(
    r"(?i)\b(?:curl|wget|iwr|irm)\s[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|python3?|node|perl|ruby|iex)\b|"
    r"\b(?:eval|source|(?:ba|z)?sh\s+-c)\s*[\"']?(?:\$\(|`|<\()\s*(?:curl|wget)\b|exec\(\s*\w[\w.]*urlopen\(|"
    r"/dev/tcp/"
)
REACHES_OUT = re2.compile(
    r"(?i)(?:^|[^\w-])(?:curl|wget|ncat|nc|iwr|irm)\s[^\n]{0,200}[\w$]|/dev/tcp/|\burlopen\("
)


def telling_words(code: bytes) -> "list[re2._Regexp]":
    """What makes a statement of this code worth reading."""
    held = [pair for pair in _PAIRS if all(one.search(code) for one in pair)]
    alone = [_ALONE] if _ALONE.search(code) else []
    return [*alone, *dict.fromkeys(one for pair in held for one in pair)]


def connects(text: str) -> bool:
    """Whether a program connects to somewhere else."""
    return _CONNECTS.search(text) is not None and not any(one in text for one in _NEARBY)


def is_worth_following(text: str) -> bool:
    """Whether a name with this text matters wherever it is used."""
    return bool(text) and bool(secret_at(text) or persists_at(text) or is_broad(text) or "/dev/tcp/" in text)


def covers(text: str) -> bool:
    """Whether what is decoded stands in the code itself."""
    return _COVERED.search(text) is not None


def secret_stretches(language: str, said: CodeStatement) -> Iterator[str]:
    """The words around what may be the place of a secret that is read."""
    text = _telling(said.text) if language == "python" else said.text
    is_read = _READS[language].search(text if language == "python" else said.plain)
    if not is_read and not (language == "bash" and _UPLOADS.search(text)):
        return
    whole = text.replace('", "', "/") if "join(" in text or "Path(" in text else text
    if language == "bash" and _COPIES.search(said.plain):
        # The last word of these is what they write.
        whole = whole.rstrip().rpartition(" ")[0]
    data = whole.encode("utf-8", "replace")
    for match in SECRET_PATHS.finditer(data):
        low, high = match.span()
        least, most = max(0, low - _REACH), min(len(data), high + _REACH)
        while low > least and data[low - 1] not in _AROUND:
            low -= 1
        while high < most and data[high] not in _AROUND:
            high += 1
        if b"://" not in data[low:high].replace(b"file://", b""):
            yield data[low:high].decode("utf-8", "replace")


def _telling(text: str) -> str:
    """Python without calls that say nothing of what they are given, unless that is read in them."""
    kept, at = [], 0
    reads = [found.start() for found in _READS["python"].finditer(text)]
    for call in _TELLS_NOTHING.finditer(text) if reads else ():
        end = _argument_end(text, call.end(), ")")
        before = bisect_left(reads, call.end())
        if call.start() >= at and not (before < len(reads) and reads[before] < end):
            kept.append(text[at : call.end()])
            at = end
    return "".join((*kept, text[at:]))


def started(text: str) -> str | None:
    """The command line that a program starts, as far as it is written there; None where it starts none."""
    call = _STARTS.search(text)
    if call is None:
        return None
    said: list[str] = []
    at, rest = 0, text[call.end() :]
    while (word := _ARGUMENT.match(rest, at)) is not None and not word.group(3):
        plain = word.group(1)
        if plain is None:
            plain = "python" if word.group(2) == "sys.executable" else "$_"
        said.append(f'"{plain}"' if said and " " in plain else plain)
        at = word.end()
        if rest[at : at + 1] not in (",", " "):
            break
    return " ".join(said)


def run_by(language: str, said: CodeStatement) -> Iterator[str]:
    """What runs something in a statement."""
    found = [
        *_RUNS[language].finditer(said.plain),
        *(_GIVEN.finditer(said.text) if language == "bash" else ()),
    ]
    for one in found:
        how = next(group for group in one.groups() if group is not None)
        yield "sh" if how.startswith("$") else how


def scripts_in(text: str) -> list[tuple[str, str]]:
    """Code that an interpreter is given in quotes, with its language."""
    found = _SCRIPT.finditer(text) if "c " in text else ()
    return [(one.group(2) or one.group(3) or "", _INTERPRETED.get(one.group(1), "bash")) for one in found]


def hides_command(written: bytes) -> bool:
    """Whether quotes inside the name of a command hide which one it is."""
    first = b"".join(written.split(None, 1)[:1]).strip(b"\"'\\")
    return first.translate(None, b"\"'\\") in COMMANDS and first not in COMMANDS


def takes_code(text: str) -> str:
    """The language of what a command reads from its input and runs; "" where it does not."""
    found = _INTERPRETER.search(text)
    return _INTERPRETED.get(found.group(1), "bash") if found is not None else ""


def programs_in(text: str) -> list[str]:
    return list(_PROGRAM.findall(text))


def opens_shell(text: str) -> bool:
    return _REVERSE.search(text) is not None


def keys_in(language: str, text: str) -> list[str]:
    """Variables of the environment that it reads."""
    return list(_KEYS[language].findall(text))


def without_headers(text: str) -> str:
    """A request without what says who asks."""
    text = _HEADER.sub(" ", text)
    kept, at = [], 0
    for header in _HEADERS.finditer(text):
        if header.start() >= at:
            kept.append(text[at : header.start()])
            at = _argument_end(text, header.end())
    return "".join((*kept, text[at:]))


def _argument_end(text: str, at: int, ends: str = ",)") -> int:
    depth = 0
    while at < len(text) and (depth or text[at] not in ends):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        # A text hides what stands in it.
        at = max(at, text.find('"', at + 1)) + 1 if text[at] == '"' else at + 1
    return at


def keeps_keys(value: str) -> bool:
    """Of a key, what a function that nobody knows gives back is no key."""
    called = _CALLED.match(value) or _OUTPUT_OF.match(value)
    name = called.group(1) if called is not None else ""
    return (
        not name
        or name in _KEEPING
        or (not name.startswith("os.environ.") and name.rpartition(".")[2] in _KEEPING)
    )


def removed(text: str) -> Iterator[str]:
    """What is deleted with everything in it, where that is all that a user has."""
    for found in _REMOVES.finditer(text) if "rm" in text else ():
        given = (found.group(1) or "").replace('"', "").replace("'", "").split()
        options = "".join(word for word in given if word.startswith("-"))
        targets = given if "r" in options or "R" in options else [found.group(2) or ""]
        yield from (target for target in targets if target in _BROAD)


def written_to(language: str, text: str) -> Iterator[str]:
    """The files that a statement writes."""
    for found in _WRITTEN[language].finditer(text):
        yield next(group for group in found.groups() if group is not None)
    if language == "bash" and _KEEPS_NAME.search(text):
        yield from _URL_NAME.findall(text)


def scheduled(text: str) -> str:
    """What outlives the session because of a command; "" for nothing."""
    if not _SCHEDULES.search(text):
        return ""
    if " add " in text and persists_at(text) == "registry":
        return "registry"
    return next((what for what, sign in _SCHEDULED if sign.search(text)), "")


def shell_variables(text: str) -> Iterator[tuple[str, str]]:
    """The variables that a statement sets, with the texts that are known of them."""
    if loop := _LOOP.match(text):
        yield loop.group(1), loop.group(2)
    at = _DECLARED.match(text).end()
    while given := _ASSIGNED.match(text, at):
        at = given.end()
        yield given.group(1), OUTPUT.sub("", given.group(2).strip("\"'"))


def literal_of(said: CodeStatement) -> str:
    """The text that a statement gives to a name; "" where that is not known. Of a loop all texts."""
    if said.text.startswith("for "):
        return " ".join(_QUOTED.findall(said.text))
    found = _LITERAL.match(said.value)
    if found is None:
        tail = _TAIL.search(said.value)
        return tail.group(1) if tail is not None else ""
    parts = [found.group(1), *_QUOTED.findall(found.group(2) or ""), found.group(3) or ""]
    return "/".join(part for part in parts if part)


def sets_a_name(language: str, written: bytes) -> bool:
    """Whether a short statement gives a name what may be the text of a path, an address or a command."""
    if b"import" in written and _IMPORTS.search(written) is not None:
        return True
    name, equals, value = written.partition(b"=")
    plain = name.rstrip(b" +").rpartition(b" ")[2].replace(b"_", b"").replace(b".", b"")
    is_text = (
        language == "bash"
        or value.strip()[:1] in _TEXT_BEGINS
        or any(one in value for one in _TEXT_PARTS)
        or (len(value) < LONGEST_NAME and _RENAMED.search(value) is not None)
    )
    return bool(equals) and len(written) < LONGEST_TEXT and plain.isalnum() and is_text


_TEXT_BEGINS = (b'"', b"'")
_IMPORTS = re2.compile(rb"(?:^|:\s*)(?:import|from)\s")
#: Another name for something that matters.
_RENAMED = re2.compile(
    rb"^[\w.,=\s]*\b(?:os|subprocess|shutil|socket|requests|httpx|environ|system|popen|Popen|run|call|check_\w+|post|put|"
    rb"patch|get|request|urlopen|open|eval|exec|compile|\w*decode|loads?|rmtree)\s*$"
)
#: Of a module's member.
LONGEST_NAME = 100
_TEXT_PARTS = (b"Path(", b"join(", b'+ "', b"+ '", b'/ "', b"/ '")
