"""The part of the SARIF 2.1.0 schema that our reports use, written down as types: required properties, no others than
the schema names, its enumerations, its smallest numbers and its patterns.

It is written by hand from the standard's schema; no locked package ships the file itself.
"""

from typing import Annotated, Any, Literal

import msgspec

Level = Literal["none", "note", "warning", "error"]
Index = Annotated[int, msgspec.Meta(ge=-1)]
FromOne = Annotated[int, msgspec.Meta(ge=1)]
Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+([-+].*)?$")]
#: A URI reference: no spaces, no characters that must be escaped.
Reference = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*$")]


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """`additionalProperties: false`, as almost everywhere in the schema."""


class Properties(msgspec.Struct):
    """A property bag: anything, but `tags` are unique strings."""

    tags: list[str] = []

    def __post_init__(self) -> None:
        if len(set(self.tags)) != len(self.tags):
            raise ValueError("tags must be unique")


class Message(Strict):
    """`text` or `id` is required; we have only texts."""

    text: Annotated[str, msgspec.Meta(min_length=1)]


class Configuration(Strict):
    level: Level = "warning"


class Descriptor(Strict):
    id: str
    short_description: Message
    full_description: Message
    help: Message
    default_configuration: Configuration
    properties: Properties


class Component(Strict):
    name: str
    version: str
    semantic_version: Version
    rules: list[Descriptor]


class Tool(Strict):
    driver: Component


class Artifact(Strict):
    uri: Reference


class Content(Strict):
    text: str


class Region(Strict):
    start_line: FromOne
    start_column: FromOne | msgspec.UnsetType = msgspec.UNSET
    snippet: Content | msgspec.UnsetType = msgspec.UNSET


class Physical(Strict):
    artifact_location: Artifact
    region: Region | msgspec.UnsetType = msgspec.UNSET


class Location(Strict):
    physical_location: Physical


class Result(Strict):
    rule_id: str
    level: Level
    message: Message
    locations: list[Location]
    properties: Properties
    rule_index: Index = -1


class DescriptorReference(Strict):
    id: str


class Notification(Strict):
    level: Level
    message: Message
    descriptor: DescriptorReference


class Invocation(Strict):
    execution_successful: bool
    tool_execution_notifications: list[Notification] = []


class Automation(Strict):
    id: str


class Run(Strict):
    tool: Tool
    results: list[Result]
    invocations: list[Invocation]
    automation_details: Automation
    column_kind: Literal["utf16CodeUnits", "unicodeCodePoints"]
    properties: dict[str, Any]


class Log(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal["2.1.0"]
    runs: list[Run]
    schema: str = msgspec.field(name="$schema", default="")


def read_sarif(document: bytes) -> Log:
    """The document, or msgspec.ValidationError."""
    return msgspec.json.decode(document, type=Log)
