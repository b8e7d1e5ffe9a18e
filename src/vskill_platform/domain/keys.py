"""Every key of the record store, built and taken apart in one place.

Stores build their keys here and nowhere else. A key is its kind and its parts, joined by `:`. In a part `%`
and `:` are written `%25` and `%3A`, so a model named `llama3:8b` or a folder named `a:b` cannot be read as
two parts, and two different lists of parts never give one key. Names that we make ourselves (ids, digests,
canonical names) contain neither, so for them the key is what it looks like: `skill:` and the canonical name.
"""

from collections.abc import Collection

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.identity import has_control_characters


class KeyKind(msgspec.Struct, frozen=True):
    """The keys of one kind of record. Called with its parts, in the order in which they are named, it builds a key."""

    prefix: str
    parts: tuple[str, ...]

    def __call__(self, *parts: str) -> str:
        if len(parts) != len(self.parts):
            raise TypeError(f"a key of {self.prefix} has the parts {', '.join(self.parts)}")
        return _key(self.prefix, parts)

    def under(self, *parts: str) -> str:
        """The prefix of every key that begins with these parts."""
        return _key(self.prefix, parts) + ":"


class ParsedKey(msgspec.Struct, frozen=True):
    """A key taken apart."""

    #: one of the prefixes below
    prefix: str
    parts: tuple[str, ...]


