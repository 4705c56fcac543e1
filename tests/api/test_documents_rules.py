"""How pods attract, repel and spread: groups D to J of the requirements, over HTTP.

The letters and numbers are rows of `docs/requirements.md`; `tests/engine/test_documents.py` tells
the same and more of the engine alone, with the documents' own examples.
"""

import pytest

from tests.api.harness import CLUSTER, Harness
from tests.api.story import tell
from tests.builders import (
    NodeBuilder,
    PodBuilder,
    matching,
    namespace,
    node,
    pod,
    requirement,
    where,
)

HOST = "kubernetes.io/hostname"


def nodes(**zones: str) -> list[NodeBuilder]:
    """Nodes by name in zones: `nodes(n1="a", n2="b")`, labelled with host and zone."""
    return [node(name).label({HOST: name}, zone=zone) for name, zone in zones.items()]


def crowd(count: int, node_name: str, **labels: str):
    """So many pods with these labels on one node."""
    return [pod(f"{node_name}-{n}").label(**labels).on(node_name) for n in range(count)]


# Group D: hard inter-pod affinity


async def test_only_where_a_matching_pod_runs(harness: Harness) -> None:
    """D01, D03: by node, as for a licence that is paid by node."""
    story = await tell(harness, *nodes(n1="a", n2="a"), *crowd(1, "n1", license="P"))
    licensed = pod("p").require_affinity(HOST, where("license", "In", "P"))
    assert await story.place(licensed) == ["n1"]


async def test_anywhere_in_a_zone_that_runs_one(harness: Harness) -> None:
    """D02: a node of the zone without such a pod will do as well."""
    story = await tell(harness, *nodes(n1="a", n2="a", n3="b"), *crowd(1, "n1", service="S"))
    beside = pod("p").require_affinity("zone", matching(service="S"))
    assert await story.feasible(beside) == ["n1", "n2"]


async def test_terms_are_met_by_one_pod_or_by_several(harness: Harness) -> None:
    """D04: by setting; the explanation names the preset."""
    story = await tell(harness, *nodes(n1="a"), pod("x").label(x="1").on("n1"))
    await story.put(pod("y").label(y="1").on("n1"))
    both = pod("p").require_affinity(HOST, matching(x="1")).require_affinity(HOST, matching(y="1"))
    assert (await story.explain(both))["semantics"] == "Kubernetes"
    assert await story.feasible(both) == []
    await story.configure(requiredAffinityTerms="PerTerm")
    assert await story.feasible(both) == ["n1"]
    await story.configure(semantics="DesignDocuments")
    answer = await story.explain(both)
    assert (answer["feasible"], answer["semantics"]) == (["n1"], "DesignDocuments")


async def test_a_node_without_the_key_cannot_be_beside_anybody(harness: Harness) -> None:
    """D05: neither as a place for the pod nor as a place of the pods that it wants."""
    story = await tell(harness, *nodes(n1="a"), node("keyless"), *crowd(1, "keyless", app="b"))
    beside = pod("p").require_affinity("zone", matching(app="b"))
    assert await story.feasible(beside) == []
    await story.put(*crowd(1, "n1", app="b"))
    answer = await story.explain(beside)
    assert answer["feasible"] == ["n1"]
    assert answer["filters"] == {
        "InterPodAffinity": {"keyless": ["node(s) didn't match pod affinity rules"]}
    }


async def test_who_is_wanted_need_not_want(harness: Harness) -> None:
    """D06, D07: S1 requires S2; S2 alone is free, S1 alone is not, and S1 follows S2."""
    s1 = pod("s1").require_affinity(HOST, matching(app="S2"))
    story = await tell(harness, *nodes(n1="a", n2="a"))
    assert await story.feasible(s1) == []
    (chosen,) = await story.place(pod("s2").label(app="S2"))
    assert await story.place(s1) == [chosen]
    assert await story.feasible(pod("s2-1").label(app="S2")) == ["n1", "n2"]


async def test_a_pending_pod_attracts_nobody(harness: Harness) -> None:
    """D10: it counts once it is placed."""
    target = pod("b").label(app="b").node_selector(zone="nowhere")
    beside = pod("a").require_affinity("zone", matching(app="b"))
    story = await tell(harness, *nodes(n1="a"), target)
    assert await story.place(beside) == [None]
    await story.put(target.on("n1"))
    assert await story.place(beside) == ["n1"]


