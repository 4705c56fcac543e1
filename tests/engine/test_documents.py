"""Every example of the original design documents, told with the service's own words.

S0 is the design of inter-pod affinity, S1 even pod spreading (KEP-895), S2 node affinity, S3 the
namespace selector (KEP-2249), S4 the article on all of them. The letters and numbers are rows of
the requirements' checklist.
"""

import pytest

from service.engine.state.nodes.topology import FEW_DOMAINS
from tests.builders import (
    REQUIRED_DURING_EXECUTION,
    matching,
    namespace,
    node,
    pod,
    requirement,
    where,
)
from tests.engine.scene import Scene, nodes

NOT_WITH_OTHERS = {"InterPodAffinity": ["node(s) didn't match pod anti-affinity rules"]}
NOT_WELCOME = {"InterPodAffinity": ["node(s) didn't satisfy existing pods anti-affinity rules"]}


# S2: node affinity


def test_intel_or_amd_and_preferably_in_zone_z():
    """B04, C01, C02: the manifest of S2, key by key."""
    arch, zone = "kubernetes.io/arch", "failure-domain.kubernetes.io/zone"
    scene = Scene(
        node("amd-in-z").label({arch: "amd64", zone: "Z"}),
        node("amd-elsewhere").label({arch: "amd64", zone: "Y"}),
        node("arm-in-z").label({arch: "arm64", zone: "Z"}),
    )
    wanting = (
        pod("pod-with-node-affinity")
        .require_node(requirement(arch, "In", "intel", "amd64"))
        .prefer_node(1, requirement(zone, "In", "Z"))
    )
    assert scene.feasible(wanting) == ["amd-elsewhere", "amd-in-z"]
    assert scene.place(wanting) == "amd-in-z"
    scene.engine.delete_node("amd-in-z")
    assert scene.place(wanting.named("the-next")) == "amd-elsewhere", "a wish never filters"


def test_put_the_pod_in_zone_z():
    """B04: "tricked you" - node affinity, not pod affinity, says this."""
    scene = Scene(*nodes(n1="Y", n2="Z"))
    assert scene.feasible(pod("p").require_node(requirement("zone", "In", "Z"))) == ["n2"]


def test_both_variants_of_required_node_affinity_hold():
    """B03: required during execution filters as its sibling does, and both together."""
    scene = Scene(*(each.label(disk="ssd") for each in nodes(n1="a", n2="b")), *nodes(n3="a"))
    wanting = (
        pod("p")
        .require_node(requirement("zone", "In", "a"), execution=REQUIRED_DURING_EXECUTION)
        .require_node(requirement("disk", "In", "ssd"))
    )
    assert scene.feasible(wanting) == ["n1"]


# S0: pod affinity


def test_in_a_zone_that_runs_a_pod_of_service_s():
    """D02, A08: any node of the zone will do."""
    scene = Scene(*nodes(n1="a", n2="a", n3="b"), pod("s-0").label(service="S").on("n1"))
    beside = pod("p").require_affinity("zone", matching(service="S"))
    assert scene.feasible(beside) == ["n1", "n2"]


def test_on_a_node_whose_licence_is_in_use():
    """D01, D03: the licence is counted by node."""
    scene = Scene(*nodes(n1="a", n2="a"), pod("other").label(license="P").on("n2"))
    licensed = pod("p").label(license="P").require_affinity("node", where("license", "In", "P"))
    assert scene.feasible(licensed) == ["n2"]


def test_the_first_pod_of_a_service_goes_anywhere_and_the_rest_follow():
    """E01, E03: the rule is waived while no pod matches it and the pod matches itself."""
    scene = Scene(*nodes(n1="a", n2="b", n3="b"))
    own = pod("s-0").label(service="S").require_affinity("zone", where("service", "In", "S"))
    assert scene.feasible(own) == ["n1", "n2", "n3"]
    scene.put(own.on("n3"))
    second = own.named("s-1")
    assert scene.feasible(second) == ["n2", "n3"]
    scene.put(*(each.cordon() for each in nodes(n2="b", n3="b")))
    assert scene.feasible(second) == []


