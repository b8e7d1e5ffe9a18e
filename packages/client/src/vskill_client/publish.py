"""`publish --ci`: submit the repository that a CI job runs for, without a stored secret. Its forge says by an ID token
which job it is, and the registry gives a token for minutes in exchange.

The ID token is read as the two forges hand it out. PyPI's `id` would bring another HTTP client for that.
"""

from urllib.parse import quote, urlsplit

import click

from vskill_client.destination import Caller, RemoteDestination, current_destination
from vskill_client.output import json_option
from vskill_client.registries import GITHUB_VARIABLES, ID_TOKEN_VARIABLE, check_address, ci_variables
from vskill_client.submit import Options, submit_targets
from vskill_client.wire.login import EXCHANGE, CiTokenAnswer, ExchangeIdToken
from vskill_core.errors import InvalidInput, RegistryUnavailable
from vskill_core.foreign_json import read_json

TIMEOUT_S = 30.0


@click.command()
@click.option("--ci", is_flag=True, required=True, help="Say who this is by the ID token of the CI job.")
@click.option("--path", default="", help="The skill's folder; otherwise every skill of the repository.")
@json_option
def publish(*, ci: bool, path: str, as_json: bool) -> None:
    """Publish the skills of the repository that this CI job runs for.

    The registry takes the commit that the job runs for, and no other. A maintainer of the repository must have added
    the job's workflow as a publisher there. Exit code 1 unless every skill is published.

    The job needs `permissions: {id-token: write}` on GitHub, and on GitLab an ID token in VSKILL_PLATFORM_ID_TOKEN.
    """
    del ci  # the only way for now
    here = current_destination()
    if not here.registry:
        raise here.no_registry()
    id_token = _find_id_token(here.registry)

    async def exchange(caller: Caller) -> CiTokenAnswer:
        return await caller.call(EXCHANGE, ExchangeIdToken(id_token=id_token))

    given = RemoteDestination(here.registry, None, here).run(exchange)
    if not as_json:
        click.echo(f"{here.registry} takes {given.repo_url} at {given.commit}.")
    submit_targets(
        RemoteDestination(here.registry, given.token, here),
        (given.repo_url,),
        Options(path, not path, "", None, next_run=True),
        watched=True,
        as_json=as_json,
    )


def _find_id_token(audience: str) -> str:
    job = ci_variables()
    if token := job.get(ID_TOKEN_VARIABLE):
        return token
    url, secret = (job.get(name, "") for name in GITHUB_VARIABLES)
    if url and secret:
        return _ask_github(url, secret, audience)
    if "GITHUB_ACTIONS" in job:
        fix = "add 'permissions: {id-token: write}' to the job; a pull request from a fork never gets one"
    elif "GITLAB_CI" in job:
        fix = f"add 'id_tokens: {{{ID_TOKEN_VARIABLE}: {{aud: {audience}}}}}' to the job"
    else:
        fix = f"use 'submit' where no CI job runs, or set {ID_TOKEN_VARIABLE}"
    raise InvalidInput("This job has no ID token.", field="--ci", fix=fix)


def _ask_github(address: str, secret: str, audience: str) -> str:
    import httpx2

    parts = urlsplit(address)
    check_address(f"{parts.scheme}://{parts.netloc}")
    asked = f"{address}{'&' if parts.query else '?'}audience={quote(audience, safe='')}"
    try:
        answer = httpx2.get(asked, headers={"authorization": f"Bearer {secret}"}, timeout=TIMEOUT_S)
        answer.raise_for_status()
        return str(read_json(answer.content)["value"])
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        message = f"GitHub gave this job no ID token: {type(error).__name__}: {error}"
        raise RegistryUnavailable(message[:300], registry=parts.netloc) from None
