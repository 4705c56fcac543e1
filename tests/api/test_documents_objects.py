"""What objects look like and which are refused: groups A to C of the requirements, over HTTP.

The letters and numbers are rows of `docs/requirements.md`.
"""

from typing import Any

import pytest

from tests.api.harness import Harness
from tests.api.story import tell
from tests.builders import (
    IGNORED_DURING_EXECUTION,
    PREFERRED,
    REQUIRED_DURING_EXECUTION,
    matching,
    node,
    pod,
    requirement,
    service,
    term,
)

AFFINITY = "spec.affinity"
NODE_TERMS = f"{AFFINITY}.nodeAffinity.{IGNORED_DURING_EXECUTION}.nodeSelectorTerms"
WAITING = {"placePendingPods": False}
"""Stored pods stay as they are until a placement asks for them."""


def with_affinity(**affinity: Any):
    """A pod with `spec.affinity` exactly as given."""
    made = pod("p")
    made["spec"]["affinity"] = affinity
    return made


def with_constraint(**fields: Any):
    """A pod with one spread constraint, exactly as given."""
    made = pod("p").label(app="foo")
    made["spec"]["topologySpreadConstraints"] = [fields]
    return made


async def test_a_pod_without_affinity_has_no_rules(harness: Harness) -> None:
    """A01: nothing is made up, and every node will do."""
    story = await tell(harness, node("n1"), node("n2"), pod("p"), **WAITING)
    assert "affinity" not in (await story.read(pod("p")))["spec"]
    assert await story.feasible(pod("q")) == ["n1", "n2"]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
async def test_three_lists_of_pod_terms_are_kept(over_each_store: Harness, kind: str) -> None:
    """A02: required during execution, required for scheduling only, preferred."""
    one = term("zone", matching(app="db"))
    lists = {
        REQUIRED_DURING_EXECUTION: [one],
        IGNORED_DURING_EXECUTION: [one, one],
        PREFERRED: [{"weight": 7, "podAffinityTerm": one}],
    }
    sent = with_affinity(**{kind: lists})
    story = await tell(over_each_store, sent, **WAITING)
    assert (await story.read(sent))["spec"]["affinity"] == {kind: lists}


@pytest.mark.parametrize("weight", [0, 101, -1, 1.5, None])
async def test_weights_are_whole_numbers_from_1_to_100(harness: Harness, weight: Any) -> None:
    """A03, C02: there is no negative wish, for pods as for nodes."""
    preferred_pod = {"weight": weight, "podAffinityTerm": term("zone", {})}
    preferred_node = {"weight": weight, "preference": {"matchExpressions": []}}
    wrong = with_affinity(
        podAffinity={PREFERRED: [preferred_pod]}, nodeAffinity={PREFERRED: [preferred_node]}
    )
    assert (await (await tell(harness)).wrong_fields(wrong)).keys() == {
        f"{AFFINITY}.podAffinity.{PREFERRED}[0].weight",
        f"{AFFINITY}.nodeAffinity.{PREFERRED}[0].weight",
    }


async def test_all_fields_of_a_pod_term_are_kept(over_each_store: Harness) -> None:
    """A04: the three of the document and the three that came later."""
    full = term(
        "zone",
        matching(app="db"),
        namespaces=["shop"],
        namespaceSelector=matching(team="red"),
        matchLabelKeys=["revision"],
        mismatchLabelKeys=["tenant"],
    )
    sent = with_affinity(podAntiAffinity={IGNORED_DURING_EXECUTION: [full]})
    story = await tell(over_each_store, sent, **WAITING)
    kept = (await story.read(sent))["spec"]["affinity"]["podAntiAffinity"]
    assert kept == {IGNORED_DURING_EXECUTION: [full]}


async def test_no_selector_and_an_empty_one_are_kept_apart(over_each_store: Harness) -> None:
    """A05: null matches no pod, `{}` every pod, and both come back as they were sent."""
    for selector, expected in ((None, ["n1"]), ({}, [])):
        apart = pod("p").require_anti_affinity("node", selector)
        story = await tell(
            over_each_store, node("n1").label(node="n1"), pod("q").on("n1"), apart, **WAITING
        )
        (kept,) = (await story.read(apart))["spec"]["affinity"]["podAntiAffinity"][
            IGNORED_DURING_EXECUTION
        ]
        assert kept["labelSelector"] == selector
        assert await story.feasible(apart.named("another")) == expected


