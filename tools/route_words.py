"""What each address is for that is not part of the API's own document: clients' protocols, pages and forms.

`routes_page` takes the words from here. A page or form without words has those of its action, which stand in
`summary`; an address that offers no action needs words, and a test fails for words without an address.
"""

from collections.abc import Mapping

_DISCOVERY = {
    ".well-known/agent-skills/index.json": "Agent Skills discovery, which `npx skills add` reads: the index of {}",
    ".well-known/skills/index.json": "The older form of that index, of {}",
    ".well-known/skills/{name}/{path:path}": "One file of a current version, by the older form, within {}",
}
_SCOPES = {
    "/": "everything",
    "/{owner}/": "one owner",
    "/{owner}/{repo}/": "one repository",
    "/{owner}/{repo}/{slug}/": "one skill",
    "/collections/{collection}/": "one collection",
}
_CLAWHUB = "/clawhub/api/v1"
_SKILL = "/skills/{owner}/{repo}/{slug}"
_SUBMISSION = "/submissions/{submission_id}"

_PROTOCOLS = {
    "GET /api/search": "Search as `npx skills find` asks for it",
    "GET /.well-known/agent-skills/skills/{owner}/{repo}/{slug}/{file}": "A version in one piece, as an index names it",
    "GET /{owner}/{repo}/{slug}/.well-known/agent-skills/{file}": "The same by one skill's index; an install",
    "GET /scim/v2/{issuer}/{resource}": "SCIM for a directory: users and groups by filter, and what is supported",
    "GET /scim/v2/{issuer}/{resource}/{id}": "One user or group",
    "POST /scim/v2/{issuer}/{resource}": "Make a user or group",
    "PUT /scim/v2/{issuer}/{resource}/{id}": "Replace a user or group",
    "PATCH /scim/v2/{issuer}/{resource}/{id}": "Change a user or group, such as `active`",
    "DELETE /scim/v2/{issuer}/{resource}/{id}": "Remove a user, who can do nothing from then on, or a group",
    "GET /.well-known/clawhub.json": "Tells the `clawhub` command where its protocol is answered",
    "GET /.well-known/clawdhub.json": "The same under that command's older name",
    f"GET {_CLAWHUB}/search": "Search what can be installed",
    f"GET {_CLAWHUB}/skills": "List what can be installed",
    f"GET {_CLAWHUB}/skills/{{slug}}": "One skill with its newest version",
    f"GET {_CLAWHUB}/skills/{{slug}}/moderation": "Whether it is blocked or withdrawn, and why",
    f"GET {_CLAWHUB}/skills/{{slug}}/versions": "Its versions",
    f"GET {_CLAWHUB}/skills/{{slug}}/versions/{{version}}": "One version with its files; 403 or 410 if it is not live",
    f"GET {_CLAWHUB}/skills/{{slug}}/file": "One file of a version",
    f"GET {_CLAWHUB}/skills/{{slug}}/install": "Where to get the current version, or why there is none",
    f"GET {_CLAWHUB}/resolve": "Which version a folder on the client's disk is, by the client's fingerprint of it",
    f"GET {_CLAWHUB}/download": "The archive of a version; counts as an install",
    f"GET {_CLAWHUB}/whoami": "Whose token this is",
    "POST /clawhub/api/cli/telemetry/install": "What the client tells after an install; nothing of it is kept",
    f"POST {_CLAWHUB}/skills/-/upload-url": "Ask where to send a file",
    f"POST {_CLAWHUB}/uploads/{{ticket}}": "Send that file",
    f"POST {_CLAWHUB}/skills": "Submit the files that were sent, into the account's own namespace",
    "GET /marketplace.json": "A marketplace of everything, for Claude Code's `/plugin marketplace add`",
    "GET /{owner}/marketplace.json": "A marketplace of one owner",
    "GET /{owner}/{repo}/{slug}/marketplace.json": "A marketplace of one skill",
    "GET /upstreams/{upstream}": "What an upstream has, verified or to be asked for, as a marketplace (`NAME.json`)",
    "GET /collections/{collection}/marketplace.json": "A marketplace of one collection",
    "GET /marketplace/{owner}/{repo}/{name}/info/refs": "A skill as a git repository, first step of a clone",
    "POST /marketplace/{owner}/{repo}/{name}/git-upload-pack": "Second step of a clone; counts as an install",
    **{
        f"{method} {place}/{step}": f"{words}: {begin}"
        for place, words in {
            "/marketplace.git": "A marketplace of everything as a git repository",
            "/internal/marketplace.git": "The same with what every account may read; asks for a token",
            "/{owner}": "A marketplace of one owner as a git repository (`OWNER.git`)",
            "/upstreams/{upstream}": "What an upstream has, verified or to be asked for, as a git repository",
            "/collections/{collection}": "A marketplace of one collection as a git repository (`NAME.git`)",
        }.items()
        for method, step, begin in (
            ("GET", "info/refs", "first step of a clone"),
            ("POST", "git-upload-pack", "second step"),
        )
    },
    "POST /mcp": "The MCP server for agents, where the extra `mcp` is installed",
}

