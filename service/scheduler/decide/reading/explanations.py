"""Explains pods, and lists the domains of topology keys."""

from collections import Counter, defaultdict

from msgspec.structs import replace

from service.engine import Cluster, Explanation, explain, explain_node
from service.model.core.quantity import format_amount
from service.model.nodes.node import Node
from service.model.pods.pod import Pod
from service.scheduler.decide.admission.pod_admission import knows_scheduler, unknown_scheduler
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.groups.group_membership import waits_for_members
from service.scheduler.decide.groups.shared_domain import shares_domain
from service.scheduler.decide.object_writes import not_found
from service.scheduler.decide.placing.pod_placement import Candidate, held_back_by, without_pod
from service.scheduler.protocol.answers import TopologyAnswer, TopologyDomain
from service.scheduler.protocol.intents import ExplainPod, ReadTopology
from service.scheduler.protocol.placements import ExplanationAnswer

_STEP_NODES = 200
"""How many nodes are counted in one step before other tasks may run."""


def explain_pod(context: DecisionContext, intent: ExplainPod) -> ExplanationAnswer:
    """Explain every plugin's result for a stored pod on every node, as if the pod were absent.

    If gates, admission, a quota, or the group keep a waiting pod from being tried, the message says
    so, even if nodes would be feasible. It also names any domain that the pod's group has to share.

    Raises:
        NotFound: the pod does not exist, or the node that the intent names.
        Denied: its `schedulerName` is not a profile, so no plugin can evaluate it.
    """
    manifest = context.replica.pod(intent.namespace, intent.name)
    if manifest is None:
        raise not_found("Pod", intent.namespace, intent.name)
    cluster = context.replica.cluster
    if not knows_scheduler(cluster, manifest.pod):
        raise unknown_scheduler(cluster, manifest.pod)
    with without_pod(cluster, manifest.pod):
        explanation = _explanation(cluster, manifest.pod, intent.node_name)
    if manifest.pod.node_name is None:
        message = held_back_by(context, Candidate(manifest, manifest))
        message = message or waits_for_members(context.replica, manifest)
        message = message or shares_domain(context.replica, manifest)
        explanation = replace(explanation, message=message or explanation.message)
    return ExplanationAnswer(revision=context.replica.revision, explanation=explanation)


def _explanation(cluster: Cluster, pod: Pod, node_name: str | None) -> Explanation:
    if node_name is None:
        return explain(cluster, pod)
    if cluster.node(node_name) is None:
        raise not_found("Node", "", node_name)
    return explain_node(cluster, pod, node_name)


NODE_NAME = "metadata.name"
"""The key that makes each node its own domain, as in `matchFields` of node affinity."""


def read_topology(context: DecisionContext, intent: ReadTopology) -> Decision[TopologyAnswer]:
    """List the domains of a topology key, with their nodes, pod counts, and free resources."""
    cluster = context.replica.cluster
    domains: defaultdict[str, _Domain] = defaultdict(_Domain)
    without: list[str] = []
    for index, (_, name) in enumerate(context.replica.keys("Node")):
        node = cluster.node(name)
        assert node is not None
        value = name if intent.key == NODE_NAME else node.labels.get(intent.key)
        if value is None:
            without.append(name)
        else:
            domains[value].add(cluster, node, intent.namespaces)
        if index % _STEP_NODES == _STEP_NODES - 1:
            yield
    return TopologyAnswer(
        revision=context.replica.revision,
        key=intent.key,
        domains=[domains[value].totals(value) for value in sorted(domains)],
        nodes_without_key=sorted(without),
    )


class _Domain:
    """The totals of the nodes of one domain."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._pods = 0
        self._free: Counter[str] = Counter()

    def add(self, cluster: Cluster, node: Node, namespaces: frozenset[str] | None) -> None:
        self._nodes.append(node.name)
        table = cluster.nodes
        slot = table.slots[node.name]
        pods = int(table.pods[slot])
        self._pods += pods if namespaces is None else _pods_of(cluster, slot, namespaces)
        for resource in node.allocatable:
            if resource == "pods":
                self._free[resource] += int(table.allowed_pods[slot]) - pods
            else:
                free = table.allocatable(resource)[slot] - table.requested(resource)[slot]
                self._free[resource] += int(free)

    def totals(self, value: str) -> TopologyDomain:
        return TopologyDomain(
            value=value,
            nodes=sorted(self._nodes),
            pods=self._pods,
            free={
                resource: format_amount(resource, self._free[resource])
                for resource in sorted(self._free)
            },
        )


def _pods_of(cluster: Cluster, slot: int, namespaces: frozenset[str]) -> int:
    """Count the pods of these namespaces on a node."""
    classes = cluster.classes_on(slot).items()
    return sum(pods for pod_class, pods in classes if pod_class.namespace in namespaces)
