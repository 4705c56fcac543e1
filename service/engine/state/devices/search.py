"""The search for devices that satisfy all claims of a pod on one node.

Claims, their requests, and the devices for each request are tried in order with backtracking, as in
Kubernetes. Two rules prune branches that would fail again: the devices of one request are chosen in
ascending order, and only the first of several devices that the pod's requests and constraints do
not distinguish is tried.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from service.engine.state.devices.pools import DevicePool, OfferedDevice, PoolID
from service.model.cluster.versions.version import SchedulerVersion
from service.model.devices.cel_questions import OpenQuestions
from service.model.devices.device import (
    RESULTS_MAX,
    AttributeValue,
    CounterKey,
    DeviceClaimSpec,
    DeviceClass,
    DeviceID,
    DeviceRequest,
    Grant,
    MatchAttribute,
    terms_without_node,
)

NOT_ALL = "cannot allocate all claims"
TIMED_OUT = "timed out trying to allocate devices"
INVALID_POOLS = "invalid resource pools were encountered"
TOO_MANY = "claim {}: number of requested devices {} exceeds the claim limit of {}"
UPDATED = (
    "claim {}, request {}: asks for all devices, but a resource pool is currently being updated"
)
INVALID = "claim {}, request {}: asks for all devices, but a resource pool is currently invalid"
AWAITED = "devices with binding conditions are not allocated"
CAPACITY = "claim {}, request {}: requests of capacity are not supported"
DISTINCT = "claim {}: constraints with distinctAttribute are not supported"
TERMS = "create NodeSelector for claim {}: unsupported ResourceSlice.NodeSelector with {} terms"
UNANSWERED = "selectors of the claims are being evaluated"
"""Reported only by decisions that are repeated once the selectors have been evaluated."""
UNDECIDED = "{}: selector #{}: CEL runtime error: {}"
"""Unlike Kubernetes, omits the pool and device, so that nodes share the reason."""
DEVICES_AT_ONCE_MAX = 256
"""The maximum number of devices allocated to all new claims of one pod at once."""
TOO_MANY_AT_ONCE = "pod claims {} devices at once, of which at most {} are allocated"


class WantedClaim(NamedTuple):
    """A claim without allocated devices."""

    name: str
    """The namespace and name of the claim, as shown in messages."""
    spec: DeviceClaimSpec


class NoAllocation(Exception):  # noqa: N818 - an answer, not an error
    """Raised if a node has no allocation, or none was found in time; the message is the reason."""


class _Unanswered(Exception):  # noqa: N818 - control flow that ends the search
    """Raised if a selector's verdict on a device is not known yet."""


class _Selector(NamedTuple):
    """A CEL expression that must hold for a device, with its owner for messages."""

    text: str
    owner: str
    number: int


class _Need:
    """A request, with its selectors and the devices that it needs."""

    __slots__ = ("admin", "all_devices", "claim", "count", "request", "selectors")

    def __init__(
        self, claim: int, name: str, request: DeviceRequest, device_class: DeviceClass
    ) -> None:
        self.claim = claim
        self.request = request
        self.admin = request.admin_access
        self.count = request.count
        self.all_devices: tuple[OfferedDevice, ...] | None = None
        own = [_Selector(text, f"claim {name}", n) for n, text in enumerate(request.selectors)]
        of_class = [
            _Selector(text, f"class {device_class.name}", n)
            for n, text in enumerate(device_class.selectors)
        ]
        self.selectors = (*of_class, *own)


class _MatchConstraint:
    """A match constraint of a claim, with the value shared by the devices chosen so far."""

    __slots__ = ("constraint", "devices", "value")

    def __init__(self, constraint: MatchAttribute) -> None:
        self.constraint = constraint
        self.value: AttributeValue | None = None
        self.devices = 0

    def allows(self, need: _Need, device: OfferedDevice) -> bool:
        """Return whether a device can be chosen in addition to those chosen so far."""
        if not self.constraint.concerns(need.request):
            return True
        value = device.device.attributes.get(self.constraint.attribute)
        return value is not None and (not self.devices or value == self.value)

    def count(self, need: _Need, device: OfferedDevice, devices: int) -> None:
        """Record that a device was chosen (`devices` = 1) or returned (`devices` = -1)."""
        if self.constraint.concerns(need.request):
            self.value = device.device.attributes.get(self.constraint.attribute)
            self.devices += devices


