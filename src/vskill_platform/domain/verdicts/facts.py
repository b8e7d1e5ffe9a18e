"""What a policy's rules can ask about a skill: made once per decision, and documented from these declarations.

A fact that is not known is empty, 0 or false, never missing, so a rule need not ask whether it is there. Lists have at
most 100 entries: those of the capability card are bounded, and of the findings the worst are taken.
"""

from collections.abc import Iterable
from typing import Self

import msgspec

from vskill_core.capability import CapabilityKind, SkillCapability
from vskill_core.findings import Finding
from vskill_core.publisher import Publisher
from vskill_platform.domain.signals import Signal, SignalKind

#: Findings that rules can look at, the worst first.
MOST_FINDINGS = 100


class SkillFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The skill itself."""

    #: Its name in the registry, without its owner.
    name: str = ""
    #: As its front matter says it; empty where that names none.
    licence: str = ""
    description: str = ""
    #: Number of files.
    files: int = 0
    #: Of all files together.
    bytes: int = 0
    #: Of its files with code, by their names, such as `bash` or `python`; `other` is one that the scan cannot read.
    languages: tuple[str, ...] = ()
    #: No version of it is live.
    first: bool = False
    #: Not everybody may read it.
    private: bool = False


class OwnerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Whose skill it is."""

    #: The first part of the skill's canonical name.
    name: str = ""
    #: The policy lists it in `trusted`.
    trusted: bool = False
    #: Somebody stands behind it: it is trusted, a member of its managed namespace submits, or a reviewer approved a
    #: live skill of it; and nothing of it was blocked within 90 days.
    vouched: bool = False
    #: An account has proved that it controls the repository, or uploads to its own namespace.
    proven: bool = False
    #: Its namespace is managed: only members publish there.
    managed: bool = False
    #: Number of its live skills, counted to 50.
    live_skills: int = 0
    #: Days since its first skill was published here; 0 where none was.
    days: int = 0
    #: Number of its skills and repositories that were blocked within 90 days.
    blocks: int = 0


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Where its files come from."""

    #: `git` or `upload`.
    kind: str = ""
    #: Such as `github.com`.
    host: str = ""


class CapabilityFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the capability card."""

    #: The host, program, path, package, or what it is in words.
    value: str = ""
    file: str = ""
    #: From 1; 0 is the whole file.
    line: int = 0
    #: `code`, `instruction`, `link`, or of something unread `patterns`: its data flow is not followed.
    context: str = ""
    #: A machine or an agent acts upon it: it is more than a link.
    acts: bool = False
    #: Of a host: a shell command names it, or its file starts commands.
    shell: bool = False
    #: Of a host: it is in `own_hosts`, on the list of known hosts, or named by the memory or by a published skill that
    #: all may read.
    known: bool = False
    #: `runs`: what comes from there is run. `sends`: something is sent there. `requires`: something must be installed
    #: from there first. `moves`: a setting leads keys or traffic there. `starts`: it runs by itself, and fetches.
    #: `deletes`: it is deleted with everything in it.
    uses: tuple[str, ...] = ()


class CardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the skill can do, by kind."""

    hosts: tuple[CapabilityFacts, ...] = ()
    commands: tuple[CapabilityFacts, ...] = ()
    files: tuple[CapabilityFacts, ...] = ()
    #: Keys, password stores and variables with tokens that it reads.
    secrets: tuple[CapabilityFacts, ...] = ()
    #: Packages and programs that it installs.
    installs: tuple[CapabilityFacts, ...] = ()
    #: What outlives the session: scheduled jobs, shell profiles, an agent's own settings.
    persistence: tuple[CapabilityFacts, ...] = ()
    #: Of a plugin: programs that a client starts as its servers.
    programs: tuple[CapabilityFacts, ...] = ()
    #: Of a plugin: addresses of servers that a client talks to.
    servers: tuple[CapabilityFacts, ...] = ()
    #: Of a plugin: what runs by itself, each with its event, such as `PreToolUse`.
    hooks: tuple[CapabilityFacts, ...] = ()
    #: Files and parts that the scan could not read.
    unread: tuple[CapabilityFacts, ...] = ()

    @classmethod
    def of(cls, card: Iterable[SkillCapability], known_hosts: frozenset[str]) -> Self:
        entries: dict[str, list[CapabilityFacts]] = {field: [] for field in _SECTIONS.values()}
        for one in card:
            known = one.kind is CapabilityKind.HOST and one.value in known_hosts
            same = {name: getattr(one, name) for name in _SAME}
            entry = CapabilityFacts(context=one.context.value, known=known, **same)
            entries[_SECTIONS[one.kind]].append(entry)
        return cls(**{field: tuple(found) for field, found in entries.items()})


#: What an entry is asked about as the card has it.
_SAME = ("value", "file", "line", "acts", "shell", "uses")
_SECTIONS = {
    CapabilityKind.HOST: "hosts",
    CapabilityKind.COMMAND: "commands",
    CapabilityKind.FILE: "files",
    CapabilityKind.SECRET: "secrets",
    CapabilityKind.INSTALL: "installs",
    CapabilityKind.PERSISTENCE: "persistence",
    CapabilityKind.PROGRAM: "programs",
    CapabilityKind.SERVER: "servers",
    CapabilityKind.HOOK: "hooks",
    CapabilityKind.UNREAD: "unread",
}


class FindingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One finding that counts."""

    rule: str = ""
    #: `critical`, `high`, `medium` or `low`.
    severity: str = ""
    #: `malice` or `mismatch`.
    kind: str = ""
    category: str = ""
    file: str = ""
    line: int = 0

    @staticmethod
    def all_of(findings: Iterable[Finding]) -> tuple["FindingFacts", ...]:
        worst = sorted(findings, key=lambda one: (-one.severity.rank, one.rule_id, one.file, one.line))
        return tuple(
            FindingFacts(
                rule=one.rule_id,
                severity=one.severity.value,
                kind=one.kind.value,
                category=one.category.value,
                file=one.file,
                line=one.line,
            )
            for one in worst[:MOST_FINDINGS]
        )


class JudgeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What judges said."""

    #: How many have read it and answered: 0, 1 or 2.
    answered: int = 0
    #: `PASS`, `CONCERNS` or `FAIL`, the harsher of two; empty where none answered.
    verdict: str = ""
    #: From 0 to 100, the lower of two.
    score: int = 0


class AnalyserFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What another analyser said about these very bytes."""

    #: Such as `bandit`.
    name: str = ""
    #: `PASS`, `CONCERNS` or `FAIL`; empty where it could not look at everything.
    verdict: str = ""
    #: Number of its findings.
    findings: int = 0
    #: Those of them that are critical.
    critical: int = 0


class SignalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the registry noticed that no scan can see: a sentence each, empty where there is nothing to doubt."""

    #: Unlike the live version it reads a secret, uses a host in a shell command, outlives the session, or as a plugin
    #: starts a program, talks to a server or runs something by itself.
    new_capability: str = ""
    #: It is another owner's skill with something added.
    copy: str = ""
    #: Most of its text is that of a public skill that the memory holds, and it can do what that one cannot.
    remembered: str = ""
    #: Its name can be taken for that of a popular skill.
    look_alike: str = ""
    #: An install step names a host that no other published skill and no skill of the memory names.
    host: str = ""
    #: Other skills of its owner were blocked within 90 days.
    publisher: str = ""

    @classmethod
    def of(cls, signals: Iterable[Signal]) -> Self:
        found: dict[SignalKind, list[str]] = {}
        for one in signals:
            if one.holds:
                found.setdefault(one.kind, []).append(one.reason)
        return cls(**{kind.value.replace("-", "_"): "; ".join(said) for kind, said in found.items()})


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a rule can ask about."""

    #: The skill itself.
    skill: SkillFacts = SkillFacts()
    #: Whose skill it is.
    owner: OwnerFacts = OwnerFacts()
    #: Where its files come from.
    source: SourceFacts = SourceFacts()
    #: The account that submitted it; empty where nobody was signed in.
    submitter: str = ""
    #: The CI job that submitted it, which its forge vouches for; empty where none did.
    publisher: Publisher = Publisher()
    #: What it can do.
    card: CardFacts = CardFacts()
    #: What it can do and the live version cannot; empty where none is live.
    gained: CardFacts = CardFacts()
    #: The findings that count, the worst 100 first.
    findings: tuple[FindingFacts, ...] = ()
    #: What judges said.
    judge: JudgeFacts = JudgeFacts()
    #: What other analysers have said by then. Those that must have, the policy names in `needs`.
    analysers: tuple[AnalyserFacts, ...] = ()
    #: What the registry noticed that no scan can see.
    signals: SignalFacts = SignalFacts()
    #: When it is decided, in seconds since 1970.
    now: int = 0
