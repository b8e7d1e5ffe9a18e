"""Nothing is declared for nobody: every setting is read, every field of a record is read, and every field of an API
answer or a stored record is filled from data.

It reads the syntax trees of the package, and knows no types: a field counts as read where any attribute of that name is
read, in code or in a template. So it can miss a field whose name another record has, and reports none that is in use.
Who fills a field is looked up call by call: one that every call leaves at its default or sets to the same constant
tells nobody anything.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tools.code_rules import imported_names, qualified_name
from tools.files import PRODUCT, module_name
from tools.problem import Problem

STRUCT = "msgspec.Struct"
ANSWER = "vskill_client.wire.base.Wire"
#: The method that fills an answer, and those inside it, from fields of a record that have the same names.
DERIVE = ".of"
SETTINGS = "vskill_platform.settings.Settings"
#: Where stored records are declared.
RECORDS = "vskill_platform.domain."

_WIRE = "the client reads the field"
_DONE = "says that it was done; whatever else is an error"
_ACCEPTED = "the client sends it, and what is asked is so anyway"
_FOUND = "a change of an upstream gives it by name, among what is different"
_CHANGES = "`publish` gives it by name, among the changes of its step"
_TOOLS = "the reference shows it"
_ASKED = "rules of the policy ask for it"
_WRITTEN = "the policy's text fills it"
_SENT = "the directory's request fills it"

#: Class and field, and why nothing of ours reads or fills it.
EXEMPT: Mapping[str, str] = {
    "SkillCard.github_stars": f"{_WIRE}; we do not count stars, and unknown is null",
    "SkillCard.alternate_repos": f"{_WIRE}; a skill has one repository here",
    "ClaimStarted.path": "the claimant's program reads which file to commit; it is the same for everybody",
    "StatsView.degraded": f"{_WIRE}; a count that failed is a 503, never a smaller number",
    "Tenant.role": f"{_WIRE}; an account owns its namespace",
    "Tenant.installation_id": f"{_WIRE}; there are no installations here",
    "InstallAnswer.ok": _DONE,
    "RevokedToken.revoked": _DONE,
    "SignedOut.signed_out": _DONE,
    "Up.status": "a process that answers is up",
    "Readiness.status": "one that is not ready answers with an error",
    "SkillQuery.force_install": _ACCEPTED,
    "Submission.published": _CHANGES,
    "Submission.published_version": _CHANGES,
    "Upstream.paused": _FOUND,
    "UpstreamState.good_at": _FOUND,
    "UpstreamState.listed": _FOUND,
    "UpstreamState.left_out": _FOUND,
    "StandardManifest.keywords": "the standard has it: its form is checked",
    "Submission.first_seen": "the pipeline learns it, and the next write holds it",
    "SearchQuery.highlighted_only": _ACCEPTED,
    "SearchQuery.non_suspicious_only": _ACCEPTED,
    "ListQuery.non_suspicious_only": _ACCEPTED,
    "ListQuery.dir": _ACCEPTED,
    "CallbackQuery.error_description": "GitHub sends it beside the error; its words are not shown",
    "CallbackQuery.error_uri": "GitHub sends it beside the error; its address is not shown",
    "Settings.ci_forges": "read with the settings, into `ci_issuers`",
    "Settings.sign_in_file": "read with the settings, into `issuers`",
    "Example.expect": "the example says what it shows; the test of the examples holds it to that",
    "LockFile.lock_version": "a file of another form is refused when it is decoded",
    "SettingFacts.accepts": _TOOLS,
    "TextRule.originally": _TOOLS,
    "Endpoint.shows": _TOOLS,
    "SkillFacts.languages": _ASKED,
    "SkillFacts.private": _ASKED,
    "OwnerFacts.vouched": _ASKED,
    "OwnerFacts.proven": _ASKED,
    "OwnerFacts.live_skills": _ASKED,
    "RuleText.when": _WRITTEN,
    "RuleText.then": _WRITTEN,
    "RuleText.say": _WRITTEN,
    "WaitText.wait": _WRITTEN,
    "PolicyText.extends": _WRITTEN,
    "PolicyText.rules": _WRITTEN,
    "Patch.operations": _SENT,
    "PatchOperation.op": _SENT,
}


@dataclass(frozen=True)
class Declared:
    """A class with the fields that it declares itself, each with its line."""

    path: str
    name: str
    bases: tuple[str, ...]
    fields: Mapping[str, int]
    #: By field, the classes that its type names.
    inside: Mapping[str, frozenset[str]]


@dataclass
class Seen:
    """What the code does with the fields of structs."""

    structs: dict[str, Declared] = field(default_factory=dict)
    #: Names of attributes that are read anywhere.
    read: set[str] = field(default_factory=set)
    #: Names that are read of something called `settings`, outside its own module.
    settings: set[str] = field(default_factory=set)
    #: Names of fields that are changed in a copy.
    replaced: set[str] = field(default_factory=set)
    #: By class and field, the constants that calls give it; None is a value that is computed.
    filled: dict[str, dict[str, set[str | None]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )

    def ancestors(self, name: str) -> Iterator[str]:
        """The class itself, then its bases, the nearest first."""
        yield name
        for base in self.structs[name].bases if name in self.structs else ():
            yield from self.ancestors(base)

    def fields(self, name: str) -> list[str]:
        """All fields in the order in which a call may give them."""
        chain = [one for one in self.ancestors(name) if one in self.structs]
        return [one for declared in reversed(chain) for one in self.structs[declared].fields]


def check_usage(contents: Mapping[str, str], exempt: Mapping[str, str] = EXEMPT) -> Iterator[Problem]:
    """Every setting and field that nothing uses, and every exemption that is not needed any more."""
    found = dict(_unused(_look(contents)))
    yield from (problem for name, problem in found.items() if name not in exempt)
    for name in exempt.keys() - found.keys():
        yield Problem("tools/usage.py", 1, f"exempts {name}, which is in use or gone: remove it")


def _unused(seen: Seen) -> Iterator[tuple[str, Problem]]:
    for name, struct in seen.structs.items():
        for one, line in struct.fields.items():
            if fault := _fault(seen, name, one):
                short = f"{name.rpartition('.')[2]}.{one}"
                yield short, Problem(struct.path, line, f"{short}: {fault}")


def _fault(seen: Seen, name: str, one: str) -> str:
    values = seen.filled[name][one]
    is_fixed = None not in values and len(values) < 2
    if ANSWER in seen.ancestors(name):
        return "no answer fills it from data: fill it, or delete it" if is_fixed else ""
    if name.startswith(RECORDS) and is_fixed and one not in seen.replaced:
        return "it always has the same value: fill it from data, or delete it"
    if name == SETTINGS:
        return "" if one in seen.settings else "no code reads this setting: read it, or delete it"
    return "" if one in seen.read else "no code reads it: read it, or delete it"


def _look(contents: Mapping[str, str]) -> Seen:
    seen, modules = Seen(), [Module(path, text) for path, text in contents.items() if _is_ours(path, ".py")]
    for module in modules:
        seen.structs.update((one.name, one) for one in _classes(module))
    seen.structs = {name: one for name, one in seen.structs.items() if STRUCT in seen.ancestors(name)}
    for module in modules:
        _look_at_reads(seen, module)
        _look_at_calls(seen, module)
    for path, text in contents.items():
        if _is_ours(path, ".html"):
            seen.read.update(re.findall(r"\.(\w+)", text))
    return seen


def _is_ours(path: str, ending: str) -> bool:
    return path.startswith(PRODUCT) and path.endswith(ending)


class Module:
    """A module's syntax, walked once: looking at every node of the package takes seconds."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.name = module_name(path)
        tree = ast.parse(text, filename=path)
        kinds = ast.Import | ast.ImportFrom | ast.Attribute | ast.Call
        self.nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        self.classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        #: What a name means here: what is imported, and the classes that are declared.
        self.names = {
            **imported_names(self.nodes),
            **{node.name: f"{self.name}.{node.name}" for node in self.classes},
        }


