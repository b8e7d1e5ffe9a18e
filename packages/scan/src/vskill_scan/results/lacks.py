"""What a version can be without, told by its capability card and its files: lists are filtered by it.

Only what was read whole is said to be without anything. A program that may use the network counts as using it: a
wrong "no network" does harm, a missing one does not.
"""

from collections.abc import Iterable

from vskill_core.capability import CapabilityKind, Lack, SkillCapability
from vskill_core.content import SkillFile
from vskill_scan.reading.languages import ACTING_CODE, language_of
from vskill_scan.results import capability_words as known
from vskill_scan.words import words

#: Programs that may use the network without naming a host.
_ONLINE = known.TALKING | frozenset(
    words(
        "git gh glab aws az gcloud gsutil kubectl helm docker podman terraform vercel netlify firebase supabase "
        "wrangler heroku flyctl psql mysql mongosh redis-cli yt-dlp youtube-dl osascript nmap masscan dig nslookup "
        "whois traceroute npm npx pnpm yarn bun bunx deno pip pip3 pipx uv uvx brew apt apt-get cargo go gem"
    )
)
_FOUND = {
    CapabilityKind.HOST: Lack.NETWORK,
    CapabilityKind.SECRET: Lack.SECRETS,
    CapabilityKind.INSTALL: Lack.INSTALLS,
    CapabilityKind.FILE: Lack.FILES,
    CapabilityKind.PERSISTENCE: Lack.FILES,
    CapabilityKind.PROGRAM: Lack.SCRIPTS,
    CapabilityKind.SERVER: Lack.NETWORK,
    CapabilityKind.HOOK: Lack.SCRIPTS,
}


def lacks_of(files: Iterable[SkillFile], card: Iterable[SkillCapability] | None) -> tuple[Lack, ...] | None:
    """None where there is no card, or part of the content could not be read."""
    acting = None if card is None else [one for one in card if one.acts]
    if acting is None or any(one.kind is CapabilityKind.UNREAD for one in acting):
        return None
    found = {_FOUND[one.kind] for one in acting if one.kind in _FOUND}
    programs = {one.value for one in acting if one.kind is CapabilityKind.COMMAND}
    if known.CHOSEN_AT_RUN_TIME in programs:
        # It may be any program.
        return ()
    if Lack.INSTALLS in found or not programs.isdisjoint(_ONLINE):
        found.add(Lack.NETWORK)
    if any(_is_script(file) for file in files):
        found.add(Lack.SCRIPTS)
    return tuple(lack for lack in Lack if lack not in found)


def _is_script(file: SkillFile) -> bool:
    return language_of(file.path, file.data[:200]) in ACTING_CODE and not file.path.lower().endswith(
        known.MARKUP
    )
