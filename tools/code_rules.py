"""House rules for the product's code, and three for the tests', that a linter's configuration cannot express.

Each rule names a call or attribute, the files that alone may use it, and why. Names are followed through
imports (`from os import environ as e` is still `os.environ`); `run_in_executor` is a method of objects whose
type a syntax tree does not show, so its bare name is enough.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tools.files import PRODUCT
from tools.problem import Problem

PACKAGE = "src/vskill_platform/"


@dataclass(frozen=True)
class Rule:
    """Names that only some files of the package may use."""

    names: frozenset[str]
    #: Paths inside the registry's package, and those of the others with their names.
    allowed_in: frozenset[str]
    reason: str


def inside(path: str) -> str:
    """The path as rules name it."""
    return path.rpartition("/src/")[2] if path.startswith("packages/") else path.removeprefix(PACKAGE)


RULES = (
    Rule(
        names=frozenset({"os.environ", "os.environb", "os.getenv", "os.getenvb"}),
        allowed_in=frozenset({"settings.py", "vskill_client/registries.py", "vskill_client/output.py"}),
        reason="only settings.py reads the process environment, and the client; take the value from the settings",
    ),
    Rule(
        names=frozenset(
            {
                "time.time",
                "time.time_ns",
                "datetime.datetime.now",
                "datetime.datetime.utcnow",
                "datetime.datetime.today",
                "datetime.date.today",
                "uuid.uuid1",
                "uuid.uuid4",
            }
        ),
        allowed_in=frozenset({"ledger/clock.py", "vskill_client/revocation_check.py"}),
        reason="time and ids come from the environment's clock, so that tests and the simulator own them",
    ),
    Rule(
        names=frozenset({"vskill_platform.submission_store.read_submission"}),
        allowed_in=frozenset(
            {
                "actions/skills/versions.py",
                "actions/recall/takedowns.py",
                "installation/demo.py",
                "intake/moves.py",
                "intake/admission.py",
                "intake/submit.py",
                "queue/consumer.py",
                "stages/rescan.py",
                "store/recall/blocklist.py",
                "store/claims.py",
                "store/verdicts/rescans.py",
                "store/skills/reputation.py",
                "store/recall/withdrawals.py",
                "store/review/reports.py",
            }
        ),
        reason="it reads a submission in order to change it; what shows one to somebody asks get_submission",
    ),
)
TESTS = "tests/"
#: What starts a process that goes on beside its caller; a test that does so by itself may leave it behind.
STARTS_PROCESSES = frozenset(
    {
        "asyncio.create_subprocess_exec",
        "asyncio.create_subprocess_shell",
        "multiprocessing.Process",
        "multiprocessing.get_context",
        "os.fork",
        "os.posix_spawn",
        "os.posix_spawnp",
        "subprocess.Popen",
    }
)
#: What a machine that is busy with other things answers otherwise.
MEASURES = frozenset({"time.perf_counter", "time.process_time", "time.thread_time", "resource.getrusage"})
#: Where the fixture `stopwatch` stands, which marks what asks for it `machine`.
STOPWATCH = "tests/conftest.py"
LIFETIMES = "tests/support/lifetimes.py"
#: What proves that nothing is left must not have a guardian of its own; what becomes the command in a network of its
#: own leaves its relay there, which ends with it.
MAY_START = frozenset({LIFETIMES, "tests/lifetimes/subreaper.py", "tests/support/own_network.py"})
#: What finds every record, whoever may read it.
EVERYTHING = "EVERYTHING"
#: Modules that may name it, each with its reason; paths inside the package.
READ_EVERYTHING = {
    "domain/people/namespace.py": "defines it, and is the rule that says who has it: reviewers and the operator",
    "installation/demo.py": "asks whether the store is empty",
    "external_scan/due.py": "asks for tasks, which have no audience",
    "actions/people/namespace_policy.py": "counts what a change would hide, in collections of every audience",
    "queue/health.py": "finds what breaks the queue's invariant, in every namespace",
    "queue/recovery.py": "sends the work that is owed, in every namespace",
    "stages/rescan.py": "asks for tasks, which have no audience",
    "store/review/change_requests.py": "ends runs whose author did not answer, whoever may read them",
    "store/skills/collections.py": "reads what an admin is about to change",
    "store/verdicts/cooldowns.py": "has what waits decided again by a new policy, whoever may read it",
    "store/stored_content.py": "asks which records hold a content, and tells only whether one of them may be read",
    "store/verdicts/brake.py": "counts live skills, for the brake of rescans",
    "submission_store.py": "reports what is stuck or malformed, to the system and with its audience",
}
NO_EVERYTHING = (
    "reads whatever its audience is: pass on the reader's audiences, or give the module and its reason in "
    "tools/code_rules.py"
)
#: What tells a role apart, or checks one. Only actions decide who may; a page asks `ACTION.allows(principal)`.
DECIDES_RIGHTS = frozenset({"is_admin", "is_reviewer", "require_scope"})
ROLES = "vskill_platform.store.people.accounts.Role."
ACTIONS = f"{PACKAGE}actions/"
#: Which may name a role outside `actions/`, because they write it into a record or compute with it.
NAME_ROLES = frozenset(
    f"{PACKAGE}store/people/{name}.py"
    for name in ("accounts", "credentials", "identities", "setup", "sign_in_rule")
)
NO_RIGHTS = "decides who may outside actions/: declare the action, or ask ACTION.allows(principal)"
TEMPLATES = f"{PACKAGE}web/templates/"
_IN_TEMPLATE = re.compile(r"principal\.(is_admin|is_reviewer|role|scopes)\b")
BANNED_METHODS = {
    "run_in_executor": "it loses the context: use asyncio.to_thread, or copy_context().run in an executor",
    "cookies": "some versions of Python parse them in quadratic time: use web.browser.cookie_of",
}
#: Whose files patch nothing inside the product.
PLAYED = (TESTS, "simulator/")
#: Files that do patch the product, and why there is no other way yet.
PATCHES = {
    "simulator/history.py": "webhooks are posted to the network by a function, which the environment does not hold",
    "tests/engines/test_moving.py": "the old store must change in the middle of one call",
    "tests/processes/slow_worker.py": "deaths of many workers are waited for: claims must end in less than 15 s",
}
NO_PATCHES = (
    "patches the product: pass the limit as an argument, or wrap the engine (tests/support/faults.py)"
)


def check_module(path: str, text: str) -> Iterator[Problem]:
    """All house rules on one Python file; files that are neither the product nor its tests are not bound by them."""
    if path.startswith(PRODUCT):
        tree = ast.parse(text, filename=path)
        yield from _check_docstring(path, tree)
        yield from _check_names(path, tree)
        yield from _check_everything(path, tree)
        if not path.startswith(ACTIONS):
            yield from _check_rights(path, tree)
    if path.startswith(TESTS) and path not in MAY_START:
        why = f"start it with {LIFETIMES}, so that it ends with its test"
        yield from _check_calls(path, ast.parse(text, filename=path), STARTS_PROCESSES, why)
    if path.startswith(TESTS) and path != STOPWATCH:
        why = "ask for the fixture `stopwatch`: what measures runs alone, in `make test-machine`"
        yield from _check_calls(path, ast.parse(text, filename=path), MEASURES, why)
    if path.startswith(PLAYED) and path not in PATCHES:
        yield from check_patches(path, text)


def _check_rights(path: str, tree: ast.Module) -> Iterator[Problem]:
    imported = imported_names(ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (
            node.attr in DECIDES_RIGHTS
            or (path not in NAME_ROLES and (qualified_name(node, imported) or "").startswith(ROLES))
        ):
            yield Problem(path, node.lineno, f"{node.attr}: {NO_RIGHTS}")


def _check_everything(path: str, tree: ast.Module) -> Iterator[Problem]:
    """Whoever names it, by whatever way it came, must be listed; and who is listed must need it."""
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name | ast.Attribute) and _last_name(node) == EVERYTHING)
        or (isinstance(node, ast.ImportFrom) and any(alias.name == EVERYTHING for alias in node.names))
    ]
    if inside(path) not in READ_EVERYTHING:
        yield from (Problem(path, line, f"{EVERYTHING}: {NO_EVERYTHING}") for line in sorted(set(lines)))
    elif not lines:
        yield Problem(path, 1, f"does not name {EVERYTHING} any more: remove it from tools/code_rules.py")


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def check_template(path: str, text: str) -> Iterator[Problem]:
    """A page's template shows what its view says that the principal may do, and asks for no role itself."""
    if path.startswith(TEMPLATES):
        for number, line in enumerate(text.splitlines(), start=1):
            if found := _IN_TEMPLATE.search(line):
                yield Problem(path, number, f"{found[0]}: {NO_RIGHTS}")


