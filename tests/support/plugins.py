"""Files of plugins, in both forms, for tests."""

import json
from collections.abc import Mapping
from typing import Any

from vskill_core.content import SkillFile
from vskill_core.kind import PLUGIN_SCHEMA
from vskill_scan.plugins.forms import SERVERS_SCHEMA

REMOTE = {"type": "streamable-http", "url": "https://docs.example.org/mcp"}
LOCAL = {"type": "stdio", "command": "./bin/serve.sh"}


def manifest(name: str = "tools", **fields: Any) -> bytes:
    said = {"$schema": PLUGIN_SCHEMA, "name": name, "description": "Looks after files."}
    return json.dumps({**said, **fields}).encode()


def older(name: str = "tools", **fields: Any) -> bytes:
    return json.dumps({"name": name, "description": "Looks after files.", **fields}).encode()


def servers(**given: Any) -> bytes:
    return json.dumps({"$schema": SERVERS_SCHEMA, "mcpServers": given}).encode()


def hooks(count: int = 1, command: str = "true") -> bytes:
    each = [{"type": "command", "command": f"{command} {number}"} for number in range(count)]
    return json.dumps({"hooks": {"Stop": [{"hooks": each}]}}).encode()


def files_of(given: Mapping[str, bytes]) -> tuple[SkillFile, ...]:
    """An executable one has a name that ends in `.sh`."""
    return tuple(
        SkillFile(path, "100755" if path.endswith(".sh") else "100644", data)
        for path, data in sorted(given.items())
    )
