"""Which CI job somebody is, by the ID token that the job's forge signed for this registry. What the token says decides
nothing here: `store.people.publishers` knows which workflows a maintainer let in.

Each refusal says which check failed. Only the job's own log shows it, and it tells nothing that the token does not say.
"""

import hashlib
from collections import defaultdict
from typing import Any

import msgspec
from joserfc import jws
from joserfc.errors import JoseError

from vskill_core.errors import InvalidInput, NotPermitted
from vskill_core.foreign_json import read_json
from vskill_core.identity import has_control_characters, normalise
from vskill_core.publisher import Publisher
from vskill_platform.setting_issuers import CiClaims, CiIssuer
from vskill_platform.settings import Settings
from vskill_platform.sign_in.oidc import SKEW_S, TrustedIssuer
from vskill_platform.store.people.publishers import ProvedJob
from vskill_platform.worker_context import require_env

#: Of a claim.
MOST_CLAIM = 500
#: A token is remembered for as long as it is valid, so that it serves once.
LONGEST_S = 86_400
REFS = ("refs/heads/", "refs/tags/")


class _CiToken(msgspec.Struct, frozen=True):
    """The claims that are the same at every issuer."""

    iss: str
    aud: str | tuple[str, ...]
    exp: float
    iat: float
    jti: str
    nbf: float = 0


async def prove_job(settings: Settings, token: str) -> ProvedJob:
    """The job whose forge signed this token for us; NotPermitted says which check failed."""
    issuer = _issuer_of(settings, token)
    try:
        claims = await TrustedIssuer(issuer).read_claims(token)
    except (JoseError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"[:200]
        raise _refuse(f"its signature is not one of {issuer.issuer} ({problem})") from None
    try:
        said = msgspec.convert(claims, _CiToken)
    except msgspec.ValidationError as error:
        raise _refuse(f"its claims are not those of an ID token: {error}") from None
    left_ms = _require_current(settings, said)
    publisher = _read_publisher(issuer, claims)
    try:
        repository = normalise(f"https://{publisher.repository}")
    except InvalidInput as error:
        raise _refuse(f"{publisher.repository!r} is no repository: {error.message}") from None
    number = _text(claims, issuer.claims.repository_id) if issuer.claims.repository_id else ""
    once = hashlib.sha256(msgspec.json.encode([issuer.issuer, said.jti])).hexdigest()
    return ProvedJob(publisher, repository, issuer.name, number, once, left_ms)


def _issuer_of(settings: Settings, token: str) -> CiIssuer:
    """The issuer that the token names, before anybody has looked at its signature."""
    try:
        payload = read_json(jws.extract_compact(token.encode()).payload, dict[str, Any])
    except (JoseError, ValueError, RecursionError):
        raise _refuse("it is no signed JSON Web Token") from None
    named = str(payload.get("iss", ""))[:200]
    for one in settings.ci_issuers:
        if one.issuer == named:
            return one
    raise _refuse(f"this registry knows no CI issuer {named!r}", "ask its operator to add it")


def _require_current(settings: Settings, said: _CiToken) -> int:
    """For how many milliseconds the token could still be shown."""
    now, wanted = require_env("kv").kv.now() / 1000, settings.public_url.rstrip("/")
    audiences = (said.aud,) if isinstance(said.aud, str) else said.aud
    if [one.rstrip("/") for one in audiences] != [wanted]:
        fix = f"ask your forge for one with the audience {wanted}"
        raise _refuse(f"its audience is {', '.join(audiences)[:200]}", fix)
    if said.exp + SKEW_S <= now:
        raise _refuse("it has expired", "ask your forge for a new one")
    if max(said.iat, said.nbf) > now + SKEW_S:
        raise _refuse("it is not valid yet")
    if said.exp - now > LONGEST_S:
        raise _refuse("it is valid for more than a day", "let your forge make one that ends sooner")
    return int((said.exp + SKEW_S - now) * 1000) + 1


def _read_publisher(issuer: CiIssuer, claims: dict[str, Any]) -> Publisher:
    """What the job is, where it is one that could be let in at all."""
    meant = issuer.claims
    name, ref, commit = (_text(claims, claim) for claim in (meant.repository, meant.ref, meant.commit))
    event = _text(claims, meant.event) if meant.event else ""
    if event.startswith(meant.foreign_events):
        raise _refuse(f"the event {event} runs what others propose", "publish after the merge")
    if ref.startswith(meant.foreign_refs):
        raise _refuse(f"{ref} holds what others propose", "publish after the merge")
    _require_named_file(meant, event, claims)
    if not ref.startswith(REFS):
        raise _refuse(f"{ref} is neither a branch nor a tag", "publish from a branch or a tag")
    if len(commit) not in (40, 64) or not set(commit) <= set("0123456789abcdef"):
        raise _refuse(f"{commit!r} is no commit")
    known = {"host": issuer.host, "repository": name}
    before = meant.before_workflow.format_map(known)
    files = {_workflow_file(_text(claims, claim), before, name) for claim in meant.workflow}
    if len(files) > 1:
        raise _refuse(f"the job is in a reusable workflow, {' called by '.join(sorted(files))}")
    environment = claims.get(meant.environment) if meant.environment else None
    return Publisher(
        issuer=issuer.issuer,
        repository=f"{issuer.host}/{name}",
        workflow=files.pop(),
        ref=ref,
        commit=commit,
        environment=environment if isinstance(environment, str) else "",
        run=meant.run.format_map(defaultdict(str, {**claims, **known}))[:MOST_CLAIM],
    )


def _require_named_file(meant: CiClaims, event: str, claims: dict[str, Any]) -> None:
    """A job of a child pipeline or of a policy has the token of the top-level file, and runs another one."""
    source = _text(claims, meant.source) if claims.get(meant.source) is not None else event
    for one in (event, source):
        if one in meant.foreign_files:
            named = ", ".join(str(claims.get(claim))[:MOST_CLAIM] for claim in meant.workflow)
            problem = f"a job of {one} runs another file than the one that its token names, {named}"
            raise _refuse(problem, "publish in a job of that file itself")


def _workflow_file(workflow: str, before: str, repository: str) -> str:
    """The file's path in its repository; a reusable workflow of another repository is not ours to let in."""
    path, _, _ = workflow.rpartition("@")
    if not path.lower().startswith(before.lower()) or path == before:
        raise _refuse(
            f"the workflow {workflow} is not in {repository}", "let the repository's own file publish"
        )
    return path[len(before) :]


def _text(claims: dict[str, Any], claim: str) -> str:
    found = claims.get(claim)
    text = str(found) if isinstance(found, int) else found
    if not isinstance(text, str) or not 1 <= len(text) <= MOST_CLAIM or has_control_characters(text):
        raise _refuse(f"it has no claim {claim!r} that we can use")
    return text


def _refuse(problem: str, fix: str = "see docs/how-to/publish-from-ci.md") -> NotPermitted:
    return NotPermitted(f"The CI token is refused: {problem}.", field="token", fix=fix)