# Group E: the first pod, groups


async def test_the_first_pod_goes_anywhere_and_the_others_follow(harness: Harness) -> None:
    """E01: one zone for all replicas of a service that wants its own company."""
    story = await tell(harness, *nodes(n1="a", n2="b", n3="c"))
    own = pod("s-0").label(service="S").require_affinity("zone", matching(service="S"))
    assert await story.feasible(own) == ["n1", "n2", "n3"]
    chosen = await story.place(own, own.named("s-1"), own.named("s-2"))
    assert len(set(chosen)) == 1


async def test_each_requirement_is_waived_by_itself_for_the_first_pod(harness: Harness) -> None:
    """E01: in the documents' meaning, and it is no violation that it was."""
    story = await tell(
        harness,
        *nodes(n1="a", n2="b"),
        pod("t").label(service="T").on("n2"),
        requiredAffinityTerms="PerTerm",
    )
    first = pod("s-0").label(service="S").require_affinity("zone", matching(service="S"))
    both = first.require_affinity("zone", matching(service="T"))
    assert await story.place(both) == ["n2"]
    answer = await harness.client.get(f"{CLUSTER}/violations")
    assert answer.json()["items"] == []
    assert await story.feasible(first.named("s-1")) == ["n2"], "the second one follows"


async def test_who_does_not_match_itself_is_no_first_pod(harness: Harness) -> None:
    """E02: it waits; a wish alone never waits."""
    story = await tell(harness, *nodes(n1="a"))
    lonely = pod("p").label(service="S").require_affinity("zone", matching(service="T"))
    assert await story.feasible(lonely) == []
    wishing = pod("p").label(service="S").prefer_affinity(1, "zone", matching(service="S"))
    assert await story.feasible(wishing) == ["n1"]


async def test_one_match_anywhere_ends_the_first_pods_freedom(harness: Harness) -> None:
    """E03: even where it is full; but a match that is in no domain does not count."""
    own = pod("s").label(service="S").require_affinity("zone", matching(service="S"))
    story = await tell(harness, *nodes(n1="a"), node("keyless"), own.named("s-0").on("keyless"))
    assert await story.feasible(own) == ["n1"]
    await story.put(node("full").label(zone="b").allocatable(pods="1"))
    await story.put(own.named("s-1").on("full"))
    assert await story.feasible(own) == []


async def test_a_group_shares_a_zone_in_one_commit(harness: Harness) -> None:
    """E07: three self-affine replicas, of which the zone with two places would hold two."""
    small = [each.allocatable(pods="1") for each in nodes(n1="a", n2="a", n3="b", n4="b", n5="b")]
    story = await tell(harness, *small)
    own = pod("s-0").label(service="S").require_affinity("zone", matching(service="S"))
    answer = await harness.place(own, own.named("s-1"), own.named("s-2"), policy="AllOrNothing")
    assert sorted(result["nodeName"] for result in answer["results"]) == ["n3", "n4", "n5"]
    versions = set()
    for name in ("s-0", "s-1", "s-2"):
        versions.add((await story.read(pod(name)))["metadata"]["resourceVersion"])
    assert max(map(int, versions)) == answer["revision"]


async def test_a_group_is_placed_whole_or_not_at_all(harness: Harness) -> None:
    """E08: members see each other, and a refusal names the member and the rule."""
    story = await tell(harness, *nodes(n1="a", n2="a", n3="a"))
    apart = pod("s-0").label(service="S").require_anti_affinity(HOST, matching(service="S"))
    four = [apart.named(f"s-{number}") for number in range(4)]
    answer = await harness.place(*four, policy="AllOrNothing")
    assert answer["committed"] is False
    assert answer["group"]["plugin"] == "InterPodAffinity"
    assert len(answer["group"]["failed"]) == 1
    assert sorted(await story.place(*four[:3], policy="AllOrNothing")) == ["n1", "n2", "n3"]


