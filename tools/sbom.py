"""`make audit`: what runs in production, as a CycloneDX 1.6 list in JSON, made from `requirements.lock` alone.

The same lock in the same environment gives the same bytes: no time, no machine, no random number. It names packages
with their versions and the hashes that the lock allows; where a package is installed, its licence and what it needs
are added. It knows no vulnerabilities, because those are in databases on the network, and it says so.
"""

import re
import sys
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.files import ROOT
from vskill_platform import __version__

LOCK = "requirements.lock"
TARGET = "build/sbom.cdx.json"
WHAT_IS_MISSING = """\
audit: this is a list, not a verdict: vulnerabilities are known to databases on the network only. Where one can be
audit: reached, give it the file, or run the package pip-audit: pip-audit --require-hashes -r requirements.lock
"""

_SHORT = 60
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;]+)(?: ; (.+?))? \\$")
_HASH = re.compile(r"^    --hash=sha256:([0-9a-f]{64})")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:vskill-platform:sbom")


class Pin(msgspec.Struct):
    """One package of the lock."""

    name: str
    version: str
    #: On which systems it is needed; empty is everywhere.
    marker: str = ""
    hashes: list[str] = []

    @property
    def ref(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def read_lock(text: str) -> list[Pin]:
    """The pins, in the lock's own order."""
    pins: list[Pin] = []
    for line in text.splitlines():
        if match := _PIN.match(line):
            pins.append(Pin(canonicalize_name(match[1]), match[2], match[3] or ""))
        elif found := _HASH.match(line):
            pins[-1].hashes.append(found[1])
    return pins


def bill(lock: str) -> dict[str, Any]:
    """The whole document."""
    pins = read_lock(lock)
    known = {pin.name: pin for pin in pins}
    root = f"pkg:pypi/vskill-platform@{__version__}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, __version__ + lock)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "vskill-platform",
                "version": __version__,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [_component(pin) for pin in pins],
        "dependencies": [
            {"ref": root, "dependsOn": _needs("vskill-platform", known)},
            *({"ref": pin.ref, "dependsOn": _needs(pin.name, known)} for pin in pins),
        ],
    }


def _component(pin: Pin) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": pin.ref,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.ref,
        "scope": "optional" if pin.marker else "required",
    }
    if licences := list(_licences(pin)):
        found["licenses"] = licences
    # A version has several files, so these are properties: `hashes` would claim that they are of one.
    found["properties"] = [
        {"name": "vskill-platform:lock:sha256", "value": one} for one in sorted(pin.hashes)
    ]
    if pin.marker:
        found["properties"].append({"name": "vskill-platform:lock:marker", "value": pin.marker})
    return found


def _licences(pin: Pin) -> Iterator[dict[str, Any]]:
    """By the package's own word, where the locked version is installed."""
    try:
        about = metadata.metadata(pin.name)
    except metadata.PackageNotFoundError:
        return
    if about["Version"] != pin.version:
        return
    if expression := about.json.get("license_expression"):
        yield {"expression": expression}
        return
    classified = [
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License")
    ]
    written = str(about.json.get("license") or "")
    # Some packages put the whole text there.
    short = [written] if written and len(written) <= _SHORT and "\n" not in written else []
    for name in classified or short:
        yield {"license": {"name": name}}


def _needs(name: str, known: dict[str, Pin]) -> list[str]:
    """What it asks for without extras, of what is locked."""
    try:
        asked = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    wanted = [Requirement(one) for one in asked]
    names = {canonicalize_name(one.name) for one in wanted if "extra" not in str(one.marker or "")}
    return sorted(known[one].ref for one in names if one in known)


def main(root: Path = ROOT) -> int:
    document = bill((root / LOCK).read_text("utf-8"))
    target = root / TARGET
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    components = document["components"]
    unlicensed = [one["name"] for one in components if "licenses" not in one]
    sys.stdout.write(f"audit: {len(components)} packages run in production; listed in {TARGET}\n")
    if unlicensed:
        sys.stdout.write(f"audit: no licence is known for {', '.join(unlicensed)}\n")
    sys.stdout.write(WHAT_IS_MISSING)
    return 0


if __name__ == "__main__":
    sys.exit(main())
