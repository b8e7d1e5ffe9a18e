"""Markdown to HTML that is safe to put into a page, for foreign text (a skill's SKILL.md) and for our own documents.

Two defences, each sufficient: markdown-it shows HTML in the text as text, and nh3 keeps only the elements and
attributes that are listed here. The page loads nothing: an image becomes a link to itself. Text beyond the limit is
left out, and the result says so.
"""

import asyncio
import posixpath
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

#: Characters that are rendered. The whole text is in the file viewer.
MOST_CHARACTERS = 64_000
#: Longer texts are rendered in a thread.
AT_ONCE_CHARACTERS = 8_000
#: Depth of lists and quotes; deeper ones are shown flat.
MOST_NESTING = 20
#: The longest run of one character; prose, fences, tables and rules need fewer.
MOST_REPEATED = 1_000
MARKER = "---"

_SCHEMES = {"http", "https", "mailto"}
_REL = "noopener nofollow ugc"
_TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "pre", "code", "em", "strong", "s"),
    *("ul", "ol", "li", "a", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "th": {"scope"},
    # So that the keyboard reaches what scrolls.
    "pre": {"tabindex"},
    "div": {"tabindex"},
}
_CLASSES = {
    "div": {"table-scroll"},
    "a": {"image-link"},
    "th": {"right", "center"},
    "td": {"right", "center"},
}


class Style(msgspec.Struct, frozen=True):
    """How one kind of text is rendered."""

    #: How many levels headings go down: the page has its own above them.
    shift: int = 0
    #: Where relative links lead, ending in `/`; empty: they are text.
    base: str = ""
    #: The folder of the text itself below that.
    folder: str = ""
    #: Headings can be linked to, and links to headings of the text work.
    anchors: bool = False
    #: Before each heading's name, so that a text cannot take a name that the page has.
    prefix: str = ""
    #: The places below the base that exist, where only links to those are made.
    known: frozenset[str] | None = None


class TextHeading(msgspec.Struct, frozen=True):
    """A heading of a text that can be linked to."""

    #: 1 to 6, as the text has it.
    level: int
    text: str
    anchor: str


class Rendered(msgspec.Struct, frozen=True):
    """HTML that may be put into a page as it is."""

    html: Markup
    #: Where the style has anchors.
    headings: tuple[TextHeading, ...] = ()
    #: The text was longer than what is shown.
    cut: bool = False


@lru_cache(maxsize=256)
def render_markdown(text: str, style: Style) -> Rendered:
    """Render it; cached, because the same text gives the same HTML."""
    shown = text[:MOST_CHARACTERS]
    env: dict[str, Any] = {"style": style}
    parser = _parser()
    tokens = parser.parse(_tame(shown), env)
    _close_gaps(tokens)
    html = parser.renderer.render(tokens, parser.options, env)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={**_ATTRIBUTES, **({f"h{n}": {"id"} for n in range(1, 7)} if style.anchors else {})},
        allowed_classes=_CLASSES,
        url_schemes=_SCHEMES,
        link_rel=_REL,
    )
    found = tuple(env.get("headings", ()))
    return Rendered(Markup(clean), found, len(shown) < len(text))  # noqa: S704 - sanitised on the line above


def body_of(text: str) -> str:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != MARKER:
        return text
    ends = (number for number, line in enumerate(lines[1:], 1) if line.rstrip() == MARKER)
    end = next(ends, None)
    return text if end is None else "\n".join(lines[end + 1 :])


def _tame(text: str) -> str:
    """Truncate runs of one character, the only thing that makes the parser slow."""
    parts: list[str] = []
    run, before = 0, ""
    for char in text:
        run = run + 1 if char == before else 1
        before = char
        if run <= MOST_REPEATED:
            parts.append(char)
    return "".join(parts)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_NESTING}, renderer_cls=_Renderer)
    return made.enable("table").enable("strikethrough")


