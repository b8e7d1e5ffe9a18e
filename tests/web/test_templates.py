"""Every template of the product, whoever wrote it: it compiles, and holds nothing that the content policy forbids."""

import pytest

from vskill_platform.web.assets import FILES, static_address
from vskill_platform.web.render import TEMPLATES, code_spans, command_html, environment

NAMES = sorted(TEMPLATES)


@pytest.mark.parametrize("name", NAMES)
def test_it_compiles(name):
    environment().get_template(name)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_no_inline_script_or_style_and_nothing_that_needs_eval(name):
    """The policy has no 'unsafe-inline' and no 'unsafe-eval', so any of these would simply not work."""
    text = TEMPLATES[name].lower()
    for forbidden in (
        " style=",
        "<style",
        "javascript:",
        "hx-on",
        " onclick",
        " onsubmit",
        " onchange",
        " onload",
        'hx-vals="js:',
    ):
        assert forbidden not in text, f"{name} holds {forbidden!r}"
    scripts = text.split("<script")[1:]
    assert all(
        " src=" in one.split(">", 1)[0] and one.split(">", 1)[1].startswith("</script>") for one in scripts
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_for_nothing_outside_this_host(name):
    """Own typeface, own scripts, own pictures: no address of another host is ever loaded."""
    text = TEMPLATES[name]
    for attribute in ('src="http', "src='http", 'src="//', 'srcset="', "@import", 'action="http'):
        assert attribute not in text
    for link in text.split("<link ")[1:]:
        loads_nothing = any(f'rel="{kind}"' in link for kind in ("alternate", "next", "canonical", "search"))
        assert 'href="{{ static(' in link.split(">")[0] or loads_nothing


@pytest.mark.parametrize("name", NAMES)
def test_only_known_texts_are_marked_safe(name):
    """`| safe` stands only behind words of the template's own; `Markup` comes from the sanitiser alone."""
    for before in TEMPLATES[name].split("| safe")[:-1]:
        said = before.rstrip().rpartition("{{")[2].strip()
        assert said.startswith(("'", "SHAPES[")), f"{name}: {said[:60]}"


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".css")])
def test_stylesheets_load_nothing_but_the_own_typeface(name):
    text = FILES[name].data.decode()
    assert "@import" not in text
    own = f'url("{static_address("vendor/inter-latin.woff2")}")'
    assert text.count("url(") == text.count(own)


#: Puts fragments of our own pages, as the server rendered and escaped them, into the page.
SHOWS_FRAGMENTS = {"live.js"}


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".js") and "vendor/" not in name])
def test_own_scripts_never_build_code_or_html(name):
    text = FILES[name].data.decode()
    html = () if name in SHOWS_FRAGMENTS else ("innerHTML", "outerHTML", "insertAdjacentHTML")
    for forbidden in ("eval(", "new Function", "document.write", *html):
        assert forbidden not in text, f"{name} holds {forbidden}"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("plain", [("plain", False)]),
        ("use `q` and `limit`", [("use ", False), ("q", True), (" and ", False), ("limit", True)]),
        ("`q`", [("q", True)]),
        ("one ` alone", [("one ` alone", False)]),
        ("`q` and ` alone", [("q", True), (" and ` alone", False)]),
    ],
)
def test_what_stands_between_backticks_is_code(text, pieces):
    assert code_spans(text) == pieces


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a b", "<span>a</span> <span>b</span>"),
        ("curl https://a.dev/x", "<span>curl</span> <span>https://</span><span>a.dev/</span><span>x</span>"),
        ("a/ \\\n  /b", "<span>a/</span> <span>\\</span>\n  <span>/</span><span>b</span>"),
        ("<b>'&", "<span>&lt;b&gt;&#39;&amp;</span>"),
        ("", ""),
    ],
)
def test_a_command_ends_its_lines_at_spaces_and_behind_slashes(text, html):
    assert command_html(text) == html
