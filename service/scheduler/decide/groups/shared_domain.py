"""The domain of a node label that the members of a group have to share."""

from typing import NamedTuple

from service.model.registry.manifests import PodManifest
from service.scheduler.decide.groups.group_membership import Members, members_of, waits_with
from service.scheduler.replica.replica import Replica


class SharedDomain(NamedTuple):
    """The domain that the members of a group have to share."""

    key: str
    """The label that must have the same value on all members' nodes."""
    value: str | None = None
    """The value on the nodes of current members, or None for any with room for enough members."""
    conflict: str | None = None
    """Why no such domain exists, given the current members' nodes, or None."""


def shared_domain(replica: Replica, members: Members) -> SharedDomain | None:
    """Return the domain for the waiting members of a group, or None if any node will do.

    Members on deleted nodes do not count.
    """
    key = members.topology_key
    if key is None:
        return None
    nodes = [replica.cluster.node(name) for name in sorted(members.node_names)]
    labels = {node.name: node.labels.get(key) for node in nodes if node is not None}
    unlabelled = [name for name, value in labels.items() if value is None]
    values = sorted({value for value in labels.values() if value is not None})
    if unlabelled:
        conflict = (
            f"a member of {members.title} is on node {unlabelled[0]}, which lacks the label {key}"
        )
        return SharedDomain(key, conflict=conflict)
    if len(values) > 1:
        conflict = f"members of {members.title} are in more than one domain of {key}: "
        return SharedDomain(key, conflict=conflict + ", ".join(values))
    return SharedDomain(key, value=values[0] if values else None)


def shares_domain(replica: Replica, manifest: PodManifest) -> str | None:
    """Return a description of the group and domain that a stored pod must share, or None."""
    group = waits_with(replica, manifest)
    if group is None:
        return None
    members = members_of(replica, group)
    shared = shared_domain(replica, members)
    if shared is None or shared.conflict is not None:
        return shared and shared.conflict
    message = f"all members of {members.title} have to be in one domain of {shared.key}"
    return message if shared.value is None else f"{message}: {shared.value}, where some of them are"
