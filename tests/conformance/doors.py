"""Ways to bring the engine to a case's state: all at once, or by a winding road."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import msgspec

from service.engine import Cluster, NoPreemption, Placement, Refusal, explain, place, preempt
from service.model.core.kind import DeclaredObject
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import DisruptionBudget
from tests.conformance import vectors
from tests.conformance.vectors import Case
from tests.engine import objects
from tests.seeds import chance
from tools.conformance.cases import full_message

Change = Callable[[Cluster], None]


def fresh(case: Case) -> Cluster:
    """Every object put once, namespaces before nodes before pods."""
    parts = [case[name] for name in ("namespaces", "nodes", "pods")]
    return objects.cluster(vectors.config_of(case), *parts, vectors.objects_of(case))


def wandering(case: Case) -> Cluster:
    """Return the same state after detours, the same ones for a case each time.

    Objects come in any order, some first as another object of the same name, some come, go and
    come again, strangers pass by, and whole stretches are undone.
    """
    random = chance(case["name"])
    cluster = Cluster(objects.config(vectors.config_of(case)))
    parts = _Parts(case)
    arrivals = parts.arrivals()
    random.shuffle(arrivals)
    detours = _detours(case, parts)
    for arrive in arrivals:
        if random.random() < 0.3:
            _digress(cluster, random.sample(arrivals, min(3, len(arrivals))), detours, random)
        if random.random() < 0.3:
            random.choice(detours)(cluster)
        arrive(cluster)
    for arrive in random.sample(arrivals, len(arrivals)):
        arrive(cluster)
    _leave_strangers(cluster, case)
    return cluster


def _digress(
    cluster: Cluster, arrivals: list[Change], detours: list[Change], random: Random
) -> None:
    """Changes that are all undone."""
    mark = cluster.mark()
    for change in (*arrivals, random.choice(detours), random.choice(detours)):
        change(cluster)
    cluster.undo(mark)


class _Parts:
    """The objects of a case, read once."""

    def __init__(self, case: Case) -> None:
        self.namespaces = [objects.namespace(each) for each in case["namespaces"]]
        self.nodes = [objects.node(each) for each in case["nodes"]]
        self.pods = [objects.pod(each) for each in case["pods"]]
        self.kept = [objects.kept(each) for each in vectors.objects_of(case)]

    def arrivals(self) -> list[Change]:
        return [
            *(partial(_put, Cluster.put_namespace, each) for each in self.namespaces),
            *(partial(_put, Cluster.put_node, each) for each in self.nodes),
            *(partial(_put, Cluster.put_pod, each) for each in self.pods),
            *(partial(_put, Cluster.put_object, each) for each in self.kept),
        ]


def _put(put: Callable[[Cluster, Any], object], value: object, cluster: Cluster) -> None:
    put(cluster, value)


def _detours(case: Case, parts: _Parts) -> list[Change]:
    """Objects as others of the case: a node as another, a pod on another node, a stranger."""
    nodes, pods, kept = parts.nodes, parts.pods, parts.kept
    detours: list[Change] = [_stranger_node(case), _stranger_pod(case)]
    for one, other in zip(nodes, nodes[1:] + nodes[:1], strict=True):
        changed = msgspec.structs.replace(other, name=one.name)
        detours.append(lambda cluster, node=changed: cluster.put_node(node))
        detours.append(lambda cluster, name=one.name: _gone(cluster, name))
    for one, other in zip(pods, pods[1:] + pods[:1], strict=True):
        changed = msgspec.structs.replace(other, name=one.name, namespace=one.namespace)
        detours.append(lambda cluster, pod=changed: cluster.put_pod(pod))
    for one, other in zip(kept, kept[1:] + kept[:1], strict=True):
        detours.append(lambda cluster, kept=one: _object_gone(cluster, kept))
        if one.kind == other.kind:
            changed = msgspec.structs.replace(one, body=other.body)
            detours.append(lambda cluster, kept=changed: cluster.put_object(kept))
    for each in case["namespaces"]:
        renamed = objects.namespace({"metadata": {"name": each["metadata"]["name"]}})
        detours.append(lambda cluster, namespace=renamed: cluster.put_namespace(namespace))
    return detours


def _gone(cluster: Cluster, node_name: str) -> None:
    if cluster.node(node_name) is not None:
        cluster.delete_node(node_name)


def _object_gone(cluster: Cluster, kept: DeclaredObject[Any]) -> None:
    if cluster.objects.get(kept.kind, kept.namespace, kept.name) is not None:
        cluster.delete_object(kept.kind, kept.namespace, kept.name)


STRANGER = "stranger"


def _stranger_node(case: Case) -> Change:
    template = case["nodes"][0] if case["nodes"] else {"metadata": {}}
    stranger = objects.node(template | {"metadata": template["metadata"] | {"name": STRANGER}})
    return lambda cluster: cluster.put_node(stranger)


def _stranger_pod(case: Case) -> Change:
    """A pod like the incoming one, on a node of the case."""
    template = case["pod"]
    node_name = case["nodes"][0]["metadata"]["name"] if case["nodes"] else STRANGER
    stranger = objects.pod(
        template
        | {"metadata": template["metadata"] | {"name": STRANGER}}
        | {"spec": template["spec"] | {"nodeName": node_name}}
    )
    return lambda cluster: cluster.put_pod(stranger)


def _leave_strangers(cluster: Cluster, case: Case) -> None:
    _gone(cluster, STRANGER)
    namespace = case["pod"]["metadata"].get("namespace", "default")
    if cluster.pod(namespace, STRANGER) is not None:
        cluster.delete_pod(namespace, STRANGER)


def preemption_failure(case: Case, cluster: Cluster) -> str:
    """What the engine answers wrongly about preemption; empty if it is right."""
    told = vectors.expected(case)
    want = {field: told[field] for field in ("preemption", "why", "fullMessage")}
    chosen = (want["preemption"] or {}).get("chosen", [None])
    got, node_name = preemption_told(
        cluster, objects.pod(case["pod"], incoming=True), _budgets(case)
    )
    want["fullMessage"] = full_message(told, node_name)
    if got["preemption"] is not None:
        want["preemption"] = want["preemption"] and {
            **want["preemption"],
            "message": want["fullMessage"],
        }
        got["preemption"] |= {"chosen": chosen, "message": got["fullMessage"]}
    right = node_name in chosen
    return vectors.report(case, got, want) or ("" if right else f"{case['name']}: {node_name}")


def _budgets(case: Case) -> list[DisruptionBudget]:
    return [objects.budget(each) for each in case.get("podDisruptionBudgets", ())]


def preemption_told(
    cluster: Cluster, pod: Pod, budgets: Sequence[DisruptionBudget]
) -> tuple[Case, str | None]:
    """The engine's preemption for a pod that fits nowhere, in the words of the vectors, and the chosen node."""
    refusal = place(cluster, pod)
    assert isinstance(refusal, Refusal)
    found = preempt(cluster, pod, budgets, all_candidates=True)
    if isinstance(found, NoPreemption):
        full = found.message_after(refusal.message)
        return {"preemption": None, "why": found.why, "fullMessage": full}, None
    assert found.candidates is not None
    assert found.candidates[found.node_name] == found.victims
    candidates = {
        name: {
            "victims": [f"{each.namespace}/{each.name}" for each in victims.pods],
            "pdbViolations": victims.violations,
        }
        for name, victims in found.candidates.items()
    }
    full = found.message_after(refusal.message)
    return {
        "preemption": {"candidates": candidates},
        "why": None,
        "fullMessage": full,
    }, found.node_name


def failure(case: Case, cluster: Cluster) -> str:
    """What the engine answers wrongly; empty if explanation and placement are right."""
    want = vectors.explained(case)
    pod = objects.pod(case["pod"], incoming=True)
    got = msgspec.to_builtins(explain(cluster, pod))
    del got["semantics"], got["kubernetes"]
    placement = place(cluster, pod)
    if isinstance(placement, Placement):
        node_name = placement.node_name
        right = node_name in want["best"] and placement.score == want["total"][node_name]
    else:
        right = not want["best"] and placement.message == want["message"]
    return vectors.report(case, got, want) or ("" if right else f"{case['name']}: {placement}")
