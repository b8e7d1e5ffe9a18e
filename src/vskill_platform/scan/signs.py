"""Which code is worth parsing: words without which no fact that a rule asks for can come about.

Parsing costs more than everything else together, and most skills hold no code that could do harm. A secret that leaves
needs words of a secret and of a way out, somewhere in the skill; a download that is run needs both in one file; some
words tell by themselves. `code` parses the blocks that hold such words, and no others unless a pattern matched in them.
"""

from collections.abc import Callable, Container, Iterable, Sequence

import re2

from vskill_platform.scan.languages import PARSED
from vskill_platform.scan.model import FACTS, Layer

#: Blocks of one layer that are looked at.
MOST_BLOCKS = 300
#: Whether the code between two offsets of a layer may tell something.
Telling = Callable[[int, int], bool]

#: Decoding, assembling, sockets and broad deletion. Texts glued together may be anything, so they count here.
_ALONE = re2.compile(
    rb"(?im)base64|b64|b32decode|b85|a85|b16decode|atob|fromcharcode|fromcodepoint|fromhex|unhexlify|unescape|codecs|"
    rb"zlib|gzip|lzma|bz2|xxd|openssl|marshal|pickle|dill|getattr|\bchr\b|_0x|__import__|importlib|globals\(|"
    rb"/dev/(?:tcp|udp)|\bnc\b|ncat|netcat|socat|dup2|\bpty\b|\.pipe\(|socket|invoke-|encodedcommand|frombase|"
    rb"[\"'`]\s*\+\s*[\"'`]|\\x[0-9a-f]{2}|reverse|\[::-1\]|rot13|"
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
_SENDING = re2.compile(
    rb"(?i)curl|wget|\bnc\b|ncat|netcat|socat|telnet|scp|sftp|ftp|rsync|mail|mutt|swaks|git|nslookup|\bdig\b|\bhost\b|"
    rb"\bping\b|https?:|socket|fetch|request|urlopen|urllib|httpx|aiohttp|axios|\bgot\b|superagent|smtp|beacon|"
    rb"post|\bput|publish|upload|net\.|/dev/"
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


class Signs:
    """What the code of one skill may tell."""

    def __init__(self, layers: Iterable[Layer], *, wide: bool, asked: Container[str] = FACTS) -> None:
        """`wide` takes every word for telling: a rule has found its text, and now asks for a fact."""
        self._always = [_ALONE]
        if any(name in asked for name in _LASTING_FACTS):
            self._always.append(_LASTING)
        if wide:
            self._always += [_SECRET, _SENDING, _RUNNING]
        found = [layer for layer in layers if layer.blocks]
        leaks = any(_holds(layer, _SECRET) for layer in found) and any(
            _holds(layer, _SENDING) for layer in found
        )
        self._anywhere = [_SECRET, _SENDING] if leaks else []

    def telling(self, layer: Layer) -> Telling:
        signs = [*self._always, *self._anywhere]
        if _holds(layer, _FETCHING) and _holds(layer, _RUNNING):
            signs += [_FETCHING, _RUNNING]
        elif _holds(layer, _ALONE):
            signs.append(_RUNNING)
        text = layer.flowing
        return lambda start, end: _found(signs, text, start, end)


def _holds(layer: Layer, sign: "re2._Regexp") -> bool:
    """Whether the layer's code holds one of the words."""
    blocks = layer.blocks[:MOST_BLOCKS]
    return any(
        sign.search(layer.flowing, block.start, block.end) for block in blocks if block.language in PARSED
    )


def _found(signs: Sequence["re2._Regexp"], text: bytes, start: int, end: int) -> bool:
    return any(sign.search(text, start, end) for sign in signs)
