"""From the path of a request to its endpoint, segment by segment: the cost does not grow with the number of routes.

The path is split at `/` before percent-decoding, so a name with a `/` in it (`a%2Fb`) is one segment. At each step a
fixed segment wins over a parameter, whatever the order of the table. Starlette's router does neither, and tries every
route in turn (docs/adr/0026-own-router.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, unquote

from starlette.types import Scope

from vskill_platform.web.routing import Endpoint

Match = tuple[Mapping[str, tuple[Endpoint, tuple[str, ...]]], tuple[str, ...]]


class PathTree:
    """All endpoints by path: one step of it, and the steps below."""

    def __init__(self, endpoints: Iterable[Endpoint] = ()) -> None:
        self.fixed: dict[str, PathTree] = {}
        #: A parameter: any one segment; each endpoint has its own name for it.
        self.any: PathTree | None = None
        #: By method, with the names of the parameters on the way.
        self.ends: dict[str, tuple[Endpoint, tuple[str, ...]]] = {}
        #: The same for a last part that takes all segments that are left (`{name:path}`).
        self.rests: dict[str, tuple[Endpoint, tuple[str, ...]]] = {}
        for endpoint in endpoints:
            self._add(endpoint)

    def find(self, segments: Sequence[str], at: int = 0, taken: tuple[str, ...] = ()) -> Match | None:
        """What answers at this path, by method, and the segments that its parameters matched."""
        if at == len(segments):
            return (self.ends, taken) if self.ends else None
        segment = segments[at]
        fixed = self.fixed.get(segment)
        match = None if fixed is None else fixed.find(segments, at + 1, taken)
        if match is None and self.any is not None and segment:
            match = self.any.find(segments, at + 1, (*taken, segment))
        if match is None and self.rests:
            match = (self.rests, (*taken, "/".join(segments[at:])))
        return match

    def _add(self, endpoint: Endpoint) -> None:
        node, names = self, []
        for part in endpoint.path.split("/")[1:]:
            if not part.startswith("{"):
                node = node.fixed.setdefault(part, PathTree())
                continue
            name, _, kind = part.strip("{}").partition(":")
            names.append(name)
            if kind == "path":
                node.rests.setdefault(endpoint.method, (endpoint, tuple(names)))
                return
            if node.any is None:
                node.any = PathTree()
            node = node.any
        if endpoint.method in node.ends:
            raise ValueError(f"two endpoints answer {endpoint.method} {endpoint.path}")
        node.ends[endpoint.method] = (endpoint, tuple(names))


def segments_of(scope: Scope) -> list[str]:
    """The path's segments, split first and then decoded."""
    raw = scope.get("raw_path")
    text = quote(scope["path"]) if raw is None else raw.decode("latin-1")
    parts: list[str] = text.split("/")[1:]
    return [unquote(part) for part in parts] if "%" in text else parts


def drop_extra_slashes(scope: Scope) -> None:
    """Read `//api/v1/skills` as `/api/v1/skills`: clients join a URL that ends in `/` with a path. The path itself is
    changed, so that no redirect repeats it as `//host`, which a browser would take for another site."""
    if scope["path"].startswith("//"):
        scope["path"] = "/" + scope["path"].lstrip("/")
        raw = scope.get("raw_path")
        if raw is not None:
            scope["raw_path"] = b"/" + raw.lstrip(b"/")
