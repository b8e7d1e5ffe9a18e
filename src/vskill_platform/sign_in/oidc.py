"""Signing in by OpenID Connect: the code flow with PKCE and nonce, at any issuer that has a discovery document.

An issuer's answers are foreign input. Its documents and keys are kept for an hour; a token that names an unknown key
makes us read the keys again, at most once a minute. Only signatures by public keys count: `none` and shared secrets
are no algorithms here.
"""

from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key

from vskill_core.errors import InvalidInput, NotPermitted, NotSignedIn
from vskill_core.foreign_json import read_json
from vskill_platform.setting_issuers import MOST_GROUPS, CiIssuer, Issuer
from vskill_platform.settings import Settings
from vskill_platform.sign_in.contract import Journey, ask, basic_auth, callback_url
from vskill_platform.store.people.accounts import LinkedIdentity, User
from vskill_platform.store.people.identities import Arrival, account_of, hash_identity, is_subject, login_of
from vskill_platform.store.people.sign_in_rule import issuer_rule, read_mode
from vskill_platform.worker_context import require_env

T = TypeVar("T")

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
KEEP_MS = 3_600_000
#: A token with an unknown key is a reason to read the keys again, no more often than this.
LOOK_AGAIN_MS = 60_000
#: How far the issuer's clock may be from ours.
SKEW_S = 60
MOST_KEYS = 100
MOST_GROUP = 200

_OVERAGE = (
    "{title} sent a pointer instead of your groups, because you are in too many: nobody can tell whether you may "
    "sign in. Its administrator must limit the groups that it sends to those assigned to this application."
)


class IssuerDocument(msgspec.Struct, frozen=True):
    """What an issuer's discovery document says."""

    issuer: str
    jwks_uri: str
    #: Empty where nobody signs in, as at issuers of CI jobs.
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class KeyDocument(msgspec.Struct, frozen=True):
    """The keys that an issuer signs with."""

    keys: tuple[dict[str, Any], ...]


