"""Skills for the scanner's benchmark: written by a seeded generator, as large and as mixed as published skills are.

Six files and 20 KB on average: SKILL.md, a few references, scripts in shell, Python and JavaScript, some data. Most say
and do what honest skills do, with the words that rules look for ("install", "token", "curl", "never"); one in ten
carries the example of a rule that must match.
"""

import json
import random
from collections.abc import Sequence
from typing import Literal, TypeVar

from vskill_core.content import SkillFile
from vskill_scan.examples import skill_of
from vskill_scan.rules.ruleset import Example, bundled_rules
from vskill_scan.words import words

T = TypeVar("T")
#: Of the skills, how many hold something that a rule must find.
WITH_FINDINGS = 0.1
#: Files besides SKILL.md: how many, by how often.
FILE_COUNTS = {0: 6, 1: 8, 2: 10, 3: 13, 4: 14, 5: 13, 6: 11, 7: 8, 8: 6, 10: 5, 14: 4, 20: 2}
#: Their names, by how often.
KINDS = {
    "references/{name}.md": 40,
    "scripts/{name}.py": 22,
    "scripts/{name}.sh": 14,
    "scripts/{name}.mjs": 9,
    "assets/{name}.json": 15,
}

_THINGS = words(
    "report invoice schema spreadsheet pull-request changelog dashboard migration translation screenshot calendar "
    "ticket database query transcript presentation component endpoint release dataset form template diagram"
)
_VERBS = words("read check create update convert validate review export compare format list merge split test")
_TOOLS = words("git gh jq rg npm node python3 uv pytest docker kubectl terraform ffmpeg pandoc sqlite3 psql")
_HOSTS = words("api.github.com docs.python.org example.com developer.mozilla.org hooks.example.org")

_HEADINGS = (
    "Overview", "When to use", "Quick start", "Prerequisites", "Step {n}: {verb} the {thing}", "Examples", "Options",
    "Output format", "Error handling", "Best practices", "Troubleshooting", "Security", "Configuration", "Testing",
)  # fmt: skip
_SENTENCES = (
    "Use this skill when the user asks to {verb} a {thing} or mentions a {other}.",
    "If the {thing} does not exist, ask the user before you create one.",
    "Never overwrite an existing {thing} without a confirmation from the user.",
    "The {thing} is stored under `references/{other}.md`; load it only when it is needed.",
    "Run `{tool} --version` to check that the tool is installed, and tell the user how to install it if it is not.",
    "An API key is read from the `{TOKEN}` environment variable; it is never written to a file or to the log.",
    "See https://{host}/{thing}/{other} for the full list of options.",
    "Every {thing} has a title, an owner and a date, and all of them are required.",
    "Keep the answer short: one paragraph for each {other}, and a table when there are more than three.",
    "When the command fails with a timeout, wait five seconds and try again, at most three times.",
    "This step requires network access, because the {thing} is fetched from https://{host}/v1/{other}.",
    "Before you {verb} anything, make sure that the working tree is clean and the tests pass.",
    "For security, avoid passing passwords on the command line and do not commit secrets.",
    "Ignore files that match the patterns in `.gitignore`, generated code and anything under `dist/`.",
    "Send the summary to the user, not to an external service.",
    "Remember the user's choice for the rest of the conversation and use it as the default.",
)
_COMMANDS = (
    "{tool} {verb} {thing} --output {other}.json",
    "curl -sS -H 'Accept: application/json' https://{host}/v1/{thing}s | jq '.items[].name'",
    "pip install -r requirements.txt",
    "npm install && npm run build",
    "python3 scripts/{verb}_{other}.py --input data/{thing}.csv --verbose",
    "git checkout -b feature/{thing} && git add -A && git commit -m 'Add {thing}'",
    'docker run --rm -v "$PWD":/data example/{thing}:1.4 {verb} /data/{other}.json',
    "export {TOKEN}=your-token-here",
    "rm -rf build/ dist/ && mkdir -p build/{thing}",
    "find . -name '*.{thing}.md' -not -path './node_modules/*' | xargs grep -l '{other}'",
)

#: The head of a script, and what follows in any order and number.
_PYTHON = (
    "#!/usr/bin/env python3\nimport csv, json, os\nfrom pathlib import Path\n\nimport requests\n",
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
def save_{name}(items: list[dict[str, str]], target: Path) -> None:
    totals: dict[str, int] = {{}}
    for item in items:
        key = item.get("{other}", "unknown")
        totals[key] = totals.get(key, 0) + int(item.get("count", "0") or 0)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(totals, indent=2, ensure_ascii=False), encoding="utf-8")
    print(f"wrote {{target}} ({{target.stat().st_size}} bytes)")
