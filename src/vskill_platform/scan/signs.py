"""Which code is worth parsing: words without which no fact that a rule asks for can come about.

Parsing costs more than everything else together, and most skills hold no code that could do harm. A secret that leaves
needs words of a secret and of a way out, somewhere in the skill; a download that is run needs both in one file, and of
the ways to run it one that a rule asks for; some words tell by themselves. `code` parses the blocks that hold such
words, and no others unless a pattern matched in them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import re2

from vskill_platform.scan.known import KEY_NAMES, TELLING_PATHS
from vskill_platform.scan.languages import PARSED
from vskill_platform.scan.model import FACTS, CodeBlock, Layer

#: Decoding, assembling, sockets and broad deletion. Texts glued together may be anything, so they count here.
_ALONE = re2.compile(
    rb"(?im)(?:websocket|open_connection|create_connection)[\s\S]{0,800}(?:exec|spawn|subprocess|popen|system)|mkfifo|"
    rb"(?:path\.home|homedir|expanduser)[\s\S]{0,600}(?:os\.(?:remove|unlink)|unlinksync|\.unlink\(|\.encrypt\()|"
    rb"find\s[^\n]*(?:-delete|-exec\s+(?:rm|shred))|^\s*\$\{?\w+\}?\s+\$|\|\s*rev\b|\btr\s+[\"']?[a-z]-z|/dev/\$|s_client|"
    rb"new function|"
    rb"base64|b64|b32decode|b85|a85|b16decode|atob|fromcharcode|fromcodepoint|fromhex|unhexlify|unescape|codecs|"
    rb"zlib|gzip|lzma|bz2|xxd|openssl|marshal|pickle|dill|getattr|\bchr\b|_0x|__import__|importlib|globals\(|"
    rb"/dev/(?:tcp|udp)|\bnc\b|ncat|netcat|socat|dup2|\bpty\b|\.pipe\(|socket|invoke-|encodedcommand|frombase|"
    rb"join\(\s*[\[(]\s*[\"'][^\"']{0,4}[\"']\s*,|[\"'`]\s*\+\s*[\"'`]|\\x[0-9a-f]{2}|reverse|\[::-1\]|rot13|"
    rb"(?:(?:^|[^\w-])rm|shred)\s[^\n]*(?:[\s\"'](?:/|\*|C:)|~|HOME|/(?:home|users|etc|usr|var)\b)|"
    rb"(?:rmtree|rmsync|rimraf|rmdirsync|fs\.rm|promises\.rm)[\s\S]{0,8}\([^\n)]{0,80}(?:home|~|[\"']/|expanduser)"
)
_SECRET = re2.compile(
    rb"(?im)ssh|\.aws|gcloud|credential|\.azure|\.kube|kubeconfig|\.oci|doctl|terraform\.d|npmrc|pypirc|\.docker|netrc|gnupg|wallet|"
    rb"ethereum|bitcoin|solana|electrum|electron-cash|exodus|metamask|nkbih|bfnae|monero|mnemonic|seed|ledger|keystore|"
    rb"login data|cookies|logins|key4|user data|local state|local storage|chrome|firefox|[^\w]\.mozilla|brave|"
    rb"microsoft.edge|web data|keychain|keyring|generic-password|internet-password|secret-tool|microsoft.(?:cred|prot)|"
    rb"\.claude|openclaw|clawdbot|moltbot|\.codex|\.cursor|anthropic|openai|\.gemini|\.aider|telegram|tdata|discord|"
    rb"signal[/\\]|slack[/\\]|password-store|1password|bitwarden|kdbx|lastpass|shadow|sudoers|/passwd|/proc/|\bsam\b|"
    rb"ntds|_history|(?:^|[^\w)])\.env\b|dotenv|169\.254|metadata\.google|100\.100\.100|id_rsa|id_ed|id_dsa|id_ecdsa|\.pem\b|"
    rb"environ(?:[^\w.\[]|\.(?:items|values|copy|keys)|$)|process\.env(?:[^\w.\[]|$)|printenv|"
    rb"(?:^|[\s;|&($`])(?:env(?:\s+-0)?|set|(?:export|declare)\s+-[px])\s*(?:$|[|>;)`])"
)
#: The key of a service that we know, taken from the environment.
_KEYED = re2.compile(rb"(?:environ|getenv|\benv|\$)\W{0,4}(?:" + KEY_NAMES.encode() + rb")\b")
_SENDING = re2.compile(
    rb"(?i)curl|wget|\bnc\b|ncat|netcat|socat|telnet|scp|sftp|ftp|rsync|mail|mutt|swaks|git|nslookup|\bdig\b|\bhost\b|"
    rb"\bping\b|https?:|socket|fetch|request|urlopen|urllib|httpx|aiohttp|axios|\bgot\b|superagent|smtp|beacon|"
    rb"post|\bput|publish|upload|net\.|/dev/|resolve4|gethostby|getaddrinfo|resolver"
)
#: Texts that are put together: what a function does with them cannot be told by its own words.
ASSEMBLING = re2.compile(
    rb"(?i)join\(\s*[\[(]\s*[\"'][^\"']{0,4}[\"']\s*,|\bchr\b|fromcharcode|rot13|\[::-1\]|fromhex|\^ ?key"
)
#: Words of expressions that are worth working out.
FOLDABLE = re2.compile(
    ASSEMBLING.pattern
    + rb"|[\"'`]\s*\+\s*[\"'`]|b64|b85|b32decode|atob|buffer\.from|\.reverse\(|decompress|codecs|unhexlify|getattr|"
    + rb"import_module"
)
_FETCHING = re2.compile(
    rb"(?i)curl|wget|\bfetch|request|urlopen|urlretrieve|urllib|httpx|aiohttp|axios|\bgot\b|superagent|\bky\b|"
    rb"http\.client|https?\.get|(?:from|import|require)[\s(]*[\"']https?:|git\s+clone|socket|\bscp\b|aria2|ftp|"
    rb"downloads|irm\b|iwr\b"
)
_RUNNING = re2.compile(
    rb"(?im)eval|exec|\bsource\b|(?:^|[\s;&|(])\.\s|<\(|[^!/]\bsh\b|[^!/]\b(?:ba|z|da|k)sh\b|subprocess|os\.system|popen|"
    rb"spawn|child_process|compile\(|function\(|(?:require|import)\(\s*[^\"'\s)]|/tmp/|chmod|\bvm\.|startfile|pwsh|"
    rb"(?:^|[\s;&|(\"'`/])(?:python[\d.]*|node|perl|ruby|php|deno|bun|osascript)[ \t]+[\w./~$<-]|"
    rb"(?:^|[\s;&|(\"'`])\./\w|powershell|iex|importlib|runpy"
)
#: For facts about what lasts; no other words bring those about.
_LASTING = re2.compile(
    rb"(?i)cron|launch|systemctl|install|npx|uvx|pipx|\badd\b|rc\b|\.profile|authorized_keys|hooks|claude|agents\.md|"
    rb"soul\.md|memory\.md|winreg|schtasks|autostart|startup|\breg\b|\bat\b"
)
_LASTING_FACTS = ("persist", "install")
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
        asked: Mapping[str, object] = FACTS,
        ways: tuple[str, ...] = (),
    ) -> None:
        """`wide` takes every word for telling: a rule has found its text, and now asks for a fact. `ways` are those of
        running a download that a rule asks for."""
        # The capability card names the secrets that are read and what is made to last, whatever rules ask for.
        self._always = [_ALONE, TELLING_PATHS]
        if any(name in asked for name in _LASTING_FACTS):
            self._always.append(_LASTING)
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
        if code.holds(_FETCHING) and code.runs(sign):
            signs += [_FETCHING, _RUNNING]
        elif code.holds(_ALONE):
            signs.append(_RUNNING)
        return [one for one in signs if code.holds(one)]

    def __bool__(self) -> bool:
        """Whether any stretch may."""
        return bool(self._signs)

    def __call__(self, start: int, end: int) -> bool:
        """Whether a fact that a rule asks for may come from this stretch."""
        if self._code.only == (start, end):
            return bool(self._signs)
        return _has_sign(self._signs, self._code.flowing, start, end)

    def places(self, start: int, end: int) -> Iterator[int]:
        """Where in the stretch words stand that may tell something, in no order."""
        for sign in self._signs:
            for match in sign.finditer(self._code.flowing, start, end):
                yield match.start()

    def anything(self, start: int, end: int) -> bool:
        """Whether the stretch downloads, runs or tells anything, asked for or not."""
        return _has_sign(self._with_running(_RUNNING), self._code.flowing, start, end)


def _has_sign(signs: Sequence["re2._Regexp"], text: bytes, start: int, end: int) -> bool:
    """In the stretch by itself: what begins inline code begins a line."""
    stretch = text[start:end]
    return any(sign.search(stretch) for sign in signs)
