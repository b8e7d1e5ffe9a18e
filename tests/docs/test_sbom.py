"""`make audit`: a list of what runs in production that a scanner for vulnerabilities can read, and an honest word."""

import json
import shutil

import pytest

from tools import sbom
from tools.files import ROOT

TEXT = (ROOT / sbom.LOCK).read_text("utf-8")


@pytest.fixture(scope="module")
def document():
    return sbom.bill(TEXT)


def test_every_package_of_the_lock_is_listed_with_its_version_and_hashes(document):
    pins = [line.split(" ")[0] for line in TEXT.splitlines() if "==" in line and not line.startswith(" ")]
    listed = {f"{one['name']}=={one['version']}": one for one in document["components"]}
    assert sorted(listed) == sorted(pin.lower().replace("_", "-") for pin in pins)
    hashes = [
        one["value"]
        for each in listed.values()
        for one in each["properties"]
        if one["name"].endswith("sha256")
    ]
    assert len(hashes) == TEXT.count("--hash=sha256:")


def test_it_is_a_cyclonedx_document_whose_references_all_lead_somewhere(document):
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    refs = [one["bom-ref"] for one in document["components"]] + [document["metadata"]["component"]["bom-ref"]]
    assert len(refs) == len(set(refs))
    assert {one["ref"] for one in document["dependencies"]} == set(refs)
    assert {ref for one in document["dependencies"] for ref in one["dependsOn"]} <= set(refs)
    assert all(one["purl"].startswith("pkg:pypi/") for one in document["components"])


def test_the_product_depends_on_what_pyproject_asks_for(document):
    (own,) = [one for one in document["dependencies"] if "vskill-platform@" in one["ref"]]
    assert any("/starlette@" in ref for ref in own["dependsOn"])
    assert not any("/pytest@" in ref for ref in own["dependsOn"])


def test_the_same_lock_gives_the_same_bytes_and_another_lock_another_number(document):
    assert sbom.bill(TEXT) == document
    assert sbom.bill(TEXT.replace("==", "==9", 1))["serialNumber"] != document["serialNumber"]


def test_it_says_plainly_what_it_is_not(tmp_path, capsys):
    shutil.copy(ROOT / sbom.LOCK, tmp_path)
    assert sbom.main(tmp_path) == 0
    assert json.loads((tmp_path / sbom.TARGET).read_text("utf-8"))["components"]
    assert "not a verdict" in capsys.readouterr().out
