"""Which code is worth parsing: words without which no fact that a rule asks for can come about.

Parsing costs more than everything else together, and most skills hold no code that could do harm. A secret that leaves
needs words of a secret and of a way out, somewhere in the skill; a download that is run needs both in one file, and of
the ways to run it one that a rule asks for; some words tell by themselves. `parsing` parses the blocks that hold such
words, and no others unless a pattern matched in them.
"""

from collections.abc import Sequence
from functools import cache

import re2

from vskill_scan.model import CodeBlock, Layer
from vskill_scan.places import KEY_NAMES, TELLING_PATHS
from vskill_scan.reading.languages import PARSED

#: A word that is put together from two texts. Sentences that go over several lines are joined at a blank.
GLUED = rb"[\w./~$-][\"'`]\s*\+\s*[\"'`][\w./~$-]"
#: Decoders, names put together, sockets and broad deletion. A glued word or path may be anything, so it counts.
_ALONE = re2.compile(
    rb"(?im)mkfifo|\bssh\b[^\n]*\s-\w*R\b|\brsync\b[^\n]*--del|\|\s*getline|awk\b[^\n]*system\(|find\s[^\n]*(?:-delete|-exec\s+(?:rm|shred|srm|wipe)|\|\s*xargs)|^\s*\$\{?\w+\}?\s+\$|(?:^|[;&|({`!])\s*\"?[\w./-]*(?:\$(?:\{\w+\}[\w$-]|\w+[$-])|\w(?:\"\w*\"|'\w*')\w)|\|\s*rev\b|\btr\s+[\"']?[a-z]-z|/dev/\$|"
    rb"=[\"']?\$\{\w+\}\w|\$\{?\w+\}?/\$\{?\w+\}?/\$|s_client|openssl[^\n]*\s-d\b|base(?:64|32)\s[^\n]*-+d|"
    rb"new function|b(?:64|32|16|85)_?decode|a85decode|decodebytes|a2b_|"
    rb"base64_decode|decode64|base64\.dec|,\s*[\"'`](?:base64|hex)|frombase|atob|fromcharcode|fromcodepoint|fromhex|unhexlify|"
    rb"(?:^|[^.\w])unescape\(|codecs\.(?:dec|getd|esc)|from\s+codecs|decompress|inflate|gunzipsync|unzipsync|\bxxd\b|"
    rb"(?:pickle|marshal|dill)\W{0,3}load|from\s+(?:pickle|marshal|dill)|import\s+(?:pickle|marshal|dill)\s+as|"
    rb"getattr\s*\(\s*(?:os|sys|subprocess|builtins|__\w+|importlib|shutil|socket|urllib\w*|requests)\b|"
    rb"getattr\s*\([^()\n]{0,120}\)\s*\(|\bchr\b|_0x|__import__|import_module|globals\(|"
    rb"/dev/(?:tcp|udp)|\bnc\s+[-\w$\"'.]|[\"']nc[\"']|\bncat\b|netcat|socat|dup2|\bpty\b|\.pipe\(|\bsocket\b|invoke-|encodedcommand|"
    rb"join\(\s*[\[(]\s*[\"'][^\"']{0,4}[\"']\s*,|" + GLUED + rb"|\\x[0-9a-f]{2}|reversed|reverse\s*[^=\sd]|"
    rb"\[::-1\]|rot13|"
    rb"(?:(?:^|[^\w-])rm|shred)\s[^\n]*(?:[\s\"'](?:/|\*|C:)|~|HOME|/(?:home|users|etc|usr|var)\b)|"
    rb"(?:rmtree|rmsync|rimraf|rmdirsync|fs\.rm|promises\.rm)[\s\S]{0,8}\([^\n)]{0,80}(?:home|~|[\"']/|expanduser)"
)
#: What tells only where the second follows the first within so many bytes: a connection that runs something, and a home
#: folder in which files are removed.
_OUT = rb"(?i)\b(?:n?curl|n?wget|nc|ncat)\s|/dev/tcp"
_HOOK = rb"(?i)(?:pre|post)-(?:commit|checkout|merge|push|rewrite|receive|rebase|update)\b"
_FOLLOWED = (
    (
        re2.compile(rb"(?i)websocket|open_connection|create_connection"),
        re2.compile(rb"(?i)exec|spawn|subprocess|popen|system"),
        800,
    ),
    (
        re2.compile(rb"(?i)path\.home|homedir|expanduser"),
        re2.compile(rb"(?i)os\.(?:remove|unlink)|unlinksync|\.unlink\(|\.encrypt\("),
        600,
    ),
    (re2.compile(_OUT), re2.compile(_HOOK), 1000),
    (re2.compile(_HOOK), re2.compile(_OUT), 1000),
)
#: For each place that `places` calls a secret, the part of its name that a program must say, however it joins the rest.
_SECRET = re2.compile(
    rb"(?im)\.ssh\b|id_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws\b|gcloud|application_default|\.azure\b|\.kube\b|\.oci\b|doctl|"
    rb"terraform\.d|npmrc|pypirc|\.docker\b|netrc|git-credentials|\.cargo\b|\.gem\b|hosts\.yml|gnupg|"
    rb"wallet\.dat|\.ethereum\b|\.bitcoin\b|[\"'/\\]solana[\"'/\\]|electrum|exodus\b|metamask|nkbih|bfnae|\.monero\b|"
    rb"electron-cash|local storage|ledger live|keystore|mnemonic\.txt|seed[_-]?phrase|"
    rb"login data|cookies\.sqlite|logins\.json|key4\.db|user data|[\"'/\\]cookies\b|local state|bravesoftware|"
    rb"[\"'/\\]chrome\b|google-chrome|\.mozilla\b|firefox[\"'/\\]|web data|[\"'/\\]edge\b|keychain|"
    rb"(?:generic|internet)-password|[\"'/\\](?:credentials|protect)\b|keyrings|secret-tool|\.claude\b|\.codex\b|\.cursor\b|\.gemini\b|\.aider|"
    rb"[\"'/\\](?:anthropic|openai)[\"'/\\]|(?:openclaw|clawdbot|moltbot)\.json|"
    rb"\.(?:openclaw|clawdbot|moltbot)(?:[/\\](?:\.env|credentials|agents))?[/\\]?\*?(?:[\"'`\s,)]|$)|"
    rb"telegram desktop|\btdata\b|(?-i:[\"'/\\](?:Signal|Slack)[\"'/\\])|password-store|1password|bitwarden|kdbx|"
    rb"lastpass|[\"'/](?:shadow|passwd)\b|sudoers|/proc|(?-i:\bSAM\b)|ntds\.dit|"
    rb"(?:bash|zsh|python|psql|mysql|repl|\})_history|169\.254|metadata\.google|100\.100\.100|"
    rb"environ(?:[^\w.\[]|\.(?:items|values|copy|keys)|$)|process\.env(?:[^\w.\[]|$)|printenv|"
    rb"(?:^|[\s;|&($`])(?:env(?:\s+-0)?|set|(?:export|declare)\s+-[px])\s*(?:$|[|>;)`])"
)
#: The key of a service that we know, taken from the environment.
_KEYED = re2.compile(rb"(?:environ|getenv|\benv|\$)\W{0,4}(?:" + KEY_NAMES.encode() + rb")\b")
_SENDING = re2.compile(
    rb"(?im)curl|wget|\bnc\b|\bncat\b|netcat|socat|telnet|\bscp\b|sftp|\bftp|rsync|\bmailx?\b|sendmail|mutt|swaks|"
    rb"\bgit\b|[\"']git[\"']|nslookup|\bdig\b|\bhost\s|\bping\b|socket|\bfetch\b|node-fetch|request|urlopen|urllib|httpx|"
    rb"aiohttp|axios|needle|undici|\bky\b|\bgot(?:\(|\.\w)|[\"']got[\"']|superagent|smtp|beacon|https?\.|https?connection|"
    rb"\.(?:post|put|patch|publish|send\w*|upload\w*)\b|\b(?:post|put|upload|publish)\w*\(|[\"'](?:post|put)[\"']|"
    rb"storbinary|put_object|\bnet\.|[\"':]net[\"']|/dev/(?:tcp|udp|\$)|s_client|resolve4|resolvetxt|gethostby|getaddrinfo|"
    rb"resolver|dns\."
)
#: Texts that are put together: what a function does with them cannot be told by its own words.
ASSEMBLING = re2.compile(
    rb"(?i)join\(\s*[\[(]\s*[\"'][^\"']{0,4}[\"']\s*,|\bchr\b|fromcharcode|rot13|\[::-1\]|fromhex|\^ ?key"
)
_FETCHING = re2.compile(
    rb"(?i)curl|wget|\bfetch\b|node-fetch|request|urlopen|urlretrieve|urllib|httpx|aiohttp|axios|\bgot(?:\(|\.\w)|[\"']got[\"']|"
    rb"superagent|needle|undici|\bky\b|http\.client|https?\.get|(?:from|import|require)[\s(]*[\"']https?:|git\s+clone|"
    rb"socket|\bscp\b|aria2|\bftp|downloads|irm\b|iwr\b"
)
_RUNNING = re2.compile(
    rb"(?im)\beval\b|[^\w]eval|\bexec(?:sync|file|filesync|v\w*|l\w*|a)?\b|\bsource\s|(?:^|[\s;&|(])\.\s|<\(|[^!/]\bsh\b|"
    rb"[^!/]\b(?:ba|z|da|k)sh\b|subprocess|os\.system|popen|spawn|child_process|(?:^|[^.\w])compile\(|(?-i:Function\()|"
    rb"(?:require|import)\(\s*[^\"'\s)]|/tmp/|chmod|\bvm\b|runin|worker|startfile|pwsh|"
    rb"(?:^|[\s;&|(\"'`/])(?:python[\d.]*|node|perl|ruby|php|deno|bun|osascript)[ \t]+[\w./~$<-]|"
    rb"(?:^|[\s;&|(\"'`])\./\w|powershell|\biex\b|import_module|runpy"
)
#: What a program must say to run something by one of these ways, as rules name them in `how` of `exec.fetched`. A name
#: can be imported under another one, but its own stands in the text. What unpickles is told by `_ALONE`.
_WAYS = {
    "exec": r"\bexec\b",
    "eval": r"\beval\b",
    "compile": r"(?:^|[^\w.])compile\b",
    "Function": r"\bFunction\b",
    "loads": r"marshal|pickle|dill",
    "program": r"\bchmod\b|\bst_mode\b|0o?7[0-7]5\b|start_new_session|\bdetached\b|\.unref\(",
    "runIn*": r"\brunIn",
    "import*": r"__import__|importlib|\bimport\b\s*[(/]",
}
#: A shell command that is put together of parts: any of the ways may be meant. Other languages give the shell a text.
_PUT_TOGETHER = re2.compile(
    rb"(?m)(?:^|[;&|({`!])[ \t]*(?:(?:sudo|doas|env|command|builtin|exec|nohup|time|then|do|else|if|while)[ \t]+)*"
    rb"[\w./-]*(?:[$\\]|\w[\"'][\w./-]*[\"'$]|[\"'][\w./-]+[\"']\w)"
)
_PARTS = r"[\"'](?:e|ev|eva)[\"'{$]|[}\"'](?:val|al|l)\b"


