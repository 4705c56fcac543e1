"""Every rule of what is valid, by one object that breaks it, and that all are named together."""

from typing import Any

import pytest

from service.model.core.errors import InvalidManifest
from service.model.registry.manifests import (
    Limits,
    PodManifest,
    TemplateCache,
    parse_any,
    parse_node,
    parse_pod,
)

RDI = "requiredDuringSchedulingIgnoredDuringExecution"
RDE = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(labels: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p"} | ({"labels": labels} if labels is not None else {})
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]} | spec}


def node(**fields: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": "n"}} | fields


def errors(manifest: Any, limits: Limits | None = None) -> dict[str, str]:
    """Field to message, empty if the manifest is valid."""
    templates = TemplateCache(limits=limits)
    try:
        read = parse_any(manifest, templates)
        if isinstance(read, PodManifest):
            read.created_now(templates)
    except InvalidManifest as refused:
        return {error.field: error.message for error in refused.errors}
    return {}


def requests(**amounts: Any) -> dict[str, Any]:
    names = {"gpu": "example.com/gpu", "eph": "ephemeral-storage", "huge": "hugepages-2Mi"}
    return {"requests": {names.get(name, name): amount for name, amount in amounts.items()}}


def whole(**amounts: Any) -> dict[str, Any]:
    """Requests, and limits that are equal to them."""
    asked = requests(**amounts)
    return asked | {"limits": asked["requests"]}


def with_resources(resources: Any) -> dict[str, Any]:
    return pod(containers=[{"resources": resources}])


def required_nodes(*terms: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": {RDI: {"nodeSelectorTerms": list(terms)}}})


def node_expression(key: str, operator: str, *values: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def node_field(key: str, operator: str, *values: Any) -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def preferred_nodes(*terms: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": {PREFERRED: list(terms)}})


def anti(labels: Any = None, **term: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {}} | term
    return pod(labels, affinity={"podAntiAffinity": {RDI: [term]}})


def spread(*constraints: Any, labels: Any = None) -> dict[str, Any]:
    whole = [{"topologyKey": "zone", "labelSelector": {}} | each for each in constraints]
    return pod(labels, topologySpreadConstraints=whole)


TERMS = f"spec.affinity.nodeAffinity.{RDI}.nodeSelectorTerms"
LIKED = f"spec.affinity.nodeAffinity.{PREFERRED}"
ANTI = f"spec.affinity.podAntiAffinity.{RDI}[0]"
SPREAD = "spec.topologySpreadConstraints"
ASKED = "spec.containers[0].resources.requests"

REFUSED = [
    # names and metadata
    ({"kind": "Pod", "spec": {"containers": [{}]}}, "metadata"),
    ({"kind": "Node", "metadata": {}}, "metadata.name"),
    ({"kind": "Node", "metadata": {"name": "x" * 300}}, "metadata.name"),
    ({"kind": "Node", "metadata": {"name": "Upper"}}, "metadata.name"),
    ({"kind": "Node", "metadata": {"name": "line\n"}}, "metadata.name"),
    ({"kind": "Node", "metadata": {"name": 5}}, "metadata.name"),
    ({"kind": "Namespace", "metadata": {"name": "dotted.name"}}, "metadata.name"),
    ({"kind": "Namespace", "metadata": {"name": "x" * 64}}, "metadata.name"),
    ({"kind": "Node", "apiVersion": "v2", "metadata": {"name": "n"}}, "apiVersion"),
    ({"kind": "Node", "metadata": {"name": "n", "uid": 'a"b'}}, "metadata.uid"),
    ({"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "now"}}, "metadata.creationTimestamp"),
    ({"kind": "Node", "metadata": {"name": "n", "annotations": {"a b": ""}}}, "metadata.annotations[a b]"),
    ({"kind": "Node", "metadata": {"name": "n", "annotations": {"a": "x" * 2**18}}}, "metadata.annotations"),
    (pod({"a": "x" * 64}), "metadata.labels[a]"),
    (pod({"a": "-4"}), "metadata.labels[a]"),
    (pod({"a": None}), "metadata.labels[a]"),
    (pod({"a/b/c": ""}), "metadata.labels[a/b/c]"),
    (pod({"/a": ""}), "metadata.labels[/a]"),
    (pod({"x" * 64: ""}), f"metadata.labels[{'x' * 64}]"),
    (pod({"": ""}), "metadata.labels[]"),
    (pod([]), "metadata.labels"),
    # containers
    ({"kind": "Pod", "metadata": {"name": "p"}}, "spec"),
    ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}, "spec.containers"),
    (pod(containers=[]), "spec.containers"),
    (pod(containers=[None]), "spec.containers[0]"),
    (pod(containers=[{"name": "Up"}]), "spec.containers[0].name"),
    (pod(initContainers=[{"name": "c"}]), "spec.containers[0].name"),
    (pod(containers=[{"ports": [{}]}]), "spec.containers[0].ports[0].containerPort"),
    (pod(containers=[{"ports": [{"containerPort": 0}]}]), "spec.containers[0].ports[0].containerPort"),
    (pod(containers=[{"ports": [{"containerPort": 80, "hostPort": 65536}]}]), "spec.containers[0].ports[0].hostPort"),
    (pod(containers=[{"ports": [{"containerPort": 80, "protocol": "tcp"}]}]), "spec.containers[0].ports[0].protocol"),
    (pod(containers=[{"ports": [{"containerPort": 80, "hostIP": "1.2.3"}]}]), "spec.containers[0].ports[0].hostIP"),
    (pod(containers=[{"ports": [{"containerPort": 80, "name": "-"}]}]), "spec.containers[0].ports[0].name"),
    (pod(hostNetwork=True, containers=[{"ports": [{"containerPort": 80, "hostPort": 81}]}]), "spec.containers[0].ports[0].hostPort"),
    # resources
    (with_resources(requests(cpu="1.5.Gi")), f"{ASKED}[cpu]"),
    (with_resources(requests(cpu="1e999")), f"{ASKED}[cpu]"),
    (with_resources(requests(cpu="-1")), f"{ASKED}[cpu]"),
    (with_resources(requests(cpu="1" * 33)), f"{ASKED}[cpu]"),
    (with_resources(requests(cpu="9223372036854775807")), f"{ASKED}[cpu]"),
    (with_resources(requests(memory="8Ei")), f"{ASKED}[memory]"),
    (with_resources(requests(memory=[])), f"{ASKED}[memory]"),
    (pod() | {"status": {"resources": requests(cpu="much")}}, "status.resources.requests[cpu]"),
    (pod() | {"status": {"allocatedResources": {"cpu": -1}}}, "status.allocatedResources[cpu]"),
    (with_resources(requests(memory=True)), f"{ASKED}[memory]"),
    (with_resources(requests(pods="1")), f"{ASKED}[pods]"),
    (with_resources({"limits": {"requests.a/b": "1"}}), "spec.containers[0].resources.limits[requests.a/b]"),
    (with_resources(requests(gpu="1")), "spec.containers[0].resources.limits[example.com/gpu]"),
    (with_resources(requests(gpu="1") | {"limits": {"example.com/gpu": "2"}}), f"{ASKED}[example.com/gpu]"),
    (with_resources({"limits": {"example.com/gpu": "500m"}}), "spec.containers[0].resources.limits[example.com/gpu]"),
    (with_resources(requests(cpu="2") | {"limits": {"cpu": "1"}}), f"{ASKED}[cpu]"),
    (with_resources({"request": {}}), "spec.containers[0].resources.request"),
    (with_resources([]), "spec.containers[0].resources"),
    (pod(containers=[{"resources": requests(memory="4Ei")}] * 2), "spec.containers"),
    (pod(resources=requests(eph="1")), "spec.resources.requests[ephemeral-storage]"),
    (pod(resources={"claims": []}), "spec.resources.claims"),
    (pod(overhead={"cpu": "x"}), "spec.overhead[cpu]"),
    (with_resources(requests(cpu="1") | {"limits": {"hugepages-2Mi": "3Mi"}}), "spec.containers[0].resources.limits[hugepages-2Mi]"),
    (with_resources({"requests": {"cpu": "1"}, "limits": {"hugepages-2Mi": "1"}}), "spec.containers[0].resources.limits[hugepages-2Mi]"),
    (with_resources({"requests": {"cpu": "1"}, "limits": {"hugepages-": "2Mi"}}), "spec.containers[0].resources.limits[hugepages-]"),
    (with_resources({"requests": {"cpu": "1"}, "limits": {"hugepages-big": "2Mi"}}), "spec.containers[0].resources.limits[hugepages-big]"),
    (with_resources({"requests": {"cpu": "1"}, "limits": {"hugepages-1500m": "3"}}), "spec.containers[0].resources.limits[hugepages-1500m]"),
    (with_resources({"limits": {"hugepages-2Mi": "4Mi"}}), "spec.containers[0].resources"),
    (with_resources(whole(huge="4Mi", eph="1Gi")), "spec.containers[0].resources"),
    (with_resources(requests(cpu="1", huge="4Mi")), "spec.containers[0].resources.limits[hugepages-2Mi]"),
    (with_resources(requests(cpu="1", huge="4Mi") | {"limits": {"hugepages-2Mi": "6Mi"}}), f"{ASKED}[hugepages-2Mi]"),
    (pod(resources=requests(memory="1Gi") | {"limits": {"hugepages-2Mi": "3Mi"}}), "spec.resources.limits[hugepages-2Mi]"),
    (pod(resources=whole(huge="4Mi")), "spec.resources"),
    (pod(overhead={"cpu": "1", "hugepages-2Mi": "3Mi"}), "spec.overhead[hugepages-2Mi]"),
    (pod(overhead={"hugepages-2Mi": "4Mi"}), "spec.overhead"),
    # node affinity
    (required_nodes(), TERMS),
    (pod(affinity={"nodeAffinity": {RDE: {}}}), f"spec.affinity.nodeAffinity.{RDE}.nodeSelectorTerms"),
    (required_nodes(node_expression("a", "Regex", "x")), f"{TERMS}[0].matchExpressions[0].operator"),
    (required_nodes(node_expression("a", "In")), f"{TERMS}[0].matchExpressions[0].values"),
    (required_nodes(node_expression("a", "Exists", "x")), f"{TERMS}[0].matchExpressions[0].values"),
    (required_nodes(node_expression("a", "Gt", "1", "2")), f"{TERMS}[0].matchExpressions[0].values"),
    (required_nodes(node_expression("a", "Gt", "abc")), f"{TERMS}[0].matchExpressions[0].values[0]"),
    (required_nodes(node_expression("a", "Gt", "-4")), f"{TERMS}[0].matchExpressions[0].values[0]"),
    (required_nodes(node_expression("a", "In", "x" * 64)), f"{TERMS}[0].matchExpressions[0].values[0]"),
    (required_nodes(node_expression("a b", "Exists")), f"{TERMS}[0].matchExpressions[0].key"),
    (required_nodes({"matchExpressions": [{"operator": "Exists"}]}), f"{TERMS}[0].matchExpressions[0].key"),
    (required_nodes(node_field("metadata.uid", "In", "x")), f"{TERMS}[0].matchFields[0].key"),
    (required_nodes(node_field("metadata.name", "Exists")), f"{TERMS}[0].matchFields[0].operator"),
    (required_nodes(node_field("metadata.name", "In", "a", "b")), f"{TERMS}[0].matchFields[0].values"),
    (required_nodes(node_field("metadata.name", "In", "A")), f"{TERMS}[0].matchFields[0].values[0]"),
    (required_nodes({"matchExpression": []}), f"{TERMS}[0].matchExpression"),
    (preferred_nodes({"weight": 0, "preference": {}}), f"{LIKED}[0].weight"),
    (preferred_nodes({"weight": 101, "preference": {}}), f"{LIKED}[0].weight"),
    (preferred_nodes({"weight": 1.5, "preference": {}}), f"{LIKED}[0].weight"),
    (preferred_nodes({"weight": True, "preference": {}}), f"{LIKED}[0].weight"),
    (preferred_nodes({"weight": "1", "preference": {}}), f"{LIKED}[0].weight"),
    (preferred_nodes({"weight": 1}), f"{LIKED}[0].preference"),
    (pod(nodeSelector={"a": "b c"}), "spec.nodeSelector[a]"),
    # pod affinity
    (anti(topologyKey=""), f"{ANTI}.topologyKey"),
    (anti(topologyKey=None), f"{ANTI}.topologyKey"),
    (anti(topologyKey="a b"), f"{ANTI}.topologyKey"),
    (anti(namespaces=["*"]), f"{ANTI}.namespaces[0]"),
    (anti(namespaces="shop"), f"{ANTI}.namespaces"),
    (anti(labelSelector={"matchLabels": {"a": "!"}}), f"{ANTI}.labelSelector.matchLabels[a]"),
    (anti(labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}), f"{ANTI}.labelSelector.matchExpressions[0].operator"),
    (anti(namespaceSelector={"a": "b"}), f"{ANTI}.namespaceSelector.a"),
    (anti(labelSelector=None, matchLabelKeys=["a"]), f"{ANTI}.matchLabelKeys"),
    (anti(matchLabelKeys=["a"], mismatchLabelKeys=["a"]), f"{ANTI}.matchLabelKeys[0]"),
    (anti(matchLabelKeys=["a b"]), f"{ANTI}.matchLabelKeys[0]"),
    (anti({"app": "x"}, matchLabelKeys=["app"], labelSelector={"matchLabels": {"app": "x"}}), f"{ANTI}.matchLabelKeys[0]"),
    (pod(affinity={"podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": {}}]}}), f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey"),
    (pod(affinity={"podAffinity": {"affinityTerms": []}}), "spec.affinity.podAffinity.affinityTerms"),
    (pod(affinity={"gpuAffinity": {}}), "spec.affinity.gpuAffinity"),
    # spread
    (spread({"maxSkew": 0}), f"{SPREAD}[0].maxSkew"),
    (spread({"maxSkew": 2**31}), f"{SPREAD}[0].maxSkew"),
    (spread({"whenUnsatisfiable": "Maybe"}), f"{SPREAD}[0].whenUnsatisfiable"),
    (spread({"minDomains": 0}), f"{SPREAD}[0].minDomains"),
    (spread({"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}), f"{SPREAD}[0].minDomains"),
    (spread({"nodeTaintsPolicy": "honor"}), f"{SPREAD}[0].nodeTaintsPolicy"),
    (spread({}, {"whenUnsatisfiable": "DoNotSchedule"}), f"{SPREAD}[1]"),
    (spread({"matchLabelKeys": ["app"], "labelSelector": {"matchLabels": {"app": "x"}}}), f"{SPREAD}[0].matchLabelKeys[0]"),
    # tolerations, gates, the rest
    (pod(tolerations=[{}]), "spec.tolerations[0].operator"),
    (pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]), "spec.tolerations[0].value"),
    (pod(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]), "spec.tolerations[0].operator"),
    (pod(tolerations=[{"key": "a", "tolerationSeconds": 1}]), "spec.tolerations[0].effect"),
    (pod(tolerations=[{"key": "a", "effects": ""}]), "spec.tolerations[0].effects"),
    (pod(schedulingGates=[{"name": "a"}, {"name": "a"}]), "spec.schedulingGates[1]"),
    (pod(schedulingGates=[{"name": "a"}], nodeName="n"), "spec.nodeName"),
    (pod(nodeName="N"), "spec.nodeName"),
    (pod(nodeName=5), "spec.nodeName"),
    (pod(priority="high"), "spec.priority"),
    (pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds"),
    (pod(topologySpreadConstraint=[]), "spec.topologySpreadConstraint"),
    (pod() | {"status": {"conditions": [{"status": "True"}]}}, "status.conditions[0].type"),
    (pod() | {"status": {"containerStatuses": [{"allocatedResources": {"cpu": "-1"}}]}}, "status.containerStatuses[0].allocatedResources[cpu]"),
    # nodes
    (node(spec={"taints": [{"key": "a"}]}), "spec.taints[0].effect"),
    (node(status={"declaredFeatures": ["A", "a"]}), "status.declaredFeatures[1]"),
    (node(status={"declaredFeatures": ["B", "A"]}), "status.declaredFeatures[1]"),
    (node(status={"declaredFeatures": ["A", "A"]}), "status.declaredFeatures[1]"),
    (node(status={"declaredFeatures": ["A/", "B"]}), "status.declaredFeatures[0]"),
    (node(status={"declaredFeatures": "A"}), "status.declaredFeatures"),
    (node(spec={"taints": [{"key": "a", "effect": "NoSchedul"}]}), "spec.taints[0].effect"),
    (node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}), "spec.taints[1]"),
    (node(spec={"unschedulable": "yes"}), "spec.unschedulable"),
    (node(status={"allocatable": {"cpu": "-1"}}), "status.allocatable[cpu]"),
    (node(status={"images": [{"sizeBytes": -1}]}), "status.images[0].sizeBytes"),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "field"), REFUSED)