async def test_pods_that_want_each_other_start_as_a_group(harness: Harness) -> None:
    """E09: one by one they never could."""
    x = pod("x").label(app="x").require_affinity(HOST, matching(app="y"))
    y = pod("y").label(app="y").require_affinity(HOST, matching(app="x"))
    story = await tell(harness, *nodes(n1="a", n2="a"))
    assert await story.place(x, y) == [None, None]
    chosen = await story.place(x, y, policy="AllOrNothing")
    assert chosen in (["n1", "n1"], ["n2", "n2"])


# Group F: hard anti-affinity


async def test_any_term_that_matches_keeps_the_whole_domain_out(harness: Harness) -> None:
    """F01, F04: rack by rack and host by host, one matching term suffices."""
    story = await tell(harness, *nodes(n1="a", n2="a", n3="b", n4="c"), *crowd(1, "n1", app="q"))
    await story.put(*crowd(1, "n3", app="r"))
    apart = pod("p").require_anti_affinity("zone", matching(app="q"))
    assert await story.feasible(apart) == ["n3", "n4"]
    assert await story.feasible(apart.require_anti_affinity(HOST, matching(app="r"))) == ["n4"]


async def test_a_placed_pods_rule_keeps_others_out(harness: Harness) -> None:
    """F02, F03: in either order, and the reason tells whose rule it is."""
    s1 = pod("s1").require_anti_affinity(HOST, matching(app="S2"))
    s2 = pod("s2").label(app="S2")
    story = await tell(harness, *nodes(n1="a", n2="a"), s1.on("n1"))
    answer = await story.explain(s2)
    assert answer["feasible"] == ["n2"]
    assert answer["filters"]["InterPodAffinity"] == {
        "n1": ["node(s) didn't satisfy existing pods anti-affinity rules"]
    }
    await story.delete(s1)
    await story.put(s2.on("n1"))
    answer = await story.explain(s1.named("later"))
    assert answer["feasible"] == ["n2"]
    assert answer["filters"]["InterPodAffinity"] == {
        "n1": ["node(s) didn't match pod anti-affinity rules"]
    }


async def test_a_node_without_the_key_is_far_from_everybody(harness: Harness) -> None:
    """F05: Kubernetes allows it, whatever the document's algorithm says."""
    story = await tell(
        harness, *nodes(n1="a"), node("keyless"), *crowd(1, "n1", app="q"),
        semantics="DesignDocuments",
    )  # fmt: skip
    apart = pod("p").require_anti_affinity("zone", matching(app="q"))
    assert await story.feasible(apart) == ["keyless"]


async def test_required_over_zones_makes_required_over_nodes_redundant(harness: Harness) -> None:
    """F06: both are accepted, and there is at most one pod in a zone."""
    story = await tell(harness, *nodes(n1="a", n2="a", n3="b"))
    both = pod("s-0").label(service="S")
    for key in (HOST, "zone"):
        both = both.require_anti_affinity(key, matching(service="S"))
    chosen = await story.place(*(both.named(f"s-{number}") for number in range(3)))
    assert set(chosen[:2]) in ({"n1", "n3"}, {"n2", "n3"})
    assert chosen[2] is None


async def test_not_with_one_service_or_with_any_other(harness: Harness) -> None:
    """F07: `NotIn` keeps away from pods without the label too."""
    story = await tell(harness, *nodes(bare="a", evil="a", own="a"))
    await story.put(pod("u").on("bare"))
    await story.put(*crowd(1, "evil", service="evilService"), *crowd(1, "own", service="S"))
    mine = pod("p").label(service="S")
    careful = mine.require_anti_affinity(HOST, matching(service="evilService"))
    assert await story.feasible(careful) == ["bare", "own"]
    alone = mine.require_anti_affinity(HOST, where("service", "NotIn", "S"))
    assert await story.feasible(alone) == ["own"]


async def test_a_node_of_ones_own(harness: Harness) -> None:
    """F08: nobody beside, before or after; nodes only, so that it needs no privilege."""
    exclusive = pod("alone").require_anti_affinity(HOST, matching(), namespaceSelector={})
    story = await tell(
        harness, *nodes(n1="a", n2="a"), namespace("shop"), pod("t", "shop").on("n1")
    )
    assert await story.place(exclusive) == ["n2"]
    assert await story.place(pod("late", "shop"), pod("later")) == ["n1", "n1"]
    assert await story.place(exclusive.named("twin")) == [None]


