"""Skills for the scanner's benchmark: written by a seeded generator, as large and as mixed as published skills are.

Six files and 20 KB on average: SKILL.md, a few references, scripts in shell, Python and JavaScript, some data. Most say
and do what honest skills do, with the words that rules look for ("install", "token", "curl", "never"); one in ten
carries the example of a rule that must match.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from vskill_platform.domain.content import SkillFile
from vskill_platform.scan.examples import skill_of
from vskill_platform.scan.ruleset import Example, bundled_rules
from vskill_platform.scan.words import words

T = TypeVar("T")
#: Of the skills, how many hold something that a rule must find.
WITH_FINDINGS = 0.1
#: Files besides SKILL.md: how many, by how often.
FILE_COUNTS = {0: 6, 1: 8, 2: 10, 3: 13, 4: 14, 5: 13, 6: 11, 7: 8, 8: 6, 10: 5, 14: 4, 20: 2}
KINDS = {"reference": 40, "python": 22, "shell": 14, "javascript": 9, "data": 15}

_THINGS = words(
    "report invoice schema spreadsheet pull-request changelog dashboard migration translation screenshot calendar "
    "ticket database query transcript presentation component endpoint release dataset form template diagram"
)
_VERBS = words(
    "read check create update convert summarise validate review export compare format list merge split test"
)
_TOOLS = words("git gh jq rg npm node python3 uv pytest docker kubectl terraform ffmpeg pandoc sqlite3 psql")
_HOSTS = words(
    "api.github.com docs.python.org example.com api.example.com developer.mozilla.org hooks.example.org"
)

_SENTENCES = (
    "Use this skill when the user asks to {verb} a {thing} or mentions a {other}.",
    "{Verb} the {thing} first, then {verb2} each {other} in the order that the user gave.",
    "If the {thing} does not exist, ask the user before you create one.",
    "Never overwrite an existing {thing} without a confirmation from the user.",
    "The {thing} is stored under `references/{other}.md`; load it only when it is needed.",
    "Run `{tool} --version` to check that the tool is installed, and tell the user how to install it if it is not.",
    "Do not guess the name of a {thing}: list them with `{tool} list` and choose the one that matches.",
    "An API key is read from the `{TOKEN}` environment variable; it is never written to a file or to the log.",
    "See https://{host}/{thing}/{other} for the full list of options.",
    "Every {thing} has a title, an owner and a date, and all of them are required.",
    "Keep the answer short: one paragraph for each {other}, and a table when there are more than three.",
    "When the command fails with a timeout, wait five seconds and try again, at most three times.",
    "This step requires network access, because the {thing} is fetched from https://{host}/v1/{other}.",
    "Prefer small changes; a {thing} that touches more than ten files should be split.",
    "Before you {verb} anything, make sure that the working tree is clean and the tests pass.",
    "Important: the {thing} must be valid JSON. Validate it with `jq . {thing}.json > /dev/null`.",
    "For security, avoid passing passwords on the command line and do not commit secrets.",
    "The output looks like a list of {other} names, one on each line, sorted by date.",
    "Ignore files that match the patterns in `.gitignore`, generated code and anything under `dist/`.",
    "Send the summary to the user, not to an external service.",
    "You can also {verb} several of them at once by giving a folder instead of a file.",
    "Remember the user's choice for the rest of the conversation and use it as the default.",
    "The system of units follows the locale of the {thing}; convert when the {other} differs.",
    "After each step, {verb} the result and show the user what has changed.",
)
_HEADINGS = (
    "Overview", "When to use", "Quick start", "Prerequisites", "Workflow", "Step {n}: {verb} the {thing}", "Examples",
    "Options", "Output format", "Error handling", "Best practices", "Common mistakes", "Troubleshooting", "Notes",
    "Security", "Configuration", "Reference", "Testing", "Limits", "Related skills",
)  # fmt: skip
_COMMANDS = (
    "{tool} {verb} {thing} --output {other}.json",
    "curl -sS -H 'Accept: application/json' https://{host}/v1/{thing}s | jq '.items[].name'",
    "curl -fsSL -o {thing}.json https://{host}/{other}/{thing}.json",
    "pip install -r requirements.txt",
    "npm install && npm run build",
    "python3 scripts/{verb}_{other}.py --input data/{thing}.csv --verbose",
    "bash scripts/{verb}.sh {thing} {other}",
    "git checkout -b feature/{thing} && git add -A && git commit -m 'Add {thing}'",
    "git push --set-upstream origin feature/{thing}",
    'docker run --rm -v "$PWD":/data example/{thing}:1.4 {verb} /data/{other}.json',
    "export {TOKEN}=your-token-here",
    "rm -rf build/ dist/ && mkdir -p build/{thing}",
    "find . -name '*.{thing}.md' -not -path './node_modules/*' | xargs grep -l '{other}'",
    "chmod +x scripts/{verb}.sh",
    "kubectl get pods -n {thing} -o json | jq -r '.items[].metadata.name'",
)

_PYTHON = (
    '''
def {verb}_{name}(path: Path, limit: int = {n}) -> list[dict[str, str]]:
    """{Verb} the {thing} at a path, at most `limit` rows."""
    rows = []
    with path.open(newline="", encoding="utf-8") as handle:
        for number, row in enumerate(csv.DictReader(handle)):
            if number >= limit:
                break
            rows.append({{key.strip().lower(): value for key, value in row.items() if value}})
    return rows
''',
    '''
def fetch_{name}(session: requests.Session, identifier: str) -> dict:
    """Get one {thing} from the service."""
    token = os.environ.get("{TOKEN}", "")
    headers = {{"Authorization": f"Bearer {{token}}"}} if token else {{}}
    response = session.get(f"https://{host}/v1/{thing}s/{{identifier}}", headers=headers, timeout=30)
    response.raise_for_status()
    return response.json()
''',
    """
