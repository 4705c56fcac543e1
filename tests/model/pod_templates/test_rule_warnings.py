"""Rules that can never hold, contradict each other or change nothing are told, and no others."""

import pytest

from service.model.pods.rule_warnings import warnings_of_own_labels, warnings_of_rules
from tests.engine import objects

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DURING = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def in_(key, *values):
    return {"key": key, "operator": "In", "values": [*values]}


def nodes(*terms):
    return {"nodeSelectorTerms": [{"matchExpressions": [*each]} for each in terms]}


def node_affinity(**rules):
    return {"affinity": {"nodeAffinity": rules}}


def preferring(*expressions):
    return [{"weight": 5, "preference": {"matchExpressions": [*expressions]}}]


def term(labels=None, **fields):
    selector = {"matchLabels": {"app": "web"}} if labels is None else labels
    return {"topologyKey": ZONE, "labelSelector": selector, **fields}


def spread(selector):
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    }


def pods(kind, **rules):
    return {"affinity": {kind: rules}}


NOTHING = {"matchExpressions": [in_("app", "a"), in_("app", "b")]}
WEB = {"matchLabels": {"app": "web"}}


def pod(spec, labels=None):
    manifest = {
        "metadata": {"name": "web-0", "namespace": "shop", "labels": labels or {"app": "web"}},
        "spec": {"containers": [{"name": "c"}], **spec},
    }
    return objects.pod(manifest, incoming=True)


def told(spec):
    return [(each.field, each.code) for each in warnings_of_rules(pod(spec).spec)]


NODE = "spec.affinity.nodeAffinity"
PODS = "spec.affinity.podAffinity"
OTHERS = "spec.affinity.podAntiAffinity"

SPECS = {
    "two zones at once": (
        {"nodeSelector": {ZONE: "a"}, **node_affinity(**{REQUIRED: nodes([in_(ZONE, "b", "c")])})},
        [(f"{NODE}.{REQUIRED}.nodeSelectorTerms", "RuleNeverHolds")],
    ),
    "one term of two is hopeless": (
        {
            "nodeSelector": {ZONE: "a"},
            **node_affinity(**{REQUIRED: nodes([in_(ZONE, "b")], [in_("disk", "ssd")])}),
        },
        [(f"{NODE}.{REQUIRED}.nodeSelectorTerms[0]", "RuleNeverMatters")],
    ),
    "both required rules exclude each other": (
        node_affinity(**{REQUIRED: nodes([in_(ZONE, "a")]), DURING: nodes([in_(ZONE, "b")])}),
        [(NODE, "RuleNeverHolds")],
    ),
    "a preference that no allowed node has": (
        {"nodeSelector": {ZONE: "a"}, **node_affinity(**{PREFERRED: preferring(in_(ZONE, "b"))})},
        [(f"{NODE}.{PREFERRED}[0].preference", "RuleNeverMatters")],
    ),
    "a preference that every allowed node has": (
        {"nodeSelector": {ZONE: "a"}, **node_affinity(**{PREFERRED: preferring(in_(ZONE, "a"))})},
        [(f"{NODE}.{PREFERRED}[0].preference", "RuleNeverMatters")],
    ),
    "an empty preference": (
        node_affinity(**{PREFERRED: preferring()}),
        [(f"{NODE}.{PREFERRED}[0].preference", "RuleNeverMatters")],
    ),
    "affinity to no pod": (
        pods("podAffinity", **{REQUIRED: [term(NOTHING)]}),
        [(f"{PODS}.{REQUIRED}[0]", "RuleNeverHolds")],
    ),
    "affinity in no namespace": (
        pods("podAffinity", **{REQUIRED: [term(namespaceSelector=NOTHING)]}),
        [(f"{PODS}.{REQUIRED}[0]", "RuleNeverHolds")],
    ),
    "anti-affinity against no pod": (
        pods("podAntiAffinity", **{REQUIRED: [term(NOTHING)]}),
        [(f"{OTHERS}.{REQUIRED}[0]", "RuleNeverMatters")],
    ),
    "a preferred term about no pod": (
        pods("podAntiAffinity", **{PREFERRED: [{"weight": 1, "podAffinityTerm": term(NOTHING)}]}),
        [(f"{OTHERS}.{PREFERRED}[0].podAffinityTerm", "RuleNeverMatters")],
    ),
    "one term twice": (
        pods("podAntiAffinity", **{REQUIRED: [term(), term()]}),
        [(f"{OTHERS}.{REQUIRED}[1]", "RuleNeverMatters")],
    ),
    "one term during execution and for scheduling": (
        pods("podAntiAffinity", **{DURING: [term()], REQUIRED: [term()]}),
        [(f"{OTHERS}.{REQUIRED}[0]", "RuleNeverMatters")],
    ),
    "together and apart": (
        {
            "affinity": {
                "podAffinity": {REQUIRED: [term()]},
                "podAntiAffinity": {REQUIRED: [term()]},
            }
        },
        [(f"{OTHERS}.{REQUIRED}[0]", "RulesContradict")],
    ),
    "nothing to spread": (
        spread(NOTHING),
        [("spec.topologySpreadConstraints[0].labelSelector", "RuleNeverMatters")],
    ),
}