class DeviceSearch:
    """A search for devices for one pod on one node."""

    def __init__(
        self,
        pools: Sequence[DevicePool],
        claims: Sequence[WantedClaim],
        classes: Mapping[str, DeviceClass],
        in_use: Collection[DeviceID],
        steps_max: int,
        questions: OpenQuestions,
        version: SchedulerVersion,
    ) -> None:
        """Prepare a search.

        Args:
            pools: the pools that the node can access.
            claims: the claims without devices, in the order of the pod's spec.
            classes: the device classes by name, which include all that the claims name.
            in_use: the devices of other claims.
            steps_max: the maximum number of devices tried.
            questions: the selector evaluations that are still open.
            version: what the version of kube-scheduler decides differently from others.
        """
        self._questions = questions
        self._version = version
        self._unsupported: set[str] = set()
        """Why devices were refused that Kubernetes might allocate."""
        self._pools = pools
        self._claims = claims
        self._in_use = in_use
        self._steps = steps_max
        self._offered = [device for pool in pools for device in pool.devices]
        self._needs = [
            [
                [_Need(number, claim.name, request, classes[request.class_name]) for request in one]
                for one in claim.spec.requests
            ]
            for number, claim in enumerate(claims)
        ]
        self._constraints = [
            list(map(_MatchConstraint, claim.spec.constraints)) for claim in claims
        ]
        self._taken: dict[DeviceID, list[int]] = {}
        """The claims that each device is chosen for in this search."""
        self._left: dict[PoolID | str, dict[CounterKey, int]] = {}
        """What is left of each pool's counters, computed on demand; by mistake, v1.36 knows pools by
        their names alone, whatever their driver."""
        self._results: list[list[Grant]] = [[] for _ in claims]
        self._verdicts: dict[tuple[int, DeviceID], bool | str] = {}

    def run(self) -> list[tuple[Grant, ...]]:
        """Return the devices of each claim, in the order of the claims.

        Raises:
            NoAllocation: no allocation was found.
        """
        try:
            return self._run()
        except _Unanswered:
            self._ask_all()
            raise NoAllocation(UNANSWERED) from None

    def _run(self) -> list[tuple[Grant, ...]]:
        self._prepare()
        if not self._satisfy_from(0, 0):
            invalid = any(pool.is_invalid for pool in self._pools)
            reasons = [INVALID_POOLS if invalid else NOT_ALL, *sorted(self._unsupported)]
            raise NoAllocation(": ".join(reasons))
        for claim, grants in zip(self._claims, self._results, strict=True):
            terms = terms_without_node(grants)
            if terms is not None:
                raise NoAllocation(TERMS.format(claim.name, terms))
        return [tuple(result) for result in self._results]

    def _prepare(self) -> None:
        total = 0
        for number, claim in enumerate(self._claims):
            self._refuse_unsupported(claim)
            least = 0
            for alternatives in self._needs[number]:
                self._determine_all(alternatives)
                least += min(need.count for need in alternatives)
            if least > RESULTS_MAX:
                raise NoAllocation(TOO_MANY.format(claim.name, least, RESULTS_MAX))
            total += least
        if total > DEVICES_AT_ONCE_MAX:
            raise NoAllocation(TOO_MANY_AT_ONCE.format(total, DEVICES_AT_ONCE_MAX))

    def _refuse_unsupported(self, claim: WantedClaim) -> None:
        """Refuse a claim whose devices have to meet conditions that are not checked."""
        if claim.spec.needs_distinct:
            raise NoAllocation(DISTINCT.format(claim.name))
        if not self._version.shares_devices:
            return
        for alternatives in claim.spec.requests:
            for request in alternatives:
                if request.needs_capacity:
                    raise NoAllocation(CAPACITY.format(claim.name, request.full_name))

    def _determine_all(self, alternatives: Sequence[_Need]) -> None:
        """Determine the devices of all alternatives that ask for all matching devices.

        By mistake, v1.35 takes those of the first alternative for the second one, too.
        """
        for index, need in enumerate(alternatives):
            first = alternatives[0]
            is_mistaken = index == 1 and not self._version.keeps_alternatives
            if not need.request.takes_all:
                continue
            if is_mistaken and first.all_devices is not None:
                need.all_devices, need.count = first.all_devices, first.count
            else:
                self._determine(need)

    def _determine(self, need: _Need) -> None:
        """Determine the devices of a request for all matching devices."""
        name, request = self._claims[need.claim].name, need.request.name
        for pool in self._pools:
            if pool.is_incomplete:
                raise NoAllocation(UPDATED.format(name, request))
            if pool.is_invalid:
                raise NoAllocation(INVALID.format(name, request))
        need.all_devices = tuple(
            [device for device in self._offered if self._selects(need, device)]
        )
        need.count = len(need.all_devices)

    # The search

    def _satisfy_from(self, claim: int, request: int) -> bool:
        """Satisfy a request and all requests that follow it."""
        while claim < len(self._claims) and request == len(self._needs[claim]):
            claim, request = claim + 1, 0
        if claim == len(self._claims):
            return True
        for need in self._needs[claim][request]:  # noqa: SIM110 - alternatives are tried in turn
            if self._satisfy(need, request):
                return True
        return False

    def _satisfy(self, need: _Need, request: int) -> bool:
        """Satisfy one alternative of a request and all requests that follow."""
        if len(self._results[need.claim]) + need.count > RESULTS_MAX:
            return False
        if need.all_devices is None:
            return self._pick_devices(need, request, need.count, 0)
        return bool(need.all_devices) and self._take_all(need, request, 0)

    def _take_all(self, need: _Need, request: int, index: int) -> bool:
        assert need.all_devices is not None
        if index == len(need.all_devices):
            return self._satisfy_from(need.claim, request + 1)
        self._step()
        device = need.all_devices[index]
        if not self._is_free(need, device) or not self._is_usable(need, device):
            return False
        if not self._constraints_allow(need, device):
            return False
        self._take(need, device)
        if self._take_rest(need, request, index + 1):
            return True
        self._give_back(need, device)
        return False

    def _take_rest(self, need: _Need, request: int, index: int) -> bool:
        """Take the devices of an alternative from `index` on, and satisfy all later requests.

        By mistake, v1.35 goes on with the first alternative here, whichever one it has begun.
        """
        first = self._needs[need.claim][request][0]
        if need is first or self._version.keeps_alternatives:
            return self._take_all(need, request, index)
        missing = max(0, first.count - index)
        if len(self._results[need.claim]) + missing > RESULTS_MAX:
            return False
        if first.all_devices is None:
            return self._pick_devices(first, request, missing, 0)
        return bool(first.all_devices) and self._take_all(first, request, index)

    def _pick_devices(self, need: _Need, request: int, missing: int, start: int) -> bool:
        """Choose `missing` more devices from index `start`, and satisfy all later requests."""
        if not missing:
            return self._satisfy_from(need.claim, request + 1)
        self._step()
        failed: set[Hashable] = set()
        for index in range(start, len(self._offered)):
            device = self._offered[index]
            if not self._is_free(need, device) or not self._selects(need, device):
                continue
            if not self._is_usable(need, device) or not self._constraints_allow(need, device):
                continue
            if failed and self._signature(device) in failed:
                continue
            self._take(need, device)
            if self._pick_devices(need, request, missing - 1, index + 1):
                return True
            self._give_back(need, device)
            failed.add(self._signature(device))
        return False

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise NoAllocation(TIMED_OUT)

    def _is_free(self, need: _Need, device: OfferedDevice) -> bool:
        taken = self._taken.get(device.id, ())
        if need.admin:
            return need.claim not in taken
        return not taken and device.id not in self._in_use

    def _is_usable(self, need: _Need, device: OfferedDevice) -> bool:
        """Return whether a selected device may be allocated, apart from constraints."""
        if device.device.counter_sets and not self._has_left(device):
            return False
        if device.device.has_conditions:
            self._unsupported.add(AWAITED)
            return False
        tolerations = need.request.tolerations
        return not self._version.taints_devices or device.device.is_tolerated(tolerations)

    def _has_left(self, device: OfferedDevice) -> bool:
        """Return whether the counters of the pool suffice for a device that takes of them.

        As in Kubernetes, no counter of the pool may be exceeded, also none that the device does not
        take of. Up to v1.35, nothing is counted, and such devices are never allocated.
        """
        if not self._version.partitions_devices:
            return False
        left = self._left_in(device)
        after = dict(left)
        for key, amount in device.device.consumes:
            if key in after:
                after[key] -= amount
        return all(amount >= 0 for amount in after.values())

    def _left_in(self, device: OfferedDevice) -> dict[CounterKey, int]:
        """Return what is left of each counter of a device's pool."""
        pool_id = device.slice.pool_id
        known_as: PoolID | str = pool_id
        if not self._version.keeps_counters_apart:
            known_as = device.id.pool
        left = self._left.get(known_as)
        if left is None:
            counters = next(pool.counters for pool in self._pools if pool.id == pool_id)
            left = self._left[known_as] = counters.left(self._in_use)
        return left

    def _count(self, device: OfferedDevice, devices: int) -> None:
        """Count what a device takes that was chosen (`devices` = 1) or returned (-1)."""
        if not device.device.consumes:
            return
        left = self._left_in(device)
        for key, amount in device.device.consumes:
            if key in left:
                left[key] -= devices * amount

    def _constraints_allow(self, need: _Need, device: OfferedDevice) -> bool:
        return all(condition.allows(need, device) for condition in self._constraints[need.claim])

    def _take(self, need: _Need, device: OfferedDevice) -> None:
        for condition in self._constraints[need.claim]:
            condition.count(need, device, 1)
        self._count(device, 1)
        self._taken.setdefault(device.id, []).append(need.claim)
        owner = device.owner
        self._results[need.claim].append(
            Grant(
                request=need.request.full_name,
                class_name=need.request.class_name,
                device=device.id,
                admin_access=need.admin,
                node_name=owner.node_name,
                node_selector=owner.node_selector,
                binds_to_node=device.device.binds_to_node and self._version.awaits_devices,
            )
        )

    def _give_back(self, need: _Need, device: OfferedDevice) -> None:
        for condition in self._constraints[need.claim]:
            condition.count(need, device, -1)
        self._count(device, -1)
        self._taken[device.id].pop()
        self._results[need.claim].pop()

    # Properties of devices

    def _selects(self, need: _Need, device: OfferedDevice) -> bool:
        verdict = self._verdict(need, device)
        if isinstance(verdict, str):
            raise NoAllocation(verdict)
        return verdict

    def _verdict(self, need: _Need, device: OfferedDevice) -> bool | str:
        """Return whether a device is selected, or the reason that this is undecidable."""
        if self._is_ignored(device):
            return False
        key = (id(need), device.id)
        known = self._verdicts.get(key)
        if known is None:
            known = self._verdicts[key] = self._evaluate(need, device)
        return known

    def _is_ignored(self, device: OfferedDevice) -> bool:
        """Return whether the version ignores a device for its binding conditions."""
        return device.device.has_conditions and not self._version.awaits_devices

    def _evaluate(self, need: _Need, device: OfferedDevice) -> bool | str:
        for selector in need.selectors:
            verdict = self._questions.selects(selector.text, device.device)
            if verdict is None:
                raise _Unanswered
            if isinstance(verdict, str):
                return UNDECIDED.format(selector.owner, selector.number, verdict)
            if not verdict:
                return False
        return True

    def _ask_all(self) -> None:
        """Record all open questions about the devices, so that they are answered together."""
        needs = [need for claim in self._needs for alternatives in claim for need in alternatives]
        for device in self._offered:
            if self._is_ignored(device):
                continue
            for text in {selector.text: None for need in needs for selector in need.selectors}:
                if self._questions.are_many:
                    return
                self._questions.selects(text, device.device)

    def _signature(self, device: OfferedDevice) -> Hashable:
        """Return a key that is equal for devices that this search cannot currently distinguish."""
        verdicts = [
            self._verdict(need, device)
            for claim in self._needs
            for alternatives in claim
            for need in alternatives
        ]
        values = [
            device.device.attributes.get(condition.constraint.attribute)
            for conditions in self._constraints
            for condition in conditions
        ]
        taken = tuple(self._taken.get(device.id, ()))
        own = (device.device.taints, device.device.consumes, device.slice.pool_id)
        return (*map(str, verdicts), *values, taken, device.id in self._in_use, *own)
