"""Foreign Markdown becomes HTML that cannot run, load or leave, and no text keeps the renderer busy."""

import pytest

from tests.support.html import Page, what_could_run
from vskill_platform.web.drawing.markdown import (
    MOST_CHARACTERS,
    Style,
    body_of,
    render_aside,
    render_markdown,
)

STYLE = Style(shift=2, base="/skills/a/b/c/files/")

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<style>*{background:url(//evil)}</style>",
    "<base href='//evil/'>",
    "<form action='//evil'><input name=q></form>",
    "<a href='javascript:alert(1)'>x</a>",
    "<div hx-get='/admin' hx-trigger='load'></div>",
    "<input autofocus onfocus=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/x)",
    "[x](/admin/approve)",
    "[x](../../../admin)",
    '[x](a"onmouseover="alert(1))',
    "[x](<a onmouseover=alert(1)>)",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/track.png)",
    '![x" onerror="alert(1)](y)',
    '![x](y "t\\" onerror=\\"alert(1)")',
    '<https://evil.example/"onmouseover=alert(1)>',
    "<javascript:alert(1)>",
    "```html\n<script>alert(1)</script>\n```",
    '``` "onmouseover=alert(1)\nx\n```',
    "`<script>alert(1)</script>`",
    "# <img src=x onerror=alert(1)>",
    "| <script>alert(1)</script> |\n|---|\n| <img src=x onerror=alert(1)> |",
    "[x]: javascript:alert(1)\n\n[x]",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "\u202ereversed\u202c",
    "\x00<script>alert(1)</script>",
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("anchors", [False, True])
def test_an_attack_is_inert(attack, anchors):
    html = str(render_markdown(attack, Style(shift=2, base="/files/", anchors=anchors)).html)
    assert what_could_run(html) == []
    page = Page(html)
    assert page.all("img") == []
    assert page.all("script") == []
    assert page.all("input") == []
    for link in page.links:
        assert link.startswith(("/files/", "https://", "#")), link


def test_ordinary_markdown_is_rendered():
    text = "# Title\n\nSome *words* and `code`.\n\n- one\n- two\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
    html = str(render_markdown(text, STYLE).html)
    for expected in (
        "<h3>Title</h3>",
        "<em>words</em>",
        "<code>code</code>",
        "<li>one</li>",
        '<td class="right">2</td>',
    ):
        assert expected in html


def test_headings_go_below_those_of_the_page_and_never_beyond_the_last():
    html = str(render_markdown("\n\n".join(f"{'#' * level} {level}" for level in range(1, 7)), STYLE).html)
    assert "<h3>1</h3>" in html
    assert "<h6>4</h6>\n<h6>5</h6>\n<h6>6</h6>" in html


def test_a_relative_link_leads_to_the_file_viewer_and_cannot_leave_it():
    html = str(render_markdown("[a](refs/one two.md) [b](./x.py) [c](../up) [d](<refs/é.md>)", STYLE).html)
    links = Page(html).links
    assert "/skills/a/b/c/files/x.py" in links
    assert "/skills/a/b/c/files/refs/%C3%A9.md" in links
    assert all(link.startswith("/skills/a/b/c/files/") for link in links)


def test_every_link_says_that_we_do_not_vouch_for_it():
    html = str(render_markdown("[a](https://example.org) ![b](https://example.org/p.png)", STYLE).html)
    assert [one["rel"] for one in Page(html).all("a")] == ["noopener nofollow ugc"] * 2


def test_an_image_is_a_link_and_loads_nothing():
    html = str(render_markdown("![a chart](https://example.org/p.png)", STYLE).html)
    assert "<img" not in html
    assert "Image: a chart" in html


def test_a_long_text_is_cut_and_the_result_says_so():
    shown = render_markdown("word " * MOST_CHARACTERS, STYLE)
    assert shown.cut
    assert len(shown.html) < MOST_CHARACTERS * 2
    assert not render_markdown("short", STYLE).cut


def busy(size: int) -> dict[str, str]:
    """Texts of about this size that a renderer could lose itself in."""
    steps = int((2 * size) ** 0.5)
    return {
        "brackets": "[" * size,
        "emphasis": "*a_ " * (size // 4),
        "backticks": "".join("`" * n + " " for n in range(1, steps)),
        "quotes": ">" * size,
        "nested quotes": "> " * (size // 160) + "a",
        "lists": "\n".join(" " * n + "- a" for n in range(steps)),
        "open links": "[a](" * (size // 4),
        "open images": "![[" * (size // 3),
        "definitions": "\n".join(f"[a{n}]: b" for n in range(size // 9)),
        "table": "|a" * (size // 4) + "\n" + "|-" * (size // 4),
        "rows": "|a|b|\n|-|-|\n" + "|x|y|\n" * (size // 6),
        "autolinks": "<http:" * (size // 6),
        "tags": "<a " * (size // 3),
        "list items": "* * * * * a\n" * (size // 12),
        "escapes": "\\" * size,
    }


@pytest.mark.parametrize("kind", sorted(busy(0)))
def test_no_text_keeps_the_renderer_busy(stopwatch, kind):
    """Whatever it is made of, four times the text takes about four times as long, where squared would be sixteen."""

    def rendering_s(text):
        began = stopwatch()
        render_markdown(text, Style(shift=1))
        return stopwatch() - began

    small, large = (rendering_s(busy(size)[kind]) for size in (MOST_CHARACTERS // 4, MOST_CHARACTERS))
    assert large < 10 * small + 0.2


@pytest.mark.anyio
async def test_a_long_text_is_rendered_beside_the_event_loop():
    text = "Some words and a [link](x.md).\n\n" * 500
    assert (await render_aside(text, STYLE)).html == render_markdown(text, STYLE).html


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\nname: a\n---\n# b", "# b"),
        ("\ufeff---\nname: a\n---\n# b", "# b"),
        ("---\r\nname: a\r\n---\r\n# b", "# b"),
        ("# no front matter", "# no front matter"),
        ("---\nnever closed", "---\nnever closed"),
        ("", ""),
    ],
)
def test_the_front_matter_is_not_part_of_the_body(text, body):
    assert body_of(text) == body


def test_headings_go_down_one_level_at_a_time():
    """What a text skips is closed, and what stands beside each other stays beside each other."""
    html = str(render_markdown("### a\n\n# b\n\n#### c\n\n#### d\n\n## e", Style(shift=2)).html)
    assert [html[at + 1 : at + 3] for at in range(len(html)) if html.startswith("<h", at)] == [
        "h3",
        "h3",
        "h4",
        "h4",
        "h4",
    ]


def test_what_scrolls_is_reached_by_the_keyboard():
    html = str(render_markdown("```sh\nx\n```\n\n    y\n\n| a |\n|---|\n| 1 |", Style()).html)
    assert html.count('tabindex="0"') == 3
