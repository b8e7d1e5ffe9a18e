"""What each kind of event stream tells, frame by frame. The hub gives it what its reader may read; who submitted
something is told only where this viewer may know it (`visibility`, E6)."""

import msgspec

from vskill_platform.actions.revocations import RevocationEventView, event_views
from vskill_platform.actions.submission_views import published_name, submission_card
from vskill_platform.actions.visibility import Viewer
from vskill_platform.client.wire.base import iso_time
from vskill_platform.domain.naming import canonical_name
from vskill_platform.domain.revocation import Revocation, RevocationKind
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.domain.submission import Submission
from vskill_platform.web.frames import frame
from vskill_platform.web.subscription import EventBatch, Update


def submission_event(record: Submission, viewer: Viewer) -> dict[str, object]:
    """As lists show it; `submitter` is there only where the viewer may know it."""
    private = {"submitter": record.submitter} if viewer.sees_private(record) else {}
    return {**msgspec.to_builtins(submission_card(record)), **private}


class Submissions(msgspec.Struct, frozen=True):
    """Changes of submissions: all, some by id, or the viewer's own."""

    viewer: Viewer
    ids: frozenset[str] = frozenset()
    mine: bool = False
    shows_counts: bool = False

    def write(self, batch: EventBatch) -> bytes:
        return b"".join(self._frames(update) for update in batch.updates)

    def _frames(self, update: Update) -> bytes:
        record = update.submission
        if record is None or not self._wants(record):
            return b""
        data = submission_event(record, self.viewer)
        if record.state.ends_run:
            # The cursor moves on with the second frame only, so that a break between the two loses neither.
            first = frame("submission", data, update.before)
            return first + frame("submission_decision", data, update.cursor)
        return frame("submission", data, update.cursor)

    def _wants(self, record: Submission) -> bool:
        if self.mine and record.submitter != self.viewer.account:
            return False
        return not self.ids or record.id in self.ids


class Skills(msgspec.Struct, frozen=True):
    """Changes of published skills in plain messages; decisions about their submissions and what was withdrawn or
    restored as named events."""

    viewer: Viewer
    #: In lower case, canonical or short (`owner/slug`, `slug`), as clients have them; empty is every skill.
    names: frozenset[str] = frozenset()
    shows_counts: bool = False

    def write(self, batch: EventBatch) -> bytes:
        return b"".join(self._frame(update) for update in batch.updates)

    def _frame(self, update: Update) -> bytes:
        skill, record, event = update.skill, update.submission, update.revocation
        if event is not None and self._wants(event.skill):
            return recall_frames(event, update)
        if skill is not None and self._wants(skill.canonical):
            return frame("", skill_event(skill, update.cursor), update.cursor)
        if record is not None and record.state.ends_run and self._wants(_skill_of(record)):
            return frame("submission_decision", submission_event(record, self.viewer), update.cursor)
        return b""

    def _wants(self, canonical: str) -> bool:
        return not self.names or not self.names.isdisjoint(_forms(canonical.lower()))


def recall_frames(event: Revocation, update: Update) -> bytes:
    """The cursor moves on with the last frame only, so that a break between two loses none."""
    views = event_views(event)
    return b"".join(_recall_frame(view, update.before) for view in views[:-1]) + b"".join(
        _recall_frame(view, update.cursor) for view in views[-1:]
    )


def _recall_frame(view: RevocationEventView, cursor: str) -> bytes:
    data = msgspec.to_builtins(view)
    match view.type:
        case RevocationKind.WITHDRAWN:
            return frame("skill.withdrawn", data, cursor)
        case RevocationKind.RESTORED:
            return frame("skill.restored", data, cursor)
        case _:
            return frame("skill.yanked", data, cursor)


def _forms(canonical: str) -> tuple[str, ...]:
    """The names by which a client may know a skill; a short one may mean several skills, and tells of each."""
    owner, _, rest = canonical.partition("/")
    slug = rest.rpartition("/")[2]
    return canonical, f"{owner}/{slug}", slug


def skill_event(skill: PublishedSkill, cursor: str) -> dict[str, object]:
    """`skill.updated`, as the desktop companion of the original client reads it."""
    return {
        "type": "skill.updated",
        "eventId": cursor,
        "skillId": skill.canonical,
        "name": skill.canonical,
        "version": skill.current_version,
        "sha": skill.content_hash,
        "certTier": None if skill.certification is None else skill.certification.value,
        "withdrawn": skill.withdrawn,
        "publishedAt": iso_time(skill.updated_at),
    }


def _skill_of(record: Submission) -> str:
    """The skill that it is about; before the first publication, the name that it would get."""
    return published_name(record) or canonical_name(record.identity)
