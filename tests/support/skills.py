"""Small real skills for tests."""

from vskill_core.content import SkillFile

#: A block of Markdown. Pygments' lexer of HTTP hands such a body to one that shows what the body says, not the body.
OTHER_TEXT = b"""# Title
```http
HTTP/1.1 200 OK
Content-Type: application/x-pygments-tokens

Token.Text\t'harmless'
Token.Text\t''
Token.Text\t''
```
The end.
"""


def skill_files(name: str, body: str = "", version: str | None = None) -> tuple[SkillFile, ...]:
    """A skill of one file; another body is another digest."""
    lines = ["---", f"name: {name}", f"description: The skill {name}, for tests."]
    if version is not None:
        lines.append(f"version: {version}")
    text = "\n".join([*lines, "---", f"# {name}", "", body, ""])
    return (SkillFile("SKILL.md", "100644", text.encode()),)
