"""What a version can be without, told by its capability card and its files: lists are filtered by it.

Only what was read whole is said to be without anything. A program that may use the network counts as using it, and so
does a skill whose text speaks of services, or whose code imports a library that is not known to work offline: a wrong
"no network" does harm, a missing one does not.
"""

import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

import re2

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
#: Words of a text about something that is reached over the network.
_SPEAKS = re2.compile(
    rb"(?i)\b(?:apis?|graphql|oauth2?|webhooks?|endpoints?|base[ _-]?url|online|internet|browsers?|browse|websites?|"
    rb"web[ _-]?(?:fetch|search|pages?|apps?|socket)|download\w*|upload\w*|fetch\w*|scrap(?:es?|ing)|crawl\w*|"
    rb"curl|wget|smtp|imap|e?mails?|inbox|cloud|servers?|remote|mcp|saas|wallets?|blockchain)\b"
    rb"|\b(?:GET|POST|PUT|PATCH|DELETE) [/`]"
)
_PYTHON_IMPORT = re2.compile(rb"(?m)^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)")
_SCRIPT_IMPORT = re2.compile(rb"""(?:\bfrom|\brequire\(|\bimport\(?)\s*["'](?:node:)?([^"'./][^"']*)["']""")
_PYTHON_ONLINE = frozenset(
    words(
        "urllib http socket ssl ftplib smtplib imaplib poplib nntplib telnetlib xmlrpc webbrowser socketserver"
    )
)
#: Libraries that work on files and data alone.
_OFFLINE = frozenset(
    words(
        "numpy pandas scipy sklearn matplotlib seaborn plotly PIL cv2 skimage openpyxl xlsxwriter xlrd docx pptx "
        "pypdf PyPDF2 pdfplumber fitz pymupdf reportlab lxml bs4 yaml toml tomli tomlkit markdown jinja2 mistune "
        "defusedxml chardet dateutil pytz attr attrs pydantic msgspec rich click typer tqdm colorama tabulate "
        "networkx sympy jsonschema pytest hypothesis regex six typing_extensions "
        "fs path os util crypto stream events assert buffer url querystring readline zlib perf_hooks timers process "
        "string_decoder tty v8 vm worker_threads module constants fs/promises path/posix timers/promises "
        "lodash chalk commander yargs minimist glob fast-glob js-yaml yaml zod pptxgenjs exceljs xlsx docx pdf-lib "
        "jszip sharp marked handlebars mustache date-fns dayjs uuid"
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
    files = tuple(files)
    if Lack.INSTALLS in found or not programs.isdisjoint(_ONLINE) or _may_go_online(files):
        found.add(Lack.NETWORK)
    if any(_is_script(file) for file in files):
        found.add(Lack.SCRIPTS)
    return tuple(lack for lack in Lack if lack not in found)


def _may_go_online(files: tuple[SkillFile, ...]) -> bool:
    """By the words of a text, or by a library that a script imports."""
    own = {PurePosixPath(part).stem for file in files for part in file.path.split("/")}
    for file in files:
        language = language_of(file.path, file.data[:200])
        if language == "prose" and _SPEAKS.search(file.data):
            return True
        if language == "python":
            named, offline = _PYTHON_IMPORT.findall(file.data), sys.stdlib_module_names - _PYTHON_ONLINE
        elif language in ("javascript", "typescript"):
            named, offline = _SCRIPT_IMPORT.findall(file.data), frozenset()
        else:
            continue
        if {one.decode("utf-8", "replace") for one in named} - offline - _OFFLINE - own:
            return True
    return False


def _is_script(file: SkillFile) -> bool:
    return language_of(file.path, file.data[:200]) in ACTING_CODE and not file.path.lower().endswith(
        known.MARKUP
    )
