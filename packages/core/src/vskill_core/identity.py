"""Where a skill lives: host, owner, repository and the path of its folder.

Every address that a person or a client writes is normalised here, once, at the door (intake). Two spellings
of one place give one `Identity.key`, the key gives the submission's id, and so "one submission per place"
holds by construction. Decisions that the design leaves open:

- GitLab's nested groups are part of the owner: `gitlab.com/group/sub/repo` has the owner `group/sub`. Hosts
  that are known to have two levels only refuse more; every other host may nest. In a key the owner is
  written `group~sub`, so that a key always has the same number of leading parts.
- A `ref` in `/tree/<ref>/...` is one segment: a branch name with a slash cannot be told from a path.
- The port of an `ssh` address is dropped, since it says nothing about where the repository is served over
  https.
"""

import unicodedata
import uuid
from urllib.parse import unquote

import msgspec

from vskill_core.errors import InvalidInput

#: the host of skills that came as an uploaded archive; no URL can name it
UPLOAD_HOST = "upload"
#: the one repository of every upload namespace
UPLOAD_REPO = "skills"
#: the host of skills that come from another marketplace or registry; no URL can name it either
UPSTREAM_HOST = "upstream"
GITHUB_HOST = "github.com"
SKILL_FILE = "SKILL.md"

#: hosts that compare owner and repository without case
CASELESS_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org"})
#: hosts where a repository is always `owner/repo`
FLAT_HOSTS = frozenset({"github.com", "bitbucket.org", "codeberg.org"})

MAX_URL = 2048
MAX_PATH = 1024
MAX_NAME = 100
MAX_HOST = 253
MAX_GROUPS = 20

#: fixed for ever: another value would give every submission another id
SUBMISSION_NAMESPACE = uuid.UUID("6b0d8c5e-7d0f-5f0e-9c55-3f1f0a5f7a11")

_HTTP_SCHEMES = frozenset({"http", "https", "git+http", "git+https"})
_OTHER_SCHEMES = frozenset({"ssh", "git", "git+ssh"})
_WEB_PORTS = frozenset({80, 443})
_NAME_MARKS = frozenset("-._")
_REF_KINDS = frozenset({"branch", "tag", "commit"})
_BIDI_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


class Identity(msgspec.Struct, frozen=True):
    """One place of one skill; compare places by `key`, never by the fields, which keep the author's case."""

    #: ASCII, lower case, with the port if it is not a usual one; `upload` for archives
    host: str
    #: as written; nested groups joined by `/`
    owner: str
    #: as written, without `.git`
    repo: str
    #: the folder that holds SKILL.md, relative to the root; empty at the root
    path: str = ""

    @property
    def repo_key(self) -> str:
        """`host/owner/repo` as compared: always exactly three parts, and never a `:`."""
        owner, repo = self.owner.replace("/", "~"), self.repo
        if self.host in CASELESS_HOSTS:
            owner, repo = owner.lower(), repo.lower()
        return f"{self.host_segment}/{owner}/{repo}"

    @property
    def key(self) -> str:
        """`host/owner/repo[/path]` as compared."""
        return f"{self.repo_key}/{self.path}" if self.path else self.repo_key

    @property
    def host_segment(self) -> str:
        """The host as part of a key or a name: `_` before the port, which no host name contains."""
        return self.host.replace(":", "_")

    @property
    def url(self) -> str:
        """The repository's https address, `upload://namespace/slug` for what came as an archive, or
        `upstream://name/repository/slug`."""
        if self.host == UPSTREAM_HOST:
            return f"upstream://{self.owner}/{self.repo}/{self.path}"
        if self.is_upload:
            return f"upload://{self.owner}/{self.path}"
        return f"https://{self.host}/{self.owner}/{self.repo}"

    @property
    def is_upload(self) -> bool:
        """Whether its files were brought here before it was submitted, so that no repository is fetched for it."""
        return self.host in (UPLOAD_HOST, UPSTREAM_HOST)


def normalise(repo_url: str, skill_path: str = "") -> Identity:
    """The place that an address means; raises only `InvalidInput`, which names the field and the fix."""
    host, segments = _split_address(_checked_text(repo_url, "repo_url", MAX_URL))
    names, url_path = _split_repository(host, segments)
    if len(names) < 2:
        raise _bad_url("The address names no repository.", "write it as https://host/owner/repository")
    groups = [_checked_name(name, is_first=index == 0) for index, name in enumerate(names[:-1])]
    repo = _checked_name(_without_git_suffix(names[-1]), is_first=False)
    if _marker_index(host, [*groups, repo]) <= len(groups):
        # Without `.git` this name would be read as a view of files, and so as another place.
        raise _bad_url(f"{repo!r} cannot be a repository's name here.", "give the repository's own address")
    path = _joined_path(url_path, clean_path(skill_path))
    return Identity(host=host, owner="/".join(groups), repo=repo, path=path)


