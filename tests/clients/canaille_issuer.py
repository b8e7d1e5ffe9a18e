"""Runs in the environment of Canaille, which the product does not see: a whole identity provider on loopback, with one
application, the registry, and one person. It pushes its people there by SCIM, whose token it gets as its own.

It prints the person's id and then listens. Each line that comes in names what is to become of somebody: `lock NAME`,
`unlock NAME`, or `add NAME ADDRESS`; `done` and the person's id answer it.
"""

import datetime as dt
import sys
from threading import Thread

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

folder, port, directory, token, back = sys.argv[1:]
key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
now = dt.datetime.now(dt.UTC)
app = create_app(
    {
        "SECRET_KEY": "a secret of this test",
        "SERVER_NAME": f"127.0.0.1:{port}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"DATABASE": "sql", "SMTP": None},
        "CANAILLE_SQL": {"DATABASE_URI": f"sqlite:///{folder}/canaille.sqlite"},
        "CANAILLE_OIDC": {
            "ACTIVE_JWKS": [key.as_dict(private=True)],
            # The subject is what SCIM sends as `externalId`.
            "USERINFO_MAPPING": {
                "SUB": "{{ user.id }}",
                "PREFERRED_USERNAME": "{{ user.user_name }}",
                "EMAIL": "{{ user.preferred_email }}",
            },
        },
        "CANAILLE_SCIM": {"ENABLE_CLIENT": True},
    },
    init_backend=True,
)


def add(name: str, address: str) -> str:
    made = models.User(
        user_name=name, family_name=name, formatted_name=name, emails=[address], password="a long password"
    )
    Backend.instance.save(made)
    return str(made.id)


def lock(name: str, at: dt.datetime | None) -> str:
    found = Backend.instance.get(models.User, user_name=name)
    found.lock_date = at
    Backend.instance.save(found)
    return str(found.id)


with app.app_context(), Backend.instance.session():
    registry = models.Client(
        client_id="the-registry",
        client_secret="a-secret-without-anything-to-encode",
        client_name="registry",
        client_uri=directory,
        redirect_uris=[back],
        grant_types=["authorization_code"],
        response_types=["code"],
        scope=["openid", "profile", "email", "groups"],
        token_endpoint_auth_method="client_secret_basic",
    )
    Backend.instance.save(registry)
    registry.audience = [registry]
    Backend.instance.save(registry)
    shown = models.Token(
        token_id="scim",
        access_token=token,
        audience=[registry],
        client=registry,
        scope=["openid"],
        issue_date=now,
        lifetime=86_400,
    )
    Backend.instance.save(shown)
    server = make_server("127.0.0.1", int(port), app, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    print("listening", flush=True)
for line in sys.stdin:
    verb, name, *rest = line.split()
    with app.app_context(), Backend.instance.session():
        if verb == "add":
            told = add(name, *rest)
        else:
            told = lock(name, now - dt.timedelta(minutes=1) if verb == "lock" else None)
    print("done", told, flush=True)