def _key(prefix: str, parts: tuple[str, ...]) -> str:
    # What we name ourselves needs no escaping, and every look at the store makes a key.
    if _is_plain("".join(parts)) and all(parts):
        return prefix + ":".join(parts)
    for part in parts:
        if not part or has_control_characters(part):
            raise _bad_key(part)
    return prefix + ":".join(map(_escape, parts))


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and ":" not in text and "%" not in text


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unescape(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")


def _bad_key(text: str) -> InvalidInput:
    shown = text[:80].encode("ascii", "backslashreplace").decode("ascii")
    return InvalidInput(
        f"{shown!r} cannot be part of a key.", field="key", fix="use plain text that is not empty"
    )


def _kind(prefix: str, *parts: str) -> KeyKind:
    return KeyKind(prefix, parts)


sub = _kind("sub:", "submission")
#: a run that is over; the number is not padded, so keys do not sort by run
subrun = _kind("subrun:", "submission", "run")
#: from the id of a place after a redirect to the submission that it belongs to
sub_alias = _kind("sub_alias:", "submission")
#: what one request submitted
hand_in = _kind("hand_in:", "id")
scan = _kind("scan:", "digest", "ruleset")
judge = _kind("judge:", "digest", "ruleset", "model", "rubric")
extscan = _kind("extscan:", "digest", "provider")
#: what a rule set would take down, or took down
rescan = _kind("rescan:", "ruleset", "canonical name", "digest")
skill = _kind("skill:", "canonical name")
#: within `skill`: what lists skills must leave these out before it reads anything; one key per pair of a flat name and
#: a skill that it may mean
alias_key = _kind("skill:alias:", "flat name", "canonical name")
#: short names and the skills that hold them
name = _kind("name:", "flat name")
version = _kind("version:", "canonical name", "number")
#: what a published skill's text has in common with others
sketch = _kind("sketch:", "canonical name")
#: how many published skills of one audience name a host
host = _kind("host:", "audience", "host")
#: the signed statement about one version
attestation = _kind("attestation:", "canonical name", "number")
#: public keys that have signed something in this store
signer = _kind("signer:", "key id")
suppress = _kind("suppress:", "digest", "rule")
#: what a reviewer decided, by what a later submission may have in common with it; the moment sorts later ones first
ruling = _kind("ruling:", "kind", "value", "moment")
#: what one commit changed about the versions that are withdrawn; padded, so that keys sort by serial
revocation = _kind("revocation:", "serial")
#: since when a list of revoked versions is as it is, by who reads it
revoked = _kind("revoked:", "scope")
#: a counter: how often a rule fired, and how often reviewers agreed (`fired`, `agreed` or `disagreed`)
rule_figure = _kind("rule_figure:", "rule", "what")
#: a counter: how often a rule of the policy matched on a day (`YYYY-MM-DD`) what one audience reads, and how often
#: reviewers agreed (`matched`, `agreed`, `disagreed`, or `failed` and the policy's digest)
policy_figure = _kind("policy_figure:", "day", "rule", "what", "audience")
#: what the policy's rules were asked about in one run
facts = _kind("facts:", "submission", "run")
namespace = _kind("namespace:", "name")
team = _kind("team:", "name")
#: what a namespace uses of its quotas (`skills`, `bytes` or `submissions`)
usage = _kind("usage:", "namespace", "what")
#: a token that somebody is to put into a repository
owner_proof = _kind("owner_proof:", "repository", "account")
#: `BlockTarget.key` builds it
block = _kind("block:", "kind", "value")
#: how a forge tells of pushes to a followed repository
push_hook = _kind("push_hook:", "id")
#: a repository whose skills are taken in as they come and change
follow = _kind("follow:", "namespace", "repository")
#: another marketplace or registry whose skills may come here, and what it offered last
upstream = _kind("upstream:", "name")
upstream_entries = _kind("upstream_entries:", "name")
#: what the memory knows of a skill of an upstream
upstream_facts = _kind("upstream_facts:", "name", "entry")
#: what signed files brought to an upstream
bundles = _kind("bundles:", "name")
#: what another registry signed about a content that came from an upstream
brought = _kind("brought:", "name", "digest")
#: what another registry signed about a version
origin = _kind("origin:", "canonical", "version")
repohealth = _kind("repohealth:", "repository")
job = _kind("job:", "name")
#: when a worker process was last there
worker = _kind("worker:", "id")
#: the same of a web process
web = _kind("web:", "id")
#: a counter; the day as `YYYY-MM-DD`, so that the keys of a skill sort by day
installs = _kind("installs:", "canonical name", "day")
#: a skill with a version that is live and under review; the skill's record says whether it still is
review = _kind("review:", "canonical name")
report = _kind("report:", "id")
#: which report of a reporter about a skill is open
open_report = _kind("open_report:", "canonical name", "reporter")
webhook = _kind("webhook:", "id")
#: what an account was told; the moment sorts later ones first
inbox = _kind("inbox:", "account", "moment")
#: what an account watches
watches = _kind("watches:", "account")
#: who watches a skill or a namespace
watcher = _kind("watcher:", "target", "account")
collection = _kind("collection:", "name")
#: a list of skills as a git repository: the scope is the path of its address, the form tells for whom it is
git_list = _kind("git_list:", "scope", "form")
#: stored content that is missing or not what its digest says
damage = _kind("damage:", "digest")
#: a file that was sent and waits to be published; the ticket is its size and SHA-256
upload = _kind("upload:", "account", "ticket")
token = _kind("token:", "hash")
session = _kind("session:", "hash")
#: a CI job that proved which one it is
ci_token = _kind("ci_token:", "hash")
#: the token of a CI job that was exchanged, so that it is exchanged once; the hash is of its issuer and id
ci_proof = _kind("ci_proof:", "hash")
#: the CI workflows that may submit a repository
publishers = _kind("publishers:", "repository")
#: what opens the private repositories of a namespace, sealed
credentials = _kind("credentials:", "namespace")
#: a machine that asks to be signed in
device = _kind("device:", "code")
user = _kind("user:", "name")
#: which account belongs to a GitHub account, by `id` and its number, and by `login` and the login that it last proved
github = _kind("github:", "by", "value")
#: which account belongs to somebody at an issuer of OpenID Connect; the hash is of issuer and subject
identity = _kind("identity:", "hash")
#: the token by which the directory of an issuer sends its people
scim = _kind("scim:", "issuer")
#: a group that a directory has sent; the hash is of issuer and group
scim_group = _kind("scim_group:", "hash")
#: the account that a directory's user name means; the hash is of the name, whose case does not count
scim_user = _kind("scim_user:", "issuer", "hash")
#: an account that a directory put into a group; the account says whether it still is
scim_member = _kind("scim_member:", "group", "account")
#: how often somebody tried to sign in lately, or had a code mailed to an address
attempts = _kind("attempts:", "hash")
audit = _kind("audit:", "id")
#: where the request of an audit entry came from, for a limited time
audit_address = _kind("audit_address:", "id")
#: a counter: how many lines about strangers the audit got in a minute
refused = _kind("refused:", "minute")
control = _kind("control:", "what")

#: Every kind by its prefix, a longer prefix before the one that it begins with.
KINDS = {
    kind.prefix: kind
    for kind in sorted(
        (value for value in tuple(globals().values()) if isinstance(value, KeyKind)),
        key=lambda kind: kind.prefix,
        reverse=True,
    )
}

#: its version rises with every change of the blocklist
CONTROL_BLOCKLIST = control("blocklist")
#: the pause of the queue, always with an end
CONTROL_QUEUE = control("queue")
#: the registry's mode; its version rises with every change of a namespace or a team
CONTROL_NAMESPACES = control("namespaces")
#: the release that uses the store, and the one before it
CONTROL_RELEASE = control("release")
#: the memory that submissions are compared with, where it is not the release's own
CONTROL_MEMORY = control("memory")
#: the operator's policy
CONTROL_POLICY = control("policy")
#: the rule set that stopped before its first take-down
CONTROL_RESCANS = control("rescans")
#: how many events of revocation there are
CONTROL_REVOCATIONS = control("revocations")
#: the key that seals the cursors of event streams
CONTROL_STREAMS = control("streams")
#: the words of public skills, by which a search suggests what was meant
CONTROL_VOCABULARY = control("vocabulary")
#: the one-time link that makes the first admin
CONTROL_SETUP = control("setup")


def is_alias(key: str) -> bool:
    return key.startswith(alias_key.prefix)


def names(flats: Collection[str]) -> dict[str, str]:
    """The short names by their keys: hundreds of neighbours of a name are looked up at once."""
    if _is_plain("".join(flats)) and all(flats):
        return {name.prefix + flat: flat for flat in flats}
    return {name(flat): flat for flat in flats}


def revocation_at(serial: int) -> str:
    return revocation(f"{serial:012}")


def inbox_seen(account: str) -> str:
    """Before all that the account was told: one scan reads both."""
    return inbox(account, "0")


def parse(key: str) -> ParsedKey:
    """The inverse of every builder above; `InvalidInput` for what none of them builds."""
    for prefix, kind in KINDS.items():
        if key.startswith(prefix):
            parts = tuple(map(_unescape, key.removeprefix(prefix).split(":")))
            if len(parts) == len(kind.parts) and kind(*parts) == key:
                return ParsedKey(prefix, parts)
            break
    raise _bad_key(key)
