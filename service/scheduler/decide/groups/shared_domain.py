"""The domain of a node label in which the members of a group have to be together."""

from typing import NamedTuple

from service.model.manifests.manifest import PodManifest
from service.scheduler.decide.groups.group_membership import Members, members_of, waits_with
from service.scheduler.replica.replica import Replica


class SharedDomain(NamedTuple):
    """Where the members of a group have to be together."""

    key: str
    """They have to be on nodes with the same value of this label."""
    value: str | None = None
    """The value where members are already; None: any, as long as enough of them find room there."""
    conflict: str | None = None
    """Why there is no such domain, by where members are already; None: nothing speaks against one."""


def shared_domain(replica: Replica, members: Members) -> SharedDomain | None:
    """Return the domain for the waiting members of a group; None if they may go anywhere.

    Members on nodes that do not exist any more do not count.
    """
    key = members.topology_key
    if key is None:
        return None
    nodes = [replica.cluster.node(name) for name in sorted(members.node_names)]
    labels = {node.name: node.labels.get(key) for node in nodes if node is not None}
    unlabelled = [name for name, value in labels.items() if value is None]
    values = sorted({value for value in labels.values() if value is not None})
    if unlabelled:
        told = (
            f"a member of {members.title} is on node {unlabelled[0]}, which lacks the label {key}"
        )
        return SharedDomain(key, conflict=told)
    if len(values) > 1:
        told = f"members of {members.title} are in more than one domain of {key}: "
        return SharedDomain(key, conflict=told + ", ".join(values))
    return SharedDomain(key, value=values[0] if values else None)


def shares_domain(replica: Replica, manifest: PodManifest) -> str | None:
    """Say with whom a stored pod has to share a domain, and where; None if with nobody."""
    group = waits_with(replica, manifest)
    if group is None:
        return None
    members = members_of(replica, group)
    shared = shared_domain(replica, members)
    if shared is None or shared.conflict is not None:
        return shared and shared.conflict
    told = f"all members of {members.title} have to be in one domain of {shared.key}"
    return told if shared.value is None else f"{told}: {shared.value}, where some of them are"
