"""`moorage capacity`: what it sends of a pod, and what it tells."""

import json

from tests.cli.conftest import CLUSTER

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}}


def test_how_many_fit_is_told_by_domain(moorage, stub, tmp_path):
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(POD))
    told = {"fits": 5, "limited": True, "message": "0/2 nodes.", "domains": {"a": 3, "b": 2}}
    stub.on("POST", f"{CLUSTER}/capacity", told)
    ended = moorage("capacity", "-f", str(file), "--by", "zone", "--limit", "9")
    assert ended.out.splitlines() == ["5 more fit", "a: 3", "b: 2", "The next one: 0/2 nodes."]
    template = {"metadata": POD["metadata"], "spec": POD["spec"]}
    assert stub.sent() == {"template": template, "limit": 9, "topologyKey": "zone"}


def test_a_limit_is_no_end(moorage, stub, tmp_path):
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(POD))
    stub.on("POST", f"{CLUSTER}/capacity", {"fits": 9, "limited": False, "message": None})
    assert moorage("capacity", "-f", str(file)).out == "at least 9 more fit\n"