def _classes(module: Module) -> Iterator[Declared]:
    for node in module.classes:
        bases = tuple(filter(None, (qualified_name(base, module.names) for base in node.bases)))
        lines = {
            line.target.id: line
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }
        fields = {one: line.lineno for one, line in lines.items()}
        inside = {one: frozenset(_named(line.annotation, module)) for one, line in lines.items()}
        yield Declared(module.path, module.names[node.name], bases, fields, inside)


def _named(annotation: ast.expr, module: Module) -> Iterator[str]:
    for part in ast.walk(annotation):
        if isinstance(part, ast.Name) and part.id in module.names:
            yield module.names[part.id]


def _look_at_reads(seen: Seen, module: Module) -> None:
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            seen.read.add(node.attr)
            base = getattr(node.value, "attr", getattr(node.value, "id", ""))
            if base.lstrip("_") == "settings" and module.name != SETTINGS.rpartition(".")[0]:
                seen.settings.add(node.attr)


def _look_at_calls(seen: Seen, module: Module) -> None:
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        called = qualified_name(node.func, module.names)
        if called == "msgspec.structs.replace":
            seen.replaced.update(word.arg for word in node.keywords if word.arg)
        elif called and called.removesuffix(DERIVE) in seen.structs and called.endswith(DERIVE):
            _derive(seen, called.removesuffix(DERIVE), {word.arg for word in node.keywords})
        elif called in seen.structs:
            _fill(seen, called, node)


def _derive(seen: Seen, name: str | None, given: Collection[str | None] = ()) -> None:
    for base in seen.ancestors(name or ""):
        for one, inside in seen.structs[base].inside.items() if base in seen.structs else ():
            seen.filled[base][one].add(None)
            if one not in given:
                seen.read.add(one)
                for inner in inside - {base}:
                    _derive(seen, inner)


def _fill(seen: Seen, name: str, call: ast.Call) -> None:
    """Note what the call gives each field, in the class that declares it. What is unpacked may hold every field that is
    left; it is a copy where it fills those of a base."""
    left, unpacked = seen.fields(name), False
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            unpacked = True
            break
        _note(seen, name, left.pop(0), _constant(argument))
    for word in call.keywords:
        if word.arg is None:
            unpacked = True
        else:
            left.remove(word.arg)
            _note(seen, name, word.arg, _constant(word.value))
    for one in left:
        if not unpacked:
            _note(seen, name, one, "its default")
        elif one in seen.structs[name].fields:
            _note(seen, name, one, None)


def _note(seen: Seen, name: str, one: str, value: str | None) -> None:
    declared = next(base for base in seen.ancestors(name) if one in seen.structs[base].fields)
    seen.filled[declared][one].add(value)


def _constant(value: ast.expr) -> str | None:
    """The text of a value that is always the same: a literal, or a name in capitals."""
    text = ast.unparse(value)
    if re.fullmatch(r"(\w+\.)*[A-Z][A-Z0-9_]*(\.value)?", text):
        return text
    try:
        return repr(ast.literal_eval(value))
    except ValueError:
        return None