def test_the_first_pod_rule_waives_one_requirement_or_all_of_them_together():
    """E01: by setting; the first of a service is where the other service is, or nowhere."""
    first = (
        pod("s-0")
        .label(service="S")
        .require_affinity("zone", matching(service="S"))
        .require_affinity("zone", matching(service="T"))
    )
    database = pod("t-0").label(service="T").on("n1")
    together = Scene(*nodes(n1="a", n2="b"), database)
    assert together.feasible(first) == []
    each = Scene(*nodes(n1="a", n2="b"), database, requiredAffinityTerms="PerTerm")
    assert each.feasible(first) == ["n1"]
    each.engine.delete_pod("default", "t-0")
    assert each.feasible(first) == [], "the other requirement is not waived"


def test_the_first_pod_rule_needs_a_pod_that_matches_itself():
    """E02: a pod that asks for others only has to wait for them."""
    scene = Scene(*nodes(n1="a"))
    waiting = pod("p").label(service="S").require_affinity("zone", matching(service="T"))
    assert scene.feasible(waiting) == []
    preferring = pod("p").label(service="S").prefer_affinity(1, "zone", matching(service="S"))
    assert scene.feasible(preferring) == ["n1"]


def test_required_affinity_is_not_symmetric():
    """D06, D07, G04: S2 may stand alone, S1 may not; but S2 would rather be where S1 waits."""
    s1 = pod("s1").label(app="S1").require_affinity("node", matching(app="S2"))
    s2 = pod("s2").label(app="S2")
    empty = Scene(*nodes(n1="a", n2="a"))
    assert empty.feasible(s1) == []
    assert empty.feasible(s2) == ["n1", "n2"]
    running = Scene(*nodes(n1="a", n2="a"), s2.on("n2"))
    assert running.feasible(s1) == ["n2"]
    abandoned = Scene(*nodes(n1="a", n2="a"), s1.on("n2"))
    assert abandoned.favourites(s2, "InterPodAffinity") == ["n2"]
    indifferent = Scene(*nodes(n1="a", n2="a"), s1.on("n2"), hardPodAffinityWeight=0)
    assert indifferent.favourites(s2, "InterPodAffinity") == ["n1", "n2"]


def test_service_a_waits_for_service_b():
    """D09, D10: all of A is pending until B runs, and then goes to B's zone (S4)."""
    zone = "kind.zone"
    scene = Scene(
        node("w1").label({zone: "zone1"}),
        node("w2").label({zone: "zone1"}),
        node("w3").label({zone: "zone2"}),
    )
    service_a = [
        pod(f"a-{number}").label(app="a").require_affinity(zone, matching(app="b"))
        for number in range(3)
    ]
    assert [scene.place(each) for each in service_a] == [None, None, None]
    scene.put(pod("b-0").label(app="b"))
    assert scene.place(service_a[0]) is None, "a pending pod attracts nobody"
    scene.put(pod("b-0").label(app="b").on("w1"))
    assert all(scene.place(each) in {"w1", "w2"} for each in service_a)


def test_several_terms_are_met_by_one_pod_or_by_several():
    """D04: Kubernetes wants one pod that matches all; the document intersects the sets."""
    things = [
        *nodes(n1="a", n2="b"),
        pod("a").label(x="1").on("n1"),
        pod("b").label(y="1").on("n1"),
    ]
    wanting = (
        pod("p").require_affinity("node", matching(x="1")).require_affinity("node", matching(y="1"))
    )
    assert Scene(*things).feasible(wanting) == []
    assert Scene(*things, semantics="DesignDocuments").feasible(wanting) == ["n1"]


# S0: pod anti-affinity


def test_exclusive_node():
    """F08, F03: never with any other pod, whoever comes first, one's own service included."""
    exclusive = pod("alone").require_anti_affinity("node", matching())
    scene = Scene(*nodes(n1="a", n2="a"), pod("tenant").on("n1"))
    assert scene.feasible(exclusive) == ["n2"]
    assert scene.reasons(exclusive, "n1") == NOT_WITH_OTHERS
    scene.put(exclusive.on("n2"))
    assert scene.feasible(pod("late")) == ["n1"]
    assert scene.reasons(pod("late"), "n2") == NOT_WELCOME
    assert scene.feasible(pod("twin").require_anti_affinity("node", matching())) == []


