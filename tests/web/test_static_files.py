"""Static files: kept for ever under their hash, never a way into the file system, and vendored ones as recorded."""

import gzip
import hashlib
import json

import pytest

from tests.support.site import open_site
from vskill_platform.web.assets import FILES, FOLDER, static_address

pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(tmp_path):
    async with open_site("memory", tmp_path) as opened:
        yield opened


async def test_a_file_is_kept_for_ever_under_its_hash(site):
    response = await site.get(static_address("app.css"))
    assert response.status_code == 200
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-type"] == "text/css; charset=utf-8"
    assert response.content == FILES["app.css"].data


async def test_a_stylesheet_names_the_typeface_by_an_address_that_is_kept_for_ever(site):
    font = await site.get(static_address("vendor/inter-latin.woff2"))
    assert font.content == (FOLDER / "vendor/inter-latin.woff2").read_bytes()
    assert (font.headers["content-type"], font.headers["cache-control"]) == (
        "font/woff2",
        "public, max-age=31536000, immutable",
    )
    style = (await site.get(static_address("app.css"))).text
    assert f'url("{static_address("vendor/inter-latin.woff2")}")' in style
    assert "static:" not in style


async def test_an_old_hash_gets_the_present_file_but_may_not_keep_it(site):
    response = await site.get("/static/000000000000/app.css")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-cache"


async def test_what_is_sent_compressed_is_the_same_file(site):
    assert all(gzip.decompress(one.packed) == one.data for one in FILES.values())
    plain = await site.get(static_address("app.js"), headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize(
    "name",
    [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/%2e%2e/settings.py",
        "vendor/../../render.py",
        "vendor%2f..%2f..%2frender.py",
        "....//app.css",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "app.css%00.js",
        "vendor",
        "vendor/VENDORED.json",
        "",
    ],
)
async def test_no_path_reaches_the_file_system(site, name):
    response = await site.client.get(f"/static/x/{name}")
    assert response.status_code == 404, response.text[:200]
    assert b"vskill_platform" not in response.content
    assert b"root:" not in response.content


def test_vendored_files_are_the_recorded_bytes_and_nothing_else_is_vendored():
    """A changed byte of somebody else's script must be noticed, and so must one without its licence."""
    recorded = json.loads((FOLDER / "vendor" / "VENDORED.json").read_text())
    named = {name: facts["sha256"] for package in recorded for name, facts in package["files"].items()}
    present = {path.name for path in (FOLDER / "vendor").iterdir()} - {"VENDORED.json"}
    assert set(named) == present
    for name, expected in named.items():
        assert hashlib.sha256((FOLDER / "vendor" / name).read_bytes()).hexdigest() == expected, name
    for package in recorded:
        assert any("LICENSE" in name for name in package["files"])
        assert package["version"]
        assert len(package["packageSha256"]) == 64


def test_vendored_htmx_is_the_pinned_version():
    assert b"4.0.0" in (FOLDER / "vendor" / "htmx.min.js").read_bytes()