def run_{name}(arguments: list[str]) -> str:
    # The tool writes progress to stderr, so only stdout is kept.
    completed = subprocess.run(["{tool}", *arguments], capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise RuntimeError(f"{tool} failed with {{completed.returncode}}: {{completed.stderr[-{n}:]}}")
    return completed.stdout
""",
    '''
class {Name}:
    """A {thing} with everything that belongs to it."""

    def __init__(self, title: str, owner: str, tags: tuple[str, ...] = ()) -> None:
        self.title = title
        self.owner = owner
        self.tags = tags
        self.children: list["{Name}"] = []

    def add(self, child: "{Name}") -> None:
        if child.title == self.title:
            raise ValueError("a {thing} cannot hold itself")
        self.children.append(child)

    def as_dict(self) -> dict[str, object]:
        return {{"title": self.title, "owner": self.owner, "children": [one.as_dict() for one in self.children]}}
''',
    """
def summarise_{name}(items: list[dict[str, str]]) -> str:
    totals: dict[str, int] = {{}}
    for item in items:
        key = item.get("{other}", "unknown")
        totals[key] = totals.get(key, 0) + int(item.get("count", "0") or 0)
    lines = [f"| {{key}} | {{value:>{n}}} |" for key, value in sorted(totals.items(), key=lambda pair: -pair[1])]
    return "\\n".join(["| {other} | count |", "|---|---|", *lines])
""",
    """
def save_{name}(items: object, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps(items, indent=2, ensure_ascii=False), encoding="utf-8")
    temporary.replace(target)
    print(f"wrote {{target}} ({{target.stat().st_size}} bytes)", file=sys.stderr)
""",
)
_PYTHON_HEAD = '''#!/usr/bin/env python3
"""{Verb} a {thing}: helper of the skill."""

IMPORTS
'''
#: What a script imports when it uses it.
_PYTHON_IMPORTS = {
    "argparse": "import argparse",
    "csv.": "import csv",
    "json.": "import json",
    "os.": "import os",
    "subprocess.": "import subprocess",
    "sys.": "import sys",
    "Path(": "from pathlib import Path",
    "requests.": "\nimport requests",
}
_PYTHON_TAIL = """

def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("{thing}.json"))
    parser.add_argument("--verbose", action="store_true", help="say more about each {other}")
    options = parser.parse_args()
    print(options.input, options.output, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
"""
_SHELL = (
    """
{verb}_{name}() {{
  local target="$1" count=0
  # Every {thing} has a folder of its own.
  for file in "$target"/*.{other}; do
    [ -e "$file" ] || continue
    count=$((count + 1))
    echo "{verb} $file" >&2
  done
  echo "$count"
}}
""",
    """
if ! command -v {tool} > /dev/null 2>&1; then
  echo "error: {tool} is not installed; see https://{host}/install" >&2
  exit 1
fi
""",
    """
response=$(curl -sS --max-time {n} -H "Authorization: Bearer ${{{TOKEN}:-}}" "https://{host}/v1/{thing}s?page=1")
echo "$response" | jq -r '.items[] | "\\(.id) \\(.{other})"' | sort | uniq > "$OUTPUT/{thing}.txt"
""",
    """
mkdir -p "$OUTPUT/{thing}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -R templates/. "$tmp/"
sed -i "s/__NAME__/$NAME/g" "$tmp/{other}.md"
mv "$tmp/{other}.md" "$OUTPUT/{thing}/"
""",
    """
while getopts "o:n:hv" option; do
  case "$option" in
    o) OUTPUT="$OPTARG" ;;
    n) NAME="$OPTARG" ;;
    v) set -x ;;
    *) echo "usage: $0 [-o folder] [-n name] {thing}" >&2; exit 2 ;;
  esac
done
""",
)
_SHELL_HEAD = """#!/usr/bin/env bash
# {Verb} the {thing}; called by the skill.
set -euo pipefail

OUTPUT="${{OUTPUT:-out}}"
NAME="${{1:-{other}}}"
"""
_JAVASCRIPT = (
    """
export async function fetch{Name}(id) {{
  const response = await fetch(`https://{host}/v1/{thing}s/${{encodeURIComponent(id)}}`, {{
    headers: {{ Authorization: `Bearer ${{process.env.{TOKEN} ?? ""}}` }},
  }});
  if (!response.ok) throw new Error(`{thing} ${{id}}: ${{response.status}}`);
  return response.json();
}}
""",
    """
function {verb}{Name}(items, {{ limit = {n}, verbose = false }} = {{}}) {{
  const groups = new Map();
  for (const item of items.slice(0, limit)) {{
    const key = item.{other} || "unknown";
    groups.set(key, [...(groups.get(key) ?? []), item]);
    if (verbose) console.error(`{verb} ${{key}}`);
  }}
  return [...groups].map(([key, members]) => ({{ key, count: members.length }}));
}}
""",
    """
const {name}Path = path.join(process.cwd(), "{thing}", "{other}.json");
if (fs.existsSync({name}Path)) {{
  // An older run left its result here; it is replaced.
  fs.rmSync({name}Path);
}}
fs.writeFileSync({name}Path, JSON.stringify({{ created: new Date().toISOString(), items: [] }}, null, 2));
""",
    """
const {name}Output = execFileSync("{tool}", ["{verb}", "--json"], {{ encoding: "utf8" }});
for (const line of {name}Output.split("\\n").filter(Boolean)) {{
  const {{ id, title }} = JSON.parse(line);
  console.log(`- [${{title}}](https://{host}/{thing}/${{id}})`);
}}
""",
)
_JAVASCRIPT_IMPORTS = {
    "fs.": 'import fs from "node:fs";',
    "path.": 'import path from "node:path";',
    "execFileSync(": 'import { execFileSync } from "node:child_process";',
}
_JAVASCRIPT_HEAD = """IMPORTS
// {Verb} the {thing} for the skill.
"""


def skills(count: int, seed: int = 20) -> list[tuple[SkillFile, ...]]:
    """The same skills for the same seed, on every machine."""
    attacks = [example for rule in bundled_rules().rules for example in rule.examples.match]
    return [_Writer(random.Random(f"{seed}-{number}"), number).skill(attacks) for number in range(count)]


class _Writer:
    """Writes one skill."""

    def __init__(self, chance: random.Random, number: int) -> None:
        self._chance = chance
        self._number = number

    def skill(self, attacks: Sequence[Example]) -> tuple[SkillFile, ...]:
        files = {"SKILL.md": self._skill_md()}
        for number in range(self._chosen(FILE_COUNTS)):
            path, content = self._file(self._chosen(KINDS), number)
            files[path] = content
        found = {path: content.encode() for path, content in files.items()}
        if self._chance.random() < WITH_FINDINGS:
            self._spoil(found, self._chance.choice(attacks))
        return tuple(SkillFile(path, _mode(path), data) for path, data in sorted(found.items()))

    def _spoil(self, found: dict[str, bytes], attack: Example) -> None:
        """The attack's files join the skill; what it says in SKILL.md stands below an own heading."""
        for file in skill_of(attack):
            if file.path == "SKILL.md":
                _, _, said = file.data.partition(b"\n---\n")
                found[file.path] += b"\n## Also\n\n" + (said or file.data) + b"\n"
            else:
                found[file.path] = file.data

    def _file(self, kind: str, number: int) -> tuple[str, str]:
        writers: dict[str, tuple[str, Callable[[], str]]] = {
            "reference": ("references/{name}.md", self._reference),
            "python": ("scripts/{name}.py", self._python),
            "shell": ("scripts/{name}.sh", self._shell),
            "javascript": ("scripts/{name}.mjs", self._javascript),
            "data": ("assets/{name}.json", self._data),
        }
        path, write = writers[kind]
        return path.format(name=f"{self._chance.choice(_THINGS)}_{number}"), write()

    def _skill_md(self) -> str:
        name = f"{self._chance.choice(_THINGS)}-{self._number}"
        said = " ".join(self._sentence() for _ in range(2))
        head = f"---\nname: {name}\ndescription: >-\n  {said}\nlicense: MIT\n---\n\n# {name}\n\n"
        return head + self._prose(self._chance.randint(6, 16))

    def _reference(self) -> str:
        return self._filled("# {Verb} a {thing}\n\n") + self._prose(self._chance.randint(3, 11))

    def _prose(self, sections: int) -> str:
        return "\n".join(self._section() for _ in range(sections))

    def _section(self) -> str:
        level = "#" * self._chance.choice((2, 2, 2, 3))
        parts = [f"{level} {self._filled(self._chance.choice(_HEADINGS))}"]
        blocks = (self._paragraph, self._paragraph, self._list, self._fence, self._table)
        parts += [self._chance.choice(blocks)() for _ in range(self._chance.randint(1, 3))]
        return "\n\n".join(parts) + "\n"

    def _paragraph(self) -> str:
        return " ".join(self._sentence() for _ in range(self._chance.randint(1, 4)))

    def _list(self) -> str:
        mark = self._chance.choice(("- ", "1. ", "- **{thing}**: "))
        count = self._chance.randint(3, 7)
        return "\n".join(self._filled(mark) + self._sentence() for _ in range(count))

    def _fence(self) -> str:
        if self._chance.random() < 0.3:
            return "```python" + self._filled(self._chance.choice(_PYTHON)) + "```"
        lines = [self._filled(self._chance.choice(_COMMANDS)) for _ in range(self._chance.randint(1, 4))]
        return "```bash\n" + "\n".join(lines) + "\n```"

    def _table(self) -> str:
        rows = [self._filled("| `{thing}` | {verb} | {other} |") for _ in range(self._chance.randint(2, 6))]
        return "\n".join(["| name | action | result |", "|---|---|---|", *rows])

    def _python(self) -> str:
        text = self._script(_PYTHON_HEAD, _PYTHON, self._chance.randint(2, 7)) + self._filled(_PYTHON_TAIL)
        return _importing(text, _PYTHON_IMPORTS)

    def _shell(self) -> str:
        return self._script(_SHELL_HEAD, _SHELL, self._chance.randint(2, 7))

    def _javascript(self) -> str:
        text = self._script(_JAVASCRIPT_HEAD, _JAVASCRIPT, self._chance.randint(2, 7))
        return _importing(text, _JAVASCRIPT_IMPORTS)

    def _script(self, head: str, parts: Sequence[str], count: int) -> str:
        chosen = [head, *(self._chance.choice(parts) for _ in range(count))]
        return "".join(self._filled(part) for part in chosen)

    def _data(self) -> str:
        return json.dumps({"version": 1, "items": list(self._items())}, indent=2)

    def _items(self) -> Iterator[dict[str, object]]:
        for number in range(self._chance.randint(5, 40)):
            name = self._chance.choice(_THINGS)
            yield {"id": number, "title": f"{name} {number}", "url": f"https://example.com/{name}/{number}"}

    def _sentence(self) -> str:
        return self._filled(self._chance.choice(_SENTENCES))

    def _filled(self, template: str) -> str:
        choose = self._chance.choice
        thing, verb = choose(_THINGS), choose(_VERBS)
        name = choose(_THINGS).replace("-", "_") + str(self._chance.randint(1, 99))
        return template.format(
            thing=thing,
            other=choose(_THINGS).replace("-", "_"),
            verb=verb,
            verb2=choose(_VERBS),
            Verb=verb.capitalize(),
            name=name,
            Name=name.title().replace("_", ""),
            tool=choose(_TOOLS),
            host=choose(_HOSTS),
            TOKEN=f"{thing.upper().replace('-', '_')}_API_KEY",
            n=self._chance.randint(5, 90),
        )

    def _chosen(self, weights: dict[T, int]) -> T:
        return self._chance.choices(list(weights), list(weights.values()))[0]


def _importing(text: str, imports: dict[str, str]) -> str:
    """A script with the imports of what it uses at its head."""
    used = [statement for name, statement in imports.items() if name in text]
    return text.replace("IMPORTS\n", "\n".join(used) + "\n\n", 1)


def _mode(path: str) -> Literal["100644", "100755"]:
    return "100755" if path.endswith(".sh") else "100644"