async def test_a_pods_own_labels_do_not_keep_it_out(harness: Harness) -> None:
    """F09: though its rule matches them."""
    apart = pod("p").label(app="p").require_anti_affinity("zone", matching(app="p"))
    assert await (await tell(harness, *nodes(n1="a"))).place(apart) == ["n1"]


async def test_even_over_zones_and_one_on_a_node(harness: Harness) -> None:
    """F10, N03: anti-affinity over hosts and a constraint over zones go together."""
    story = await tell(harness, *nodes(n1="a", n2="a", n3="b", n4="b"))
    both = pod("foo-0").label(app="foo").spread(1, "zone")
    both = both.require_anti_affinity(HOST, matching(app="foo"))
    chosen = await story.place(*(both.named(f"foo-{number}") for number in range(5)))
    assert sorted(filter(None, chosen)) == ["n1", "n2", "n3", "n4"]
    assert {chosen[0] in {"n1", "n2"}, chosen[1] in {"n1", "n2"}} == {True, False}
    assert chosen[4] is None


async def test_a_rule_that_is_violated_already_still_holds(harness: Harness) -> None:
    """F11: in Kubernetes any match counts; the document let more in where one was in."""
    guard = pod("guard").require_anti_affinity("zone", matching(app="Z")).on("n1")
    story = await tell(
        harness, *nodes(n1="a", n2="a", n3="b"), guard, *crowd(1, "n2", app="Z"),
        semantics="DesignDocuments",
    )  # fmt: skip
    assert await story.feasible(pod("z").label(app="Z")) == ["n3"]


# Group G: soft inter-pod affinity


async def affinity_scores(harness: Harness, incoming, *things, **settings) -> dict[str, int]:
    """What InterPodAffinity gives each feasible node."""
    answer = await (await tell(harness, *things, **settings)).explain(incoming)
    return dict(answer["scores"].get("InterPodAffinity", {}))


async def test_a_wish_counts_once_for_each_pod_that_fulfils_it(harness: Harness) -> None:
    """G01: five times for five pods; by setting once; and the weight matters."""
    things = [*nodes(n1="a", n2="b", n3="c"), *crowd(5, "n1", app="q"), *crowd(1, "n2", app="q")]
    near = pod("p").prefer_affinity(10, "zone", matching(app="q"))
    assert await affinity_scores(harness, near, *things) == {"n1": 100, "n2": 20, "n3": 0}
    once = await affinity_scores(harness, near, preferredTermWeight="PerTerm")
    assert once == {"n1": 100, "n2": 100, "n3": 0}
    weighty = pod("p").prefer_affinity(100, "zone", matching(app="r"))
    weighty = weighty.prefer_affinity(19, "zone", matching(app="q"))
    scores = await affinity_scores(
        harness, weighty, *crowd(1, "n3", app="r"), semantics="Kubernetes"
    )
    assert scores["n3"] > scores["n1"] > scores["n2"]


async def test_soft_anti_affinity_takes_away_for_each_match(harness: Harness) -> None:
    """G02, G09: -20, -10 and 0 of weight 10, put on a scale from 0 to 100."""
    things = [*nodes(n1="a", n2="b", n3="c"), *crowd(2, "n1", app="q"), *crowd(1, "n2", app="q")]
    away = pod("p").prefer_anti_affinity(10, "zone", matching(app="q"))
    assert await affinity_scores(harness, away, *things) == {"n1": 0, "n2": 50, "n3": 100}


async def test_wishes_of_placed_pods_count_for_whom_they_name(harness: Harness) -> None:
    """G03, G07, K11: toward and away; each can be switched off, as a guard against abuse."""
    near = pod("s1").prefer_affinity(1, HOST, matching(app="S2")).on("n1")
    away = pod("s3").prefer_anti_affinity(1, HOST, matching(app="S2")).on("n2")
    s2 = pod("s2").label(app="S2")
    scores = await affinity_scores(harness, s2, *nodes(n1="a", n2="a", n3="a"), near, away)
    assert scores == {"n1": 100, "n2": 0, "n3": 50}
    scores = await affinity_scores(harness, s2, symmetricPreferredAntiAffinity=False)
    assert scores == {"n1": 100, "n2": 0, "n3": 0}
    both_off = {"symmetricPreferredAntiAffinity": False, "symmetricPreferredAffinity": False}
    assert set((await affinity_scores(harness, s2, **both_off)).values()) <= {0}


