"""`make audit`: a list of what runs in production that a scanner for vulnerabilities can read, and an honest word."""

import json
import shutil

import pytest

from tools import sbom
from tools.files import ROOT
from vskill_platform import __version__

pytestmark = pytest.mark.slow

LOCK = ROOT / sbom.LOCK


@pytest.fixture(scope="module")
def document():
    return sbom.bill(LOCK)


def test_every_package_of_the_lock_is_listed_with_its_version_and_hashes(document):
    text = LOCK.read_text("utf-8")
    pins = [line.split(" ")[0] for line in text.splitlines() if "==" in line and not line.startswith(" ")]
    listed = {f"{one['name']}=={one['version']}": one for one in document["components"]}
    assert sorted(listed) == sorted(pins)
    hashes = [
        one["content"]
        for each in listed.values()
        for reference in each["externalReferences"]
        for one in reference["hashes"]
    ]
    assert len(hashes) == text.count("--hash=sha256:")


def test_it_is_a_cyclonedx_document_whose_references_all_lead_somewhere(document):
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    own = document["metadata"]["component"]
    assert (own["name"], own["version"]) == ("vskill-platform", __version__)
    refs = [one["bom-ref"] for one in (own, *document["components"])]
    assert len(refs) == len(set(refs))
    assert {one["ref"] for one in document["dependencies"]} == set(refs)
    assert all(one["purl"].startswith("pkg:pypi/") for one in document["components"])


def test_the_same_lock_gives_the_same_document(document):
    assert sbom.bill(LOCK) == document


def test_it_says_plainly_what_it_is_not(tmp_path, capsys):
    shutil.copy(LOCK, tmp_path)
    assert sbom.main(tmp_path) == 0
    assert json.loads((tmp_path / sbom.TARGET).read_text("utf-8"))["components"]
    assert "not a verdict" in capsys.readouterr().out
