"""Rules in a pod's annotation, over HTTP: row R01 of `docs/requirements.md`."""

import json
from typing import Any

import pytest

from service.model.registry.manifests import TemplateCache, load_pod, parse_pod
from tests.api.harness import CLUSTER, Harness
from tests.api.story import Story, tell
from tests.builders import (
    IGNORED_DURING_EXECUTION,
    PodBuilder,
    matching,
    node,
    pod,
    requirement,
    term,
)

KEY = "rules.moorage.dev/v1alpha1"
PATH = f"metadata.annotations[{KEY}]"
APART = {"podAntiAffinity": {IGNORED_DURING_EXECUTION: [term("zone", matching(app="web"))]}}
ZONES = [node(f"n{number}").label(zone=f"z{number}") for number in (1, 2, 3)]


def annotated(plain: PodBuilder, rules: Any, key: str = KEY) -> PodBuilder:
    """The pod with rules in its annotation."""
    changed = plain.named(plain["metadata"]["name"])
    text = rules if isinstance(rules, str) else json.dumps(rules)
    changed["metadata"]["annotations"] = {key: text}
    return changed


async def violated(story: Story) -> list[str]:
    answer = await story.harness.client.get(f"{CLUSTER}/violations")
    return [each["rule"] for each in answer.json()["items"]]


async def test_an_annotation_adds_rules_to_those_of_the_spec(harness: Harness) -> None:
    """R01: both hold, and the explanation says which of them the annotation brought."""
    own = pod("web").label(app="web").require_anti_affinity("zone", matching(app="db"))
    web = annotated(own, {"affinity": APART})
    placed = [pod("db").label(app="db").on("n1"), pod("old").label(app="web").on("n2")]
    story = await tell(harness, *ZONES, *placed)
    assert await story.feasible(own) == ["n2", "n3"]
    told = await story.explain(web)
    assert told["feasible"] == ["n3"]
    assert told["rulesFrom"] == {
        "annotation": KEY,
        "mode": "Add",
        "rules": [f"spec.affinity.podAntiAffinity.{IGNORED_DURING_EXECUTION}[1]"],
    }
    assert "rulesFrom" not in await story.explain(own)
    assert await story.place(web) == ["n3"]
    stored = await story.read(web)
    assert stored["metadata"]["annotations"] == web["metadata"]["annotations"]
    assert stored["spec"]["affinity"] == web["spec"]["affinity"]


async def test_an_annotation_replaces_the_fields_that_it_has(harness: Harness) -> None:
    """R01: what is replaced counts as left out of the spec; other fields of it go on to hold."""
    own = (
        pod("web").label(app="web").require_node(requirement("zone", "In", "z1")).spread(1, "zone")
    )
    story = await tell(harness, *ZONES, pod("old").label(app="web").on("n3"))
    replaced = annotated(own, {"mode": "Replace", "affinity": {}})
    assert await story.feasible(own) == ["n1"]
    assert await story.feasible(replaced) == ["n1", "n2"]
    assert (await story.explain(replaced))["rulesFrom"]["mode"] == "Replace"
    constraints = {"mode": "Replace", "topologySpreadConstraints": []}
    assert await story.feasible(annotated(own, constraints)) == ["n1"]


async def test_every_kind_of_rule_may_be_in_an_annotation(harness: Harness) -> None:
    """R01: with Moorage's own fields, for pods of a type that cannot hold them."""
    rules = {
        "affinity": {
            "nodeAffinity": {
                IGNORED_DURING_EXECUTION: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [requirement("zone", "In", "z1", "z2")]}
                    ]
                }
            }
        },
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "labelSelector": {}, "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "connections": [{"topologyKey": "zone", "labelSelector": {}, "weight": 100}],
    }
    told = await (await tell(harness, *ZONES)).explain(annotated(pod("p"), rules))
    assert told["feasible"] == ["n1", "n2"]
    assert told["rulesFrom"]["rules"] == [
        f"spec.affinity.nodeAffinity.{IGNORED_DURING_EXECUTION}",
        "spec.topologySpreadConstraints[0]",
        "spec.connections[0]",
    ]


async def test_rules_of_an_annotation_hold_for_as_long_as_the_pod_is_there(
    harness: Harness,
) -> None:
    """R01: in both directions, after a write that says the same, and in violations, by their place."""
    web = annotated(pod("web").label(app="web"), {"affinity": APART})
    story = await tell(harness, *ZONES[:2])
    assert await story.place(web.on("n1")) == ["n1"]
    await story.put(web)
    assert await story.feasible(pod("late").label(app="web")) == ["n2"]
    await story.put(pod("late").label(app="web").on("n1"))
    assert await violated(story) == [f"spec.affinity.podAntiAffinity.{IGNORED_DURING_EXECUTION}[0]"]


