"""Finds overcommitted nodes by recounting their pods' requests without the engine's counters."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from service.engine.plugins import node_ports, node_resources_fit
from service.model.core.quantity import amounts, format_amount
from service.model.pods.pod import Pod
from service.model.pods.requests import ResizeRules, host_ports, placed_requests
from service.model.registry.manifests import NodeManifest, PodManifest
from service.scheduler.replica.replica import Replica

_PODS = "pods"


def overfull_nodes(replica: Replica) -> Iterator[tuple[str, str]]:
    """Yield overcommitted nodes and their excess, if any profile of the cluster filters by it.

    A node may have shrunk since its pods were placed.
    """
    profiles = replica.cluster.profiles.values()
    counts_room = any(pipeline.has_filter(node_resources_fit.NAME) for pipeline in profiles)
    counts_ports = any(pipeline.has_filter(node_ports.NAME) for pipeline in profiles)
    pods_of, requests = _pods_by_node(replica), _Requests(replica.config.resize_rules)
    for stored in replica.objects(NodeManifest.kind):
        manifest = stored.manifest
        assert isinstance(manifest, NodeManifest)
        pods = pods_of.get(manifest.name, [])
        if counts_room:
            for excess in _beyond(amounts(manifest.node.allocatable), requests.of(pods)):
                yield f"Node {manifest.name}", excess
        if counts_ports:
            for shared in _shared_ports(pods):
                yield f"Node {manifest.name}", shared


def _pods_by_node(replica: Replica) -> dict[str, list[Pod]]:
    pods_by_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for stored in replica.objects(PodManifest.kind):
        manifest = stored.manifest
        assert isinstance(manifest, PodManifest)
        if manifest.pod.node_name is not None and not manifest.pod.finished:
            pods_by_node[manifest.pod.node_name].append(manifest.pod)
    return pods_by_node


class _Requests:
    """Sums the requests of pods, reading each spec shared by a template's pods only once."""

    def __init__(self, rules: ResizeRules) -> None:
        self._rules = rules
        self._known: dict[int, Mapping[str, int]] = {}

    def of(self, pods: list[Pod]) -> Counter[str]:
        """Return the sums by resource: cpu in milli-units, all others in whole units."""
        needed: Counter[str] = Counter({_PODS: len(pods)})
        for pod in pods:
            needed.update(self._of(pod))
        return needed

    def _of(self, pod: Pod) -> Mapping[str, int]:
        if pod.resize is not None:
            return placed_requests(pod.spec, pod.resize, self._rules).amounts
        # Specs are cached by id, which is safe because the replica keeps them all alive.
        requests = self._known.get(id(pod.spec))
        if requests is None:
            requests = self._known[id(pod.spec)] = placed_requests(pod.spec, None).amounts
        return requests


def _beyond(allocatable: dict[str, int], needed: Counter[str]) -> Iterator[str]:
    for resource, amount in sorted(needed.items()):
        if amount > allocatable.get(resource, 0):
            there = format_amount(resource, allocatable.get(resource, 0))
            needed_amount = format_amount(resource, amount)
            yield f"Its pods need {needed_amount} of {resource}, of which it has {there}."


def _shared_ports(pods: list[Pod]) -> Iterator[str]:
    """Yield the host ports that two pods share at the same address."""
    users: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for pod in pods:
        for address, protocol, port in set(host_ports(pod.spec)):
            users[protocol, port].append(address)
    for (protocol, port), addresses in sorted(users.items()):
        if len(addresses) > len(set(addresses)) or (
            len(addresses) > 1 and node_ports.WILDCARD in addresses
        ):
            yield f"Several of its pods have the host port {port}/{protocol}."
