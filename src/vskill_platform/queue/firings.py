"""Alerts over time. `alerts` says what is wrong now and remembers nothing; here a job compares this look with the last,
so that people are told once when an alert begins and once when it ends.

An alert that passes within seconds, as while a process starts, is not told. One that comes back within minutes has not
ended.
"""

from collections.abc import Sequence

import msgspec

from vskill_platform.notifications.deliveries import tell_of_alerts
from vskill_platform.notifications.notices import AlertData, AlertNotice, NoticeType, alert_notice
from vskill_platform.queue.alerts import REMEDIES, Alert
from vskill_platform.queue.health import queue_health

#: How long an alert must hold before it is told.
HOLDS_MS = 30_000
#: How long it must be gone before its end is told.
GONE_MS = 300_000


class Firing(msgspec.Struct, frozen=True, omit_defaults=True):
    """An alert that held at the last look, or not long before."""

    code: str
    subject: str
    text: str
    since: int
    #: Whether anybody was told.
    told: bool = False
    #: The first look at which it did not hold any more; None while it holds.
    gone_at: int | None = None


async def look_at_alerts(known: str) -> str:
    """Tell of alerts that began or ended since the last look. `known` and the result are the firings, as JSON."""
    health = await queue_health()
    before = msgspec.json.decode(known, type=list[Firing])
    firing, notices = compare_looks(before, health.alerts, health.at)
    await tell_of_alerts(notices)
    return msgspec.json.encode(firing).decode()


def compare_looks(
    known: Sequence[Firing], alerts: Sequence[Alert], now: int
) -> tuple[list[Firing], list[AlertNotice]]:
    """The firings after this look, and the notices to send. Deterministic, so repeating a look whose result was lost
    sends nothing twice."""
    holding = {(alert.code.value, alert.subject): alert for alert in alerts}
    firing: list[Firing] = []
    notices: list[AlertNotice] = []
    for one in known:
        alert = holding.pop((one.code, one.subject), None)
        if alert is not None:
            tells = not one.told and _has_passed(HOLDS_MS, one.since, now)
            if tells:
                notices.append(alert_notice(NoticeType.ALERT_FIRED, one.since, _data(one)))
            firing.append(msgspec.structs.replace(one, told=one.told or tells, gone_at=None))
        elif one.told:
            gone_at = now if one.gone_at is None else one.gone_at
            if _has_passed(GONE_MS, gone_at, now):
                notices.append(alert_notice(NoticeType.ALERT_ENDED, gone_at, _data(one)))
            else:
                firing.append(msgspec.structs.replace(one, gone_at=gone_at))
    firing += [Firing(code, subject, alert.text, now) for (code, subject), alert in holding.items()]
    return firing, notices


def _data(firing: Firing) -> AlertData:
    return AlertData(firing.code, firing.subject, firing.text, firing.since, REMEDIES + firing.code)


def _has_passed(duration_ms: int, since: int, now: int) -> bool:
    """True also if the clock was set back meanwhile, so that nothing waits for it to catch up."""
    return not 0 <= now - since < duration_ms
