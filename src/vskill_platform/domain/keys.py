"""Every key of the record store, built and taken apart in one place.

Stores build their keys here and nowhere else. A key is its kind and its parts, joined by `:`. In a part `%`
and `:` are written `%25` and `%3A`, so a model named `llama3:8b` or a folder named `a:b` cannot be read as
two parts, and two different lists of parts never give one key. Names that we make ourselves (ids, digests,
canonical names) contain neither, so for them the key is what it looks like: `skill:` and the canonical name.
"""

from collections.abc import Collection

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.identity import Identity, has_control_characters
from vskill_platform.domain.blocklist import BlockTarget

SUB = "sub:"
SUBRUN = "subrun:"
SUB_ALIAS = "sub_alias:"
#: what one request submitted
HAND_IN = "hand_in:"
SCAN = "scan:"
JUDGE = "judge:"
EXTSCAN = "extscan:"
#: what a rule set would take down, or took down
RESCAN = "rescan:"
SKILL = "skill:"
#: within `SKILL`: what lists skills must leave these out before it reads anything
ALIAS = "skill:alias:"
#: short names and the skills that hold them
NAME = "name:"
VERSION = "version:"
#: what a published skill's text has in common with others
SKETCH = "sketch:"
#: how many published skills of one audience name a host
HOST = "host:"
ATTESTATION = "attestation:"
#: public keys that have signed something in this store
SIGNER = "signer:"
SUPPRESS = "suppress:"
#: what a reviewer decided, by what a later submission may have in common with it
RULING = "ruling:"
#: what one commit changed about the versions that are withdrawn
REVOCATION = "revocation:"
#: since when a list of revoked versions is as it is, by who reads it
REVOKED = "revoked:"
#: how often a rule fired, and how often reviewers agreed
RULE_FIGURE = "rule_figure:"
NAMESPACE = "namespace:"
TEAM = "team:"
#: what a namespace uses of its quotas
USAGE = "usage:"
#: a token that somebody is to put into a repository
OWNER_PROOF = "owner_proof:"
BLOCK = "block:"
REPOHEALTH = "repohealth:"
JOB = "job:"
#: when a worker process was last there
WORKER = "worker:"
INSTALLS = "installs:"
#: a skill with a version that is live and under review; the skill's record says whether it still is
REVIEW = "review:"
REPORT = "report:"
#: which report of a reporter about a skill is open
OPEN_REPORT = "open_report:"
WEBHOOK = "webhook:"
#: what an account was told
INBOX = "inbox:"
#: what an account watches
WATCHES = "watches:"
#: who watches a skill or a namespace
WATCHER = "watcher:"
COLLECTION = "collection:"
#: a list of skills as a git repository: where its content is, and what it was made of
GIT_LIST = "git_list:"
#: stored content that is missing or not what its digest says
DAMAGE = "damage:"
#: a file that was sent and waits to be published
UPLOAD = "upload:"
TOKEN = "token:"  # noqa: S105 - a prefix
SESSION = "session:"
USER = "user:"
#: which account belongs to a GitHub account, by its number and by the login that it last proved
GITHUB = "github:"
#: how often somebody tried to sign in lately, or had a code mailed to an address
ATTEMPTS = "attempts:"
AUDIT = "audit:"
CONTROL = "control:"
#: its version rises with every change of the blocklist
CONTROL_BLOCKLIST = "control:blocklist"
#: the pause of the queue, always with an end
CONTROL_QUEUE = "control:queue"
#: the registry's mode; its version rises with every change of a namespace or a team
CONTROL_NAMESPACES = "control:namespaces"
#: the rule set that stopped before its first take-down
CONTROL_RESCANS = "control:rescans"
#: how many events of revocation there are
CONTROL_REVOCATIONS = "control:revocations"
#: the key that seals the cursors of event streams
CONTROL_STREAMS = "control:streams"
#: the words of public skills, by which a search suggests what was meant
CONTROL_VOCABULARY = "control:vocabulary"
#: the one-time link that makes the first admin
CONTROL_SETUP = "control:setup"