class _Renderer(RendererHTML):
    """What differs from plain CommonMark: headings, links, images and tables."""

    def heading_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        style: Style = env["style"]
        tag = _shift_heading(tokens[at].tag, style)
        if not style.anchors:
            return f"<{tag}>"
        anchor = _anchor(tokens[at + 1].content, env)
        words = self.renderInlineAsText(tokens[at + 1].children or [], options, env)
        env.setdefault("headings", []).append(TextHeading(int(tokens[at].tag[1]), words, anchor))
        return f'<{tag} id="{_escape(anchor)}">'

    def heading_close(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return f"</{_shift_heading(tokens[at].tag, env['style'])}>\n"

    def link_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        href = _target(str(tokens[at].attrs.get("href", "")), env["style"])
        return f'<a href="{_escape(href)}">' if href else "<a>"

    def image(self, tokens: Sequence[Token], at: int, options: Any, env: MutableMapping[str, Any]) -> str:
        """A link instead: the page loads no image, and the reader decides whether to see it."""
        token = tokens[at]
        href = _target(str(token.attrs.get("src", "")), env["style"])
        words = self.renderInlineAsText(token.children or [], options, env) or "no description"
        text = _escape(f"Image: {words}")
        return f'<a class="image-link" href="{_escape(href)}">{text}</a>' if href else text

    def table_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return '<div class="table-scroll" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return "</table></div>\n"

    def fence(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return super().fence(tokens, at, options, env).replace("<pre>", '<pre tabindex="0">', 1)

    def code_block(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return super().code_block(tokens, at, options, env).replace("<pre>", '<pre tabindex="0">', 1)

    def th_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return f'<th scope="col"{_alignment(tokens[at])}>'

    def td_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        return f"<td{_alignment(tokens[at])}>"


def _close_gaps(tokens: Sequence[Token]) -> None:
    """Make headings go down one level at a time, whatever levels the text skips, for screen readers."""
    above: list[tuple[int, str]] = []
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
            while above and above[-1][0] >= level:
                above.pop()
            above.append((level, f"h{len(above) + 1}"))
        if token.type in ("heading_open", "heading_close"):
            token.tag = above[-1][1]


def _shift_heading(tag: str, style: Style) -> str:
    return f"h{min(6, int(tag[1]) + style.shift)}"


def _alignment(token: Token) -> str:
    """The alignment as a class: the parser writes a style attribute, which our pages do not allow."""
    aligned = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f' class="{aligned}"' if aligned in ("right", "center") else ""


def _anchor(words: str, env: dict[str, Any]) -> str:
    """A heading's id, made as code hosts do, each unique."""
    kept = "".join(c for c in words.casefold() if c.isalnum() or c in " -_")
    name = env["style"].prefix + (kept.strip().replace(" ", "-") or "section")
    seen: dict[str, int] = env.setdefault("anchors", {})
    seen[name] = seen.get(name, -1) + 1
    return name if seen[name] == 0 else f"{name}-{seen[name]}"


def _target(href: str, style: Style) -> str:
    """A link's target: an allowed URL, a place below the base, or empty."""
    try:
        parts = urlsplit(href)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc:
        return href if parts.scheme.lower() in _SCHEMES else ""
    if not parts.path:
        return f"#{style.prefix}{parts.fragment}" if style.anchors and parts.fragment else ""
    return _below(unquote(parts.path), parts.fragment, style)


def _below(path: str, fragment: str, style: Style) -> str:
    if not style.base or path.startswith("/"):
        return ""
    joined = posixpath.normpath(posixpath.join(style.folder, path))
    if joined.startswith("..") or joined == "." or (style.known is not None and joined not in style.known):
        return ""
    return style.base + quote(joined) + (f"#{quote(fragment)}" if fragment and style.anchors else "")


def _escape(text: str) -> str:
    return nh3.clean_text(text) if text else ""


async def render_aside(text: str, style: Style) -> Rendered:
    """The same in a thread if it may take more than a few milliseconds, to not block other requests."""
    if len(text) <= AT_ONCE_CHARACTERS:
        return render_markdown(text, style)
    return await asyncio.to_thread(render_markdown, text, style)
