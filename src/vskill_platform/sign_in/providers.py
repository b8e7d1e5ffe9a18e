"""The providers that the settings name."""

from typing import TYPE_CHECKING

from vskill_core.errors import NotFound
from vskill_platform.settings import Settings
from vskill_platform.sign_in.contract import Provider
from vskill_platform.sign_in.github import GitHub

if TYPE_CHECKING:
    from vskill_platform.sign_in.oidc import Oidc


def list_providers(settings: Settings) -> tuple[Provider, ...]:
    """In the order in which the sign-in page shows them."""
    github = (GitHub(settings),) if settings.github_client_id else ()
    return *list_issuers(settings), *github


def list_issuers(settings: Settings) -> "tuple[Oidc, ...]":
    if not settings.issuers:
        return ()
    from vskill_platform.sign_in.oidc import Oidc  # noqa: PLC0415 - needs an extra, as issuers do

    return tuple(Oidc(one, settings) for one in settings.issuers)


def find_provider(settings: Settings, name: str) -> Provider:
    for one in list_providers(settings):
        if one.name == name:
            return one
    raise NotFound("Signing in that way is not set up here.")
