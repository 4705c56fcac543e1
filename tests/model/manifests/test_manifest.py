"""Manifests keep what they were given, and what is rendered can be read again."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from service.model.core.errors import InvalidManifest, MalformedJSON
from service.model.nodes.namespaces import NamespaceManifest, parse_namespace
from service.model.pods.pod_fields import PodCondition
from service.model.registry.manifests import (
    NodeManifest,
    PodManifest,
    TemplateCache,
    load_any,
    load_pod,
    parse_any,
    parse_node,
    parse_pod,
    with_resource_version,
)
from tests import strategies

UID, CREATED = "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "2026-01-31T12:00:00Z"
RDI = "requiredDuringSchedulingIgnoredDuringExecution"
POD = {
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def raw(manifest: Any) -> bytes:
    return msgspec.json.encode(manifest)


def shown(manifest: PodManifest | NodeManifest | NamespaceManifest) -> dict[str, Any]:
    return dict(json.loads(manifest.render()))


def pod(spec: Any = None, **metadata: Any) -> PodManifest:
    sent = {"metadata": POD["metadata"] | metadata, "spec": POD["spec"] | (spec or {})}
    templates = TemplateCache()
    return parse_pod(raw(sent), templates).created_now(templates)


@given(st.data())
def test_what_is_rendered_reads_as_the_same_manifest(data):
    world = data.draw(strategies.worlds())
    kind, sent = data.draw(
        st.tuples(st.just("Pod"), strategies.pods(world, "p"))
        | st.tuples(st.just("Node"), strategies.nodes(world))
        | st.tuples(st.just("Namespace"), strategies.namespaces(world))
    )
    templates = TemplateCache()
    manifest = parse_any(raw({"kind": kind} | sent), templates).with_identity(UID, CREATED)
    body = manifest.render()
    assert body.startswith(f'{{"apiVersion":"v1","kind":"{kind}","metadata":{{'.encode())
    for cache in (templates, TemplateCache()):
        assert parse_any(body, cache) == manifest
        assert load_any(kind, body, cache) == manifest
        assert load_any(kind, body, cache).render() == body


@given(st.data(), st.sampled_from([None, 1]))
def test_white_space_does_not_matter(data, indent):
    world = data.draw(strategies.worlds())
    sent = {"kind": "Pod"} | data.draw(strategies.pods(world, "p"))
    templates = TemplateCache()
    spaced = json.dumps(sent, indent=indent).encode()
    assert parse_any(spaced, templates) == parse_any(raw(sent), templates)


def test_fields_that_scheduling_does_not_read_are_kept_as_they_are():
    sent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "shop",
            "annotations": {"note": "ü"},
            "ownerReferences": [{"uid": "1"}],
        },
        "spec": {
            "containers": [{"name": "c", "env": [{"name": "A", "value": None}], "x": [None, 1.5]}],
            "volumes": [],
            "nodeName": "n1",
            "affinity": None,
            "tolerations": [],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
        "extra": {"a": [1]},
    }
    manifest = parse_pod(raw(sent), TemplateCache())
    assert shown(manifest) == sent
    assert manifest.pod.node_name == "n1"


def test_what_moorage_keeps_itself_is_not_rendered_and_the_revision_goes_into_answers():
    manifest = pod(resourceVersion="7", managedFields=[{}], generation=3, uid=UID)
    assert manifest.resource_version == "7"
    assert shown(manifest)["metadata"] == POD["metadata"] | {"uid": UID}
    answer = json.loads(with_resource_version(manifest.render(), 42))
    assert answer["metadata"].pop("resourceVersion") == "42"
    assert answer == shown(manifest)


def test_identity_is_rendered_and_read_back():
    manifest = pod().with_identity(UID, CREATED)
    assert shown(manifest)["metadata"] == POD["metadata"] | {
        "uid": UID,
        "creationTimestamp": CREATED,
    }
    assert (manifest.uid, manifest.created, manifest.pod.created) == (UID, CREATED, CREATED)


def test_times_of_creation_are_kept_in_utc():
    assert pod(creationTimestamp="2026-01-31T13:00:00+01:00").created == CREATED
    assert pod(creationTimestamp="2026-99-99T99:00:00+01:00").created.startswith("2026-99")
    assert pod(creationTimestamp=None).created == ""


def test_a_pod_without_a_namespace_is_in_default():
    manifest = parse_pod(raw({"metadata": {"name": "p"}, "spec": POD["spec"]}), TemplateCache())
    assert manifest.namespace == "default"
    assert shown(manifest)["metadata"]["namespace"] == "default"


def test_a_node_without_allocatable_can_allocate_its_capacity():
    def allocatable(status: Any) -> Any:
        return parse_node({"metadata": {"name": "n"}, "status": status}).node.allocatable

    assert allocatable({"capacity": {"cpu": "4"}}) == {"cpu": "4"}
    assert allocatable({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}) == {"cpu": "3"}
    assert allocatable({"capacity": {"cpu": "4"}, "allocatable": {}}) == {}
    assert allocatable(None) == {}


def test_nodes_and_namespaces_are_read():
    sent = {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule", "value": None}], "unschedulable": True},
        "status": {"images": [{"names": ["nginx:1"], "sizeBytes": 5}]},
    }  # fmt: skip
    node = parse_node(sent).node
    assert (node.taints[0].key, node.unschedulable, node.images[0].size_bytes) == ("k", True, 5)
    namespace = parse_namespace({"metadata": {"name": "shop", "labels": {"team": "a"}}})
    assert namespace.namespace_object.labels == {"team": "a"}
    assert (namespace.name, namespace.namespace, namespace.labels) == ("shop", "", {"team": "a"})


# Defaults and merges


def test_spread_defaults_are_shown_and_explicit_nulls_are_defaulted():
    sent = {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": None}]}
    (constraint,) = shown(pod(sent))["spec"]["topologySpreadConstraints"]
    assert constraint == {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
    }


def test_requests_are_taken_from_limits_where_they_are_silent():
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    (container,) = shown(pod({"containers": [{"resources": resources}]}))["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_pod_level_requests_are_taken_from_the_containers_and_then_from_the_limits():
    containers = [{"resources": {"requests": {"cpu": "0.25"}}}] * 2
    sent = {"containers": containers, "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
    assert shown(pod(sent))["spec"]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_in_the_hosts_network_container_ports_are_host_ports():
    sent = {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 80}]}]}
    assert pod(sent).pod.spec.containers[0].ports[0].host_port == 80


def anti_affinity(term: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {RDI: [{"topologyKey": "zone"} | term]}}}


def merged_selector(manifest: PodManifest) -> Any:
    (term,) = shown(manifest)["spec"]["affinity"]["podAntiAffinity"][RDI]
    return term["labelSelector"]


def test_label_keys_are_merged_into_the_selectors_of_terms_at_creation():
    term = {"labelSelector": {}, "matchLabelKeys": ["app", "gone"], "mismatchLabelKeys": ["rev"]}
    manifest = pod(anti_affinity(term), labels={"app": "web", "rev": "1"})
    expected = [
        {"key": "app", "operator": "In", "values": ["web"]},
        {"key": "rev", "operator": "NotIn", "values": ["1"]},
    ]
    assert merged_selector(manifest) == {"matchExpressions": expected}
    again = parse_pod(manifest.render(), TemplateCache())
    assert again.template == manifest.template


def test_pods_of_one_spec_with_different_values_of_a_label_key_are_merged_each_for_itself():
    templates = TemplateCache()
    spec = POD["spec"] | anti_affinity({"labelSelector": {}, "matchLabelKeys": ["app"]})
    for app in ("a", "b", "a"):
        sent = raw({"metadata": {"name": "p", "labels": {"app": app}}, "spec": spec})
        created = parse_pod(sent, templates).created_now(templates)
        values = merged_selector(created)["matchExpressions"][0]["values"]
        assert values == [app]


def test_a_relabelled_pod_is_loaded_with_what_it_was_created_with():
    term = {"labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["rev"]}
    body = pod(anti_affinity(term), labels={"app": "web", "rev": "1"}).render()
    relabelled = body.replace(b'"labels":{"app":"web","rev":"1"}', b'"labels":{"rev":"2"}')
    assert relabelled != body
    assert load_pod(relabelled, TemplateCache()).render() == relabelled


def test_label_keys_of_spread_constraints_are_not_merged_in_the_manifest():
    constraint = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
    sent = {"topologySpreadConstraints": [constraint]}
    assert shown(pod(sent))["spec"]["topologySpreadConstraints"][0]["labelSelector"] == {}


@pytest.mark.parametrize("namespaces", [None, [], ["a"]])
def test_null_and_empty_namespaces_stay_apart(namespaces):
    manifest = pod(anti_affinity({"labelSelector": {}, "namespaces": namespaces}))
    (term,) = shown(manifest)["spec"]["affinity"]["podAntiAffinity"][RDI]
    assert term["namespaces"] == namespaces
    affinity = manifest.pod.spec.affinity
    assert affinity is not None
    assert affinity.pod_anti_affinity is not None
    (read,) = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution or ()
    assert read.namespaces == (None if namespaces is None else tuple(namespaces))


# Templates


def test_pods_of_one_template_share_one_spec_wherever_they_are():
    templates = TemplateCache()
    first = parse_pod(raw(POD), templates)
    placed = parse_pod(raw(POD | {"spec": {"nodeName": "n", **POD["spec"]}}), templates)
    last = parse_pod(raw(POD | {"spec": {**POD["spec"], "nodeName": "n"}}), templates)
    only = parse_pod(json.dumps(POD, indent=1).encode(), templates)
    assert first.pod.spec is placed.pod.spec is last.pod.spec is only.pod.spec
    assert (placed.pod.node_name, last.pod.node_name, first.pod.node_name) == ("n", "n", None)


def test_a_field_called_node_name_further_down_stays_where_it_is():
    templates = TemplateCache()
    nested = POD | {"spec": {**POD["spec"], "volumes": [{"name": "v", "nodeName": "x"}]}}
    for spec in (nested["spec"], {"nodeName": "n", **nested["spec"]}):
        read = parse_pod(raw(nested | {"spec": spec}), templates)
        loaded = load_pod(read.render(), TemplateCache())
        assert loaded.render() == read.render()
        assert loaded.pod.node_name == spec.get("nodeName")
        assert b'"volumes":[{"name":"v","nodeName":"x"}]' in loaded.render()


def test_a_known_spec_does_not_excuse_what_else_is_wrong():
    templates = TemplateCache()
    parse_pod(raw(POD), templates)
    wrong: list[tuple[Any, str]] = [
        (POD | {"metadata": {"name": "P"}}, "metadata.name"),
        (POD | {"metadata": {"name": "p", "labels": {"a": "!"}}}, "metadata.labels[a]"),
        (POD | {"metadata": {"name": "p", "namespace": "A"}}, "metadata.namespace"),
        (POD | {"kind": "Node"}, "kind"),
        (POD | {"apiVersion": "v2"}, "apiVersion"),
        (POD | {"spec": {"nodeName": "N", **POD["spec"]}}, "spec.nodeName"),
        (POD | {"status": []}, "status"),
    ]
    for sent, field in wrong:
        with pytest.raises(InvalidManifest) as refused:
            parse_pod(raw(sent), templates)
        assert [error.field for error in refused.value.errors] == [field]


@pytest.mark.parametrize(
    "twice",
    [
        b'{"metadata":{"name":"a","name":"b"},"spec":{"containers":[{}]}}',
        b'{"metadata":{"name":"a"},"metadata":{"name":"a"},"spec":{"containers":[{}]}}',
        b'{"metadata":{"name":"a"},"spec":{"nodeName":"n","nodeName":"m","containers":[{}]}}',
        b'{"metadata":{"name":"a"},"spec":{"containers":[{}],"containers":[{}]}}',
    ],
)
def test_duplicate_keys_are_found_in_pods_of_known_templates_too(twice):
    templates = TemplateCache()
    parse_pod(raw({"metadata": {"name": "p"}, "spec": {"containers": [{}]}}), templates)
    with pytest.raises(MalformedJSON):
        parse_pod(twice, templates)


def test_a_gated_pod_of_a_known_template_cannot_be_placed():
    templates = TemplateCache()
    spec = POD["spec"] | {"schedulingGates": [{"name": "wait"}]}
    parse_pod(raw(POD | {"spec": spec}), templates)
    with pytest.raises(InvalidManifest):
        parse_pod(raw(POD | {"spec": {"nodeName": "n"} | spec}), templates)


def test_the_cache_stays_within_its_bytes_and_forgets_the_least_recently_used():
    templates = TemplateCache(bytes_max=20_000)

    def spec_of(image: str) -> Any:
        sent = {"metadata": {"name": "p"}, "spec": {"containers": [{"image": image}]}}
        return parse_pod(raw(sent), templates).pod.spec

    kept = spec_of("kept")
    dropped = spec_of("dropped")
    for number in range(20):
        assert spec_of("kept") is kept
        spec_of(f"other-{number}")
    assert spec_of("dropped") is not dropped


# Changes


def test_a_pod_can_be_placed_and_the_node_comes_first_in_its_spec():
    body = pod().placed("n7").render()
    assert b'"spec":{"nodeName":"n7","containers"' in body


def test_the_node_of_a_pod_to_be_placed_is_a_wish_that_survives_being_stored():
    templates = TemplateCache()
    sent = POD | {"spec": {"nodeName": "n7", **POD["spec"]}}
    wished = parse_pod(raw(sent), templates, to_place=True)
    assert (wished.pod.node_name, wished.pod.required_node_name) == (None, "n7")
    assert "nodeName" not in shown(wished)["spec"]
    stored = load_any("Pod", wished.render(), templates)
    assert stored == wished
    assert parse_any(wished.render(), templates) == wished
    assert shown(wished.placed("n7"))["metadata"] == POD["metadata"]


def test_replicas_of_a_template_differ_in_name_only():
    replica = pod().named("web-1")
    assert replica.name == "web-1"
    assert shown(replica) == shown(pod(name="web-1"))


def condition(status: str, at: str) -> PodCondition:
    return PodCondition(type="PodScheduled", status=status, last_transition_time=at)


def test_a_condition_replaces_the_one_of_its_type_and_keeps_the_time_if_nothing_changed():
    first = pod().with_condition(condition("False", "t1"))
    other = PodCondition(type="Ready", status="True", reason="R", message="m")
    again = first.with_condition(other).with_condition(condition("False", "t2"))
    scheduled, ready = shown(again)["status"]["conditions"]
    assert scheduled["lastTransitionTime"] == "t1"
    assert ready == {"type": "Ready", "status": "True", "reason": "R", "message": "m"}
    changed = again.with_condition(condition("True", "t3"))
    assert shown(changed)["status"]["conditions"][0]["lastTransitionTime"] == "t3"


def test_a_deleted_pod_is_terminating_and_a_finished_one_holds_nothing():
    deleted = pod().with_deletion(CREATED)
    assert deleted.pod.terminating
    assert shown(deleted)["metadata"]["deletionTimestamp"] == CREATED
    phases = {"Succeeded": True, "Failed": True, "Running": False}
    for phase, finished in phases.items():
        sent = raw(POD | {"status": {"phase": phase}})
        assert parse_pod(sent, TemplateCache()).pod.finished is finished


def test_an_in_place_resize_is_read_from_the_status():
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "x": None}],
    }
    resize = parse_pod(raw(POD | {"status": status}), TemplateCache()).pod.resize
    assert resize is not None
    assert resize.infeasible
    assert resize.container_statuses[0].name == "c"
    plain = {"containerStatuses": [{"name": "c", "resources": None}], "resources": None}
    assert parse_pod(raw(POD | {"status": plain}), TemplateCache()).pod.resize is None


@pytest.mark.parametrize(
    "status",
    [
        {"containerStatuses": [{"name": "c", "resources": {}}]},
        {"initContainerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}]},
        {"resources": {}},
        {"allocatedResources": {"cpu": "1"}},
        {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]},
    ],
)
def test_whether_a_field_is_there_can_decide_even_if_it_is_empty(status):
    assert parse_pod(raw(POD | {"status": status}), TemplateCache()).pod.resize is not None


def test_a_quantity_that_is_null_is_zero():
    """So it is no absent one, for which a default would count."""
    nothing = {"requests": {"cpu": None}, "limits": {"cpu": "1", "memory": None}}
    containers = [{"name": "c", "resources": nothing}]
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": None}}]}
    sent = POD | {"spec": {"containers": containers, "overhead": {"cpu": None}}, "status": status}
    pod = parse_pod(raw(sent), TemplateCache()).pod
    zeros = {"cpu": "0", "memory": "0"}
    assert pod.spec.containers[0].resources.requests == zeros
    assert pod.spec.containers[0].resources.limits == {"cpu": "1", "memory": "0"}
    assert pod.spec.overhead == {"cpu": "0"}
    assert pod.resize.container_statuses[0].allocated_resources == {"cpu": "0"}


def test_a_request_above_a_limit_that_is_null_is_refused():
    above = [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": None}}}]
    with pytest.raises(InvalidManifest, match="less than or equal to the cpu limit"):
        parse_pod(raw(POD | {"spec": {"containers": above}}), TemplateCache())


@pytest.mark.parametrize("reasons", [("Infeasible", "Deferred"), ("Deferred", "Infeasible")])
def test_of_two_conditions_of_a_pending_resize_the_first_counts(reasons):
    pending = {"type": "PodResizePending", "status": "True"}
    status = {
        "conditions": [pending | {"reason": reason} for reason in reasons],
        "containerStatuses": [{"name": "c", "resources": {}}],
    }
    resize = parse_pod(raw(POD | {"status": status}), TemplateCache()).pod.resize
    assert resize.infeasible == (reasons[0] == "Infeasible")


def test_an_update_cannot_remove_node_deletion_identity_or_moorages_conditions():
    stored = pod().with_identity(UID, CREATED).placed("n1").with_deletion(CREATED)
    stored = stored.with_condition(condition("True", "t1"))
    update = pod(labels={"app": "new"}, uid="", creationTimestamp="2030-01-01T00:00:00Z")
    updated = update.updating(stored)
    assert shown(updated) == shown(stored) | {
        "metadata": shown(stored)["metadata"] | {"labels": {"app": "new"}}
    }
    assert updated.pod.terminating


def test_an_update_may_move_the_pod_and_write_its_own_conditions():
    stored = pod().placed("n1").with_condition(condition("True", "t1"))
    update = pod().placed("n2").with_condition(condition("False", "t2"))
    assert shown(update.updating(stored)) == shown(update)


def test_pods_are_the_same_if_labels_and_spec_are_whatever_the_node_and_the_order_of_fields():
    turned = {"containers": [{"image": "nginx", "name": "c"}]}
    assert pod().same_pod(pod(turned).placed("n1"))
    assert not pod().same_pod(pod(labels={"app": "x"}))
    assert not pod().same_pod(pod({"priority": 1}))


def test_what_preemption_reads_of_a_status_is_read():
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    status = {"startTime": "2026-05-04T12:00:00+02:00", "nominatedNodeName": "n"}
    sent = raw(POD | {"status": status | {"conditions": conditions}})
    pod = parse_pod(sent, TemplateCache()).pod
    assert pod.started == "2026-05-04T10:00:00Z"
    assert pod.nominated_node_name == "n"
    assert pod.preempted
    assert load_pod(parse_pod(sent, TemplateCache()).render(), TemplateCache()).pod == pod


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        [{"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}],
        [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
        [
            {"type": "DisruptionTarget", "status": "True"},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
        ],
    ],
)
def test_a_pod_is_preempted_only_if_its_first_disruption_says_so(conditions):
    sent = raw(POD | {"status": {"conditions": conditions}})
    assert not parse_pod(sent, TemplateCache()).pod.preempted


def test_another_status_says_another_start():
    manifest = parse_pod(
        raw(POD | {"status": {"startTime": "2026-05-04T10:00:00Z"}}), TemplateCache()
    )
    changed = manifest.with_status({"startTime": "2026-05-05T10:00:00Z", "nominatedNodeName": ""})
    assert changed.pod.started == "2026-05-05T10:00:00Z"
    assert changed.pod.nominated_node_name is None


def test_empty_names_of_scheduler_and_protocol_are_the_defaults():
    ports = [{"containerPort": 80, "protocol": ""}, {"containerPort": 81, "protocol": "UDP"}]
    sent = {"schedulerName": "", "containers": [{"name": "c", "ports": ports}]}
    manifest = pod(sent)
    assert manifest.pod.spec.scheduler_name == "default-scheduler"
    assert [port.protocol for port in manifest.pod.spec.containers[0].ports] == ["TCP", "UDP"]
    assert shown(manifest)["spec"]["schedulerName"] == "default-scheduler"