@cache
def running(ways: tuple[str, ...]) -> "re2._Regexp":
    """The words of running something by one of these ways; none means any."""
    if not ways or not _WAYS.keys() >= set(ways):
        return _RUNNING
    return re2.compile("|".join([f"(?m){_PARTS}", *(_WAYS[way] for way in ways)]).encode())


class Signs:
    """What the code of one skill may tell."""

    def __init__(
        self,
        layers: Sequence[Layer],
        *,
        wide: bool,
        ways: tuple[str, ...] = (),
    ) -> None:
        """`wide` takes every word for telling: a rule has found its text, and now asks for a fact. `ways` are those of
        running a download that a rule asks for."""
        # The capability card names the secrets that are read and what is made to last, whatever rules ask for.
        self._always = [_ALONE, TELLING_PATHS]
        if wide:
            self._always += [_SECRET, _SENDING, _RUNNING]
        self._running = running(ways)
        self._layers = layers
        self._code = {id(layer): _Code(layer) for layer in layers}
        self._steals = not wide and self._anywhere(_SECRET) and self._anywhere(_SENDING)

    def _anywhere(self, sign: "re2._Regexp") -> bool:
        return any(code.holds(sign) for code in self._code.values())

    def only_sends(self, layer: Layer) -> bool:
        """Whether all that its code can add to a theft is to send a file that other code of the skill has written."""
        code = self._code[id(layer)]
        others = (_SECRET, _ALONE, _KEYED)
        return self._steals and code.holds(_SENDING) and not any(code.holds(sign) for sign in others)

    @property
    def stores_secrets(self) -> bool:
        """Whether code that was read so far writes a secret into a file."""
        return any(layer.stored for layer in self._layers)

    def telling(self, layer: Layer) -> "Telling":
        """What to read of a layer; one that only sends comes after the others, which may store what it sends."""
        always = self._always
        if self._steals and (self.stores_secrets or not self.only_sends(layer)):
            always = [*always, _SECRET, _SENDING]
        return Telling(self._code[id(layer)], always, self._running)


