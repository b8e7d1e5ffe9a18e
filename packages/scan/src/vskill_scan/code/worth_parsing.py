"""Which code is worth parsing: words without which no fact that a rule asks for can come about.

Parsing costs more than everything else together, and most skills hold no code that could do harm. Some words tell by
themselves, and some beside others: a secret that leaves needs words of a secret in one file and of a way out anywhere
in the skill, a download that is run needs both in one file. `parsing` parses the blocks that hold such words.
"""

from collections.abc import Collection, Sequence

import re2

from vskill_scan.model import Layer
from vskill_scan.places import KEY_NAMES, TELLING_PATHS
from vskill_scan.reading.languages import PARSED

#: A word that is put together from two texts. Sentences that go over several lines are joined at a blank.
GLUED = rb"[\w./~$-][\"'`]\s*\+\s*[\"'`][\w./~$-]"
#: Decoders, names put together, sockets and broad deletion. A glued word or path may be anything, so it counts.
_ALONE = re2.compile(
    rb"(?im)mkfifo|home\}?/\.\$|\|\s*getline|awk\b[^\n]*system\(|^\s*\$\{?\w+\}?\s+\$|(?:^|[;&|({`!])\s*(?:sudo\s+)?\"?[\w./-]*(?:\$(?:\{\w+\}[\w$-]|\w+[$-])|\w(?:\"\w*\"|'\w*')\w)|\|\s*rev\b|\btr\s+[\"']?[a-z]-z|/dev/\$|"
    rb"=[\"']?\$\{\w+\}\w|\$\{?\w+\}?/\$\{?\w+\}?/\$|s_client|openssl[^\n]*\s-d\b|base(?:64|32)\s[^\n]*-+d|"
    rb"b(?:64|32|16|85)_?decode|a85decode|decodebytes|a2b_|fromhex|unhexlify|"
    rb"codecs\.(?:dec|getd|esc)|from\s+codecs|decompress|\bxxd\b|"
    rb"(?:pickle|marshal|dill)\W{0,3}load|from\s+(?:pickle|marshal|dill)|import\s+(?:pickle|marshal|dill)\s+as|"
    rb"getattr\s*\(\s*(?:os|sys|subprocess|builtins|__\w+|importlib|shutil|socket|urllib\w*|requests)\b|"
    rb"getattr\s*\([^()\n]{0,120}\)\s*\(|\bchr\b|__import__|import_module|globals\(|"
    rb"/dev/(?:tcp|udp)|\bnc\s+[-\w$\"'.]|[\"']nc[\"']|\bncat\b|netcat|socat|dup2|\bpty\b|\bsocket\b|encodedcommand|"
    rb"join\(\s*[\[(]\s*[\"'][^\"']{0,4}[\"']\s*,|" + GLUED + rb"|\\x[0-9a-f]{2}|reversed|reverse\s*[^=\sd]|"
    rb"\[::-1\]|rot13|"
    rb"(?:(?:^|[^\w-])rm|shred)\s[^\n]*(?:[\s\"'](?:/|\*|C:)|~|HOME|/(?:home|users|etc|usr|var)\b)|"
    rb"rmtree\s{0,8}\([^\n)]{0,80}(?:home|~|[\"']/|expanduser)"
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
    rb"environ(?:[^\w.\[]|\.(?:items|values|copy|keys)|$)|printenv|"
    rb"(?:^|[\s;|&($`])(?:env(?:\s+-0)?|set|(?:export|declare)\s+-[px])\s*(?:$|[|>;)`])"
)
#: The key of a service that we know, taken from the environment.
_KEYED = re2.compile(rb"(?:environ|getenv|\benv|\$)\W{0,4}(?:" + KEY_NAMES.encode() + rb")\b")
_SENDING = re2.compile(
    rb"(?im)curl|wget|\bnc\b|\bncat\b|netcat|socat|telnet|\bscp\b|sftp|\bftp|rsync|\bmailx?\b|sendmail|mutt|swaks|"
    rb"\bgit\b|[\"']git[\"']|nslookup|\bdig\b|\bhost\s|\bping\b|socket|\bfetch\b|request|urlopen|urllib|httpx|"
    rb"aiohttp|smtp|https?\.|https?connection|"
    rb"\.(?:post|put|patch|publish|send\w*|upload\w*)\b|\b(?:post|put|upload|publish)\w*\(|[\"'](?:post|put)[\"']|"
    rb"storbinary|put_object|/dev/(?:tcp|udp|\$)|s_client|gethostby|getaddrinfo|resolver|dns\."
)
_FETCHING = re2.compile(
    rb"(?i)curl|wget|\bfetch\b|request|urlopen|urlretrieve|urllib|httpx|aiohttp|http\.client|git\s+clone|socket|\bscp\b|"
    rb"aria2|\bftp|downloads"
)
_RUNNING = re2.compile(
    rb"(?im)\beval\b|[^\w]eval|\bexec(?:file|v\w*|l\w*)?\b|\bsource\s|(?:^|[\s;&|(])\.\s|<\(|[^!/]\b(?:ba|z|da|k)?sh\b|"
    rb"subprocess|os\.system|popen|spawn|(?:^|[^.\w])compile\(|import\(\s*[^\"'\s)]|/tmp/|chmod|startfile|pwsh|"
    rb"(?:^|[\s;&|(\"'`/])(?:python[\d.]*|node|perl|ruby|php|deno|bun|osascript)[ \t]+[\w./~$<-]|"
    rb"(?:^|[\s;&|(\"'`])\./\w|powershell|\biex\b|import_module|runpy"
)
#: What a program must say to run a download in a way that a rule asks for (`how` of `exec.fetched`). A name can be
#: imported under another one, but its own stands in the text.
_EVALUATING = re2.compile(
    rb"(?m)\b(?:exec|eval)\b|(?:^|[^\w.])compile\b|marshal|pickle|dill|\bchmod\b|\bst_mode\b|0o?7[0-7]5\b|"
    rb"start_new_session|__import__|importlib|"
    rb"[\"'](?:e|ev|eva)[\"'{$]|[}\"'](?:val|al|l)\b"
)
_CONNECTING = re2.compile(rb"(?i)websocket|open_connection|create_connection")
_STARTING = re2.compile(rb"(?i)exec|spawn|subprocess|popen|system")
_HOME = re2.compile(rb"(?i)path\.home|expanduser")
_REMOVING = re2.compile(rb"(?i)os\.(?:remove|unlink)|\.unlink\(|\.encrypt\(")
_OUT = re2.compile(rb"(?i)\b(?:n?curl|n?wget|nc|ncat)\s|/dev/tcp")
_HOOK = re2.compile(rb"(?i)(?:pre|post)-(?:commit|checkout|merge|push|rewrite|receive|rebase|update)\b")
#: Words that tell where both stand in one file, and what is read then.
_PAIRS = (
    (_ALONE, _RUNNING, (_RUNNING,)),
    (_FETCHING, _EVALUATING, (_FETCHING, _RUNNING, _EVALUATING)),
    (_CONNECTING, _STARTING, (_CONNECTING, _RUNNING)),
    (_HOME, _REMOVING, (_HOME, _REMOVING)),
    (_OUT, _HOOK, (_OUT, _HOOK)),
)