async def test_the_annotation_of_a_waiting_pod_may_change_and_that_of_a_placed_one_not(
    harness: Harness,
) -> None:
    """R01: its rules are rules of the pod."""
    nowhere = {"affinity": {"podAffinity": {IGNORED_DURING_EXECUTION: [term("zone", {})]}}}
    story = await tell(harness, node("n1"))
    web = pod("web").label(app="web")
    assert await story.place(annotated(web, nowhere), onUnschedulable="Queue") == [None]
    await story.put(annotated(web, {"affinity": APART}))
    placed = annotated(web, nowhere).on("n1").named("other")
    await story.put(placed)
    for other in (annotated(placed, {"affinity": APART}), web.named("other").on("n1")):
        assert await story.wrong_fields(other) == {PATH: "may not change in a placed pod"}


async def test_admission_judges_the_rules_of_an_annotation(harness: Harness) -> None:
    """R01: nobody can evade it."""
    everywhere = term("zone", {}, namespaceSelector={})
    rules = {"affinity": {"podAntiAffinity": {IGNORED_DURING_EXECUTION: [everywhere]}}}
    story = await tell(harness, *ZONES, restrictAllNamespacesAntiAffinity=True)
    (result,) = (await harness.place(annotated(pod("p"), rules)))["results"]
    assert result["outcome"] == "Denied"
    assert await story.place(annotated(pod("q"), {"affinity": APART})) != [None]


async def test_pods_of_one_spec_with_and_without_an_annotation_differ(harness: Harness) -> None:
    """R01: also where the spec is known by its bytes, and admission has added to it."""
    web = pod("web").label(app="web").prefer_affinity(1, "zone", {}, matchLabelKeys=["app"])
    web["spec"]["priorityClassName"] = "high"
    apart = annotated(web, {"affinity": APART})
    story = await tell(harness, *ZONES, priorityClasses={"high": 7})
    plain = await story.place(*(web.named(f"plain-{number}") for number in range(2)))
    assert plain[0] == plain[1]
    chosen = await story.place(*(apart.named(f"apart-{number}") for number in range(3)))
    assert sorted(name or "none" for name in [plain[0], *chosen]) == ["n1", "n2", "n3", "none"]
    explained = await story.explain(apart)
    assert explained["rulesFrom"]["rules"] == [
        f"spec.affinity.podAntiAffinity.{IGNORED_DURING_EXECUTION}[0]"
    ]


def test_a_stored_pod_is_read_with_the_rules_of_its_annotation() -> None:
    """R01: by a process that has never seen it, and by one that has."""
    known = TemplateCache()
    manifest = parse_pod(dict(annotated(pod("web"), {"affinity": APART})), known)
    for templates in (known, TemplateCache()):
        loaded = load_pod(manifest.render(), templates)
        assert loaded.pod == manifest.pod
        assert loaded.render() == manifest.render()
    assert load_pod(manifest.render(), known).pod.spec is manifest.pod.spec


@pytest.mark.parametrize(
    ("rules", "wrong", "message"),
    [
        ("{", "", "must be JSON"),
        ('{"mode": "Add", "mode": "Add"}', "", "must be JSON"),
        ("[]", "", "must be an object"),
        ({"mode": "Merge"}, ".mode", "must be one of Add, Replace"),
        ({"nodeSelector": {}}, ".nodeSelector", "unknown field"),
        (
            {"affinity": {"podAffinity": {IGNORED_DURING_EXECUTION: [term("", {})]}}},
            f".affinity.podAffinity.{IGNORED_DURING_EXECUTION}[0].topologyKey",
            "can not be empty",
        ),
        (
            {
                "affinity": {
                    "podAffinity": {
                        IGNORED_DURING_EXECUTION: [term("zone", {}, matchLabelKeys=["app"])]
                    }
                }
            },
            f".affinity.podAffinity.{IGNORED_DURING_EXECUTION}[0].matchLabelKeys",
            "cannot be used here",
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}}]},
            ".topologySpreadConstraints",
            "added to the spec's own: topologySpreadConstraints[1] repeats",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        IGNORED_DURING_EXECUTION: {"nodeSelectorTerms": [{"matchExpressions": []}]}
                    }
                }
            },
            f".affinity.nodeAffinity.{IGNORED_DURING_EXECUTION}",
            "cannot be added",
        ),
    ],
)
async def test_what_is_wrong_in_an_annotation_is_named(
    harness: Harness, rules: Any, wrong: str, message: str
) -> None:
    """R01: by the annotation and the path inside of it."""
    own = (
        pod("web").label(app="web").require_node(requirement("zone", "In", "z1")).spread(1, "zone")
    )
    told = await (await tell(harness)).wrong_fields(annotated(own, rules))
    assert list(told) == [PATH + wrong]
    assert told[PATH + wrong].startswith(message)


@pytest.mark.parametrize("rules", [{}, {"affinity": {}}])
async def test_an_unknown_version_of_the_annotation_is_refused(
    harness: Harness, rules: dict[str, Any]
) -> None:
    """R01: so that no rule is left out in silence."""
    key = "rules.moorage.dev/v1"
    story = await tell(harness)
    told = await story.wrong_fields(annotated(pod("p"), rules, key))
    assert told == {f"metadata.annotations[{key}]": f"is no known version; did you mean {KEY}?"}