_PAGES = {
    "GET /": "The first page: a search, how to install, what is popular, new and collected",
    "GET /collections/{collection}": "A collection: its skills, and how to install it",
    "GET /skills": "The list of skills, with facets, sorting and a search that answers while one types",
    "GET /revocations": "Which versions were withdrawn, why, what to install instead, and what is blocked unpublished",
    "GET /skills/{name}": "A short name leads to the skill that holds it",
    "GET /palette": "Go to a skill or a page by its name; a script shows the same by Ctrl-K",
    f"GET {_SKILL}": "What a skill is, what was verified, and how to install it",
    f"GET {_SKILL}/files": "The files of a version",
    f"GET {_SKILL}/files/{{path:path}}": "One file of a version",
    f"GET {_SKILL}/versions": "All versions with their status",
    f"GET {_SKILL}/versions/diff": "What differs between two versions, file by file",
    f"GET {_SKILL}/security": "The security report of a version: findings, judge, other analysers",
    "GET /owners/{owner:path}": "All that one owner has published",
    "GET /submit": "Submit by hand",
    "POST /submit/find": "List every skill at an address; nothing is written",
    "POST /submit/send": "Submit the skills that were chosen",
    "POST /submit/upload": "Upload an archive of one skill into the account's own namespace",
    "GET /queue": "The queue: counts, what waits and for how long, what ended, whether anything is stuck",
    "GET /queue/live": "Event stream of that page",
    f"GET {_SUBMISSION}": "One submission: every step, its place in the line, its next attempt, what to do on failure",
    f"GET {_SUBMISSION}/live": "Event stream of that page",
    f"POST {_SUBMISSION}/resubmit": "Submit the same place again",
    f"POST {_SKILL}/kind": "Submit a skill again as a plugin, or a plugin as a skill",
    f"GET {_SKILL}/-/{{part}}": "The file of a skill in a plugin",
    f"POST {_SUBMISSION}/upload": "Upload a corrected archive of an upload of one's own",
    "GET /hand-ins/{hand_in_id}": "What was submitted together: each skill with its present state, kept for 90 days",
    "GET /hand-ins/{hand_in_id}/live": "Event stream of that page",
    "GET /static/{digest}/{name:path}": "Styles and scripts; the digest decides how long a copy may be kept",
    "GET /docs": "These documents",
    "GET /docs/{path:path}": "One document, by its path; `docs/` and `.md` may be left out",
    "GET /docs/api": "The API as a page",
    "GET /docs/clients": "The commands of every client, with this registry's own address",
    "GET /signin": "Sign in",
    "POST /signin": "Sign in with a password",
    "POST /signin/{provider}": "Sign in with a provider: off to it",
    "GET /signin/{provider}/callback": "Sign in with a provider: back from it",
    "POST /signout": "End this session",
    "GET /setup": "Make the first admin account, by the link of the first start",
    "POST /setup": "The same, as a form; the link works once",
    "GET /account": "One's own submissions, repositories, tokens and password",
    "GET /namespaces": "The namespaces and teams that one belongs to",
    "GET /account/notifications": "What one was told, and what one watches",
    "GET /admin": "Is all well, what waits for a person, what do the jobs do",
    "POST /admin/review/ticked": "What a decision about those ticked would do; changes nothing",
    "GET /admin/review/{submission_id}": "The evidence for one decision",
    "GET /admin/skills": "Published skills",
    "GET /admin/collections": "Collections",
    "GET /admin/queue": "What is stuck, dead letters, and the pause",
    "GET /admin/content": "What stored content is missing or damaged, since when, and how its repair goes",
    "GET /admin/bulk": "What an action on many submissions would do; nothing is changed",
    "POST /admin/bulk": "Do it to all that were shown",
    "GET /admin/teams": "Teams with their members",
    "GET /admin/access": "Whom the registry lets in and who may submit, and what a change would hide and show",
    "GET /admin/storage": "Where everything is kept, and whether it can be written now",
}

#: By method and path.
WORDS: Mapping[str, str] = {
    **{
        f"GET {scope}{path}": words.format(whose)
        for scope, whose in _SCOPES.items()
        for path, words in _DISCOVERY.items()
    },
    **_PROTOCOLS,
    **_PAGES,
}
