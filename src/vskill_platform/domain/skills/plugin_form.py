"""A skill as the plugin that clients install: the manifests that the registry adds around its files.

Agent Plugins 1.0.0 fixes the manifest at the root; Claude Code and Gemini CLI read older ones, with the same fields.
Where a folder has several, each client believes another one, so they say the same. Our short names are names of plugins
there, which may not have two hyphens in a row either.
"""

import msgspec

from vskill_core.content import SkillFile

#: Identifies the standard; no client fetches it.
SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
STANDARD = "plugin.json"
#: By which Claude Code, Copilot CLI and Codex know a plugin, and Gemini CLI an extension.
OLDER = (".claude-plugin/plugin.json", "gemini-extension.json")
GENERATED = (STANDARD, *OLDER)


def generated_files(name: str, version: str, description: str) -> tuple[SkillFile, ...]:
    """What makes a folder a plugin of that name."""
    older = {"name": name, "version": version, "description": description}
    made = {STANDARD: {"$schema": SCHEMA, **older}} | dict.fromkeys(OLDER, older)
    return tuple(
        SkillFile(path, "100644", msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        for path, manifest in made.items()
    )