#: how many parts follow each prefix; the longer prefix is tried first
PARTS: dict[str, int] = {
    ALIAS: 2,
    SUB: 1,
    SUBRUN: 2,
    SUB_ALIAS: 1,
    HAND_IN: 1,
    SCAN: 2,
    JUDGE: 4,
    EXTSCAN: 2,
    RESCAN: 3,
    SKILL: 1,
    NAME: 1,
    VERSION: 2,
    SKETCH: 1,
    HOST: 2,
    ATTESTATION: 2,
    SIGNER: 1,
    SUPPRESS: 2,
    RULING: 3,
    REVOCATION: 1,
    REVOKED: 1,
    RULE_FIGURE: 2,
    NAMESPACE: 1,
    TEAM: 1,
    USAGE: 2,
    OWNER_PROOF: 2,
    BLOCK: 2,
    REPOHEALTH: 1,
    JOB: 1,
    WORKER: 1,
    INSTALLS: 2,
    REVIEW: 1,
    REPORT: 1,
    OPEN_REPORT: 2,
    WEBHOOK: 1,
    INBOX: 2,
    WATCHES: 1,
    WATCHER: 2,
    COLLECTION: 1,
    GIT_LIST: 2,
    DAMAGE: 1,
    UPLOAD: 2,
    TOKEN: 1,
    SESSION: 1,
    USER: 1,
    GITHUB: 2,
    ATTEMPTS: 1,
    AUDIT: 1,
    CONTROL: 1,
}


class ParsedKey(msgspec.Struct, frozen=True):
    """A key taken apart."""

    #: one of the prefixes above
    prefix: str
    parts: tuple[str, ...]


def sub(submission_id: str) -> str:
    return _key(SUB, submission_id)


def subrun(submission_id: str, run: int) -> str:
    """A run that is over. The number is not padded, so keys do not sort by run."""
    return _key(SUBRUN, submission_id, str(run))


def sub_alias(submission_id: str) -> str:
    """From the id of a place after a redirect to the submission that it belongs to."""
    return _key(SUB_ALIAS, submission_id)


def hand_in(hand_in_id: str) -> str:
    return _key(HAND_IN, hand_in_id)


def scan(digest: str, ruleset: str) -> str:
    return _key(SCAN, digest, ruleset)


def scans_of(digest: str) -> str:
    """The prefix of all scans of one content."""
    return _key(SCAN, digest) + ":"


def judge(digest: str, ruleset: str, model: str, rubric: str) -> str:
    return _key(JUDGE, digest, ruleset, model, rubric)


def judges_of(digest: str) -> str:
    """The prefix of all the judge's answers about one content."""
    return _key(JUDGE, digest) + ":"


def extscan(digest: str, provider: str) -> str:
    return _key(EXTSCAN, digest, provider)


def extscans_of(digest: str) -> str:
    """The prefix of all external scans of one content."""
    return _key(EXTSCAN, digest) + ":"


def rescan(ruleset: str, canonical: str, digest: str) -> str:
    """What these rules would do to one version."""
    return _key(RESCAN, ruleset, canonical, digest)


def rescans_by(ruleset: str) -> str:
    """The prefix of everything that one rule set would take down."""
    return _key(RESCAN, ruleset) + ":"


def skill(canonical: str) -> str:
    return _key(SKILL, canonical)


def alias_key(flat: str, canonical: str) -> str:
    """One key per pair of a flat name and a skill that it may mean."""
    return _key(ALIAS, flat, canonical)


def aliases_of(flat: str) -> str:
    """The prefix under which a flat name is resolved: one key resolves, several are ambiguous."""
    return _key(ALIAS, flat) + ":"


def is_alias(key: str) -> bool:
    return key.startswith(ALIAS)


def name(flat: str) -> str:
    """Who holds a short name."""
    return _key(NAME, flat)


def names(flats: Collection[str]) -> dict[str, str]:
    """The short names by their keys: hundreds of neighbours of a name are looked up at once."""
    if _is_plain("".join(flats)) and all(flats):
        return {NAME + flat: flat for flat in flats}
    return {name(flat): flat for flat in flats}


def version(canonical: str, number: str) -> str:
    return _key(VERSION, canonical, number)


def versions_of(canonical: str) -> str:
    """The prefix of all versions of one skill."""
    return _key(VERSION, canonical) + ":"


def sketch(canonical: str) -> str:
    return _key(SKETCH, canonical)


def host(audience: str, name: str) -> str:
    """A counter."""
    return _key(HOST, audience, name)


def attestation(canonical: str, number: str) -> str:
    """The signed statement about one version."""
    return _key(ATTESTATION, canonical, number)


def signer(key_id: str) -> str:
    return _key(SIGNER, key_id)


def suppress(digest: str, rule_id: str) -> str:
    return _key(SUPPRESS, digest, rule_id)


def suppressions_of(digest: str) -> str:
    """The prefix of all suppressions for one content."""
    return _key(SUPPRESS, digest) + ":"


def ruling(kind: str, value: str, moment: str) -> str:
    """`moment` sorts later decisions first."""
    return _key(RULING, kind, value, moment)


def rulings_on(kind: str, value: str) -> str:
    """The prefix of all decisions about what has this in common, the latest first."""
    return _key(RULING, kind, value) + ":"


