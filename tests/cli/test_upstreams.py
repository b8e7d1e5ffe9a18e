"""Upstreams of every kind by command."""

import json

import pytest

from vskill_platform.domain.skills.upstream import UpstreamKind

URL, WHY = "https://github.com/vendor/skills", ("--reason", "our writers use it")


@pytest.mark.parametrize("kind", UpstreamKind)
def test_every_kind_is_made_changed_paused_resumed_and_removed(run, kind):
    assert "is being read" in run("upstream", "add", "vendor", kind.value, URL, *WHY).stdout
    run("upstream", "change", "vendor", "--address", f"{URL}-2", "--intake", "all", *WHY)
    run("upstream", "pause", "vendor", *WHY)
    shown = json.loads(run("upstream", "show", "vendor", "--json").stdout)
    known = {name: shown[name] for name in ("kind", "address", "intake", "paused")}
    assert known == {"kind": kind.value, "address": f"{URL}-2", "intake": "all", "paused": True}
    assert "paused" in run("upstream", "list").stdout
    run("upstream", "resume", "vendor", *WHY)
    run("upstream", "remove", "vendor", *WHY)
    assert "no upstream" in run("upstream", "show", "vendor", code=1).output
    audited = run("audit", "list").stdout
    assert all(f"upstream {said}" in audited for said in ("added", "changed", "paused", "resumed", "removed"))
