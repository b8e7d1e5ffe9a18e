"""The JSON route of each action, made from its declaration: the parts of the path and the query or the body become the
action's request, and its answer becomes the response."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, Sent
from vskill_client.wire.skills import SKILLS
from vskill_platform.actions.action import Action, Keep
from vskill_platform.actions.wire import encode
from vskill_platform.web import routing
from vskill_platform.web.api.names import ANY_NAME, CANONICAL, asked_name
from vskill_platform.web.exchange import answer_with_tag, json_response, principal_of, services_of
from vskill_platform.web.kept import answer_until_change

#: The skill's name in an action's path, and the forms in which routes accept it.
_SKILL = f"{SKILLS}/{{skill}}"
_SKILL_FORMS = (CANONICAL, ANY_NAME)


def endpoints_of(actions: Iterable[Action[Any, Any]]) -> tuple[routing.Endpoint, ...]:
    return tuple(
        _endpoint(action, action.path.replace(_SKILL, form))
        for action in actions
        if not action.route_by_hand
        for form in (_SKILL_FORMS if action.path.startswith(_SKILL) else (_SKILL,))
    )


def _endpoint(action: Action[Any, Any], path: str) -> routing.Endpoint:
    reads = _reads_query(action)
    elsewhere = {*action.path_fields, action.body_field}
    beside_path = [name for name in action.request.__struct_fields__ if name not in elsewhere]
    kind = routing.part_of(action.request, beside_path, Asked if reads else Sent)
    has_fields = bool(kind.__struct_fields__)
    return routing.Endpoint(
        method=action.method,
        path=path,
        view=_view(action, kind),
        action=action,
        query=kind if reads else routing.NoQuery,
        body=kind if has_fields and not reads else None,
        answer=action.answer,
        status=action.status,
        others=action.others,
        media=action.media if action.answer is not None else "",
        body_media=action.body_media,
        most_body=action.most_body or routing.MOST_BODY,
        summary=action.summary,
        about=action.about,
        tag=action.tag,
        problems=tuple(sorted({error.status for error in action.errors})),
        allowance=action.allowance,
    )


def _reads_query(action: Action[Any, Any]) -> bool:
    """Whether fields that are not in the path come from the query, not from a JSON body."""
    return action.method == "GET" or bool(action.body_field)


def _view(action: Action[Any, Any], kind: type[msgspec.Struct]) -> Callable[[Request], Awaitable[Response]]:
    types = {field.name: field.type for field in msgspec.structs.fields(action.request)}
    in_path = {name: types[name] for name in action.path_fields}

    async def act(request: Request) -> Any:
        if _reads_query(action):
            given = routing.query_of(request, kind)
        else:
            # A body without required fields may be left out.
            given = routing.decode_body(await routing.read_body(request) or b"{}", kind)
        parts = {
            name: asked_name(request) if name == "skill" else _path_value(request.path_params[name], field)
            for name, field in in_path.items()
        }
        if action.body_field:
            parts[action.body_field] = await routing.read_body(request, action.most_body)
        asked = action.request(**parts, **msgspec.structs.asdict(given))
        return await action(services_of(request), principal_of(request), asked)

    async def view(request: Request) -> Response:
        answer = await act(request)
        status = action.status if action.status_of is None else action.status_of(answer)
        if answer is None:
            return Response(None, status)
        if isinstance(answer, bytes):
            return Response(answer, status, {"cache-control": "no-store"}, action.media)
        shown = json_response(answer, status)
        shown.headers["content-type"] = action.media
        return shown

    async def tagged_view(request: Request) -> Response:
        return answer_with_tag(request, encode(await act(request)))

    async def kept_view(request: Request) -> Response:
        async def make() -> bytes:
            return encode(await act(request))

        return await answer_until_change(request, make)

    return {Keep.NEVER: view, Keep.BY_TAG: tagged_view, Keep.UNTIL_CHANGE: kept_view}[action.keep]


def _path_value(text: str, kind: Any) -> Any:
    """Convert to the field's type. A value of another type stays text, so that validation names the field."""
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return text
