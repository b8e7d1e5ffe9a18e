"""Small real skills, and a source, a scanner and a judge whose answers are functions of the content: what the text
says about itself decides its way, so that every state of a submission is reached."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from random import Random

import msgspec

from simulator.faults import Process, Weather
from simulator.plan import Dependency, Fault
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import NoSkillFound, SourceUnavailable
from vskill_core.findings import (
    JUDGE_DOWN,
    Confirmation,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_core.identity import (
    UPSTREAM_HOST,
    Identity,
    normalise,
    submission_id,
    upload_identity,
    upstream_identity,
)
from vskill_core.naming import slug_of
from vskill_platform.domain.canonical_names import canonical_name
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.sources.contract import Fetched, FilesAtHead, RepositoryHead
from vskill_platform.sources.router import UploadSource

RULESET = "simulated-1"

#: What the scanner will say, and how often such a content is written.
SCANS = {
    "pass": 60,
    "concerns": 8,
    "fail": 6,
    "certain": 4,
    "critical": 8,
    "incomplete": 4,
    "broken": 3,
    "gone": 2,
}
#: What the judge will say.
JUDGES = {"pass": 60, "fail": 8, "unsure": 10, "confirm": 6, "clear": 10, "down": 6}

_HOUR_MS = 3_600_000


def _policy(*waits: str) -> str:
    rules = "".join(f"  - {{name: wait-{wait}, when: 'true', then: {{wait: {wait}}}}}\n" for wait in waits)
    return f"extends: open\nrules:\n{rules}" if rules else "extends: open\n"


#: What can be in force, and how long each lets everything wait.
POLICIES = {
    _policy(): 0,
    _policy("1h"): _HOUR_MS,
    _policy("2h"): 2 * _HOUR_MS,
    _policy("1h", "1d", "6h"): 24 * _HOUR_MS,
}
#: Everything goes to a reviewer.
HOLDING_POLICY = "extends: open\nrules:\n  - {name: hold, when: 'true', then: review}\n"

#: Each scan's findings, by severity.
FINDINGS: dict[str, tuple[Severity, ...]] = {
    "concerns": (Severity.HIGH, Severity.HIGH),
    "fail": (Severity.HIGH,) * 4,
    "certain": (Severity.CRITICAL,),
    "critical": (Severity.CRITICAL,),
}


class Content(msgspec.Struct, frozen=True):
    """One skill as somebody wrote it. A repository without a skill has no files."""

    name: str
    scan: str
    judge: str
    digest: str
    files: tuple[SkillFile, ...]


class Place(msgspec.Struct, frozen=True):
    """A place that people submit."""

    label: str
    identity: Identity

    @property
    def id(self) -> str:
        return submission_id(self.identity)

    @property
    def slug(self) -> str:
        return slug_of(self.identity)

    @property
    def canonical(self) -> str:
        return canonical_name(self.identity)

    @property
    def is_upstream(self) -> bool:
        return self.identity.host == UPSTREAM_HOST


PLACES = (
    Place("ann/alpha", upload_identity("ann", "alpha")),
    Place("ann/beta", upload_identity("ann", "beta")),
    Place("bob/alpha", upload_identity("bob", "alpha")),
    Place("tools:alpha", normalise("https://github.com/acme/tools", "skills/alpha")),
    Place("tools:other", normalise("https://github.com/acme/tools", "other/alpha")),
    Place("kit", normalise("https://gitlab.com/acme/kit")),
)

#: The other registry whose skills come here, in some histories, and what it may have.
UPSTREAM = "hub"
UPSTREAM_PLACES = tuple(
    Place(f"hub:{slug}", upstream_identity(UPSTREAM, "skills", slug)) for slug in ("gamma", "delta")
)


def write_content(rng: Random, place: Place, nonce: int, *, scan: str | None = None) -> Content:
    """A new content for a place; most have its slug for a name, some share a name with other places."""
    scan = scan or _drawn(rng, SCANS)
    judge = _drawn(rng, JUDGES)
    name = place.slug if rng.random() < 0.7 else rng.choice(("alpha", "beta", "omega"))
    version = f"version: {rng.randint(0, 2)}.{rng.randint(0, 3)}.0\n" if rng.random() < 0.3 else ""
    text = (
        f"---\nname: {name}\ndescription: number {nonce}\n{version}---\nscan={scan} judge={judge} {nonce}\n"
    )
    files = (SkillFile("SKILL.md", "100644", text.encode()),)
    return Content(name, scan, judge, digest_of_files(files), files)


def _drawn(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(tuple(weights), tuple(weights.values()))[0]


def _word(files: Sequence[SkillFile], key: str) -> str:
    """What the text says after `key=`."""
    text = files[0].data.decode()
    return text.partition(f"{key}=")[2].split()[0]


class Repositories:
    """What stands at each repository's places, from its first commit on."""

    def __init__(self) -> None:
        #: By place, what was pushed there, each with the repository's count of commits.
        self._contents: defaultdict[str, list[tuple[int, Content]]] = defaultdict(list)
        #: By repository, how many commits it has.
        self._commits: Counter[str] = Counter()
        #: The key of a place whose host stays down, until this moment of the loop's clock.
        self.dead: str | None = None
        self.dead_until = 0.0

    def push(self, place: Place, content: Content) -> None:
        self._commits[place.identity.repo_key] += 1
        self._contents[place.identity.key].append((self.count(place), content))

    def count(self, place: Place) -> int:
        return self._commits[place.identity.repo_key]

    def head(self, identity: Identity) -> str:
        return f"commit-{self._commits[identity.repo_key]}"

    def at(self, identity: Identity, commit: str | None) -> tuple[Content, str]:
        """What stood at a place at this commit, or stands there now."""
        commit = commit or self.head(identity)
        number = int(commit.removeprefix("commit-"))
        return [content for count, content in self._contents[identity.key] if count <= number][-1], commit


