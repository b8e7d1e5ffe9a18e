"""What counts about a skill beside its files, as data: what the registry noticed, and which rules of its policy
matched. The decision reads both, the record keeps them, and pages and answers show them."""

import enum

import msgspec

#: Characters of a policy's sentence in a record: every list decodes it, and the step's reason has it whole.
LONGEST_RECORDED = 300


class SignalKind(enum.StrEnum):
    """What was noticed."""

    #: this version can do something that the newest live version cannot
    NEW_CAPABILITY = "new-capability"
    #: it is a published skill of another owner, with something added
    COPY = "copy"
    #: most of its text is a public skill's, and it can do what that one cannot
    REMEMBERED = "remembered"
    #: its name can be taken for that of a popular skill of another owner
    LOOK_ALIKE = "look-alike"
    #: an install step names a host that no published skill, no public skill and no list of known hosts has
    HOST = "host"
    #: other skills of its owner were blocked lately
    PUBLISHER = "publisher"

    @property
    def heading(self) -> str:
        return _HEADINGS[self]

    @property
    def advice(self) -> str:
        return _ADVICE.get(self, "A reviewer looks at it; there is nothing that you must do.")


_HEADINGS = {
    SignalKind.NEW_CAPABILITY: "New in this version",
    SignalKind.COPY: "Copy of another skill",
    SignalKind.REMEMBERED: "Public skill with something added",
    SignalKind.LOOK_ALIKE: "Name like that of a popular skill",
    SignalKind.HOST: "Host that no other skill uses",
    SignalKind.PUBLISHER: "Publisher",
}


_ADVICE = {
    SignalKind.COPY: "If it is a fork, say in SKILL.md what you changed and of which skill.",
    SignalKind.REMEMBERED: "Say in SKILL.md what is new in yours. An approval holds for your next versions too.",
    SignalKind.LOOK_ALIKE: "Publish it under a name that nobody takes for the other one, or wait for a reviewer.",
    SignalKind.HOST: "Say in SKILL.md whose host it is and why it is needed, or install from a package index.",
}


class Signal(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that the registry noticed. It sends a skill to a reviewer, or is only shown, and does nothing else."""

    kind: SignalKind
    #: a sentence for the author
    reason: str
    #: where: places in files, lines, names, hosts
    details: tuple[str, ...] = ()
    #: canonical names of the skills that it speaks of; shown to those who may read them at that time, and the reason
    #: names none
    skills: tuple[str, ...] = ()
    #: whether it goes to a reviewer because of this
    holds: bool = True
    #: the sketch of the remembered skill that it speaks of
    sketch: str = ""


#: The name by which verdicts that the policy needs, and that are missing, stand among its rules.
NEEDS_RULE = "needs"


class RuleEffect(enum.StrEnum):
    """What a rule of the policy does with a skill that it matches, the strictest first."""

    #: rejects it; its author can appeal
    REFUSE = "refuse"
    #: sends it to a reviewer
    REVIEW = "review"
    #: lets it wait before it is published
    WAIT = "wait"
    #: is only shown
    NOTE = "note"


class MatchedRule(msgspec.Struct, frozen=True):
    """A rule of the policy that matched a skill."""

    name: str
    then: RuleEffect
    #: a sentence for the author and the reviewer
    reason: str
    #: what the registry noticed that it asks about
    signals: tuple[SignalKind, ...] = ()
    #: how long it lets the skill wait, from the first sight of its bytes
    wait_ms: int = 0
    #: it could not be evaluated, so it asks for a reviewer
    failed: bool = False


class RecordedRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule of the policy that matched."""

    name: str
    then: RuleEffect
    #: What it said, cut where it is long.
    reason: str
    #: It could not be evaluated, so it asked for a reviewer.
    failed: bool = False

    @staticmethod
    def of(rule: MatchedRule) -> "RecordedRule":
        return RecordedRule(rule.name, rule.then, rule.reason[:LONGEST_RECORDED], rule.failed)