@pytest.mark.parametrize("namespaces", [None, []])
async def test_no_namespaces_and_an_empty_list_are_kept_apart(
    over_each_store: Harness, namespaces: Any
) -> None:
    """A06: they mean the same by default, all namespaces by setting, and stay what they are."""
    apart = pod("p").require_anti_affinity(
        "kubernetes.io/hostname", matching(app="q"), namespaces=namespaces
    )
    story = await tell(
        over_each_store,
        node("n1").label({"kubernetes.io/hostname": "n1"}),
        pod("q", "other").label(app="q").on("n1"),
        apart,
        **WAITING,
    )
    (kept,) = (await story.read(apart))["spec"]["affinity"]["podAntiAffinity"][
        IGNORED_DURING_EXECUTION
    ]
    assert kept["namespaces"] == namespaces
    assert await story.feasible(apart.named("another")) == ["n1"]
    await story.configure(emptyNamespaceList="AllNamespaces", **WAITING)
    expected = ["n1"] if namespaces is None else []
    assert await story.feasible(apart.named("another")) == expected


@pytest.mark.parametrize("key", ["", None])
async def test_a_pod_term_needs_a_topology_key(harness: Harness, key: Any) -> None:
    """A07: Kubernetes' meaning, not the document's "all topologies"."""
    wrong = with_affinity(podAntiAffinity={IGNORED_DURING_EXECUTION: [term(key, {})]})
    path = f"{AFFINITY}.podAntiAffinity.{IGNORED_DURING_EXECUTION}[0].topologyKey"
    assert (await (await tell(harness)).wrong_fields(wrong)).keys() == {path}


async def test_nodes_of_one_value_are_one_domain(harness: Harness) -> None:
    """A08: co-located is who shares the value of the key with a node that runs such a pod."""
    story = await tell(
        harness,
        node("n1").label(rack="r1"),
        node("n2").label(rack="r1"),
        node("n3").label(rack="r2"),
        pod("q").label(app="q").on("n1"),
    )
    assert await story.feasible(pod("p").require_affinity("rack", matching(app="q"))) == [
        "n1",
        "n2",
    ]
    apart = pod("p").require_anti_affinity("rack", matching(app="q"))
    assert await story.feasible(apart) == ["n3"]


async def test_a_node_can_be_named_by_a_field(harness: Harness) -> None:
    """A09: besides expressions on labels a term has fields, of which there is one."""
    story = await tell(harness, node("n1"), node("n2"))
    named = {"matchFields": [requirement("metadata.name", "In", "n2")]}
    wanting = with_affinity(nodeAffinity={IGNORED_DURING_EXECUTION: {"nodeSelectorTerms": [named]}})
    assert await story.feasible(wanting) == ["n2"]
    named["matchFields"][0]["key"] = "spec.podCIDR"
    assert await story.wrong_fields(wanting)


async def test_an_empty_node_selector_term_by_setting(harness: Harness) -> None:
    """A10: no node or every node; the explanation names the preset."""
    story = await tell(harness, node("n1"))
    answer = await story.explain(pod("p").require_node())
    assert (answer["feasible"], answer["semantics"]) == ([], "Kubernetes")
    await story.configure(semantics="DesignDocuments")
    answer = await story.explain(pod("p").require_node())
    assert (answer["feasible"], answer["semantics"]) == (["n1"], "DesignDocuments")


async def test_wrong_requirements_are_all_named(harness: Harness) -> None:
    """A11, A12: unknown operators, wrong numbers of values and operands that are no integer."""
    wrong = pod("p").require_node(
        requirement("a", "Regex", "x"),
        requirement("a", "In"),
        requirement("a", "Exists", "x"),
        requirement("a", "Gt", "1", "2"),
        requirement("a", "Lt", "abc"),
    )
    expressions = f"{NODE_TERMS}[0].matchExpressions"
    fields = (await (await tell(harness)).wrong_fields(wrong)).keys()
    assert f"{expressions}[0].operator" in fields
    assert {field.split(".values")[0] for field in fields if ".values" in field} == {
        f"{expressions}[{index}]" for index in range(1, 5)
    }


async def test_a_preferred_term_is_spelt_with_preference(harness: Harness) -> None:
    """A13: the inline spelling of the document's type is refused with a hint."""
    inline = {"weight": 1, "matchExpressions": [requirement("zone", "In", "Z")]}
    story = await tell(harness)
    messages = await story.wrong_fields(with_affinity(nodeAffinity={PREFERRED: [inline]}))
    path = f"{AFFINITY}.nodeAffinity.{PREFERRED}[0]"
    assert "did you mean preference.matchExpressions?" in messages[f"{path}.matchExpressions"]