async def test_a_placed_pods_requirement_is_a_wish_of_whom_it_requires(harness: Harness) -> None:
    """G04: with weight 1, or as the setting says; 0 is none."""
    s1 = pod("s1").require_affinity(HOST, matching(app="S2")).on("n1")
    s2 = pod("s2").label(app="S2")
    scores = await affinity_scores(harness, s2, *nodes(n1="a", n2="a"), s1)
    assert scores == {"n1": 100, "n2": 0}
    unwanted = await affinity_scores(harness, s2, hardPodAffinityWeight=0)
    assert set(unwanted.values()) <= {0}


async def test_a_placed_pods_wish_counts_though_it_is_fulfilled(harness: Harness) -> None:
    """G05: in Kubernetes a second S2 pleases S1 as much as the first did."""
    s1 = pod("s1").prefer_affinity(1, HOST, matching(app="S2")).on("n1")
    old = pod("old").label(app="S2").on("n1")
    incoming = pod("new").label(app="S2")
    settings = {"semantics": "DesignDocuments"}
    scores = await affinity_scores(harness, incoming, *nodes(n1="a", n2="a"), s1, old, **settings)
    assert scores == {"n1": 100, "n2": 0}


async def test_wishes_never_filter(harness: Harness) -> None:
    """G06: the only node is good enough, and one without the key is neither good nor bad."""
    away = pod("p").prefer_anti_affinity(100, "zone", matching(app="q"))
    story = await tell(harness, *nodes(n1="a"), *crowd(3, "n1", app="q"))
    assert await story.feasible(away) == ["n1"]
    scores = await affinity_scores(harness, away, node("keyless"))
    assert scores == {"keyless": 100, "n1": 0}


# H, I: spreading


def foo(max_skew: int = 1, key: str = "zone", *, soft: bool = False, **fields):
    return pod("foo").label(app="foo").spread(max_skew, key, soft=soft, **fields)


def counts(**pods_by_node: int):
    """Nodes, each a zone of its own, with so many pods `foo`."""
    made = nodes(**{name: name for name in pods_by_node})
    return [*made, *(p for name, n in pods_by_node.items() for p in crowd(n, name, app="foo"))]


@pytest.mark.parametrize(
    ("pods", "max_skew", "expected"),
    [
        ({"z1": 1, "z2": 1, "z3": 0}, 1, ["z3"]),
        ({"z1": 1, "z2": 1, "z3": 0}, 2, ["z1", "z2", "z3"]),
        ({"z1": 3, "z2": 2, "z3": 1}, 1, ["z3"]),
        ({"z1": 3, "z2": 1, "z3": 1}, 1, ["z2", "z3"]),
    ],
    ids=["110-1", "110-2", "321-1", "311-1"],
)
async def test_no_zone_is_too_far_above_the_least(
    harness: Harness, pods: dict[str, int], max_skew: int, expected: list[str]
) -> None:
    """H01, H02, H04, H12: an uneven cluster stays usable, and is not made worse."""
    assert await (await tell(harness, *counts(**pods))).feasible(foo(max_skew)) == expected


@pytest.mark.parametrize("selector", [None, {}], ids=["null", "empty"])
async def test_a_constraint_without_a_selector_never_refuses(harness: Harness, selector) -> None:
    """H17: neither null nor an empty selector counts any pod."""
    constraint = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector}
    spread = pod("p").label(app="foo")
    spread["spec"]["topologySpreadConstraints"] = [constraint]
    story = await tell(harness, *counts(z1=5, z2=0))
    assert await story.feasible(spread) == ["z1", "z2"]


async def test_an_imbalance_moves_nobody(harness: Harness) -> None:
    """H12, R09: constraints are for new placements; nothing moves by itself afterwards."""
    story = await tell(harness, *nodes(n1="a", n2="b"))
    chosen = await story.place(*(foo().named(f"foo-{number}") for number in range(4)))
    assert sorted(chosen) == ["n1", "n1", "n2", "n2"]
    gone = [f"foo-{number}" for number in range(4) if chosen[number] == "n2"]
    for name in gone:
        await story.delete(pod(name))
    for name in {"foo-0", "foo-1", "foo-2", "foo-3"} - set(gone):
        kept = await story.read(pod(name))
        assert kept["spec"]["nodeName"] == "n1"
        assert "deletionTimestamp" not in kept["metadata"]
    assert await story.feasible(foo()) == ["n2"]