class _Code:
    """All code of one layer as one text, to be searched once for each kind of words."""

    def __init__(self, layer: Layer) -> None:
        self.flowing = layer.flowing
        code = [block for block in layer.blocks if block.language in PARSED]
        self._text = _join_code(layer, code)
        #: where its only block begins and ends; what holds for all of the code holds for that
        self.only = (code[0].start, code[0].end) if len(code) == 1 else None
        self._shell = _join_code(layer, [block for block in code if block.language == "bash"])
        self._held: dict[int, bool] = {}

    def holds(self, sign: "re2._Regexp") -> bool:
        """Whether it may hold one of the words."""
        if not self._text:
            return False
        if id(sign) not in self._held:
            self._held[id(sign)] = sign.search(self._text) is not None
        return self._held[id(sign)]

    def follows(self, first: "re2._Regexp", second: "re2._Regexp", within: int) -> bool:
        """Whether words of the second stand behind words of the first."""
        if not self.holds(first) or not self.holds(second):
            return False
        ends = (match.end() for match in first.finditer(self._text))
        return any(second.search(self._text, end, end + within) for end in ends)

    def runs(self, sign: "re2._Regexp") -> bool:
        """Whether it may run something by the ways of this sign, also under names that are put together."""
        return self.holds(sign) or self.holds(_ALONE) or _PUT_TOGETHER.search(self._shell) is not None