def test_exclusive_node_beside_daemons():
    """L01, L02: daemons are not seen and not hit, either way."""
    exclusive = pod("alone").require_anti_affinity("node", matching(), namespaceSelector={})
    daemon = pod("log-agent", "kube-system")
    assert Scene(*nodes(n1="a"), daemon.on("n1")).feasible(exclusive) == ["n1"]
    assert Scene(*nodes(n1="a"), exclusive.on("n1")).feasible(daemon) == ["n1"]
    strict = Scene(*nodes(n1="a"), daemon.on("n1"), daemonNamespaces=[])
    assert strict.feasible(exclusive) == []
    more = Scene(
        *nodes(n1="a"), pod("agent", "monitoring").on("n1"), daemonNamespaces=["monitoring"]
    )
    assert more.feasible(exclusive) == ["n1"]


def test_daemons_keep_away_from_each_other_and_from_nobody_else():
    """L01, L02: a daemon's rule is about daemons, of its own and of other daemon namespaces."""
    settings = {"daemonNamespaces": ["kube-system", "monitoring"]}
    alone = pod("dns", "kube-system").require_anti_affinity("node", {}, namespaceSelector={})
    for other in (pod("dns-0", "kube-system"), pod("exporter", "monitoring")):
        assert Scene(*nodes(n1="a"), other.on("n1"), **settings).feasible(alone) == []
        assert Scene(*nodes(n1="a"), alone.on("n1"), **settings).feasible(other) == []
    assert Scene(*nodes(n1="a"), pod("shop").on("n1"), **settings).feasible(alone) == ["n1"]
    assert Scene(*nodes(n1="a"), alone.on("n1"), **settings).feasible(pod("shop")) == ["n1"]


def test_daemons_are_exempt_from_required_anti_affinity_alone():
    """L01: affinity, preferences and spreading treat them as all other pods."""
    agent = pod("agent", "kube-system").label(app="agent")
    scene = Scene(*nodes(n1="a", n2="a"), agent.on("n1"))
    everywhere = {"namespaceSelector": {}}
    near = pod("near").require_affinity("node", matching(app="agent"), **everywhere)
    assert scene.feasible(near) == ["n1"]
    far = pod("far").prefer_anti_affinity(1, "node", matching(app="agent"), **everywhere)
    assert scene.favourites(far, "InterPodAffinity") == ["n2"]
    even = agent.named("agent-2").spread(1, "node")
    assert scene.feasible(even) == ["n2"]


def test_spread_the_service_over_nodes_and_zones():
    """F06, F09: as a requirement one per zone; as a wish the emptiest zone, then node."""
    scene = Scene(*nodes(n1="a", n2="a", n3="b"), pod("s-0").label(service="S").on("n1"))
    both = ("node", "zone")
    required, preferred = pod("s-1").label(service="S"), pod("s-1").label(service="S")
    for key in both:
        required = required.require_anti_affinity(key, matching(service="S"))
        preferred = preferred.prefer_anti_affinity(10, key, matching(service="S"))
    assert scene.feasible(required) == ["n3"]
    assert scene.feasible(preferred) == ["n1", "n2", "n3"]
    scores = scene.explain(preferred).scores["InterPodAffinity"]
    assert scores["n1"] < scores["n2"] < scores["n3"]
    assert scene.place(required) == "n3"
    assert scene.place(required.named("s-2")) is None


def test_not_with_evil_service():
    """F07: the node of evilService is out, the others are not."""
    scene = Scene(*nodes(n1="a", n2="a"), pod("evil").label(service="evilService").on("n1"))
    careful = pod("p").label(service="S")
    careful = careful.require_anti_affinity("node", matching(service="evilService"))
    assert scene.feasible(careful) == ["n2"]


def test_only_with_pods_of_the_own_service():
    """F07: `NotIn` matches pods that lack the label too, so they keep away as well."""
    scene = Scene(
        *nodes(own="a", foreign="a", unlabelled="a"),
        pod("s-0").label(service="S").on("own"),
        pod("t-0").label(service="T").on("foreign"),
        pod("u-0").on("unlabelled"),
    )
    apart = pod("s-1").label(service="S")
    apart = apart.require_anti_affinity("node", where("service", "NotIn", "S"))
    assert scene.feasible(apart) == ["own"]


@pytest.mark.parametrize("first", ["S1", "S2"])
def test_required_anti_affinity_is_symmetric(first):
    """F02, F03: whoever comes first keeps the other out, though only S1 has a rule."""
    s1 = pod("s1").label(app="S1").require_anti_affinity("node", matching(app="S2"))
    s2 = pod("s2").label(app="S2")
    here, there = (s1, s2) if first == "S1" else (s2, s1)
    scene = Scene(*nodes(n1="a", n2="a"))
    assert scene.feasible(here) == scene.feasible(there) == ["n1", "n2"]
    scene.put(here.on("n1"))
    assert scene.feasible(there) == ["n2"]


