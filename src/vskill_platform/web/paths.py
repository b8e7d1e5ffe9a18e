"""From the path of a request to its endpoint, segment by segment: what a look costs does not grow with the number
of routes.

The path is cut where the client wrote `/`, before its percent-encoding is taken off, so a name with a `/` in it
(`a%2Fb`) is one segment. At each step a fixed segment goes before one that matches anything, whatever the order of
the table. Starlette's router does neither, and tries every route in turn (docs/adr/0026-own-router.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote, unquote

from starlette.types import Scope


class Declared(Protocol):
    """What has a method and a path."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...


E = TypeVar("E", bound=Declared)


class PathStep(Generic[E]):
    """One step of a path."""

    def __init__(self) -> None:
        self.fixed: dict[str, PathStep[E]] = {}
        #: Any one segment; each endpoint knows by which name.
        self.any: PathStep[E] | None = None
        #: By method, with the names of what matched anything on the way.
        self.ends: dict[str, tuple[E, tuple[str, ...]]] = {}
        #: The same for a last part that takes all segments that are left (`{name:path}`).
        self.rests: dict[str, tuple[E, tuple[str, ...]]] = {}


Match = tuple[Mapping[str, tuple[E, tuple[str, ...]]], tuple[str, ...]]


class Tree(Generic[E]):
    """All endpoints by path."""

    def __init__(self, endpoints: Iterable[E]) -> None:
        self._root: PathStep[E] = PathStep()
        for endpoint in endpoints:
            self._add(endpoint)

    def find(self, segments: Sequence[str]) -> Match[E] | None:
        """What answers at this path, by method, and the segments that its parameters matched."""
        return _find(self._root, segments, 0, ())

    def _add(self, endpoint: E) -> None:
        node, names = self._root, []
        for part in endpoint.path.split("/")[1:]:
            if not part.startswith("{"):
                if part not in node.fixed:
                    node.fixed[part] = PathStep()
                node = node.fixed[part]
                continue
            name, _, kind = part.strip("{}").partition(":")
            names.append(name)
            if kind == "path":
                node.rests.setdefault(endpoint.method, (endpoint, tuple(names)))
                return
            if node.any is None:
                node.any = PathStep()
            node = node.any
        if endpoint.method in node.ends:
            raise ValueError(f"two endpoints answer {endpoint.method} {endpoint.path}")
        node.ends[endpoint.method] = (endpoint, tuple(names))


def _find(node: PathStep[E], segments: Sequence[str], at: int, taken: tuple[str, ...]) -> Match[E] | None:
    if at == len(segments):
        return (node.ends, taken) if node.ends else None
    segment = segments[at]
    fixed = node.fixed.get(segment)
    if fixed is not None:
        found = _find(fixed, segments, at + 1, taken)
        if found is not None:
            return found
    if node.any is not None and segment:
        found = _find(node.any, segments, at + 1, (*taken, segment))
        if found is not None:
            return found
    return (node.rests, (*taken, "/".join(segments[at:]))) if node.rests else None


def segments_of(scope: Scope) -> list[str]:
    """The path's segments, cut first and decoded then."""
    raw = scope.get("raw_path")
    text = quote(scope["path"]) if raw is None else raw.decode("latin-1")
    parts: list[str] = text.split("/")[1:]
    return [unquote(part) for part in parts] if "%" in text else parts


def drop_extra_slashes(scope: Scope) -> None:
    """Read `//api/v1/skills` as `/api/v1/skills`: clients put an address that ends in `/` before a path. The path
    itself is changed, so that nothing repeats it as `//host` to a browser, which would take that for another site."""
    if scope["path"].startswith("//"):
        scope["path"] = "/" + scope["path"].lstrip("/")
        raw = scope.get("raw_path")
        if raw is not None:
            scope["raw_path"] = b"/" + raw.lstrip(b"/")