SENSIBLE = {
    "no rules": {},
    "a zone and a disk": {
        "nodeSelector": {ZONE: "a"},
        **node_affinity(**{REQUIRED: nodes([in_("disk", "ssd")])}),
    },
    "a preference among allowed nodes": {
        "nodeSelector": {ZONE: "a"},
        **node_affinity(**{PREFERRED: preferring(in_("disk", "ssd"))}),
    },
    "a preference for one of two terms": node_affinity(
        **{
            REQUIRED: nodes([in_(ZONE, "a")], [in_(ZONE, "b")]),
            PREFERRED: preferring(in_(ZONE, "a")),
        }
    ),
    "numbers with one between them": node_affinity(
        **{
            REQUIRED: nodes(
                [
                    {"key": "cores", "operator": "Gt", "values": ["7"]},
                    {"key": "cores", "operator": "Lt", "values": ["9"]},
                ]
            )
        }
    ),
    "apart from others of its kind": pods("podAntiAffinity", **{REQUIRED: [term()]}),
    "together in a zone and apart on nodes": {
        "affinity": {
            "podAffinity": {REQUIRED: [term()]},
            "podAntiAffinity": {REQUIRED: [term(topologyKey="kubernetes.io/hostname")]},
        }
    },
    "at most two in a zone": {
        "affinity": {
            "podAffinity": {REQUIRED: [term()]},
            "podAntiAffinity": {REQUIRED: [term(maxPerDomain=2)]},
        }
    },
    "the same preference twice": pods(
        "podAffinity", **{PREFERRED: [{"weight": 1, "podAffinityTerm": term()}] * 2}
    ),
    "spread": spread(WEB),
}


@pytest.mark.parametrize("name", SPECS)
def test_what_has_no_effect_is_told_with_its_path(name):
    spec, expected = SPECS[name]
    assert told(spec) == expected


@pytest.mark.parametrize("name", SENSIBLE)
def test_of_sensible_rules_nothing_is_told(name):
    assert told(SENSIBLE[name]) == []


@pytest.mark.parametrize(
    ("labels", "selector", "count"),
    [
        ({"app": "web"}, WEB, 0),
        ({"app": "shop"}, WEB, 1),
        ({"app": "shop"}, NOTHING, 0),
        ({"app": "shop"}, {}, 0),
    ],
)
def test_a_spread_constraint_without_its_own_pod_is_told(labels, selector, count):
    incoming = pod(spread(selector), labels)
    found = list(warnings_of_own_labels(incoming.spec, incoming.labels))
    assert [each.code for each in found] == ["RuleLeavesOutItsPod"] * count


def test_more_combinations_than_are_looked_at_are_not_judged(monkeypatch):
    monkeypatch.setattr("service.model.pods.rule_warnings.COMBINATIONS_MAX", 1)
    rules = {
        REQUIRED: nodes([in_(ZONE, "a")], [in_(ZONE, "b")]),
        DURING: nodes([in_(ZONE, "c")], [in_(ZONE, "d")]),
    }
    assert told(node_affinity(**rules)) == []
