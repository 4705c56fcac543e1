"""Counts what the pods of each node need, without the engine's counters, and compares it with the node."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from service.engine.plugins import node_ports, node_resources_fit
from service.model.manifests.manifest import NodeManifest, PodManifest
from service.model.objects.pod_resource_requests import host_ports, placed_requests
from service.model.objects.pods_and_nodes import Pod
from service.model.objects.quantity import amounts, format_amount
from service.scheduler.replica.replica import Replica

_PODS = "pods"


def overfull_nodes(replica: Replica) -> Iterator[tuple[str, str]]:
    """Yield what is too much for which node, unless no profile of the cluster filters by it.

    A node can have become too small after its pods were placed, if its owner changed it.
    """
    profiles = replica.cluster.profiles.values()
    counts_room = any(each.has_filter(node_resources_fit.NAME) for each in profiles)
    counts_ports = any(each.has_filter(node_ports.NAME) for each in profiles)
    pods_of, requests = _pods_by_node(replica), _Requests()
    for stored in replica.objects(NodeManifest.kind):
        manifest = stored.manifest
        assert isinstance(manifest, NodeManifest)
        pods = pods_of.get(manifest.name, [])
        if counts_room:
            for told in _beyond(amounts(manifest.node.allocatable), requests.of(pods)):
                yield f"Node {manifest.name}", told
        if counts_ports:
            for told in _shared_ports(pods):
                yield f"Node {manifest.name}", told


def _pods_by_node(replica: Replica) -> dict[str, list[Pod]]:
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for stored in replica.objects(PodManifest.kind):
        manifest = stored.manifest
        assert isinstance(manifest, PodManifest)
        if manifest.pod.node_name is not None and not manifest.pod.finished:
            found[manifest.pod.node_name].append(manifest.pod)
    return found


class _Requests:
    """Sums what pods request; pods of one template share their spec, which is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, Mapping[str, int]] = {}

    def of(self, pods: list[Pod]) -> Counter[str]:
        """Return the sums by resource: cpu in milli-units, all else in whole units."""
        needed: Counter[str] = Counter({_PODS: len(pods)})
        for pod in pods:
            needed.update(self._of(pod))
        return needed

    def _of(self, pod: Pod) -> Mapping[str, int]:
        if pod.resize is not None:
            return placed_requests(pod.spec, pod.resize).amounts
        # Specs are known by id, as the replica keeps them all meanwhile.
        found = self._known.get(id(pod.spec))
        if found is None:
            found = self._known[id(pod.spec)] = placed_requests(pod.spec, None).amounts
        return found


def _beyond(allocatable: dict[str, int], needed: Counter[str]) -> Iterator[str]:
    for resource, amount in sorted(needed.items()):
        if amount > allocatable.get(resource, 0):
            there = format_amount(resource, allocatable.get(resource, 0))
            told = format_amount(resource, amount)
            yield f"Its pods need {told} of {resource}, of which it has {there}."


def _shared_ports(pods: list[Pod]) -> Iterator[str]:
    """Yield host ports that two pods have at the same address."""
    users: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for pod in pods:
        for address, protocol, port in set(host_ports(pod.spec)):
            users[protocol, port].append(address)
    for (protocol, port), addresses in sorted(users.items()):
        if len(addresses) > len(set(addresses)) or (
            len(addresses) > 1 and node_ports.WILDCARD in addresses
        ):
            yield f"Several of its pods have the host port {port}/{protocol}."
