"""The tools of the MCP server: search skills, read one, read its security report, submit one.

They run in the request's own context, so they find its environment and who asks as every view does.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Annotated, Any

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.requests import Request

from vskill_client.wire.skills import AgeChoice, FilterText, InstallsChoice, LackNames, OwnerChoice
from vskill_client.wire.submissions import SubmitSkill
from vskill_core.errors import NotPermitted, NotSignedIn, PlatformError
from vskill_platform.actions.action import Action, Allowance, refuse
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.actions.skills import skill_names
from vskill_platform.actions.skills.catalogue import list_catalogue, search_catalogue
from vskill_platform.actions.skills.installs import with_current_installs
from vskill_platform.actions.skills.skill_views import card, card_view, detail
from vskill_platform.actions.submissions.intake import SUBMIT
from vskill_platform.actions.verdicts.skill_security import SECURITY, read_reports
from vskill_platform.domain.skills.catalogue import Filter
from vskill_platform.web.auth import BAD_TOKEN, has_bad_token
from vskill_platform.web.clients.artifacts import ways_to_install
from vskill_platform.web.door.limits import take
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.problems import cut_text
from vskill_platform.worker_context import run_with_worker_env

Context = ServerRequestContext[Any]
Paging = PaginatedRequestParams | None

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=400, description="owner/repo/slug, or a slug")]
Number = Annotated[str, msgspec.Meta(max_length=80, description="a version; the current one if left out")]
Words = Annotated[str, msgspec.Meta(max_length=400, description="every word must occur; empty lists all")]
Count = Annotated[int, msgspec.Meta(ge=1, le=50)]
_WITHOUT = "only skills in which our rules found none of these, such as network,secrets"
Address = Annotated[
    str, msgspec.Meta(min_length=1, max_length=2048, description="the repository's https address")
]
Folder = Annotated[str, msgspec.Meta(max_length=1024, description="the folder that holds SKILL.md")]

asking: ContextVar[Request] = ContextVar("mcp_request")


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find verified skills by words in their names and descriptions, and by what they need. Blocked ones are marked."""

    query: Words = ""
    limit: Count = 20
    without: Annotated[LackNames, msgspec.Meta(description=_WITHOUT)] | None = None
    category: FilterText | None = None
    licence: FilterText | None = None
    agent: FilterText | None = None
    owner: FilterText | None = None
    provenance: OwnerChoice | None = None
    min_installs: InstallsChoice | None = None
    min_age: Annotated[AgeChoice, msgspec.Meta(description="days since it was first published")] | None = None


class GetSkill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read one skill: its facts, its SKILL.md, its files, the commands that install it, and its capability card: the
    hosts, commands, files, secrets, installs and lasting changes that our rules found, with their places."""

    name: Name
    version: Number = ""


class GetReport(GetSkill, frozen=True, forbid_unknown_fields=True):
    """Read what the scanners found in a version of a skill, with every finding's file, line and reason."""


