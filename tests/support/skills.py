"""Small real skills for tests."""

from vskill_platform.domain.content import SkillFile


def skill_files(name: str, body: str = "", version: str | None = None) -> tuple[SkillFile, ...]:
    """A skill of one file; another body is another digest."""
    lines = ["---", f"name: {name}", f"description: The skill {name}, for tests."]
    if version is not None:
        lines.append(f"version: {version}")
    text = "\n".join([*lines, "---", f"# {name}", "", body, ""])
    return (SkillFile("SKILL.md", "100644", text.encode()),)
