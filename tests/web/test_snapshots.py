"""Every answer for programs is the one that was agreed on: status, headers and body, byte for byte where it can be.

A small registry is filled the same way every time: a clock that stands, ids that count, one signing key. Every address
that answers anything but a page or a stream is asked, and the answers are compared with `snapshots/`. An address that
is not asked fails, but for routes of actions, which are asked without a word here. Where an answer changes on purpose, `make snapshots` writes them anew, and the diff shows it.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.envs import active_env
from tests.support.manual_clock import ManualClock
from tests.support.owners import set_owners
from tests.support.people import session_of
from tests.support.shelf import Shelf, open_shelf
from vskill_core.content import SkillFile
from vskill_core.findings import Severity
from vskill_core.identity import normalise, submission_id
from vskill_core.signing_keys import PublicKey, SigningKey
from vskill_platform.domain.blocklist import BlockEntry, name_target
from vskill_platform.external_scan.dispatch import request_scans
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.browser import SESSION_COOKIE, Browser
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "snapshots"
#: Headers that clients act on; the others are of one request or one moment.
HEADERS = frozenset(
    {
        "cache-control",
        "content-disposition",
        "content-type",
        "etag",
        "link",
        "location",
        "retry-after",
        "vary",
        "x-legacy-ambiguous",
    }
)
#: Members that are random by design; that they are there is part of the answer.
RANDOM = frozenset({"requestId", "secret", "token"})
#: A body that is longer is held by its digest, but for the outline of the API: it shows what changed.
LONGEST = 20_000
ANALYSER_SECRET = "a-secret-for-snapshots"
REPO = "https://github.com/acme/tools"
#: What ada controls.
KIT = "https://github.com/other/kit"
SKILL = "/api/v1/skills/acme/tools/lint"
#: A name that one skill has.
NOTES = "/api/v1/skills/notes"
#: A client of git that wants a commit which is not there.
NO_COMMIT = b"0032want " + b"0" * 40 + b"\n00000009done\n"
CLAWHUB = "/clawhub/api/v1"
FILE = b"---\nname: sent\ndescription: Sent by a client.\n---\n# sent\n"


WHY = {"reason": "for the snapshots"}
ROLE = {**WHY, "role": "reviewer"}


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request; `{names}` in it are facts of the registry or of earlier answers."""

    endpoint: str
    path: str = ""
    who: str = ""
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] = {}
    #: Members whose values are not this answer's: of the release, the rules, the engine. Its ETag tells of them too.
    hide: frozenset[str] = frozenset()
    #: A fact to keep from the answer, and the members that lead to it.
    keep: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.endpoint.partition(' ')[0]} {self.path or self.endpoint.partition(' ')[2]}"


def get(template: str, *paths: str, **more: Any) -> list[Ask]:
    return [Ask(endpoint=f"GET {template}", path=path, **more) for path in paths or ("",)]


def post(template: str, path: str = "", **more: Any) -> Ask:
    return Ask(endpoint=f"POST {template}", path=path, **more)


def of_a_skill(below: str, *queries: str, **more: Any) -> Iterator[Ask]:
    """The canonical address, with each query, and the one by a short name."""
    yield from get(
        f"/api/v1/skills/{{owner}}/{{repo}}/{{slug}}{below}",
        *(f"{SKILL}{below}{one}" for one in queries),
        **more,
    )
    yield from get(f"/api/v1/skills/{{name}}{below}", f"{NOTES}{below}{queries[0]}", **more)


def discovery(template: str, scope: str, name: str) -> Iterator[Ask]:
    yield from get(
        f"{template}/.well-known/agent-skills/index.json", f"{scope}/.well-known/agent-skills/index.json"
    )
    yield from get(f"{template}/.well-known/skills/index.json", f"{scope}/.well-known/skills/index.json")
    yield from get(
        f"{template}/.well-known/skills/{{name}}/{{path:path}}",
        f"{scope}/.well-known/skills/{name}/SKILL.md",
    )


def owners_do(verb: str, template: str, path: str) -> Iterator[Ask]:
    """By an owner with the full name, and by somebody else with a short one."""
    body = {"reason": f"to {verb}"}
    full = f"/api/v1/skills/{{owner}}/{{repo}}/{{slug}}{template}"
    yield post(full, f"/api/v1/skills/other/kit/lint{path}", who="ada", body=body)
    yield post(f"/api/v1/skills/{{name}}{template}", f"{NOTES}{path}", who="ada", body=body)