def test_a_wrong_field_is_named_and_nothing_else_is(manifest, field):
    assert list(errors(manifest)) == [field]


ACCEPTED = [
    pod(schedulerName=""),
    pod(containers=[{"ports": [{"containerPort": 80, "protocol": ""}]}]),
    with_resources(whole(cpu="1", huge="4Mi")),
    with_resources({"requests": {"memory": "1Gi"}, "limits": {"hugepages-1Gi": "2Gi", "hugepages-2Mi": 0}}),
    pod(resources=whole(cpu="1", huge="4Mi")),
    pod(containers=[{"resources": requests(cpu="1")}], resources=whole(huge="4Mi")),
    pod(overhead={"memory": "1Gi", "hugepages-2Mi": "2Mi"}),
    pod() | {"status": {"containerStatuses": [{"allocatedResources": {"hugepages-2Mi": "3Mi"}}]}},
    pod(containers=[{}, {}]),
    pod(containers=[{"ports": [{"containerPort": 80, "hostPort": 80}] * 2}]),
    pod(resources=requests(cpu="1"), containers=[{"resources": requests(cpu="2")}]),
    with_resources(requests(cpu="0.0001")),
    with_resources(requests(cpu=1, memory=0.5)),
    anti({"app": "x"}, matchLabelKeys=["app"], labelSelector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}),
    anti({"app": "x"}, mismatchLabelKeys=["app"], labelSelector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}),
    anti(matchLabelKeys=["absent"], labelSelector={"matchLabels": {"absent": "x"}}),
    spread({"matchLabelKeys": ["app"], "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}}, labels={"app": "x"}),
    spread({}, {"whenUnsatisfiable": "ScheduleAnyway"}, {"topologyKey": "rack"}),
    anti(labelSelector=None),
    anti(namespaces=None, namespaceSelector=None),
    required_nodes(None, {}),
    required_nodes(node_expression("a", "Gt", "007")),
    preferred_nodes({"weight": 1, "preference": node_expression("a", "Gt", "-4")}),
    preferred_nodes({"weight": 100, "preference": node_expression("a", "In", "no label value!")}),
    pod(tolerations=[{"operator": "Exists"}, {"key": "a"}, {"key": "a", "operator": "", "effect": ""}]),
    pod(affinity=None, tolerations=None, nodeSelector=None, nodeName=None),
    with_resources(requests(memory=None)),
    pod({"a": "", "x." * 40 + "io/" + "n" * 63: "v" * 63}),
    pod(futureField={"a": 1}, volumes=[{}]),
    node(spec=None, status=None),
    {"kind": "Namespace", "metadata": {"name": "a", "labels": {}}, "spec": {"finalizers": ["kubernetes"]}},
]  # fmt: skip


@pytest.mark.parametrize("manifest", ACCEPTED)
def test_what_kubernetes_or_the_semantics_allow_is_accepted(manifest):
    assert errors(manifest) == {}


@pytest.mark.parametrize(
    ("manifest", "hint"),
    [
        (spread({"selector": {}}), "did you mean labelSelector?"),
        (spread({"maxskew": 1}), "did you mean maxSkew?"),
        (pod(topologySpreadConstraint=[]), "did you mean topologySpreadConstraints?"),
        (preferred_nodes({"weight": 1, "preference": {}, "matchExpressions": []}), "did you mean preference.matchExpressions?"),
        (anti(namespaces=["*"]), "use namespaceSelector: {}"),
        (pod(tolerations=[{"key": "a", "efect": ""}]), "did you mean effect?"),
        (node(spec={"taints": [{"key": "a", "effect": "Noschedule"}]}), "did you mean NoSchedule?"),
        ({"kind": "Pods", "metadata": {}}, "did you mean Pod?"),
    ],
)  # fmt: skip
def test_near_misses_come_with_a_hint(manifest, hint):
    (message,) = errors(manifest).values()
    assert hint in message


def test_wrong_types_unknown_fields_and_broken_rules_are_all_named_at_once():
    wrong = pod(
        {"a": 1},
        nodeSelector=[],
        tolerations=[{"key": "a", "effect": "No", "extra": 1}],
        topologySpreadConstraints=[{"maxSkew": 0, "selector": {}}],
    )
    assert set(errors(wrong)) == {
        "metadata.labels[a]",
        "spec.nodeSelector",
        "spec.tolerations[0].effect",
        "spec.tolerations[0].extra",
        f"{SPREAD}[0].maxSkew",
        f"{SPREAD}[0].selector",
        f"{SPREAD}[0].topologyKey",
    }


def test_lists_are_bounded_by_a_limit_that_can_be_set():
    many = pod(tolerations=[{"key": "a"}] * 1_001)
    assert "at most 1000 items; it has 1001" in errors(many)["spec.tolerations"]
    assert errors(many, Limits(terms_max=2_000)) == {}
    values = required_nodes(node_expression("a", "In", *map(str, range(10_001))))
    assert "at most 10000" in errors(values)[f"{TERMS}[0].matchExpressions[0].values"]


def test_so_many_errors_that_nobody_reads_them_are_cut_off():
    assert len(errors(pod({f"!{n}": "" for n in range(5_000)}))) == 1_000


def test_the_value_is_repeated_where_it_is_short():
    with pytest.raises(InvalidManifest) as refused:
        parse_node({"metadata": {"name": "x" * 300, "labels": {"a": 5}}})
    values = {error.field: error.value for error in refused.value.errors}
    assert values["metadata.labels[a]"] == 5
    assert len(str(values["metadata.name"])) == 257


@pytest.mark.parametrize("manifest", [{}, {"kind": None}, {"kind": 5}, {"kind": "Deployment"}])
def test_an_unknown_kind_is_named(manifest):
    assert list(errors(manifest)) == ["kind"]


def test_a_name_other_than_the_addressed_one_is_refused_and_a_missing_one_is_filled_in():
    templates = TemplateCache()
    with pytest.raises(InvalidManifest) as refused:
        parse_pod(pod(), templates, name="other", namespace="shop")
    assert [error.field for error in refused.value.errors] == ["metadata.name"]
    found = parse_pod({"spec": {"containers": [{}]}}, templates, name="p", namespace="shop")
    assert (found.name, found.namespace) == ("p", "shop")


def test_paths_can_be_prefixed_for_objects_inside_a_request():
    with pytest.raises(InvalidManifest) as refused:
        parse_node({"metadata": {}})
    assert refused.value.under("items[3]").errors[0].field == "items[3].metadata.name"


def test_a_wrong_label_is_named_also_where_the_template_is_known_by_that_label():
    cache = TemplateCache()
    keyed = anti({"app": "x"}, matchLabelKeys=["app"])
    parse_any(keyed, cache)
    for wrong in ([], {"a": "b"}, 5, None):
        with pytest.raises(InvalidManifest) as refused:
            parse_any(anti({"app": wrong}, matchLabelKeys=["app"]), cache)
        assert [error.field for error in refused.value.errors] == ["metadata.labels[app]"]


def test_few_constraints_may_fall_back():
    fallbacks = [
        {"topologyKey": f"key-{n}", "maxSkew": 1, "whenUnsatisfiable": "FallbackWhenFull"}
        for n in range(9)
    ]
    assert errors(pod(topologySpreadConstraints=fallbacks[:8])) == {}
    assert errors(pod(topologySpreadConstraints=fallbacks)) == {
        "spec.topologySpreadConstraints[8].whenUnsatisfiable": (
            "at most 8 constraints may have FallbackWhenFull"
        )
    }


@pytest.mark.parametrize("part", [{"required": {}}, {"preferred": {"weight": 1}}])
def test_a_pod_names_few_data_sets_and_each_once(part):
    [(kind, rest)] = part.items()

    def wanting(*names: str) -> dict[str, Any]:
        return pod(dataAffinity={kind: [rest | {"dataSet": name} for name in names]})

    assert errors(wanting(*(f"d{n}" for n in range(16)))) == {}
    assert errors(wanting(*(f"d{n}" for n in range(17)))) == {
        f"spec.dataAffinity.{kind}": "must have at most 16 items"
    }
    assert errors(wanting("a", "b", "a")) == {
        f"spec.dataAffinity.{kind}[2].dataSet": "repeats a data set"
    }
