"""How the choices for a pod differ between two configurations."""

import msgspec


class ChoiceDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that would get another node."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    node_name: str | None = None
    """The node that the pod is on; null if it is on none."""
    before: str | None
    """The node that the pod would get now; null if it fits nowhere."""
    after: str | None
    """The node that the pod would get then; null if it fits nowhere, or its `schedulerName` is no profile."""
    plugin: str | None
    """The plugin that contributes most to the difference; null if no plugin judges the nodes differently."""
    points: int | None
    """By how many weighted points the plugin's preference shifts toward the node `after`; null if the
    plugin refuses one of the nodes in only one of the cases."""
