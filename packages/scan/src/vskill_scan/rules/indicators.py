"""What the operator knows to be bad: hosts, accounts, hashes of files, and digests of whole skills. What they hit is
certain, and blocks without a judge.

Hosts and accounts become a rule beside the bundled ones, so they are searched for wherever rules are, decoded text
included, and a changed list changes the name of the rule set: every skill is due for a new scan.
"""

from collections.abc import Iterable

import msgspec

from vskill_core.errors import InvalidSettings
from vskill_core.findings import FindingCategory, FindingKind, Severity
from vskill_scan.model import ACTING, TextRole
from vskill_scan.rules.ruleset import Condition, Examples, Ruleset, TextRule
from vskill_scan.rules.structure import LISTED_ADDRESS

SETTING = "VSKILL_INDICATORS_FILE"
_HASH_DIGITS = 64
_HEX = frozenset("0123456789abcdef")
_END = r"(?:[^\w.-]|\.(?:[^\w]|$)|$)"


class Indicators(msgspec.Struct, frozen=True):
    """What an operator knows to be bad."""

    #: names or addresses; a subdomain of one counts too
    hosts: tuple[str, ...] = ()
    #: host and account, such as `github.com/some-account`
    accounts: tuple[str, ...] = ()
    #: SHA-256 of files, in hexadecimal
    hashes: tuple[str, ...] = ()
    #: digests of whole skills, which are a setting of their own
    skills: tuple[str, ...] = ()


NO_INDICATORS = Indicators()


def read_indicators(text: str) -> Indicators:
    """A line is `host NAME`, `account HOST/NAME` or `sha256 HEX`; `#` begins a comment."""
    found: dict[str, set[str]] = {kind: set() for kind in _CHECKS}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].lower().split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in _CHECKS or not _CHECKS[words[0]](words[1]):
            fix = "write 'host NAME', 'account HOST/NAME' or 'sha256 HEX'"
            message = f"{SETTING}: line {number} is not an indicator; {fix}."
            raise InvalidSettings(message, setting=SETTING, fix=fix)
        found[words[0]].add(words[1])
    hosts, accounts, hashes = (tuple(sorted(found[kind])) for kind in _CHECKS)
    return Indicators(hosts, accounts, hashes)


def _is_host(text: str) -> bool:
    return "." in text.strip(".") and all(part and _is_name(part) for part in text.split("."))


def _is_account(text: str) -> bool:
    host, slash, name = text.partition("/")
    return bool(slash) and _is_host(host) and _is_name(name.replace(".", "-"))


def _is_name(text: str) -> bool:
    return bool(text) and all(char.isalnum() or char in "-_" for char in text)


def _is_hash(text: str) -> bool:
    return len(text) == _HASH_DIGITS and set(text) <= _HEX


_CHECKS = {"host": _is_host, "account": _is_account, "sha256": _is_hash}


def with_indicators(ruleset: Ruleset, indicators: Indicators) -> Ruleset:
    """The rules with the operator's list beside them."""
    patterns = [*map(_host_pattern, indicators.hosts), *_account_patterns(indicators.accounts)]
    rules = (*ruleset.rules, _rule(patterns)) if patterns else ruleset.rules
    return Ruleset(rules, indicators.hashes, indicators.skills) if indicators != NO_INDICATORS else ruleset


def _host_pattern(host: str) -> str:
    return rf"(?:^|[^\w-]){_plain(host)}{_END}"


def _account_patterns(accounts: Iterable[str]) -> Iterable[str]:
    for account in accounts:
        host, _, name = account.partition("/")
        yield rf"{_plain(host)}[/:]{_plain(name)}{_END}"
        if host == "github.com":
            yield rf"\braw\.githubusercontent\.com/{_plain(name)}/"
            yield rf"(?:^|[^\w.-]){_plain(name)}\.github\.io\b"


def _plain(text: str) -> str:
    return text.replace(".", r"\.").replace("-", r"\-")


def _rule(patterns: Iterable[str]) -> TextRule:
    return TextRule(
        id=LISTED_ADDRESS.id,
        version=1,
        title="A listed host or account",
        severity=Severity.CRITICAL,
        kind=FindingKind.MALICE,
        category=FindingCategory.KNOWN_BAD,
        why=LISTED_ADDRESS.why,
        remedy=LISTED_ADDRESS.remedy,
        certain=True,
        roles=tuple(sorted(ACTING | {TextRole.DATA})),
        match=Condition(any=tuple(Condition(re=pattern) for pattern in patterns)),
        examples=Examples(),
    )
