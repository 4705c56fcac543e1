"""Parse placements over several clusters, and build the request body for each cluster."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec

from service.api.http.body import converted, items_in, read_members
from service.api.http.operation import DNSLabel
from service.api.resources.placements.parsing import PLACEMENT_FIELDS, placement_of
from service.api.resources.placements.schemas import OverClustersRequest
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.strict_json import decode_strict, encode
from service.model.core.type_rules import fields_of
from service.model.json.streaming import Member, whole
from service.model.pods.cluster_topology import CLUSTER_KEY, counts_other_namespaces
from service.model.pods.template_cache import TemplateCache
from service.scheduler.multi_cluster.cluster_bids import ClusterQuery, Unit
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import Strategy
from service.scheduler.replica.pod_groups import group_of

_OF_ONE_CLUSTER = [name for name in PLACEMENT_FIELDS if name not in fields_of(OverClustersRequest)]
_CHOICE = ("strategy", "splitGroups")
"""The fields that control the choice between clusters."""
_Names = Annotated[list[DNSLabel], msgspec.Meta(min_length=1)]


class OverClustersBody(NamedTuple):
    """A parsed request to place pods over several clusters."""

    clusters: Sequence[str] | None
    """The named clusters, or None for all clusters where the caller may place the pods."""
    strategy: Strategy
    split_groups: bool
    intent: PlacePods
    """The placement as it would be in a single cluster."""
    pods: Sequence[msgspec.Raw]
    """The encoded manifests of the pods, as sent to each cluster."""
    units: Sequence[Unit]

    def to_cluster(self, ask: ClusterQuery) -> bytes:
        """Return the body of a request to place some of these pods in one cluster."""
        return encode(
            {
                "pods": [self.pods[index] for index in ask.indices],
                "policy": "AllOrNothing" if self._together(ask) else "BestEffort",
                "onUnschedulable": "Queue" if ask.queue else "Reject",
                "dryRun": ask.dry_run,
                "compare": ask.dry_run,
            }
        )

    def _together(self, ask: ClusterQuery) -> bool:
        return ask.reserving is not None or (self.intent.all_or_nothing and not ask.alone)


async def parse_over_clusters(
    raw: bytes, templates: TemplateCache, items_max: int, clusters_max: int
) -> OverClustersBody:
    """Parse the body of `placePodsOverClusters`.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: the request or its pods are invalid; the error lists everything wrong.
    """
    read = ("clusters", *_CHOICE, *PLACEMENT_FIELDS)
    members = await read_members(raw, read=read, lists=("pods",), items_max=items_max)
    sent = {name: value for name, value in members.items() if value != b"null"}
    clusters = _clusters(sent.pop("clusters", None), clusters_max)
    choice = _choice({name: sent.pop(name, None) for name in _CHOICE})
    errors = [
        FieldError(name, "is asked of a single cluster", None)
        for name in _OF_ONE_CLUSTER
        if name in sent
    ]
    if errors:
        raise InvalidManifest(errors)
    intent = await placement_of(sent, templates, items_max)
    _refuse_wrong_pods(intent)
    manifests = _manifests(sent, intent, items_max)
    return OverClustersBody(
        clusters, choice.strategy, choice.split_groups, intent, manifests, _units(intent)
    )


def _clusters(sent: Member | None, clusters_max: int) -> Sequence[str] | None:
    if sent is None:
        return None
    names: list[str] = converted(decode_strict(whole(sent)), _Names, "clusters")
    if len(names) > clusters_max:
        raise InvalidManifest(
            [FieldError("clusters", f"has to have at most {clusters_max} names", len(names))]
        )
    errors = [
        FieldError(f"clusters[{index}]", "names a cluster that is named before", name)
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    if errors:
        raise InvalidManifest(errors)
    return names


def _choice(sent: Mapping[str, Member | None]) -> OverClustersRequest:
    given = {
        name: decode_strict(whole(member)) for name, member in sent.items() if member is not None
    }
    return converted(given, OverClustersRequest)


def _refuse_wrong_pods(intent: PlacePods) -> None:
    """Refuse pods without names, which make retries safe, and `minDomains` that has no effect."""
    if intent.undrawn:
        raise InvalidManifest(
            [FieldError(intent.path, "every pod needs a name here, not a generateName")]
        )
    errors = [
        FieldError(
            f"{intent.place_of(index)}.spec.topologySpreadConstraints[{number}].minDomains",
            f"may not be given with the topologyKey {CLUSTER_KEY}",
            constraint.min_domains,
        )
        for index, manifest in enumerate(intent.pods)
        for number, constraint in enumerate(manifest.pod.spec.topology_spread_constraints or ())
        if constraint.topology_key == CLUSTER_KEY and constraint.min_domains is not None
    ]
    if errors:
        raise InvalidManifest(errors)


def _manifests(
    sent: Mapping[str, Member], intent: PlacePods, items_max: int
) -> Sequence[msgspec.Raw]:
    """Return the pods byte for byte as sent; each replica of a template gets its own name."""
    if intent.path != "template":
        return [msgspec.Raw(item) for item in items_in(sent["pods"], "pods", items_max)]
    template = msgspec.json.decode(whole(sent["template"]), type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(template["metadata"], type=dict[str, msgspec.Raw])
    return [
        _encoded(template | {"metadata": _encoded(metadata | {"name": _encoded(manifest.name)})})
        for manifest in intent.pods
    ]


def _encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(encode(value))


def _units(intent: PlacePods) -> Sequence[Unit]:
    """Return units to place in one cluster each: all pods, a group's members, or single pods."""
    together: dict[object, list[int]] = {}
    for index, manifest in enumerate(intent.pods):
        group = group_of(manifest)
        apart = index if group is None else group
        together.setdefault(None if intent.all_or_nothing else apart, []).append(index)
    return [
        Unit(
            indices=indices,
            names=[(intent.pods[index].namespace, intent.pods[index].name) for index in indices],
            is_group=intent.all_or_nothing or group_of(intent.pods[indices[0]]) is not None,
            counts_others=any(counts_other_namespaces(intent.pods[index].pod) for index in indices),
        )
        for indices in together.values()
    ]