@pytest.mark.parametrize("count", [2, FEW_DOMAINS + 2])
def test_a_placed_pods_anti_affinity_has_others_placed_elsewhere(count):
    """With a key of few domains and with one of many, which are worked out in different ways."""
    scene = Scene(*(node(f"n{i}").label(host=f"n{i}") for i in range(count)))
    owner = pod("owner").require_anti_affinity("host", matching(app="web"))
    for index in range(count - 1):
        scene.put(owner.named(f"owner-{index}").on(f"n{index}"))
    assert scene.place(pod("web-0").label(app="web")) == f"n{count - 1}"
    scene.put(owner.named("last").on(f"n{count - 1}"))
    assert scene.place(pod("web-1").label(app="web")) is None


def test_anti_affinity_reaches_as_far_as_its_topology_key():
    """F04, F05: the whole domain counts, and a node without the key is in none."""
    scene = Scene(*nodes(n1="a", n2="a", n3="b"), node("keyless"))
    scene.put(pod("b").label(app="B").require_anti_affinity("zone", matching(app="Z")).on("n1"))
    assert scene.feasible(pod("z").label(app="Z")) == ["keyless", "n3"]


def test_preferred_terms_are_symmetric():
    """G03, G07: what S1 prefers, S2 prefers too; unless switched off."""
    near = pod("s1").label(app="S1").prefer_affinity(1, "node", matching(app="S2")).on("n1")
    away = pod("s1").label(app="S1").prefer_anti_affinity(1, "node", matching(app="S2")).on("n1")
    s2 = pod("s2").label(app="S2")
    two = nodes(n1="a", n2="a")
    assert Scene(*two, near).favourites(s2, "InterPodAffinity") == ["n1"]
    assert Scene(*two, away).favourites(s2, "InterPodAffinity") == ["n2"]
    assert Scene(*two, near, symmetricPreferredAffinity=False).favourites(
        s2, "InterPodAffinity"
    ) == ["n1", "n2"]
    assert Scene(*two, away, symmetricPreferredAntiAffinity=False).favourites(
        s2, "InterPodAffinity"
    ) == ["n1", "n2"]


def test_a_preference_counts_per_pod_or_per_term():
    """G01: five pods weigh five times as much as one; in the document as much as one."""
    crowd = [pod(f"q-{number}").label(app="q").on("n1") for number in range(5)]
    things = [*nodes(n1="a", n2="b"), *crowd, pod("q-5").label(app="q").on("n2")]
    near = pod("p").prefer_affinity(10, "zone", matching(app="q"))
    assert Scene(*things).favourites(near, "InterPodAffinity") == ["n1"]
    assert Scene(*things, preferredTermWeight="PerTerm").favourites(near, "InterPodAffinity") == [
        "n1",
        "n2",
    ]


def test_pod_p_with_four_rules():
    """G08: the worked example of S0 with P1 to P4 on node, zone, rack and power."""

    def machine(name, zone, rack, power):
        return node(name).label(node=name, zone=zone, rack=rack, power=power)

    scene = Scene(
        machine("n1", "z1", "r1", "w1"),
        machine("n2", "z1", "r2", "w2"),
        machine("n3", "z2", "r3", "w3"),
        machine("n4", "z1", "r4", "w4"),
        machine("n5", "z1", "r5", "w2"),
        *(pod(f"p1-{name}").label(p1="").on(name) for name in ("n1", "n2", "n3", "n4")),
        pod("p2-0").label(p2="").on("n5"),
        pod("p3-0").label(p3="").on("n1"),
        pod("p4-0").label(p4="").on("n5"),
    )
    p = (
        pod("p")
        .require_affinity("node", where("p1", "Exists"))
        .prefer_affinity(10, "zone", where("p2", "Exists"))
        .require_anti_affinity("rack", where("p3", "Exists"))
        .prefer_anti_affinity(5, "power", where("p4", "Exists"))
    )
    assert scene.feasible(p) == ["n2", "n3", "n4"], "n1's rack runs P3, n5 itself runs no P1"
    scores = scene.explain(p).scores["InterPodAffinity"]
    assert scores["n4"] > scores["n2"] > scores["n3"], "zone of P2 off P4's power, then on it"