async def test_there_is_no_greatest_number_of_pods_in_a_domain(harness: Harness) -> None:
    """H15: a constraint bounds the difference, never the number; a field for it is unknown."""
    assert await (await tell(harness, *counts(z1=9, z2=9))).feasible(foo()) == ["z1", "z2"]
    assert await (await tell(harness)).wrong_fields(foo(maxPods=3))


async def test_a_rolling_update_is_stuck_with_anti_affinity_and_not_with_spreading(
    harness: Harness,
) -> None:
    """H14: the third of two is tolerated while there are two nodes, and takes a third one at once."""
    old = [pod(f"old-{number}").label(app="foo").on(f"n{number}") for number in (1, 2)]
    new = pod("new").label(app="foo")
    story = await tell(harness, *nodes(n1="a", n2="a"), *old)
    apart = new.require_anti_affinity(HOST, matching(app="foo"))
    assert await story.feasible(apart) == []
    assert await story.feasible(new.spread(1, HOST)) == ["n1", "n2"]
    await story.put(*nodes(n3="a"))
    assert await story.feasible(apart) == ["n3"]
    assert await story.place(new.spread(1, HOST)) == ["n3"]


FALLBACK = {"whenUnsatisfiable": "FallbackWhenFull"}


async def test_a_rollout_goes_on_where_only_full_zones_have_room_under_the_constraint(
    harness: Harness,
) -> None:
    """H14: hard as long as zone b takes a pod, then soft; and hard again once it does."""
    new = pod("new").label(app="foo")
    old = [new.named(f"old-{number}").on("n1") for number in range(2)]
    strict, lenient = new.spread(1, "zone"), new.spread(1, "zone", **FALLBACK)
    story = await tell(harness, *nodes(n1="a", n2="b"), *old)
    assert await story.feasible(lenient) == ["n2"]
    assert "exemptions" not in await story.explain(lenient)
    outage = node("n2").label(zone="b").cordon()
    await story.put(outage)
    assert await story.feasible(strict) == []
    told = await story.explain(lenient)
    assert told["feasible"] == ["n1"]
    assert told["exemptions"] == [
        {
            "rule": "spec.topologySpreadConstraints[0]",
            "ownerNamespace": None,
            "topologyKey": "zone",
            "reason": (
                "FallbackWhenFull: "
                "no node on which the pod fits otherwise has room under the constraint."
            ),
            "pods": 2,
            "nodes": 1,
        }
    ]
    assert await story.place(lenient) == ["n1"]
    await story.put(*nodes(n2="b"))
    assert await story.place(lenient.named("next")) == ["n2"]


async def test_a_group_is_placed_where_its_constraint_falls_back(harness: Harness) -> None:
    """H14: all of it in the zone that takes pods, each member judged as if it came last."""
    story = await tell(harness, *nodes(n1="a", n2="a"), node("n3").label(zone="b").cordon())
    member = pod("s-0").label(app="foo").spread(1, "zone", **FALLBACK)
    answer = await harness.place(
        member, member.named("s-1"), member.named("s-2"), policy="AllOrNothing"
    )
    assert {each["nodeName"] for each in answer["results"]} <= {"n1", "n2"}
    assert (await story.read(member))["spec"]["nodeName"]


async def test_a_placed_pod_whose_constraint_fell_back_breaks_no_rule(harness: Harness) -> None:
    """H14: as nobody knows whether there was room when it was placed."""
    pods = [
        pod(f"foo-{number}").label(app="foo").spread(1, "zone", **FALLBACK).on("n1")
        for number in range(3)
    ]
    await tell(harness, *nodes(n1="a", n2="b"), *pods)
    answer = await harness.client.get(f"{CLUSTER}/violations")
    assert answer.json()["items"] == []