class SimulatedSources:
    """Uploads come from the blob store as in the product; repositories are in memory."""

    def __init__(self, repositories: Repositories, blobs: Blobs, process: Process, weather: Weather) -> None:
        self._repositories = repositories
        self._uploads = UploadSource(blobs)
        self.process = process
        self._weather = weather

    async def fetch(self, submission: Submission) -> Fetched:
        if submission.identity.is_upload:
            return await self._uploads.fetch(submission)

        async def read() -> Fetched:
            return self._read(submission.identity, submission.commit)

        key = submission.identity.key
        return await self._weather.around(self.process, Dependency.SOURCE, f"fetch {key}", read)

    async def head(self, identity: Identity) -> RepositoryHead:
        async def read() -> RepositoryHead:
            return RepositoryHead(identity, self._repositories.head(identity), "main")

        return await self._weather.around(self.process, Dependency.SOURCE, f"head {identity.repo_key}", read)

    async def look(self, identity: Identity, paths: Collection[str]) -> FilesAtHead:
        async def read() -> FilesAtHead:
            return FilesAtHead(identity, self._repositories.head(identity), {})

        return await self._weather.around(self.process, Dependency.SOURCE, f"look {identity.repo_key}", read)

    def _read(self, identity: Identity, commit: str | None) -> Fetched:
        repositories = self._repositories
        if identity.key == repositories.dead and self._weather.loop.time() < repositories.dead_until:
            raise SourceUnavailable("simulated: the host is down", host=identity.host)
        content, commit = repositories.at(identity, commit)
        if content.scan == "gone":
            raise NoSkillFound
        return Fetched(content.files, commit)


class SimulatedScanner:
    """Finds what the text says that it will find."""

    ruleset = RULESET

    def __init__(self, process: Process, weather: Weather) -> None:
        self._process = process
        self._weather = weather

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        async def look() -> StaticReport:
            return await self._look(files)

        return await self._weather.around(self._process, Dependency.SCANNER, "scan", look)

    async def _look(self, files: Sequence[SkillFile]) -> StaticReport:
        said = _word(files, "scan")
        if said == "poison":
            self._weather.happened(Fault.POISON, self._process.name)
            self._process.crash()
            await self._weather.never()
        if said == "broken" or self._weather.draws(self._weather.plan.stage_error):
            self._weather.happened(Fault.STAGE_ERROR, self._process.name, "scanner")
            raise RuntimeError("simulated: the scanner broke")
        if said == "incomplete":
            return StaticReport(RULESET, ScanStatus.INCOMPLETE, problem="simulated")
        found = enumerate(FINDINGS.get(said, ()), start=1)
        return StaticReport(
            RULESET, findings=tuple(_finding(n, level, said == "certain") for n, level in found)
        )


def _finding(number: int, severity: Severity, certain: bool) -> Finding:  # noqa: FBT001
    return Finding(
        f"SIM-{number}",
        severity,
        FindingCategory.STRUCTURE,
        FindingKind.MALICE,
        "SKILL.md",
        number,
        certain=certain,
    )


class SimulatedJudge:
    """Answers what the text says that it will answer."""

    def __init__(self, process: Process, weather: Weather) -> None:
        self._process = process
        self._weather = weather

    async def review(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReport:
        async def think() -> JudgeReport:
            return self._answer(_word(files, "judge"), report)

        weather = self._weather
        if weather.down(Dependency.JUDGE):
            weather.happened(Fault.OUTAGE, self._process.name, "judge")
            return JUDGE_DOWN
        if weather.draws(weather.plan.judge_slow):
            weather.happened(Fault.JUDGE_SLOW, self._process.name)
            await weather.pause(self._process, weather.rng.uniform(20, 80))
        return await weather.around(self._process, Dependency.JUDGE, "judge", think)

    def _answer(self, said: str, report: StaticReport) -> JudgeReport:
        answered = JudgeStatus.ANSWERED
        match said:
            case "pass":
                return JudgeReport(answered, Verdict.PASS, 95)
            case "fail":
                return JudgeReport(answered, Verdict.FAIL, 20)
            case "unsure":
                return JudgeReport(answered, Verdict.CONCERNS, 55)
            case "confirm" | "clear":
                words = tuple(Confirmation(found.key, said == "confirm") for found in report.findings)
                return JudgeReport(answered, Verdict.PASS, 85, confirmations=words)
            case _:
                return JUDGE_DOWN