class Signs:
    """What the code of one skill may tell. Layers may still be added."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = layers
        self._code: dict[int, _Code] = {}

    def _code_of(self, layer: Layer) -> "_Code":
        return self._code.setdefault(id(layer), _Code(layer))

    def telling(self, layer: Layer) -> "Telling":
        """What to read of a layer."""
        code = self._code_of(layer)
        # The capability card names the secrets that are read and what is made to last, whatever rules ask for.
        signs = [_ALONE, TELLING_PATHS, *((_KEYED, _SENDING) if code.holds(_KEYED) else ())]
        for first, second, read in _PAIRS:
            if code.holds(first) and code.holds(second):
                signs += read
        if code.holds(_SECRET) and any(self._code_of(one).holds(_SENDING) for one in self._layers):
            signs += (_SECRET, _SENDING)
        return Telling(code, dict.fromkeys(sign for sign in signs if code.holds(sign)))


class _Code:
    """All code of one layer as one text, to be searched once for each kind of words."""

    def __init__(self, layer: Layer) -> None:
        self.flowing = layer.flowing
        code = [block for block in layer.blocks if block.language in PARSED]
        # Between line breaks, so that what begins or ends a block begins or ends a line.
        self._text = (
            b"\n".join([b"", *(layer.flowing[one.start : one.end] for one in code), b""]) if code else b""
        )
        #: where its only block begins and ends; what holds for all of the code holds for that
        self.only = (code[0].start, code[0].end) if len(code) == 1 else None
        self._held: dict[int, bool] = {}

    def holds(self, sign: "re2._Regexp") -> bool:
        """Whether it holds one of the words."""
        if not self._text:
            return False
        if id(sign) not in self._held:
            self._held[id(sign)] = sign.search(self._text) is not None
        return self._held[id(sign)]


class Telling:
    """Which stretches of one layer's code may tell something: those with one of these words."""

    def __init__(self, code: _Code, signs: Collection["re2._Regexp"]) -> None:
        self._code = code
        self._signs = signs

    def __bool__(self) -> bool:
        return bool(self._signs)

    def __call__(self, start: int, end: int) -> bool:
        if self._code.only == (start, end):
            return bool(self._signs)
        # In the stretch by itself: what begins inline code begins a line.
        stretch = self._code.flowing[start:end]
        return any(sign.search(stretch) for sign in self._signs)