def upload_identity(namespace: str, slug: str) -> Identity:
    """The place of an uploaded archive: the account's namespace and the slug, both without case."""
    owner = _checked_name(namespace, is_first=False, field="namespace").lower()
    path = _checked_name(slug, is_first=False, field="slug").lower()
    return Identity(host=UPLOAD_HOST, owner=owner, repo=UPLOAD_REPO, path=path)


def upstream_identity(name: str, repo: str, slug: str) -> Identity:
    """The place of a skill from an upstream, without case."""
    parts = (("name", name), ("repo", repo), ("slug", slug))
    owner, repo, path = (_checked_name(part, is_first=False, field=field).lower() for field, part in parts)
    return Identity(host=UPSTREAM_HOST, owner=owner, repo=repo, path=path)


def parse_place(text: str) -> Identity:
    """A place as we show it: a repository's address, `upload://namespace/slug`, or `upstream://name/repo/slug`."""
    scheme = f"{UPSTREAM_HOST}://"
    if text.startswith(scheme):
        name, _, rest = text.removeprefix(scheme).partition("/")
        repo, _, slug = rest.partition("/")
        return upstream_identity(name, repo, slug)
    scheme = f"{UPLOAD_HOST}://"
    if not text.startswith(scheme):
        return normalise(text)
    namespace, _, slug = text.removeprefix(scheme).partition("/")
    return upload_identity(namespace, slug)


def submission_id(identity: Identity) -> str:
    """The id of the one submission of this place."""
    return submission_id_at(identity.key)


def submission_id_at(place: str) -> str:
    """The same, of a place by its key."""
    return f"sub_{uuid.uuid5(SUBMISSION_NAMESPACE, place)}"


def has_control_characters(text: str) -> bool:
    """Control characters, lone surrogates, line separators and direction overrides: never part of a name."""
    if text.isascii() and text.isprintable():
        return False
    return any(map(_is_control, text))


def clean_path(path: str, field: str = "skill_path") -> str:
    """A folder's path without empty and `.` parts and without a last `SKILL.md`; `..` is refused."""
    parts = [part for part in _checked_text(path, field, MAX_PATH).split("/") if part not in ("", ".")]
    while parts and parts[-1].lower() == SKILL_FILE.lower():
        parts.pop()
    if ".." in parts:
        raise InvalidInput("The path leaves the repository.", field=field, fix="write it without '..'")
    if any(part != part.strip() for part in parts):
        raise InvalidInput("A folder's name has a space at its end.", field=field, fix="rename the folder")
    return "/".join(parts)


def _is_control(char: str) -> bool:
    category, direction = unicodedata.category(char), unicodedata.bidirectional(char)
    return category in _REFUSED_CATEGORIES or direction in _BIDI_CONTROLS


def _checked_text(text: str, field: str, limit: int) -> str:
    text = text.strip()
    if len(text) > limit:
        raise InvalidInput(f"{field} is too long.", field=field, fix=f"use at most {limit} characters")
    if has_control_characters(text):
        raise InvalidInput(f"{field} has control characters.", field=field, fix="remove them")
    if "\\" in text:
        raise InvalidInput(f"{field} has a backslash.", field=field, fix="write '/' between folders")
    return text


def _bad_url(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, field="repo_url", fix=fix)


# From the address to its host and the segments after it.


def _split_address(address: str) -> tuple[str, list[str]]:
    address = address.partition("#")[0].partition("?")[0]
    scheme, separator, rest = address.partition("://")
    if separator:
        return _split_url(scheme.lower(), rest)
    return _split_plain(address)


def _split_url(scheme: str, rest: str) -> tuple[str, list[str]]:
    if scheme not in _HTTP_SCHEMES and scheme not in _OTHER_SCHEMES:
        raise _bad_url(f"The scheme {scheme!r} is not supported.", "use https")
    authority, _, tail = rest.partition("/")
    host, port = _host_and_port(authority)
    return _host(host, port if scheme in _HTTP_SCHEMES else ""), _segments(tail)


def _split_plain(address: str) -> tuple[str, list[str]]:
    """No scheme: `git@host:owner/repo`, `host[:port]/owner/repo`, or `owner/repo` for GitHub."""
    authority, _, tail = address.partition("/")
    host, after_colon = _host_and_port(authority)
    if after_colon and not (_is_number(after_colon) and "/" in tail.strip("/")):
        return _host(host, ""), _segments(f"{after_colon}/{tail}")
    if "." in host or after_colon or "@" in authority:
        return _host(host, after_colon), _segments(tail)
    segments = _segments(address)
    if len(segments) > 2:
        raise _bad_url("The address has no host.", "write https://host/owner/repository, or owner/repository")
    return "github.com", segments