# S3: the namespaces of a term


def test_one_pod_per_node_over_all_customers():
    """J03, J09: the namespaces are found by their labels, not listed."""
    customers = [namespace(name).label(tier="customer") for name in ("acme", "bolt", "core")]
    scene = Scene(*nodes(n1="a", n2="a", n3="a"), *customers, pod("tool", "internal").on("n1"))
    chosen = {
        scene.place(
            pod("app", customer["metadata"]["name"])
            .label(app="saas")
            .require_anti_affinity(
                "node", matching(app="saas"), namespaceSelector=matching(tier="customer")
            )
        )
        for customer in customers
    }
    assert chosen == {"n1", "n2", "n3"}


def test_namespaces_are_selected_by_team():
    """J01, J02, J03, J04, J05: own, listed, selected, all, none."""
    scene = Scene(
        *nodes(n1="a", n2="a", n3="a", n4="a"),
        namespace("red-1").label(team="red"),
        namespace("blue-1").label(team="blue"),
        pod("q", "default").label(app="q").on("n1"),
        pod("q", "red-1").label(app="q").on("n2"),
        pod("q", "blue-1").label(app="q").on("n3"),
    )

    def apart(**namespaces):
        return pod("p").require_anti_affinity("node", matching(app="q"), **namespaces)

    assert scene.feasible(apart()) == ["n2", "n3", "n4"]
    assert scene.feasible(apart(namespaces=["blue-1"])) == ["n1", "n2", "n4"]
    assert scene.feasible(apart(namespaceSelector=matching(team="red"))) == ["n1", "n3", "n4"]
    both = apart(namespaces=["blue-1"], namespaceSelector=matching(team="red"))
    assert scene.feasible(both) == ["n1", "n4"]
    assert scene.feasible(apart(namespaceSelector={})) == ["n4"]
    assert scene.feasible(apart(namespaceSelector=matching(team="none"))) == [
        "n1", "n2", "n3", "n4",
    ]  # fmt: skip


def test_an_empty_list_of_namespaces():
    """A06: as if absent in Kubernetes, all namespaces in the document."""
    things = [*nodes(n1="a", n2="a"), pod("q", "other").label(app="q").on("n1")]
    apart = pod("p").require_anti_affinity("node", matching(app="q"), namespaces=[])
    assert Scene(*things).feasible(apart) == ["n1", "n2"]
    assert Scene(*things, semantics="DesignDocuments").feasible(apart) == ["n2"]


def test_a_namespace_that_changes_its_label_is_seen_at_once():
    """J07, J08: both by the incoming pod's rule and by a placed pod's."""
    guarded = pod("g", "red-1").require_anti_affinity(
        "node", matching(), namespaceSelector=matching(team="red")
    )
    scene = Scene(*nodes(n1="a", n2="a"), namespace("shop"), guarded.on("n1"))
    assert scene.feasible(pod("p", "shop")) == ["n1", "n2"]
    scene.put(namespace("shop").label(team="red"))
    assert scene.feasible(pod("p", "shop")) == ["n2"]


# S1: even spreading


def spread_cluster(counts, *, feasible=(), infeasible=()):
    """Zones with a node each and so many pods `foo`; nodes of `infeasible` zones are tainted."""
    things = []
    for zone, count in counts.items():
        name = f"node-{zone}"
        machine = node(name).label(zone=zone)
        things.append(machine.taint("broken") if zone in infeasible else machine)
        things += [pod(f"{zone}-{number}").label(app="foo").on(name) for number in range(count)]
    return Scene(*things)


def foo(max_skew=1, key="zone", *, soft=False, **fields):
    return pod("foo").label(app="foo").spread(max_skew, key, soft=soft, **fields)


def zones(names):
    return [name.removeprefix("node-") for name in names]


@pytest.mark.parametrize(
    ("max_skew", "expected"), [(1, ["zone3"]), (2, ["zone1", "zone2", "zone3"])]
)
def test_max_skew_over_1_1_0(max_skew, expected):
    """H01, H02: with maxSkew 1 only zone3 may become 1/1/1, with 2 any zone may grow."""
    scene = spread_cluster({"zone1": 1, "zone2": 1, "zone3": 0})
    assert zones(scene.feasible(foo(max_skew))) == expected


