"""What the page of a skill shows, by few reads: the skill, two lists of related skills, and everything else at once."""

import msgspec

from vskill_core.errors import RecordMalformed
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.catalogue import list_related
from vskill_platform.actions.skills.skill_names import block_keys, find_skill, without_hits
from vskill_platform.actions.verdicts.dossier import Dossier, read_dossier_of
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.skill_changes import with_installs
from vskill_platform.store.skills.installs import installs_in, keys_of_days

#: The days that a chart of weeks can show.
DAYS = 91


class SkillLook(msgspec.Struct, frozen=True):
    """One version of a skill, with what is shown beside it."""

    dossier: Dossier
    #: Installs by day of the last weeks; empty where a counter cannot be read.
    days: dict[str, int]
    #: Other skills of the owner, and skills of others on the same topic.
    related: tuple[tuple[PublishedSkill, ...], tuple[PublishedSkill, ...]]


async def look_at_skill(services: Services, reader: Principal, name: str, related: int) -> SkillLook:
    """The current version, with at most so many related skills of each kind."""
    skill = await find_skill(reader, name)
    own, others = await list_related(reader, skill, related)
    days = keys_of_days(skill.canonical, DAYS)
    also = {*block_keys((*own, *others)), *days.values()}
    dossier, entries = await read_dossier_of(services, reader, skill, also=also)
    try:
        installs = installs_in(entries, days)
    except RecordMalformed as error:
        services.log.warning("installs not counted", skill=skill.canonical, error=error.message)
        installs = {}
    # The record follows the counters; those of the last weeks may be ahead of it.
    total = max(skill.trust.installs, sum(installs.values()))
    return SkillLook(
        msgspec.structs.replace(dossier, skill=with_installs(skill, total)),
        installs,
        (without_hits(own, entries)[:related], without_hits(others, entries)[:related]),
    )
