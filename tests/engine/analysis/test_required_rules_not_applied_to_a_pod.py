"""Rules that are left out between daemons and others are told where they would have kept pods apart."""

from tests.builders import matching, pod
from tests.engine.scene import Scene, nodes

DNS = matching(app="dns")


def told(scene: Scene, asked) -> list[tuple[int, int]]:
    """Of each rule that was left out: for how many pods, and on how many nodes it mattered."""
    return [(each.pods, each.nodes) for each in scene.explain(asked).exemptions or ()]


def test_a_number_of_pods_matters_only_where_the_pod_would_be_one_too_many():
    """L02, R03: of the pod's own rule, and of one that placed pods have."""
    everywhere = {"maxPerDomain": 2, "namespaceSelector": {}}
    owner = pod("dns-0", "kube-system").label(app="dns")
    owner = owner.require_anti_affinity("zone", DNS, **everywhere)
    late = pod("late").label(app="dns")
    scene = Scene(*nodes(n1="a", n2="a"), owner.on("n1"))
    assert told(scene, late) == []
    assert told(scene, late.require_anti_affinity("zone", DNS, **everywhere)) == []
    scene.put(pod("dns-1", "kube-system").label(app="dns").on("n2"))
    assert told(scene, late) == [(1, 2)]
    limited = late.require_anti_affinity("zone", DNS, **everywhere)
    assert told(scene, limited) == [(2, 2), (1, 2)]
