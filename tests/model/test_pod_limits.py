"""What one pod may ask for in all its lists together, and that stored pods are read whatever they ask."""

import json

import pytest

from service.model.core.errors import InvalidManifest
from service.model.registry.manifests import Limits, TemplateCache, load_pod, parse_pod
from tests.builders import HOST, matching, pod, requirement, term, where

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANNOTATION = "rules.moorage.dev/v1alpha1"


def repelling(*terms):
    built = pod("p")
    built["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: list(terms)}}
    return built


def node_terms(count, key="zone"):
    built = pod("p")
    for number in range(count):
        built = built.require_node(requirement(f"{key}{number}", "Exists"))
    return built


def spread(count):
    built = pod("p").label(app="a")
    for number in range(count):
        built = built.spread(1, f"k{number}")
    return built


def one_selector(count):
    expressions = [requirement(f"k{n}", "NotIn", "v") for n in range(count)]
    return repelling(term(HOST, {"matchExpressions": expressions}))


def resources(count):
    names = {f"example.com/r{n}": "1" for n in range(count)}
    built = pod("p")
    built["spec"]["containers"][0]["resources"] = {"requests": names, "limits": names}
    return built


def host_ports(count):
    built = pod("p")
    ports = [{"containerPort": 1, "hostPort": n + 1, "protocol": "TCP"} for n in range(count)]
    built["spec"]["containers"][0]["ports"] = ports
    return built


CASES = {
    "pod_terms_max": (
        "affinity",
        "affinity terms",
        lambda n: repelling(*(term(HOST, matching(a=f"{i}")) for i in range(n))),
    ),
    "pod_expressions_max": ("affinity", "requirements in all selectors", one_selector),
    "pod_values_max": (
        "affinity",
        "values in all selectors",
        lambda n: repelling(term(HOST, where("a", "In", *(f"v{i}" for i in range(n))))),
    ),
    "pod_topology_keys_max": (
        "affinity",
        "different labels of nodes",
        lambda n: repelling(*(term(f"k{i}", matching(a="b")) for i in range(n))),
    ),
    "pod_constraints_max": ("topologySpreadConstraints", "constraints", spread),
    "pod_resources_max": ("containers", "different resources", resources),
    "pod_ports_max": ("containers", "host ports", host_ports),
}


def encoded(manifest):
    return json.dumps(manifest, separators=(",", ":")).encode()


def refusals(manifest, **limits):
    try:
        parse_pod(encoded(manifest), TemplateCache(limits=Limits(**limits)))
    except InvalidManifest as error:
        return {each.field: each.message for each in error.errors}
    return {}


@pytest.mark.parametrize("limit", CASES)
def test_a_pod_may_ask_for_as_much_as_its_limit_says_and_no_more(limit):
    field, things, make = CASES[limit]
    assert refusals(make(5), **{limit: 5}) == {}
    told = f"has 6 {things}, over the limit ({limit}) of 5"
    assert refusals(make(6), **{limit: 5}) == {f"spec.{field}": told}


def test_terms_of_all_lists_count_together():
    built = node_terms(2).prefer_node(1, requirement("zone0", "Exists"))
    built = built.require_affinity(HOST, matching(a="b")).prefer_anti_affinity(1, HOST, matching())
    built["spec"]["connections"] = [
        {"topologyKey": HOST, "labelSelector": matching(a="b"), "weight": 1}
    ]
    assert refusals(built, pod_terms_max=4) == {}
    assert "has 4 affinity terms" in refusals(built, pod_terms_max=3)["spec.affinity"]


def test_alternatives_of_a_node_selector_count_by_their_requirements():
    names = [requirement("kubernetes.io/hostname", "In", f"n{n}") for n in range(1_000)]
    built = pod("p").require_node(*names)
    for name in names[1:]:
        built = built.require_node(name)
    assert refusals(built) == {}
    told = refusals(built, pod_expressions_max=1_998)["spec.affinity"]
    assert "has 1999 requirements in all selectors" in told


def test_labels_by_which_nodes_are_selected_count_with_topology_keys():
    built = node_terms(2).node_selector(a="b", zone0="c").require_affinity(HOST, matching(a="b"))
    assert refusals(built, pod_topology_keys_max=4) == {}
    assert "has 4 different" in refusals(built, pod_topology_keys_max=3)["spec.affinity"]


def test_the_defaults_let_in_what_real_manifests_ask_for():
    """A thousand requirements or values in one selector are cheap, and let in."""
    values = repelling(term(HOST, where("a", "In", *(f"v{n}" for n in range(1_000)))))
    for built in (one_selector(1_000), values, node_terms(50), spread(10), resources(20)):
        assert refusals(built) == {}


def test_the_defaults_refuse_what_would_fill_the_memory_of_a_server():
    terms = repelling(*(term(HOST, where(f"k{n}", "NotIn", "no")) for n in range(1_000)))
    assert "over the limit (pod_terms_max) of 100" in refusals(terms)["spec.affinity"]
    keys = repelling(*(term(f"k{n}", matching(a="b")) for n in range(65)))
    assert "over the limit (pod_topology_keys_max) of 64" in refusals(keys)["spec.affinity"]


def test_a_stored_pod_is_read_though_a_limit_is_lower_now():
    raised = TemplateCache(limits=Limits())
    body = parse_pod(encoded(one_selector(20)), raised).with_identity("u", "2026-01-01T00:00:00Z")
    templates = TemplateCache(limits=Limits(pod_expressions_max=10))
    for _ in range(2):
        assert load_pod(body.render(), templates).pod == body.pod
    with pytest.raises(InvalidManifest, match="pod_expressions_max"):
        parse_pod(encoded(one_selector(20)), templates)
    assert load_pod(body.render(), templates).pod == body.pod
    assert parse_pod(encoded(one_selector(10)), templates)


@pytest.mark.parametrize("mode", ["Add", "Replace"])
def test_rules_of_an_annotation_count_with_those_of_the_spec(mode):
    added = {
        "mode": mode,
        "affinity": {
            "podAntiAffinity": {
                REQUIRED: [
                    {"labelSelector": matching(a=f"{n}"), "topologyKey": HOST} for n in range(3)
                ]
            }
        },
    }
    built = repelling(*(term(HOST, matching(b=f"{n}")) for n in range(2)))
    built["metadata"]["annotations"] = {ANNOTATION: json.dumps(added)}
    most = 5 if mode == "Add" else 3
    assert refusals(built, pod_terms_max=most) == {}
    told = refusals(built, pod_terms_max=most - 1)
    assert [message for message in told.values() if "pod_terms_max" in message], told
