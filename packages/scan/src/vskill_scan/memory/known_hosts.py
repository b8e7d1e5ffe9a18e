"""Hosts that everybody installs from or that cannot be anybody's: package indexes, code hosts, vendors of tools and
models, and names that are reserved for examples. An install step that names one of them tells nothing."""

import re2

#: Names by their ending. Each stands for everything below it too, so those below which anybody may have a name (pages,
#: buckets, functions) are not among them.
_NAMES = {
    "com": (
        "amazon anaconda android anthropic apple atlassian aws.amazon azure bootstrapcdn "
        "canonical cdnjs claude clawdhub clawhub cloudflare cohere cursor datadoghq deepseek deno "
        "digitalocean discord docker example facebook fb figma git-scm "
        "gitea gitee github githubassets githubusercontent gitlab google googleapis grafana "
        "groq gstatic hashicorp heroku icloud instagram java jetbrains jquery linkedin live medium "
        "microsoft mongodb mysql netlify nodesource notion npmjs office ollama openai paypal "
        "powershellgallery reddit redhat render replicate sendgrid slack spotify stackexchange stackoverflow "
        "stripe supabase tailscale trello twilio twitter ubuntu unpkg vercel vimeo visualstudio whatsapp "
        "withgoogle x yarnpkg youtube"
    ),
    "org": (
        "alpinelinux anaconda apache archive archlinux bitbucket centos chocolatey chromium codeberg "
        "conda-forge cran.r-project creativecommons debian eclipse elixir-lang emacs example fedoraproject "
        "ffmpeg flathub freedesktop getcomposer gnu golang gradle hackage.haskell haskell ietf imagemagick "
        "json-schema julialang kernel kotlinlang macports maven mozilla nginx nixos nodejs npmjs nuget "
        "openjdk opensource openssl opensuse packagist postgresql pypi python pythonhosted r-project "
        "rfc-editor ruby-lang rubygems rust-lang scala-lang schema semver spdx sqlite telegram videolan vim "
        "w3 wikimedia wikipedia yaml"
    ),
    "io": (
        "agentskills conda crates docker fly gcr ghcr jsr k8s kubernetes modelcontextprotocol "
        "pnpm podman quay redis sdkman sentry shields snapcraft terraform toml"
    ),
    "ai": "claude clawhub lmstudio mistral ollama openclaw openrouter perplexity together x",
    "dev": "go pkg.go playwright puppeteer selenium zed",
    "net": "adoptium atlassian dot example jsdelivr launchpad php sourceforge",
    "sh": "astral brew bun cursor esm helm scoop skills volta",
    "app": "linear",
    "co": "elastic hf huggingface",
    "bot": "clawd",
    "gg": "discord",
    "gle": "goo",
    "ht": "sr",
    "land": "deno",
    "ms": "aka",
    "pm": "hex",
    "rs": "rustup",
    "se": "curl",
    "so": "notion",
    "us": "zoom",
}
_KNOWN = frozenset(f"{name}.{ending}" for ending, names in _NAMES.items() for name in names.split())
#: Reserved for documents, tests and machines nearby.
_NOWHERE = frozenset({"example", "test", "invalid", "localhost", "local", "internal", "lan", "home"})
_NEARBY = re2.compile(r"(?:10|127|0|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.")
#: What stands where the reader's own host goes.
_PLACEHOLDER = re2.compile(
    r"(?:^|[.-])(?:your|my|example|company|domain|host|hostname|server|myserver|mycompany)(?:$|[.-])"
)


def is_known_host(host: str) -> bool:
    """Whether a host tells nothing: known, reserved, nearby, or not one host."""
    name = host.lower().rstrip(".").partition(":")[0]
    if "*" in name or " " in name or "." not in name or _NEARBY.match(name) or _PLACEHOLDER.search(name):
        return True
    parts = name.split(".")
    return parts[-1] in _NOWHERE or any(".".join(parts[at:]) in _KNOWN for at in range(len(parts)))