@pytest.mark.parametrize(
    ("key", "expected"), [("zone", ["node3a"]), ("node", ["node1c", "node2b", "node2c"])]
)
def test_three_two_one_over_seven_nodes(key, expected):
    """H04, H05: the figure of S1; by zone and by node."""
    scene = Scene(
        *nodes(node1a="1", node1b="1", node1c="1", node2a="2", node2b="2", node2c="2", node3a="3")
    )
    for name, pods in {"node1a": 1, "node1b": 2, "node2a": 2, "node3a": 1}.items():
        scene.put(*(pod(f"{name}-{n}").label(app="foo").on(name) for n in range(pods)))
    assert scene.feasible(foo(1, key)) == expected


INFEASIBLE_ZONE_3 = [
    ((1, 1, 0), [], ["zone1", "zone2"]),
    ((2, 1, 0), [], ["zone2"]),
    ((1, 1, 1), ["zone1", "zone2"], ["zone1", "zone2"]),
    ((2, 1, 1), ["zone2"], ["zone2"]),
    ((3, 3, 0), [], ["zone1", "zone2"]),
]
"""Pods in the three zones; the zones that a hard constraint lets in; those a soft one likes most."""


@pytest.mark.parametrize(("counts", "feasible", "preferred"), INFEASIBLE_ZONE_3)
def test_a_zone_is_infeasible(counts, feasible, preferred):
    """H06, H07, I03, I04: the cases of S1 in which no node of zone3 takes the pod."""
    by_zone = dict(zip(("zone1", "zone2", "zone3"), counts, strict=True))
    scene = spread_cluster(by_zone, infeasible={"zone3"})
    assert zones(scene.feasible(foo())) == feasible
    assert zones(scene.feasible(foo(soft=True))) == ["zone1", "zone2"]
    assert zones(scene.favourites(foo(soft=True), "PodTopologySpread")) == preferred


def test_a_tainted_zone_may_be_left_out_of_the_count():
    """H06: with nodeTaintsPolicy Honor zone3 is no domain, and 1/1/0 is 1/1."""
    scene = spread_cluster({"zone1": 1, "zone2": 1, "zone3": 0}, infeasible={"zone3"})
    assert zones(scene.feasible(foo(nodeTaintsPolicy="Honor"))) == ["zone1", "zone2"]


def test_spreading_over_the_zones_that_node_affinity_chooses():
    """H08, N03: evenness among two of ten zones."""
    counts = {f"zone{number}": int(number == 1) for number in range(1, 11)}
    scene = spread_cluster(counts)
    chosen = foo().require_node(requirement("zone", "In", "zone1", "zone2"))
    assert zones(scene.feasible(chosen)) == ["zone2"]
    scene.put(pod("second").label(app="foo").on("node-zone2"))
    assert zones(scene.feasible(chosen)) == ["zone1", "zone2"]


def test_nine_replicas_over_three_zones():
    """H13, I01: three in each, instead of stacked."""
    scene = Scene(*nodes(n1="a", n2="a", n3="b", n4="c"))
    zone_of = {"n1": "a", "n2": "a", "n3": "b", "n4": "c"}
    chosen = [zone_of[scene.place(foo().named(f"foo-{n}"))] for n in range(9)]
    assert {zone: chosen.count(zone) for zone in "abc"} == {"a": 3, "b": 3, "c": 3}


def test_rolling_update_is_stuck_with_anti_affinity_and_goes_on_with_spreading():
    """H14: two replicas on two nodes; the third waits for ever, or is tolerated."""
    old = [pod(f"old-{number}").label(app="web").on(f"n{number}") for number in (1, 2)]
    apart = pod("new").label(app="web").require_anti_affinity("node", matching(app="web"))
    spread = pod("new").label(app="web").spread(1, "node")
    two = Scene(*nodes(n1="a", n2="a"), *old)
    assert two.feasible(apart) == []
    assert two.feasible(spread) == ["n1", "n2"]
    three = Scene(*nodes(n1="a", n2="a", n3="a"), *old)
    assert three.feasible(apart) == ["n3"]
    assert three.feasible(spread) == ["n3"]


