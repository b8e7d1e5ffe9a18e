"""A whole bundle as one download. It is sent skill by skill, so its size does not matter to the process."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vskill_client.wire.base import Ans, Asked, Req
from vskill_platform.actions.action import Action
from vskill_platform.actions.submissions.bundles import MAKE_BUNDLE, MakeBundle, write_bundle
from vskill_platform.domain.skills.bundle import MEDIA_TYPE
from vskill_platform.web.exchange import attachment, principal_of, services_of
from vskill_platform.web.routing import get, part_of, query_of

_Wanted = part_of(MakeBundle, MakeBundle.__struct_fields__, Asked)


async def bundle(request: Request) -> Response:
    services, reader = services_of(request), principal_of(request)
    wanted = MakeBundle(**msgspec.structs.asdict(query_of(request, _Wanted)))
    head = await MAKE_BUNDLE(services, reader, wanted)

    async def ask(action: Action[Req, Ans], given: Req) -> Ans:
        return await action(services, reader, given)

    name = f"{wanted.collection or ('skills' if wanted.skills else 'revocations')}.vskill.tar"
    shown = StreamingResponse(write_bundle(ask, head), 200, {"cache-control": "no-store"}, MEDIA_TYPE)
    return attachment(shown, name)


ENDPOINTS = (
    get(
        "/api/v1/bundle/file",
        bundle,
        action=MAKE_BUNDLE,
        query=_Wanted,
        media=MEDIA_TYPE,
        problems=tuple(sorted({error.status for error in MAKE_BUNDLE.errors})),
        tag="skills",
        summary="Download a bundle of skills as one file",
        about="A skill that is withdrawn while it is written ends the download early; `bundle check` tells.",
    ),
)
