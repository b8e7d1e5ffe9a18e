"""`make mutants`: change code in small ways, and ask whether a test fails.

cosmic-ray makes the changes, one at a time in a copy of the project, and runs the tests of the module after each. Only
what functions do is changed, not declarations and texts. docs/adr/0008-mutants-by-cosmic-ray.md says why.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tools.files import ROOT

#: What is changed where no module is named.
WATCHED = (
    "src/vskill_platform/domain/**/*.py",
    "packages/core/src/vskill_core/*.py",
    "src/vskill_platform/store/claims.py",
    "packages/scan/src/vskill_scan/rules/evaluate.py",
)
#: The share of changes that no test may notice.
MOST = 0.02
#: One counterpart of an operator tells as much as all eleven; the others are left out.
LEFT_OUT = (
    "core/ReplaceBinaryOperator_(?!(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Add|LShift_RShift|BitAnd_BitOr)$)",
    "core/ReplaceComparisonOperator_(?!(Eq_NotEq|NotEq_Eq|Lt_(LtE|GtE)|LtE_(Lt|Gt)|Gt_(GtE|LtE)|GtE_(Gt|Lt)|Is_IsNot|IsNot_Is)$)",
    "core/ReplaceUnaryOperator_(?!Delete_)",
)
PROGRAMS = Path(sys.prefix) / "tools" / "bin"
_NOT_COPIED = shutil.ignore_patterns(".?*", "build", "dist", "data", "images", "__pycache__")


class Mutant(NamedTuple):
    """One change, and whether a test noticed."""

    place: str
    change: str
    survived: bool


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="such as src/vskill_platform/domain/verdicts/decision.py")
    parser.add_argument("--tests", nargs="+", help="that must notice; those named like the module without")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    options = parser.parse_args(arguments)
    modules = options.modules or [str(path.relative_to(root)) for path in watched(root)]
    tests = {module: options.tests or find_tests(module, root) for module in modules}
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(min(options.jobs, len(modules))):
            copies.put(Path(shutil.copytree(root, Path(folder, str(number)), ignore=_NOT_COPIED)))

        def run(module: str) -> list[Mutant]:
            copy = copies.get()
            try:
                return try_all(copy, module, tests[module])
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as pool:
            tried = [mutant for mutants in pool.map(run, modules) for mutant in mutants]
    survivors = [mutant for mutant in tried if mutant.survived]
    for mutant in survivors:
        print(f"mutants: survived: {mutant.place}: {mutant.change}")
    failed = len(survivors) > MOST * len(tried)
    print(f"mutants: {len(survivors)} of {len(tried)} survived: {'failed' if failed else 'good'}")
    return int(failed)


def watched(root: Path) -> list[Path]:
    found = (path for pattern in WATCHED for path in sorted(root.glob(pattern)))
    return [path for path in found if path.name != "__init__.py"]


def find_tests(module: str, root: Path) -> list[str]:
    """The files named like the module, in its own folder of tests or anywhere; else all of its folder."""
    path = Path(module)
    rooms = (
        {"vskill_core": "domain", "vskill_scan": "scan"}.get(one, one) for one in reversed(path.parts[:-1])
    )
    beside = next(
        (Path("tests", one) for one in rooms if (root / "tests" / one).is_dir()), Path("tests", "none")
    )
    for pattern in (f"{beside}/test_{path.stem}*.py", f"tests/**/test_{path.stem}.py", str(beside)):
        if found := sorted(str(one.relative_to(root)) for one in root.glob(pattern)):
            return found
    raise SystemExit(f"mutants: no tests are named like {module}: name them by --tests")


def function_lines(source: str) -> list[str]:
    """Where the bodies of functions are, as `first-last`."""
    return [
        f"{node.body[0].lineno}-{node.end_lineno}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def try_all(copy: Path, module: str, tests: Sequence[str]) -> list[Mutant]:
    """Every change of one module, in a copy of the project that nobody else uses meanwhile."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    began = time.monotonic()
    if subprocess.run(command, cwd=copy, stdout=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit(f"mutants: {' '.join(tests)} fails without a change")
    lines = function_lines((copy / module).read_text("utf-8"))
    # What JSON writes here is TOML too.
    (copy / "mutants.toml").write_text(
        f"""\
[cosmic-ray]
module-path = [{json.dumps(module)}]
timeout = {10 + 5 * (time.monotonic() - began):.1f}
excluded-modules = []
test-command = {json.dumps(" ".join(command))}
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = {json.dumps(LEFT_OUT)}
[cosmic-ray.filters.line-filter.lines]
{json.dumps(module)} = {json.dumps(lines)}
""",
        "utf-8",
    )
    (copy / "mutants.sqlite").unlink(missing_ok=True)
    _call(copy, "cosmic-ray", "init", "mutants.toml", "mutants.sqlite")
    _call(copy, "cr-filter-operators", "mutants.sqlite", "mutants.toml")
    _call(copy, "cr-filter-lines", "mutants.sqlite", "--config", "mutants.toml")
    _call(copy, "cr-filter-pragma", "mutants.sqlite")
    _call(copy, "cosmic-ray", "exec", "mutants.toml", "mutants.sqlite")
    tried = list(map(json.loads, _call(copy, "cosmic-ray", "dump", "mutants.sqlite").splitlines()))
    found = [_mutant(item, result) for item, result in tried if result["worker_outcome"] != "skipped"]
    print(f"mutants: {module}: {sum(one.survived for one in found)} of {len(found)} survived", flush=True)
    return found


def _mutant(item: dict[str, list[dict[str, object]]], result: dict[str, str | None]) -> Mutant:
    (change,) = item["mutations"]
    # There is no difference to show where a change ended the process that tried it, which counts as noticed.
    lines = (result["diff"] or "").splitlines()
    lines = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    shown = " => ".join(line[1:].strip() for line in lines)
    return Mutant(
        f"{change['module_path']}: {change['definition_name']}", shown, result["test_outcome"] == "survived"
    )


def _call(copy: Path, program: str, *arguments: str) -> str:
    done = subprocess.run(
        [PROGRAMS / program, *arguments], cwd=copy, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
