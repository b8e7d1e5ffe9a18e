"""What the states of a submission mean, in a few words: for pages, and for clients that know only their names."""

from collections.abc import Mapping

MEANING: Mapping[str, str] = {
    "RECEIVED": "accepted, waiting for a worker",
    "TIER1_SCANNING": "a worker fetches and scans it",
    "TIER2_SCANNING": "the judge reads it",
    "AUTO_APPROVED": "passed, being published",
    "COOLDOWN": "passed, and waits before it is published, by a rule of the policy",
    "NEEDS_REVIEW": "waiting for a reviewer",
    "PUBLISHED": "published and installable",
    "TIER1_FAILED": "failed the static scan",
    "REJECTED": "rejected; see the reason",
    "BLOCKED": "blocked: on the blocklist, or known to be malicious",
    "DEQUEUED": "cancelled, or deleted by its owner",
}
