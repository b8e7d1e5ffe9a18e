"""Reads a page the way a browser does, as far as tests need it: elements, texts, and whatever could run."""

from html.parser import HTMLParser

#: Elements that load or run something, or change where the page's own links lead.
RUNS = frozenset(
    {"iframe", "object", "embed", "style", "base", "applet", "frame", "math", "template", "video", "audio"}
)
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)


class Page(HTMLParser):
    """All elements with their attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self._in_command = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        # A command is one text, whatever its pieces.
        if "command__text" in self.elements[-1][1].get("class", "").split():
            self._in_command = True
            self.texts.append("")

    def handle_data(self, data):
        if self._in_command:
            self.texts[-1] += data
        elif data.strip():
            self.texts.append(data)

    def handle_endtag(self, tag):
        self._in_command = self._in_command and tag != "code"

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def links(self) -> list[str]:
        return [one["href"] for one in self.all("a") if "href" in one]

    def has_class(self, name: str) -> bool:
        return any(name in attributes.get("class", "").split() for _, attributes in self.elements)


def what_could_run(text: str) -> list[str]:
    """Everything in a page that a strict page does not have: handlers, inline code, styles, foreign addresses."""
    found = []
    for tag, attributes in Page(text).elements:
        if tag in RUNS:
            found.append(f"<{tag}>")
        if tag == "script" and not attributes.get("src", "").startswith("/static/"):
            found.append("<script> that is not ours")
        for name, value in attributes.items():
            if name.startswith("on") or name in {"style", "srcdoc", "formaction", "ping", "background"}:
                found.append(f"<{tag} {name}>")
            if name in {"src", "srcset", "data", "poster", "action"} and not value.startswith("/"):
                found.append(f"<{tag} {name}={value[:60]!r}>")
            if name == "href" and not _is_harmless(value):
                found.append(f"<{tag} href={value[:60]!r}>")
            if name.startswith(("hx-on", "data-hx-on")) or (name.startswith("hx-") and "js:" in value):
                found.append(f"<{tag} {name}>")
    return found


def _is_harmless(href: str) -> bool:
    return href.startswith(("/", "#", "?", "http://", "https://", "mailto:")) and not href.startswith("//")