def people_do() -> Iterator[Ask]:
    """With namespaces and teams; nothing is hidden from the requests that follow."""
    one, team = "/api/v1/namespaces/{name}", "/api/v1/teams/{name}"
    own = "/api/v1/namespaces/upload~ada"
    yield post(team, "/api/v1/teams/crew", who="root", body=WHY)
    yield post(f"{team}/add", "/api/v1/teams/crew/add", who="root", body={**WHY, "accounts": ["ada"]})
    yield from get(team, "/api/v1/teams/crew", "/api/v1/teams/none", who="ada")
    member = {**WHY, "member": "root", "role": "reader"}
    yield post(f"{one}/members", f"{own}/members", who="root", body=member)
    yield post(f"{one}/members", f"{own}/members", who="ada", body={**member, "member": "team:crew"})
    yield post(f"{one}/members", "/api/v1/namespaces/acme/members", who="ada", body=member)
    yield post(f"{one}/members/remove", f"{own}/members/remove", who="ada", body={**WHY, "member": "root"})
    yield post(f"{one}/leave", f"{own}/leave", who="root")
    yield post(f"{one}/visibility", f"{own}/visibility", who="ada", body={**WHY, "to": "team"})
    yield post(f"{one}/visibility", f"{own}/visibility", who="root", body={**WHY, "to": "internal"})
    yield post(f"{one}/quotas", f"{own}/quotas", who="root", body={**WHY, "skills": 10})
    yield from get(one, own, who="root")
    yield post(f"{one}/make-public", f"{own}/make-public", who="root", body=WHY)
    yield post(f"{team}/remove", "/api/v1/teams/crew/remove", who="root", body={**WHY, "accounts": ["root"]})
    yield post(f"{team}/delete", "/api/v1/teams/crew/delete", who="root", body=WHY)
    yield post("/api/v1/admin/access", who="root", body=WHY)
    skill = "/api/v1/skills/{owner}/{repo}/{slug}"
    narrow = {**WHY, "to": "team"}
    yield post(f"{skill}/narrow", "/api/v1/skills/other/kit/lint/narrow", who="ada", body=narrow)
    yield post("/api/v1/skills/{name}/narrow", f"{NOTES}/narrow", who="ada", body=narrow)
    yield post(f"{skill}/widen", f"{SKILL}/widen", who="root", body=WHY)
    yield post("/api/v1/skills/{name}/widen", f"{NOTES}/widen", who="root", body=WHY)