async def test_a_constraint_that_may_fall_back_is_one_of_a_pod(harness: Harness) -> None:
    """H14: `minDomains` is for it, too; default constraints of a cluster cannot have it."""
    story = await tell(harness, *nodes(n1="a"))
    many = pod("p").label(app="foo").spread(1, "zone", minDomains=3, **FALLBACK)
    assert await story.feasible(many) == ["n1"]
    constraint = {"topologyKey": "zone", "labelSelector": {}, **FALLBACK}
    body = {"config": {"defaultTopologySpreadConstraints": [constraint]}}
    merge = {"content-type": "application/merge-patch+json"}
    answer = await harness.client.patch(CLUSTER, json=body, headers=merge)
    assert answer.status_code == 422
    [told] = answer.json()["errors"]
    assert told["field"].endswith("defaultTopologySpreadConstraints[0].whenUnsatisfiable")


async def test_nine_replicas_over_three_zones(harness: Harness) -> None:
    """H13: three in each."""
    story = await tell(harness, *nodes(n1="a", n2="b", n3="c"))
    chosen = await story.place(*(foo().named(f"foo-{number}") for number in range(9)))
    assert sorted(chosen) == sorted(["n1", "n2", "n3"] * 3)


async def test_soft_spreading_ranks_and_never_filters(harness: Harness) -> None:
    """I01, I02, I04: fewer pods are better, the same number is as good."""
    story = await tell(harness, *counts(z1=4, z2=2, z3=2))
    answer = await story.explain(foo(soft=True))
    scores = answer["scores"]["PodTopologySpread"]
    assert answer["feasible"] == ["z1", "z2", "z3"]
    assert scores["z1"] < scores["z2"] == scores["z3"]


# Group J: the namespaces of a term


def apart(**namespaces):
    return pod("p").require_anti_affinity(HOST, matching(app="q"), **namespaces)


async def test_own_listed_selected_and_all_namespaces(harness: Harness) -> None:
    """J01, J02, J03, J04: a list does not include one's own; selector and list are a union."""
    story = await tell(
        harness,
        *nodes(n1="a", n2="a", n3="a"),
        namespace("red").label(team="red"),
        namespace("blue").label(team="blue"),
        pod("q").label(app="q").on("n1"),
        pod("q", "red").label(app="q").on("n2"),
        pod("q", "blue").label(app="q").on("n3"),
    )
    assert await story.feasible(apart()) == ["n2", "n3"]
    assert await story.feasible(apart(namespaces=["blue"])) == ["n1", "n2"]
    both = apart(namespaces=["blue"], namespaceSelector=matching(team="red"))
    assert await story.feasible(both) == ["n1"]
    story_of_all = apart(namespaceSelector={})
    await story.put(namespace("default"))
    assert await story.feasible(story_of_all) == []


async def test_all_namespaces_are_those_that_come_later_too(harness: Harness) -> None:
    """J04: the rule is placed first, the namespace made afterwards."""
    story = await tell(harness, *nodes(n1="a", n2="a"), apart(namespaceSelector={}).on("n1"))
    late = pod("q", "late").label(app="q")
    await story.put(namespace("late"))
    assert await story.feasible(late) == ["n2"]


async def test_a_selector_may_select_no_namespace(harness: Harness) -> None:
    """J05: that is no pods, not one's own; an undeclared namespace has no labels."""
    nobody = matching(team="none")
    story = await tell(harness, *nodes(n1="a"), pod("q").label(app="q").on("n1"))
    assert await story.feasible(apart(namespaceSelector=nobody)) == ["n1"]
    beside = pod("p").require_affinity(HOST, matching(app="q"), namespaceSelector=nobody)
    assert await story.feasible(beside) == []
    assert await story.place(pod("p", "undeclared")) == ["n1"]


