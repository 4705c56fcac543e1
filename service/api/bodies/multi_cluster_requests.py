"""Reads the bodies of placements over several clusters, and makes those of the placements in each."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from service.api.bodies.placement_requests import parse_placement
from service.api.bodies.requests import converted
from service.api.openapi.principal_types import ScopeName
from service.model.cluster_topology import CLUSTER_KEY
from service.model.errors import FieldError, InvalidManifest
from service.model.strict_json import decode_strict, encode
from service.model.templates import TemplateCache
from service.scheduler.multi_cluster_placement import Ask, Unit
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import Strategy
from service.scheduler.replica.pod_groups import group_of

_OF_ONE_CLUSTER = ("podRefs", "explain", "preemption", "preemptionScope", "compare")
_Names = Annotated[list[ScopeName], msgspec.Meta(min_length=1)]


class _Choice(msgspec.Struct, frozen=True):
    """How to choose between clusters; the other fields of a request are read apart."""

    strategy: Strategy = "LeastAllocated"


class OverClustersBody(NamedTuple):
    """A request as it was read."""

    clusters: Sequence[str] | None
    """None: all where the caller may place the pods."""
    strategy: Strategy
    intent: PlacePods
    """The placement that it would be in a single cluster."""
    pods: Sequence[Any]
    """The manifests of its pods, as they are sent to a cluster."""
    units: Sequence[Unit]

    def to_cluster(self, ask: Ask) -> bytes:
        """The body of a placement of some of these pods in one cluster."""
        return encode(
            {
                "pods": [self.pods[index] for index in ask.indices],
                "policy": "AllOrNothing" if self.intent.all_or_nothing else "BestEffort",
                "onUnschedulable": "Queue" if ask.queue else "Reject",
                "dryRun": ask.dry_run,
                "compare": ask.dry_run,
            }
        )


async def parse_over_clusters(
    raw: bytes, templates: TemplateCache, items_max: int, clusters_max: int
) -> OverClustersBody:
    """Read the body of `placePodsOverClusters`.

    Raises:
        MalformedJSON: the body is no JSON that Moorage reads.
        InvalidManifest: the request or pods in it are wrong; the error has all that is.
    """
    sent = decode_strict(raw)
    if not isinstance(sent, dict):
        raise InvalidManifest([FieldError("", "has to be an object")])
    clusters = _clusters(sent.pop("clusters", None), clusters_max)
    strategy = converted(sent, _Choice).strategy
    sent.pop("strategy", None)
    errors = [
        FieldError(name, "is asked of a single cluster", None)
        for name in _OF_ONE_CLUSTER
        if sent.get(name) is not None
    ]
    if errors:
        raise InvalidManifest(errors)
    intent = await parse_placement(encode(sent), templates, items_max)
    _refuse_wrong_pods(intent)
    return OverClustersBody(clusters, strategy, intent, _manifests(sent, intent), _units(intent))


def _clusters(sent: Any, clusters_max: int) -> Sequence[str] | None:
    if sent is None:
        return None
    names: list[str] = converted(sent, _Names, "clusters")
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


def _refuse_wrong_pods(intent: PlacePods) -> None:
    """Refuse pods without names, by which asking again is harmless, and constraints of no effect."""
    if intent.undrawn:
        raise InvalidManifest(
            [FieldError(intent.path, "every pod needs a name here, not a generateName")]
        )
    errors = [
        FieldError(
            f"{intent.place_of(index)}.spec.topologySpreadConstraints[{number}].minDomains",
            f"may not be given with the topologyKey {CLUSTER_KEY}",
            each.min_domains,
        )
        for index, manifest in enumerate(intent.pods)
        for number, each in enumerate(manifest.pod.spec.topology_spread_constraints or ())
        if each.topology_key == CLUSTER_KEY and each.min_domains is not None
    ]
    if errors:
        raise InvalidManifest(errors)


def _manifests(sent: Mapping[str, Any], intent: PlacePods) -> Sequence[Any]:
    if intent.path != "template":
        return sent["pods"]  # type: ignore[no-any-return]
    template = sent["template"]
    return [
        {**template, "metadata": {**template["metadata"], "name": manifest.name}}
        for manifest in intent.pods
    ]


def _units(intent: PlacePods) -> Sequence[Unit]:
    """What goes to one cluster together: all pods, or the members of a group, or a single pod."""
    together: dict[object, list[int]] = {}
    for index, manifest in enumerate(intent.pods):
        group = group_of(manifest)
        apart = index if group is None else group
        together.setdefault(None if intent.all_or_nothing else apart, []).append(index)
    return [
        Unit(
            indices=indices,
            names=[(intent.pods[each].namespace, intent.pods[each].name) for each in indices],
        )
        for indices in together.values()
    ]