ASKED: tuple[Ask, ...] = (
    *get("/healthz", hide=frozenset({"version"})),
    *get("/readyz", hide=frozenset({"store"})),
    *get("/.well-known/vskill-keys.json"),
    *get("/.well-known/vskill-keys.pem"),
    *get("/client/{file}", "/client/vskill_client-0.0.1-py3-none-any.whl"),
    *get("/.well-known/vskill-revocations.json"),
    *get("/api/v1/revocations", "/api/v1/revocations", "/api/v1/revocations?after=1"),
    *get("/revocations.xml"),
    *get("/api/v1/lock", "/api/v1/lock?skills=acme/tools/lint@1.0.0", "/api/v1/lock"),
    *get(
        "/api/v1/skills/{owner}/{repo}/{slug}/versions/{number}/attestation",
        f"{SKILL}/versions/1.0.1/attestation",
    ),
    *get(
        "/api/v1/skills",
        "/api/v1/skills",
        "/api/v1/skills?limit=1&sort=installs",
        "/api/v1/skills?owner=acme",
        "/api/v1/skills?nonsense=1",
    ),
    *get("/api/v1/skills/search", "/api/v1/skills/search?q=notes", "/api/v1/skills/search?q=nothing"),
    *get("/api/v1/skills/facets"),
    *get("/api/v1/compare", "/api/v1/compare?a=acme/tools/lint&b=notes"),
    *get(
        "/api/v1/skills/{owner}/{repo}/{slug}", SKILL, "/api/v1/skills/acme/tools/bad", "/api/v1/skills/a/b/c"
    ),
    *get("/api/v1/skills/{name}", NOTES, "/api/v1/skills/lint"),
    *of_a_skill("/versions", ""),
    *of_a_skill("/status", ""),
    *of_a_skill("/files", "", "?version=1.0.0"),
    *of_a_skill("/file", "?path=SKILL.md"),
    *of_a_skill("/archive", "", "?version=1.0.0&format=tar.gz"),
    *of_a_skill("/versions/diff", "?from=1.0.0&to=1.0.1"),
    *of_a_skill("/versions/compare", "?from=1.0.0&to=1.0.1"),
    *of_a_skill("/security", ""),
    *of_a_skill("/security.sarif", "", hide=frozenset({"rules", "semanticVersion", "version"})),
    *of_a_skill("/badge", ""),
    *get("/api/v1/submissions", "/api/v1/submissions", "/api/v1/submissions?limit=1&state=PUBLISHED"),
    *get("/api/v1/submissions/stats"),
    *get("/api/v1/submissions/positions", "/api/v1/submissions/positions?ids={lint},{unknown}"),
    *get(
        "/api/v1/submissions/{submission_id}", "/api/v1/submissions/{lint}", "/api/v1/submissions/{unknown}"
    ),
    *get("/api/v1/submissions/{submission_id}/runs", "/api/v1/submissions/{lint}/runs"),
    *get("/api/v1/queue/health"),
    *get("/api/v1/queue/stats"),
    *get("/api/v1/blocklist"),
    *get("/api/v1/blocklist/check", "/api/v1/blocklist/check?name=bad", "/api/v1/blocklist/check?name=lint"),
    *get("/api/v1/webhooks", who="root"),
    *get("/api/v1/tokens", who="ada"),
    *get("/api/v1/admin/tokens", "/api/v1/admin/tokens?account=ada", who="root"),
    *get("/api/v1/admin/accounts", "/api/v1/admin/accounts?limit=1", who="root"),
    *get("/api/v1/admin/audit", "/api/v1/admin/audit?limit=2", who="root"),
    *get(
        "/api/v1/admin/audit/after",
        "/api/v1/admin/audit/after?limit=1",
        who="root",
        hide=frozenset({"after"}),
    ),
    *get("/api/v1/admin/overview", who="root"),
    # What they answer is of the machine and the engine.
    *get("/api/v1/admin/settings", who="ada"),
    *get("/api/v1/admin/storage", who="ada"),
    *get("/api/v1/account", who="ada"),
    *get("/api/v1/account"),
    *get("/api/v1/account/tenants", who="ada"),
    *get("/api/v1/notifications", who="ada"),
    *get("/api/v1/notifications/settings", who="ada"),
    *get("/api/v1/watches", who="ada"),
    *get("/api/v1/owners", "/api/v1/owners", "/api/v1/owners?account=root", who="ada"),
    *get("/api/v1/namespaces", who="ada"),
    *get("/api/v1/namespaces/{name}", "/api/v1/namespaces/upload~ada", "/api/v1/namespaces/acme", who="ada"),
    *get(
        "/api/v1/namespaces/{name}/visibility",
        "/api/v1/namespaces/acme/visibility?to=team",
        "/api/v1/namespaces/acme/visibility?to=nobody",
        who="root",
    ),
    *get("/api/v1/teams", who="root"),
    *get("/api/v1/admin/access", who="root"),
    *get("/api/v1/admin/access/preview", "/api/v1/admin/access/preview?mode=internal", who="root"),
    *get("/scim/v2/{issuer}/{resource}", "/scim/v2/none/Users"),
    *get("/scim/v2/{issuer}/{resource}/{id}", "/scim/v2/none/Users/none"),
    *(
        Ask(
            endpoint=f"{method} /scim/v2/{{issuer}}/{{resource}}{more}",
            path="/scim/v2/none/Groups" + more.replace("{id}", "none"),
            body={},
        )
        for method, more in (("POST", ""), ("PUT", "/{id}"), ("PATCH", "/{id}"), ("DELETE", "/{id}"))
    ),
    *get("/feed.xml"),
    *get("/.well-known/security.txt"),
    *get("/robots.txt"),
    *get("/opensearch.xml"),
    *get("/favicon.ico"),
    *get("/sitemap.xml"),
    *get("/api/openapi.json", hide=frozenset({"info"})),
    *get("/api/v1/external-scans/{digest}", "/api/v1/external-scans/{digest}"),
    post("/api/cli/device/code", body={"label": "a laptop"}, hide=frozenset({"device_code", "user_code"})),
    post("/api/cli/device/token", body={"device_code": "none"}),
    # Clients.
    *discovery("", "", "notes"),
    *discovery("/{owner}", "/acme", "notes"),
    *discovery("/{owner}/{repo}", "/acme/tools", "notes"),
    *discovery("/{owner}/{repo}/{slug}", "/acme/tools/lint", "lint"),
    *discovery("/collections/{collection}", "/collections/team", "lint"),
    *get("/api/search", "/api/search?q=notes"),
    *get("/.well-known/agent-skills/skills/{owner}/{repo}/{slug}/{file}", "{artifact}"),
    *get("/{owner}/{repo}/{slug}/.well-known/agent-skills/{file}", "{own_artifact}"),
    *get("/.well-known/clawhub.json"),
    *get("/.well-known/clawdhub.json"),
    *get(f"{CLAWHUB}/search", f"{CLAWHUB}/search?q=notes"),
    *get(f"{CLAWHUB}/skills", f"{CLAWHUB}/skills", f"{CLAWHUB}/skills?limit=1"),
    *get(
        f"{CLAWHUB}/skills/{{slug}}",
        f"{CLAWHUB}/skills/notes",
        f"{CLAWHUB}/skills/bad",
        f"{CLAWHUB}/skills/none",
    ),
    *get(
        f"{CLAWHUB}/skills/{{slug}}/moderation",
        f"{CLAWHUB}/skills/notes/moderation",
        f"{CLAWHUB}/skills/bad/moderation",
    ),
    *get(f"{CLAWHUB}/skills/{{slug}}/versions", f"{CLAWHUB}/skills/notes/versions"),
    *get(f"{CLAWHUB}/skills/{{slug}}/versions/{{version}}", f"{CLAWHUB}/skills/notes/versions/1.0.1"),
    *get(f"{CLAWHUB}/skills/{{slug}}/file", f"{CLAWHUB}/skills/notes/file?path=SKILL.md"),
    *get(
        f"{CLAWHUB}/skills/{{slug}}/install",
        f"{CLAWHUB}/skills/notes/install",
        f"{CLAWHUB}/skills/bad/install",
    ),
    *get(f"{CLAWHUB}/resolve", f"{CLAWHUB}/resolve?slug=notes&hash={'0' * 64}"),
    *get(f"{CLAWHUB}/download", f"{CLAWHUB}/download?slug=notes"),
    *get(f"{CLAWHUB}/whoami", who="ada"),
    *get("/marketplace.json"),
    *get("/{owner}/marketplace.json", "/acme/marketplace.json"),
    *get("/{owner}/{repo}/{slug}/marketplace.json", "/acme/tools/lint/marketplace.json"),
    *get("/collections/{collection}/marketplace.json", "/collections/team/marketplace.json"),
    *get(
        "/marketplace/{owner}/{repo}/{name}/info/refs",
        "/marketplace/acme/tools/lint.git/info/refs?service=git-upload-pack",
    ),
    *get("/marketplace.git/info/refs", "/marketplace.git/info/refs?service=git-upload-pack"),
    *get(
        "/internal/marketplace.git/info/refs",
        "/internal/marketplace.git/info/refs?service=git-upload-pack",
        who="ada",
    ),
    *get("/{owner}/info/refs", "/acme.git/info/refs?service=git-upload-pack"),
    *get("/upstreams/{upstream}", "/upstreams/none.json"),
    *get("/upstreams/{upstream}/info/refs", "/upstreams/none.git/info/refs?service=git-upload-pack"),
    *get("/collections/{collection}/info/refs", "/collections/team.git/info/refs?service=git-upload-pack"),
    # What changes something comes last, in this order.
    post("/api/v1/skills/installs", body={"skillName": "notes"}),
    post("/api/v1/skills/{owner}/{repo}/{slug}/installs", f"{SKILL}/installs", body={}),
    post("/api/v1/skills/{name}/installs", f"{NOTES}/installs", body={}),
    post(
        "/api/v1/skills/check-updates",
        body={"skills": [{"name": "notes", "version": "1.0.0"}, {"name": "none", "version": "1.0.0"}]},
    ),
    post("/api/v1/submissions/discover", body={"repoUrl": REPO}),
    post("/api/v1/submissions", who="ada", body={"repoUrl": REPO, "skillPath": "skills/waiting"}),
    post("/api/v1/submissions", body={"repoUrl": "nonsense"}),
    post(
        "/api/v1/submissions/bulk",
        who="ada",
        body={"submissions": [{"repoUrl": REPO, "skillPath": "skills/lint"}, {"repoUrl": "nonsense"}]},
        keep=("hand_in", "page"),
    ),
    *get("/api/v1/hand-ins/{hand_in_id}", "/api/v1{hand_in}", who="ada"),
    post("/api/v1/submissions/upload", who="ada", raw=b"not an archive"),
    *get("/api/v1/submissions/{submission_id}/findings", "/api/v1/submissions/{lint}/findings"),
    *get("/api/v1/submissions/{submission_id}/sarif", "/api/v1/submissions/{lint}/sarif"),
    post(
        "/api/v1/submissions/{submission_id}/cancel",
        "/api/v1/submissions/{waiting}/cancel",
        who="ada",
        body={"reason": "not yet"},
    ),
    post(
        "/api/v1/submissions/{submission_id}/rerun",
        "/api/v1/submissions/{waiting}/rerun",
        who="ada",
        body={"reason": "now"},
    ),
    post(
        "/api/v1/submissions/{submission_id}/appeal",
        "/api/v1/submissions/{waiting}/appeal",
        who="ada",
        body={"reason": "it is fine"},
    ),
    post(
        "/api/v1/review/{submission_id}/again",
        "/api/v1/review/{unknown}/again",
        who="root",
        body={"reason": "look again"},
    ),
    post(
        "/api/v1/review/{submission_id}/approve",
        "/api/v1/review/{lint}/approve",
        who="root",
        body={"run": 1, "reason": "fine"},
    ),
    post(
        "/api/v1/review/{submission_id}/reject",
        "/api/v1/review/{unknown}/reject",
        who="root",
        body={"run": 1, "reason": "not wanted"},
    ),
    post(
        "/api/v1/review/{submission_id}/request-change",
        "/api/v1/review/{lint}/request-change",
        who="root",
        body={"run": 1, "reason": "why a shell?"},
    ),
    post(
        "/api/v1/review/{submission_id}/withdraw-request",
        "/api/v1/review/{lint}/withdraw-request",
        who="root",
        body={"reason": "not needed"},
    ),
    post(
        "/api/v1/submissions/{submission_id}/report",
        "/api/v1/submissions/{waiting}/report",
        who="ada",
        body={"reason": "it steals", "category": "malware"},
    ),
    post(
        "/api/v1/submissions/{submission_id}/answer",
        "/api/v1/submissions/{waiting}/answer",
        who="ada",
        body={"reason": "it formats files"},
    ),
    post(
        "/api/v1/suppressions/{digest}/{rule}",
        "/api/v1/suppressions/{digest}/DR-999",
        who="root",
        body={"reason": "wrong here"},
    ),
    post(
        "/api/v1/suppressions/{digest}/{rule}/remove",
        "/api/v1/suppressions/{digest}/DR-999/remove",
        who="root",
        body={"reason": "right after all"},
    ),
    *get("/api/v1/suppressions", who="root"),
    *get("/api/v1/reports", who="root"),
    post(
        "/api/v1/reports/{report_id}/uphold", "/api/v1/reports/x/uphold", who="root", body={"reason": "true"}
    ),
    post(
        "/api/v1/reports/{report_id}/dismiss", "/api/v1/reports/x/dismiss", who="root", body={"reason": "no"}
    ),
    post(
        "/api/v1/skills/{owner}/{repo}/{slug}/take-down",
        f"{SKILL}/take-down",
        who="root",
        body={"version": "1.0.0", "reason": "complaints"},
    ),
    post(
        "/api/v1/skills/{owner}/{repo}/{slug}/restore",
        f"{SKILL}/restore",
        who="root",
        body={"version": "1.0.0", "reason": "a mistake"},
    ),
    post("/api/v1/skills/{name}/take-down", f"{NOTES}/take-down", who="root", body={"reason": ""}),
    post(
        "/api/v1/skills/{owner}/{repo}/{slug}/release-name",
        f"{SKILL}/release-name",
        who="root",
        body={"name": "nothing", "reason": "squatting"},
    ),
    post("/api/v1/skills/{name}/release-name", f"{NOTES}/release-name", who="root", body={"reason": ""}),
    post("/api/v1/skills/{name}/restore", f"{NOTES}/restore", who="root", body={"reason": ""}),
    *get("/api/v1/review", who="root"),
    *get("/api/v1/rules", who="root"),
    post(
        "/api/v1/review/bulk",
        who="root",
        body={"verb": "approve", "items": [{"id": "{unknown}", "run": 1}], "reason": "all alike"},
    ),
    *get("/api/v1/blocklist/entries", who="root"),
    post(
        "/api/v1/blocklist/entries",
        who="root",
        body={"kind": "place", "target": f"{REPO}/tree/main/skills/lnt", "reason": "steals keys"},
    ),
    post(
        "/api/v1/blocklist/entries/lift",
        who="root",
        body={"kind": "name", "target": "bad", "reason": "a mistake"},
    ),
    post(
        "/api/v1/skills/{owner}/{repo}/{slug}/reports", f"{SKILL}/reports", who="ada", body={"reason": "odd"}
    ),
    post("/api/v1/skills/{name}/reports", f"{NOTES}/reports", who="ada", body={"reason": "odd"}),
    *get("/api/v1/admin/queue", who="root"),
    *get("/api/v1/admin/queue/stuck", who="root"),
    post("/api/v1/admin/queue/recover", who="root"),
    post("/api/v1/admin/queue/pause", who="root", body={"durationMs": 600000, "reason": "an upgrade"}),
    post("/api/v1/admin/queue/pause", who="root", body={"durationMs": 0, "reason": "an upgrade"}),
    post("/api/v1/admin/queue/resume", who="root"),
    *get("/api/v1/admin/queue/dead-letters", who="root"),
    post(
        "/api/v1/admin/queue/dead-letters/{letter_id}/replay",
        "/api/v1/admin/queue/dead-letters/999/replay",
        who="root",
    ),
    post(
        "/api/v1/admin/queue/dead-letters/{letter_id}/discard",
        "/api/v1/admin/queue/dead-letters/999/discard",
        who="root",
    ),
    *get("/api/v1/admin/queue/jobs", who="root"),
    *get("/api/v1/admin/content", who="root"),
    post("/api/v1/admin/content/{digest}/repair", f"/api/v1/admin/content/{'a' * 64}/repair", who="root"),
    post("/api/v1/admin/content/collect", who="root", body={"dryRun": True}),
    *get("/api/v1/admin/judges", who="root"),
    post("/api/v1/admin/judges/try", who="root", body={}),
    *get("/api/v1/policy"),
    post(
        "/api/v1/policy/check",
        who="root",
        body={"text": "rules:\n  - {name: a, when: owner.nam, then: note}"},
    ),
    post("/api/v1/policy/rescan", who="root", body={"reason": "looked"}),
    post("/api/v1/policy/try", who="root", body={"text": 'rules: [{name: a, when: "true", then: review}]'}),
    post("/api/v1/policy", who="root", body={"text": "extends: open\nrules: []", "reason": "looked"}),
    *get("/api/v1/memory"),
    post("/api/v1/memory", "/api/v1/memory?reason=looked", who="root", raw=b"no memory"),
    *get("/api/v1/admin/queue/rescans", who="root"),
    post("/api/v1/admin/queue/rescans/continue", who="root", body={"ruleset": "none", "reason": "looked"}),
    post("/api/v1/admin/queue/jobs/{job}/run", "/api/v1/admin/queue/jobs/none/run", who="root"),
    *get("/api/v1/repositories", who="root"),
    *get("/api/v1/repositories/health", f"/api/v1/repositories/health?repoUrl={REPO}", who="root"),
    post("/api/v1/repositories/check", who="root", body={"repoUrl": REPO}),
    *people_do(),
    post("/api/v1/collections", who="root", body={"name": "kit", "reason": "for all"}),
    post("/api/v1/collections", who="ada", body={"name": "mine", "reason": "for me"}),
    post(
        "/api/v1/collections/{name}/add",
        "/api/v1/collections/kit/add",
        who="root",
        body={"skills": ["acme/tools/lint"], "reason": "good"},
    ),
    *get("/api/v1/collections"),
    post(
        "/api/v1/collections/{name}/remove",
        "/api/v1/collections/kit/remove",
        who="root",
        body={"skills": ["acme/tools/none"], "reason": "not in it"},
    ),
    post(
        "/api/v1/collections/{name}/delete",
        "/api/v1/collections/kit/delete",
        who="root",
        body={"reason": "done"},
    ),
    post(
        "/api/v1/webhooks",
        who="root",
        body={"url": "https://127.0.0.1:9/hook", "events": ["skill.published"]},
        keep=("webhook", "webhook", "id"),
    ),
    Ask(endpoint="DELETE /api/v1/webhooks/{webhook_id}", path="/api/v1/webhooks/{webhook}", who="root"),
    post("/api/v1/tokens", who="ada", body={"name": "by a token"}),
    post(
        "/api/v1/tokens",
        who="ada in a browser",
        body={"name": "for the snapshots"},
        keep=("token", "details", "id"),
    ),
    Ask(endpoint="DELETE /api/v1/tokens/{token_id}", path="/api/v1/tokens/{token}", who="ada in a browser"),
    post("/api/v1/auth/github/exchange-for-vsk-token", body={"githubToken": "none"}),
    post("/api/v1/external-scans/{digest}/{provider}", "/api/v1/external-scans/{digest}/acme", raw=b"signed"),
    *get("/api/v1/external-scans/{digest}/{provider}", "/api/v1/external-scans/{digest}/acme"),
    post("/clawhub/api/cli/telemetry/install", who="ada", body={}),
    post(
        f"{CLAWHUB}/skills/-/upload-url",
        who="ada",
        body={"path": "SKILL.md", "size": len(FILE), "sha256": hashlib.sha256(FILE).hexdigest()},
        keep=("ticket", "uploadTicket"),
    ),
    post(f"{CLAWHUB}/uploads/{{ticket}}", f"{CLAWHUB}/uploads/{{ticket}}", who="ada", raw=FILE),
    post(
        f"{CLAWHUB}/skills",
        who="ada",
        body={
            "slug": "sent",
            "files": [{"path": "SKILL.md", "size": len(FILE), "sha256": hashlib.sha256(FILE).hexdigest()}],
        },
    ),
    post(
        "/marketplace/{owner}/{repo}/{name}/git-upload-pack",
        "/marketplace/acme/tools/lint.git/git-upload-pack",
        raw=NO_COMMIT,
    ),
    post("/marketplace.git/git-upload-pack", "/marketplace.git/git-upload-pack", raw=NO_COMMIT),
    post(
        "/internal/marketplace.git/git-upload-pack",
        "/internal/marketplace.git/git-upload-pack",
        raw=NO_COMMIT,
        who="ada",
    ),
    post("/{owner}/git-upload-pack", "/acme.git/git-upload-pack", raw=NO_COMMIT),
    post("/upstreams/{upstream}/git-upload-pack", "/upstreams/none.git/git-upload-pack", raw=NO_COMMIT),
    post("/collections/{collection}/git-upload-pack", "/collections/team.git/git-upload-pack", raw=NO_COMMIT),
    post(
        "/mcp",
        body={"jsonrpc": "2.0", "id": 1, "method": "ping"},
        headers={"accept": "application/json, text/event-stream"},
    ),
    post("/api/v1/owners/check", who="ada", body={"repoUrl": REPO}),
    post("/api/v1/owners/claim", who="ada", body={"repoUrl": REPO}),
    *owners_do("yank", "/versions/{version}/yank", "/versions/1.0.0/yank"),
    *owners_do("unyank", "/versions/{version}/unyank", "/versions/1.0.0/unyank"),
    *owners_do("delete", "/delete", "/delete"),
    post("/api/v1/owners/transfer", who="ada", body={"repoUrl": KIT, "to": "root", "reason": "moved on"}),
    post(
        "/api/v1/admin/accounts",
        who="root",
        body={"name": "bot", "role": "author", "reason": "for CI", "password": "seven green boats"},
    ),
    post("/api/v1/admin/accounts/{name}/role", who="root", path="/api/v1/admin/accounts/bot/role", body=ROLE),
    post(
        "/api/v1/admin/tokens/{account}",
        who="root",
        path="/api/v1/admin/tokens/bot",
        body={"name": "ci"},
        keep=("bot_token", "details", "id"),
    ),
    post(
        "/api/v1/admin/tokens/{account}/{token_id}/revoke",
        who="root",
        path="/api/v1/admin/tokens/bot/{bot_token}/revoke",
        body=WHY,
    ),
    *(
        post(
            f"/api/v1/admin/accounts/{{name}}/{verb}",
            who="root",
            path=f"/api/v1/admin/accounts/bot/{verb}",
            body=body,
        )
        for verb, body in (
            ("password", {**WHY, "password": "nine green boats"}),
            ("sign-out", WHY),
            ("disable", WHY),
            ("enable", WHY),
        )
    ),
    post("/api/v1/notifications/read", who="ada", body={}),
    post("/api/v1/notifications/mail", who="ada", body={"address": ""}),
    post("/api/v1/notifications/mail/confirm", who="ada", body={"code": "none"}),
    post("/api/v1/watches", who="ada", body={"namespace": "acme"}),
    post("/api/v1/watches/remove", who="ada", body={"namespace": "acme"}),
    post("/api/v1/account/password", who="ada", body={"old": "x", "password": "nine green boats"}),
    Ask(endpoint="DELETE /api/v1/auth/sign-out-all", who="ada"),
)
#: Numbers of this moment: `tests/test_observability.py` holds them.
UNPINNED = frozenset({"GET /metrics"})