async def test_namespaces_are_those_of_the_revision_decided_on(harness: Harness) -> None:
    """J06, J07, J08: one decision sees one state; the next sees the new label, both ways."""
    red = matching(team="red")
    guard = pod("guard", "bank").require_anti_affinity(HOST, matching(), namespaceSelector=red)
    careful = pod("p", "bank").require_anti_affinity(HOST, matching(app="q"), namespaceSelector=red)
    story = await tell(
        harness,
        *nodes(n1="a", n2="a", n3="a"),
        namespace("shop"),
        guard.on("n1"),
        pod("q", "shop").label(app="q").on("n2"),
    )
    before = await harness.place(careful, dryRun=True, explain="Full")
    assert before["results"][0]["explanation"]["feasible"] == ["n1", "n2", "n3"]
    assert await story.feasible(pod("new", "shop")) == ["n1", "n2", "n3"]
    await story.put(namespace("shop").label(team="red"))
    after = await harness.place(careful, dryRun=True, explain="Full")
    assert after["results"][0]["explanation"]["feasible"] == ["n1", "n3"]
    planned = [each["results"][0]["plannedRevision"] for each in (before, after)]
    assert planned[0] < planned[1]
    assert await story.feasible(pod("new", "shop")) == ["n2", "n3"]


async def test_one_pod_on_a_node_over_all_customers(harness: Harness) -> None:
    """J09: customers are found by a label of their namespaces."""
    names = ("acme", "bolt", "core")
    customers = [namespace(name).label(tier="customer") for name in names]
    story = await tell(harness, *nodes(n1="a", n2="a", n3="a"), *customers)
    chosen = await story.place(
        *(
            pod("app", name)
            .label(app="saas")
            .require_anti_affinity(
                HOST, matching(app="saas"), namespaceSelector=matching(tier="customer")
            )
            for name in names
        )
    )
    assert sorted(filter(None, chosen)) == ["n1", "n2", "n3"]


RED = {"namespaceSelector": matching(team="red")}


def of_red(count: int, node_name: str) -> list[PodBuilder]:
    """So many pods of the service on a node, in a namespace of the team red."""
    return [pod(f"{node_name}-{n}", "shop").label(app="foo").on(node_name) for n in range(count)]


async def test_a_constraint_counts_the_pods_of_the_namespaces_that_it_selects(
    harness: Harness,
) -> None:
    """J10: only the own ones without a selector, all with an empty one."""
    story = await tell(
        harness,
        *nodes(n1="a", n2="b"),
        namespace("default"),
        namespace("shop").label(team="red"),
        *of_red(2, "n1"),
        pod("own").label(app="foo").on("n2"),
    )
    own = pod("p").label(app="foo")
    assert await story.feasible(own.spread(1, "zone")) == ["n1"]
    assert await story.feasible(own.spread(1, "zone", **RED)) == ["n2"]
    assert await story.feasible(own.spread(1, "zone", namespaceSelector={})) == ["n2"]
    assert await story.place(own.spread(1, "zone", soft=True)) == ["n1"]
    await story.delete(own)
    assert await story.place(own.spread(1, "zone", soft=True, **RED)) == ["n2"]


async def test_a_pod_counts_itself_only_in_a_namespace_that_is_selected(harness: Harness) -> None:
    """J10: and when its namespace is relabelled, it does or does no longer."""
    story = await tell(
        harness, *nodes(n1="a", n2="b"), namespace("shop").label(team="red"), *of_red(1, "n1")
    )
    spread = pod("p").label(app="foo").spread(1, "zone", **RED)
    assert await story.feasible(spread) == ["n1", "n2"]
    await story.put(namespace("default").label(team="red"))
    assert await story.feasible(spread) == ["n2"]
    await story.put(namespace("default"))
    assert await story.feasible(spread) == ["n1", "n2"]


async def test_default_constraints_select_no_namespaces(harness: Harness) -> None:
    """J10: they are about pods of the own namespace, as their services and owners are."""
    constraint = pod("p").spread(1, "zone", **RED)["spec"]["topologySpreadConstraints"][0]
    change = {"config": {"defaultTopologySpreadConstraints": [constraint]}}
    answer = await harness.client.patch(CLUSTER, json=change)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"].endswith("defaultTopologySpreadConstraints[0].namespaceSelector")


async def test_zones_that_node_affinity_excludes_are_no_domains(harness: Harness) -> None:
    """H08, N03: even over the two zones that the pod may use."""
    story = await tell(harness, *counts(z1=1, z2=1, z3=0))
    chosen = foo().require_node(requirement("zone", "In", "z1", "z2"))
    assert await story.feasible(chosen) == ["z1", "z2"]
    assert await story.feasible(foo(nodeAffinityPolicy="Ignore").require_node(
        requirement("zone", "In", "z1", "z2")
    )) == []  # fmt: skip