async def test_an_empty_preference_prefers_nothing(harness: Harness) -> None:
    """A13: the totals are those of a pod without it."""
    story = await tell(harness, node("n1").label(zone="a"), node("n2"))
    empty = with_affinity(nodeAffinity={PREFERRED: [{"weight": 50, "preference": {}}]})
    totals = {str((await story.explain(each))["total"]) for each in (empty, pod("p"))}
    assert len(totals) == 1


async def test_node_selector_and_node_affinity_are_kept_side_by_side(harness: Harness) -> None:
    """A14: both must hold, neither is turned into the other."""
    both = pod("p").node_selector(zone="a").require_node(requirement("disk", "In", "ssd"))
    story = await tell(
        harness,
        node("n1").label(zone="a", disk="ssd"),
        node("n2").label(zone="a"),
        node("n3").label(disk="ssd"),
        both,
        **WAITING,
    )
    kept = (await story.read(both))["spec"]
    assert kept["nodeSelector"] == both["spec"]["nodeSelector"]
    assert kept["affinity"] == both["spec"]["affinity"]
    assert await story.feasible(both.named("another")) == ["n1"]


async def test_a_spread_constraint_is_shown_with_its_defaults(over_each_store: Harness) -> None:
    """A15, A16, A17: skew 1, DoNotSchedule, affinity honoured, taints ignored."""
    sent = with_constraint(topologyKey="zone", labelSelector=matching(app="foo"))
    story = await tell(over_each_store, sent, **WAITING)
    assert (await story.read(sent))["spec"]["topologySpreadConstraints"] == [
        {
            "topologyKey": "zone",
            "labelSelector": matching(app="foo"),
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
        }
    ]


@pytest.mark.parametrize(
    ("fields", "wrong", "message"),
    [
        ({"selector": {}}, "selector", "did you mean labelSelector?"),
        ({"whenUnsatisfiable": "Maybe"}, "whenUnsatisfiable", "must be one of"),
        ({"affinityTerms": [{}]}, "affinityTerms", "unknown field"),
        ({"maxSkew": 0}, "maxSkew", "must be greater than 0"),
        ({"maxSkew": -1}, "maxSkew", "must be greater than 0"),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            "minDomains",
            "can only be used if whenUnsatisfiable is DoNotSchedule",
        ),
    ],
    ids=["selector", "action", "nested", "zero", "negative", "soft-min-domains"],
)
async def test_a_wrong_spread_constraint_is_refused(
    harness: Harness, fields: dict[str, Any], wrong: str, message: str
) -> None:
    """A15, A16, A17: other spellings of the document, no skew, and domains of a mere wish."""
    messages = await (await tell(harness)).wrong_fields(
        with_constraint(topologyKey="zone", **fields)
    )
    assert message in messages[f"spec.topologySpreadConstraints[0].{wrong}"]


async def test_the_rejected_mix_in_of_the_document_is_no_field(harness: Harness) -> None:
    """A15: `evenSpreading` inside of affinity was an alternative that was not built."""
    wrong = with_affinity(evenSpreading={"maxSkew": 1})
    assert (await (await tell(harness)).wrong_fields(wrong)).keys() == {f"{AFFINITY}.evenSpreading"}


async def test_a_constraint_may_not_be_repeated(harness: Harness) -> None:
    """A17: one for each key and action."""
    twice = pod("p").label(app="foo").spread(1, "zone").spread(2, "zone")
    messages = await (await tell(harness)).wrong_fields(twice)
    assert messages.keys() == {"spec.topologySpreadConstraints[1]"}


async def test_all_constraints_have_to_hold(harness: Harness) -> None:
    """A15: even over zones and over hosts."""
    story = await tell(
        harness,
        node("n1").label(zone="a", host="n1"),
        node("n2").label(zone="a", host="n2"),
        node("n3").label(zone="b", host="n3"),
        node("n4").label(zone="b", host="n4"),
        pod("q1").label(app="foo").on("n1"),
    )
    both = pod("p").label(app="foo").spread(1, "zone").spread(1, "host")
    assert await story.feasible(both) == ["n3", "n4"]
    await story.put(pod("q2").label(app="foo").on("n3"))
    assert await story.feasible(both) == ["n2", "n4"]