""",
)
_SHELL = (
    '#!/usr/bin/env bash\n# {Verb} a {thing}.\nset -euo pipefail\nOUTPUT="${{OUTPUT:-out}}"\nNAME="${{1:-{other}}}"\n',
    """
{verb}_{name}() {{
  local target="$1" count=0
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
)
_JAVASCRIPT = (
    'import fs from "node:fs";\nimport {{ execFileSync }} from "node:child_process";\n// {Verb} the {thing}.\n',
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
  fs.writeFileSync("{other}.json", JSON.stringify({{ created: new Date().toISOString(), items }}, null, 2));
  return [...groups].map(([key, members]) => ({{ key, count: members.length }}));
}}
""",
    """
const {name}Output = execFileSync("{tool}", ["{verb}", "--json"], {{ encoding: "utf8" }});
for (const line of {name}Output.split("\\n").filter(Boolean)) {{
  const {{ id, title }} = JSON.parse(line);
  console.log(`- [${{title}}](https://{host}/{thing}/${{id}})`);
}}
""",
)
_SCRIPTS = {".py": _PYTHON, ".sh": _SHELL, ".mjs": _JAVASCRIPT}


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
        files = {"SKILL.md": self._skill_md().encode()}
        for number in range(self._chosen(FILE_COUNTS)):
            path = self._chosen(KINDS).format(name=f"{self._chance.choice(_THINGS)}_{number}")
            files[path] = self._content(path).encode()
        if self._chance.random() < WITH_FINDINGS:
            _spoil(files, self._chance.choice(attacks))
        return tuple(SkillFile(path, _mode(path), data) for path, data in sorted(files.items()))

    def _content(self, path: str) -> str:
        kind = path[path.rindex(".") :]
        if kind == ".md":
            return self._filled("# {Verb} a {thing}\n\n") + self._prose(self._chance.randint(3, 11))
        if kind == ".json":
            names = (self._chance.choice(_THINGS) for _ in range(self._chance.randint(5, 40)))
            items = [{"id": at, "url": f"https://example.com/{name}/{at}"} for at, name in enumerate(names)]
            return json.dumps({"version": 1, "items": items}, indent=2)
        head, *parts = _SCRIPTS[kind]
        chosen = self._chance.choices(parts, k=self._chance.randint(2, 7))
        return "".join(map(self._filled, (head, *chosen)))

    def _skill_md(self) -> str:
        name = f"{self._chance.choice(_THINGS)}-{self._number}"
        head = (
            f"---\nname: {name}\ndescription: >-\n  {self._sentences(2)}\nlicense: MIT\n---\n\n# {name}\n\n"
        )
        return head + self._prose(self._chance.randint(6, 16))

    def _prose(self, sections: int) -> str:
        blocks = (lambda: self._sentences(self._chance.randint(1, 4)), self._list, self._fence)
        parts = []
        for _ in range(sections):
            parts.append(f"## {self._filled(self._chance.choice(_HEADINGS))}")
            parts += [self._chance.choice(blocks)() for _ in range(self._chance.randint(1, 3))]
        return "\n\n".join(parts) + "\n"

    def _sentences(self, count: int) -> str:
        return " ".join(self._filled(self._chance.choice(_SENTENCES)) for _ in range(count))

    def _list(self) -> str:
        return "\n".join(f"- {self._sentences(1)}" for _ in range(self._chance.randint(3, 7)))

    def _fence(self) -> str:
        if self._chance.random() < 0.3:
            return "```python" + self._filled(self._chance.choice(_PYTHON[1:])) + "```"
        lines = [self._filled(self._chance.choice(_COMMANDS)) for _ in range(self._chance.randint(1, 4))]
        return "```bash\n" + "\n".join(lines) + "\n```"

    def _filled(self, template: str) -> str:
        choose = self._chance.choice
        thing, verb = choose(_THINGS), choose(_VERBS)
        name = choose(_THINGS).replace("-", "_") + str(self._chance.randint(1, 99))
        return template.format(
            thing=thing,
            other=choose(_THINGS).replace("-", "_"),
            verb=verb,
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


def _spoil(files: dict[str, bytes], attack: Example) -> None:
    """The attack's files join the skill; what it says in SKILL.md stands below an own heading."""
    for file in skill_of(attack):
        if file.path == "SKILL.md":
            _, _, said = file.data.partition(b"\n---\n")
            files[file.path] += b"\n## Also\n\n" + (said or file.data) + b"\n"
        else:
            files[file.path] = file.data


def _mode(path: str) -> Literal["100644", "100755"]:
    return "100755" if path.endswith(".sh") else "100644"