class Submit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Submit a skill of a public git repository for verification, or every skill in it where no folder is named. The
    answer is immediate, the verdict follows."""

    repo_url: Address
    skill_path: Folder | None = None


async def search_skills(asked: Search) -> dict[str, Any]:
    services, reader = services_of(asking.get()), principal_of(asking.get())
    blocklist = await skill_names.current_blocklist(services)
    filters = Filter(**{name: getattr(asked, name, None) for name in Filter.__struct_fields__})
    if asked.query.strip():
        found = await search_catalogue(reader, asked.query, filters, limit=asked.limit)
        items, more, meant = found.items, found.truncated, found.did_you_mean
    else:
        page = await list_catalogue(reader, filters, limit=asked.limit)
        items, more, meant = page.items, page.after is not None, ""
    results = [msgspec.to_builtins(card(one, blocklist)) for one in items]
    return {"results": results, "truncated": more, **({"didYouMean": meant} if meant else {})}


async def get_skill(asked: GetSkill) -> dict[str, Any]:
    request = asking.get()
    services = services_of(request)
    skill = await skill_names.find_skill(principal_of(request), asked.name)
    skill = await with_current_installs(services, skill)
    ref = await skill_names.find_installable(services, skill, asked.version or None)
    text = await skill_names.read_skill_text(services, ref.digest)
    shown = detail(
        skill, await skill_names.current_blocklist(services), text, audiences_of(principal_of(request))
    )
    facts = msgspec.to_builtins(shown)
    files = [{"path": one.path, "size": len(one.data)} for one in await skill_names.read_files(ref.digest)]
    install = {way.id: list(way.commands) for way in await ways_to_install(request, skill)}
    card = card_view((await read_reports(services, ref.digest)).static)
    found = {"files": files, "install": install, "capabilities": msgspec.to_builtins(card)}
    return {**facts, "version": ref.number, **found}


async def get_security_report(asked: GetReport) -> dict[str, Any]:
    """Of blocked and withdrawn versions too: why they are so is in it."""
    wanted = skill_names.ReadVersion(skill=asked.name, version=asked.version or None)
    report = await SECURITY(services_of(asking.get()), principal_of(asking.get()), wanted)
    return dict(msgspec.to_builtins(report))


async def submit_skill(asked: Submit) -> dict[str, Any]:
    request = asking.get()
    await take(request, Allowance.SUBMISSIONS)
    wanted = SubmitSkill(repo_url=asked.repo_url, skill_path=asked.skill_path)
    done = await SUBMIT(services_of(request), principal_of(request), wanted)
    return _followed(public_address(request), msgspec.to_builtins(done))


def _followed(base: str, shown: dict[str, Any]) -> dict[str, Any]:
    """An outcome, and each of its parts, with the page of its submission."""
    follow = {"follow": f"{base}/submissions/{shown['id']}"} if "id" in shown else {}
    parts = {"results": [_followed(base, part) for part in shown["results"]]} if "results" in shown else {}
    return {**shown, **follow, **parts}


class Offered(msgspec.Struct, frozen=True):
    """A tool: what it takes, and what it does."""

    takes: type[msgspec.Struct]
    does: Callable[[Any], Awaitable[dict[str, Any]]]
    #: Its right and its scope decide who may; None only for a tool that changes nothing.
    action: Action[Any, Any] | None = None

    def described(self, name: str) -> Tool:
        _, parts = msgspec.json.schema_components((self.takes,), ref_template="#/$defs/{name}")
        schema = {"type": "object", "properties": {}, **parts[self.takes.__name__]}
        about = schema.pop("description", "")
        schema.pop("title", None)
        is_reading = self.action is None
        return Tool(
            name=name,
            description=about,
            input_schema=schema,
            annotations=ToolAnnotations(read_only_hint=is_reading, open_world_hint=not is_reading),
        )


TOOLS: Mapping[str, Offered] = {
    "search_skills": Offered(Search, search_skills),
    "get_skill": Offered(GetSkill, get_skill),
    "get_security_report": Offered(GetReport, get_security_report),
    "submit_skill": Offered(Submit, submit_skill, SUBMIT),
}


async def list_tools(_context: Context, _params: Paging) -> ListToolsResult:
    return ListToolsResult(tools=[tool.described(name) for name, tool in TOOLS.items()])


async def call_tool(_context: Context, params: CallToolRequestParams) -> CallToolResult:
    """A refusal is a result, so that the agent reads the reason."""
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=INVALID_PARAMS, message=f"There is no tool {params.name[:80]!r}.")
    try:
        principal = principal_of(asking.get())
        if tool.action is not None:
            if has_bad_token(asking.get()):
                raise NotSignedIn(BAD_TOKEN)
            await _admit(tool.action, principal)
        asked = msgspec.convert(params.arguments or {}, type=tool.takes)
        # Tools run after the view has returned, so the token is named to the audit here.
        env = msgspec.structs.replace(services_of(asking.get()), acting_token=principal.token)
        answer = await run_with_worker_env(env, lambda: tool.does(asked))
    except msgspec.ValidationError as error:
        return _text(f"The arguments are not valid: {error}.", is_error=True)
    except PlatformError as error:
        return _text(error.in_words, is_error=True)
    result = _text(msgspec.json.encode(answer).decode())
    result.structured_content = answer
    return result


async def _admit(action: Action[Any, Any], principal: Principal) -> None:
    try:
        action.admit(principal)
    except (NotSignedIn, NotPermitted) as error:
        await refuse(principal, action.name, error)
        raise


def _text(text: str, *, is_error: bool = False) -> CallToolResult:
    shown = cut_text(text) if is_error else text
    return CallToolResult(content=[TextContent(type="text", text=shown)], is_error=is_error)