def test_rollouts_are_spread_by_themselves():
    """H18: matchLabelKeys keeps the old revision 3/0/0 out of the new one's count."""
    old = [pod(f"old-{n}").label(app="foo", revision="1").on("node-zone1") for n in range(3)]
    scene = spread_cluster({"zone1": 0, "zone2": 0, "zone3": 0})
    scene.put(*old)
    new = pod("new").label(app="foo", revision="2")
    together = new.spread(1, "zone", matching(app="foo"))
    apart = new.spread(1, "zone", matching(app="foo"), matchLabelKeys=["revision"])
    assert zones(scene.feasible(together)) == ["zone2", "zone3"]
    assert zones(scene.feasible(apart)) == ["zone1", "zone2", "zone3"]


def test_a_pod_outside_its_own_selector_does_not_raise_the_skew():
    """H03, H11: it may join the fullest domain, and an empty cluster takes it."""
    outsider = pod("p").label(app="other").spread(1, "zone", matching(app="foo"))
    assert zones(spread_cluster({"zone1": 1, "zone2": 0}).feasible(outsider)) == ["zone1", "zone2"]
    assert zones(spread_cluster({"zone1": 0}).feasible(outsider)) == ["zone1"]


def test_more_domains_are_wanted_than_there_are():
    """H18: 2/2/2 with minDomains 5 counts as if an empty domain existed."""
    scene = spread_cluster({"zone1": 2, "zone2": 2, "zone3": 2})
    assert scene.feasible(foo(2, minDomains=5)) == []
    assert zones(scene.feasible(foo(2, minDomains=3))) == ["zone1", "zone2", "zone3"]


def test_a_node_without_the_key_is_refused_and_not_counted():
    """H16: and the reason says so."""
    scene = spread_cluster({"zone1": 0})
    scene.put(node("keyless"), pod("q").label(app="foo").on("keyless"))
    assert zones(scene.feasible(foo())) == ["zone1"]
    missing = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert scene.reasons(foo(), "keyless") == {"PodTopologySpread": [missing]}


def test_terminating_pods_do_not_count():
    """H17: for spreading they are gone already."""
    scene = spread_cluster({"zone1": 0, "zone2": 0})
    scene.put(pod("leaving").label(app="foo").on("node-zone1").terminating())
    assert zones(scene.feasible(foo())) == ["zone1", "zone2"]


def test_spreading_in_zones_and_anti_affinity_on_nodes():
    """F10, N03: together they are "one per node, evenly over zones"."""
    scene = Scene(*nodes(n1="a", n2="a", n3="b"), pod("foo-0").label(app="foo").on("n1"))
    both = foo().require_anti_affinity("node", matching(app="foo"))
    assert scene.feasible(both) == ["n3"]
    scene.put(pod("foo-1").label(app="foo").on("n3"))
    assert scene.feasible(both) == ["n2"]


def test_a_full_zone_without_pods_still_sets_the_minimum():
    """H09: the minimum is over eligible domains, not over feasible nodes."""
    scene = spread_cluster({"zone1": 1, "zone2": 1, "zone3": 0})
    scene.put(node("node-zone3").label(zone="zone3").allocatable(pods="0"))
    assert scene.feasible(foo()) == []


def test_pods_of_two_deployments_count_together():
    """H10: labels decide, not the application; but other namespaces do not count."""
    scene = spread_cluster({"zone1": 0, "zone2": 0})
    scene.put(pod("one-0").label(app="foo", deployment="one").on("node-zone1"))
    scene.put(pod("far-0", "elsewhere").label(app="foo").on("node-zone2"))
    two = pod("two-0").label(app="foo", deployment="two").spread(1, "zone", matching(app="foo"))
    assert zones(scene.feasible(two)) == ["zone2"]


def test_an_uneven_cluster_stays_usable():
    """H12: 3/1/1 is not made worse, and nothing else is asked."""
    scene = spread_cluster({"zone1": 3, "zone2": 1, "zone3": 1})
    assert zones(scene.feasible(foo())) == ["zone2", "zone3"]


def test_soft_spreading_ranks_domains_by_their_pods():
    """I01, I02: the fuller the worse, and no domain is refused."""
    scene = spread_cluster({"zone1": 9, "zone2": 4, "zone3": 2})
    scores = scene.explain(foo(soft=True)).scores["PodTopologySpread"]
    assert scores["node-zone1"] < scores["node-zone2"] < scores["node-zone3"]


# S0 and S2: what selectors match