class OneKey:
    """A ring whose key is the same on every machine."""

    def __init__(self) -> None:
        self._key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))

    async def current(self) -> SigningKey:
        return self._key

    async def public_keys(self) -> tuple[PublicKey, ...]:
        return (self._key.public,)


def is_pinned(endpoint: Endpoint) -> bool:
    is_page = endpoint.media in ("text/html", "image/png") or endpoint.path.startswith("/static/")
    return not is_page and not endpoint.is_stream and name_of(endpoint) not in UNPINNED


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


#: The file that holds an endpoint's answers: its area of the API, or the module of the client that it serves.
FILES = {
    name_of(one): (one.tag or one.view.__module__.rpartition(".")[2]).replace(" ", "_")
    for one in ENDPOINTS
    if is_pinned(one)
}


#: Routes of actions that nobody asked above are asked as an admin, last, about things that are not there.
PLAIN = tuple(
    Ask(
        endpoint=name_of(one),
        path=re.sub(r"{\w+}", "none", one.path),
        who="root",
        body=None if one.method == "GET" else WHY,
    )
    for one in ENDPOINTS
    if one.path.startswith("/api/v1/")
    and is_pinned(one)
    and not any(ask.endpoint == name_of(one) for ask in ASKED)
)


def test_every_address_for_programs_is_asked():
    asked = {one.endpoint for one in (*ASKED, *PLAIN)}
    assert not FILES.keys() - asked, "ask them in ASKED, then run 'make snapshots'"
    assert not asked - FILES.keys(), "remove them from ASKED, there is no such address"
    assert len({(one.title, one.who) for one in ASKED}) >= len(ASKED) - 1, (
        "two asks with one title hide each other"
    )