class _IssuedTokens(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _IdToken(msgspec.Struct, frozen=True):
    """The claims that must be right."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    iat: float
    nonce: str
    azp: str | None = None
    nbf: float = 0


class TrustedIssuer:
    """What an issuer says about itself, and the claims that it signed."""

    def __init__(self, issuer: Issuer | CiIssuer) -> None:
        self.name = issuer.name
        self.title = issuer.shown
        self._address = issuer.issuer

    async def _discover(self, most_ms: int = KEEP_MS) -> IssuerDocument:
        url = f"{self._address.rstrip('/')}/.well-known/openid-configuration"
        known = await self._read(url, IssuerDocument, most_ms)
        if known.issuer != self._address:
            raise self._invalid(url, f"it calls itself {known.issuer[:200]!r}; configure exactly that issuer")
        named = (known.authorization_endpoint, known.token_endpoint, known.jwks_uri)
        for one in (*named, known.userinfo_endpoint, known.end_session_endpoint):
            parts = urlsplit(one)
            # TLS is not taken back: only an issuer on this machine is asked without.
            if one and (parts.scheme not in ("https", urlsplit(self._address).scheme) or not parts.netloc):
                raise self._invalid(url, f"{one[:200]!r} is no https address")
        return known

    async def _read(self, url: str, kind: type[T], most_ms: int) -> T:
        """A document that is at most so old."""
        env = require_env("kv")
        at, kept = env.kept.issuer_documents.get(url, (0, b""))
        now = env.kv.now()
        if not kept or now - at > most_ms:
            found = await self._ask(url, msgspec.Raw)
            if found is None:
                raise self._invalid(url, "it is not there, or no JSON")
            kept = bytes(found)
            env.kept.issuer_documents[url] = (now, kept)
        try:
            return read_json(kept, kind)
        except msgspec.DecodeError as error:
            raise self._invalid(url, str(error)) from None

    def _invalid(self, url: str, problem: str) -> InvalidInput:
        fix = "ask an admin of this registry to look at 'vskill-platform doctor'"
        return InvalidInput(f"{self.title} is not set up well: {url}: {problem}.", field="issuer", fix=fix)

    async def _ask(self, url: str, kind: type[T], **sent: Any) -> T | None:
        return await ask(self, url, kind, trusted=self._address, **sent)

    async def read_claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that this issuer signed; JoseError or ValueError where it did not."""
        known = await self._discover()
        key_id = str(jws.extract_compact(token.encode()).headers().get("kid", ""))
        keys = _import_keys(await self._read(known.jwks_uri, KeyDocument, KEEP_MS), key_id)
        if not keys:
            keys = _import_keys(await self._read(known.jwks_uri, KeyDocument, LOOK_AGAIN_MS), key_id)
        return _decode(token, keys)


class Oidc(TrustedIssuer):
    """One issuer that the operator named, for people."""

    def __init__(self, issuer: Issuer, settings: Settings) -> None:
        super().__init__(issuer)
        self._issuer = issuer
        self._settings = settings

    async def _discover(self, most_ms: int = KEEP_MS) -> IssuerDocument:
        known = await super()._discover(most_ms)
        if not (known.authorization_endpoint and known.token_endpoint):
            raise self._invalid(self._address, "it has no authorization_endpoint and token_endpoint")
        return known

    async def authorize_url(self, journey: Journey) -> str:
        asked = {
            "response_type": "code",
            "client_id": self._issuer.client_id,
            "redirect_uri": callback_url(self._settings, self.name),
            "scope": " ".join(self._issuer.scopes),
            "state": journey.state,
            "nonce": journey.nonce,
            "code_challenge": journey.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query((await self._discover()).authorization_endpoint, asked)

    async def sign_in(self, code: str, journey: Journey) -> User:
        known = await self._discover()
        granted = await self._exchange(known, code, journey)
        claims = await self._verify(granted.id_token, journey.nonce)
        wanted = {"preferred_username", "email", self._issuer.groups_claim, self._issuer.subject_claim}
        if known.userinfo_endpoint and granted.access_token and not wanted <= claims.keys():
            bearer = f"Bearer {granted.access_token}"
            more = await self._ask(known.userinfo_endpoint, dict[str, Any], authorization=bearer)
            if more is not None and more.get("sub") == claims["sub"]:
                claims = more | claims
        return await account_of(await self._arrival(claims, journey.account), _nothing_beside)

    async def sign_out_url(self) -> str:
        """Without a token of the person's, which would have to be kept: the issuer asks them whether they mean it."""
        end = (await self._discover()).end_session_endpoint
        return _with_query(end, {"client_id": self._issuer.client_id}) if end else ""

    async def check(self) -> None:
        """Read its documents anew. SourceUnavailable if it cannot be reached, InvalidInput if they are not valid."""
        known = await self._discover(0)
        if not _import_keys(await self._read(known.jwks_uri, KeyDocument, 0)):
            raise self._invalid(known.jwks_uri, "it has no public key that we can verify signatures with")

    # Who somebody is.

    async def _exchange(self, known: IssuerDocument, code: str, journey: Journey) -> _IssuedTokens:
        client, secret = self._issuer.client_id, self._issuer.client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback_url(self._settings, self.name),
            "code_verifier": journey.verifier,
        }
        authorization = ""
        if secret and "client_secret_basic" in known.token_endpoint_auth_methods_supported:
            # Each part is encoded as in a form (RFC 6749, 2.3.1).
            pair = (urlencode({"": one})[1:] for one in (client, secret))
            authorization = basic_auth(*pair)
        else:
            form |= {"client_id": client} | ({"client_secret": secret} if secret else {})
        granted = await self._ask(known.token_endpoint, _IssuedTokens, form=form, authorization=authorization)
        if granted is None:
            raise NotSignedIn(f"{self.title} did not accept the sign-in; start again.")
        return granted

    async def _verify(self, token: str, nonce: str) -> dict[str, Any]:
        """The claims of a token that this issuer signed for us, now, for this sign-in."""
        try:
            claims = await self.read_claims(token)
            said = msgspec.convert(claims, _IdToken)
        except (JoseError, ValueError, msgspec.ValidationError) as error:
            raise self._refuse(f"{type(error).__name__}: {error}") from None
        audience = (said.aud,) if isinstance(said.aud, str) else said.aud
        now = require_env("kv").kv.now() / 1000
        checks = {
            "another issuer made it": said.iss == self._issuer.issuer,
            "it is for another application": self._issuer.client_id in audience,
            "it was given to another application": said.azp == self._issuer.client_id
            or (said.azp is None and len(audience) == 1),
            "it belongs to another sign-in": said.nonce == nonce,
            "it has expired": now < said.exp + SKEW_S,
            "it is not valid yet": max(said.iat, said.nbf) <= now + SKEW_S,
            "it names nobody": is_subject(said.sub),
        }
        for problem, is_right in checks.items():
            if not is_right:
                raise self._refuse(problem)
        return claims

    def _refuse(self, problem: str) -> NotSignedIn:
        """People are told that it failed, the operator why."""
        require_env("log").log.warning("identity token refused", issuer=self.name, problem=problem[:200])
        return NotSignedIn(f"{self.title} sent a proof of who you are that is not valid; start again.")

    async def _arrival(self, claims: dict[str, Any], account: str | None) -> Arrival:
        issuer, subject = self._issuer.issuer, claims.get(self._issuer.subject_claim)
        if not is_subject(subject):
            raise self._refuse(f"the claim {self._issuer.subject_claim} names nobody")
        rule = issuer_rule(self._issuer, await read_mode())
        groups = self._groups(claims)
        has = {f"group {one}" for one in groups} | _domains(claims)
        named_by = next((one for one in rule.named if one in has), "")
        suffix = hash_identity(issuer, subject)[:8]
        link = LinkedIdentity(subject, _login(claims), require_env("kv").kv.now(), issuer, named_by, groups)
        is_admitted = rule.lets_everybody_in or bool(named_by)
        return Arrival(link, self.title, suffix, f"{self.name}-{suffix}", is_admitted, account)

    def _groups(self, claims: dict[str, Any]) -> tuple[str, ...]:
        """The person's groups; NotPermitted where the issuer sends a pointer instead of them, or too many."""
        claim = self._issuer.groups_claim
        pointers = claims.get("_claim_names")
        if isinstance(pointers, dict) and claim in pointers:
            raise NotPermitted(_OVERAGE.format(title=self.title))
        found = claims.get(claim, ())
        if isinstance(found, str):
            found = (found,)
        if not isinstance(found, list | tuple):
            return ()
        if len(found) > MOST_GROUPS:
            raise NotPermitted(f"{self.title} says that you are in more than {MOST_GROUPS} groups.")
        return tuple(one for one in found if isinstance(one, str) and 1 <= len(one) <= MOST_GROUP)


def _import_keys(document: KeyDocument, key_id: str = "") -> list[Key]:
    """Public keys for signatures, those of this id if one is given. Kinds that we do not know are left out."""
    found = []
    for raw in document.keys[:MOST_KEYS]:
        is_meant = raw.get("use", "sig") == "sig" and (not key_id or raw.get("kid") == key_id)
        if is_meant and raw.get("kty") in ("RSA", "EC", "OKP"):
            try:
                found.append(import_key(raw))
            except (JoseError, ValueError, TypeError, KeyError):
                continue
    return found


def _decode(token: str, keys: list[Key]) -> dict[str, Any]:
    """The claims, if one of the keys signed them."""
    problem: Exception = ValueError("no such key")
    for key in keys:
        try:
            return jwt.decode(token, key, algorithms=ALGORITHMS).claims
        except (JoseError, ValueError) as error:
            problem = error
        except RecursionError:
            problem = ValueError("its payload is nested too deeply")
    raise problem


def _login(claims: dict[str, Any]) -> str:
    """A name for an account, of what the issuer calls the person; it may be no valid one."""
    named = (claims.get(claim) for claim in ("preferred_username", "nickname", "email"))
    return login_of(next((one for one in named if isinstance(one, str) and one), ""))


def _domains(claims: dict[str, Any]) -> set[str]:
    """The domain of the person's e-mail address, if the issuer verified the address."""
    address = claims.get("email")
    is_verified = claims.get("email_verified") in (True, "true")
    if not is_verified or not isinstance(address, str) or address.count("@") != 1:
        return set()
    return {f"domain {address.partition('@')[2].lower()}"}


def _with_query(url: str, query: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


async def _nothing_beside(_account: str) -> tuple[()]:
    return ()
