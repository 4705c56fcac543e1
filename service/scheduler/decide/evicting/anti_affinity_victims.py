"""Whom to evict so that anti-affinity that is required during execution holds again."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from service.engine.questions.violations import Crowd, Inspection, Violation, key_of
from service.model.config import ClusterConfig
from service.model.objects import ObjectName, Pod
from service.scheduler.decide.events import Rule
from service.scheduler.decide.message_references import pod_named, reference


class Cause(NamedTuple):
    """Why a pod is evicted; `message` names the rule and where it does not hold."""

    rule: Rule
    message: str

    @property
    def reason(self) -> str:
        """The reason for the pod's condition."""
        return f"{self.rule}Violated"


class Quarrel:
    """The pods of one domain that a rule matches, and those there that have the rule."""

    def __init__(self, members: set[ObjectName]) -> None:
        self.members = members
        self.owners: dict[ObjectName, str] = {}
        """The pods that have the rule, each with the rule's path in its manifest."""

    def others(self, owner: ObjectName) -> bool:
        """Whether the rule matches any pod besides its owner."""
        return len(self.members) > (owner in self.members)

    def other_owners(self, member: ObjectName) -> bool:
        """Whether any other pod has the rule, and so may not share the domain with the member."""
        return len(self.owners) > (member in self.owners)


class Conflicts:
    """All conflicts of a sweep. Pods that are being evicted, by whomever, count as gone.

    Pods of daemon namespaces are neither cause nor victim: the engine's matchers leave them out
    of every crowd, and their own rules are left out here.
    """

    def __init__(self, config: ClusterConfig, inspection: Inspection) -> None:
        self._config = config
        self._inspection = inspection
        self._pods: dict[ObjectName, Pod] = {}
        self.quarrels: dict[Crowd, Quarrel] = {}
        """The quarrels by domain and rule; pods that leave are taken out of them."""
        self._by_pod: defaultdict[ObjectName, list[Quarrel]] = defaultdict(list)
        self._owners: dict[ObjectName, None] = {}

    def add(self, violation: Violation) -> None:
        """Take in a broken rule of anti-affinity."""
        crowd, owner = violation.breach.crowd, key_of(violation.pod)
        assert crowd is not None
        if self.is_daemon(violation.pod):
            return
        quarrel = self.quarrels.get(crowd)
        if quarrel is None:
            quarrel = self.quarrels[crowd] = self._quarrel(crowd)
        quarrel.owners[owner] = violation.breach.rule.path
        self._owners[owner] = None
        self._pods[owner] = violation.pod
        if owner not in quarrel.members:
            self._by_pod[owner].append(quarrel)

    def is_daemon(self, pod: Pod) -> bool:
        """Whether a pod is of a daemon namespace, so that its own rules have nobody evicted."""
        return pod.namespace in self._config.daemon_namespaces

    def _quarrel(self, crowd: Crowd) -> Quarrel:
        quarrel = Quarrel(set())
        for pod, pod_class in self._inspection.members(crowd):
            if not pod_class.terminating:
                quarrel.members.add(key_of(pod))
                self._pods[key_of(pod)] = pod
                self._by_pod[key_of(pod)].append(quarrel)
        return quarrel

    def leave(self, key: ObjectName) -> None:
        """Count a pod as gone."""
        for quarrel in self._by_pod.pop(key, ()):
            quarrel.members.discard(key)
            quarrel.owners.pop(key, None)

    def victims(self) -> Iterator[tuple[ObjectName, Cause]]:
        """Find victims one by one, each as if those before it were gone, until every rule holds."""
        anybody = self._config.anti_affinity_victim == "LowestPriority"
        for key in self.in_order(self._pods if anybody else self._owners):
            cause = self._cause(key, anybody=anybody)
            if cause is not None:
                yield key, cause
                self.leave(key)

    def in_order(self, keys: Iterable[ObjectName]) -> list[ObjectName]:
        """Sort pods: the lowest priority first, and the youngest first among equals."""
        ordered = sorted(keys)
        ordered.sort(key=lambda key: self._pods[key].created, reverse=True)
        ordered.sort(key=lambda key: _priority(self._config, self._pods[key]))
        return ordered

    def _cause(self, key: ObjectName, *, anybody: bool) -> Cause | None:
        for quarrel in self._by_pod.get(key, ()):
            node_name = self._pods[key].node_name
            if key in quarrel.owners and quarrel.others(key):
                other = pod_named(*min(quarrel.members - {key}), told_in={key[0]})
                return _cause(
                    f"{quarrel.owners[key]} does not hold on node {node_name}: "
                    f"{other} is in its domain."
                )
            if anybody and key in quarrel.members and quarrel.other_owners(key):
                owner = min(each for each in quarrel.owners if each != key)
                rule = _rule_of(owner, quarrel.owners[owner], told_in=key[0])
                return _cause(f"{rule} does not hold while this pod is on node {node_name}.")
        return None


def _rule_of(owner: ObjectName, path: str, *, told_in: str) -> str:
    namespace, name = owner
    if namespace == told_in:
        return f"{path} of {namespace}/{name}"
    return f"A rule of {reference('Pod', namespace, name, path)}"


def _cause(message: str) -> Cause:
    return Cause("PodAntiAffinity", message)


def _priority(config: ClusterConfig, pod: Pod) -> int:
    if pod.spec.priority is not None:
        return pod.spec.priority
    return config.priority_of(pod.spec.priority_class_name) or 0
