"""Secrets in a plugin's settings: told by the name of the field or the form of the value, and left out wherever a
setting is shown."""

import re2

LEFT_OUT = "[left out]"
#: What is put in later is no secret.
_PLACEHOLDER = re2.compile(r"\$\{?\w+|\{\{|<[\w -]+>|%\w+%|(?i)your|example|changeme|xxx|\.\.\.|placeholder")
_NAME = re2.compile(
    r"(?i)key|token|secret|passw|passphrase|credential|authori[sz]ation|cookie|(?:^|_)(?:pat|pwd)$"
)
_FORM = (
    r"gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abprs]-[\w-]{10,}|"
    r"A[KS]IA[A-Z0-9]{12,}|AIza[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]+\.?[\w-]*|npm_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}"
)
_VALUE = re2.compile(_FORM)
_SHOWN = re2.compile(
    rf"({_FORM})|(?i:((?:bearer|basic)\s+)[^\s\"']+)|(?i:(--?[\w-]*(?:key|token|secret|passw\w*)[= ]+)[^\s\"']+)|"
    r"(://)[^/\s@]+@|(\?)[^\s\"'#]+"
)
#: A shorter value is a word.
_SHORTEST = 8


def holds_secret(name: str, value: str) -> bool:
    """Whether the value of a header or a variable looks like a secret."""
    if _PLACEHOLDER.search(value):
        return False
    return bool(_VALUE.search(value)) or (len(value) >= _SHORTEST and bool(_NAME.search(name)))


def without_secrets(text: str) -> str:
    """A command or an address with what looks like a secret left out."""
    return str(_SHOWN.sub(lambda found: _kept(found) + LEFT_OUT, text))


def _kept(found: "re2._Match[str]") -> str:
    return next((group for group in found.groups()[1:] if group), "")