def _check_calls(path: str, tree: ast.Module, names: frozenset[str], why: str) -> Iterator[Problem]:
    imported = imported_names(ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := qualified_name(node.func, imported)) in names:
            yield Problem(path, node.lineno, f"{name}: {why}")


def check_patches(path: str, text: str) -> Iterator[Problem]:
    """Every place where a test replaces something of the product. The standard library and other packages may be
    replaced; an object whose origin a syntax tree does not show counts as the product's."""
    tree = ast.parse(text, filename=path)
    imported = imported_names(ast.walk(tree))
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Call) and _patches(node, imported))
            or (isinstance(node, ast.Assign) and _assigns_to_product(node, imported))
            or (isinstance(node, ast.alias) and node.name in {"mock", "unittest.mock"})
            or (isinstance(node, ast.ImportFrom) and node.module == "unittest.mock")
        ):
            yield Problem(path, node.lineno, NO_PATCHES)


def _patches(call: ast.Call, imported: dict[str, str]) -> bool:
    """`monkeypatch.setattr` and its like, whatever the fixture is called."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in {"setattr", "delattr"} and call.args):
        return False
    target = call.args[0]
    if isinstance(target, ast.Constant):
        return str(target.value).startswith("vskill_platform")
    name = qualified_name(target, imported)
    return name is None or name.startswith("vskill_platform")


def _assigns_to_product(node: ast.Assign, imported: dict[str, str]) -> bool:
    """`module.CONSTANT = 1`, where the module is one of the product's."""
    names = (qualified_name(target, imported) for target in node.targets if isinstance(target, ast.Attribute))
    return any(name is not None and name.startswith("vskill_platform") for name in names)


