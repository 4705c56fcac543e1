"""Finds or compiles the class of each pod, and drops classes that no pod needs any more."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from service.engine.state.devices.device_table import DeviceTable
from service.engine.state.devices.pod_devices import PodDevices
from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.counters import DomainCounter, IncludedNodes, SpreadCounter
from service.engine.state.nodes.node_rules import (
    NodeRules,
    ProfileRules,
    RequiredNodes,
    RulesInterner,
    label_keys,
)
from service.engine.state.nodes.node_selectors import required_mask
from service.engine.state.nodes.node_table import HOSTNAME, NodeTable
from service.engine.state.nodes.taints import untolerated_hard
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.pods.classes import (
    COUNTER_BYTES,
    AffinityTerm,
    MatcherEntry,
    MatchIndex,
    OwnedTerm,
    PodClass,
    Role,
    Template,
)
from service.engine.state.pods.data_sets import DataSets
from service.engine.state.pods.default_spread import DefaultedClasses, DefaultSelectors
from service.engine.state.pods.matchers import (
    Matcher,
    NamespaceRule,
    Selector,
    TermMatcher,
    compile_namespaces,
    compile_selector,
    compile_term,
    for_incoming,
    size_in_bytes,
)
from service.engine.state.pods.siblings import SIBLING_LABEL, sibling_key_of, siblings_in
from service.engine.state.pods.spread import SpreadRule
from service.engine.state.volumes.pod_volumes import has_claims_or_disks, has_ephemeral
from service.engine.state.volumes.volume_table import PodVolumes, VolumeTable
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import Partial
from service.model.pods.affinity import spread_selector
from service.model.pods.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)

IDLE_CLASSES_MAX = 16_384
"""The maximum number of cached classes without pods; the least recently used are dropped first."""

IDLE_BYTES_MAX = 64 * 1024 * 1024
"""The approximate maximum size in bytes of classes without pods and their templates."""

CLASS_BYTES, LABEL_BYTES = 2_048, 384
"""The approximate sizes in bytes of a class, and of each of its labels with its index entry."""

TEMPLATE_BYTES, TERM_BYTES = 4_096, 64
"""The approximate sizes in bytes of a template, and of each of its references to a matcher,
counter, or term."""

WIDE_WEIGHT = 64 * 1024
"""The extra weight of a matcher that must be compared with every new class."""

STEP_CLASSES = 64
"""The number of classes dropped per step."""

NOTHING_REQUIRED = RequiredNodes((), (), empty_term_matches_all=False)

NO_RULES = ProfileRules()
"""The empty rules of a scheduler without a profile."""

SelectedConstraint = tuple[int, TopologySpreadConstraint, Selector | None]
"""A spread constraint of a pod: its index, the constraint, and its compiled selector."""
InclusionRule = tuple[tuple[str, ...], RequiredNodes | None, tuple[Toleration, ...] | None]


class InclusionSets:
    """The interned sets of nodes that spread constraints include."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._known: dict[str, tuple[InclusionRule, IncludedNodes]] = {}
        self._identities: dict[IncludedNodes, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(
        self,
        keys: Iterable[TopologyKey],
        required: RequiredNodes | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> IncludedNodes:
        """Return the nodes that have all keys and are admitted, and add a reference to the set.

        Args:
            keys: the topology keys that a node needs.
            required: the node affinity to honor, or None if the constraint's policy ignores it.
            tolerations: the tolerations to honor, or None if the constraint's policy ignores taints.
        """
        keys = sorted(keys, key=lambda key: key.name)
        rule: InclusionRule = (tuple(key.name for key in keys), required, tolerations)
        identity = repr(rule)
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = (rule, IncludedNodes(keys, self._nodes.size))
            self._identities[known[1]] = identity
            self._nodes.hold_keys(_keys_of(rule))
            for slot in np.flatnonzero(self._admits(rule, np.arange(self._nodes.size))):
                known[1].enter(int(slot))
        known[1].users += 1
        return known[1]

    def release(self, included_nodes: IncludedNodes) -> None:
        """Remove a reference to a set, and drop the set if it was the last one."""
        included_nodes.users -= 1
        if not included_nodes.users:
            rule, _ = self._known.pop(self._identities.pop(included_nodes))
            self._nodes.release_keys(_keys_of(rule))

    def sizes(self) -> Iterator[int]:
        """Yield the approximate size in bytes of each set."""
        for identity, (_, included_nodes) in self._known.items():
            counters = included_nodes.nodes_of.values()
            size = len(identity) + included_nodes.mask.nbytes
            yield size + sum(COUNTER_BYTES + counter.size_in_bytes for counter in counters)

    def resize(self) -> None:
        for _, included_nodes in self._known.values():
            included_nodes.resize(self._nodes.size)

    def enter(self, slot: int) -> None:
        """Add a node to the sets that admit it, after its columns are written."""
        row = np.array([slot])
        for rule, included_nodes in self._known.values():
            if self._admits(rule, row)[0]:
                included_nodes.enter(slot)

    def leave(self, slot: int) -> None:
        for _, included_nodes in self._known.values():
            included_nodes.leave(slot)

    def verdicts(self) -> Iterator[bool]:
        """Yield, for each set, whether its nodes and their counts are correct."""
        for rule, included_nodes in tuple(self._known.values()):
            slots = np.arange(self._nodes.size)
            yield bool(np.array_equal(included_nodes.mask, self._admits(rule, slots))) and (
                included_nodes.counts_match()
            )

    def _admits(self, rule: InclusionRule, rows: npt.NDArray[np.intp]) -> Mask:
        names, required, tolerations = rule
        mask: Mask = self._nodes.alive[rows]
        for name in names:
            mask = mask & (self._nodes.key(name).domain_of[rows] >= 0)
        if required is not None and required.restricts:
            mask = mask & required_mask(self._nodes, required, rows)
        if tolerations is not None:
            mask = mask & ~untolerated_hard(self._nodes, tolerations, rows)
        return mask


def _keys_of(rule: InclusionRule) -> tuple[str, ...]:
    """Return the label keys that determine which nodes are in a set."""
    names, required, _ = rule
    if required is None:
        return names
    return (*names, *label_keys(required, None, NOTHING_REQUIRED, None))


class ObjectRules(NamedTuple):
    """The auxiliary objects that are read when pods are compiled."""

    selectors: DefaultSelectors
    volumes: VolumeTable
    devices: DeviceTable
    data_sets: DataSets


class Compiler:
    """Compiles pods into the templates and classes of one cluster under one configuration."""

    def __init__(
        self,
        config: ClusterConfig,
        profiles: Mapping[str, ProfileRules],
        nodes: NodeTable,
        match_index: MatchIndex,
        inclusion_sets: InclusionSets,
        objects: ObjectRules,
        dropped: Callable[[NodeRules, bool], None],
    ) -> None:
        """Create a compiler; `dropped` receives released node rules, as in `RulesInterner`."""
        self._config = config
        self._profiles = profiles
        self._nodes = nodes
        self._match_index = match_index
        self._inclusion_sets = inclusion_sets
        self._selectors = objects.selectors
        self._defaulted = DefaultedClasses(match_index)
        self._data_sets = objects.data_sets
        self._volumes = objects.volumes if config.volumes == "Honor" else None
        self._devices = objects.devices if config.device_claims == "Allocate" else None
        self._rules = RulesInterner(
            nodes,
            empty_term_matches_all=config.empty_term_matches_all,
            known_features=config.scheduler_version.known_features,
            scores_pod_level=config.scores_pod_level_requests,
            dropped=dropped,
        )
        self._daemons = frozenset(config.daemon_namespaces)
        self._has_defaults = any(profile.constraints for profile in profiles.values())
        self._templates: dict[object, Template] = {}
        self._classes: dict[object, PodClass] = {}
        self._last: tuple[Pod, PodClass, bool] | None = None
        """The last pod compiled, its class, and whether the class ignores owners, volumes, and
        devices. Often, the same pod is compiled again immediately, bound to a node."""
        self._idle: OrderedDict[PodClass, object] = OrderedDict()
        self.idle_bytes = 0
        """The approximate size in bytes of the idle classes, and of the templates whose classes are
        all idle."""
        self._uncommitted: dict[PodClass, int] = {}
        """The classes that only uncommitted pods have had, with the undo position of their first
        pod."""
        self.uncommitted_idle: dict[PodClass, None] = {}
        """The uncommitted classes without pods."""
        self._kin: Counter[object] = Counter()
        """The number of classes with pods, by `PodClass.kin`."""
        self._falling_back: dict[Template, None] = {}
        """The templates that have variants (`service.engine.placing.spread_fallback`)."""
        self.has_dropped = False
        """Whether a class was dropped since this flag was last reset."""
        self.execution_classes: dict[PodClass, None] = {}
        """The classes of known pods with rules that are required during execution."""

    def interned(self) -> dict[str, int]:
        """Return the number of known classes and templates."""
        return {"classes": len(self._classes), "templates": len(self._templates)}

    def class_of(self, pod: Pod) -> PodClass:
        """Return a pod's class, compiling it on first use."""
        if self._last is not None:
            last, known, is_plain = self._last
            if _share_objects(last, pod) and (is_plain or _have_equal_owners(last, pod)):
                return known
        spec, labels = pod.spec, pod.labels
        takes_defaults = self._has_defaults and self._takes_defaults(spec)
        has_volumes = bool(spec.volumes) and has_claims_or_disks(spec.volumes)
        table = self._volumes if has_volumes else None
        device_table = self._devices if spec.resource_claims and pod.node_name is None else None
        identity: tuple[object, ...] = (
            id(spec),
            pod.namespace,
            frozenset(labels.items()),
            pod.terminating,
            pod.required_node_name,
            pod.controller if takes_defaults else None,
            None if table is None else _volumes_identity(pod),
            None if device_table is None else _devices_identity(pod),
        )
        pod_class = self._classes.get(identity)
        sibling_key = sibling_key_of(pod) if pod_class is None else None
        if sibling_key is not None:
            identity = (*identity, sibling_key)
            pod_class = self._classes.get(identity)
        if pod_class is None:
            template = self._template(pod)
            volumes = None if table is None else PodVolumes(pod, table)
            class_labels = (
                dict(labels) if sibling_key is None else {**labels, SIBLING_LABEL: sibling_key}
            )
            devices = None if device_table is None else PodDevices(pod, device_table)
            pod_class = PodClass(
                template,
                class_labels,
                terminating=pod.terminating,
                volumes=volumes,
                devices=devices,
            )
            if template.falls_back or spec.resource_claims:
                pod_class.kin = identity[:3]
            self._classes[identity] = pod_class
            self._uncommitted[pod_class] = 0
            self._match_index.join(pod_class)
            if takes_defaults:
                self._defaulted.add(pod_class, pod)
            if spec.data_affinity is not None:
                self._data_sets.add(pod_class, pod)
            self._mark_idle(pod_class, identity)
        elif pod_class in self._idle:
            self._idle.move_to_end(pod_class)
        is_plain = table is None and not spec.resource_claims and sibling_key is None
        self._last = (pod, pod_class, is_plain and not takes_defaults)
        return pod_class

    def hold(self, pod_class: PodClass, position: int) -> None:
        """Count one more known pod of a class, added at a position of the undo log."""
        pod_class.pods += 1
        if pod_class.pods == 1:
            pod_class.identity = self._mark_used(pod_class)
            if pod_class in self._uncommitted:
                self._uncommitted[pod_class] = position
            if pod_class.kin is not None:
                self._kin[pod_class.kin] += 1
            if pod_class.template.has_execution_rules:
                self.execution_classes[pod_class] = None

    def drop(self, pod_class: PodClass) -> None:
        """Count one fewer known pod of a class; a class without pods may be dropped later."""
        pod_class.pods -= 1
        if pod_class.pods == 0:
            self.execution_classes.pop(pod_class, None)
            if pod_class.kin is not None:
                self._kin[pod_class.kin] -= 1
                if not self._kin[pod_class.kin]:
                    del self._kin[pod_class.kin]
            self._mark_idle(pod_class, pod_class.identity)

    # Retention of classes without pods

    def commit_until(self, position: int) -> None:
        """Treat all pods added before a position as permanent, retaining their classes."""
        committed = [
            pod_class
            for pod_class, since in self._uncommitted.items()
            if pod_class.pods and since <= position
        ]
        for pod_class in committed:
            del self._uncommitted[pod_class]

    def forget_in_steps(self) -> Generator[None, None, None]:
        """Drop, in steps, uncommitted classes that have no pods and serve no other class."""
        uncommitted_idle, origins = list(self.uncommitted_idle), self._origins()
        for number, pod_class in enumerate(uncommitted_idle, 1):
            if pod_class in self.uncommitted_idle:
                if self._serves_others(pod_class, origins):
                    del self.uncommitted_idle[pod_class], self._uncommitted[pod_class]
                else:
                    self._drop(pod_class)
            if number % STEP_CLASSES == 0:
                yield
        while self.is_full:
            self._drop(next(iter(self._idle)))

    def forget_idle(self) -> None:
        """Drop all classes without pods."""
        while self._idle:
            self._drop(next(iter(self._idle)))

    def _origins(self) -> dict[int, int]:
        """Return the spec that each variant of a spec derives from, by object id."""
        return {
            id(variant): id(template.spec)
            for template in self._falling_back
            for variant in template.variants.values()
        }

    def _serves_others(self, pod_class: PodClass, origins: Mapping[int, int]) -> bool:
        """Return whether pods of a related class, by kin or spec, are placed through this class."""
        if pod_class.kin is not None and pod_class.kin in self._kin:
            return True
        origin = origins.get(id(pod_class.template.spec))
        if origin is None:
            return False
        identity = self._idle[pod_class]
        return isinstance(identity, tuple) and (origin, *identity[1:3]) in self._kin

    def _mark_idle(self, pod_class: PodClass, identity: object) -> None:
        self._idle[pod_class] = identity
        template = pod_class.template
        template.idle += 1
        self.idle_bytes += _size_of_class(pod_class)
        if template.idle == template.classes:
            self.idle_bytes += template.weight
        if pod_class in self._uncommitted:
            self.uncommitted_idle[pod_class] = None
        while len(self._idle) > IDLE_CLASSES_MAX or (self.is_full and not self.uncommitted_idle):
            self._drop(next(iter(self._idle)))

    @property
    def is_full(self) -> bool:
        """Whether idle classes exceed their size limit; a decision's own classes are kept."""
        return self.idle_bytes > IDLE_BYTES_MAX and len(self._idle) > 1

    def _mark_used(self, pod_class: PodClass) -> object:
        identity = self._idle.pop(pod_class)
        template = pod_class.template
        if template.idle == template.classes:
            self.idle_bytes -= template.weight
        template.idle -= 1
        self.idle_bytes -= _size_of_class(pod_class)
        self.uncommitted_idle.pop(pod_class, None)
        return identity

    def _drop(self, pod_class: PodClass) -> None:
        """Drop a class without pods."""
        identity = self._mark_used(pod_class)
        self._last = None
        self.has_dropped = pod_class.is_dropped = True
        self._uncommitted.pop(pod_class, None)
        del self._classes[identity]
        self._match_index.leave(pod_class)
        self._defaulted.discard(pod_class)
        self._data_sets.discard(pod_class)
        if pod_class.devices is not None:
            pod_class.devices.table.release_user(pod_class.devices)
        self._release(pod_class.template)

    def _release(self, template: Template) -> None:
        """Remove a class from a template, and drop the template once it has no classes.

        The class must not be idle.
        """
        template.classes -= 1
        if template.classes:
            if template.idle == template.classes:
                self.idle_bytes += template.weight
            return
        del self._templates[template.identity]
        self._falling_back.pop(template, None)
        self._rules.release(template.rules)
        self._rules.release_needs(template.needs)
        self._nodes.release_resources(_resources_of(template))
        for rule in (*template.hard_spread, *template.soft_spread):
            self._inclusion_sets.release(rule.included_nodes)
        self._match_index.release(template)
        self._nodes.release_keys(template.keys)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield the kind and approximate size in bytes of each class, template, and rule."""
        for pod_class in self._classes.values():
            yield "classes", _size_of_class(pod_class)
        for template in self._templates.values():
            held = (*template.counted, *template.entries, *template.owned)
            yield "templates", TEMPLATE_BYTES + TERM_BYTES * len(held)
        yield from self._rules.sizes()

    def follow_object(
        self, before: DeclaredObject[Partial] | None, after: DeclaredObject[Partial] | None
    ) -> None:
        """Recompile the classes whose rules depend on an added, changed, or removed object.

        Such rules are default constraints and data affinity.
        """
        affected = dict(self._defaulted.affected(before, after))
        affected.update(self._data_sets.affected(before, after))
        for pod_class, pod in affected.items():
            identity = self._mark_used(pod_class) if pod_class in self._idle else None
            old = pod_class.template
            labels = self._match_index.namespace_labels.get(pod.namespace)
            pod_class.compiled_as(self._template(pod), labels)
            self._release(old)
            if identity is not None:
                self._mark_idle(pod_class, identity)

    def _template(self, pod: Pod) -> Template:
        spec = pod.spec
        constraints, data = self._constraints(pod), self._data_sets.rules_of(pod)
        sibling_key = sibling_key_of(pod)
        identity = (
            id(spec),
            pod.namespace,
            tuple(selector for _, _, selector in constraints),
            pod.required_node_name,
            sibling_key,
            data,
        )
        template = self._templates.get(identity)
        if template is None:
            needs = self._rules.hold_needs(spec)
            rules = self._rules.rules_of(pod, needs, self._profile(spec).affinity, data)
            template = Template(spec, pod.namespace, rules, needs, identity)
            builder = _TemplateBuilder(self._config, self._nodes, self._match_index, template)
            builder.build(
                constraints,
                self._inclusion_sets,
                self._daemons,
                needs_keys=bool(spec.topology_spread_constraints)
                or self._profile(spec).constraints_need_keys,
                sibling_key=sibling_key,
            )
            self._nodes.track(_resources_of(template))
            self._nodes.hold_keys(template.keys)
            template.weight = self._weight(template)
            self._templates[identity] = template
            if template.falls_back:
                self._falling_back[template] = None
        elif template.idle == template.classes:
            self.idle_bytes -= template.weight
        template.classes += 1
        return template

    def _weight(self, template: Template) -> int:
        """Return the approximate number of bytes that dropping the template would free.

        It is computed as if the template shared nothing but resources and common keys.
        """
        counters = [entry.counters[kind] for entry, kind in template.counted]
        counters += [term.counter for term in template.owned]
        own_keys = [name for name in template.keys if self._nodes.users.keys[name] == 1]
        weight = TEMPLATE_BYTES + sum(COUNTER_BYTES + counter.size_in_bytes for counter in counters)
        for entry in template.entries:
            weight += size_in_bytes(entry.matcher)
            weight += WIDE_WEIGHT if self._match_index.is_wide(entry) else 0
        return weight + sum(self._nodes.key(name).size_in_bytes for name in own_keys)

    def _constraints(self, pod: Pod) -> list[SelectedConstraint]:
        """Return a pod's own constraints, or else the defaults that have selectors for it."""
        constraints = pod.spec.topology_spread_constraints or self._profile(pod.spec).constraints
        if not constraints:
            return []
        derived = self._selectors.of(pod) if self._takes_defaults(pod.spec) else None
        chosen: list[SelectedConstraint] = []
        for index, constraint in enumerate(constraints):
            if derived is None or constraint.label_selector is not None:
                own = compile_selector(spread_selector(constraint, pod.labels))
                chosen.append((index, constraint, own))
            elif derived:
                chosen.append((index, constraint, derived))
        return chosen

    def _takes_defaults(self, spec: PodSpec) -> bool:
        return not spec.topology_spread_constraints and bool(self._profile(spec).constraints)

    def _profile(self, spec: PodSpec) -> ProfileRules:
        return self._profiles.get(spec.scheduler_name, NO_RULES)


def _size_of_class(pod_class: PodClass) -> int:
    return CLASS_BYTES + LABEL_BYTES * len(pod_class.labels)


def _resources_of(template: Template) -> tuple[str, ...]:
    """Return the resources that a template's pods request, before or after placement."""
    amounts = (*template.rules.needs.amounts, *template.use.amounts)
    return tuple(dict.fromkeys(name for name, _ in amounts))


def _share_objects(one: Pod, other: Pod) -> bool:
    """Return whether two pods have the same class, ignoring owners, volumes, and devices."""
    return (
        one.spec is other.spec
        and one.labels is other.labels
        and one.namespace == other.namespace
        and one.terminating == other.terminating
        and one.required_node_name == other.required_node_name
    )


def _have_equal_owners(one: Pod, other: Pod) -> bool:
    """Return whether two pods of one spec have the same owner, volumes, and devices."""
    return (
        one.controller is other.controller
        and _volumes_identity(one) == _volumes_identity(other)
        and _devices_identity(one) == _devices_identity(other)
    )


def _volumes_identity(pod: Pod) -> Hashable:
    """Return a key that is equal for pods of one spec and namespace with the same volumes."""
    if has_ephemeral(pod.spec.volumes):
        return pod.claims, pod.name, pod.uid
    return pod.claims


def _devices_identity(pod: Pod) -> Hashable:
    """Return a key that is equal for pods of one spec and namespace that request the same devices.

    The devices of placed pods are read from their claims.
    """
    if not pod.spec.resource_claims or pod.node_name is not None:
        return None
    return (pod.device_claims, pod.name, pod.uid) if pod.device_claims else True


class _TemplateBuilder:
    """Builds one template, interning its matchers and counters."""

    def __init__(
        self,
        config: ClusterConfig,
        nodes: NodeTable,
        match_index: MatchIndex,
        template: Template,
    ) -> None:
        self._config = config
        self._nodes = nodes
        self._match_index = match_index
        self._template = template

    def build(
        self,
        constraints: Sequence[SelectedConstraint],
        inclusion_sets: InclusionSets,
        daemons: frozenset[str],
        *,
        needs_keys: bool,
        sibling_key: str | None,
    ) -> None:
        affinity = self._template.spec.affinity
        if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
            self._terms(affinity, daemons)
            if affinity.pod_affinity and sibling_key is not None:
                self._exempt_first(affinity.pod_affinity, sibling_key)
        if constraints:
            self._spread(constraints, inclusion_sets, needs_keys=needs_keys)

    def _terms(self, affinity: Affinity, daemons: frozenset[str]) -> None:
        template = self._template
        attract = affinity.pod_affinity or PodAffinity()
        repel = affinity.pod_anti_affinity or PodAffinity()
        required = self._matchers(_required_terms(attract), frozenset())
        forbidding = _required_terms(repel)
        forbidden = self._matchers(forbidding, daemons)
        limits = [term.max_per_domain for term in forbidding]
        template.affinity = tuple(self._required_affinity(required))
        template.affinity_per_term = self._config.affinity_per_term
        during_execution = attract.required_during_scheduling_required_during_execution or ()
        template.execution_affinity = tuple(
            self._required_affinity(self._matchers(during_execution, frozenset()))
        )
        template.excepts = any(term.except_namespace_selector is not None for term in forbidding)
        template.anti_affinity = tuple(
            self._term(frozenset((matcher,)), key, max_per_domain=limit)
            for (matcher, key), limit in zip(forbidden, limits, strict=True)
        )
        wanted = self._weighted_terms(attract, 1)
        unwanted = self._weighted_terms(repel, -1)
        template.preferred = tuple(
            self._term(frozenset((matcher,)), key, weight)
            for matcher, key, weight in (*wanted, *unwanted)
        )
        template.owned = (
            *(
                self._owned_term(Role.FORBIDS, *matcher_and_key, max_per_domain=limit)
                for matcher_and_key, limit in zip(forbidden, limits, strict=True)
            ),
            *(
                self._owned_term(Role.ATTRACTS_HARD, *matcher_and_key)
                for matcher_and_key in required
            ),
            *(self._owned_term(Role.ATTRACTS, *matcher_and_key) for matcher_and_key in wanted),
            *(self._owned_term(Role.REPELS, m, key, -weight) for m, key, weight in unwanted),
        )

    def _exempt_first(self, attract: PodAffinity, sibling_key: str) -> None:
        """Compile the affinity without the terms that are exempt until a sibling is placed."""
        template, itself = self._template, self._nodes.itself
        terms = [term for term in _required_terms(attract) if not term.first_pod_exempt]
        template.affinity_of_first = tuple(
            self._required_affinity(self._matchers(terms, frozenset()))
        )
        entry = self._entry(siblings_in(template.namespace, sibling_key))
        counter = self._counter(entry, itself, lambda: DomainCounter(itself))
        template.siblings = AffinityTerm(entry, counter)

    def _matchers(
        self, terms: Sequence[PodAffinityTerm], daemons: frozenset[str]
    ) -> list[tuple[TermMatcher, str]]:
        return [(self._matcher(term, daemons), term.topology_key) for term in terms]

    def _weighted_terms(
        self, affinity: PodAffinity, sign: int
    ) -> list[tuple[TermMatcher, str, int]]:
        return [
            (
                self._matcher(term.pod_affinity_term, frozenset()),
                term.pod_affinity_term.topology_key,
                sign * term.weight,
            )
            for term in affinity.preferred_during_scheduling_ignored_during_execution or ()
        ]

    def _matcher(self, term: PodAffinityTerm, daemons: frozenset[str]) -> TermMatcher:
        return compile_term(
            term,
            self._template.namespace,
            empty_list_means_all=self._config.empty_namespaces_mean_all,
            reads_selector=self._config.reads_namespace_selectors,
            daemons=daemons,
        )

    def _required_affinity(self, terms: list[tuple[TermMatcher, str]]) -> list[AffinityTerm]:
        """Compile required terms so that, as in Kubernetes, only pods that match all of them count.

        With `affinity_per_term`, each term counts separately.
        """
        if self._config.affinity_per_term:
            return [self._term(frozenset((matcher,)), key) for matcher, key in terms]
        together = frozenset(matcher for matcher, _ in terms)
        return [self._term(together, key) for key in dict.fromkeys(key for _, key in terms)]

    def _term(
        self, matcher: Matcher, key: str, weight: int = 0, max_per_domain: int | None = None
    ) -> AffinityTerm:
        selects_all = self._config.negation_selects_all
        terms = (for_incoming(term, negation_selects_all=selects_all) for term in matcher)
        entry = self._entry(frozenset(terms))
        topology = self._key(key)
        counter = self._counter(entry, key, lambda: DomainCounter(topology))
        return AffinityTerm(entry, counter, weight, max_per_domain)

    def _owned_term(
        self,
        role: Role,
        matcher: TermMatcher,
        key: str,
        weight: int = 0,
        max_per_domain: int | None = None,
    ) -> OwnedTerm:
        entry = self._entry(frozenset((matcher,)))
        return entry.hold_term(role, self._key(key), weight, max_per_domain)

    def _entry(self, matcher: Matcher) -> MatcherEntry:
        entry = self._match_index.entry(matcher)
        if entry not in self._template.entries:
            self._template.entries[entry] = None
            entry.templates += 1
        return entry

    def _key(self, name: str) -> TopologyKey:
        self._template.keys[name] = None
        return self._nodes.key(name)

    def _counter(
        self, entry: MatcherEntry, kind: object, make: Callable[[], DomainCounter]
    ) -> DomainCounter:
        self._template.counted.append((entry, kind))
        return entry.hold_counter(kind, make)

    def _spread(
        self,
        constraints: Sequence[SelectedConstraint],
        inclusion_sets: InclusionSets,
        *,
        needs_keys: bool,
    ) -> None:
        for hard, attribute in ((True, "hard"), (False, "soft")):
            chosen = [
                constraint
                for constraint in constraints
                if (constraint[1].when_unsatisfiable == "DoNotSchedule") == hard
            ]
            keys = (
                [self._key(constraint.topology_key) for _, constraint, _ in chosen]
                if needs_keys
                else []
            )
            rules = tuple(
                self._rule(*selected, keys, inclusion_sets, soft=not hard) for selected in chosen
            )
            setattr(self._template, f"{attribute}_spread", rules)

    def _rule(
        self,
        index: int,
        constraint: TopologySpreadConstraint,
        selector: Selector | None,
        keys: list[TopologyKey],
        inclusion_sets: InclusionSets,
        *,
        soft: bool,
    ) -> SpreadRule:
        rules = self._template.rules
        included_nodes = inclusion_sets.get(
            keys,
            rules.required if constraint.node_affinity_policy == "Honor" else None,
            rules.tolerations if constraint.node_taints_policy == "Honor" else None,
        )
        per_node = soft and constraint.topology_key == HOSTNAME
        key = self._key(constraint.topology_key)
        namespaces = compile_namespaces(constraint.namespace_selector, self._template.namespace)
        count = partial(self._spread_counter, namespaces, selector, key, included_nodes)
        return SpreadRule(
            index=index,
            key=key,
            counter=count(per_node=per_node),
            needs_key=bool(keys),
            on_nodes=None if keys else count(per_node=True),
            per_node=per_node,
            included_nodes=included_nodes,
            max_skew=constraint.max_skew,
            min_domains=constraint.min_domains or 1,
            selector=selector,
            namespaces=None if constraint.namespace_selector is None else namespaces,
        )

    def _spread_counter(
        self,
        namespaces: NamespaceRule,
        selector: Selector | None,
        key: TopologyKey,
        included_nodes: IncludedNodes,
        *,
        per_node: bool,
    ) -> DomainCounter | None:
        if not selector:
            return None
        matcher = TermMatcher(namespaces, selector, terminating_too=False)
        entry = self._entry(frozenset((matcher,)))
        if per_node:
            itself = self._nodes.itself
            return self._counter(entry, itself, lambda: DomainCounter(itself))
        return self._counter(
            entry, (key.name, included_nodes), lambda: SpreadCounter(key, included_nodes)
        )


def _required_terms(affinity: PodAffinity) -> tuple[PodAffinityTerm, ...]:
    """Return the required terms of both kinds, which filter in the same way during scheduling."""
    return (
        *(affinity.required_during_scheduling_required_during_execution or ()),
        *(affinity.required_during_scheduling_ignored_during_execution or ()),
    )