def test_no_selector_and_an_empty_one():
    """A05: none matches no pod, an empty one every pod."""
    scene = Scene(*nodes(n1="a"), pod("q").on("n1"))
    assert scene.feasible(pod("p").require_anti_affinity("node", None)) == ["n1"]
    assert scene.feasible(pod("p").require_anti_affinity("node", matching())) == []


def test_an_empty_node_selector_term():
    """A10: matches no node in Kubernetes, every node in the document."""
    asking = pod("p").require_node()
    assert Scene(*nodes(n1="a")).feasible(asking) == []
    assert Scene(*nodes(n1="a"), semantics="DesignDocuments").feasible(asking) == ["n1"]
    assert Scene(*nodes(n1="a"), emptyNodeSelectorTerm="MatchAll").feasible(asking) == ["n1"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("gen", "In", "7", "8"), ["seven"]),
        (("gen", "NotIn", "7"), ["none", "x"]),
        (("gen", "Exists"), ["seven", "x"]),
        (("gen", "DoesNotExist"), ["none"]),
        (("gen", "Gt", "6"), ["seven"]),
        (("gen", "Gt", "7"), []),
        (("gen", "Lt", "8"), ["seven"]),
    ],
    ids="-".join,
)
def test_operators_on_node_labels(asked, expected):
    """A11, A12: NotIn and DoesNotExist match without the label; Gt and Lt compare integers."""
    scene = Scene(node("seven").label(gen="7"), node("x").label(gen="x"), node("none"))
    assert scene.feasible(pod("p").require_node(requirement(*asked))) == expected


def test_terms_are_alternatives_and_their_requirements_are_not():
    """A09, A14: terms are ORed, requirements ANDed, and nodeSelector holds besides."""
    scene = Scene(*(each.label(disk="ssd") for each in nodes(n1="a", n2="b")), *nodes(n3="a"))
    in_a, in_b = requirement("zone", "In", "a"), requirement("zone", "In", "b")
    ssd = requirement("disk", "In", "ssd")
    either = pod("p").require_node(in_a).require_node(in_b)
    assert scene.feasible(either) == ["n1", "n2", "n3"]
    assert scene.feasible(pod("p").require_node(in_a, ssd)) == ["n1"]
    assert scene.feasible(either.node_selector(disk="ssd")) == ["n1", "n2"]


def test_a_node_without_the_topology_key():
    """D05, G06: no node for required affinity, and nothing for or against it in a score."""
    scene = Scene(*nodes(n1="a"), node("keyless"), pod("b").label(app="b").on("keyless"))
    assert scene.feasible(pod("p").require_affinity("zone", matching(app="b"))) == []
    scene.put(pod("b-1").label(app="b").on("n1"))
    assert scene.feasible(pod("p").require_affinity("zone", matching(app="b"))) == ["n1"]
    near = pod("p").prefer_affinity(5, "zone", matching(app="b"))
    assert scene.explain(near).scores["InterPodAffinity"] == {"keyless": 0, "n1": 100}


def test_the_same_question_has_the_same_answer():
    """C03: among equals a stable hash decides."""
    scene = Scene(*nodes(n1="a", n2="a", n3="a"))
    twin = Scene(*reversed(nodes(n1="a", n2="a", n3="a")))
    for number in range(20):
        assert scene.place(pod(f"p-{number}")) == twin.place(pod(f"p-{number}"))


def test_one_good_node_among_many_reasons():
    """N01, N02: every filter has its say, and only what passes all of them is scored."""
    scene = Scene(
        *nodes(good="a", busy="a", shared="a"),
        node("tainted").label(node="tainted", zone="a").taint("dedicated"),
        node("cordoned").label(node="cordoned", zone="a").cordon(),
        node("small").label(node="small", zone="a").allocatable(cpu="100m"),
        pod("listener").host_port(80).on("busy"),
        pod("rival").label(app="rival").on("shared"),
    )
    demanding = (
        pod("p").request(cpu="1").host_port(80).require_anti_affinity("node", matching(app="rival"))
    )
    answer = scene.explain(demanding)
    assert answer.feasible == ["good"]
    assert {plugin: list(by_node) for plugin, by_node in answer.filters.items()} == {
        "InterPodAffinity": ["shared"],
        "NodePorts": ["busy"],
        "NodeResourcesFit": ["small"],
        "NodeUnschedulable": ["cordoned"],
        "TaintToleration": ["tainted"],
    }
    assert all(by_node.keys() == {"good"} for by_node in answer.scores.values())