def test_no_snapshot_is_left_over():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FILES.values())


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
async def test_every_answer_is_as_it_was_agreed(engine, tmp_path, request):
    """Nothing of the machine, of the run or of the engine is in it."""
    found = await ask_all(tmp_path, engine)
    if request.config.getoption("--write-snapshots"):
        for name, answers in found.items():
            (FOLDER / f"{name}.json").write_text(shown(answers), "utf-8")
    for name, answers in found.items():
        agreed = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
        for title in answers.keys() | agreed.keys():
            told = f"{name}.json: {title}: if the change is meant, run make snapshots"
            assert answers.get(title) == agreed.get(title), told


def shown(answers: object) -> str:
    return json.dumps(answers, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


async def ask_all(tmp_path: Path, engine: str) -> dict[str, dict[str, Any]]:
    """Every answer, by file and title."""
    found: dict[str, dict[str, Any]] = {name: {} for name in FILES.values()}
    settings = {
        "external_scan_secrets": (f"acme={ANALYSER_SECRET}",),
        "allowed_private_hosts": ("127.0.0.1:9",),
        "public_url": "http://platform.test",
        "rate_limits": "off",
        "bandit_command": "off",
        "semgrep_command": "off",
    }
    opened = open_shelf(
        tmp_path, engine, clock=ManualClock(), worker_id="snapshots", signing=OneKey(), judge=None, **settings
    )
    async with opened as shelf:
        facts = await fill(shelf)
        people = {"": {}, "ada": await shelf.token("ada"), "root": await shelf.token("root", Role.ADMIN)}
        session = await session_of(shelf.env, "ada")
        people["ada in a browser"] = {
            "cookie": f"{SESSION_COOKIE}={session}",
            "x-csrf-token": Browser(session, None).csrf,
        }
        for one in (*ASKED, *PLAIN):
            answer = await send(shelf, one, facts, people[one.who])
            title = one.title if not one.who else f"{one.title} as {one.who}"
            found[FILES[one.endpoint]][title] = pinned(answer, RANDOM | one.hide)
            if one.keep:
                name, *members = one.keep
                facts[name] = value_at(answer.json(), members)
    return found


def value_at(body: Any, members: list[str]) -> str:
    for member in members:
        body = body[member]
    return str(body)


async def fill(shelf: Shelf) -> dict[str, str]:
    """Two skills of one name, one with versions, one that is blocked, a collection; what paths need to know of them."""
    clock = shelf.env.clock
    assert isinstance(clock, ManualClock)
    script = SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho hello\n")
    for name, body, extra in (
        ("lint", "One.", ()),
        ("lint", "Two.", (script,)),
        ("notes", "A.", ()),
        ("notes", "B.", ()),
    ):
        skill = await shelf.publish(name, body, extra=extra)
        clock.advance(60_000)
    await shelf.publish("lint", "Another.", repo=KIT)
    await shelf.publish("bad", "Bad.")
    shelf.sources.put(
        REPO, "skills/waiting", (SkillFile("SKILL.md", "100644", FILE.replace(b"sent", b"waiting")),)
    )
    clock.advance(60_000)
    with active_env(shelf.env):
        await add_block(
            BlockEntry(name_target("bad"), Severity.HIGH, "steals keys", "admin:eve", clock.now())
        )
        await create_collection("team", title="The team", by="admin:eve", reason="for all")
        await add_skills("team", ["acme/tools/lint"], by="admin:eve", reason="for all")
        await request_scans(skill.versions[-1].digest)
        owner = Owner("ada", clock.now(), "file", "c" * 40)
        await set_owners(shelf.env, normalise(KIT), owner)
    index = (await shelf.client.get("/.well-known/agent-skills/index.json")).json()
    own = (await shelf.client.get("/acme/tools/lint/.well-known/agent-skills/index.json")).json()
    return {
        "lint": submission_id(normalise(REPO, "skills/lint")),
        "waiting": submission_id(normalise(REPO, "skills/waiting")),
        "unknown": submission_id(normalise(REPO, "skills/unknown")),
        "digest": skill.versions[-1].digest,
        "artifact": index["skills"][0]["url"],
        "own_artifact": own["skills"][0]["url"],
    }


async def send(
    shelf: Shelf, ask: Ask, facts: Mapping[str, str], person: Mapping[str, str]
) -> httpx2.Response:
    method, _, template = ask.endpoint.partition(" ")
    path = ask.path.format_map(facts) if ask.path else template
    headers, content = {**person, **ask.headers}, ask.raw
    if ask.raw == b"signed":
        content = json.dumps(
            {
                "digest": facts["digest"],
                "provider": "acme",
                "version": "7.1",
                "status": "complete",
                "findings": [],
            }
        ).encode()
        headers |= signature(shelf, content)
    if ask.body is not None:
        return await shelf.client.request(method, path, json=ask.body, headers=headers)
    return await shelf.client.request(method, path, content=content, headers=headers)


def signature(shelf: Shelf, body: bytes) -> dict[str, str]:
    stamp = str(shelf.env.clock.now() // 1000)
    digest = hmac.new(ANALYSER_SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"x-vskill-timestamp": stamp, "x-vskill-signature": f"sha256={digest}"}


def pinned(answer: httpx2.Response, hidden: frozenset[str]) -> dict[str, Any]:
    shown_headers = HEADERS - {"etag"} if hidden > RANDOM else HEADERS
    headers = {name: value for name, value in sorted(answer.headers.items()) if name in shown_headers}
    return {"status": answer.status_code, "headers": headers, "body": body_of(answer, hidden)}


def body_of(answer: httpx2.Response, hidden: frozenset[str]) -> Any:
    """JSON as data, text as text; what is long or neither, by its digest."""
    try:
        text = answer.content.decode("utf-8")
    except UnicodeDecodeError:
        return digest_of(answer.content)
    if "json" in answer.headers.get("content-type", ""):
        body = masked(answer.json(), hidden)
        if "openapi" in body:
            return outlined(body)
        written = json.dumps(body, sort_keys=True)
        return body if len(written) <= LONGEST else digest_of(written.encode())
    return text if len(text) <= LONGEST and "\0" not in text else digest_of(answer.content)


def outlined(document: dict[str, Any]) -> dict[str, Any]:
    """The API's document as a list: every address with its methods, every struct with its fields."""
    schemas = document["components"]["schemas"]
    return {
        "paths": {path: sorted(methods) for path, methods in document["paths"].items()},
        "schemas": {name: " ".join(sorted(one.get("properties", ()))) for name, one in schemas.items()},
    }


def digest_of(data: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}


def masked(value: Any, hidden: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: "(hidden)" if name in hidden and one is not None else masked(one, hidden)
            for name, one in value.items()
        }
    return [masked(one, hidden) for one in value] if isinstance(value, list) else value
