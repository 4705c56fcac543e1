"""The workloads that are measured are those that the design documents ask for."""

import re

import pytest

from bench.workloads import Workload, find
from tests.paths import ROOT

EIGHT_CELLS = {
    "SchedulingPodAffinity": "SchedulingRequiredPodAffinityWithNSSelector",
    "SchedulingPodAntiAffinity": "SchedulingRequiredPodAntiAffinityWithNSSelector",
    "SchedulingPreferredPodAffinity": "SchedulingPreferredAffinityWithNSSelector",
    "SchedulingPreferredPodAntiAffinity": "SchedulingPreferredAntiAffinityWithNSSelector",
}
"""Required and preferred affinity and anti-affinity: in one namespace, and over a hundred."""

RESULTS = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")


def sizes(workload: Workload) -> tuple[int, int]:
    """Nodes, and pods to place."""
    return len(list(workload.nodes())), len(list(workload.measured()))


@pytest.mark.parametrize(("plain", "selected"), EIGHT_CELLS.items(), ids=EIGHT_CELLS)
def test_a_thousand_pods_on_five_thousand_nodes_with_and_without_a_selector(plain, selected):
    """Q02: all pods of a workload have affinity or anti-affinity to each other."""
    by_selector = find(selected, 5000)
    assert sizes(find(plain, 5000)) == sizes(by_selector) == (5000, 1000)
    placed = list(by_selector.placed())
    assert len(placed) in {4000, 5000}
    assert len({each["metadata"]["namespace"] for each in placed}) == 100
    assert "namespaceSelector" in str(placed[0])
    for name in (plain, selected):
        assert re.search(rf"^\| {name} \| (5,000 \| )?[\d,]+ \(", RESULTS, re.MULTILINE), (
            "its figures are published"
        )


def test_spreading_and_plain_pods_are_measured_apart():
    """Q01, Q04: pods without rules, with constraints, and with anti-affinity by node."""
    for name in ("SchedulingBasic", "TopologySpreading", "SchedulingPodAntiAffinity"):
        assert sizes(find(name, 5000)) == (5000, 1000)
    assert "topologySpreadConstraints" not in str(
        next(iter(find("SchedulingBasic", 5000).measured()))
    )


def test_each_pod_with_a_claim_has_a_volume_that_it_is_bound_to():
    """SchedulingCSIPVs: claims of one driver, of which each node can attach 39."""
    workload = find("SchedulingCSIPVs", 500)
    kept = list(workload.kept(3))
    kinds = [each["kind"] for each in kept]
    assert (kinds.count("CSINode"), kinds.count("PersistentVolume")) == (500, 3)
    bound = {
        each["metadata"]["name"]: each["spec"]["volumeName"]
        for each in kept
        if each["kind"] == "PersistentVolumeClaim"
    }
    volumes = {
        each["spec"]["claimRef"]["name"]: each["metadata"]["name"]
        for each in kept
        if each["kind"] == "PersistentVolume"
    }
    asked = [
        each["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        for each in workload.measured(3)
    ]
    assert list(bound) == asked
    assert volumes == bound