def _join_code(layer: Layer, code: Sequence[CodeBlock]) -> bytes:
    """Between line breaks, so that what begins or ends a block begins or ends a line."""
    if not code:
        return b""
    return b"\n".join([b"", *(layer.flowing[block.start : block.end] for block in code), b""])


class Telling:
    """Which stretches of one layer's code may tell something."""

    def __init__(self, code: _Code, always: Sequence["re2._Regexp"], running_sign: "re2._Regexp") -> None:
        self._code = code
        self._always = always
        self._signs = self._with_running(running_sign)

    def _with_running(self, sign: "re2._Regexp") -> list["re2._Regexp"]:
        """What is downloaded and run, and what is decoded and run; of these only what the code holds at all."""
        code = self._code
        signs = list(self._always)
        if code.holds(_KEYED):
            signs += [_KEYED, _SENDING]
        followed = [first for first, second, within in _FOLLOWED if code.follows(first, second, within)]
        signs += followed
        if code.holds(_FETCHING) and code.runs(sign):
            signs += [_FETCHING, _RUNNING]
        elif followed or code.holds(_ALONE):
            signs.append(_RUNNING)
        return [sign for sign in signs if code.holds(sign)]

    def __bool__(self) -> bool:
        """Whether any stretch may."""
        return bool(self._signs)

    def __call__(self, start: int, end: int) -> bool:
        """Whether a fact that a rule asks for may come from this stretch."""
        if self._code.only == (start, end):
            return bool(self._signs)
        return _has_sign(self._signs, self._code.flowing, start, end)

    def anything(self, start: int, end: int) -> bool:
        """Whether the stretch downloads, runs or tells anything, asked for or not."""
        return _has_sign(self._with_running(_RUNNING), self._code.flowing, start, end)


def _has_sign(signs: Sequence["re2._Regexp"], text: bytes, start: int, end: int) -> bool:
    """In the stretch by itself: what begins inline code begins a line."""
    stretch = text[start:end]
    return any(sign.search(stretch) for sign in signs)