def revocation(serial: int) -> str:
    """Padded, so that keys sort by serial."""
    return _key(REVOCATION, f"{serial:012}")


def revoked(scope: str) -> str:
    return _key(REVOKED, scope)


def rule_figure(rule_id: str, what: str) -> str:
    """A counter; `what` is `fired`, `agreed` or `disagreed`."""
    return _key(RULE_FIGURE, rule_id, what)


def owner_proof(identity: Identity, account: str) -> str:
    return _key(OWNER_PROOF, identity.repo_key, account)


def namespace(name: str) -> str:
    return _key(NAMESPACE, name)


def team(name: str) -> str:
    return _key(TEAM, name)


def usage(namespace: str, what: str) -> str:
    """`what` is `skills`, `bytes` or `submissions`."""
    return _key(USAGE, namespace, what)


def repohealth(identity: Identity) -> str:
    return _key(REPOHEALTH, identity.repo_key)


def block(target: BlockTarget) -> str:
    return _key(BLOCK, target.kind.value, target.value)


def job(name: str) -> str:
    return _key(JOB, name)


def worker(worker_id: str) -> str:
    return _key(WORKER, worker_id)


def installs(canonical: str, day: str) -> str:
    """`day` as `YYYY-MM-DD`, so that the keys of a skill sort by day."""
    return _key(INSTALLS, canonical, day)


def installs_of(canonical: str) -> str:
    """The prefix of a skill's counters."""
    return _key(INSTALLS, canonical) + ":"


def review(canonical: str) -> str:
    return _key(REVIEW, canonical)


def report(ulid: str) -> str:
    return _key(REPORT, ulid)


def open_report(canonical: str, reporter: str) -> str:
    return _key(OPEN_REPORT, canonical, reporter)


def open_reports_of(canonical: str) -> str:
    """The prefix of all open reports about a skill."""
    return _key(OPEN_REPORT, canonical) + ":"


def webhook(webhook_id: str) -> str:
    return _key(WEBHOOK, webhook_id)


def inbox(account: str, moment: str) -> str:
    """`moment` sorts later ones first."""
    return _key(INBOX, account, moment)


def inbox_of(account: str) -> str:
    """The prefix of all that an account was told."""
    return _key(INBOX, account) + ":"


def inbox_seen(account: str) -> str:
    """Before all that the account was told: one scan reads both."""
    return inbox(account, "0")


def watches(account: str) -> str:
    return _key(WATCHES, account)


def watcher(target: str, account: str) -> str:
    return _key(WATCHER, target, account)


def watchers_of(target: str) -> str:
    """The prefix of all accounts that watch it."""
    return _key(WATCHER, target) + ":"


def collection(name: str) -> str:
    return _key(COLLECTION, name)


def git_list(scope: str, form: str) -> str:
    """`scope` is the path of its address; `form` tells for whom it is."""
    return _key(GIT_LIST, scope, form)


def damage(digest: str) -> str:
    return _key(DAMAGE, digest)


def upload(account: str, ticket: str) -> str:
    """`ticket` is the file's size and SHA-256."""
    return _key(UPLOAD, account, ticket)


def uploads_of(account: str) -> str:
    """The prefix of all files of an account that wait."""
    return _key(UPLOAD, account) + ":"


def token(token_hash: str) -> str:
    return _key(TOKEN, token_hash)


def session(session_hash: str) -> str:
    return _key(SESSION, session_hash)


def user(name: str) -> str:
    return _key(USER, name)


def github_id(number: str) -> str:
    return _key(GITHUB, "id", number)


def github_login(login: str) -> str:
    """GitHub compares logins without case."""
    return _key(GITHUB, "login", login.lower())


def attempts(subject_hash: str) -> str:
    return _key(ATTEMPTS, subject_hash)


def audit(ulid: str) -> str:
    return _key(AUDIT, ulid)


def parse(key: str) -> ParsedKey:
    """The inverse of every builder above; `InvalidInput` for what none of them builds."""
    for prefix, count in PARTS.items():
        if key.startswith(prefix):
            parts = tuple(map(_unescape, key.removeprefix(prefix).split(":")))
            if len(parts) == count and _key(prefix, *parts) == key:
                return ParsedKey(prefix, parts)
            break
    raise _bad_key(key)


def _key(prefix: str, *parts: str) -> str:
    # What we name ourselves needs no escaping, and every look at the store makes a key.
    if _is_plain("".join(parts)) and all(parts):
        return prefix + ":".join(parts)
    for part in parts:
        if not part or has_control_characters(part):
            raise _bad_key(part)
    return prefix + ":".join(map(_escape, parts))


def _is_plain(text: str) -> bool:
    """Whether nothing of it needs escaping."""
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
