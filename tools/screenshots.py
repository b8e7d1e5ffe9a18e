"""Pictures of the main pages, in both themes, on a desk and on a phone, for the documents: `make screenshots`.

A server of its own is filled with the bundled examples, so that the pictures show what a first start shows. They are
written to `docs/images/`, and each stays under a limit that a checkout and a slow line hardly notice.
"""

import base64
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tools.browsing import MISSING, Server, find_chromium, make_admin, open_browser, serving
from tools.files import ROOT

FOLDER = ROOT / "docs" / "images"
#: Of one of them.
MOST_PICTURE_BYTES = 150_000
QUALITY = 82
#: Width, height and how many pixels one of them is.
SIZES = {"desk": (1280, 860, 1.5), "phone": (390, 844, 2.0)}
THEMES = ("light", "dark")
#: What is waited for before a picture: relative times and charts.
SETTLE_MS = 400


def main() -> int:
    """Make all pictures; 1 where there is no browser, or they became too large."""
    program = find_chromium()
    if program is None:
        print(f"screenshots: {MISSING}", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as server,
        sync_playwright() as playwright,
    ):
        browser = open_browser(playwright, program)
        FOLDER.mkdir(parents=True, exist_ok=True)
        sizes = {path.name: path.stat().st_size for path in pictures(server, browser)}
        browser.close()
    total = sum(sizes.values()) / 1000
    print(f"screenshots: {len(sizes)} pictures, {total:.0f} KB, in {FOLDER.relative_to(ROOT)}")
    large = [name for name, size in sizes.items() if size >= MOST_PICTURE_BYTES]
    if large:
        limit = f"{MOST_PICTURE_BYTES / 1000:.0f} KB"
        print(f"screenshots: {limit} or more: {', '.join(large)}; lower QUALITY", file=sys.stderr)
    return 1 if large else 0


def pictures(server: Server, browser: Browser) -> Iterator[Path]:
    """Every page in every theme and size."""
    password = make_admin(server.data)
    places = _places(server)
    for theme in THEMES:
        for size, (width, height, scale) in SIZES.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                device_scale_factor=scale,
                color_scheme="dark" if theme == "dark" else "light",
                base_url=server.address,
            )
            page = context.new_page()
            for name, path in places.items():
                if path.startswith("/admin"):
                    _sign_in(page, password)
                yield _picture(page, path, FOLDER / f"{name}-{theme}-{size}.webp")
            context.close()


def _places(server: Server) -> dict[str, str]:
    """What is pictured; the submission is one that waits for a person, because its page has most to tell."""
    waiting = server.json("/api/v1/submissions?state=NEEDS_REVIEW")["submissions"]
    one = next(item for item in waiting if item["skillName"] == "mail-digest")["id"]
    return {
        "home": "/",
        "skills": "/skills",
        "skill": "/skills/vskill-harbour/data-skills/csv-cleaner",
        "submit": "/submit",
        "queue": "/queue",
        "submission": f"/submissions/{one}",
        "review": f"/admin/review/{one}",
    }


def _sign_in(page: Page, password: str) -> None:
    page.goto("/signin")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password", exact=True).fill(password)
    page.locator("main form button[type=submit]").first.click()
    page.wait_for_url("**/account")


def _picture(page: Page, path: str, target: Path) -> Path:
    """What a visitor sees without scrolling. WebP is a third of the size of PNG, and every browser shows it."""
    answer = page.goto(path)
    if answer is None or not answer.ok:
        raise RuntimeError(f"{path} answered {answer.status if answer else 'nothing'}")
    page.wait_for_timeout(SETTLE_MS)
    taken = page.context.new_cdp_session(page).send(
        "Page.captureScreenshot", {"format": "webp", "quality": QUALITY}
    )
    target.write_bytes(base64.b64decode(taken["data"]))
    return target


if __name__ == "__main__":
    sys.exit(main())
