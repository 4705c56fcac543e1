"""The features that a pod needs its node to declare (NodeDeclaredFeatures, KEP-5328).

Source: `InferForScheduling` of the features in `k8s.io/component-helpers/nodedeclaredfeatures`. It
reads only the specs of pods, and none of these features has a newest version in which it is needed.
Which of them kube-scheduler knows depends on its version.
"""

from collections.abc import Iterator, Set as AbstractSet
from typing import Final, NamedTuple

from msgspec.structs import replace

from service.model.pods.pod import Container, ContainerRestartRule, PodSpec, VolumeMount

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
VOLUME_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

_RESTART_ALL = "RestartAllContainers"
"""The action of a restart rule."""


class FeatureNeed(NamedTuple):
    """A feature that a pod needs, and where its manifest asks for it."""

    feature: str
    path: str
    containers: str = ""
    """The attribute of the spec whose container asks for the feature, or "" for the spec itself."""
    container: int = 0
    """The index of the container."""
    item: int = 0
    """The index of the restart rule or volume mount."""


def required_features(spec: PodSpec, known: AbstractSet[str]) -> tuple[str, ...]:
    """Return those of the `known` features that a pod needs, in order."""
    return tuple(sorted({need.feature for need in feature_needs(spec)} & known))


def feature_needs(spec: PodSpec) -> Iterator[FeatureNeed]:
    """Yield the features that a pod needs, once for each field that asks for one."""
    if spec.host_network and spec.host_users is False:
        yield FeatureNeed(USER_NAMESPACES_HOST_NETWORK, "spec.hostUsers")
    for number, container in enumerate(spec.containers):
        yield from _needs_of(container, f"spec.containers[{number}]", "containers", number)
    for number, container in enumerate(spec.init_containers):
        yield from _needs_of(container, f"spec.initContainers[{number}]", "init_containers", number)


def _needs_of(
    container: Container, path: str, containers: str, number: int
) -> Iterator[FeatureNeed]:
    for index, rule in enumerate(container.restart_policy_rules):
        if rule.action == _RESTART_ALL:
            where = f"{path}.restartPolicyRules[{index}]"
            yield FeatureNeed(RESTART_ALL_CONTAINERS, where, containers, number, index)
    for index, mount in enumerate(container.volume_mounts):
        if mount.bind_mount_options:
            where = f"{path}.volumeMounts[{index}].bindMountOptions"
            yield FeatureNeed(VOLUME_BIND_MOUNT_OPTIONS, where, containers, number, index)


def without_need(spec: PodSpec, need: FeatureNeed) -> PodSpec:
    """Return a spec that does not ask for a feature in one place; other places keep their paths."""
    if not need.containers:
        return replace(spec, host_users=None)
    containers = list[Container](getattr(spec, need.containers))
    container = containers[need.container]
    if need.feature == RESTART_ALL_CONTAINERS:
        rules = list(container.restart_policy_rules)
        rules[need.item] = ContainerRestartRule()
        changed = replace(container, restart_policy_rules=tuple(rules))
    else:
        mounts = list(container.volume_mounts)
        mounts[need.item] = VolumeMount()
        changed = replace(container, volume_mounts=tuple(mounts))
    containers[need.container] = changed
    return replace(spec, **{need.containers: tuple(containers)})


def without_plain_mounts(spec: PodSpec) -> PodSpec:
    """Return a spec whose containers have volume mounts only if one of them has options."""
    if not any(container.volume_mounts for container in (*spec.containers, *spec.init_containers)):
        return spec
    return replace(
        spec,
        containers=tuple(map(_without_plain_mounts, spec.containers)),
        init_containers=tuple(map(_without_plain_mounts, spec.init_containers)),
    )


def _without_plain_mounts(container: Container) -> Container:
    if any(mount.bind_mount_options for mount in container.volume_mounts):
        return container
    return replace(container, volume_mounts=())