def _check_docstring(path: str, tree: ast.Module) -> Iterator[Problem]:
    if not (ast.get_docstring(tree) or "").strip():
        yield Problem(path, 1, "begins without a docstring: say what the module is for and where it stands")


def _check_names(path: str, tree: ast.Module) -> Iterator[Problem]:
    nodes = list(ast.walk(tree))
    imported = imported_names(nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in BANNED_METHODS:
            yield Problem(path, node.lineno, f"{node.attr}: {BANNED_METHODS[node.attr]}")
        if isinstance(node, ast.Attribute | ast.Name) and (name := qualified_name(node, imported)):
            yield from _violations(path, node.lineno, name)


def _violations(path: str, line: int, name: str) -> Iterator[Problem]:
    for rule in RULES:
        if name in rule.names and inside(path) not in rule.allowed_in:
            yield Problem(path, line, f"{name}: {rule.reason}")


def imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Local name → full name, for every absolute import anywhere in the module, `import_module` included."""
    return dict(imports(nodes))


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """The same one by one: two functions of a module may import different things under one name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield alias.asname or top, alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and (module := _module_of(node.value)):
            yield from ((target.id, module) for target in node.targets if isinstance(target, ast.Name))


def _module_of(value: ast.expr) -> str | None:
    """The module that `import_module("...")` gives."""
    match value:
        case ast.Call(func=ast.Name("import_module"), args=[ast.Constant(str(name))]):
            return name
        case _:
            return None


def qualified_name(node: ast.expr, imported: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return imported.get(node.id)
    if isinstance(node, ast.Attribute) and (base := qualified_name(node.value, imported)):
        return f"{base}.{node.attr}"
    return None