def _host_and_port(authority: str) -> tuple[str, str]:
    host, _, port = authority.rpartition("@")[2].partition(":")
    return host, port


def _host(name: str, port: str) -> str:
    host = _ascii_host(name.rstrip("."))
    while host.startswith("www.") and "." in host.removeprefix("www."):
        host = host.removeprefix("www.")
    if host in (UPLOAD_HOST, UPSTREAM_HOST):
        raise _bad_url(f"The host name {host!r} is reserved.", "use the repository's public host name")
    return host + _port_suffix(port)


def _ascii_host(host: str) -> str:
    fix = "use the repository's public host name, such as github.com"
    if len(host) > MAX_HOST:
        raise _bad_url("The host name is too long.", fix)
    try:
        host = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise _bad_url("The host name is not valid.", fix) from None
    if len(host) > MAX_HOST or not all(map(_is_host_label, host.split("."))):
        raise _bad_url("The host name is not valid.", fix)
    return host


def _is_host_label(label: str) -> bool:
    plain = label.replace("-", "")
    return plain.isalnum() and plain.isascii() and label[0] != "-" and label[-1] != "-"


def _port_suffix(port: str) -> str:
    if not port:
        return ""
    if not _is_number(port) or not 0 < int(port) < 65536:
        raise _bad_url("The port is not valid.", "use a number from 1 to 65535, or none")
    return "" if int(port) in _WEB_PORTS else f":{int(port)}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5


def _segments(tail: str) -> list[str]:
    try:
        decoded = unquote(tail, errors="strict")
    except UnicodeDecodeError:
        raise _bad_url("The address has percent-encoding that is not UTF-8.", "encode it as UTF-8") from None
    decoded = _checked_text(decoded, "repo_url", MAX_URL)
    return [segment for segment in decoded.split("/") if segment]


# From the segments to the repository's names and the skill's path.


def _split_repository(host: str, segments: list[str]) -> tuple[list[str], str]:
    cut = _marker_index(host, segments)
    names, rest = segments[:cut], segments[cut:]
    if host in FLAT_HOSTS and len(names) > 2:
        raise _bad_url(
            f"On {host} a repository is owner/repository, and nothing more.",
            "give the folder as skill_path, or as /tree/<ref>/<folder>",
        )
    if len(names) > MAX_GROUPS:
        raise _bad_url("The address has too many parts.", f"use at most {MAX_GROUPS} parts")
    return names, _path_behind_marker(rest)


def _marker_index(host: str, segments: list[str]) -> int:
    """Where the repository's names end and a view of its files (`/tree/...`, `/-/blob/...`) begins."""
    for index in range(2, len(segments)):
        here, following = segments[index], "".join(segments[index + 1 : index + 2])
        # A nested group may be called src, so on nesting hosts the next segment must confirm a source view.
        is_source_view = here == "src" and (host in FLAT_HOSTS or following in _REF_KINDS)
        if here in ("-", "tree", "blob") or is_source_view:
            return index
    return len(segments)


def _path_behind_marker(rest: list[str]) -> str:
    if rest[:1] == ["-"]:
        rest = rest[1:]
    if not rest:
        return ""
    view, after = rest[0], rest[1:]
    if view not in ("tree", "blob", "src"):
        raise _bad_url(f"The address shows {view!r}, not files.", "give the repository's address")
    is_typed_ref = view == "src" and "".join(after[:1]) in _REF_KINDS
    path = after[2:] if is_typed_ref else after[1:]
    if view == "blob" and path and path[-1].lower() != SKILL_FILE.lower():
        raise _bad_url("The address shows a file other than SKILL.md.", "give the folder of SKILL.md")
    return clean_path("/".join(path), field="repo_url")


def _joined_path(url_path: str, skill_path: str) -> str:
    """Both are relative to the root; the argument's path must be the URL's path or lie below it."""
    if not skill_path or not url_path or f"{skill_path}/".startswith(f"{url_path}/"):
        return skill_path or url_path
    raise InvalidInput(
        "The address and skill_path name two different folders.",
        field="skill_path",
        fix="give the folder once, from the root of the repository",
    )


def _without_git_suffix(name: str) -> str:
    while name.lower().endswith(".git"):
        name = name[:-4]
    return name


def _checked_name(name: str, *, is_first: bool, field: str = "repo_url") -> str:
    """A `~` may begin an owner (some hosts write users so); elsewhere it would make our keys ambiguous."""
    plain = name[1:] if is_first and name.startswith("~") else name
    allowed = bool(plain) and plain.isascii() and all(c.isalnum() or c in _NAME_MARKS for c in plain)
    if not allowed or len(name) > MAX_NAME or not plain.strip("."):
        raise InvalidInput(
            f"{name[:MAX_NAME]!r} is not a valid name.",
            field=field,
            fix=f"use 1 to {MAX_NAME} letters, digits, '-', '_' and '.'",
        )
    return name