async def test_default_constraints_are_for_pods_without_their_own(harness: Harness) -> None:
    """A17: of the cluster, for pods of a service; a pod's own constraints replace them."""
    default = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    story = await tell(
        harness,
        node("n1").label(zone="a", host="n1"),
        node("n2").label(zone="b", host="n2"),
        pod("q").label(app="foo").on("n1"),
        defaultTopologySpreadConstraints=[default],
    )
    assert await story.feasible(pod("p").label(app="foo")) == ["n1", "n2"]
    await story.put(service(app="foo"))
    assert await story.feasible(pod("p").label(app="foo")) == ["n2"]
    assert await story.feasible(pod("p").label(app="foo").spread(2, "host")) == ["n1", "n2"]


async def test_labels_of_nodes_are_never_invented(harness: Harness) -> None:
    """A18: a node without the host's key is in no domain of it."""
    bare = node("n1")
    story = await tell(harness, bare, pod("q").on("n1"))
    assert not (await story.read(bare))["metadata"].get("labels")
    apart = pod("p").require_anti_affinity("kubernetes.io/hostname", matching())
    assert await story.feasible(apart) == ["n1"]


# Group B: hard node affinity


async def test_a_pod_stays_unscheduled_where_no_node_is_right(harness: Harness) -> None:
    """B01: every node says why, and pods have nothing to do with it."""
    story = await tell(harness, node("n1").label(zone="b"), node("n2").label(zone="b"))
    wanting = pod("p").require_node(requirement("zone", "In", "a"))
    expected = {
        name: ["node(s) didn't match Pod's node affinity/selector"] for name in ("n1", "n2")
    }
    assert await story.place(wanting) == [None]
    assert (await story.explain(wanting))["filters"]["NodeAffinity"] == expected
    await story.put(pod("q").label(zone="a").on("n1"))
    assert (await story.explain(wanting))["filters"]["NodeAffinity"] == expected


async def test_a_placed_pod_may_stay_when_its_node_changes(harness: Harness) -> None:
    """B02: required for scheduling says nothing of later."""
    wanting = pod("p").require_node(requirement("zone", "In", "a"))
    story = await tell(harness, node("n1").label(zone="a"))
    assert await story.place(wanting) == ["n1"]
    await story.put(node("n1").label(zone="b"))
    kept = await story.read(wanting)
    assert kept["spec"]["nodeName"] == "n1"
    assert "deletionTimestamp" not in kept["metadata"]


async def test_both_variants_of_required_node_affinity(harness: Harness) -> None:
    """B03: required during execution filters as its sibling does; both, their intersection."""
    story = await tell(
        harness,
        node("n1").label(zone="a", disk="ssd"),
        node("n2").label(zone="a"),
        node("n3").label(disk="ssd"),
    )
    in_a, ssd = requirement("zone", "In", "a"), requirement("disk", "In", "ssd")
    always = pod("p").require_node(in_a, execution=REQUIRED_DURING_EXECUTION)
    assert await story.feasible(always) == ["n1", "n2"]
    assert await story.feasible(always.require_node(ssd)) == ["n1"]


async def test_a_node_selector_has_terms(harness: Harness) -> None:
    """B05: none at all would be a riddle."""
    wrong = with_affinity(nodeAffinity={IGNORED_DURING_EXECUTION: {"nodeSelectorTerms": []}})
    assert (await (await tell(harness)).wrong_fields(wrong)).keys() == {NODE_TERMS}


# Group C: soft node affinity


async def test_weights_of_matching_terms_are_added_up(harness: Harness) -> None:
    """C01, C02: 40 of both, 30 and 10 of one, normalised to 100; the next best will do."""
    in_a, ssd = requirement("zone", "In", "a"), requirement("disk", "In", "ssd")
    story = await tell(
        harness,
        node("both").label(zone="a", disk="ssd"),
        node("disk").label(disk="ssd"),
        node("none"),
        node("zone").label(zone="a"),
    )
    wanting = pod("p").prefer_node(10, in_a).prefer_node(30, ssd)
    answer = await story.explain(wanting)
    assert answer["scores"]["NodeAffinity"] == {"both": 100, "disk": 75, "none": 0, "zone": 25}
    assert answer["best"] == ["both"]
    for name in ("both", "disk", "zone"):
        await story.delete(node(name))
    assert await story.place(wanting) == ["none"]


async def test_ties_are_listed_and_broken_alike_every_time(harness: Harness) -> None:
    """C03: equals are in `best`; which of them it is, is the same at each try."""
    story = await tell(harness, *(node(f"n{number}") for number in range(4)))
    assert (await story.explain(pod("p")))["best"] == ["n0", "n1", "n2", "n3"]
    tries = {(await story.place(pod("p"), dryRun=True))[0] for _ in range(20)}
    assert await story.place(pod("p")) == list(tries)
